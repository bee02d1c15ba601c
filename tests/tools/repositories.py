"""Real git repositories, a person in them, and the git tools as the engine runs them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from magy_server.core.errors import ToolError
from magy_server.core.tool import Result, Tool
from magy_server.core.values import Action, Facts
from magy_server.tools.git.look_tools import git_tools
from magy_server.tools.shell.processes import Processes

from .conftest import Context, Workspace


def git(where: Path, *words: str, **env: str) -> str:
    """git as a person runs it."""
    command = ["git", "-C", str(where), *words]
    run = subprocess.run(command, capture_output=True, env={**os.environ, **env}, check=False)
    assert run.returncode == 0, run.stderr.decode()
    return run.stdout.decode("utf-8", "surrogateescape")


def allow(path: str) -> Action:
    return "allow"


@dataclass
class GitContext(Context):
    reading: Callable[[str], Action] = field(default=allow)

    def may_read(self, path: str, within: str = "") -> Action:
        return self.reading(path)


class Person(Workspace):
    """A workspace with the git tools."""

    def __init__(self, root: Path, base: Mapping[str, str] | None = None) -> None:
        self.reading: Callable[[str], Action] = allow
        super().__init__(root)
        self.use(base)

    def use(self, base: Mapping[str, str] | None) -> None:
        """With these environment variables."""
        tools = git_tools(Processes(hidden=["CORP_GATEWAY"], base=base))
        self.tools: dict[str, Tool] = {tool.name: tool for tool in tools}

    def context(self, call: str = "1.0") -> Context:
        return GitContext(str(self.root), call=call, editor=self.editor, reading=self.reading)

    async def do(self, name: str, /, **arguments: Any) -> Result:
        return await self.run(self.tools[f"git_{name}"], **arguments)

    async def say(self, name: str, /, **arguments: Any) -> str:
        return (await self.do(name, **arguments)).for_model

    async def error(self, name: str, /, **arguments: Any) -> str:
        with pytest.raises(ToolError) as caught:
            await self.do(name, **arguments)
        return caught.value.message

    async def facts(self, name: str, /, **arguments: Any) -> Facts:
        return await self.judge(self.tools[f"git_{name}"], **arguments)

    async def preview(self, **arguments: Any) -> str:
        tool = self.tools["git_commit"]
        facts, blobs = await tool.facts(self.context(), **tool.arguments(arguments))
        assert facts.preview is not None, facts.problem
        return blobs[facts.preview].decode()

    def git(self, *words: str) -> str:
        return git(self.root, *words)

    def commit(self, message: str = "more", **files: str) -> str:
        """Keyword names are files: `a_py` is `a.py`."""
        for name, text in files.items():
            self.file(name.replace("_", "."), text)
        self.git("add", "-A")
        self.git("commit", "-qm", message)
        return self.git("rev-parse", "HEAD").strip()

    def head(self) -> str:
        return self.git("rev-parse", "HEAD").strip()

    def hook(self, name: str, script: str) -> None:
        path = self.root / ".git/hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)


@contextlib.asynccontextmanager
async def in_repository(root: Path) -> AsyncIterator[Person]:
    """With one commit; afterwards no process and no descriptor is left."""
    one = Person(root)
    one.git("init", "-q", "-b", "main")
    one.commit("first", a_py="one\ntwo\nthree\n", b_py="b\n")
    await one.say("status")  # what is loaded at first stays
    await asyncio.sleep(0.05)
    before = descriptors()
    yield one
    await asyncio.sleep(0.05)
    assert not psutil.Process().children(recursive=True)
    assert len(descriptors()) <= len(before)


def descriptors() -> list[str]:
    return os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []
