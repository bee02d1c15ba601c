"""The port `Sandbox` starts programs in such a way that they can do no more than a level allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from magy_server.core.values import Confinement, SandboxLevel
from magy_server.dataclass import dataclass

LEVELS: Sequence[SandboxLevel] = ("off", "standard", "strict", "isolated")
"""From the mildest to the strictest."""


def stricter(one: SandboxLevel, other: SandboxLevel) -> SandboxLevel:
    return max(one, other, key=LEVELS.index)


@dataclass(frozen=True, slots=True)
class Launch:
    """What is to be started, and for which workspace root (canonical path). `at_least`: in this
    level, if a milder one is configured there. `network` False: without any, whatever the level;
    it then writes only in the workspace and in its temporary directory."""

    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    root: str
    at_least: SandboxLevel = "off"
    network: bool = True


@dataclass(frozen=True, slots=True)
class Outcome:
    """`ended`: why the sandbox ended the program; "": it did not. `refused`: the hosts that it
    wanted to reach and may not. `level`: the sandbox it ran in, with `network`: all, the listed
    hosts or none."""

    ended: str = ""
    refused: Sequence[str] = ()
    level: SandboxLevel = "off"
    network: str = "all"


class Prepared(Protocol):
    """How to start it: `argv` and `env`, with `fds` left open in it, from a thread that lives as
    long as the program may. Then `started` must be called, and at the end `close`; `close` alone,
    if it was not started after all."""

    @property
    def argv(self) -> Sequence[str]: ...

    @property
    def env(self) -> Mapping[str, str]: ...

    @property
    def fds(self) -> Sequence[int]: ...

    def started(self, pid: int) -> None:
        """The process `pid` runs `argv`, or waits at a gate before it does: from now on its limits
        are watched and its network is served."""

    async def close(self) -> Outcome:
        """The program is over."""


@dataclass(frozen=True, slots=True)
class Bare:
    """Started as it is."""

    argv: Sequence[str]
    env: Mapping[str, str]
    fds: Sequence[int] = ()

    def started(self, pid: int) -> None:
        pass

    async def close(self) -> Outcome:
        return Outcome()


class Sandbox(Protocol):
    async def confinement(
        self, root: str, at_least: SandboxLevel = "off", *, network: bool = True
    ) -> Confinement | None:
        """Returns in what a program of this workspace root would run now; None: no sandbox is
        wanted. Never raises."""

    async def prepare(self, launch: Launch) -> Prepared:
        """Raises ToolError: why it cannot run as strictly as it must."""


class NoSandbox:
    """Everything runs as it is."""

    async def confinement(
        self, root: str, at_least: SandboxLevel = "off", *, network: bool = True
    ) -> Confinement | None:
        return None

    async def prepare(self, launch: Launch) -> Prepared:
        return Bare(launch.argv, launch.env)


NO_SANDBOX = NoSandbox()
