"""Children in a terminal: `magy run` shows them, `magy agents` does what one does with them."""

from __future__ import annotations

import json
import shlex
import subprocess
from typing import Any

import pytest

from tests.cli.harness import Magy, terminal

SCRIPT = """
prompt: split it
text: I spawn two.
call: spawn_agent {"agent": "explore", "prompt": "look around", "task_name": "Look"}
call: spawn_agent {"agent": "general", "prompt": "write it", "task_name": "Write"}
---
call: wait_agent
---
text: Both are done.

prompt: leave it
text: I let it go.
call: spawn_agent {"agent": "explore", "prompt": "look around", "task_name": "Look"}
---
text: I do not wait.

prompt: look around
text: I looked.

prompt: write it
call: edit_file {"path": "app.py", "old_text": "'hello'", "new_text": "'bye'"}
---
text: I wrote: {{last}}

prompt: be brief
text: Brief.

prompt: hello
text: Good day.

prompt: I looked
text: So that is what came of it.
"""


@pytest.fixture
def session(magy: Magy) -> str:
    """One that can have children."""
    magy.script(SCRIPT)
    magy("run", "hello")
    id: str = magy.sessions()[0]["sessionId"]
    return id


def listed(magy: Magy, *words: str) -> list[dict[str, Any]]:
    children: list[dict[str, Any]] = json.loads(magy("agents", "list", "--json", *words).stdout)[
        "children"
    ]
    return children


@pytest.mark.req("G026")
def test_a_run_shows_its_children(magy: Magy) -> None:
    magy.script(SCRIPT)
    done = magy("run", "split it", "--bypass")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert any(line.startswith("  ✓ explore (Look) · completed · ") for line in lines)
    assert any(line.startswith("  ✓ general (Write) · completed · ") for line in lines)
    assert "tokens · cost unknown" in done.stdout
    assert "Both are done." in done.stdout
    (root,) = magy.sessions()  # children are no sessions of their own in the list
    children = listed(magy, root["sessionId"])
    assert [child["name"] for child in children] == ["Look", "Write"]
    undo = f"magy sessions undo {children[1]['sessionId']}"
    assert f"1 hunk of child agents under review: a commit (or an editor) accepts it, {undo} " in (
        done.stdout
    )
    words = shlex.split(undo)[1:]
    assert magy(*words).returncode == 0 and "'hello'" in (magy.root / "app.py").read_text()


def test_a_run_waits_for_a_child_that_its_agent_did_not_wait_for(magy: Magy) -> None:
    """Its result makes the agent go on, in a turn of its own."""
    magy.script(SCRIPT)
    done = magy("run", "leave it", "--bypass")
    assert done.returncode == 0, done.stderr
    said = done.stdout
    assert said.index("I do not wait.") < said.index("So that is what came of it.")
    assert magy.sessions()[0]["state"] == "idle"


def test_a_run_ends_at_its_limit_though_a_result_of_a_child_waits(magy: Magy) -> None:
    """What comes from below makes nobody go on whose turn was stopped: it waits for a person."""
    settings = magy.state.parent / "magy.toml"
    settings.write_text(f"{settings.read_text()}\n[limits]\nrequests = 1\n")
    magy.script(SCRIPT)
    done = magy("run", "leave it", "--bypass")
    assert done.returncode == 4 and "the limit of 1 model requests" in done.stdout
    (session,) = magy.sessions()
    assert session["state"] == "idle" and session["turns"] == 1


def test_a_run_for_programs_tells_of_children(magy: Magy) -> None:
    magy.script(SCRIPT)
    updates, result = magy.run_json("split it", "--bypass")
    told = [u["child"] for u in updates if u["sessionUpdate"] == "_magy_child"]
    last = {child["name"]: child["state"] for child in told}
    assert last == {"Look": "completed", "Write": "completed"}
    assert result["exitCode"] == 0


def test_nobody_can_be_asked_for_a_child_without_a_terminal(magy: Magy, session: str) -> None:
    done = magy("agents", "spawn", session, "write it", "--agent", "general", "--key", "one")
    assert done.returncode == 3
    assert "refused, because without a terminal there is nobody to ask" in done.stderr
    assert (magy.root / "app.py").read_text().endswith("'hello'\n")


@pytest.mark.needs("tmux", "bash")
@pytest.mark.req("G022")
def test_a_childs_question_is_asked_with_its_name_and_its_parents(magy: Magy) -> None:
    magy.script(SCRIPT)
    with terminal(magy, size="100x50") as one:
        one.run("run", "split it")
        one.see("? Spawn explore: Look", "[n] no")
        one.press("y")  # once: for the whole run, so the second one is not asked about
        screen = one.see("? general (Write), child of build (split it) asks: Edit app.py", "[n] no")
        assert "+    return 'bye'" in screen and "magy.toml:edit" in unwrapped(screen)
        one.press("y")
        screen = one.see("Both are done.", "[0]")
        assert "    allowed\n" in screen
        assert "✓ general (Write) · completed" in screen
        assert (magy.root / "app.py").read_text().endswith("'bye'\n")


@pytest.mark.req("E117", "E118", "E120")
def test_spawn_send_list(magy: Magy, session: str) -> None:
    done = magy("agents", "spawn", session, "look around", "--key", "one", "--name", "First")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("I looked.\n\ndone · 1 request · ")
    again = magy("agents", "spawn", session, "look around", "--key", "one")
    assert again.stdout == done.stdout, "the same child is watched"
    again = magy("agents", "spawn", session, "look around", "--key", "one", "--detach")
    assert again.stdout == f"{session}/one\n"
    told = magy("agents", "send", f"{session}/one", "be brief", "-q")
    assert (told.returncode, told.stdout) == (0, "Brief.\n")
    assert magy("agents", "spawn", f"{session}/one", "look around", "--key", "deep").returncode == 0
    assert [(one["sessionId"], one["turns"]) for one in listed(magy)] == [
        (f"{session}/one", 2), (f"{session}/one/deep", 1),
    ]  # fmt: skip
    shown = magy("agents").stdout.splitlines()
    assert shown[0] == f"{session}  hello"
    assert shown[1].startswith("  ✓ build (First) · completed · ")
    assert shown[2].startswith("    ✓ build (look around) · completed · ")
    assert shown[2].endswith(f"  {session}/one/deep")
    ids = magy("agents", "list", "--ids").stdout.split()
    assert ids == [f"{session}/one", f"{session}/one/deep"]


def unwrapped(screen: str) -> str:
    """Without blanks and marks: a path may be too long for a line."""
    return "".join(screen.replace("│", "").split())


def left_asking(magy: Magy, session: str, key: str = "q") -> str:
    """A child at whose question nobody is; its id."""
    child = f"{session}/{key}"
    spawned = magy("agents", "spawn", session, "write it", "--key", key, "--detach")
    assert spawned.stdout == f"{child}\n", spawned.stderr
    waited = magy("agents", "wait", child, "--timeout", "2")
    assert (waited.returncode, "  ? build (write it) · waiting\n" in waited.stdout) == (4, True)
    return child


def test_a_question_that_was_open_before_is_refused_where_nobody_is(
    magy: Magy, session: str
) -> None:
    """Whatever joins the turn."""
    for number, join in enumerate((["agents", "send"], ["run", "hello", "--resume"])):
        child = left_asking(magy, session, f"q{number}")
        words = [*join, child, *(["hello"] if "send" in join else [])]
        done = magy(*words)
        assert done.returncode == 3, done.stderr
        assert "? Edit app.py" in done.stdout and "Good day." in done.stdout
        assert done.stdout.count("! Resumed") == 1, "though two have gone on with it"
        assert "refused, because without a terminal there is nobody to ask" in done.stderr
    child = left_asking(magy, session)
    again = magy("agents", "spawn", session, "write it", "--key", "q")
    assert (again.returncode, "Not allowed. Nobody can" in again.stdout) == (3, True)
    assert (magy.root / "app.py").read_text().endswith("'hello'\n")


@pytest.mark.needs("tmux", "bash")
def test_a_question_that_was_open_before_is_asked(magy: Magy, session: str) -> None:
    child = left_asking(magy, session)
    with terminal(magy) as one:
        one.run("agents", "send", child, "hello")
        screen = one.see("? Edit app.py", "[n] no")
        assert "+    return 'bye'" in screen
        one.press("y")
        one.see("✓ Edit app.py  +1 -1", "Good day.", "[0]")
    assert (magy.root / "app.py").read_text().endswith("'bye'\n")


@pytest.mark.needs("tmux", "bash")
def test_the_whole_task_of_a_child_is_seen_before_it_is_spawned(magy: Magy) -> None:
    short = {"agent": "explore", "prompt": "look around\nrm -rf all of it", "task_name": "Look",
             "permissions": {"bash": "deny"}, "directory": "."}  # fmt: skip
    lines = "".join(f"step {number}\n" for number in range(60))
    long = {"agent": "explore", "prompt": f"{lines}{'many words ' * 40}", "task_name": "Long"}
    magy.script(
        f"prompt: short\ncall: spawn_agent {json.dumps(short)}\n---\ntext: Told: {{{{last}}}}\n\n"
        f"prompt: long\ncall: spawn_agent {json.dumps(long)}\n---\ntext: Told: {{{{last}}}}\n"
    )
    with terminal(magy, size="90x30") as one:
        one.run("run", "short")
        screen = one.see("? Spawn explore: Look", "[n] no  [y] until your next prompt  [s]")
        assert "    │ look around\n    │ rm -rf all of it\n    asked because" in screen
        assert '    │ permissions: {"bash": "deny"}\n' in screen
        assert f"directory:{magy.root}" in unwrapped(screen)
        one.press("?")
        one.see("y  allow this agent, and others, until your next prompt")
        one.press("n", "Enter")
        one.see("Told:", "[0]")
        one.run("run", "long")
        screen = one.see("? Spawn explore: Long", "more lines of it", "[v] all")
        assert "│ step 0\n" in screen and "step 59" not in screen
        one.press("v")
        screen = one.see("│ step 59", "[v] all")
        assert (screen.count("many"), screen.count("words")) == (40, 40), "to its end, wrapped"
        one.press("n", "Enter")
        one.see("Told:", "[0]")


@pytest.mark.needs("tmux", "bash")
def test_a_long_diff_of_a_child_is_folded_too(magy: Magy, session: str) -> None:
    long = json.dumps({"path": "long.txt", "content": "".join(f"line {n}\n" for n in range(60))})
    asks = json.dumps({"agent": "general", "prompt": "long", "task_name": "Long"})
    magy.script(
        f"prompt: spawn\ncall: spawn_agent {asks}\ncall: wait_agent\n---\ntext: Over.\n\n"
        f"prompt: long\ncall: write_file {long}\n---\ntext: Written.\n"
    )
    with terminal(magy, size="90x30") as one:
        one.run("run", "spawn")
        one.see("? Spawn general: Long", "    │ long\n", "[n] no")
        one.press("y")
        screen = one.see("child of build (spawn) asks: ", "more lines of the diff", "[v] all")
        assert "line 59" not in screen
        one.press("v")
        one.see("+line 59", "[v] all")
        one.press("y")
        assert "✓ Wait for Long" in one.see("Over.", "[0]")


@pytest.mark.needs("tmux", "bash")
def test_ctrl_c_while_only_children_work_cancels(magy: Magy) -> None:
    magy.script(SCRIPT.replace("text: I looked.", "delay: 600\ntext: I looked."))
    with terminal(magy) as one:
        one.run("run", "leave it", "--bypass")
        one.see("I do not wait.", "explore (Look) running")
        one.press("C-c")
        screen = one.see("[130]")
        assert "  – explore (Look) · cancelled" in screen
        assert "\ncancelled · 2 requests" in screen


def test_options_may_stand_anywhere(magy: Magy, session: str) -> None:
    for words in (["--queue", "hello"], ["--key", "k", "hello"], ["-q", "--", "hello"]):
        done = magy("agents", "send", session, *words)
        assert (done.returncode, "Good day." in done.stdout) == (0, True), done.stderr
    done = magy("agents", "send", session, "--nope", "hello")
    assert done.returncode == 2
    assert done.stderr.startswith("usage: magy agents send ")
    assert done.stderr.endswith("magy agents send: error: unrecognized arguments: --nope\n")


@pytest.mark.req("E119", "E121")
def test_wait_and_close(magy: Magy, session: str) -> None:
    for key in ("one", "two"):
        detached = magy("agents", "spawn", session, "look around", "--key", key, "--detach")
        assert detached.stdout == f"{session}/{key}\n"
    waited = magy("agents", "wait", session, "--json")
    assert waited.returncode == 0, waited.stderr
    found = json.loads(waited.stdout)
    assert [one["text"] for one in found["results"]] == ["I looked.", "I looked."]
    after = str(found["seq"])
    late = magy("agents", "wait", f"{session}/one", "--after", after, "--timeout", "0")
    assert late.returncode == 4 and "nothing was cancelled" in late.stdout
    closed = json.loads(magy("agents", "close", f"{session}/one", "--json").stdout)
    assert closed == {"previousState": "completed", "closed": [f"{session}/one"]}
    said = magy("agents", "send", f"{session}/one", "be brief")
    assert said.returncode == 2 and "is closed and accepts nothing more" in said.stderr
    assert [one["sessionId"] for one in listed(magy)] == [f"{session}/two"]
    assert len(listed(magy, "--all")) == 2


def test_what_is_wrong_is_said(magy: Magy, session: str) -> None:
    wrong: list[tuple[list[str], str]] = [
        (["spawn", "nobody", "look"], "There is no session 'nobody'"),
        (["spawn", session, "look", "--key", "12.0"], "Add a letter"),
        (["spawn", session, "look", "--agent", "nobody"], "There is no agent 'nobody'"),
        (["spawn", session, "look", "--context", "some"], "is not none, all, or a number"),
        (["send", session], "Give exactly one of"),
        (["send", session, "--data", "[1]"], "must be a JSON object"),
        (["send", session, "--data", "{"], "--data is not JSON"),
        (["wait", session, "--timeout", "-1"], "number of seconds"),
        (["wait", session, f"{session}/one"], "There is no session"),
        (["close", session], "is not a child"),
        (["list", "nobody"], "There is no session 'nobody'"),
    ]
    for words, why in wrong:
        done: subprocess.CompletedProcess[str] = magy("agents", *words)
        assert (done.returncode, why in done.stderr) == (2, True), (words, done.stderr)
    assert listed(magy) == []
