"""`magy` in a real terminal: tmux types, and reads the screen as a person does."""

from __future__ import annotations

import os
import termios
import time
from contextlib import suppress

import psutil
import pytest

from tests.cli.harness import Magy, Terminal, terminal
from tests.guard import SHUT
from tests.patience import PATIENCE

pytestmark = pytest.mark.needs("tmux", "bash")

GATE = """call: bash {"command": "while [ ! -e go ]; do sleep 0.02; done", "timeout": 600}
"""
EDIT = """
prompt: edit
text: I change **what it says**.
call: edit_file {"path": "app.py", "old_text": "'hello'", "new_text": "'bye'"}
---
text: The edit: {{last}}
prompt: build
call: bash {"command": "rm -rf build"}
---
text: Told: {{last}}
prompt: twice
call: edit_file {"path": "app.py", "old_text": "hello", "new_text": "bye"}
---
call: edit_file {"path": "app.py", "old_text": "bye", "new_text": "hello"}
---
text: Both done.
"""


@pytest.mark.parametrize(
    ("between", "counted"),
    [
        (" " * 250, "? Run echo ok ⟨250 spaces⟩ ; rm -rf build"),
        (r"\n" * 40, "? Run echo ok ⏎ ⟨39 empty lines⟩ ⏎ ; rm -rf build"),
    ],
)
def test_white_space_leads_nothing_of_a_command_out_of_sight(
    magy: Magy, between: str, counted: str
) -> None:
    magy.script(f'call: bash {{"command": "echo ok{between}; rm -rf build"}}\n')
    with terminal(magy) as one:
        one.run("run", "go")
        screen = one.see(counted, "[n] no  [y] once")
        assert all(line.strip(" │") for line in screen.rstrip().split("\n")), screen
        one.press("n", "Enter")
        one.see("[")


@pytest.mark.req("G022")
def test_a_question_is_answered_with_a_key(magy: Magy) -> None:
    magy.script(EDIT)
    with terminal(magy) as one:
        one.run("run", "edit")
        screen = one.see("[n] no  [y] once  [s] for this session  [p] for this project  [?] help")
        assert "I change what it says." in screen
        assert "? Edit app.py" in screen
        assert "+    return 'bye'" in screen
        assert "magy.toml: edit" in screen.replace("\n", ""), "a long path is wrapped"
        coloured = one.screen(colours=True)
        assert "\x1b[32m    +    return 'bye'" in coloured
        assert "\x1b[31m    -    return 'hello'" in coloured
        one.press("x", "Enter", "Up")
        one.insist("?", "refuse; you can give the agent a reason")
        one.press("y")
        screen = one.see("allowed", "✓ Edit app.py  +1 -1", "The edit:", "[0]")
        assert "done · 2 requests · " in screen
        assert "[y] once" not in screen, "the passing line was wiped"
        assert (magy.root / "app.py").read_text().endswith("'bye'\n")
        one.type("echo typed")
        one.see("\ntyped")


def test_a_refusal_carries_a_typed_reason(magy: Magy) -> None:
    magy.script(EDIT)
    with terminal(magy) as one:
        one.run("run", "build")
        one.see("? Run rm -rf build", "[n] no")
        one.press("n")
        one.see("why not?")
        one.type("it is sloow to make")
        screen = one.see("[0]")
        assert "refused: it is sloow to make" in screen
        assert "Told: The user refused this call. Reason: it is sloow to make" in screen
        one.run("run", "build")
        one.see("[n] no")
        one.press("n")
        one.see("why not?")
        one.press("C-d")
        screen = one.see("[0]")
        assert "    refused\n" in screen


def test_always_is_asked_once(magy: Magy) -> None:
    magy.script(EDIT)
    with terminal(magy) as one:
        one.run("run", "twice")
        one.see("a lasting yes would allow: edit", "[s] for this session")
        one.press("s")
        screen = one.see("[0]")
        assert screen.count("asked because") == 1
        assert "Both done." in screen
        one.run("run", "twice")
        one.see("[p] for this project")
        one.press("p")
        one.see("allowed for this project", "[0]")
        one.run("run", "twice")
        screen = one.see("[0]")
        assert "asked because" not in screen


def test_what_was_typed_before_the_question_answers_nothing(magy: Magy) -> None:
    (magy.state.parent / "magy.toml").write_text(
        f'[permission]\nedit = "ask"\nbash = "allow"\n\n{SHUT}', encoding="utf-8"
    )
    magy.script(EDIT.replace("text: I change", f"{GATE}---\ntext: I change"))
    with terminal(magy) as one:
        one.run("run", "edit")
        one.see("Run while")
        one.press("y", "y")
        (magy.root / "go").touch()
        one.see("[n] no")
        one.press("?")  # keys are heard in order: what came before it has been, if it is to be
        screen = one.see("refuse; you can give the agent a reason")
        assert "allowed" not in screen
        one.see("[y] once")
        one.press("y")
        one.see("[0]")


def test_ctrl_c_once_cancels_the_turn_and_it_goes_on_later(magy: Magy) -> None:
    magy.script(
        "prompt: go\ntext: I begin.\n"
        'call: bash {"command": "echo working; sleep 60", "timeout": 600}\n'
        "---\ntext: never\nprompt: more\ntext: Going on.\n"
    )
    with terminal(magy) as one:
        one.run("run", "go", "--bypass")
        one.see("Run echo working; sleep 60", "working")
        one.press("C-c")
        screen = one.see("[130]")
        assert "cancelling; press Ctrl-C again to leave at once" in screen
        assert "– Run echo working; sleep 60  cancelled" in screen
        assert "cancelled · 1 request" in screen
        one.run("run", "more", "--continue")
        assert "Going on." in one.see("[0]")
        (session,) = magy.sessions()
        assert (session["turns"], session["state"]) == (2, "idle")


def test_ctrl_c_twice_leaves_at_once(magy: Magy) -> None:
    """Also when a command does not want to end: it is killed, and the turn closed."""
    deaf = "trap '' TERM; echo deaf; while :; do sleep 0.2; done"
    magy.script(f'prompt: go\ncall: bash {{"command": "{deaf}"}}\n---\ntext: never\n')
    with terminal(magy) as one:
        one.run("run", "go", "--bypass")
        one.see("│ deaf")  # it runs, and is not only announced
        (session,) = magy.sessions()
        assert commands_of(session["sessionId"])
        one.press("C-c")
        one.see("press Ctrl-C again to leave at once")
        one.press("C-c")
        screen = one.see("[130]").replace("\n", "")
        (session,) = magy.sessions()
        assert f"magy: left; continue with `magy run --resume {session['sessionId']}" in screen
        assert not commands_of(session["sessionId"]), "nothing is left running"
        assert session["state"] == "idle"


def commands_of(session_id: str) -> list[int]:
    """The processes that calls of this session have started."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("MAGY_CALL", "").startswith(f"{session_id}:"):
                found.append(process.pid)
    return found


def test_leaving_a_model_that_does_not_answer_keeps_the_turn(magy: Magy) -> None:
    """The hang-up of a terminal, as when its window is closed."""
    magy.script("delay: 600\ntext: Here I am.\n")
    with terminal(magy) as one:
        one.run("run", "go")
        one.see("waiting for the model")
        magy.wait_for_turn()
    end = time.monotonic() + PATIENCE
    while magy("sessions", "list", "--here").stdout.count("  open") == 0:
        assert time.monotonic() < end
    (session,) = magy.sessions()
    magy.script("text: Here I am.\n")
    with terminal(magy) as one:
        one.run("sessions", "resume", session["sessionId"])
        one.see("Here I am.", "[0]")


def test_ctrl_c_at_a_question_leaves_the_terminal_as_it_was(magy: Magy) -> None:
    magy.script(EDIT)
    with terminal(magy) as one:
        for keys in ((), ("n",)):
            one.run("run", "edit")
            one.see("[y] once")
            one.press(*keys)
            one.see("why not?" if keys else "[y] once")
            one.press("C-c")
            one.see("cancelled · ", "[130]")
            one.type("stty -a | grep -o ' -\\?icanon\\| -\\?echo ' | tr -d '\\n'; read line")
            one.see("\n icanon echo")
            one.type("text")
            one.see("\n icanon echo text\n$")


def test_a_question_survives_a_stop(magy: Magy) -> None:
    """Ctrl-Z, another command, fg."""
    magy.script(EDIT)
    with terminal(magy) as one:
        one.run("run", "edit")
        one.see("[y] once")
        one.press("C-z")
        one.see("Stopped")
        one.type("fg")
        _listening(one)
        one.press("y")
        one.see("The edit:")


def _listening(one: Terminal) -> None:
    """Until it reads keys again. A shell that does lets Return be, too."""
    name = one.control("display-message", "-p", "-t", "magy", "#{pane_tty}").strip()
    end = time.monotonic() + PATIENCE
    tty = os.open(name, os.O_RDONLY | os.O_NOCTTY)
    try:
        while True:
            flags, _, _, local, *_ = termios.tcgetattr(tty)
            if flags & termios.ICRNL and not local & termios.ICANON:
                return
            assert time.monotonic() < end
            time.sleep(0.02)
    finally:
        os.close(tty)


@pytest.mark.req("E058")
def test_a_session_that_was_killed_at_a_question_asks_it_again(magy: Magy) -> None:
    magy.script(EDIT)
    with terminal(magy) as one:
        one.run("run", "edit")
        one.see("[y] once")
        one.kill()
        one.see("[137]")
        one.type("stty sane")
        (session,) = magy.sessions()
        assert session["state"] == "requires_action"
        one.run("sessions", "resume", session["sessionId"][:8])
        one.see("! Resumed", "? Edit app.py", "[y] once")
        one.press("y")
        one.see("The edit:", "[0]")
        assert (magy.root / "app.py").read_text().endswith("'bye'\n")


def test_what_is_piped_in_does_not_take_the_keys_away(magy: Magy) -> None:
    magy.script(EDIT)
    with terminal(magy) as one:
        one.type(f'echo context | {one.command("run", "edit")}; echo "[$?]"')
        one.see("[y] once")
        one.press("y")
        one.see("The edit:", "[0]")


def test_a_dumb_terminal_gets_plain_lines(magy: Magy) -> None:
    magy.script(EDIT)
    with terminal(magy, term="dumb") as one:
        one.run("run", "edit", TERM="dumb")
        one.see("[y] once")
        coloured = one.screen(colours=True)
        assert "\x1b[3" not in coloured
        one.press("y")
        screen = one.see("The edit:", "[0]")
        assert "✓ Edit app.py" in screen


def test_no_color(magy: Magy) -> None:
    magy.script(EDIT)
    with terminal(magy) as one:
        one.run("run", "edit", NO_COLOR="1")
        one.see("[y] once")
        assert "\x1b[3" not in one.screen(colours=True)
        one.press("n", "Enter")
        one.see("[0]")


def test_a_quiet_run_still_asks(magy: Magy) -> None:
    magy.script(EDIT)
    with terminal(magy) as one:
        one.run("run", "-q", "edit")
        screen = one.see("? Edit app.py", "[y] once")
        assert "I change" not in screen
        one.press("y")
        screen = one.see("The edit:", "[0]")
        assert "done ·" not in screen


def test_text_is_wrapped_to_the_width_and_follows_it(magy: Magy) -> None:
    words = "several words in a row " * 4
    magy.script(f"text: {words}\n{GATE}---\ntext: {words}\n")
    with terminal(magy, size="40x30") as one:
        one.run("run", "go", "--bypass")
        lines = one.see("several words in a row several words in\na row").split("\n")
        assert max(map(len, lines)) <= 40
        one.control("resize-window", "-t", "magy", "-x", "70", "-y", "30")
        (magy.root / "go").touch()
        one.see("[0]")
        assert any(len(line) > 60 for line in one.screen().split("\n"))


def test_delete_asks(magy: Magy) -> None:
    magy.script("text: ok\n")
    magy("run", "hello")
    (session,) = magy.sessions()
    with terminal(magy) as one:
        one.run("sessions", "delete", session["sessionId"])
        one.see(f"Delete {session['sessionId']} (hello) permanently? [y/N]")
        one.press("Enter")
        one.see("nothing was deleted", "[1]")
        one.run("sessions", "delete", session["sessionId"])
        one.see("[y/N]")
        one.type("y")
        one.see("deleted", "[0]")
    assert magy.sessions() == []


LONG = """
prompt: long
call: write_file {"path": "long.txt", "content": "LINES"}
---
text: Written.
""".replace("LINES", "".join(f"line {number}\\n" for number in range(60)))


def test_a_long_diff_is_folded_and_the_keys_fit(magy: Magy) -> None:
    magy.script(LONG)
    with terminal(magy, size="40x24") as one:
        one.run("run", "long")
        screen = one.see("[n] [y] [s] [p] [v] [?]")
        assert "  +60 -0" in screen
        assert "line 59" not in screen
        one.press("v")
        one.see("line 59", "  +60 -0", "[n] [y] [s] [p] [v] [?]")
        one.press("y")
        screen = one.see("Written.", "[0]")
        assert "\ncontinue: magy run --resume " in screen


def test_magy_alone_says_what_to_type(magy: Magy) -> None:
    with terminal(magy) as one:
        one.run()
        one.see("magy run", "magy lsp", "[0]")


@pytest.mark.req("G032")
def test_a_prompt_is_typed_and_completed(magy: Magy) -> None:
    magy.script("prompt: Explain\ntext: It greets.\nprompt: Look\ntext: One file.\n")
    for name in ("path.py", "parser.py"):
        (magy.root / name).write_text("x\n")
    with terminal(magy) as one:
        one.run("run")
        one.see("\n>")
        one.press("/", "Tab")
        one.see("  /explain   Explain this code", "  /tests     Write tests", "\n> /")
        one.press("e", "x", "Tab", " ", "@", "p", "a", "Tab")
        one.see("  path.py", "  parser.py", "\n> /explain @pa")
        one.press("r", "Tab", "Enter")
        screen = one.see("It greets.", "[0]")
        assert "> /explain @parser.py\n" in screen
        one.run("run")
        one.see("\n>")
        one.press("@", "e", "x", "p", "l", "Tab")
        one.see("\n> @spawn explore")
        one.type("Look")
        one.see("One file.", "[0]")
        one.run("run")
        one.see("\n>")
        one.press("C-c")
        one.see("[130]")
    assert "magy run PROMPT" in magy("run").stderr


STREAMED = """
prompt: table
text: |
  Two *files*, see [the list](https://example.org/list):

  | File | What |
  | --- | --- |
  | `app.py` | greets |
delay: 3
text: |
  | `bye.py` | takes its leave, in words that do not fit on a line of forty columns |

  ```python
  def greet():
      return 'hello'
  ```

  That is **all**.
"""


def test_markdown_is_rendered_also_while_it_streams(magy: Magy) -> None:
    magy.script(STREAMED)
    with terminal(magy, size="40x30") as one:
        one.run("run", "table")
        screen = one.see("greets")
        assert "[0]" not in screen, "it streams"
        assert "| File |" not in screen and "─────" in screen
        screen = one.see("That is all.", "[0]")
        assert screen.count("greets") == 1, "the draft was wiped"
        assert "Two files, see the list\n(https://example.org/list):\n" in screen
        assert "`" not in screen and "```" not in screen and "**" not in screen
        for line in ("\ndef greet():\n", "\n    return 'hello'\n"):
            assert line in screen
        words = "takes its leave, in words that do not fit on a line of forty columns"
        assert all(word in screen.split() for word in words.split()), "none is broken"
        assert "\x1b[94mdef" in one.screen(colours=True), "code is highlighted"
        one.run("run", "table", NO_COLOR="1")
        screen = one.see("That is **all**.", "[0]")
        assert "| `app.py` | greets |" in screen, "nothing else would tell code from text"


def test_an_error_is_wrapped_between_words(magy: Magy) -> None:
    with terminal(magy, size="40x24") as one:
        one.run("run", "hello", "--model", "nobody/nothing")
        screen = one.see("magy: There is no provider", "[2]")
    said = screen[screen.index("magy: ") : screen.index("[2]")].rstrip("\n").split("\n")
    assert len(said) > 2 and all(line.startswith("      ") for line in said[1:])
    assert "openrouter," in " ".join(said).split() and "moonshot," in " ".join(said).split()


@pytest.mark.parametrize("words", ["demo", "doctor"])
def test_ctrl_c_ends_every_command_without_a_traceback(magy: Magy, words: str) -> None:
    with terminal(magy) as one:
        one.run(words)
        one.see({"demo": "Ada asks", "doctor": "Looking at"}[words])
        one.press("C-c")
        assert "Traceback" not in one.see("[130]")
