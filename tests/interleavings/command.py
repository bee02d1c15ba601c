"""A command of an agent that changes lines of the file of a case while all else goes on."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.patience import PATIENCE

from .editor import Editor, Wire
from .text import TARGETS, Sheet, State, more, tag

TARGET = TARGETS - 1
"""Whose first line the command writes below."""
CHANGES = 2
NAP = 0.02
"""Seconds."""


class Quiet:
    """Between what others do to a file. An editor does not know of two changes at the very same
    time, one on disk and one in it, which of them to keep: people are asked then."""

    def __init__(self) -> None:
        self._steps = 0
        self._changed = asyncio.Condition()
        self.still = False

    @asynccontextmanager
    async def step(self) -> AsyncIterator[None]:
        async with self._changed:
            await self._changed.wait_for(lambda: not self.still)
            self._steps += 1
        try:
            yield
        finally:
            async with self._changed:
                self._steps -= 1
                self._changed.notify_all()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        self.still = True
        async with self._changed:
            await self._changed.wait_for(lambda: not self._steps)
        try:
            yield
        finally:
            async with self._changed:
                self.still = False
                self._changed.notify_all()


def script(path: Path) -> str:
    """Before each change the command waits to be told."""
    lines = []
    for n in range(1, CHANGES + 2):
        go = f"../{path.stem}.go{n}"
        lines.append(f"while [ ! -e {go} ]; do sleep {NAP}; done")
        if n <= CHANGES:
            lines.append(f"sed -i '/^{tag(TARGET)}/a {_line(n)}' {path.name}")
            lines.append(f"echo > ../{path.stem}.done{n}")
    call = json.dumps({"command": "\n".join(lines), "timeout": 600})
    return f"prompt: run it in {path.name}.\ncall: bash {call}\n---\ntext: Done.\n"


def _line(number: int) -> str:
    return f"{more(TARGET)} command {number}"


class Command:
    def __init__(
        self,
        rng: random.Random,
        wire: Wire,
        editor: Editor,
        path: Path,
        sheet: Sheet,
        quiet: Quiet,
    ) -> None:
        self._rng, self._wire, self._editor = rng, wire, editor
        self._path, self._uri, self._sheet, self._quiet = path, path.as_uri(), sheet, quiet

    async def run(self) -> None:
        """One at a time in a folder: what two commands change is of either."""
        async with self._editor.running:
            session = f"command-{self._path.stem}-{os.getpid()}"  # its processes carry that
            about = {"cwd": str(self._path.parent), "sessionId": session}
            await self._wire.request("magy/session/new", about)
            self._wire.sessions[session]
            await self._wire.request("magy/session/subscribe", {"sessionId": session})
            bypass = {"sessionId": session, "configId": "bypass", "value": "on"}
            await self._wire.request("magy/session/set_config_option", bypass)
            said = [{"type": "text", "text": f"run it in {self._path.name}."}]
            prompt = {"sessionId": session, "messageId": "p1", "prompt": said}
            await self._wire.request("magy/session/prompt", prompt)
            for number in range(1, CHANGES + 1):
                await asyncio.sleep(self._rng.random() * 0.3)
                async with self._quiet.alone():
                    await self._change(number)
            await asyncio.sleep(self._rng.random() * 0.3)
            self._go(CHANGES + 1)
            await self._wire.heard(session, idle)

    async def _change(self, number: int) -> None:
        self._editor.save(self._uri)
        await self._heard()
        self._go(number)
        done = self._path.parent.parent / f"{self._path.stem}.done{number}"
        async with asyncio.timeout(PATIENCE):
            while not done.exists():
                await asyncio.sleep(NAP)
        text = self._path.read_text(encoding="utf-8")
        self._editor.traces[self._uri].append(f"the command makes change {number}")
        self._editor.load(self._uri, text)
        await self._heard()  # a person does not save it again before Magy could look at the disk
        base, first, *rest = self._sheet.states[TARGET].base, *self._sheet.states[TARGET].text
        self._sheet.states[TARGET] = State(base, (first, _line(number), *rest))

    async def _heard(self) -> None:
        """All that the editor has said so far."""
        await self._wire.request("magy/review/get", {"uri": self._uri})

    def _go(self, number: int) -> None:
        (self._path.parent.parent / f"{self._path.stem}.go{number}").touch()


def idle(message: dict[str, object]) -> bool:
    params = message["params"]
    update = params.get("update", {}) if isinstance(params, dict) else {}
    return update.get("sessionUpdate") == "state_update" and update.get("state") == "idle"
