"""The demo has a very small editor: one language client over stdio, with live buffers."""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from magy_server.jsonrpc.messages import encode
from magy_server.jsonrpc.outbox import headed
from magy_server.lsp.frames import FrameDecoder
from magy_server.tasks import to_end

Params = dict[str, Any]


class Editor:
    """Starts `magy lsp` and holds documents as (version, text). `heard` gets each notification. If
    it raises OSError, nothing more is heard: `failed` gets that, and so does who asks for
    something."""

    def __init__(
        self, heard: Callable[[str, Params], None], failed: Callable[[Exception], None]
    ) -> None:
        self.documents: dict[str, tuple[int, str]] = {}
        self._heard = heard
        self._failed = failed
        self._failure: Exception | None = None
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None

    async def start(self, root: Path, environ: Mapping[str, str], log: Path) -> None:
        with log.open("wb") as stderr:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "magy_server", "lsp",
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=stderr,
                env={**os.environ, **environ}, cwd=root,
            )  # fmt: skip
        self._reading = asyncio.create_task(self._read())
        folder = {"uri": root.as_uri(), "name": root.name}
        offers = {"interactions": True, "editor": {"save": True}}
        await self.request("initialize", {
            "processId": os.getpid(),
            "rootUri": root.as_uri(),
            "workspaceFolders": [folder],
            "capabilities": {
                "general": {"positionEncodings": ["utf-32"]},
                "workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}},
            },
            "initializationOptions": {
                "magy": {"client": {"name": "demo"}, "capabilities": offers}
            },
        })  # fmt: skip
        self.notify("initialized", {})

    async def stop(self) -> None:
        await self.request("shutdown", {})
        self.notify("exit", {})
        assert self._process and self._reading
        await self._process.wait()
        await self._reading

    async def aclose(self) -> None:
        """Hears nothing more, and waits for the server, which ends with its input: it may have been
        left in the middle of the story."""
        await to_end(self._leave())

    async def _leave(self) -> None:
        if self._process and self._process.stdin and self._reading:
            self._reading.cancel()
            await asyncio.wait([self._reading])
            self._process.stdin.close()
            await self._process.communicate()

    def open(self, path: Path, text: str) -> None:
        uri = path.as_uri()
        self.documents[uri] = (1, text)
        document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})

    def type(self, path: Path, line: int, text: str) -> None:
        """Puts `text` (whole lines) before a line, counted from 0."""
        uri = path.as_uri()
        version, before = self.documents[uri]
        at = {"line": line, "character": 0}
        offset = _offset(before, at)
        self.documents[uri] = (version + 1, before[:offset] + text + before[offset:])
        self.notify("textDocument/didChange", {
            "textDocument": {"uri": uri, "version": version + 1},
            "contentChanges": [{"range": {"start": at, "end": at}, "text": text}],
        })  # fmt: skip

    def save(self, path: Path) -> None:
        path.write_text(self.documents[path.as_uri()][1], encoding="utf-8")
        self.notify("textDocument/didSave", {"textDocument": {"uri": path.as_uri()}})

    async def request(self, method: str, params: Params) -> Any:
        """Raises RuntimeError with the server's own words for an error, or what `heard` raised."""
        if self._failure:
            raise self._failure
        id = next(self._ids)
        self._waiting[id] = asyncio.get_running_loop().create_future()
        self._send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        return await self._waiting[id]

    def notify(self, method: str, params: Params) -> None:
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def _send(self, message: Params) -> None:
        assert self._process and self._process.stdin
        self._process.stdin.write(headed(encode(message)))

    async def _read(self) -> None:
        failure: Exception = RuntimeError("The server exited; see its log.")
        try:
            await self._hear()
        except OSError as error:  # what is shown reaches nobody
            failure = error
            self._failed(error)
        finally:
            self._failure = failure
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(failure)

    async def _hear(self) -> None:
        assert self._process and self._process.stdout
        decoder = FrameDecoder()
        while data := await self._process.stdout.read(65536):
            for message in decoder.feed(data):
                assert isinstance(message, dict), f"the server sent {message!r}"
                self._receive(message)

    def _receive(self, message: Params) -> None:
        if "method" not in message:
            answer = self._waiting.pop(message["id"])
            if "error" in message:
                answer.set_exception(RuntimeError(message["error"]["message"]))
            else:
                answer.set_result(message["result"])
        elif "id" in message:
            self._serve(message)
        else:
            self._heard(message["method"], message["params"])

    def _serve(self, message: Params) -> None:
        result: Any = None
        if message["method"] == "workspace/applyEdit":
            result = self._apply(message["params"]["edit"]["documentChanges"])
        elif message["method"] == "magy/editor/save":
            uri = message["params"]["uri"]
            same = self.documents[uri][0] == message["params"]["version"]
            if same:
                self.save(Path(uri.removeprefix("file://")))
            result = {"saved": same}
        self._send({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def _apply(self, changes: list[Params]) -> Params:
        for change in changes:
            uri, version = change["textDocument"]["uri"], change["textDocument"]["version"]
            have, text = self.documents[uri]
            if version is not None and version != have:
                return {"applied": False, "failureReason": "the buffer has changed"}
            for edit in reversed(change["edits"]):
                start = _offset(text, edit["range"]["start"])
                end = _offset(text, edit["range"]["end"])
                text = text[:start] + edit["newText"] + text[end:]
            self.documents[uri] = (have + 1, text)
            self.notify("textDocument/didChange", {
                "textDocument": {"uri": uri, "version": have + 1},
                "contentChanges": [{"text": text}],
            })  # fmt: skip
        return {"applied": True}


def _offset(text: str, position: Params) -> int:
    """Positions count code points (utf-32 was negotiated); lines end with \\n here."""
    lines = text.split("\n")
    before = sum(len(line) + 1 for line in lines[: position["line"]])
    return before + int(position["character"])
