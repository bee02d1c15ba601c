"""Whole turns in editors that lie (`tests/lsp/liar.py`), with a person who types between all
messages: the tool's answer and the review say what the text holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.lsp.liar import FORMATTED, Liar
from tests.thorough import rotating

from .harness import Person, person
from .test_review import get, worked

TURNS = 6
BASE = "".join(f"def f{n}():  # é😋\n    value_{n} = 0\n\n" for n in range(TURNS))


def turn(n: int) -> str:
    old, new = f"value_{n} = 0\n", f"value_{n} = 1\n    # edited {n}\n"
    call = json.dumps({"path": "app.py", "old_text": old, "new_text": new})
    return f"prompt: number {n}.\ncall: edit_file {call}\n---\ntext: Done.\n"


def with_edits(done: set[int]) -> str:
    text = BASE
    for n in done:
        text = text.replace(f"value_{n} = 0\n", f"value_{n} = 1\n    # edited {n}\n")
    return text


def answers(one: Person) -> list[tuple[str, str]]:
    """(status, what the person was shown) of each call that ended."""
    ended = ("completed", "failed", "cancelled")
    updates = [u for u in one.updates("tool_call_update") if u.get("status") in ended]
    return list(zip((u["status"] for u in updates), one.outputs(), strict=True))


async def same_text(one: Person, editor: Liar, path: Path) -> None:
    """The server's text is the editor's: to remove all of the one leaves nothing of the other."""
    with editor.quiet():
        edits = [{"old_text": editor.text(path), "new_text": ""}]
        found = await one.client.request(
            "magy/edit/preview", {"uri": path.as_uri(), "edits": edits}
        )
    assert found["failures"] == []
    (file,) = found["files"]
    assert file["notes"] == [] and "+0,0 @@" in file["diff"]


@pytest.mark.long
@pytest.mark.req("G006", "G011")
@pytest.mark.parametrize("seed", rotating(range(4)))
async def test_the_answer_and_the_review_say_what_the_text_holds(
    root: Path, state: Path, seed: int
) -> None:
    path = root / "app.py"
    path.write_bytes(BASE.encode())
    async with person(root, state, "".join(turn(n) for n in range(TURNS))) as one:
        one.editor = editor = Liar(one.client, seed)
        editor.calm = 0.8
        done: set[int] = set()
        for n in range(TURNS):
            if path.as_uri() not in editor.texts:
                editor.open(path)
            editor.typing.add(path)
            await worked(one, f"number {n}.", f"p{n + 1}")
            editor.typing.clear()
            if path.as_uri() not in editor.texts:
                editor.open(path)
            about = (n, editor.drawn, answers(one)[-1])
            bare = editor.bare(path)
            if f"# edited {n}\n" in bare:
                done.add(n)
            assert bare.removesuffix(FORMATTED) == with_edits(done), about
            assert editor.lost(path) == [], about
            await same_text(one, editor, path)
            await says_so(one, path, n, n in done, about)


async def says_so(one: Person, path: Path, n: int, there: bool, about: object) -> None:
    status, shown = answers(one)[-1]
    file = await get(one, path)
    news = [Liar.without_marks(hunk["newText"]) for hunk in file["hunks"]] if file else []
    reviewed = any(f"# edited {n}\n" in new for new in news)
    if status == "completed":
        assert there and reviewed, about
    elif "may have gone wrong" not in shown:
        assert not there, about
    assert there or not reviewed, about
