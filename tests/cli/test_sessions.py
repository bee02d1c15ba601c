"""`magy sessions`: list, show, fork, export, delete, compact, summary, title."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.cli.commands.session_list import lines
from magy_server.cli.screen.text import UNICODE, plain
from magy_server.core import codec
from magy_server.core.agents.tree import stream_of
from magy_server.core.events import Entry
from magy_server.core.ports import Batch, Page, StreamInfo
from magy_server.core.text.markdown import fenced
from magy_server.store.memory import MemoryStore
from magy_server.store.sqlite import SqliteStore
from tests.cli.harness import Magy
from tests.patience import PATIENCE

SCRIPT = """
prompt: edit
text: I change `app.py`.
call: edit_file {"path": "app.py", "old_text": "'hello'", "new_text": "'```'"}
---
call: bash {"command": "printf '\\\\377\\\\n'; seq 3"}
---
text: Changed.
prompt: thanks
text: Any time.
prompt: sum
text: A summary of it all.
"""


@pytest.fixture
def id(magy: Magy) -> str:
    """A session with an edit, a command and two turns."""
    magy.script(SCRIPT)
    assert magy("run", "edit", "--bypass").returncode == 0
    assert magy("run", "thanks", "--continue").returncode == 0
    found: str = magy.sessions()[0]["sessionId"]
    return found


@pytest.mark.req("E072")
def test_the_list_has_this_project_first_by_date_and_the_others_by_project(
    magy: Magy, id: str, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    magy("run", "thanks for nothing", cwd=other)
    lines = magy("sessions").stdout.splitlines()
    assert lines[0] == f"{magy.root} (here)"
    assert lines[1].startswith(f"  {id}  20")
    assert lines[1].endswith("  edit  2 turns")
    assert lines[3] == str(other)
    assert "thanks for nothing" in lines[4]
    here = magy("sessions", "list", "--here", cwd=other).stdout.splitlines()
    assert here[0] == f"{other} (here)"
    assert len(here) == 2


@pytest.mark.parametrize("width", [60, 80, 120])
def test_long_ids_leave_titles_their_room(width: int) -> None:
    ids = ("2pyk6fr3tp", "emacs-20261124-021500-1a2b3c4d5e6f")
    found = [
        StreamInfo(stream_of(id), "/shop", 9, 0.0, 0.0,
                   {"title": "Why does average() crash on an empty list?", "turns": 12,
                    "state": "requires_action"})
        for id in ids
    ]  # fmt: skip
    rows = plain(lines(Page(found, None), "/shop", UNICODE, width)).splitlines()
    assert not [row for row in rows if len(row) > width]
    for id in ids:
        assert [row for row in rows if id in row], "it can be copied"
    assert len([row for row in rows if "Why does average()" in row and "asks" in row]) == 2
    assert len({row.index("1970" if "1970" in row else "Why") for row in rows[1:]}) <= 2


def test_the_list_has_pages(magy: Magy) -> None:
    magy.script("text: ok\n")
    for prompt in ("one", "two", "three"):
        magy("run", prompt)
    first = magy("sessions", "--limit", "2").stdout
    cursor = first.splitlines()[-1].removeprefix("more: magy sessions list --cursor ")
    second = magy("sessions", "list", "--cursor", cursor).stdout
    assert "three" in first and "two" in first and "one" not in first
    assert "one" in second and "more:" not in second
    assert len(magy("sessions", "list", "--ids", "--all").stdout.split()) == 3
    page = json.loads(magy("sessions", "list", "--json", "--limit", "1").stdout)
    assert [session["title"] for session in page["sessions"]] == ["three"]
    assert page["nextCursor"]


def test_there_may_be_none(magy: Magy) -> None:
    assert magy("sessions").stdout == "There are no sessions yet. `magy run` starts one.\n"
    assert magy.sessions() == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["list", "--cursor", "nonsense"], "is not a cursor"),
        (["list", "--limit", "0"], "is not a number from 1 to 500"),
        (["show", "nope"], "There is no session 'nope'"),
        (["show"], "the following arguments are required: ID"),
        (["export", "x", "--format", "html"], "invalid choice"),
        (["nonsense"], "invalid choice"),
        (["shwo"], "invalid choice: 'shwo'; did you mean 'show'?"),
        (["list", "--li", "5"], "unrecognized arguments"),
    ],
)
def test_what_cannot_be_meant_is_said(magy: Magy, words: list[str], said: str) -> None:
    done = magy("sessions", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_show_is_the_transcript(magy: Magy, id: str) -> None:
    shown = magy("sessions", "show", id[:7]).stdout
    assert shown.startswith("> edit\n\nI change `app.py`.\n\n✓ Edit app.py  +1 -1\n")
    assert "    +    return '```'\n" in shown
    assert "    │ 3\n" in shown
    assert shown.endswith(
        "> thanks\n\n! Told the agent: The user has not judged these changes of yours yet:\n"
        "  - app.py: 1 hunk\n\nAny time.\n"
    )
    lines = [
        json.loads(line) for line in magy("sessions", "show", id, "--json").stdout.splitlines()
    ]
    seqs = [line["update"]["_meta"]["magy"]["seq"] for line in lines]
    assert seqs == sorted(seqs)
    assert {line["sessionId"] for line in lines} == {id}


def test_a_session_can_be_read_while_the_configuration_is_broken(magy: Magy, id: str) -> None:
    (magy.root / "magy.toml").write_text("not toml")
    assert magy("sessions", "show", id).returncode == 0
    assert magy("sessions", "title", id, "x").returncode == 2


@pytest.mark.req("G025")
def test_fork_at_an_entry(magy: Magy, id: str) -> None:
    done = magy("sessions", "fork", id, "--at", "6")
    copy = done.stdout.strip()
    assert done.returncode == 0
    assert copy in {session["sessionId"] for session in magy.sessions()}
    assert "Any time." not in magy("sessions", "show", copy).stdout
    assert magy("sessions", "fork", id, "--at", "9999").returncode == 2


@pytest.mark.req("G025")
def test_a_list_tells_forks_from_their_source(magy: Magy, id: str) -> None:
    def titles() -> dict[str, str]:
        return {session["sessionId"]: session["title"] for session in magy.sessions()}

    def fork(source: str) -> str:
        return magy("sessions", "fork", source).stdout.strip()

    first = titles()[id]
    copy = fork(id)
    again = fork(copy)
    assert magy("sessions", "title", id, "Mine").returncode == 0
    titled = fork(id)
    assert magy("sessions", "title", copy, "Another way").returncode == 0
    assert titles() == {
        id: "Mine", titled: "Fork of Mine", copy: "Another way", again: f"Fork of {first}",
    }  # fmt: skip


def test_jsonl_loses_nothing(magy: Magy, id: str, tmp_path: Path) -> None:
    """From the export alone, the same log with the same blobs can be made again."""
    file = tmp_path / "out.jsonl"
    assert magy("sessions", "export", id, "--format", "jsonl", "-o", str(file)).returncode == 0
    header, *lines = map(json.loads, file.read_text("utf-8").splitlines())
    assert header == {"type": "session", "version": 1, "sessionId": id, "entries": len(lines)}
    assert file.stat().st_mode & 0o777 == 0o600
    printed = magy("sessions", "export", id, "--format", "jsonl").stdout
    assert printed == file.read_text("utf-8")

    def data(blob: Any) -> bytes:
        return base64.b64decode(blob["base64"]) if isinstance(blob, dict) else blob.encode()

    blobs = {hash: data(blob) for line in lines for hash, blob in line.get("blobs", {}).items()}

    async def rebuilt() -> tuple[list[Entry], list[Entry]]:
        store = await SqliteStore.open(str(magy.state))
        again = MemoryStore()
        try:
            original = await store.read(f"session/{id}")
            events = [codec.decode(json.dumps(line["event"])) for line in lines]
            await again.append([Batch(f"session/{id}", 0, events, blobs, {})])
            for entry in original:
                hashes = codec.blobs(entry.event)
                assert await again.blobs(hashes) == await store.blobs(hashes)
            return original, await again.read(f"session/{id}")
        finally:
            await store.close()

    original, copy = asyncio.run(rebuilt())
    assert [entry.event for entry in copy] == [entry.event for entry in original]
    assert [(line["seq"], line["at"]) for line in lines] == [(e.seq, e.at) for e in original]


def test_markdown_is_readable_and_its_fences_hold(magy: Magy, id: str) -> None:
    text = magy("sessions", "export", id).stdout
    assert text.startswith("# edit\n\n20")
    assert "````diff\n--- a/app.py\n" in text
    assert "+    return '```'\n````" in text
    assert "```sh\nprintf" in text
    assert text.index("## Prompt") < text.index("I change `app.py`.") < text.index("Any time.")


@given(st.text(st.sampled_from("`\n ab~")))
def test_a_fence_is_longer_than_all_inside(text: str) -> None:
    first, *body, last = fenced(text).split("\n")
    assert first == last
    assert set(first) == {"`"}
    assert all(not line.strip().startswith(first) for line in body)


def test_an_export_is_written_whole_or_not_at_all(magy: Magy, id: str, tmp_path: Path) -> None:
    folder = tmp_path / "there"
    folder.mkdir()
    kept = folder / "out.md"
    kept.write_text("old")
    assert magy("sessions", "export", "nope", "-o", str(kept)).returncode == 2
    assert kept.read_text() == "old"
    done = magy("sessions", "export", id, "-o", str(tmp_path / "missing" / "out.md"))
    assert done.returncode == 1
    assert "cannot be written: No such file or directory" in done.stderr
    done = magy("sessions", "export", id, "-o", str(folder))
    assert done.returncode == 1
    assert magy("sessions", "export", id, "-o", str(kept)).returncode == 0
    assert [path.name for path in folder.iterdir()] == ["out.md"]


def test_delete_asks_and_nobody_can_answer(magy: Magy, id: str) -> None:
    done = magy("sessions", "delete", id)
    assert done.returncode == 2
    assert "add --yes" in done.stderr
    assert magy("sessions", "delete", id, "--yes").returncode == 0
    assert magy.sessions() == []


def test_what_runs_elsewhere_is_not_deleted(magy: Magy) -> None:
    magy.script("delay: 600\ntext: never\n")
    with magy.start("run", "hello") as running:
        id = magy.wait_for_turn()
        done = magy("sessions", "delete", id, "--yes")
        running.terminate()
        running.communicate(timeout=PATIENCE)
    assert done.returncode == 2
    assert "Another process runs session" in done.stderr
    assert len(magy.sessions()) == 1


def test_a_session_that_runs_elsewhere_can_be_watched(magy: Magy) -> None:
    wait = json.dumps({"command": "while [ ! -e go ]; do sleep 0.02; done", "timeout": 600})
    magy.script(f"text: It begins. \ncall: bash {wait}\n---\ntext: It ends.\n")
    with magy.start("run", "hello", "--bypass") as running:
        with magy.start("sessions", "resume", magy.wait_for_turn()) as watching:
            assert watching.stdout
            seen = watching.stdout.readline()
            (magy.root / "go").touch()
            seen += watching.communicate(timeout=PATIENCE)[0]
        out, _ = running.communicate(timeout=PATIENCE)
    assert "It ends." in seen
    assert "It ends." in out
    assert magy.sessions()[0]["turns"] == 1


def test_title(magy: Magy, id: str) -> None:
    assert magy("sessions", "title", id, "  A better\n title ").returncode == 0
    assert magy.sessions()[0]["title"] == "A better title"
    assert magy("sessions", "title", id, " ").returncode == 2


def test_compact_and_summary(magy: Magy, id: str) -> None:
    magy.script("text: The \x1b]0;title\x07summary\x9b.\n")
    done = magy("sessions", "compact", id, "what matters")
    assert (done.returncode, done.stdout) == (0, "compacted · cost unknown\n")
    assert "A summary replaces" in magy("sessions", "show", id).stdout
    exported = magy("sessions", "export", id).stdout
    assert "### Compacted" in exported and "The summary<U+009B>." in exported
    assert not set("\x1b\x07\x9b") & set(exported)


def test_summary(magy: Magy, id: str) -> None:
    magy.script("text: The summary.\n")
    assert magy("sessions", "summary", id).stdout == "The summary.\n"


def test_a_session_without_an_answer_has_nothing_to_sum_up(magy: Magy) -> None:
    magy.script("error: auth times=99\n")
    magy("run", "hello")
    (session,) = magy.sessions()
    for verb in ("compact", "summary"):
        done = magy("sessions", verb, session["sessionId"])
        assert done.returncode == 2
        assert "There is nothing to" in done.stderr


def test_a_damaged_database_is_said(magy: Magy) -> None:
    magy.state.mkdir()
    (magy.state / "magy.db").write_bytes(b"not a database" * 100)
    done = magy("sessions")
    assert done.returncode == 1
    assert done.stderr.startswith("magy: ")
    assert "Traceback" not in done.stderr


def test_a_pipe_that_closes_ends_it_quietly(magy: Magy, id: str) -> None:
    command = f'magy() {{ "$MAGY_PYTHON" -m magy_server "$@"; }}; magy sessions show {id} | head -1'
    done = subprocess.run(
        ["bash", "-c", command], env=magy.env({"MAGY_PYTHON": sys.executable}), cwd=magy.root,
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("> edit\n", "")


def test_a_session_is_found_by_its_title(magy: Magy) -> None:
    magy.script("prompt:\ntext: Right.\n")
    for title in ("Mend it", "Mend it at once", "Look around"):
        magy("run", title)
    ids = {one["title"]: one["sessionId"] for one in magy.sessions()}
    assert ids["Look around"] in magy("sessions", "show", "look AR", "--json").stdout
    assert ids["Mend it"] in magy("sessions", "show", "mend it", "--json").stdout
    several = magy("sessions", "show", "mend", "--json")
    assert several.returncode == 2 and "may be" in several.stderr
    assert all(ids[title] in several.stderr for title in ("Mend it", "Mend it at once"))
    magy("run", "again", "--resume", "Look around")
    assert [one["turns"] for one in magy.sessions() if one["title"] == "Look around"] == [2]
