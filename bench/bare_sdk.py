"""The floor of everything with a model: the provider's SDK, and nothing around it.

    python -m bench.bare_sdk BASE_URL DATABASE

Each line of standard input is a prompt; each line of standard output tells, in seconds, how long
its answer took (`wall`), when its first delta was there (`first`), and the processor time of this
process (`cpu`). When the model calls `read_file`, the line is read from the file and sent back,
after one durable append to DATABASE, until it calls no more: the least of an agent's loop. With
`spawn_agent` it starts another such loop beside this one, and with `wait_agent` all that were
started have to end.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

from anthropic import AsyncAnthropic


class Chat:
    def __init__(self, client: AsyncAnthropic, log: sqlite3.Connection) -> None:
        self._client = client
        self._log = log
        self.first = 0.0

    async def ask(self, prompt: str) -> None:
        self.first = 0.0
        messages: list[Any] = [{"role": "user", "content": prompt}]
        children: list[asyncio.Task[None]] = []
        async with asyncio.TaskGroup() as group:
            while calls := await self._reply(messages):
                content = []
                for call in calls:
                    said = await self._run(call["name"], call["input"], group, children)
                    result = {"type": "tool_result", "tool_use_id": call["id"], "content": said}
                    content.append(result)
                messages += [{"role": "assistant", "content": calls}]
                messages += [{"role": "user", "content": content}]
                self._log.execute("INSERT INTO log VALUES (?)", (json.dumps(messages[-2:]),))

    async def _run(
        self, name: str, arguments: Any, group: asyncio.TaskGroup, children: list[Any]
    ) -> str:
        if name == "spawn_agent":
            other = Chat(self._client, self._log)
            children.append(group.create_task(other.ask(arguments["prompt"])))
            return "started"
        if name == "wait_agent":
            await asyncio.gather(*children)
            return "all have ended"
        lines: list[str] = Path(arguments["path"]).read_text().splitlines()
        return lines[int(arguments["offset"]) - 1]

    async def _reply(self, messages: list[Any]) -> list[dict[str, Any]]:
        calls: list[dict[str, Any]] = []
        arguments = ""
        stream = await self._client.messages.create(
            model="bench", max_tokens=32_000, messages=messages, stream=True
        )
        async for event in stream:
            if event.type == "content_block_start" and event.content_block.type == "tool_use":
                block = event.content_block
                calls.append({"type": "tool_use", "id": block.id, "name": block.name})
                arguments = ""
            elif event.type == "content_block_delta":
                self.first = self.first or time.perf_counter()
                if event.delta.type == "input_json_delta":
                    arguments += event.delta.partial_json
            elif event.type == "content_block_stop" and calls:
                calls[-1]["input"] = json.loads(arguments)
        return calls


async def main(base_url: str, database: str) -> None:
    log = sqlite3.connect(database, isolation_level=None)
    log.execute("PRAGMA journal_mode = WAL")
    log.execute("PRAGMA synchronous = FULL")
    log.execute("CREATE TABLE log (body TEXT)")
    async with AsyncAnthropic(api_key="none", base_url=base_url, max_retries=0) as client:
        chat = Chat(client, log)
        while prompt := await asyncio.to_thread(sys.stdin.readline):
            used, began = time.process_time(), time.perf_counter()
            await chat.ask(prompt.strip())
            wall, cpu = time.perf_counter() - began, time.process_time() - used
            print(json.dumps({"wall": wall, "cpu": cpu, "first": chat.first - began}), flush=True)
    log.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
