"""A language server with the real transport and a toy behind it: what the transport tests drive."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from magy_server.core.errors import Conflict, InvalidRequest, MagyError, NotFound
from magy_server.jsonrpc.descriptors import claim
from magy_server.lsp.server import LEAVING, Answering, Server, run
from tests.lsp.stalls import worst_stall

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

STUBBORN = os.environ.get("TOY_STOP") == "never"
"""It does not stop when it is told to."""
ERRORS: Mapping[str, Exception] = {
    "invalid": InvalidRequest("no such thing"),
    "not_found": NotFound("no session s1"),
    "conflict": Conflict("the log moved on"),
    "failed": MagyError("it does not want to", reason="mood"),
    "bug": ZeroDivisionError("a bug"),
}


class Countdown:
    """A source of `total` messages, which only counts what it still owes."""

    def __init__(self, total: int, size: int, name: str) -> None:
        self.next = 0
        self.total = total
        self.text = "x" * size
        self.name = name

    async def pull(self, budget: int) -> Sequence[Mapping[str, Any]]:
        count = min(self.total - self.next, max(1, budget // (len(self.text) + 100)))
        first, self.next = self.next, self.next + count
        return [
            {
                "jsonrpc": "2.0",
                "method": "magy/chunk",
                "params": {"source": self.name, "n": n, "text": self.text},
            }
            for n in range(first, first + count)
        ]


class Broken:
    async def pull(self, budget: int) -> Sequence[Mapping[str, Any]]:
        raise ValueError("this stream is broken")


class Toy:
    version = "0"
    experimental: Mapping[str, Any] = {"version": "0", "protocol": 1}
    commands: Sequence[str] = ("toy.echo", "toy.fail", "toy.sleep")
    standard: Sequence[str] = ()

    def __init__(self) -> None:
        self.cancelled: list[str] = []
        self.clicks: list[str] = []

    def configure(self, server: LanguageServer) -> None:
        pass

    async def start(self, server: Server) -> Answering:
        self.server = server
        server.connection.methods["magy/anyway"] = self.on_echo
        if os.environ.get("TOY_START") == "fail":
            raise MagyError("magy.toml, line 3: there is no model of that name", reason="config")
        await asyncio.sleep(float(os.environ.get("TOY_DELAY", "0")))
        self.editor = server.editor(["magy/editor/save"])
        self.editor._verify = 1.0
        self.editor._patience = 1.0
        commands = {
            "toy.echo": self._command, "toy.fail": self._fail_command, "toy.sleep": self._snooze,
        }  # fmt: skip
        names = [name for name in dir(self) if name.startswith("on_")]
        methods = {"magy/" + name[3:]: getattr(self, name) for name in names}
        return Answering(methods, commands)

    async def stop(self, why: str) -> None:
        print(f"stopped because {why}", file=sys.stderr, flush=True)
        if STUBBORN:
            await asyncio.Event().wait()

    async def _command(self, arguments: list[Any]) -> Any:
        return arguments

    async def _fail_command(self, arguments: list[Any]) -> Any:
        raise NotFound("nothing to command")

    async def _snooze(self, arguments: list[Any]) -> Any:
        return await self.on_sleep({"name": "command", "seconds": 60})

    async def on_echo(self, params: dict[str, Any]) -> Any:
        return params

    async def on_sleep(self, params: dict[str, Any]) -> Any:
        try:
            await asyncio.sleep(params["seconds"])
        except asyncio.CancelledError:
            self.cancelled.append(params.get("name", ""))
            raise
        return "slept"

    async def on_cancelled(self, params: dict[str, Any]) -> Any:
        return self.cancelled

    async def on_fail(self, params: dict[str, Any]) -> Any:
        raise ERRORS[params["how"]]

    async def on_spawned_bug(self, params: dict[str, Any]) -> Any:
        async def bug() -> None:
            raise ZeroDivisionError("nobody foresaw this")

        self.server.connection.spawn(bug())

    async def on_endless_thread(self, params: dict[str, Any]) -> Any:
        self.server.connection.spawn(asyncio.to_thread(threading.Event().wait))

    async def on_unserializable(self, params: dict[str, Any]) -> Any:
        return {1, 2}

    async def on_undecodable(self, params: dict[str, Any]) -> Any:
        return "a name with " + os.fsdecode(b"\xff") + f" and {2**70}"

    async def on_large(self, params: dict[str, Any]) -> Any:
        return "x" * params["size"]

    async def on_noise(self, params: dict[str, Any]) -> Any:
        """Everything that may write to standard output tries to."""
        print("a stray print", flush=True)
        os.write(1, b"a C library\n")
        child = await asyncio.create_subprocess_shell("cat; echo a child process; ls /proc/$$/fd")
        return await child.wait()

    async def on_stream(self, params: dict[str, Any]) -> Any:
        for name in params.get("names", ["a"]):
            source = Countdown(params["count"], params["size"], name)
            self.server.connection.outbox.wake(source)
        return "started"

    async def on_broken_stream(self, params: dict[str, Any]) -> Any:
        self.server.connection.outbox.wake(Broken())
        return None

    async def on_memory(self, params: dict[str, Any]) -> Any:
        import resource

        return {
            "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
            "waiting": self.server.connection.outbox.waiting,
        }

    async def on_ticks(self, params: dict[str, Any]) -> Any:
        worst = await worst_stall(params["seconds"])
        print(f"worst stall {worst:.3f}", file=sys.stderr, flush=True)
        return worst

    async def on_ask(self, params: dict[str, Any]) -> Any:
        """A request to the client, whose answer is the answer."""
        method, timeout = params["method"], params.get("timeout")
        return await self.server.connection.request(method, params.get("params", {}), timeout)

    async def on_choose(self, params: dict[str, Any]) -> Any:
        return await self.server.choose(params["message"], params["actions"])

    async def on_progress(self, params: dict[str, Any]) -> Any:
        clicked = asyncio.Event()
        progress = await self.server.progress("Working", clicked.set)
        if progress is None:
            return "no progress"
        progress.report("half")
        if params.get("wait"):
            await clicked.wait()
        progress.end("done")
        progress.report("too late")
        return "clicked" if clicked.is_set() else "ended"

    async def on_folders(self, params: dict[str, Any]) -> Any:
        return list(self.server.workspace.folder_paths())

    async def on_buffer(self, params: dict[str, Any]) -> Any:
        found = self.editor.buffer(params["path"])
        return found and {"version": found.version, "text": found.text, "uri": found.uri}

    async def on_open(self, params: dict[str, Any]) -> Any:
        return list(self.editor.open_paths())

    async def on_save(self, params: dict[str, Any]) -> Any:
        found = self.editor.buffer(params["path"])
        return found is not None and await self.editor.save(found) is not None

    async def on_edit(self, params: dict[str, Any]) -> Any:
        """Changes are [start, end, text]; `version` pretends to an older buffer; `ask`: a request
        to the editor before the edit; `answer`: seconds that an answer of the editor may take from
        now on."""
        from dataclasses import replace

        from magy_server.edits.model import TextChange

        found = self.editor.buffer(params["path"])
        if found is None:
            raise NotFound(f"{params['path']} is not open")
        if "version" in params:
            found = replace(found, version=params["version"])
        if "ask" in params:
            await self.server.connection.request(params["ask"], {}, None)
        changes = [TextChange(*change) for change in params["changes"]]
        self.editor._answer = params.get("answer", self.editor._answer)
        after = await self.editor.apply(found, changes, params.get("label", "Magy"))
        return {"version": after.version, "text": after.text}


if __name__ == "__main__":
    sys.exit(run(Toy(), *claim(), leaving=0.2 if STUBBORN else LEAVING))
