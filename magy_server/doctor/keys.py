"""Whether commands that agents run can get at Magy's keys: they run as the same user."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Collection

from magy_server.doctor.finding import Around, Finding

_USER = "Run Magy as a user who is not root; in a container, give it such a user."
_ALONE = (
    "Give them to Magy alone: start `magy` through a script that sets them, and not the program "
    "that starts it."
)


async def check(around: Around) -> list[Finding]:
    return await asyncio.to_thread(_check, around)


def _check(around: Around) -> list[Finding]:
    from magy_server.doctor import project
    from magy_server.providers import key_variables

    names = key_variables(project.loaded(around).settings.provider)
    return [_own(), *_above({name for name in names if around.environ.get(name)})]


def _own() -> Finding:
    from magy_server import privacy

    if sys.platform != "linux":
        what = (
            "Keys are not in the environment that this system shows of Magy, but a debugger that "
        )
        what += "you allow can read its memory."
        return Finding("keys", "note", what, "Allow no debugger to a command of an agent.")
    if os.geteuid() == 0:
        what = "Magy runs as root: commands of agents can read its memory, and the keys in it."
        return Finding("keys", "note", what, _USER)
    if not privacy.is_closed():
        what = "The kernel does not close Magy to others, so commands of agents can read its keys."
        return Finding("keys", "warning", what, "Run Magy on a kernel that knows PR_SET_DUMPABLE.")
    return Finding("keys", "ok", "Commands of agents can read neither Magy's memory nor its keys.")


def _above(names: Collection[str]) -> list[Finding]:
    """The program that started Magy was given the keys, too; nothing here can close that."""
    import psutil

    try:
        parent = psutil.Process(os.getppid())
        open_names = sorted(name for name in names if parent.environ().get(name))
        program = parent.name()
    except (psutil.Error, OSError):
        return []
    if not open_names:
        return []
    what = f"The program that started Magy ({program}) shows {', '.join(open_names)} to every "
    return [Finding("keys", "note", f"{what}command that runs as you.", _ALONE)]
