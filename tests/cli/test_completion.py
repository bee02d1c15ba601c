"""Completion, in the shells themselves."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.harness import Magy
from tests.patience import PATIENCE

COMPLETE = """
eval "$(magy completion bash)"
COMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
COMP_LINE="${COMP_WORDS[*]}"; COMP_POINT=${#COMP_LINE}
function=$(complete -p magy | sed 's/.*-F \\([^ ]*\\).*/\\1/')
$function magy "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%%s\\n' "${COMPREPLY[@]}"
"""
"""Does what bash does when Tab is pressed after these words."""


def environment(magy: Magy, tmp_path: Path) -> dict[str, str]:
    """With a command `magy`, as an installation has it."""
    command = tmp_path / "bin" / "magy"
    command.parent.mkdir(exist_ok=True)
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m magy_server "$@"\n')
    command.chmod(0o755)
    return magy.env({"PATH": f"{command.parent}:{os.environ['PATH']}"})


def script(magy: Magy, shell: str) -> str:
    done = magy("completion", shell)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.needs("bash")
@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("magy se", ["sessions"]),
        ("magy sessions ex", ["export"]),
        ("magy sessions export --form", ["--format"]),
        ("magy sessions export x --format ''", ["jsonl", "markdown"]),
        ("magy run --qu", ["--quiet"]),
        ("magy run --co", ["--continue"]),
        ("magy config c", ["check"]),
        ("magy completion ''", ["bash", "zsh", "fish"]),
        ("magy run --cwd sr", ["src"]),
    ],
)
def test_bash(magy: Magy, tmp_path: Path, words: str, found: list[str]) -> None:
    (magy.root / "src").mkdir()
    done = subprocess.run(
        ["bash", "--norc", "-c", COMPLETE % words], env=environment(magy, tmp_path),
        cwd=magy.root, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout.split() == found


@pytest.mark.needs("bash")
def test_bash_knows_sessions(magy: Magy, tmp_path: Path) -> None:
    magy.script("text: ok\n")
    magy("run", "hello")
    (session,) = magy.sessions()
    for words in ("sessions show", "run --resume"):
        command = COMPLETE % f"magy {words} {session['sessionId'][:3]}"
        done = subprocess.run(
            ["bash", "--norc", "-c", command], env=environment(magy, tmp_path), cwd=magy.root,
            capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        assert done.stdout.split() == [session["sessionId"]]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_script_has_all_subcommands(magy: Magy, shell: str) -> None:
    text = script(magy, shell)
    for word in ("sessions", "export", "doctor", "untrust", "magy sessions list --ids"):
        assert word in text


def test_zsh_takes_it(magy: Magy, tmp_path: Path) -> None:
    """Where zsh is installed, by zsh itself."""
    text = script(magy, "zsh")
    assert text.startswith("#compdef magy")
    if shutil.which("zsh") is None:
        return
    (tmp_path / "_magy").write_text(text)
    code = f"fpath=({tmp_path} $fpath); autoload -U compinit; compinit -u -D; print $_comps[magy]"
    assert printed("zsh", "-f", "-c", code, env=environment(magy, tmp_path)) == "_magy\n"
    printed("zsh", "-f", "-n", str(tmp_path / "_magy"), env=environment(magy, tmp_path))


def test_fish_completes(magy: Magy, tmp_path: Path) -> None:
    """Where fish is installed, by fish itself."""
    text = script(magy, "fish")
    assert "complete -c magy" in text
    if shutil.which("fish") is None:
        return
    (tmp_path / "magy.fish").write_text(text)
    code = f"source {tmp_path / 'magy.fish'}; complete -C 'magy sess'; complete -C 'magy run --qu'"
    found = printed("fish", "--no-config", "-c", code, env=environment(magy, tmp_path))
    assert [line.split("\t")[0] for line in found.splitlines()] == ["sessions", "--quiet"]


def printed(*command: str, env: dict[str, str]) -> str:
    done = subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_another_shell_is_refused(magy: Magy) -> None:
    assert magy("completion", "tcsh").returncode == 2
