"""The wire: requests, streams and keystrokes, by processor time of the server."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from bench.measure import Row, Run, in_turn
from bench.peer import MAGY, SYNCHRONOUS, TOY, Peer, frame
from tests.lsp.client import uri_of

LINE = "    value = compute(first, second)  # what is done here\n"


def echo(run: Run) -> Row:
    """One request at a time, 100 bytes of parameters."""
    count = run.choose(1000, 3000)
    with Peer(run, *TOY) as toy, Peer(run, *SYNCHRONOUS) as least:
        for peer in (toy, least):
            peer.initialize()
        ours, floor = in_turn(
            run.choose(5, 9), partial(_echoes, toy, count), partial(_echoes, least, count)
        )
    return Row("request echo, CPU", "seconds", ours, floor, 2.5)


def chunk_small(run: Run) -> Row:
    return _chunks(run, "100 B", 100, run.choose(5000, 20_000))


def chunk_large(run: Run) -> Row:
    return _chunks(run, "4 KB", 4096, run.choose(2000, 5000))


def keystroke(run: Run) -> Row:
    """Insert one character in the middle of a document, as an editor tells it; the real server."""
    count = run.choose(200, 500)
    with Peer(run, *MAGY) as one, Peer(run, *MAGY) as other:
        long, short = Typist(run, one, 50_000), Typist(run, other, 500)
        ours, floor = in_turn(
            run.choose(5, 9), partial(long.type, count), partial(short.type, count)
        )
    return Row("keystroke, 50,000 lines vs 500, CPU", "seconds", ours, floor, 3)


ROWS = (echo, chunk_small, chunk_large, keystroke)


def _echoes(peer: Peer, count: int) -> float:
    params = {"text": "x" * 90}
    request = frame({"jsonrpc": "2.0", "id": 7, "method": "magy/echo", "params": params})
    before = peer.processor_time()
    for _ in range(count):
        peer.write(request)
        peer.read()
    return (peer.processor_time() - before) / count


def _chunks(run: Run, name: str, size: int, count: int) -> Row:
    with Peer(run, *TOY) as toy, Peer(run, *SYNCHRONOUS) as least:
        for peer in (toy, least):
            peer.initialize()
        ours, floor = in_turn(
            run.choose(5, 9), partial(_streamed, toy, size, count),
            partial(_streamed, least, size, count),
        )  # fmt: skip
    return Row(f"streamed chunk of {name}, CPU", "seconds", ours, floor, 1.3)


def _streamed(peer: Peer, size: int, count: int) -> float:
    request = {"id": 7, "method": "magy/stream", "params": {"count": count, "size": size}}
    before = peer.processor_time()
    peer.send(request)
    for _ in range(count + 1):  # the chunks and the answer, in whatever order
        peer.read()
    return (peer.processor_time() - before) / count


class Typist:
    """A document that is open in an editor with a real server behind it."""

    def __init__(self, run: Run, peer: Peer, lines: int) -> None:
        self.peer = peer
        self._line = lines // 2
        self._version = 1
        root = run.fresh("project")
        self.uri = uri_of(root / "a.py")
        peer.initialize(root)
        peer.request("magy/agent/list")
        text = self.prepare(root / "a.py", lines)
        item = {"uri": self.uri, "languageId": "python", "version": 1, "text": text}
        peer.notify("textDocument/didOpen", textDocument=item)

    def prepare(self, path: Path, lines: int) -> str:
        """What the document holds when it is opened; the server runs already."""
        return LINE * lines

    def type(self, count: int) -> float:
        """Processor time of one keystroke."""
        before = self.peer.processor_time()
        for _ in range(count):
            self._version += 1
            at = {"line": self._line, "character": 20}
            self.peer.notify(
                "textDocument/didChange",
                textDocument={"uri": self.uri, "version": self._version},
                contentChanges=[{"range": {"start": at, "end": at}, "text": "x"}],
            )
        self.peer.request("magy/agent/list")
        return (self.peer.processor_time() - before) / count
