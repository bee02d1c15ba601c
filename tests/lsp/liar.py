"""An editor with a person at it who does not stop typing, and with every bad habit that editors
have: what it does with an edit is drawn by lot.

The person types marks, `‹1›`, `‹2›`, ... anywhere, also into the middle of words. Whatever becomes
of an edit, without the marks the text must be one that has the edit or one that has not, and no
mark may be missing.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.lsp.client import Client, SimulatedEditor, path_of, uri_of

MARK = re.compile(r"‹\d+›")

HABITS = {
    "honest": "applies the edit, or refuses it when its version is not the newest",
    "refuse": "applied: false, whatever the edit",
    "silent": "applied: true, and nothing happens",
    "outdated": "the person types, and the edit is carried out at its old place all the same",
    "outdated_at_once": "the same, with both in one notification",
    "late": "the person has typed, the editor has not told it yet, and takes the edit",
    "answer_first": "the answer comes before the change",
    "type_after": "the person types right behind the edit, before the answer",
    "close": "the document is saved and closed instead",
    "line_ends": "line ends are converted to the document's own",
    "format": "on save, a line is added at the end",
}
MISPLACING = ("outdated", "outdated_at_once", "late")
FORMATTED = "# formatted\n"


class Liar(SimulatedEditor):
    """`habits` are drawn from; `drawn` names those that came up, one an edit."""

    def __init__(
        self, client: Client, seed: int, habits: Sequence[str] = tuple(HABITS), crlf: bool = False
    ) -> None:
        super().__init__(client)
        self.rng = random.Random(seed)
        self.habits = habits
        self.script: list[str] = []
        """Habits for the next edits, before any is drawn."""
        self.drawn: list[str] = []
        self.typed: list[str] = []
        self.typing: set[Path] = set()
        """Files that the person types into, between all messages."""
        self.calm = 0.6
        """Share of messages at which nothing is typed."""
        self.mark = "‹{}›"
        self.places: Callable[[str], Sequence[int]] = anywhere
        """Where the person may type next."""
        self._crlf = crlf
        self._formats = False
        self._received = client._received
        client._received = self._between  # type: ignore[method-assign]

    # --- the person -----------------------------------------------------------------------------

    async def _between(self, message: dict[str, Any]) -> None:
        """Something came from the server: the person may type before anybody looks at it."""
        for path in self.typing:
            if uri_of(path) in self.texts and self.rng.random() > self.calm:
                self.scribble(uri_of(path))
        await self._received(message)

    def scribble(self, uri: str, tell: bool = True) -> None:
        """One mark somewhere."""
        text = self.texts[uri]
        at = self.rng.choice(self.places(text))
        mark = self.mark.format(len(self.typed) + 1)
        self.typed.append(mark)
        if tell:
            self._replace(uri, [(at, at, mark)])
        else:
            self.texts[uri] = text[:at] + mark + text[at:]

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """Nobody types meanwhile."""
        typing, self.typing = self.typing, set()
        try:
            yield
        finally:
            self.typing = typing

    def lost(self, path: Path) -> list[str]:
        """Marks that were typed and are not there any more."""
        return [mark for mark in self.typed if mark not in self.texts[uri_of(path)]]

    def bare(self, path: Path) -> str:
        """The text without the marks."""
        return self.without_marks(self.texts[uri_of(path)])

    @staticmethod
    def without_marks(text: str) -> str:
        return MARK.sub("", text)

    # --- the editor -----------------------------------------------------------------------------

    async def _apply(self, params: dict[str, Any]) -> Any:
        self.edits.append(params)
        habit = self.script.pop(0) if self.script else self.rng.choice(self.habits)
        if habit == "close" and self.drawn and self.drawn[-1] in MISPLACING:
            habit = "honest"  # who spoils a text and closes it at once leaves nothing to mend
        self.drawn.append(habit)
        uri, version, edits = _only(params["edit"])
        if uri not in self.texts:
            return {"applied": False, "failureReason": "no such document"}
        if habit == "refuse":
            return {"applied": False, "failureReason": "not today"}
        if habit == "silent":
            return {"applied": True}
        if habit == "close":
            Path(path_of(uri)).write_bytes(self.texts[uri].encode())
            self.close(path_of(uri))
            return {"applied": self.rng.random() < 0.5}
        if habit.startswith("outdated"):
            return self._outdated(uri, edits, at_once=habit == "outdated_at_once")
        if habit == "late":
            return await self._late(uri, edits)
        if version not in (None, self.versions[uri]):
            return {"applied": False, "failureReason": "the document has changed"}
        return await self._as_asked(habit, uri, edits)

    async def _as_asked(self, habit: str, uri: str, edits: Sequence[Mapping[str, Any]]) -> Any:
        self.line_ends = "\r\n" if habit == "line_ends" and self._crlf else None
        self._formats = habit == "format"
        if habit == "answer_first":
            loop = asyncio.get_running_loop()
            loop.call_later(0.05, self._carry_out, uri, list(edits))
            return {"applied": True}
        self._carry_out(uri, list(edits))
        if habit == "type_after":
            self.scribble(uri)
        return {"applied": True}

    def _outdated(self, uri: str, edits: Sequence[Any], *, at_once: bool) -> dict[str, bool]:
        """The positions are those of the text before the person typed."""
        if not at_once:
            self.scribble(uri)
            self._clamped(uri, edits)
            return {"applied": True}
        held: list[Any] = []
        notify, self.client.notify = self.client.notify, lambda m, p=None: held.append(p)  # type: ignore[method-assign, assignment]
        try:
            self.scribble(uri)
            self._clamped(uri, edits)
        finally:
            self.client.notify = notify  # type: ignore[method-assign]
        changes = [change for params in held for change in params["contentChanges"]]
        last = held[-1]["textDocument"]
        notify("textDocument/didChange", {"textDocument": last, "contentChanges": changes})
        return {"applied": True}

    async def _late(self, uri: str, edits: Sequence[Any]) -> dict[str, bool]:
        """What was typed is told only after the server asked for the edit and before it is done."""
        notices: list[Any] = []
        notify, self.client.notify = self.client.notify, lambda m, p=None: notices.append((m, p))  # type: ignore[method-assign, assignment]
        try:
            self.scribble(uri)
            await asyncio.sleep(0.05)
        finally:
            self.client.notify = notify  # type: ignore[method-assign]
        for method, params in notices:
            notify(method, params)
        self._clamped(uri, edits)
        return {"applied": True}

    def _carry_out(self, uri: str, edits: list[Any]) -> None:
        if uri in self.texts:  # the person may have closed it in the meantime
            super()._carry_out(uri, edits)

    def _clamped(self, uri: str, edits: Sequence[Any]) -> None:
        """Positions that are not there any more are moved to where the text ends, and out of the
        middle of characters."""
        lines = re.split(r"\r\n|\n", self.texts[uri])

        def inside(position: Mapping[str, int]) -> dict[str, int]:
            line = min(position["line"], len(lines) - 1)
            units = lines[line].encode("utf-16-le")
            at = min(position["character"], len(units) // 2)
            split = 0xDC <= (units[2 * at + 1] if 2 * at < len(units) else 0) <= 0xDF
            return {"line": line, "character": at + split}

        self._carry_out(uri, [
            {"newText": e["newText"], "range": {k: inside(e["range"][k]) for k in e["range"]}}
            for e in edits
        ])  # fmt: skip

    def _save(self, params: dict[str, Any]) -> dict[str, bool]:
        uri = params["uri"]
        same = self.versions.get(uri) == params["version"]
        if same and self._formats and FORMATTED not in self.texts[uri]:
            end = len(self.texts[uri])
            self._replace(uri, [(end, end, FORMATTED)])
            params = {**params, "version": self.versions[uri]}
        return super()._save(params)


def anywhere(text: str) -> list[int]:
    """But between the halves of a line end, and within another mark."""
    split = {m.start() + 1 for m in re.finditer("\r\n", text)}
    inside = {n for m in MARK.finditer(text) for n in range(m.start() + 1, m.end())}
    return [n for n in range(len(text) + 1) if n not in split | inside]


def _only(edit: Mapping[str, Any]) -> tuple[str, int | None, list[Any]]:
    """(URI, version, edits) of a workspace edit of one document."""
    if "changes" in edit:
        ((uri, edits),) = edit["changes"].items()
        return uri, None, edits
    (change,) = edit["documentChanges"]
    return change["textDocument"]["uri"], change["textDocument"]["version"], change["edits"]
