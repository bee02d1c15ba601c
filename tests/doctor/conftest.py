"""An installation that was prepared to be ill, and the real command that looks at it."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from magy_server.store.sqlite import SqliteStore
from tests.guard import SHUT
from tests.nursery import ADAPTERS, ALSO, STARTING, born

COMMAND = (sys.executable, "-m", "magy_server", "doctor")


@dataclass(frozen=True)
class Seen:
    """What the command said."""

    code: int
    output: str
    findings: list[dict[str, str]] = field(default_factory=list)

    def of(self, topic: str, *status: str) -> list[str]:
        """The whole text of the findings of a topic (of these statuses)."""
        return [
            f"{one['what']} -> {one['mend']}"
            for one in self.findings
            if one["topic"] == topic and (not status or one["status"] in status)
        ]

    @property
    def bad(self) -> dict[str, str]:
        """What is a problem or a warning, by topic."""
        return {
            one["topic"]: f"{one['status']}: {one['what']} -> {one['mend']}"
            for one in self.findings
            if one["status"] in ("problem", "warning")
        }


class Machine:
    """A home, a project and an environment for `magy doctor`."""

    def __init__(self, home: Path) -> None:
        self.state, self.config, self.root = home / "state", home / "config", home / "project"
        for directory in (self.config, self.root):
            directory.mkdir()
        self.environ = dict(os.environ) | {
            "MAGY_STATE_DIR": str(self.state),
            "MAGY_CONFIG_DIR": str(self.config),
            "LC_ALL": "C.UTF-8",
        }
        self.wrap: tuple[str, ...] = ()
        """Goes before the command: a sandbox."""
        self.settings("")

    def settings(self, text: str) -> None:
        (self.config / "magy.toml").write_text(f"{text}\n{SHUT}", encoding="utf-8")

    def script(self) -> None:
        """A model that needs no key."""
        file = self.config / "model.script"
        file.write_text("text: hello\n", encoding="utf-8")
        self.environ["MAGY_SCRIPT"] = str(file)

    async def store(self) -> Path:
        """A real database; its path."""
        store = await SqliteStore.open(self.state)
        await store.close()
        return self.state / "magy.db"

    def programs(self, directory: Path, names: Iterable[str]) -> Path:
        """Puts only these of this machine's programs on PATH."""
        directory.mkdir(exist_ok=True)
        for name in names:
            path = next(
                Path(folder, name)
                for folder in os.environ["PATH"].split(os.pathsep)
                if os.access(Path(folder, name), os.X_OK)
            )
            (directory / name).symlink_to(path)
        self.environ["PATH"] = str(directory)
        return directory

    async def text(self, **environ: str) -> Seen:
        code, out = await self._run(environ)
        return Seen(code, out)

    async def doctor(self, **environ: str) -> Seen:
        code, out = await self._run(environ, "--json")
        report: dict[str, Any] = json.loads(out)
        assert report["ok"] is (code == 0)
        for one in report["findings"]:
            assert set(one) == {"topic", "status", "what", "mend"}
            assert (one["status"] == "ok") is (not one["mend"]), one
        shut = "is not running: nothing listens at 127.0.0.1:1."
        return Seen(code, out, [one for one in report["findings"] if shut not in one["what"]])

    async def _run(self, environ: dict[str, str], *options: str) -> tuple[int, str]:
        env = self.environ | environ | {ALSO: ADAPTERS}
        if not self.wrap and not any(name.startswith(STARTING) for name in environ):
            born_one = await born((*COMMAND, *options), str(self.root), env)
            born_one.stdin.close()
            out, err = await asyncio.gather(born_one.stdout.read(), born_one.stderr.read())
            code: int | None = await born_one.wait()
        else:
            process = await asyncio.create_subprocess_exec(
                *self.wrap, *COMMAND, *options, cwd=self.root, env=env,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
            out, err = await process.communicate()
            code = process.returncode
        assert not err, err.decode()
        assert code is not None
        return code, out.decode()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def change(path: Path, statement: str) -> None:
    """Does something to a database that Magy would not do."""
    db = sqlite3.connect(path, isolation_level=None)
    try:
        db.execute(statement)
    finally:
        db.close()
