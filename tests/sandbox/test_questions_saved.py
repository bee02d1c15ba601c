"""How many questions `sandbox.allow_sandboxed` saves on the commands of a working day (`day.txt`,
one a line, written down by hand). `python -m tests.sandbox.test_questions_saved` prints it."""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from magy_server.config.agents import common_rules, find_agents
from magy_server.core import permit
from magy_server.core.settings import SandboxSettings
from magy_server.core.tool import Tool
from magy_server.sandbox import World
from magy_server.sandbox.os_sandbox import OsSandbox
from magy_server.tools.kit import make_tools
from magy_server.tools.shell.processes import Processes
from magy_server.tools.temporary import temporary
from tests.tools.conftest import Workspace

DAY = Path(__file__).with_name("day.txt")
NETWORK = re.compile(
    r"^(git (fetch|pull|push)|pip install|uv (sync|pip)|poetry install|npm (install|ci|outdated)"
    r"|yarn install|pnpm install|go mod|curl|wget|ssh|scp|docker|psql|redis-cli|gh |kubectl"
    r"|terraform|python -m http|npm run dev|xdg-open|lsof|kill|ps )"
)
"""What an agent that knows its tools asks the network for, or what is outside."""
OTHERS = 50
"""Questions that are left, at most: those about the network, and about files outside."""


def commands() -> list[str]:
    return [line.replace("⏎", "\n") for line in DAY.read_text(encoding="utf-8").splitlines()]


async def asked(root: Path, *, sandboxed: bool) -> list[str]:
    """The commands of the day that the agent `build` asks about."""
    settings = SandboxSettings(level="standard", allow_sandboxed=sandboxed)
    box = OsSandbox(lambda root: settings, World(home=str(root.parent)), temporary)
    processes = Processes(base={"PATH": os.environ["PATH"], "HOME": str(root.parent)}, sandbox=box)
    tools: Sequence[Tool] = make_tools(processes, asks_for_network=sandboxed)
    bash = next(tool for tool in tools if tool.name == "bash")
    agents = find_agents(str(root), trusted=False, custom=False)
    sources = [agents["build"].rules, common_rules()]
    found = []
    for command in commands():
        more = {"network": True} if sandboxed and NETWORK.match(command) else {}
        facts = await Workspace(root).judge(bash, command=command, **more)
        if permit.decide(facts, bash.key, bash.effect, sources).action == "ask":
            found.append(command)
    await box.close()
    return found


@pytest.mark.needs("bwrap")
async def test_most_questions_are_saved(tmp_path: Path) -> None:
    root = tmp_path.resolve() / "work"
    (root / "src").mkdir(parents=True)
    before, after = await asked(root, sandboxed=False), await asked(root, sandboxed=True)
    assert set(after) < set(before)
    assert len(after) <= OTHERS < len(before) / 3
    for command in ("make test", "pytest -q", "npm test", 'git commit -m "Parse empty blocks"'):
        assert command in before
        assert command not in after
    for command in ("git push", "pip install requests", "cat /etc/os-release"):
        assert command in after


async def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place).resolve() / "work"
        (root / "src").mkdir(parents=True)
        before, after = await asked(root, sandboxed=False), await asked(root, sandboxed=True)
    print(f"{len(commands())} commands: {len(before)} questions, {len(after)} with allow_sandboxed")
    for command in after:
        print(f"  {command!r}")


if __name__ == "__main__":
    asyncio.run(main())
