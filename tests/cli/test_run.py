"""`magy run` over pipes: what is written, what is asked of nobody, how it ends."""

from __future__ import annotations

import array
import fcntl
import os
import re
import signal
import subprocess
import termios
import time
from pathlib import Path

import pytest

from tests.cli.harness import COMMAND, Magy
from tests.patience import PATIENCE

HELLO = "prompt: hello\ntext: Good day.\n"
EDIT = """
prompt: edit
text: I change it.
call: edit_file {"path": "app.py", "old_text": "'hello'", "new_text": "'bye'"}
---
text: Done: {{last}}
"""


def test_a_prompt_is_answered(magy: Magy) -> None:
    magy.script(HELLO)
    done = magy("run", "hello")
    assert done.returncode == 0
    assert done.stdout.startswith("Good day.\n\ndone · 1 request · ")
    id = magy.sessions()[0]["sessionId"]
    assert done.stdout.endswith(f" · cost unknown · continue: magy run --resume {id}\n")
    assert done.stderr == ""
    assert "\x1b" not in done.stdout


def test_the_words_of_a_prompt_need_no_quotes(magy: Magy) -> None:
    magy.script(HELLO)
    assert magy("run", "please", "-q", "say", "hello").stdout == "Good day.\n"
    shown = magy("sessions", "show", magy.sessions()[0]["sessionId"]).stdout
    assert shown.startswith("> please say hello\n")


def test_a_session_goes_on(magy: Magy) -> None:
    magy.script("prompt: hello\ntext: One.\nprompt: more\ntext: Two.\n")
    magy("run", "hello")
    (first,) = magy.sessions()
    assert magy("run", "more", "--resume", first["sessionId"][:6], "-q").stdout == "Two.\n"
    assert magy("run", "more", "--continue", "-q").stdout == "Two.\n"
    assert [session["turns"] for session in magy.sessions()] == [3]
    assert magy("run", "more", "--fork", first["sessionId"], "-q").stdout == "Two.\n"
    assert sorted(session["turns"] for session in magy.sessions()) == [3, 4]


def test_continue_is_of_this_project(magy: Magy, tmp_path: Path) -> None:
    magy.script(HELLO)
    magy("run", "hello")
    other = tmp_path / "other"
    other.mkdir()
    done = magy("run", "hello", "--continue", cwd=other)
    assert done.returncode == 2
    assert f"There is no session of {other}" in done.stderr


def test_it_works_in_the_git_work_tree_around(magy: Magy) -> None:
    magy.script(HELLO)
    (magy.root / "src").mkdir()
    magy("run", "hello", "--cwd", "src")
    (session,) = magy.sessions()
    assert (session["root"], session["cwd"]) == (str(magy.root), str(magy.root / "src"))


def test_quiet_prints_the_final_text_alone(magy: Magy) -> None:
    magy.script('text: Wait.\ncall: read_file {"path": "app.py"}\n---\ntext: It greets.\n')
    done = magy("run", "what is it?", "--quiet")
    assert (done.stdout, done.stderr, done.returncode) == ("It greets.\n", "", 0)


def test_json_lines_are_the_updates_and_a_result(magy: Magy) -> None:
    magy.script(EDIT)
    updates, result = magy.run_json("edit", "--bypass")
    kinds = {update["sessionUpdate"] for update in updates}
    assert {"user_message", "tool_call_update", "agent_message", "usage_update"} <= kinds
    assert updates[-1]["stopReason"] == "end_turn"
    assert {key: result[key] for key in ("type", "stop", "exitCode", "requests", "refused")} == {
        "type": "result", "stop": "end_turn", "exitCode": 0, "requests": 2, "refused": [],
    }  # fmt: skip
    assert result["text"].startswith("Done: ")
    assert result["changes"] == [{"path": str(magy.root / "app.py"), "operation": "modify"}]
    assert result["cost"] == {"amount": 0.0, "currency": "USD", "unpriced": 2}
    assert result["usage"]["totalTokens"] == sum(
        update["_meta"]["magy"]["usage"]["totalTokens"]
        for update in updates
        if update["sessionUpdate"] == "usage_update"
    )
    assert "'bye'" in (magy.root / "app.py").read_text()


@pytest.mark.req("G022")
def test_without_a_terminal_a_question_is_refused_with_the_rule_that_asks(magy: Magy) -> None:
    magy.script(EDIT)
    done = magy("run", "edit")
    assert done.returncode == 3
    assert "Not allowed. Nobody can answer" in done.stdout, "the model is told"
    assert "refused, because without a terminal there is nobody to ask: " in done.stderr
    assert "magy.toml: edit" in done.stderr
    assert "--bypass" in done.stderr
    assert "'hello'" in (magy.root / "app.py").read_text()


def test_bypass_answers_questions_and_not_what_is_denied(magy: Magy) -> None:
    (magy.state.parent / "magy.toml").write_text(
        '[permission]\nedit = { "app.py" = "deny", "*" = "ask" }\n'
    )
    magy.script(EDIT + 'prompt: run\ncall: bash {"command": "rm -f old.py"}\n---\ntext: gone\n')
    done = magy("run", "edit", "--bypass")
    assert done.returncode == 0
    assert "not allowed" in done.stdout
    assert "'hello'" in (magy.root / "app.py").read_text()
    (magy.root / "old.py").touch()
    assert magy("run", "run", "--bypass", "--continue").returncode == 0
    assert not (magy.root / "old.py").exists()
    assert magy("run", "run", "--continue").returncode == 3, "it held for that run alone"


@pytest.mark.parametrize("form", [["-q"], ["--json"], []])
def test_what_is_piped_in_is_attached(magy: Magy, form: list[str]) -> None:
    magy.script(HELLO)
    magy("run", "hello", *form, input="some\n```\noutput\n")
    shown = magy("sessions", "export", magy.sessions()[0]["sessionId"]).stdout
    assert "Attached: `stdin:`\n\n````\nsome\n```\noutput\n````" in shown


def test_the_prompt_may_come_from_a_pipe(magy: Magy) -> None:
    magy.script(HELLO)
    assert magy("run", "-", "-q", input="please say hello\n").stdout == "Good day.\n"


@pytest.mark.parametrize(
    ("words", "given", "said"),
    [
        (["-"], "", "but standard input is empty"),
        ([" "], None, "The prompt is empty"),
        (["hello"], "a\0b", "is not text"),
        (["hello"], "x" * 1_000_001, "longer than 1,000,000 bytes"),
        (["hello", "--resume", "nope"], None, "There is no session 'nope'"),
        (["hello", "--agent", "nope"], None, "There is no agent 'nope'"),
        (["hello", "--model", "no/pe"], None, "There is no provider for the model 'no/pe'"),
        (["hello", "--cwd", "nope"], None, "is not a directory"),
        (["hello", "--continue"], None, "There is no session of"),
    ],
)
def test_what_cannot_be_meant_is_said(
    magy: Magy, words: list[str], given: str | None, said: str
) -> None:
    magy.script(HELLO)
    done = magy("run", *words, input=given or "")
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""
    assert magy.sessions() == [], "no session was begun for it"


def test_text_that_is_not_utf_8_is_read_all_the_same(magy: Magy) -> None:
    magy.script("text: ok\n")
    words = [*(os.fsencode(word) for word in COMMAND), b"run", b"-q", b"caf\xe9"]
    done = subprocess.run(words, input=b"\xff\xfe text", capture_output=True, env=magy.env(),
                          cwd=magy.root, timeout=PATIENCE, check=False)  # fmt: skip
    assert (done.stdout, done.returncode) == (b"ok\n", 0)


def test_wrong_configuration_is_said_with_file_and_key(magy: Magy) -> None:
    magy.script(HELLO)
    (magy.state.parent / "magy.toml").write_text("[limits]\nrequest = 1\n")
    done = magy("run", "hello")
    assert done.returncode == 2
    assert "magy.toml: unknown key 'limits.request'; did you mean 'requests'?" in done.stderr


def test_without_a_model_it_says_what_to_set(magy: Magy) -> None:
    done = magy("run", "hello")
    assert done.returncode == 2
    assert "ANTHROPIC_API_KEY" in done.stderr
    assert magy.sessions() == []


@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        ("error: auth times=9\n", 1, "✗ "),
        ("text: x\nstop: refusal\n", 1, "the model refused"),
        ("text: x\nstop: max_tokens\n", 4, "stopped: the reply became too long"),
        ("text: x\nstop: stray_call\n", 6, "The model wrote a tool call as text."),
        ('call: read_file {"path": "app.py"}\n---\n' * 9 + "text: x\n", 4, "stopped: a loop"),
    ],
)
def test_the_exit_code_is_honest(magy: Magy, script: str, code: int, said: str) -> None:
    magy.script(script)
    done = magy("run", "hello")
    assert done.returncode == code
    assert said in done.stdout


@pytest.mark.req("G024")
def test_at_a_limit_the_partial_work_is_handed_back(magy: Magy) -> None:
    (magy.state.parent / "magy.toml").write_text("[limits]\nrequests = 1\n")
    magy.script('call: read_file {"path": "app.py"}\n---\ntext: never\n')
    done = magy("run", "hello")
    assert done.returncode == 4
    assert "the limit of 1 model requests" in done.stdout
    assert "- Read app.py: completed" in done.stdout


def test_a_retry_is_shown(magy: Magy) -> None:
    magy.script("error: overloaded times=2 retry_after=0.1\ntext: At last.\n")
    done = magy("run", "hello")
    assert done.returncode == 0
    first, second = (line for line in done.stdout.splitlines() if "Trying again in 0 s" in line)
    assert len(first) > len(second) and second.startswith("! Trying again"), "why is said once"
    assert "At last." in done.stdout


def test_an_untrusted_project_is_not_obeyed_in_silence(magy: Magy) -> None:
    magy.script(HELLO)
    (magy.root / "magy.toml").write_text('default_agent = "plan"\n')
    done = magy("run", "hello", "-q")
    assert (done.stdout, done.returncode) == ("Good day.\n", 0)
    assert "is not trusted, so these settings are ignored" in done.stderr
    assert "magy config trust" in done.stderr


# --- output -------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_when_the_reader_goes_away_it_ends_quietly(magy: Magy, form: list[str]) -> None:
    magy.script(  # a line is written when the next one begins
        "text: |\n  first\n  line\ndelay: 1\ntext: |\n\n  second\n  line\ndelay: 600\ntext: third\n"
    )
    with magy.start("run", "hello", *form) as running:
        assert running.stdout and running.stderr
        running.stdout.readline()
        running.stdout.close()
        errors = running.stderr.read()
        assert running.wait(PATIENCE) == 141
    assert errors == ""
    (session,) = magy.sessions()
    assert session["state"] == "idle", "the turn does not go on for nobody"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_disk_is_said(magy: Magy) -> None:
    magy.script(HELLO)
    with open("/dev/full", "w") as full:
        done = magy("run", "hello", stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert "The output cannot be written: No space left on device" in done.stderr


PLAIN = ("--version", "--help", "run --help", "help", "doctor", "sessions", "config", "demo --fast")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize("words", PLAIN)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_said_by_what_only_prints(magy: Magy, words: str, unbuffered: str) -> None:
    env = {**magy.env(), "PYTHONUNBUFFERED": unbuffered}
    with open("/dev/full", "w") as full:
        done = subprocess.run([*COMMAND, *words.split()], env=env, cwd=magy.root, text=True,
                              stdout=full, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                              timeout=PATIENCE, check=False)  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "magy: The output cannot be written: No space left on device.\n"


@pytest.mark.parametrize("words", ["run hello", "completion bash", *PLAIN])
def test_a_closed_output_is_said_and_the_database_is_safe(magy: Magy, words: str) -> None:
    magy.script(HELLO)
    command = f"{' '.join(COMMAND)} {words} >&-"
    done = subprocess.run(["sh", "-c", command], env=magy.env(), cwd=magy.root, text=True,
                          capture_output=True, timeout=PATIENCE, check=False)  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "magy: Standard output is closed; Magy cannot write its output.\n"
    assert magy("run", "hello", "-q").stdout == "Good day.\n"


def test_all_streams_may_be_closed(magy: Magy) -> None:
    magy.script('call: bash {"command": "echo into the void; echo >&2 too"}\n---\ntext: ok\n')
    command = f"{' '.join(COMMAND)} run -q --bypass hello 0<&- 2>&-"
    done = subprocess.run(["sh", "-c", command], env=magy.env(), cwd=magy.root, text=True,
                          capture_output=True, timeout=PATIENCE, check=False)  # fmt: skip
    assert (done.stdout, done.returncode) == ("ok\n", 0)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_another_encoding_gets_what_it_can_hold(magy: Magy, encoding: str) -> None:
    magy.script('text: Grüße ✓\ncall: read_file {"path": "nope"}\n---\ntext: x\n')
    done = subprocess.run(
        [*COMMAND, "run", "hello"], env=magy.env({"PYTHONIOENCODING": encoding}), cwd=magy.root,
        stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    text = done.stdout.decode(encoding)
    assert done.returncode == 0
    assert ("Grüße" if encoding == "latin-1" else "Gr\\xfc\\xdfe") in text
    assert "\\u2713" in text
    assert "x Read nope" in text or "x read_file" in text


def test_hostile_text_cannot_steer_a_terminal(magy: Magy) -> None:
    (magy.root / "evil.txt").write_bytes(b"\x1b]0;owned\x07\x1b[2J\xe2\x80\xae")
    magy.script(
        'text: a\x1b[31mb\x9b\ncall: bash {"command": "cat evil.txt"}\n---\ntext: {{last}}\n'
    )
    for form in ([], ["-q"], ["--json"]):
        done = magy("run", "hello", "--bypass", *form)
        assert not set("\x1b\x07\x9b\u202e") & set(done.stdout)
        assert "ab<U+009B>" in done.stdout or form


# --- interrupts ---------------------------------------------------------------------------------


def test_interrupt_cancels_the_turn(magy: Magy) -> None:
    magy.script("text: begun\ndelay: 600\ntext: never\n")
    with magy.start("run", "hello") as running:
        magy.wait_for_turn()
        running.send_signal(signal.SIGINT)
        out, _ = running.communicate(timeout=PATIENCE)
    assert running.returncode == 130
    assert "cancelling; press Ctrl-C again to leave at once" in out
    assert re.search(r"^cancelled · 1 request · tokens unknown · ", out, re.MULTILINE)
    assert magy.sessions()[0]["state"] == "idle"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_being_ended_leaves_the_turn_to_be_resumed(magy: Magy, number: signal.Signals) -> None:
    magy.script("delay: 600\ntext: Good day.\n")
    with magy.start("run", "hello") as running:
        id = magy.wait_for_turn()
        running.send_signal(number)
        _, errors = running.communicate(timeout=PATIENCE)
    assert running.returncode == 128 + number
    assert f"left; continue with `magy sessions resume {id}`." in errors
    assert magy.sessions()[0]["state"] == "running"
    magy.script("text: Good day.\n")
    assert "Good day." in magy("sessions", "resume", id).stdout


@pytest.mark.req("G020")
def test_killed_in_the_middle_it_is_resumed(magy: Magy) -> None:
    """A command was running: what became of it is said, and nothing is done twice."""
    magy.script(
        "prompt: hello\n"
        'call: bash {"command": "echo once >> log; sleep 60", "timeout": 100}\n'
        "---\ntext: I was told {{last}}\n"
    )
    with magy.start("run", "hello", "--bypass") as running:
        end = time.monotonic() + PATIENCE
        while not (magy.root / "log").exists():
            assert time.monotonic() < end, "the command did not begin"
            time.sleep(0.05)
        running.kill()
        running.communicate(timeout=PATIENCE)
    (session,) = magy.sessions()
    assert session["state"] == "running"
    done = magy("sessions", "resume", session["sessionId"])
    assert done.returncode == 0, done.stderr
    assert "Resumed: The session was interrupted" in done.stdout
    assert "outcome unknown" in done.stdout or "unknown whether it took effect" in done.stdout
    assert (magy.root / "log").read_text() == "once\n"
    again = magy("sessions", "resume", session["sessionId"])
    assert (again.returncode, again.stdout) == (0, "")
    assert "there is nothing to resume" in again.stderr


def full(running: subprocess.Popen[str]) -> None:
    """Waits until the pipe takes no more: what is in it has stopped growing."""
    assert running.stdout
    waiting, held = array.array("i", [0]), -1
    end = time.monotonic() + PATIENCE
    while not (waiting[0] and waiting[0] == held):
        assert time.monotonic() < end, "the pipe was never full"
        held = waiting[0]
        time.sleep(0.3)
        fcntl.ioctl(running.stdout, termios.FIONREAD, waiting)


def test_a_slow_reader_does_not_make_it_deaf(magy: Magy) -> None:
    """The pipe is full and nobody reads: Ctrl-C twice still leaves."""
    magy.script(f"text: {'long words ' * 40_000}\ndelay: 600\n")
    with magy.start("run", "hello") as running:
        magy.wait_for_turn()
        full(running)
        running.send_signal(signal.SIGINT)
        time.sleep(0.3)
        running.send_signal(signal.SIGINT)
        assert running.wait(PATIENCE) == 130
        assert running.stdout
        running.stdout.close()


def test_without_an_editor_there_is_none_of_its_knowledge(magy: Magy) -> None:
    magy.script('prompt: hello\ncall: emacs_eval {"code": "1"}\n---\ntext: "{{last}}"\n')
    said = magy("run", "hello").stdout
    assert "There is no tool 'emacs_eval'" in said
    assert "find_definition" not in said and "list_symbols" not in said
