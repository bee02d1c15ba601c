"""Inline completion: what the server adds to the request, and what a keystroke costs that is
answered from memory."""

from __future__ import annotations

import itertools
from typing import Any

from bench.measure import Failed, Row, Run, in_turn, stopwatch
from bench.turns import Magy, stage

METHOD = "textDocument/inlineCompletion"
ORDER = "bench-stream-20"
SETTINGS = "[completion]\nenabled = true\ndebounce_ms = 0\n"


def request(run: Run) -> Row:
    """Of twenty deltas, on a warm connection: the document changes each time, so that none is
    known."""
    with stage(run) as (magy, bare):
        document = Typed(magy, [f"# {ORDER}", ""])
        ours, floor = in_turn(
            run.choose(20, 60),
            lambda: stopwatch(document.other_line),
            lambda: bare.turn(ORDER)["wall"],
            warm=3,
        )
    return Row("inline completion, asked -> answered", "seconds", ours, floor, 2)


def known(run: Run) -> Row:
    """CPU of a keystroke and of the answer to it from memory, at the end of a document of 50,000
    lines and of one of 500."""
    with stage(run) as (magy, _):
        long, short = (_with_lines(magy, count, f"{count}.py") for count in (50_000, 500))
        times = run.choose(100, 500)
        ours, floor = in_turn(
            run.choose(5, 9), lambda: long.typed(times), lambda: short.typed(times)
        )
    return Row("suggestion from memory, 50,000 lines or 500, CPU", "seconds", ours, floor, 1.5)


ROWS = (request, known)


class Typed:
    """A document in which somebody types in the last line."""

    def __init__(self, magy: Magy, lines: list[str], name: str = "app.py") -> None:
        settings = magy.peer.state / "magy.toml"
        if SETTINGS not in (usual := settings.read_text()):
            settings.write_text(f"{usual}{SETTINGS}")
        self._peer = magy.peer
        self._uri = (magy.root / name).as_uri()
        self._line = len(lines) - 1
        self._versions = itertools.count(2)
        text = "\n".join(lines)
        item = {"uri": self._uri, "languageId": "python", "version": 1, "text": text}
        self._notify("textDocument/didOpen", textDocument=item)

    def other_line(self) -> None:
        """Types another line, and asks a model how it goes on."""
        line = f"value_{next(self._versions)} = "
        self._change(line)
        self._complete(len(line))

    def typed(self, times: int) -> float:
        """Types the beginning of what was suggested, and takes it back; CPU seconds for once."""
        self._change("x = ")
        suggested = self._complete(4)
        began = self._peer.processor_time()
        for _ in range(times):
            self._change("x = " + suggested[:3])
            if self._complete(7) != suggested[3:]:
                raise Failed("What was typed did not count as the beginning of the suggestion.")
        return (self._peer.processor_time() - began) / times

    def _change(self, line: str) -> None:
        name = {"uri": self._uri, "version": next(self._versions)}
        ends = {"start": {"line": self._line, "character": 0},
                "end": {"line": self._line, "character": 1_000}}  # fmt: skip
        self._notify("textDocument/didChange", textDocument=name,
                     contentChanges=[{"range": ends, "text": line}])  # fmt: skip

    def _complete(self, character: int) -> str:
        found = self._peer.request(
            METHOD,
            textDocument={"uri": self._uri},
            position={"line": self._line, "character": character},
            context={"triggerKind": 1},
        )
        if not found:
            raise Failed("There was no suggestion.")
        return str(found["items"][0]["insertText"])

    def _notify(self, method: str, **params: Any) -> None:
        self._peer.send({"method": method, "params": params})


def _with_lines(magy: Magy, count: int, name: str) -> Typed:
    lines = [f"value_{number} = {number}" for number in range(count)]
    return Typed(magy, [*lines, f"# {ORDER}", ""], name)
