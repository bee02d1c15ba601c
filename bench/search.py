"""Finding files and lines in a large tree, against ripgrep run by itself."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from bench.measure import Failed, Row, Run, in_turn, stopwatch
from bench.peer import MAGY, Peer
from magy_server.core.no_editor import NO_EDITOR
from magy_server.core.ports import Editor
from magy_server.core.tool import Tool
from magy_server.core.values import Action, Evidence, Facts, Hash
from magy_server.tools.search import ripgrep_program
from magy_server.tools.search.search_tools import search_tools

NOTHING = Evidence()
LINES = 200
"""Of a file; about eight kilobytes."""
NEEDLE = "the_needle"
"""In one file of a hundred."""


def grep(run: Run) -> Row:
    """A word, in a tree of so many files: the whole tool call, permission and page included."""
    return _beside(run, "grep", NEEDLE, ["--line-number", NEEDLE], 2)


def glob(run: Run) -> Row:
    """Names in a tree of so many files: all that match, with their times, the newest first."""
    return _beside(run, "glob", "*7.py", ["--files", "--glob=*7.py"], 4)


def glob_names(run: Run) -> Row:
    """The same in a tree of many files, of which few match."""
    root, files = names(run)
    return _compared(
        run, root, f"{files:,} empty", "glob", "*99.py", ["--files", "--glob=*99.py"], 1.3
    )


def first_name(run: Run) -> Row:
    """What the first `@` in a prompt waits for, in a server that has just started: it looks at the
    names of all files, which ripgrep lists."""
    root, files = names(run)
    bare = [_ripgrep(), "--no-config", "--hidden", "--files", str(root)]
    ours, floor = in_turn(
        run.choose(3, 7), lambda: _first_name(run, root), lambda: stopwatch(lambda: _bare(bare))
    )
    return Row(f"first name after @, {files:,} files", "seconds", ours, floor, 2)


ROWS = (grep, glob, glob_names, first_name)


def _first_name(run: Run, root: Path) -> float:
    """Seconds until the names are there. The server is at rest before it is asked."""
    with Peer(run, *MAGY, state=run.fresh("state")) as peer:
        peer.initialize(root)
        peer.request("magy/agent/list")
        time.sleep(1)
        params = {"cwd": str(root), "before": "@f99"}

        def ask() -> None:
            if not peer.request("magy/prompt/complete", **params)["items"]:
                raise Failed("no file was offered")

        return stopwatch(ask)


def names(run: Run) -> tuple[Path, int]:
    """A repository with many empty files in directories of a hundred."""
    files = run.choose(20_000, 100_000)
    root = run.directory / f"names-{files}"
    if not root.exists():
        (root / ".git").mkdir(parents=True)
        for number in range(files):
            folder = root / f"p{number // 10_000}" / f"d{number // 100}"
            if number % 100 == 0:
                folder.mkdir(parents=True)
            (folder / f"f{number}.py").touch()
    return root, files


def _beside(run: Run, name: str, pattern: str, options: list[str], target: float) -> Row:
    root, files = tree(run)
    return _compared(run, root, f"{files:,}", name, pattern, options, target)


def _compared(
    run: Run, root: Path, files: str, name: str, pattern: str, options: list[str], target: float
) -> Row:
    """The tool against the same ripgrep run by itself."""
    bare = [_ripgrep(), "--no-config", "--hidden", *options, str(root)]
    with asyncio.Runner() as loop:
        ours, floor = in_turn(
            run.choose(5, 15),
            lambda: stopwatch(lambda: loop.run(_call(root, name, pattern))),
            lambda: stopwatch(lambda: _bare(bare)),
        )
    return Row(f"{name}, {files} files", "seconds", ours, floor, target)


def _ripgrep() -> str:
    for path in ripgrep_program.candidates("rg"):
        said = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
        if ripgrep_program.suits(ripgrep_program.version(said.stdout)):
            return path
    raise Failed(ripgrep_program.MISSING)


def _bare(command: list[str]) -> None:
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)


def tree(run: Run) -> tuple[Path, int]:
    """A repository with files in directories of fifty, and what it ignores."""
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


async def _call(root: Path, name: str, pattern: str) -> None:
    tool = _tools()[name]
    context = _Context(str(root))
    checked = tool.arguments({"pattern": pattern})
    context.facts, _ = await tool.facts(context, **checked)
    result = await tool.run(context, **checked)
    if not result.for_model.count("\n"):
        raise Failed(f"{name} found nothing: {result.for_model}")


@cache
def _tools() -> Mapping[str, Tool]:
    """Kept, as a server keeps them."""
    return {tool.name: tool for tool in search_tools("rg", 100, 500)}


@dataclass
class _Context:
    """`core.tool.ToolContext` for tools that only look."""

    root: str
    session: str = "bench"
    call: str = "1.0"
    facts: Facts = field(default_factory=Facts)
    editor: Editor = NO_EDITOR

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
