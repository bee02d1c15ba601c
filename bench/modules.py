"""How many of Magy's modules a turn enters: whoever reads along must know them."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from bench.measure import TOP, Failed, Row, Run
from bench.peer import environment

SERVER = str(TOP / "magy_server") + os.sep
FOLD = "core/state/fold.py"
SCRIPT = """prompt: hello
text: Hello.

prompt: edit
call: read_file {"path": "a.py"}
---
call: edit_file {"path": "a.py", "old_text": "two", "new_text": "deux"}
---
text: Done.
"""
HELLO, EDIT, SWITCHES = 30, 105, 2251
"""What it was while features were part of the engine."""


def hello(run: Run) -> Row:
    """Of the engine, in a turn of one answer."""
    modules = counted(run, "hello")["modules"]
    own = sum(module.startswith("engine/") for module in modules)
    return Row("engine's modules in a hello", "modules", own, HELLO, 0.5)


def edit(run: Run) -> Row:
    """In a turn with one edit, which comes under review."""
    found = counted(run, "edit")
    return Row("modules in an edit", "modules", len(found["modules"]), EDIT, 0.5)


def switches(run: Run) -> Row:
    """How often a call leads from one module into another, in that turn."""
    found = counted(run, "edit")
    return Row("switches between them in an edit", "modules", found["switches"], SWITCHES, 0.5)


ROWS = (hello, edit, switches)


def counted(run: Run, prompt: str) -> Mapping[str, Any]:
    home = run.fresh("modules")
    (home / "project").mkdir()
    (home / "project/a.py").write_text("one\ntwo\nthree\n")
    (home / "model.script").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-m", "bench.modules", str(home), prompt], cwd=TOP, check=False,
        env=environment(home) | {"MAGY_SCRIPT": str(home / "model.script")},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    if done.returncode:
        raise Failed(done.stderr[-2000:])
    return json.loads(done.stdout)  # type: ignore[no-any-return]


class Entered:
    """The modules that were entered, by path below `magy_server`, and how often an event was folded
    into a state of a session. Use as a profile function."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self.switches = self.folds = 0
        self._last = ""

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(SERVER):
            module = file.removeprefix(SERVER)
            self.modules.add(module)
            self.switches += module != self._last
            self.folds += frame.f_code.co_qualname == "apply" and module == FOLD
            self._last = module


async def _turn(home: Path, prompt: str) -> tuple[Entered, int]:
    """Returns also how many events the turn appended."""
    from magy_server.app import compose
    from magy_server.core.values import Text

    entered, root = Entered(), str(home / "project")
    async with compose([root], {}) as (service, _):
        session = await service.open("s", root, root, "build", "")
        moved, before = asyncio.Event(), session.state.seq
        session.watch(moved.set)
        threading.setprofile(entered)
        sys.setprofile(entered)
        await service.prompt("s", "p", [Text(text=prompt)], "steer")
        while session.state.turns < 1 or session.state.turn:
            moved.clear()
            await moved.wait()
        sys.setprofile(None)
        threading.setprofile(None)
        events = session.state.seq - before
    return entered, events


def main() -> None:
    found, events = asyncio.run(_turn(Path(sys.argv[1]), sys.argv[2]))
    told = {"switches": found.switches, "folds": found.folds, "events": events}
    print(json.dumps({"modules": sorted(found.modules), **told}))


if __name__ == "__main__":
    main()
