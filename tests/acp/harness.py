"""An ACP client at a real `magy acp`, over real stdio, with a scripted model.

`AcpClient.files` are the buffers of the editor that it plays; `answers` what it says when it is
asked for permission.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

from tests.lsp.client import RpcError
from tests.nursery import born
from tests.patience import PATIENCE

MAGY = (sys.executable, "-m", "magy_server", "acp")
FS = {"fs": {"readTextFile": True, "writeTextFile": True}}
ASKING = {"permission": {"edit": "ask"}, "titles": False}
GONE = object()


class AcpClient:
    """`received`: every message, in order. `permission`: chooses an option's id; None leaves the
    question unanswered."""

    def __init__(self, process: Any, root: Path) -> None:
        self.process = process
        self.root = root
        self.received: list[dict[str, Any]] = []
        self.stderr = bytearray()
        self.files: dict[str, str] = {}
        self.permission: Callable[[dict[str, Any]], str | None] = lambda params: "allow_once"
        self.handlers: dict[str, Callable[[dict[str, Any]], Any]] = {
            "session/request_permission": self._permit,
            "fs/read_text_file": self._read_file,
            "fs/write_text_file": self._write_file,
        }
        self._ids = itertools.count(1)
        self.last = 0
        """The id of the last request."""
        self._answers: dict[Any, asyncio.Future[Any]] = {}
        self._changed = asyncio.Condition()
        self._ended = False

    # --- asking ---------------------------------------------------------------------------------

    def send(self, message: Mapping[str, Any]) -> None:
        self.send_raw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def send_raw(self, data: bytes) -> None:
        self.process.stdin.write(data)

    def notify(self, method: str, **params: Any) -> None:
        self.send({"method": method, "params": params})

    def begin(self, method: str, params: Any = None) -> asyncio.Future[Any]:
        id = self.last = next(self._ids)
        future = self._answers[id] = asyncio.get_running_loop().create_future()
        self.send({"id": id, "method": method, "params": {} if params is None else params})
        return future

    async def request(self, method: str, **params: Any) -> Any:
        async with asyncio.timeout(PATIENCE):
            return await self.begin(method, params)

    async def initialize(self, version: int = 1, **capabilities: Any) -> Any:
        about = capabilities.setdefault("_meta", {})
        about.setdefault("magy", {"settings": ASKING})
        return await self.request(
            "initialize", protocolVersion=version, clientCapabilities=capabilities,
            clientInfo={"name": "test", "version": "1"},
        )  # fmt: skip

    async def new(self, **params: Any) -> str:
        made = await self.request("session/new", cwd=str(self.root), mcpServers=[], **params)
        return str(made["sessionId"])

    def ask(self, session: str, text: str) -> asyncio.Future[Any]:
        prompt = [{"type": "text", "text": text}]
        return self.begin("session/prompt", {"sessionId": session, "prompt": prompt})

    async def turn(self, session: str, text: str) -> Any:
        async with asyncio.timeout(PATIENCE):
            return await self.ask(session, text)

    # --- what came ------------------------------------------------------------------------------

    def updates(self, kind: str, session: str | None = None) -> list[dict[str, Any]]:
        return [
            one["params"]["update"]
            for one in self.received
            if one.get("method") == "session/update"
            and one["params"]["update"]["sessionUpdate"] == kind
            and session in (None, one["params"]["sessionId"])
        ]

    def said(self, session: str | None = None) -> str:
        chunks = self.updates("agent_message_chunk", session)
        return "".join(chunk["content"]["text"] for chunk in chunks)

    def asked(self, method: str) -> list[dict[str, Any]]:
        return [one for one in self.received if one.get("method") == method]

    async def until(self, true: Callable[[], Any]) -> Any:
        """Waits until it is true, of what has come; returns what it returned."""
        async with asyncio.timeout(PATIENCE), self._changed:
            while not (found := true()):
                if self._ended:
                    raise AssertionError(f"the server ended: {self.stderr.decode()}")
                await self._changed.wait()
            return found

    # --- the client's part ----------------------------------------------------------------------

    def _permit(self, params: dict[str, Any]) -> Any:
        chosen = self.permission(params)
        if chosen is None:
            return GONE
        return {"outcome": {"outcome": "selected", "optionId": chosen}}

    def _read_file(self, params: dict[str, Any]) -> Any:
        path = params["path"]
        if path in self.files:
            return {"content": self.files[path]}
        try:
            return {"content": Path(path).read_text()}
        except OSError as error:
            raise RpcError({"code": -32002, "message": str(error)}) from None

    def _write_file(self, params: dict[str, Any]) -> Any:
        if params["path"] in self.files:
            self.files[params["path"]] = params["content"]
        Path(params["path"]).write_text(params["content"])
        return {}

    async def read(self) -> None:
        buffer = b""
        while data := await self.process.stdout.read(65536):
            *lines, buffer = (buffer + data).split(b"\n")
            async with self._changed:
                for line in lines:
                    self._receive(json.loads(line))
                self._changed.notify_all()
        async with self._changed:
            self._ended = True
            self._changed.notify_all()
        for future in self._answers.values():
            if not future.done():
                future.cancel()

    def _receive(self, message: dict[str, Any]) -> None:
        self.received.append(message)
        if "method" not in message:
            future = self._answers.pop(message["id"], None)
            if future is not None and not future.done():
                if "error" in message:
                    future.set_exception(RpcError(message["error"]))
                else:
                    future.set_result(message["result"])
        elif "id" in message and (handler := self.handlers.get(message["method"])):
            try:
                result = handler(message["params"])
            except RpcError as error:
                about = {"code": error.code, "message": error.message}
                self.send({"id": message["id"], "error": about})
                return
            if result is not GONE:
                self.send({"id": message["id"], "result": result})

    async def drain(self) -> None:
        while data := await self.process.stderr.read(65536):
            self.stderr += data

    async def leave(self) -> int:
        """Closes the input; the exit code."""
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        async with asyncio.timeout(PATIENCE):
            code: int = await self.process.wait()
            return code


@contextlib.asynccontextmanager
async def client(
    root: Path, state: Path, script: str, *, words: tuple[str, ...] = (), **env: str
) -> AsyncIterator[AcpClient]:
    """A client before `initialize`. `words`: more of the command line."""
    state.mkdir(parents=True, exist_ok=True)
    file = state / "model.script"
    file.write_text(script, encoding="utf-8")
    environment = {
        **os.environ, "MAGY_STATE_DIR": str(state), "MAGY_CONFIG_DIR": str(state),
        "MAGY_SCRIPT": str(file), **env,
    }  # fmt: skip
    process = await born((*MAGY, *words), str(root), environment)
    one = AcpClient(process, root)
    async with asyncio.TaskGroup() as group:
        jobs = [group.create_task(one.read()), group.create_task(one.drain())]
        try:
            yield one
        finally:
            with contextlib.suppress(TimeoutError):
                await one.leave()
            if process.returncode is None:
                process.kill()
            for job in jobs:
                job.cancel()
