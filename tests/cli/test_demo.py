"""`magy demo`: what it says is said to the end."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from magy_server.demo.screen import Screen
from tests.cli.harness import COMMAND, Magy
from tests.patience import PATIENCE


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What `magy demo --fast` prints."""
    place = tmp_path_factory.mktemp("demo")
    done = Magy(place, place / "state")("demo", "--fast", env={"NO_COLOR": "1"})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.needs("git")
def test_the_fast_demo_cuts_nothing_off(shown: str) -> None:
    for sentence in (
        "thinks An empty list means a division by zero. I should look at the code before I say",
        "magy I'll look at `average` first.",
        "magy Understood, `build` stays. Here is the fix.",
        "magy Now the tests.",
        "your unsaved comment there is untouched.",
    ):
        assert " ".join(shown.split()).count(sentence) == 1, sentence
    assert "FINAL RULING: REJECTED" in shown
    assert "│ Ran 2 tests in" in shown
    assert "│ OK\n    completed" in shown


@pytest.mark.needs("git")
@pytest.mark.parametrize("times", [1, 20])
def test_a_demo_that_is_left_takes_its_server_along(magy: Magy, tmp_path: Path, times: int) -> None:
    place = tmp_path / "scratch"
    place.mkdir()
    own = magy.env({"PATH": os.environ["PATH"], "TMPDIR": str(place), "PYTHONUNBUFFERED": "1"})
    demo = subprocess.Popen(
        [*COMMAND, "demo"], env=own, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with demo:
        assert demo.stdout and any("Ada asks" in line for line in demo.stdout)
        servers = psutil.Process(demo.pid).children()
        for _ in range(times):
            demo.send_signal(signal.SIGINT)  # as by `kill`: the server is not signalled
            time.sleep(0.01)
        _, said = demo.communicate(timeout=PATIENCE)
        left = [server for server in servers if server.is_running()]
    assert (demo.returncode, said) == (130, "")
    assert len(servers) == 1 and not left
    assert not list(place.iterdir())


@pytest.mark.needs("git")
def test_a_demo_that_nobody_reads_any_more_ends(magy: Magy, tmp_path: Path) -> None:
    place = tmp_path / "scratch"
    place.mkdir()
    own = magy.env({"PATH": os.environ["PATH"], "TMPDIR": str(place)})
    demo = subprocess.Popen(
        [*COMMAND, "demo"], env=own, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with demo:
        assert demo.stdout and demo.stderr and any("Ada asks" in line for line in demo.stdout)
        demo.stdout.close()
        said = demo.stderr.read()
        assert (demo.wait(PATIENCE), said) == (141, "")
    assert not list(place.iterdir())


@pytest.mark.needs("git")
def test_the_demo_divides_lines_between_words(magy: Magy) -> None:
    narrow = {"NO_COLOR": "1", "PATH": os.environ["PATH"], "COLUMNS": "60"}
    done = magy("demo", "--fast", env=narrow)
    assert done.returncode == 0, done.stderr
    assert not [line for line in done.stdout.splitlines() if len(line) > 60]
    assert (
        "  magy  Done. `average([])` is now `0.0`, and both tests\n        pass.\n" in done.stdout
    )
    assert "\n    ┃  task  Write a unittest of total(), and run it with\n    ┃" in done.stdout


@pytest.mark.needs("git")
@pytest.mark.req("G010", "G011")
def test_the_demo_reviews_while_the_agent_works(shown: str) -> None:
    before, _, after = shown.partition("Ada accepts the hunk at line 2\n")
    assert "at line 6\n" in before
    assert "+    return round(sum(prices), 2)" in before
    for sentence in (
        "The hunk at line 6 is still pending, now at line 8.",
        "Ada rejects the hunk at line 13, saying: Do not round here",
        "Reason: Do not round here: who shows a sum rounds it.",
        "magy  Understood: `total()` stays exact, and says so.\n",
        "Ada's own lines are still there, the hunk that she rejected is not",
    ):
        assert " ".join(sentence.split()) in " ".join(after.split()), sentence
    assert "+CURRENCY = 'EUR'\n" in after
    told = after.index("Told the agent: The user rejected")
    assert after.index("Ada rejects the hunk") < told, "it is done before it is told"


@pytest.mark.needs("git")
@pytest.mark.req("E117")
def test_the_demo_has_a_child_that_is_watched_steered_and_asked_about(shown: str) -> None:
    act = shown.partition("Ada gives a task to a child agent")[2].partition("What git shows")[0]
    for sentence in (
        "→ Spawn general: Test total()",
        "→ Wait for Test total()",
        "┃  task  Write a unittest of total()",
        "┃  ? Run python3 -m unittest discover -q tests",
        "┃    Ada: allowed for this session",
        "┃  Ada   Take 0.1 and 0.2, please",
        "┃    │ Ran 2 tests in",
        "┃  helper  0.1 and 0.2 it is.",
        "┃    +        self.assertAlmostEqual(total([0.1, 0.2]), 0.3)",
        "[allow: granted for this",
        "┃    │ Ran 3 tests in",
        "┃  helper  `tests/test_total.py` adds 0.1 and 0.2.",
        "\n    completed\n  magy  `total()` has a test now, and all three pass.",
        "Ada accepts the change",
    ):
        before, found, act = act.partition(sentence)
        assert found, f"{sentence!r} does not come after what comes before it: {before}"


@pytest.mark.needs("git")
@pytest.mark.req("C062", "C061", "C019")
def test_the_demo_has_a_team_whose_results_contradict_each_other(shown: str) -> None:
    act = shown.partition("Ada has a team look something up")[2].partition("judged by three")[0]
    begun, ended = act.index("▸ notes (explore): running"), act.index("✓ code (explore): completed")
    assert begun < ended < act.index("▸ list (explore): running"), "side by side, then the third"
    words = " ".join(act.split())
    for sentence in (
        "? Run 3 tasks: code, notes, list Ada: allowed once",
        "4791 tokens",
        'code and notes contradict each other: "Prices include 20 % VAT." and "Prices include 19 % '
        'VAT.". list was to settle it.',
        "The rate is open: the code says 20 %, the notes 19 %.",
    ):
        before, found, words = words.partition(sentence)
        assert found, f"{sentence!r} does not come after what comes before it: {before}"


def test_a_margin_stands_before_each_line(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(pause=0, margin="|", who="helper")
    for text in ("One\nand ", "two"):
        said = {"type": "text", "text": text}
        screen.update({"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": said})
    whole = [{"type": "text", "text": "One\nand two\n"}]
    screen.update({"sessionUpdate": "agent_message", "messageId": "m", "content": whole})
    assert capsys.readouterr().out == "|  helper  One\n|          and two\n"


def test_what_the_agent_was_told_is_broken_between_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    Screen(pause=0).aside(
        "Told the agent: still pending in the file:\n- shop/prices.py: 3 hunks of it, more"
    )
    assert capsys.readouterr().out == (
        "  (Told the agent: still pending in the\n   file:\n"
        "   - shop/prices.py: 3 hunks of it,\n     more)\n"
    )


def test_only_the_rest_of_a_message_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(pause=0)
    begun = {"type": "text", "text": "One "}
    screen.update({"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": begun})
    whole = [{"type": "text", "text": "One and "}, {"type": "text", "text": "two.\n"}]
    screen.update({"sessionUpdate": "agent_message", "messageId": "m", "content": whole})
    assert capsys.readouterr().out == "  magy  One and two.\n"


@pytest.mark.parametrize("streamed", ["", "----\n", "----\nOK", "----\nOK\n"])
def test_the_output_of_a_command_is_shown_once(
    capsys: pytest.CaptureFixture[str], streamed: str
) -> None:
    screen = Screen(pause=0)
    call = {"sessionUpdate": "tool_call_update", "toolCallId": "c"}
    screen.update({**call, "title": "Run it", "kind": "execute"})
    if streamed:
        piece = {"type": "content", "content": {"type": "text", "text": streamed}}
        screen.update({**call, "sessionUpdate": "tool_call_content_chunk", "content": piece})
    text = {"type": "text", "text": "[exit code 0, 0.1 s]\n----\nOK\n"}
    about = {"magy": {"status": "completed"}}
    content = [{"type": "content", "content": text}]
    screen.update({**call, "status": "completed", "content": content, "_meta": about})
    out = capsys.readouterr().out
    assert out.count("│ ----\n") == out.count("│ OK\n") == 1
