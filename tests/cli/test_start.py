"""The command line answers at once: nothing is loaded that only the work needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from magy_server.cli.exit_codes import EXIT_CODES, PIPE
from magy_server.cli.overview import overview
from magy_server.cli.parser import COMMANDS, build
from tests.patience import PATIENCE
from tests.test_startup import ENGINE_ROOM, FRAMEWORKS, SDKS, imported


@pytest.mark.parametrize(
    "words",
    ["--help", "run --help", "sessions --help", "sessions export --help", "config --help", "run",
     "completion bash"],
)  # fmt: skip
def test_help_and_completion_load_nothing(words: str) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "magy_server", *words.split()]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert run.returncode == (2 if words == "run" else 0)
    loaded = imported(run.stderr)
    assert "argparse" in loaded
    unwanted = SDKS | ENGINE_ROOM | FRAMEWORKS | {"rich"}
    makes_completion = words == "completion bash"
    assert not loaded & (unwanted - FRAMEWORKS if makes_completion else unwanted | {"shtab"})


def test_magy_help_and_magy_alone_in_a_terminal_say_what_one_can_do() -> None:
    """Alone without a terminal it is the server of an editor."""
    command = [sys.executable, "-m", "magy_server"]
    helped = subprocess.run(
        [*command, "help"], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    assert 'magy run "' in helped.stdout and "magy doctor" in helped.stdout
    ours, theirs = os.openpty()
    alone = subprocess.run(
        command, stdin=theirs, capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    os.close(ours), os.close(theirs)
    assert alone.stdout == helped.stdout


def test_what_was_piped_into_magy_alone_gets_a_sentence_and_an_editor_none() -> None:
    command = [sys.executable, "-m", "magy_server"]
    said = {}
    for words in ((), ("lsp",)):
        done = subprocess.run(
            [*command, *words], input="hi\n", capture_output=True, text=True, timeout=PATIENCE,
            check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (1, "")
        said[words] = done.stderr
    assert "the server of an editor" in said[()] and "`magy help`" in said[()]
    assert said[("lsp",)] == ""


def test_magy_help_tells_of_a_command_what_its_own_help_does() -> None:
    command = [sys.executable, "-m", "magy_server"]
    told = [
        subprocess.run(
            [*command, *words], capture_output=True, text=True, timeout=PATIENCE, check=True
        ).stdout
        for words in (("help", "sessions", "undo"), ("sessions", "undo", "--help"))
    ]
    assert told[0].startswith("usage: magy sessions undo ") and told[0] == told[1]


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", ["--version", "--help", "help", "help run"])
def test_who_stops_reading_ends_it_quietly(words: str, unbuffered: str) -> None:
    """As `magy help | head -1` does."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "magy_server", *words.split()], stdout=writing,
        stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )  # fmt: skip
    os.close(writing)
    assert (done.returncode, done.stderr) == (PIPE, "")


def test_help_tells_the_exit_codes() -> None:
    command = [sys.executable, "-m", "magy_server", "run", "--help"]
    text = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, check=True,
        env={**os.environ, "COLUMNS": "60"},
    ).stdout  # fmt: skip
    assert not [line for line in text.splitlines() if len(line) > 60]
    for code, meaning in EXIT_CODES:
        assert f" {code} {meaning} " in f"{' '.join(text.split())} "


def test_the_overview_fits_every_terminal_and_divides_no_word() -> None:
    for width in (40, 60, 80, 120):
        text = overview(width)
        assert not [line for line in text.splitlines() if len(line) > width]
        assert "watch an agent do a whole task; no key needed" in " ".join(text.split())


INTERRUPTED = """
import os, signal

class Named:
    def __set_name__(self, owner, name):
        os.kill(os.getpid(), signal.SIGINT)

class Owner:
    named = Named()
"""
"""A module at whose loading somebody presses Ctrl-C: Python raises RuntimeError for that."""


def test_ctrl_c_while_modules_are_loaded_ends_it_silently(tmp_path: Path) -> None:
    (tmp_path / "asyncio.py").write_text(INTERRUPTED)
    command = [sys.executable, "-m", "magy_server", "sessions", "list"]
    run = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "MAGY_STATE_DIR": str(tmp_path)},
    )  # fmt: skip
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "")


@pytest.mark.parametrize(
    "words",
    [
        "sessions --root /x list", "sessions list --root /x", "sessions --root /x",
        "permissions --root /x list", "permissions --root /x withdraw --all",
        "permissions withdraw --root /x --all", "agents --root /x list", "run --root /x hello",
        "sessions --root /y list --root /x",
    ],
)  # fmt: skip
def test_an_option_before_a_verb_counts_as_one_behind_it(words: str) -> None:
    assert build().parse_args(words.split()).root == "/x"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_is_chosen_is_made_alone_and_is_the_same(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = []
    for parser in (build(command), build()):
        with pytest.raises(SystemExit):
            parser.parse_args([command, "--help"])
        said.append(capsys.readouterr().out)
        with pytest.raises(SystemExit):
            parser.parse_args([command, "--nothing-like-it"])
        said[-1] += capsys.readouterr().err
    assert said[0] == said[1]
    assert said[0].startswith(f"usage: magy {command} ")
    other = "path" if command == "lsp" else "lsp"
    with pytest.raises(SystemExit):
        build(command).parse_args([other])
    assert "invalid choice" in capsys.readouterr().err


def test_an_option_that_is_not_given_is_none() -> None:
    for words in ("sessions", "sessions list", "run hello", "permissions withdraw --all"):
        assert build().parse_args(words.split()).root is None
    chosen = build().parse_args(["permissions", "--session", "s", "withdraw", "id"])
    assert (chosen.session, chosen.ids, chosen.all) == ("s", ["id"], False)


def test_python_is_not_taken_apart_at_the_end(tmp_path: Path) -> None:
    """`python -v` tells of each module that it removes then. All output is there all the same."""
    command = [sys.executable, "-v", "-m", "magy_server", "agents", "list", "--json"]
    env = {**os.environ, "MAGY_STATE_DIR": str(tmp_path), "MAGY_CONFIG_DIR": str(tmp_path)}
    run = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, check=True, env=env
    )
    assert run.stdout == '{"children":[]}\n'
    assert "# cleanup" not in run.stderr
