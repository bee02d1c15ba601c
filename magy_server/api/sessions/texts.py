"""This module makes the text of a session's transcript: its paragraphs, or the end of them, and the
way to the others of its tree."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from magy_server.api.sessions.paragraphs import Paragraphs
from magy_server.core.agents import tree
from magy_server.core.ports import Store, StreamInfo
from magy_server.core.summary import Row, row
from magy_server.core.text.markdown import escaped
from magy_server.engine import trees

MOST = 1_000_000
"""Characters of a transcript; of a longer one the end."""


class Transcript:
    """The end of a transcript. `made` is when the session was; `end` is the last line of the text
    made last."""

    def __init__(self, store: Store, info: StreamInfo) -> None:
        self.made = info.created
        self.end = 0
        self._session_id = info.id
        self._new = Paragraphs(store, info)
        self._paragraphs: deque[str] = deque()
        self._size = 0
        self._cut = False
        self._reading = asyncio.Lock()

    async def text(self) -> str:
        async with self._reading:
            async for paragraph in self._new.more():
                self._add(paragraph)
            left_out = (
                [f"*The earlier part is left out; `magy sessions export {self._session_id}` "
                    "writes all of it.*"] if self._cut else []
            )  # fmt: skip
            return "\n\n".join([*left_out, *self._paragraphs, ""])

    def _add(self, text: str) -> None:
        self._paragraphs.append(text)
        self._size += len(text)
        while self._size > MOST and len(self._paragraphs) > 1:
            self._size -= len(self._paragraphs.popleft())
            self._cut = True


async def relations(store: Store, session_id: str, link: Callable[[str], str]) -> str:
    """The way to the others of its tree: a link to its parent, and one to each child with how that
    is; "" if it has none. `link`: session id -> what a reader follows."""
    found = []
    if (parent := tree.parent(session_id)) is not None:
        found.append(f"## Parent\n\n- [{escaped(parent)}]({link(parent)})\n")
    rows = [row(info) for info in await trees.below(store, session_id)]
    own = [one for one in rows if one and tree.parent(one.session) == session_id]
    if own:
        lines = (_line(one, link) for one in sorted(own, key=lambda one: one.created))
        found.append("## Children\n\n" + "".join(lines))
    return "\n".join(found)


def _line(one: Row, link: Callable[[str], str]) -> str:
    name, agent = one.about["name"], one.about["agent"]
    label = escaped(f"{agent}: {name}" if name else agent)
    asks = ", asks" if one.questions else ""
    return f"- [{label}]({link(one.session)}) · {one.status(queued=False)}{asks} · {one.session}\n"
