"""A workspace with the tools that find."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from magy_server.core.errors import ToolError
from magy_server.core.tool import Result, Tool
from magy_server.core.values import Action
from magy_server.tools.search.search_tools import search_tools

from .conftest import Context, Workspace

MATCHES, RESULTS = 10, 8


@dataclass
class Looking(Context):
    """`rules`: what is not `allow`, by file name."""

    rules: dict[str, Action] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def may_read(self, path: str, within: str = "") -> Action:
        self.asked.append(path)
        return self.rules.get(Path(path).name, "allow")


class Searcher(Workspace):
    def __init__(self, root: Path, program: str = "rg") -> None:
        self.rules: dict[str, Action] = {}
        super().__init__(root)
        tools = search_tools(program, MATCHES, RESULTS)
        self.tools: dict[str, Tool] = {tool.name: tool for tool in tools}

    def context(self, call: str = "1.0") -> Looking:
        return Looking(str(self.root), call=call, editor=self.editor, rules=self.rules)

    async def do(self, name: str, **arguments: Any) -> Result:
        return await self.run(self.tools[name], **arguments)

    async def grep(self, pattern: str, **arguments: Any) -> list[str]:
        return (await self.do("grep", pattern=pattern, **arguments)).for_model.split("\n")

    async def glob(self, pattern: str, **arguments: Any) -> list[str]:
        return (await self.do("glob", pattern=pattern, **arguments)).for_model.split("\n")

    async def refusal(self, name: str, **arguments: Any) -> str:
        with pytest.raises(ToolError) as caught:
            await self.do(name, **arguments)
        return caught.value.message

    def repository(self, folder: str = ".") -> None:
        (self.root / folder / ".git").mkdir(parents=True)


def searcher(tmp_path: Path, program: str = "rg") -> Searcher:
    root = tmp_path.resolve() / "work"
    root.mkdir()
    return Searcher(root, program)
