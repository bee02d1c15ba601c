"""A person's machine in a directory: a home with keys, a project, and what is none of its business.

It lies below the checkout, since a sandbox has directories of its own in the place of `/tmp`.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from magy_server.core.sandbox import Launch, Outcome
from magy_server.core.settings import SandboxSettings
from magy_server.core.values import SandboxLevel
from magy_server.sandbox import World
from magy_server.sandbox.os_sandbox import OsSandbox
from magy_server.tools.shell.process_groups import end_group
from magy_server.tools.temporary import temporary
from tests.guard import SESSION
from tests.patience import PATIENCE

TOP = Path(__file__).parents[2]
SECRET = "the-secret-of-the-house"


class Machine:
    """`root` is the project, `outside` holds what it must not change, `state` what Magy keeps."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.home, self.state = place / "home", place / "state"
        self.config = self.home / ".config/magy"
        self.settings = SandboxSettings()
        self.box = OsSandbox(
            lambda root: self.settings,
            World(
                home=str(self.home),
                private=[str(self.state)],
                protected=("magy.toml", ".magy", ".mcp.json"),
                read_only=[str(self.config)],
            ),
            temporary,
        )
        for name in (".ssh", ".aws", ".config/magy", ".mozilla"):
            (self.home / name).mkdir(parents=True)
        self.state.mkdir()
        for name in (
            ".ssh/id_ed25519",
            ".aws/credentials",
            ".netrc",
            ".mozilla/cookies",
            ".bashrc",
        ):
            (self.home / name).write_text(SECRET)
        (self.home / ".ssh/known_hosts").write_text("example.org ssh-ed25519 AAAA\n")
        (self.state / "magy.sqlite").write_text(SECRET)
        (self.config / "magy.toml").write_text("")

    def project(self, name: str = "project") -> Project:
        return Project(self, self.place / name)

    def set(self, level: SandboxLevel, **more: object) -> None:
        self.settings = SandboxSettings.model_validate({"level": level, **more})


class Project:
    """A repository with Magy's files, and a directory beside it that is not in it."""

    def __init__(self, machine: Machine, place: Path) -> None:
        self.machine = machine
        self.root, self.outside = place / "work", place / "outside"
        for folder in (".git/hooks", ".git/objects", ".git/refs/heads", ".magy/agent", ".git/info"):
            (self.root / folder).mkdir(parents=True)
        self.root.joinpath(".git/HEAD").write_text("ref: refs/heads/main\n")
        self.root.joinpath(".git/config").write_text("[core]\n\trepositoryformatversion = 0\n")
        self.root.joinpath(".git/hooks/commit-msg").write_text("#!/bin/sh\n")
        self.root.joinpath(".git/hooks/commit-msg").chmod(0o755)
        self.root.joinpath("magy.toml").write_text("# mine\n")
        self.root.joinpath(".mcp.json").write_text("{}\n")
        self.outside.mkdir()
        (self.outside / "target").write_text("untouched")

    @property
    def env(self) -> dict[str, str]:
        """`MAGY` is the process outside that keeps the keys."""
        return {
            "PATH": os.environ["PATH"], "HOME": str(self.machine.home), "MAGY": str(os.getpid()),
            "OUT": str(self.outside), "WS": str(self.root), "STATE": str(self.machine.state),
            "MAGY_CALL": f"{SESSION}:1.0",
        }  # fmt: skip

    def traces(self) -> dict[str, tuple[object, ...]]:
        """What must be as it was: outside, and in the project what it is run by."""
        git, root, home = self.root / ".git", self.root, self.machine.home
        kept = [
            git / "hooks",
            git / "config",
            git / "commondir",
            root / "magy.toml",
            root / ".magy",
        ]
        kept += [root / ".mcp.json", self.outside, home, self.machine.state]
        found: dict[str, tuple[object, ...]] = {".git itself": (git.lstat().st_mode,)}
        for path in kept:
            for one in [path, *(sorted(path.rglob("*")) if path.is_dir() else [])]:
                with suppress(FileNotFoundError):
                    about = one.lstat()
                    text = one.read_bytes() if one.is_file() else b""
                    found[str(one)] = (about.st_mode, about.st_uid, about.st_mtime, text)
        return found

    async def run(
        self, script: str, *, bare: bool = False, network: bool = True, seconds: float = PATIENCE
    ) -> Ran:
        """Runs a script of bash in the project, in the sandbox that the machine is set to."""
        return await self.start(["bash", "-c", script], bare=bare, network=network, seconds=seconds)

    async def start(
        self, argv: Sequence[str], *, bare: bool, network: bool, seconds: float = PATIENCE
    ) -> Ran:
        launch = Launch(argv, str(self.root), self.env, str(self.root), network=network)
        found = await self.machine.box.prepare(launch)
        line, env, fds = (argv, self.env, ()) if bare else (found.argv, found.env, found.fds)
        process = await asyncio.create_subprocess_exec(
            *line, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT, cwd=self.root, env=env, pass_fds=fds,
            start_new_session=True,
        )  # fmt: skip
        if not bare:
            found.started(process.pid)
        try:
            async with asyncio.timeout(seconds):
                said, _ = await process.communicate()
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            outcome = await found.close()
        return Ran(process.returncode, said.decode("utf-8", "replace"), outcome)


class Ran:
    def __init__(self, code: int | None, said: str, outcome: Outcome) -> None:
        self.code = code
        self.said = said
        self.outcome = outcome


@pytest.fixture
def place() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix=".sandbox-test-", dir=TOP))
    yield path.resolve()
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
async def machine(place: Path) -> AsyncIterator[Machine]:
    machine = Machine(place)
    yield machine
    await machine.box.close()
    await end_group(None, f"{SESSION}:1.0")
