"""This check tells whether commands that agents run, as the same user, can read Magy's keys."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection

from magy_server.doctor.finding import Around, Finding, note, ok, warning

_USER = "Run Magy as a user other than root, in a container, too."
_ALONE = (
    "Give them to Magy alone: set them in a script that starts `magy`, not in the program that "
    "runs it."
)


def check(around: Around) -> list[Finding]:
    from magy_server.doctor import project
    from magy_server.providers import key_variables

    names = key_variables(project.loaded(around).settings.provider)
    return [_own(), *_above({name for name in names if around.environ.get(name)})]


def _own() -> Finding:
    from magy_server import privacy

    if sys.platform != "linux":
        what = "This system does not show the keys in Magy's environment, but a debugger that "
        what += "you allow can read Magy's memory."
        return note(what, "Do not allow an agent's command to run a debugger.")
    if os.geteuid() == 0:
        what = "Magy runs as root: agents' commands can read its memory, and the keys in it."
        return note(what, _USER)
    if not privacy.is_closed():
        what = "The kernel does not protect Magy's memory, so agents' commands can read its keys."
        return warning(what, "Run Magy on a kernel that supports PR_SET_DUMPABLE.")
    return ok("Agents' commands can read neither Magy's memory nor its keys.")


def _above(names: Collection[str]) -> list[Finding]:
    """Says when the program that started Magy has the keys, too. Magy cannot close that door."""
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
    return [note(f"{what}command that runs as you.", _ALONE)]
