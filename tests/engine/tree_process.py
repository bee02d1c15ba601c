"""A process that runs sessions, as told on its standard input, a JSON list a line:

    python -m tests.engine.tree_process STATE SCRIPT

["root", id], ["child", id, prompt], ["run", id], ["prompt", id, text, key], ["open", gate],
["resume"]. It prints what it appends to the log, [session, seq, type], and "ready".
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from magy_server.core.events import Entry
from tests.engine.running import Place, place


def say(value: Any) -> None:
    print(json.dumps(value), flush=True)


def heard(entry: Entry) -> None:
    say([entry.stream.removeprefix("session/"), entry.seq, entry.event.type])


async def obey(at: Place, verb: str, *words: str) -> None:
    match verb:
        case "root":
            await at.root(*words)
        case "child":
            await at.child(*words)
        case "run":
            await at.run(*words)
        case "prompt":
            await at.prompt(*words)
        case "open":
            at.gates.open(*words)


async def main(state: str, script: str) -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async with place(Path(state), script, listener=heard) as at:
        say("ready")
        while line := await reader.readline():
            await obey(at, *json.loads(line))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
