"""This check looks for the programs that Magy runs: git, ripgrep, bubblewrap, bash."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from magy_server.core.variables import passes
from magy_server.doctor.finding import Around, Finding, Say, note, ok, problem, warning

if TYPE_CHECKING:
    from magy_server.core.settings import SandboxSettings

GIT = (2, 25)
"""Older versions lack options that Magy uses."""
_PATIENCE = 10.0
_MOST = 64 * 1024
"""The most bytes of a program's output that the check keeps."""


async def check(around: Around) -> list[Finding]:
    found = await asyncio.gather(_git(around), _ripgrep(around), _sandbox(around), _bash(around))
    return [finding for findings in found for finding in findings]


async def outcome(command: Sequence[str], around: Around) -> tuple[int | None, str]:
    """Runs a program, and returns (exit code, output) of it and of what it started. The code is
    None when it could not start, or did not end in time; the output then says why."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=around.root,
            env={name: value for name, value in around.environ.items() if passes(name)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        return None, error.strerror or str(error)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(_PATIENCE):
            output = b""
            while more := await process.stdout.read(_MOST):
                output = (output + more)[:_MOST]  # all is read: it shall not wait for a reader
            code = await process.wait()
    except TimeoutError:
        return None, f"it did not end within {_PATIENCE:g} s"
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    return code, output.decode("utf-8", "replace").strip()


def found(name: str, around: Around) -> str | None:
    return shutil.which(name, path=around.environ.get("PATH", os.defpath))


def version_in(text: str) -> tuple[int, ...]:
    """Returns the first number with a dot in it; () when there is none."""
    matched = re.search(r"\d+(?:\.\d+)+", text)
    return tuple(int(part) for part in matched[0].split(".")) if matched else ()


def missing(name: str, what: str, say: Say = warning) -> Finding:
    mend = f"Install {name} with the system's package manager, and make sure that it is on PATH."
    return say(f"{name} is not installed: {what}.", mend)


def broken(path: str, said: str) -> Finding:
    what = f"{path} does not work: {said.splitlines()[-1] if said else 'it prints nothing'}."
    return warning(what, f"Run `{path} --version` and fix what it reports.")


async def _git(around: Around) -> list[Finding]:
    path = found("git", around)
    if path is None:
        return [missing("git", "no diff, commit or branch, and no checkpoints")]
    code, said = await outcome([path, "--version"], around)
    version = version_in(said)
    if code != 0 or not version:
        return [broken(path, said)]
    number = ".".join(map(str, version))
    if version < GIT:
        what = f"git {number} ({path}) is old, and parts of Magy need a newer one."
        mend = f"Install git {'.'.join(map(str, GIT))} or newer."
        return [warning(what, mend)]
    return [ok(f"git {number} ({path})."), await _identity(path, around)]


async def _identity(path: str, around: Around) -> Finding:
    lacking = []
    for key in ("name", "email"):
        given = (f"GIT_AUTHOR_{key.upper()}", "EMAIL" if key == "email" else "")
        if not any(around.environ.get(name) for name in given):
            code, said = await outcome([path, "config", "--get", f"user.{key}"], around)
            if code != 0 or not said:
                lacking.append(f"user.{key}")
    if not lacking:
        return ok("git has a name and an e-mail address for commits.")
    commands = " and ".join(f"`git config --global {key} ...`" for key in lacking)
    what = f"git has no {' and no '.join(lacking)}, so commits fail."
    return warning(what, f"Say it: {commands}.")


async def _ripgrep(around: Around) -> list[Finding]:
    from magy_server.doctor.project import settings
    from magy_server.tools.search import ripgrep_program

    name = (await asyncio.to_thread(settings, around)).tools.grep_program
    unfit: list[Finding] = []
    path = around.environ.get("PATH", os.defpath)
    for candidate in ripgrep_program.candidates(name, path):
        code, said = await outcome([candidate, "--version"], around)
        number = ripgrep_program.version(said) if code == 0 else None
        if ripgrep_program.suits(number):
            return [ok(f"ripgrep {number} ({candidate})."), *unfit]
        oldest = f"ripgrep {ripgrep_program.OLDEST} or newer"
        what = f"{candidate} is not a working {oldest}."
        mend = f"Install {oldest}, or name another one in magy.toml: `tools.grep_program`."
        unfit.append(note(what, mend))
    return [*unfit, warning(ripgrep_program.MISSING, ripgrep_program.MEND)]


async def _sandbox(around: Around) -> list[Finding]:
    from magy_server.doctor.project import settings

    if sys.platform != "linux":
        what = "bubblewrap, the sandbox for commands, exists on Linux only."
        mend = "Look at each command before you allow it, or run Magy in a container."
        return [note(what, mend)]
    asked = (await asyncio.to_thread(settings, around)).sandbox
    say = note if asked.level == "off" else warning
    path = found("bwrap", around)
    if path is None:
        return [missing("bubblewrap", f"{_without(asked)} (`bwrap`)", say)]
    true = found("true", around) or "/bin/true"
    code, said = await outcome(
        [
            path,
            "--unshare-all",
            "--die-with-parent",
            "--ro-bind",
            "/",
            "/",
            "--proc",
            "/proc",
            true,
        ],
        around,
    )
    if code == 0:
        return [ok(f"bubblewrap ({path}) can create a sandbox."), *_level(asked)]
    why = said.splitlines()[-1] if said else f"exit code {code}"
    what = f"bubblewrap ({path}) cannot create a sandbox here: {why}; {_without(asked)}."
    mend = (
        "Allow user namespaces (sysctl, AppArmor or the container's settings), then try again; "
        "Magy uses nothing else, such as Landlock, in their place."
    )
    return [warning(what, mend)]


def _without(asked: SandboxSettings) -> str:
    if asked.level == "off":
        return "commands cannot run in a sandbox"
    if asked.level == "standard":
        return (
            "commands run without the sandbox that sandbox.level asks for, which each question says"
        )
    return f"no command runs, since sandbox.level is {asked.level}"


def _level(asked: SandboxSettings) -> list[Finding]:
    if asked.level == "off":
        mend = 'Set sandbox.level = "standard" in magy.toml (docs/howto/sandbox.md).'
        return [note("Commands run without a sandbox: sandbox.level is off.", mend)]
    home = os.path.expanduser("~")
    paths = [os.path.join(home, p[2:]) if p.startswith("~/") else p for p in asked.writable]
    absent = [path for path in paths if not os.path.isabs(path) or not os.path.exists(path)]
    found = [ok(f"Commands run in the {asked.level} sandbox.")]
    if absent:
        what = f"sandbox.writable names what is not there: {', '.join(absent)}."
        found.append(note(what, "Make the directory, or take it out of magy.toml."))
    return found


async def _bash(around: Around) -> list[Finding]:
    path = found("bash", around)
    if path is None:
        what = "bash is not on PATH, so agents cannot run commands."
        return [problem(what, "Install bash, or put it on PATH.")]
    code, said = await outcome([path, "--version"], around)
    if code != 0:
        return [broken(path, said)]
    number = ".".join(map(str, version_in(said)))
    return [ok(f"bash {number} ({path}).")]
