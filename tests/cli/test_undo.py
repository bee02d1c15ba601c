"""`magy sessions undo` and `redo`."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.cli.harness import Magy

SCRIPT = """
prompt: first
call: edit_file {"path": "app.py", "old_text": "'hello'", "new_text": "'hi'"}
---
text: First done.
prompt: second
call: edit_file {"path": "app.py", "old_text": "'hi'", "new_text": "'good day'"}
---
call: write_file {"path": "new/file.py", "content": "new\\n"}
---
text: Second done.
"""
START = "def greet():\n    return 'hello'\n"


@pytest.fixture
def id(magy: Magy) -> str:
    """A session with two turns that changed files."""
    magy.script(SCRIPT)
    assert magy("run", "the first", "--bypass").returncode == 0
    assert magy("run", "the second\nprompt", "--continue", "--bypass").returncode == 0
    found: str = magy.sessions()[0]["sessionId"]
    return found


@pytest.mark.req("G014")
def test_undo_and_redo(magy: Magy, id: str) -> None:
    app, new = magy.root / "app.py", magy.root / "new" / "file.py"
    after = app.read_text()
    app.write_text("# mine\n" + after)
    shown = magy("sessions", "undo", id[:7], "--dry-run").stdout
    assert "app.py would change +1 -1" in shown and "+    return 'hi'" in shown
    assert "new/file.py would be removed +0 -1" in shown and "would go back to before" in shown
    assert app.read_text() == "# mine\n" + after and new.exists()
    done = magy("sessions", "undo", id)
    assert done.returncode == 0 and "app.py changed +1 -1" in done.stdout
    assert 'conversation: back to before "the second"\n' in done.stdout
    assert done.stdout.endswith("your prompt there was:\nthe second\nprompt\n")
    assert app.read_text() == "# mine\n" + START.replace("hello", "hi") and not new.exists()
    magy("sessions", "undo", id)
    assert app.read_text() == "# mine\n" + START
    nothing = magy("sessions", "undo", id)
    assert nothing.returncode == 2 and "everything is already undone" in nothing.stderr
    magy("sessions", "redo", id)
    assert app.read_text() == "# mine\n" + START.replace("hello", "hi")
    again = magy("sessions", "redo", id)
    assert again.stdout.endswith("conversation: as it was again\n")
    assert app.read_text() == "# mine\n" + after and new.read_text() == "new\n"
    nothing = magy("sessions", "redo", id)
    assert nothing.returncode == 2 and "nothing to redo" in nothing.stderr
    told = magy("sessions", "export", id).stdout
    assert told.count("> **Taken back:**") == told.count("> **Brought back:**") == 2
    assert "app.py, the conversation" in told
    seen = magy("sessions", "show", id).stdout.splitlines()
    assert [line for line in seen if line.startswith(("! undone", "! redone"))] == [
        '! undone: 2 files and the conversation, back to before "the second"',
        '! undone: 1 file and the conversation, back to before "the first"',
        "! redone: 1 file and the conversation",
        "! redone: 2 files and the conversation",
    ]
    audit = "".join(file.read_text() for file in magy.state.glob("audit/*.jsonl"))
    restores = [line for line in map(json.loads, audit.splitlines()) if line["event"] == "restored"]
    assert len(restores) == 4 and str(app) in restores[0]["changed"]


MOVE = (
    "*** Begin Patch", "*** Update File: app.py", "*** Move to: polite.py", "@@",
    "-    return 'hello'", "+    return 'hi'", "*** End Patch",
)  # fmt: skip
MOVED = f"""
prompt: away
call: apply_patch {json.dumps({"patch": chr(10).join(MOVE)})}
---
text: It is away.
"""


def test_a_renamed_file_is_said_once(magy: Magy) -> None:
    with (magy.state.parent / "magy.toml").open("a") as settings:
        settings.write('\n[edits]\nstyle = "patch"\n')
    magy.script(MOVED)
    assert magy("run", "put it away", "--bypass").returncode == 0
    id = magy.sessions()[0]["sessionId"]
    shown = magy("sessions", "undo", id, "--dry-run").stdout
    assert "polite.py would be renamed to app.py +1 -1\n" in shown
    assert "rename from polite.py" in shown and "-    return 'hi'" in shown
    assert "removed" not in shown and "created" not in shown
    assert "polite.py renamed to app.py +1 -1\n" in magy("sessions", "undo", id).stdout
    assert (magy.root / "app.py").read_text() == START and not (magy.root / "polite.py").exists()
    assert "! undone: 1 file and the conversation" in magy("sessions", "show", id).stdout


def test_a_run_says_what_waits_and_how_to_decide(magy: Magy) -> None:
    """A commit accepts; the command that it names undoes the turn."""
    magy.script(SCRIPT)
    lines = magy("run", "the first", "--bypass").stdout.splitlines()
    undo = re.search(r"^1 hunk under review: .* magy (sessions undo \w+) undoes", lines[-2])
    assert undo and lines[-1].startswith("done · ")
    assert "under review" not in magy("run", "the first", "--bypass", "-q").stdout
    assert magy(*undo[1].split()).returncode == 0
    assert (magy.root / "app.py").read_text() == START


def test_turns_are_listed(magy: Magy, id: str) -> None:
    first, one, second, two, three = magy("sessions", "undo", id, "--list").stdout.splitlines()
    assert first.endswith("  the first") and second.endswith("  the second")
    assert (one, two, three) == ("    app.py +1 -1", "    app.py +1 -1", "    new/file.py +1 -0")
    turn = first.split()[0]
    done = magy("sessions", "undo", id, "--turn", turn, "--files")
    assert done.returncode == 0 and "conversation" not in done.stdout
    assert (magy.root / "app.py").read_text() == START
    assert magy("sessions", "undo", id, "--list").stdout.count("  undone\n") == 3
    listed = json.loads(magy("sessions", "undo", id, "--list", "--json").stdout)["checkpoints"]
    assert [point["state"] for point in listed] == ["undone", "undone"]
    assert listed[0]["turnId"] == turn and listed[0]["restoreId"] == listed[1]["restoreId"]
    shown = magy("sessions", "show", id).stdout
    assert "The user undid your changes to these files: app.py, new/file.py." in shown


def test_of_a_turn_each_file_is_listed_as_it_is(magy: Magy, id: str) -> None:
    """One of two could not go back; a turn that only said something is not said to have no end."""
    (magy.root / "app.py").write_text(START.replace("hello", "something else"))
    assert magy("sessions", "undo", id, "--files").returncode == 1
    app, new = magy("sessions", "undo", id, "--list").stdout.splitlines()[3:]
    assert (app, new) == ("    app.py +1 -1", "    new/file.py +1 -0  undone")
    magy("run", "chat", "--continue")
    magy("sessions", "undo", id, "--conversation")
    last = magy("sessions", "undo", id, "--list").stdout.splitlines()[-1]
    assert last == "    changed no files; its messages are undone"


def test_only_the_conversation(magy: Magy, id: str) -> None:
    after = (magy.root / "app.py").read_text()
    done = json.loads(magy("sessions", "undo", id, "--conversation", "--json").stdout)
    assert done["prompt"] == "the second\nprompt" and done["files"] == []
    assert (magy.root / "app.py").read_text() == after
    back = json.loads(magy("sessions", "redo", id, "--dry-run", "--json").stdout)
    assert back["conversation"] and back["undoes"] == done["restoreId"]


def test_a_file_that_is_left_alone_is_an_error(magy: Magy, id: str) -> None:
    app = magy.root / "app.py"
    app.write_text(START.replace("hello", "something else"))
    for words in (["--dry-run"], []):
        done = magy("sessions", "undo", id, *words)
        assert done.returncode == 1
        assert "app.py left alone: The same lines were changed later" in done.stdout
    assert app.read_text() == START.replace("hello", "something else")
    assert not (magy.root / "new" / "file.py").exists()


def test_the_command_line_says_what_it_does_not_know(magy: Magy, id: str) -> None:
    assert "no turn 'x'" in magy("sessions", "undo", id, "--turn", "x").stderr
    both = magy("sessions", "undo", id, "--files", "--conversation")
    assert both.returncode == 2 and "not allowed with" in both.stderr


@pytest.mark.req("G014")
def test_git_is_left_as_it_is(magy: Magy, tmp_path: Path) -> None:
    """Untracked and ignored files go back, too; index, stash and history stay."""

    def git(*words: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        return subprocess.run(["git", *who, *words], cwd=magy.root, check=True,
                              capture_output=True, text=True).stdout  # fmt: skip

    (magy.root / ".git").rmdir()
    git("init", "-q", "--template=")
    (magy.root / ".gitignore").write_text("new/\n")
    git("add", ".")
    git("commit", "-qm", "one")
    (magy.root / "staged.py").write_text("staged\n")
    git("add", "staged.py")
    (magy.root / ".gitignore").write_text("new/\nstashed\n")
    git("stash", "push", "-q", ".gitignore")
    magy.script(SCRIPT)
    for prompt in ("first", "second"):
        magy("run", prompt, "--bypass", *(["--continue"] if prompt == "second" else []))
    session = magy.sessions()[0]["sessionId"]
    git("add", "app.py")
    about = [git("ls-files", "-s"), git("stash", "list"), git("log", "--format=%H", "--all")]
    for verb in ("undo", "redo", "undo", "undo"):
        assert magy("sessions", verb, session).returncode == 0
        now = [git("ls-files", "-s"), git("stash", "list"), git("log", "--format=%H", "--all")]
        assert now == about
    assert (magy.root / "app.py").read_text() == START
    assert not (magy.root / "new" / "file.py").exists()


FAMILY = """
prompt: the parent
call: spawn_agent {"prompt": "the child", "agent": "explore"}
---
text: It is at work.
---
text: It is done.

prompt: the child
text: Looked.
"""


def test_a_turn_that_no_prompt_began_is_listed_as_such(magy: Magy) -> None:
    magy.script(FAMILY)
    done = magy("run", "the parent", "--bypass").stdout
    found = re.search(r"--resume (\w+)", done)
    assert found
    one, two = magy("sessions", "undo", found[1], "--list").stdout.splitlines()
    assert one.endswith("  the parent")
    assert two.endswith("  (no prompt: the agent continued by itself)")
