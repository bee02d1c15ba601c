"""Nothing gets out of a sandbox, whatever it tries (`attempts.py`)."""

from __future__ import annotations

import asyncio
import os
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil
import pytest

from magy_server.core.values import SandboxLevel
from tests.sandbox.attempts import ATTEMPTS
from tests.sandbox.conftest import SECRET, Machine, Project
from tests.thorough import rotating

pytestmark = pytest.mark.needs("bwrap", "git", "curl")
AT_ONCE = 3
MARK = f"escape-{os.getpid()}"


@pytest.fixture
def listening(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """What listens on this machine, and what all may see there."""
    with ExitStack() as closing:
        folder = closing.enter_context(
            tempfile.TemporaryDirectory("", "magy-sandbox-test-", "/tmp")
        )
        own = f"magy-sandbox-test-{os.getpid()}"
        shared = Path("/dev/shm", own)
        shared.write_text("x")
        closing.callback(shared.unlink, missing_ok=True)
        found = {"OWN": own}
        for name, family, address in (
            ("PORT", socket.AF_INET, ("127.0.0.1", 0)),
            ("PORT6", socket.AF_INET6, ("::1", 0)),
            ("", socket.AF_UNIX, str(machine.state / "bus")),
            ("", socket.AF_UNIX, f"{folder}/s"),
            ("", socket.AF_UNIX, f"\0{own}"),
        ):
            server = closing.enter_context(socket.socket(family))
            server.bind(address)
            server.listen(64)
            if name:
                found[name] = str(server.getsockname()[1])
        yield found


async def escaped(machine: Machine, name: str, more: dict[str, str], *, bare: bool) -> str:
    """How an attempt got out; "" if it did not."""
    project = machine.project(name.replace(" ", "-").replace("/", "-"))
    env = {**project.env, **more, "MAGY_CALL": f"{MARK}:{name}"}
    before = project.traces()
    network = machine.settings.level != "standard" or not ATTEMPTS[name].alone
    ran = await Project.run(_With(project, env), ATTEMPTS[name].script, bare=bare, network=network)
    if "OUT!" in ran.said or SECRET in ran.said:
        return f"said {ran.said!r}"
    after = project.traces()
    changed = {path for path in before | after if before.get(path) != after.get(path)}
    return f"changed {changed}: {ran.said}" if changed else ""


class _With(Project):
    """A project with another environment."""

    def __init__(self, project: Project, env: dict[str, str]) -> None:
        self.machine, self.root, self.outside = project.machine, project.root, project.outside
        self._env = env

    @property
    def env(self) -> dict[str, str]:
        return self._env


def left_running() -> dict[str, str]:
    """The attempts that left a process running, which is ended now."""
    found = {}
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            mark, _, name = process.environ().get("MAGY_CALL", "").partition(":")
            if mark == MARK and process.status() != psutil.STATUS_ZOMBIE:
                found[name] = f"left {process}"
                process.kill()
    return found


async def all_of(
    machine: Machine, names: list[str], more: dict[str, str], *, bare: bool
) -> dict[str, str]:
    places = asyncio.Semaphore(1 if bare else AT_ONCE)

    async def one(name: str) -> tuple[str, str]:
        async with places:
            return name, await escaped(machine, name, more, bare=bare)

    found = dict(await asyncio.gather(*map(one, names)))
    return found | left_running()


LEVELS: Mapping[str, tuple[SandboxLevel, Mapping[str, object]]] = {
    "standard": ("standard", {}),
    "alone": ("standard", {"allow_sandboxed": True}),
    "strict": ("strict", {}),
    "listed": ("strict", {"hosts": ["example.org", "*.example.com"]}),
    "isolated": ("isolated", {}),
}


@pytest.mark.req("A103", "A104", "A105")
@pytest.mark.parametrize("kind", LEVELS)
async def test_nothing_gets_out(machine: Machine, listening: dict[str, str], kind: str) -> None:
    """Each attempt is made in each run, at a third of the levels."""
    level, more = LEVELS[kind]
    machine.set(level, **more)
    with_network = level == "standard" and not more
    names = [name for name, one in ATTEMPTS.items() if not (with_network and one.alone)]
    assert len(names) >= 60
    first = list(LEVELS).index(kind)
    found = await all_of(machine, list(rotating(names, first)), listening, bare=False)
    assert not {name: how for name, how in found.items() if how}


async def test_without_a_sandbox_they_do_get_out(
    machine: Machine, listening: dict[str, str]
) -> None:
    """So the test above can fail."""
    machine.set("standard")
    names = [name for name, one in ATTEMPTS.items() if one.bare]
    found: dict[str, str] = {}
    for name in names:  # each in a home of its own: some change it
        found |= await all_of(machine, [name], listening, bare=True)
    assert len(names) >= 40
    assert not [name for name, how in found.items() if not how]
