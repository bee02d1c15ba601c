"""The children of the session that is shown: this module says how they are, and what they ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from magy_server.api.service import Service
from magy_server.api.sessions.follow import PAGE, page
from magy_server.cli.ending import cost_of
from magy_server.cli.screen.calls import Call
from magy_server.cli.screen.text import Marks, Span, one_line, tokens
from magy_server.core.agents import tree
from magy_server.core.agents.child import LIVE, ChildInfo
from magy_server.core.agents.mail import Status
from magy_server.core.agents.tree import stream_of
from magy_server.core.ports import StreamInfo
from magy_server.engine import trees

STYLES = {
    "completed": "green", "failed": "red", "waiting": "question", "running": "yellow",
    "queued": "dim", "closed": "dim", "cancelled": "yellow",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a child. `call`: what it is about."""

    session: str
    about: Mapping[str, Any]
    call: Call


class Below:
    """Keeps track of the children. It calls `wake` when there may be news, and looks nothing up
    before something has changed, wherever the tree runs."""

    def __init__(self, service: Service, session: str, wake: Callable[[], None]) -> None:
        self.children: Sequence[ChildInfo] = ()
        """The children that were at work at some time."""
        self._engine = service
        self._session = session
        self._wake = wake
        self._since = service.world.clock.now()
        self._changed = True
        self._seen: dict[str, Status] = {}
        self._questions: dict[str, Asked] = {}
        topic = trees.tree_topic(tree.root(session))
        self.close = service.world.bus.subscribe(topic, self._hear)

    @property
    def working(self) -> Sequence[ChildInfo]:
        return [child for child in self.children if child.status in LIVE]

    @property
    def awaited(self) -> bool:
        """Returns whether a child is at work whose result makes the session go on."""
        return any(tree.is_call(child.session.rpartition("/")[2]) for child in self.working)

    async def news(self) -> Sequence[ChildInfo]:
        """Returns the children whose state is another than at the last call."""
        if not self._changed:
            return ()
        self._changed = False
        moved, every = [], await self._engine.children.list(self._session, closed=True)
        for child in every:
            before = self._seen.get(child.session)
            if before is None and child.status not in LIVE and child.updated < self._since:
                continue
            if before != child.status:
                moved.append(child)
            self._seen[child.session] = child.status
        self.children = [child for child in every if child.session in self._seen]
        return moved

    async def questions(self) -> Mapping[str, Asked]:
        """Returns the open questions by their ids."""
        if not any(child.questions for child in self.children):
            self._questions.clear()
            return {}
        store = self._engine.world.store
        infos = await trees.below(store, self._session)
        own = await store.info(stream_of(self._session))
        named = {info.id: info for info in ([own, *infos] if own else infos)}
        open_ = {
            question["interactionId"]: (info.id, question)
            for info in infos
            for question in info.summary.get("questions", ())
        }
        self._questions = {
            id: self._questions.get(id) or await self._asked(session, question, named)
            for id, (session, question) in open_.items()
        }
        return self._questions

    async def _asked(
        self, session: str, question: Mapping[str, Any], named: Mapping[str, StreamInfo]
    ) -> Asked:
        """Returns the question with what the log knows of its call."""
        title = f"{who(session, named)} asks: {question['title']}"
        about = {**question, "title": title, "sessionId": session}
        call = Call(question["toolCallId"])
        request = call.id.partition(".")[0]
        store = self._engine.world.store
        after = int(request) if request.isdigit() else 0
        entries = await store.read(stream_of(session), after=after, limit=PAGE)
        texts = await self._engine.texts_of(entries)
        for update in (item["update"] for item in page(entries, texts)):
            if update.get("toolCallId") == call.id:
                call.merge(update)
        return Asked(session, about, call)

    def _hear(self, message: Mapping[str, Any]) -> None:
        if tree.is_below(str(message.get("session")), self._session):
            self._changed = True
            self._wake()


def who(id: str, named: Mapping[str, StreamInfo]) -> str:
    """Returns the names of a child and its parent: "explore (look around), child of build (fix
    it)"."""
    above = (id, *tree.ancestors(id)[:1])
    names = [_name(named[one]) for one in above if one in named]
    return ", child of ".join(names)


def _name(info: StreamInfo) -> str:
    about = info.summary
    title = one_line(str(about.get("title") or ""))
    agent = one_line(about.get("options", {}).get("agent", ""))
    return f"{agent} ({title})" if title else agent


def label(child: ChildInfo) -> str:
    name = one_line(child.name)
    return f"{one_line(child.agent)} ({name})" if name else one_line(child.agent)


def line(child: ChildInfo, marks: Marks, top: int) -> list[Span]:
    """Returns a line that says how a child is now. `top`: the depth of the session that is
    shown."""
    ended = child.status not in LIVE
    mark = {
        "queued": marks.pending, "running": marks.current, "waiting": marks.asked,
        "completed": marks.done, "failed": marks.failed,
    }.get(child.status, marks.skipped)  # fmt: skip
    indent = "  " * max(1, child.depth - top)
    parts: list[str] = [child.status]
    if ended and child.spent.requests:
        parts += [tokens(child.spent.usage), cost_of(child.spent)]
    said = f" {marks.dot} ".join(filter(None, parts))
    style = STYLES[child.status]
    return [(f"{indent}{mark} ", style), (label(child), ""), (f" {marks.dot} {said}\n", style)]


def live(children: Sequence[ChildInfo]) -> str:
    """Returns one line with the children at work."""
    return ", ".join(f"{label(child)} {child.status}" for child in children)
