"""`magy doctor` says what is wrong with an installation, and how to mend it (docs/howto/doctor.md).

Small checks that run side by side, each with a time limit. A check that fails is a finding, too.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NoReturn

from magy_server.cli.exit_codes import CANCELLED
from magy_server.cli.plain_output import require_output, tell
from magy_server.core.text.secrets import Secrets
from magy_server.core.variables import names_key
from magy_server.doctor import (
    completion,
    database,
    editors,
    installation,
    keys,
    models,
    plugins,
    programs,
    servers,
    settings,
    state,
    terminal,
)
from magy_server.doctor.finding import Around, Check, Finding, in_thread, problem, warning
from magy_server.doctor.report import Progress, as_json_text, for_people

__all__ = ["CHECKS", "Around", "Check", "Finding", "examine", "main"]

CHECKS: Sequence[Check] = (
    Check("installation", installation.check),
    Check("sqlite", in_thread(installation.sqlite)),
    Check("state", in_thread(state.check)),
    Check("database", in_thread(database.check)),
    Check("processes", in_thread(state.processes)),
    Check("configuration", in_thread(settings.check)),
    Check("agents", in_thread(settings.agents)),
    Check("hooks", in_thread(settings.hooks)),
    Check("mcp", in_thread(servers.check)),
    Check("plugins", plugins.check),
    Check("programs", programs.check),
    Check("models", models.check),
    Check("keys", in_thread(keys.check)),
    Check("completion", in_thread(completion.check)),
    Check("editors", editors.check),
    Check("terminal", terminal.check),
)

ENDING = 2.0
"""Seconds that checks may take to end when they are cancelled."""


def main(*, as_json: bool) -> int:
    """Examines this installation and the current directory, and prints what was found. Returns the
    exit code: 0 when there is no problem, 1 when there is one."""
    require_output()
    return asyncio.run(_main(as_json))


async def _main(as_json: bool) -> int:
    around = Around(_here(), dict(os.environ))
    try:
        with Progress(sys.stderr) as progress:
            findings, late = await _examine(CHECKS, around, progress.show)
    except asyncio.CancelledError:  # Ctrl-C
        _leave(CANCELLED)
    tell(as_json_text(findings) + "\n" if as_json else for_people(findings, sys.stdout))
    code = int(any(finding.status == "problem" for finding in findings))
    if late:
        _leave(code)
    return code


def _leave(code: int) -> NoReturn:
    """Ends the process at once. A thread that waits for a dead disk would keep it."""
    sys.stdout.flush()
    os._exit(code)


def _here() -> str:
    try:
        return os.path.realpath(os.getcwd())
    except FileNotFoundError:  # it was deleted while somebody stood in it
        return os.path.expanduser("~")


async def examine(
    around: Around,
    checks: Sequence[Check] = CHECKS,
    heard: Callable[[Sequence[str]], None] = lambda topics: None,
) -> list[Finding]:
    """Returns what the checks find, in their order; `heard` gets the topics that are still under
    way. It never raises, and ends when the last time limit does."""
    return (await _examine(checks, around, heard))[0]


async def _examine(
    checks: Sequence[Check], around: Around, heard: Callable[[Sequence[str]], None]
) -> tuple[list[Finding], bool]:
    """Returns the findings, and whether a check did not end in its time."""
    tasks = {asyncio.create_task(_limited(check, around)): check for check in checks}
    pending = set(tasks)
    try:
        while pending:
            heard([check.topic for task, check in tasks.items() if task in pending])
            _, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in pending:
            task.cancel()
        if pending:  # programs that a check has started end with it
            await asyncio.wait(pending, timeout=ENDING)
    findings: list[Finding] = []
    for task, check in tasks.items():
        error = task.exception()
        found = task.result() if error is None else [_failed(check, error)]
        findings += [replace(one, topic=check.topic) for one in found]
    findings = _without_keys(findings, around)
    return findings, any(isinstance(task.exception(), TimeoutError) for task in tasks)


def _without_keys(findings: Sequence[Finding], around: Around) -> list[Finding]:
    """Returns the findings without keys: a program or an endpoint may have said one in its
    answer."""
    given = around.environ.items()
    secrets = Secrets(v for name, v in given if names_key(name) and not v.startswith("/"))
    return [
        replace(one, what=secrets.clean(one.what), mend=secrets.clean(one.mend)) for one in findings
    ]


async def _limited(check: Check, around: Around) -> list[Finding]:
    async with asyncio.timeout(check.seconds):
        return await check.run(around)


def _failed(check: Check, error: BaseException) -> Finding:
    match error:
        case TimeoutError():
            what = f"This check did not finish within {check.seconds:g} s."
            mend = "Check whether a disk, a program or the network hangs, then try again."
            return warning(what, mend)
        case ImportError():
            what = f"A part of Magy, or a package that it needs, cannot be loaded: {error}."
            mend = f"Reinstall Magy: `{sys.executable} -m pip install --force-reinstall magy`."
            return problem(what, mend)
    what = f"This check failed: {type(error).__name__}: {error}"
    mend = "This is a bug in Magy: report it with the output of `magy doctor --json`."
    return warning(what, mend)
