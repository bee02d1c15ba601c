"""Edits through editors that lie, while the person does not stop typing: the end is a text that has
the edit or one that has not, with all that was typed; and the server knows which."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.client import Client, RpcError
from tests.lsp.liar import HABITS, Liar

TOP = Path(__file__).parents[2]
ECHO = [sys.executable, "-m", "tests.lsp.echo_server"]
LINES = [f"def f{n}():  # é😋\n    value_{n} = 0\n\n" for n in range(8)]
QUICK = [habit for habit in HABITS if habit not in ("silent", "close", "format")]
"""Habits after which nobody has to wait for what will not come."""


def with_edits(text: str, done: set[int]) -> str:
    for n in done:
        text = text.replace(f"value_{n} = 0\n", f"value_{n} = 1\n# edited {n}\n")
    return text


async def shown(client: Client, path: Path) -> str:
    return str((await client.request("magy/buffer", {"path": str(path)}))["text"])


async def edit(client: Client, path: Path, n: int) -> str:
    """Makes one edit of two parts on the text that the server knows; done, or why not."""
    buffer = await client.request("magy/buffer", {"path": str(path)})
    text, zero = buffer["text"], f"value_{n} = 0\n"
    if zero not in text:  # the person has typed there
        return "not found"
    end = text.index(zero) + len(zero)
    changes = [[end - 2, end - 1, "1"], [end, end, f"# edited {n}\n"]]
    params = {"path": str(path), "changes": changes, "version": buffer["version"]}
    try:
        done = await client.request("magy/edit", params)
    except RpcError as error:
        return str(error.reason)
    assert f"value_{n} = 1\n" in Liar.without_marks(done["text"])
    return "done"


async def check(
    client: Client, editor: Liar, path: Path, base: str, said: dict[int, str]
) -> set[int]:
    """What holds whatever happened; gives the edits that are in the text."""
    bare = editor.bare(path).replace("\r\n", "\n")
    done = {n for n in said if f"# edited {n}\n" in bare}
    habits = dict(zip(said, editor.drawn, strict=False))
    assert bare == with_edits(base, done), habits
    assert editor.lost(path) == [], habits
    with editor.quiet():
        assert await shown(client, path) == editor.text(path), habits
    for n, answer in said.items():
        if answer == "done":
            assert n in done, (n, habits)
        elif answer in ("stale", "edit_refused", "not found"):
            assert n not in done, (n, habits)
    return done


@pytest.mark.req("G006", "G011")
@pytest.mark.parametrize("seed", range(8))
async def test_whatever_the_editor_does(tmp_path: Path, seed: int) -> None:
    path, base = tmp_path / "a.py", "".join(LINES)
    async with Client.spawn(ECHO, cwd=TOP) as client:
        await client.initialize()
        editor = Liar(client, seed, QUICK)
        await client.request("magy/echo")
        editor.open(path, base)
        editor.typing.add(path)
        said: dict[int, str] = {}
        for n in range(len(LINES)):
            said[n] = await edit(client, path, n)
            await check(client, editor, path, base, said)
        editor.typing.clear()
        assert "unverified" not in "".join(said.values())


@pytest.mark.parametrize("habit", [h for h in QUICK if h not in ("refuse", "line_ends")])
async def test_an_edit_far_from_the_typing_gets_in(tmp_path: Path, habit: str) -> None:
    """The person types at the top, so that every position below is wrong by then."""
    path, base = tmp_path / "a.py", "".join(LINES)
    async with Client.spawn(ECHO, cwd=TOP) as client:
        await client.initialize()
        editor = Liar(client, 1)
        editor.script = [habit, "honest"] * len(LINES)
        editor.places = lambda text: [0]
        editor.mark = "‹{}›\n"
        await client.request("magy/echo")
        editor.open(path, base)
        said = {n: await edit(client, path, n) for n in range(len(LINES))}
        assert set(said.values()) == {"done"}
        assert await shown(client, path) == editor.text(path)
        marks = "".join(reversed(editor.typed))
        assert editor.text(path) == marks + with_edits(base, set(said))


@pytest.mark.parametrize("habit", ["outdated", "outdated_at_once", "late"])
async def test_an_edit_of_lines_that_are_typed_in_stays_out(tmp_path: Path, habit: str) -> None:
    path, base = tmp_path / "a.py", "one\ntwo\nthree\n"
    async with Client.spawn(ECHO, cwd=TOP) as client:
        await client.initialize()
        editor = Liar(client, 1, ["honest"])
        editor.script = [habit]
        editor.places = lambda text: [text.index("two") + 1]
        await client.request("magy/echo")
        editor.open(path, base)
        with pytest.raises(RpcError) as error:
            params = {"path": str(path), "changes": [[4, 7, "2"], [8, 13, "3"]]}
            await client.request("magy/edit", params)
        assert (error.value.code, error.value.reason) == (-32801, "stale")
        assert "same lines" in error.value.message
        assert editor.text(path) == "one\nt‹1›wo\nthree\n" == await shown(client, path)


async def test_a_client_without_versions_is_watched_all_the_same(tmp_path: Path) -> None:
    """As Neovim's: it takes no `documentChanges`, so nothing but the look afterwards helps."""
    path = tmp_path / "a.py"
    async with Client.spawn(ECHO, cwd=TOP) as client:
        plain: dict[str, Any] = {"workspace": {"applyEdit": True, "workspaceEdit": {}}}
        await client.initialize(capabilities=plain)
        editor = Liar(client, 1, ["honest"])
        editor.script = ["outdated"]
        editor.places = lambda text: [0]
        editor.mark = "‹{}›\n"
        await client.request("magy/echo")
        editor.open(path, "one\ntwo\n")
        params = {"path": str(path), "changes": [[4, 7, "2"]]}
        done = await client.request("magy/edit", params)
        assert done["text"] == "‹1›\none\n2\n" == editor.text(path)
        assert "documentChanges" not in editor.edits[0]["edit"]
        assert len(editor.edits) == 2
