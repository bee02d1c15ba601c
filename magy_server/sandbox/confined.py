"""This module puts together how a program starts in a sandbox, and serves it while it runs."""

from __future__ import annotations

import asyncio
import inspect
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO

from magy_server.core.sandbox import Launch, Outcome, Prepared
from magy_server.core.settings import SandboxLimits, SandboxSettings
from magy_server.core.values import Confinement
from magy_server.proxy import Proxy
from magy_server.sandbox import World, bubblewrap, control_groups, give_listener, limits, mounts
from magy_server.sandbox.seccomp import filter_program

PORT = 3128
"""Of the proxy, on the loopback device of each sandbox that has one."""
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


def confine(
    launch: Launch, confined: Confinement, asked: SandboxSettings, world: World, own: str
) -> Prepared:
    """`own`: the directory with those that take the place of `/tmp` and its kin."""
    wish = _wish(launch, confined, asked, world.home)
    make = mounts.isolated if confined.level == "isolated" else mounts.mounts
    found = make(world, wish, own)
    seccomp = _readable(filter_program())
    network = _Network(asked.hosts) if confined.network == "listed" else None
    line = bubblewrap.line(
        bubblewrap.program(),
        found,
        os.path.realpath(launch.cwd),
        os.path.join(own, "empty"),
        network=confined.network == "all",
        seccomp=seccomp.fileno() if seccomp else -1,
    )
    through = network.argv if network else []
    group = control_groups.make(asked.limits)
    joined = group.argv if group else []
    argv = [*joined, *line, *through, *limits.first(asked.limits), *launch.argv]
    env = _inside(launch.env, confined, network)
    absent = mounts.absent(launch.root)
    return _Confined(argv, env, confined, seccomp, network, group, asked.limits, absent)


def _wish(launch: Launch, confined: Confinement, asked: SandboxSettings, home: str) -> mounts.Wish:
    def paths(given: Sequence[str]) -> list[str]:
        return [path for path in (mounts.absolute(one, home) for one in given) if path]

    return mounts.Wish(
        root=launch.root,
        writable=paths(asked.writable),
        hidden=paths(asked.hidden),
        shown=paths(asked.shown),
        agent=launch.env.get("SSH_AUTH_SOCK", "") if confined.network == "all" else "",
        confined=confined.level == "standard" and confined.network == "none",
    )


class _Confined:
    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        confined: Confinement,
        seccomp: IO[bytes] | None,
        network: _Network | None,
        group: control_groups.ControlGroup | None,
        taken: SandboxLimits,
        absent: Sequence[str],
    ) -> None:
        self.argv = argv
        self.env = env
        self._confined = confined
        self._network = network
        self._group = group
        self._files = [file for file in (seccomp, network and network.inside) if file]
        self._limits = taken
        self._absent = absent
        self._watchman: limits.Watchman | None = None

    @property
    def fds(self) -> Sequence[int]:
        return [file.fileno() for file in self._files]

    def started(self, pid: int) -> None:
        self._let_go()
        self._watchman = limits.Watchman(pid, self._limits)
        if self._network:
            self._network.begin()

    async def close(self) -> Outcome:
        self._let_go()
        refused = await self._network.close() if self._network else ()
        ended = await self._watchman.close() if self._watchman else ""
        if self._group:
            await self._group.close()
            self._group = None
        for path in self._absent:
            with suppress(OSError):
                os.remove(path)
        return Outcome(ended, refused, self._confined.level, self._confined.network)

    def _let_go(self) -> None:
        for file in self._files:
            file.close()
        self._files = []


class _Network:
    """The network of the listed hosts: who connects to `PORT` inside talks to the proxy here."""

    def __init__(self, hosts: Sequence[str]) -> None:
        self._outside, self.inside = socket.socketpair()
        self._outside.setblocking(False)
        self._proxy = Proxy(hosts)
        self._task: asyncio.Task[None] | None = None

    @property
    def argv(self) -> list[str]:
        """What must run inside before the program."""
        source = inspect.getsource(give_listener)
        given = [str(self.inside.fileno()), str(PORT)]
        return [os.path.realpath(sys.executable), "-I", "-S", "-c", source, *given]

    def begin(self) -> None:
        self._task = asyncio.create_task(self._serve())

    async def close(self) -> Sequence[str]:
        """Returns the hosts that were refused."""
        if self._task:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._outside.close()
        await self._proxy.close()
        return tuple(self._proxy.refused)

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_reader(self._outside, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(self._outside)
        _, given, _, _ = socket.recv_fds(self._outside, 1, 1)
        for fd in given:
            await self._proxy.serve(socket.socket(fileno=fd))


def _readable(data: bytes) -> IO[bytes] | None:
    if not data:
        return None
    file = open(os.memfd_create("seccomp"), "w+b")  # noqa: SIM115
    file.write(data)
    file.seek(0)
    return file


def _inside(
    env: Mapping[str, str], confined: Confinement, network: _Network | None
) -> dict[str, str]:
    dropped = {"TMP", "TEMP"}
    if confined.network != "all":
        dropped |= {"SSH_AUTH_SOCK", *_PROXIES}
    kept = {name: value for name, value in env.items() if name not in dropped}
    if network:
        kept |= dict.fromkeys(_PROXIES, f"http://127.0.0.1:{PORT}")
        kept |= {"no_proxy": "localhost,127.0.0.1,::1", "NO_PROXY": "localhost,127.0.0.1,::1"}
        kept["NODE_USE_ENV_PROXY"] = "1"
    return {**kept, "TMPDIR": "/tmp"}
