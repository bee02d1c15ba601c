"""This module closes this process to others, at its start: its keys to the commands that it runs
(what they get of the environment, `tools/shell/environment.py` says), its values to plug-ins.

They run as the same user, so on Linux `/proc/<pid>` of this process is open to them: environment,
memory, descriptors. The kernel closes it for a process that says it is not to be dumped. It does
so for everyone but root, so the keys are also taken from the block in which the kernel keeps the
environment that a program was started with; there, `ps` finds them on every system.

What that costs: no core dumps, and debuggers and profilers cannot attach to Magy unless they run as
root. Programs that Magy starts are not changed by it.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from types import ModuleType

from magy_server.core.variables import names_key, passes

_SET_DUMPABLE, _GET_DUMPABLE = 4, 3
"""Operations of Linux's prctl(2)."""


def begin() -> None:
    """Hides the keys. Call it before anything else is started or read."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # the doctor says so
            ctypes.CDLL(None, use_errno=True).prctl(_SET_DUMPABLE, 0, 0, 0, 0)
    withdraw(lambda name: names_key(name) or not passes(name))
    # They would be shown each value.
    loader = _NoPlugins("pydantic.plugin._loader")
    sys.modules[loader.__name__] = loader


class _NoPlugins(ModuleType):
    """Takes the place of the module by which pydantic looks for plug-ins among all that is
    installed. A variable of the environment would turn them off, too, but that module alone, and
    what it imports, is a twentieth of what a short command costs."""

    @staticmethod
    def get_plugins() -> Sequence[object]:
        return ()

    def __getattr__(self, name: str) -> object:
        """Returns what else the module has: another pydantic may look for more there."""
        if name.startswith("__"):
            raise AttributeError(name)
        del sys.modules[self.__name__]
        try:
            found: object = getattr(import_module(self.__name__), name)
        finally:
            sys.modules[self.__name__] = self
        return found


def is_closed() -> bool:
    """Whether others of this user cannot look into this process."""
    if sys.platform != "linux":
        return False
    try:
        return bool(ctypes.CDLL(None).prctl(_GET_DUMPABLE, 0, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def withdraw(chosen: Callable[[str], bool]) -> None:
    """Overwrites the values of the chosen variables where the kernel and the C library look for
    them. `os.environ` is a copy, and keeps them: it is what this process reads."""
    with suppress(OSError, AttributeError, ValueError):
        for entry in _block():
            if not entry:
                return
            text = ctypes.string_at(entry)
            name, equals, value = text.partition(b"=")
            if equals and value and chosen(os.fsdecode(name)):
                ctypes.memset(entry + len(name) + 1, 0, len(value))


def _block() -> Iterable[int | None]:
    """The addresses of the texts `NAME=value`, up to the None behind the last."""
    texts = ctypes.POINTER(ctypes.c_void_p)
    library = ctypes.CDLL(None)
    if sys.platform == "darwin":
        library._NSGetEnviron.restype = ctypes.POINTER(texts)
        return iter(library._NSGetEnviron().contents)
    return iter(texts.in_dll(library, "environ"))
