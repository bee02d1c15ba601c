"""A small language client for tests: it drives a real process over real pipes.

    async with Client.spawn([sys.executable, "-m", "magy_server", "lsp"], cwd=tmp_path) as client:
        await client.initialize(root=tmp_path)
        answer = await client.request("magy/x", {...})
        update = await client.wait_for("magy/session/update", lambda p: p["kind"] == "event")

`SimulatedEditor` keeps documents and answers `workspace/applyEdit` as an editor does, or as a bad
one does: it has a switch for every way in which editors are known to misbehave.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from tests.nursery import Born, born
from tests.patience import PATIENCE

CAPABILITIES: dict[str, Any] = {
    "general": {"positionEncodings": ["utf-16"]},
    "workspace": {
        "applyEdit": True,
        "configuration": True,
        "workspaceEdit": {"documentChanges": True},
    },
    "window": {"workDoneProgress": True},
    "textDocument": {"synchronization": {"didSave": True}},
}
GONE = object()


class RpcError(Exception):
    """The server answered with an error."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(f"{error.get('code')}: {error.get('message')} {error.get('data') or ''}")
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: Any = error.get("data")

    @property
    def reason(self) -> str | None:
        return self.data.get("reason") if isinstance(self.data, dict) else None


class Client:
    """`received` holds every message from the server, in order; `stderr` what it logged."""

    header = rb"Content-Length: (\d+)\r\n\r\n"
    """What every frame must begin with, and exactly that."""

    def __init__(self, process: asyncio.subprocess.Process | Born) -> None:
        self.process = process
        self.received: list[dict[str, Any]] = []
        self.stderr = bytearray()
        self.handlers: dict[str, Callable[[Any], Any]] = {
            "window/workDoneProgress/create": _null,
            "workspace/configuration": lambda params: [None for _ in params["items"]],
        }
        """Server-to-client requests: params -> result, plain or async. RpcError answers one."""
        self._unread: list[dict[str, Any]] = []
        self._arrived = asyncio.Condition()
        self._reading = asyncio.Event()
        self._reading.set()
        self._ended = False
        self._answers: dict[Any, asyncio.Future[Any]] = {}
        self._ids = itertools.count(1)
        self._replies: set[asyncio.Task[None]] = set()
        self._draining: asyncio.Task[None] | None = None

    @classmethod
    @contextlib.asynccontextmanager
    async def spawn(
        cls,
        command: Sequence[str],
        *,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Client]:
        """Starts the server; `env` is added to the environment. At the end it is shut down in
        order if it still runs, and killed if it does not go. Modules of ours come from the
        nursery, any other command is started anew."""
        process: asyncio.subprocess.Process | Born
        environment = {**os.environ, **(env or {})}
        if tuple(command[:2]) == (sys.executable, "-m"):
            process = await born(command, os.fspath(cwd or os.getcwd()), environment)
        else:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=cwd,
                env=environment,
                limit=64 * 1024,
            )
        client = cls(process)
        async with asyncio.TaskGroup() as group:
            client._draining = group.create_task(client._drain())
            jobs = [group.create_task(client._read()), client._draining]
            try:
                yield client
            finally:
                client.resume()
                await client._leave()
                for job in (*jobs, *client._replies):
                    job.cancel()

    # --- requests and notifications -------------------------------------------------------------

    async def initialize(
        self,
        root: str | os.PathLike[str] | None = None,
        capabilities: Mapping[str, Any] | None = None,
        options: Any = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """`initialize` and `initialized`; `capabilities` are added to the usual ones, section by
        section, `options` are the initializationOptions, and `name` is the editor's."""
        merged: dict[str, Any] = {**CAPABILITIES}
        for part, section in (capabilities or {}).items():
            old = merged.get(part)
            both = isinstance(old, dict) and isinstance(section, dict)
            merged[part] = {**old, **section} if both else section
        params: dict[str, Any] = {"processId": os.getpid(), "capabilities": merged, "rootUri": None}
        if root is not None:
            params["rootUri"] = uri_of(root)
            params["workspaceFolders"] = [{"uri": uri_of(root), "name": Path(root).name}]
        if name is not None:
            params["clientInfo"] = {"name": name}
        if options is not None:
            params["initializationOptions"] = options
        result = await self.request("initialize", params)
        self.notify("initialized", {})
        return dict(result)

    async def request(self, method: str, params: Any = None, timeout: float = PATIENCE) -> Any:
        """The result; raises RpcError. Without params the message has none."""
        return await asyncio.wait_for(self.start(method, params)[1], timeout)

    def start(self, method: str, params: Any = None) -> tuple[int, asyncio.Future[Any]]:
        """Sends a request and gives its id and the future of its result."""
        id = next(self._ids)
        answer = asyncio.get_running_loop().create_future()
        self._answers[id] = answer
        if self._ended:
            self._fail(answer)
        else:
            self.send({"jsonrpc": "2.0", "id": id, "method": method} | _params(params))
        return id, answer

    def _fail(self, answer: asyncio.Future[Any]) -> None:
        answer.set_exception(ConnectionError(f"The server ended. Its log: {self.log}"))
        answer.exception()

    def when_idle(self, work: Callable[[], None]) -> None:
        """Now, or after the answers to all requests that are open now."""
        waits = [answer for answer in self._answers.values() if not answer.done()]
        if not waits:
            work()
            return
        waits[-1].add_done_callback(lambda _: self.when_idle(work))

    def cancel(self, id: int) -> None:
        self.notify("$/cancelRequest", {"id": id})

    def notify(self, method: str, params: Any = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method} | _params(params))

    def send(self, message: Any) -> None:
        self.send_raw(frame(json.dumps(message, ensure_ascii=False).encode()))

    def send_raw(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    async def wait_for(
        self,
        method: str,
        match: Callable[[Any], Any] = lambda params: True,
        timeout: float = PATIENCE,
    ) -> Any:
        """The params of the first notification (or server request) that matches, and that no
        earlier call has returned; earlier ones that do not match stay for other calls."""

        def find() -> Any:
            for message in self._unread:
                if message.get("method") == method and match(message.get("params")):
                    self._unread.remove(message)
                    return message
            return None

        async def wait() -> Any:
            async with self._arrived:
                while (message := find()) is None:
                    if self._ended:
                        raise AssertionError(f"The server ended before {method}: {self.log}")
                    await self._arrived.wait()
                return message.get("params")

        try:
            return await asyncio.wait_for(wait(), timeout)
        except TimeoutError:
            seen = [m.get("method") for m in self._unread][-20:]
            raise AssertionError(f"No {method} came. Unread: {seen}. Log: {self.log}") from None

    def forget(self) -> None:
        """What has come so far is not waited for."""
        self._unread.clear()

    async def wait_until(
        self, holds: Callable[[], Any], timeout: float = PATIENCE, why: str = "condition"
    ) -> Any:
        """Waits until `holds()` is true of what was received or kept by handlers."""

        async def wait() -> Any:
            async with self._arrived:
                while not (value := holds()):
                    await self._arrived.wait()
                return value

        try:
            return await asyncio.wait_for(wait(), timeout)
        except TimeoutError:
            raise AssertionError(f"{why} did not come true. Log: {self.log}") from None

    def notifications(self, method: str) -> list[Any]:
        """The params of all notifications of a method so far."""
        return [m.get("params") for m in self.received if m.get("method") == method]

    @property
    def log(self) -> str:
        return self.stderr.decode(errors="replace")[-4000:]

    # --- misbehaving, and the end ---------------------------------------------------------------

    def pause(self) -> None:
        """Stops reading: soon after, the pipe is full."""
        self._reading.clear()

    def resume(self) -> None:
        self._reading.set()

    def close_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    async def exit_code(self, timeout: float = PATIENCE) -> int:
        return await asyncio.wait_for(self.process.wait(), timeout)

    async def ended(self) -> str:
        """Shuts the server down in order; all that it logged."""
        await self._leave()
        assert self._draining is not None
        await self._draining
        return self.log

    async def _leave(self) -> None:
        if self.process.returncode is None:
            with contextlib.suppress(TimeoutError, RpcError, ConnectionError, RuntimeError):
                if not self.process.stdin.is_closing():  # type: ignore[union-attr]
                    await self.request("shutdown", timeout=PATIENCE)
                    self.notify("exit")
                    self.close_input()
                await self.exit_code(timeout=PATIENCE)
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()
        self.close_input()
        with contextlib.suppress(ConnectionError):
            await self.process.stdin.wait_closed()  # type: ignore[union-attr]

    # --- inside ---------------------------------------------------------------------------------

    async def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        buffer = b""
        while True:
            await self._reading.wait()
            data = await stream.read(64 * 1024)
            if not data:
                break
            buffer += data
            while match := re.match(self.header, buffer):
                end = match.end() + int(match[1])
                if len(buffer) < end:
                    break
                await self._received(json.loads(buffer[match.end() : end]))
                buffer = buffer[end:]
            # The header is these bytes and no others: anything else was not written by the outbox.
            assert match or len(buffer) < 120, f"not a frame: {buffer[:200]!r}"
        self._ended = True
        for answer in self._answers.values():
            if not answer.done():
                self._fail(answer)
        async with self._arrived:
            self._arrived.notify_all()

    async def _received(self, message: dict[str, Any]) -> None:
        self.received.append(message)
        if "method" in message:
            self._unread.append(message)
            if "id" in message:
                task = asyncio.create_task(self._reply(message))
                self._replies.add(task)
                task.add_done_callback(self._replies.discard)
        else:
            answer = self._answers.pop(message.get("id"), None)
            if answer is not None and not answer.done():
                if "error" in message:
                    answer.set_exception(RpcError(message["error"]))
                else:
                    answer.set_result(message["result"])
        async with self._arrived:
            self._arrived.notify_all()

    async def _reply(self, message: dict[str, Any]) -> None:
        handler = self.handlers.get(message["method"])
        head = {"jsonrpc": "2.0", "id": message["id"]}
        if handler is None:
            error = {"code": -32601, "message": f"no {message['method']} here"}
            self.send(head | {"error": error})
            return
        try:
            result = handler(message.get("params"))
            if inspect.isawaitable(result):
                result = await result
        except RpcError as error:
            self.send(head | {"error": {"code": error.code, "message": error.message}})
        else:
            if result is not GONE:
                self.send(head | {"result": result})
        async with self._arrived:
            self._arrived.notify_all()

    async def _drain(self) -> None:
        assert self.process.stderr is not None
        while data := await self.process.stderr.read(64 * 1024):
            self.stderr += data


class SimulatedEditor:
    """Documents as an editor keeps them. The switches may be changed at any time:

    refuse        answer applied:false with this reason
    silent        answer applied:true and change nothing
    answer_first  answer before didChange instead of after it
    hook          text -> text, run after an edit and sent in the same didChange (format on save)
    type_before   text the person types at the start just before the edit arrives
    type_after    text the person types at the start right after the edit, before the answer
    close_it      close the document instead of applying
    never_answer  apply nothing, answer nothing
    hold          wait for this before applying, as who asks the person first
    blocking      show an edit only while no request of the client is open, as Eglot does
    line_ends     what inserted line ends are converted to, as VS Code does
    full_sync     send whole texts in didChange
    """

    def __init__(self, client: Client, encoding: str = "utf-16") -> None:
        self.client = client
        self.encoding = encoding
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.edits: list[dict[str, Any]] = []
        """The params of every applyEdit that came."""
        self.saved: list[str] = []
        self.refuse: str | None = None
        self.silent = self.answer_first = self.close_it = self.never_answer = False
        self.full_sync = self.blocking = False
        self.hold: asyncio.Event | None = None
        self.hook: Callable[[str], str] = lambda text: text
        self.type_before = self.type_after = ""
        self.line_ends: str | None = None
        client.handlers["workspace/applyEdit"] = self._apply
        client.handlers["magy/editor/save"] = self._save

    def open(self, path: str | os.PathLike[str], text: str | None = None) -> str:
        """Opens a file (with unsaved `text` if given); the answer is its URI."""
        uri = uri_of(path)
        shown = Path(path).read_bytes().decode() if text is None else text
        self.texts[uri], self.versions[uri] = shown, 1
        item = {"uri": uri, "languageId": "plaintext", "version": 1, "text": shown}
        self.client.notify("textDocument/didOpen", {"textDocument": item})
        return uri

    def text(self, path: str | os.PathLike[str]) -> str:
        return self.texts[uri_of(path)]

    def type(self, path: str | os.PathLike[str], start: int, end: int, new: str) -> None:
        """The person replaces the characters [start, end)."""
        self._replace(uri_of(path), [(start, end, new)])

    def close(self, path: str | os.PathLike[str]) -> None:
        uri = uri_of(path)
        del self.texts[uri], self.versions[uri]
        self.client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    async def _apply(self, params: dict[str, Any]) -> Any:
        self.edits.append(params)
        edit = params["edit"]
        changes: list[tuple[str, int | None, list[Any]]] = [
            (change["textDocument"]["uri"], change["textDocument"]["version"], change["edits"])
            for change in edit.get("documentChanges", ())
        ] + [(uri, None, edits) for uri, edits in edit.get("changes", {}).items()]
        if self.never_answer:
            return GONE
        if self.hold:
            await self.hold.wait()
        if self.refuse is not None:
            return {"applied": False, "failureReason": self.refuse}
        if self.silent:
            return {"applied": True}
        for uri, version, edits in changes:
            if self.type_before:
                self._replace(uri, [(0, 0, self.type_before)])
            if self.close_it:
                self.close(path_of(uri))
                continue
            if version is not None and version != self.versions[uri]:
                return {"applied": False, "failureReason": "the document has changed"}
            if self.blocking:
                self.client.when_idle(lambda uri=uri, edits=edits: self._carry_out(uri, edits))
            elif self.answer_first:
                asyncio.get_running_loop().call_later(0.05, self._carry_out, uri, edits)
            else:
                self._carry_out(uri, edits)
        return {"applied": True}

    def _carry_out(self, uri: str, edits: list[Any]) -> None:
        text = self.texts[uri]
        spans = []
        for edit in edits:
            start, end = (offset(text, edit["range"][k], self.encoding) for k in ("start", "end"))
            new = edit["newText"]
            if self.line_ends is not None:
                new = re.sub(r"\r\n|\r|\n", self.line_ends, new)
            spans.append((start, end, new))
        hooked = self.hook(_spliced(text, spans))
        if hooked != _spliced(text, spans):
            spans = [(0, len(text), hooked)]
        self._replace(uri, spans)
        if self.type_after:
            self._replace(uri, [(0, 0, self.type_after)])

    def _replace(self, uri: str, spans: list[tuple[int, int, str]]) -> None:
        text = self.texts[uri]
        self.texts[uri] = after = _spliced(text, spans)
        self.versions[uri] += 1
        changes: list[dict[str, Any]] = []
        for start, end, new in sorted(spans, reverse=True):  # from the end: positions stay valid
            at = {
                "start": position(text, start, self.encoding),
                "end": position(text, end, self.encoding),
            }
            changes.append({"range": at, "text": new})
        name = {"uri": uri, "version": self.versions[uri]}
        self.client.notify(
            "textDocument/didChange",
            {
                "textDocument": name,
                "contentChanges": [{"text": after}] if self.full_sync else changes,
            },
        )

    def _save(self, params: dict[str, Any]) -> dict[str, bool]:
        uri = params["uri"]
        if self.versions.get(uri) != params["version"]:
            return {"saved": False}
        path = path_of(uri)
        Path(path).write_bytes(self.texts[uri].encode())
        self.saved.append(path)
        self.client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
        return {"saved": True}


def frame(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def uri_of(path: str | os.PathLike[str]) -> str:
    return "file://" + quote(os.fspath(path))


def path_of(uri: str) -> str:
    return unquote(urlsplit(uri).path)


_UNIT = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


def position(text: str, offset: int, encoding: str) -> dict[str, int]:
    """The LSP position of a string offset, worked out the slow and plain way."""
    lines = re.split(r"\r\n|\r|\n", text[:offset])
    if text[offset - 1 : offset + 1] == "\r\n" and offset:
        raise ValueError("No position lies inside a CRLF")
    codec, size = _UNIT[encoding]
    return {"line": len(lines) - 1, "character": len(lines[-1].encode(codec)) // size}


def offset(text: str, position: Mapping[str, int], encoding: str) -> int:
    starts = [0, *(m.end() for m in re.finditer(r"\r\n|\r|\n", text))]
    start = starts[position["line"]]
    line = re.match(r"[^\r\n]*", text[start:])[0]  # type: ignore[index]
    codec, size = _UNIT[encoding]
    units = line.encode(codec)
    assert position["character"] * size <= len(units), f"{position} lies past the line's end"
    return start + len(units[: position["character"] * size].decode(codec))


def _spliced(text: str, spans: Sequence[tuple[int, int, str]]) -> str:
    for start, end, new in sorted(spans, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _params(params: Any) -> dict[str, Any]:
    return {} if params is None else {"params": params}


def _null(params: Any) -> None:
    return None
