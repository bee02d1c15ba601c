"""Finding files and lines in a large tree, against ripgrep run by itself."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.measure import Failed, Row, Run, in_turn, stopwatch
from magy_server.core.events import Action, Evidence, Facts, Hash
from magy_server.core.ports import Editor
from magy_server.core.tool import Tool
from magy_server.tools.search.search_tools import search_tools

NONE = "no-such-ripgrep"
NOTHING = Evidence()
LINES = 200
"""Of a file; about eight kilobytes."""
NEEDLE = "the_needle"
"""In one file of a hundred."""


def grep(run: Run) -> Row:
    """A word, in a tree of so many files: the whole tool call, permission and page included."""
    return _grep(run, "rg", "grep", 2)


def grep_alone(run: Run) -> Row:
    """The same without ripgrep."""
    return _grep(run, NONE, "grep without ripgrep", None)


def glob(run: Run) -> Row:
    """Names in a tree of so many files: all that match, with their times, the newest first."""
    return _glob(run, "rg", "glob", 4)


def glob_alone(run: Run) -> Row:
    """The same without ripgrep."""
    return _glob(run, NONE, "glob without ripgrep", None)


ROWS = (grep, grep_alone, glob, glob_alone)


def _grep(run: Run, program: str, name: str, target: float | None) -> Row:
    root, files = tree(run)
    bare = ["rg", "--no-config", "--hidden", "--line-number", NEEDLE, str(root)]
    with asyncio.Runner() as loop:
        ours, floor = in_turn(
            run.choose(5, 15),
            lambda: stopwatch(lambda: loop.run(_call(root, program, "grep", pattern=NEEDLE))),
            lambda: stopwatch(lambda: _bare(bare)),
        )
    return Row(f"{name}, {files:,} files", "seconds", ours, floor, target)


def _glob(run: Run, program: str, name: str, target: float | None) -> Row:
    root, files = tree(run)
    bare = ["rg", "--no-config", "--hidden", "--files", "--glob=*7.py", str(root)]
    with asyncio.Runner() as loop:
        ours, floor = in_turn(
            run.choose(5, 15),
            lambda: stopwatch(lambda: loop.run(_call(root, program, "glob", pattern="*7.py"))),
            lambda: stopwatch(lambda: _bare(bare)),
        )
    return Row(f"{name}, {files:,} files", "seconds", ours, floor, target)


def _bare(command: list[str]) -> None:
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)


def tree(run: Run) -> tuple[Path, int]:
    """A repository with files in directories of fifty, and what it ignores."""
    if shutil.which("rg") is None:
        raise Failed("ripgrep (rg) is not installed; there is nothing to compare with")
    files = run.choose(2_000, 10_000, 40_000)
    root = run.directory / f"tree-{files}"
    if root.exists():
        return root, files
    source = random.Random(1)
    words = ["".join(source.choices("abcdefghij_", k=6)) for _ in range(500)]
    texts = [
        "\n".join(" ".join(source.choices(words, k=6)) for _ in range(LINES)) for _ in range(20)
    ]
    (root / ".git").mkdir(parents=True)
    (root / ".gitignore").write_text("build/\n*.log\n/dist\n__pycache__/\n")
    for number in range(files):
        folder = root / f"p{number // 2500}" / f"d{number // 50}"
        folder.mkdir(parents=True, exist_ok=True)
        needle = f"\n{NEEDLE} = {number}\n" if number % 100 == 0 else "\n"
        (folder / f"f{number}.py").write_text(texts[number % 20] + needle)
        if number % 10 == 0:
            (folder / f"f{number}.log").write_text(NEEDLE)
    return root, files


async def _call(root: Path, program: str, name: str, **arguments: Any) -> None:
    tool = _tools(program)[name]
    context = _Context(str(root))
    checked = tool.arguments(arguments)
    context.facts, _ = await tool.facts(context, **checked)
    result = await tool.run(context, **checked)
    if not result.for_model.count("\n"):
        raise Failed(f"{name} found nothing: {result.for_model}")


_KNOWN: dict[str, dict[str, Tool]] = {}


def _tools(program: str) -> Mapping[str, Tool]:
    """Kept, as a server keeps them."""
    if program not in _KNOWN:
        _KNOWN[program] = {tool.name: tool for tool in search_tools(program, 100, 500)}
    return _KNOWN[program]


@dataclass
class _Context:
    """`core.tool.ToolContext` for tools that only look."""

    root: str
    session: str = "bench"
    call: str = "1.0"
    facts: Facts = field(default_factory=Facts)
    editor: Editor | None = None

    def may_read(self, path: str) -> Action:
        return "deny" if os.path.basename(path) == ".env" else "allow"

    def emit(self, text: str) -> None: ...

    async def started(
        self, evidence: Evidence = NOTHING, blobs: Mapping[Hash, bytes] | None = None
    ) -> None:
        raise AssertionError("a search has no effect")

    async def blob(self, hash: Hash) -> bytes:
        raise AssertionError("a search needs no blob")

    async def output_of(self, call: str) -> bytes | None:
        return None

    async def exited(self, call: str, code: int | None, output: bytes) -> None:
        raise AssertionError("a search runs no command")
