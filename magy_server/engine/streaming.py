"""This module keeps what streams in a session and is in no log: model replies, command output."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import field

from magy_server.core.events import Event
from magy_server.dataclass import dataclass

TAIL = 64 * 1024
"""Characters of a running tool's output that are kept for who looks in now."""

LATEST = ("graph", "deliberation")
"""How what a call runs is by now: each time all of it."""
KEPT_IN_PART = ("output", *LATEST)


@dataclass(slots=True)
class Partial:
    """Something that streams: `kind` text | thinking | call | output | graph | deliberation |
    progress | notice, of the message or call `id`. Of a command's output only the newest `TAIL`
    characters are kept, at least; of those in `LATEST` only what was added last."""

    kind: str
    id: str
    name: str = ""
    size: int = 0
    _chunks: list[str] = field(default_factory=list)
    _starts: list[int] = field(default_factory=list)

    @property
    def start(self) -> int:
        """The offset, in characters, of the first one still kept."""
        return self._starts[0] if self._starts else self.size

    def add(self, text: str) -> None:
        if self.kind in LATEST:
            self.skip_to(self.size)
        self._chunks.append(text)
        self._starts.append(self.size)
        self.size += len(text)
        if self.kind == "output" and self.size - self.start > 2 * TAIL:
            kept = self.since(self.size - TAIL)
            self._chunks, self._starts = [kept], [self.size - len(kept)]

    def skip_to(self, offset: int) -> None:
        """What came before is lost."""
        self._chunks, self._starts, self.size = [], [], offset

    def since(self, offset: int) -> str:
        """What came after `offset`, as far as it is kept. Costs what it gives."""
        first = max(0, bisect_right(self._starts, offset) - 1)
        if first >= len(self._chunks):
            return ""
        text = "".join(self._chunks[first:])
        return text[max(0, offset - self._starts[first]) :]


class Streaming:
    """`changed` is called when there is more to be seen, or when a reply begins again."""

    __slots__ = ("_changed", "partials")

    def __init__(self, changed: Callable[[], None]) -> None:
        self.partials: dict[tuple[str, str], Partial] = {}
        """By kind and id."""
        self._changed = changed

    def settle(self, event: Event) -> None:
        """The event replaces what was streamed before it."""
        if event.type == "replied":
            self.forget(event.request)
        elif event.type == "finished":
            for kind in KEPT_IN_PART:
                self.partials.pop((kind, event.call), None)
        elif event.type in ("compacted", "consulted"):
            self.partials.pop(("notice", "notice"), None)
        elif event.type == "ended":
            self.partials.clear()

    def add(self, kind: str, id: str, text: str, name: str = "") -> int:
        """The answer: the offset of `text` in what has streamed under this kind and id."""
        key = (kind, id)
        partial = self.partials.get(key) or self.partials.setdefault(key, Partial(kind, id, name))
        offset = partial.size
        partial.add(text)
        self._changed()
        return offset

    def place(self, kind: str, id: str, name: str, at: int, text: str) -> bool:
        """As another process has it, at this offset; what is known of it already is left out.
        False: something before it is missing here."""
        partial = self.partials.setdefault((kind, id), Partial(kind, id, name))
        if at > partial.size:
            if kind not in KEPT_IN_PART:
                return False
            partial.skip_to(at)
        if new := text[partial.size - at :]:
            partial.add(new)
            self._changed()
        return True

    def forget(self, request: str) -> None:
        """Drops what was streamed of a reply: the whole one is in the log."""
        calls = request if request.endswith(".") else f"{request}."
        for key in [k for k in self.partials if k[1] == request or k[1].startswith(calls)]:
            if key[0] not in KEPT_IN_PART:
                del self.partials[key]

    def restart(self, request: str) -> None:
        """The reply is tried again: what was streamed of it does not count. New empty partials
        take the place of the old ones, so that watchers see the change."""
        for key in [key for key in self.partials if key[1] == request]:
            self.partials[key] = Partial(*key)
        self.forget(f"{request}.")
        self._changed()

    def unsettled(self) -> Sequence[str]:
        """The ids of what streams and will be in the log."""
        return [id for kind, id in self.partials if kind not in (*KEPT_IN_PART, "notice")]

    def notice(self, text: str) -> None:
        """Something passing, for who watches (a retry, say); never stored."""
        self.add("notice", "notice", text)

    def progress(self, request: str, text: str) -> None:
        """What goes on until the reply to `request` begins, for who watches: it takes the place of
        what was said before. Empty text: it has begun."""
        self.partials.pop(("progress", request), None)
        if text:
            self.add("progress", request, text)
