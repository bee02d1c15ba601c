"""The model's side: an HTTP server that plays the whole cast, and notices what must not be."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.loopback import ChatServer, Part, Request, pause, text
from tests.loopback.http import Exchange
from tests.loopback.parts import Called

from .cast import Play, Told, result, text_of


class Model(ChatServer):
    """`life` counts the server processes that have asked it, `count` the requests of each role;
    `last` has the latest conversation of each role, `calls` the tools that it was then to call, and
    `ended` who was given its last word to the end. `wrong` are sentences."""

    def __init__(self, tag: str, play: Play) -> None:
        super().__init__()
        self.tag = tag
        self.play = play
        self.life = 0
        self.count: Counter[str] = Counter()
        self.last: dict[str, Told] = {}
        self.calls: dict[str, list[str]] = {}
        self.ended: set[str] = set()
        self.wrong: list[str] = []
        self.when_asked: Callable[[], None] = lambda: None
        self.alone = True
        """One server at a time asks; where two do, lives are not told apart."""
        self._live: Counter[str] = Counter()
        self._known: set[tuple[int, str, int]] = set()
        self._delivered: set[str] = set()
        self.answer(self._said)

    async def respond(self, request: Request, exchange: Exchange) -> None:
        if request.path != self.prefix + self.path:  # what the model can, not what it says
            return await super().respond(request, exchange)
        told = _told(request.body)
        role = told.role
        self._look(told)
        self.count[role] += 1
        self._live[role] += 1
        self.when_asked()
        try:
            await super().respond(request, exchange)
            if request.refused:
                self.wrong.append(f"{role}: a request that no provider takes: {request.body}")
            elif self.play.is_last(told, self.tag):
                self.ended.add(role)
        finally:
            self._live[role] -= 1

    def _look(self, told: Told) -> None:
        """Before a request is answered."""
        role, before = told.role, self.last.get(told.role)
        if role not in self.play.roles:
            self.wrong.append(f"a request of nobody: {told.messages}")
        if self._live[role]:
            self.wrong.append(f"{role}: two requests at once, of {self.life} lives")
        if before and not _goes_on(before.messages, told.messages):
            self.wrong.append(
                f"{role}: a conversation does not go on from the one before: "
                f"{before.messages} and then {told.messages}"
            )
        request = (self.life, role, len(told.messages))
        if self.alone and request in self._known:
            self.wrong.append(f"{role}: made the request {request} twice without a kill")
        if role in self._delivered:
            self.wrong.append(f"{role}: runs on although its result was delivered")
        self._known.add(request)
        self.last[role] = told
        self._delivered |= {
            child for child, parent in self.play.parents.items()
            if parent == role and result(child, self.tag) in told.heard
        }  # fmt: skip

    def next(self, told: Told) -> Sequence[Part]:
        """What is said to a request: some of it slowly."""
        chance = random.Random(f"{self.tag} {told.role} {told.replies}")
        speed = chance.choice((0.0, 300.0))
        return [
            text(f"{told.role.capitalize()} goes on, step {told.replies}. ", speed=speed),
            pause(chance.uniform(0, 0.02)),
            *self.play.parts(told, self.tag),
        ]

    def _said(self, body: Any) -> Sequence[Part]:
        told = _told(body)
        said = self.next(told)
        self.calls[told.role] = [part.name for part in said if isinstance(part, Called)]
        return said


def _goes_on(before: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> bool:
    """What was asked, and not answered before the process was killed, may be asked with more behind
    it: somebody spoke meanwhile."""
    *first, last = before
    if len(now) < len(before) or [*now[: len(first)]] != first:
        return False
    same = now[len(first)]
    more = last["role"] == same["role"] == "user" and text_of(same).startswith(text_of(last))
    return same == last or more


def _told(body: Any) -> Told:
    return Told([m for m in body["messages"] if m["role"] not in ("system", "developer")])
