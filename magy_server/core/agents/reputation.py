"""This module rates how good agents are by what came of their work: whether tasks were done, which
of their changes a person kept, and how other agents rate them. What is long ago counts less.

Each agent has a stream of its own, `reputation/<agent>`, of `Rated` events. What they come to is
the summary of that stream, so nobody reads the stream to know it. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from magy_server.core.agents.mail import Rated
from magy_server.core.agents.tree import Stream
from magy_server.core.errors import InvalidRequest
from magy_server.dataclass import dataclass

STREAMS = "reputation/"
"""The streams begin with it."""
DECAY = math.log(2) / (30 * 86_400)
"""By how much what is known fades in a second: in 30 days to a half."""
PRIOR = 2.0
"""So much does it weigh that nothing is known."""
EXPECTED = {"primary": 0.6, "secondary": 0.55, "": 0.5}
"""The score of one of whom nothing is known but how well it says it knows the capability."""
MOST = 40
"""Capabilities of one agent that are kept: those of which most is known."""
LONGEST = 60
"""Characters of a capability."""
BEST = "best:"
"""A task may name `best:CAPABILITY` in the place of an agent."""

Level = Literal["primary", "secondary", ""]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known at the time `at` (seconds since the epoch): the weight of all ratings, and of
    their good part."""

    good: float = 0.0
    all: float = 0.0
    at: float = 0.0

    def faded(self, now: float) -> Evidence:
        """Returns what is left of it."""
        left = math.exp(-DECAY * max(0.0, now - self.at))
        return Evidence(self.good * left, self.all * left, max(now, self.at))

    def with_rating(self, rated: Rated, now: float) -> Evidence:
        old = self.faded(now)
        return Evidence(
            old.good + rated.score * rated.weight, old.all + rated.weight, max(now, self.at)
        )


Reputation = Mapping[str, Evidence]
"""Of one agent, by capability."""
NONE = Evidence()


@dataclass(frozen=True, slots=True)
class Candidate:
    """An agent that a task could be given to. `level`: how well its file says that it knows the
    capability."""

    agent: str
    level: Level
    reputation: Reputation


def stream_of(agent: str) -> Stream:
    return Stream(STREAMS + agent)


def named(capability: str) -> str:
    """Returns the one name of a capability. Raises InvalidRequest."""
    name = " ".join(capability.casefold().split())
    if not name or len(name) > LONGEST or not name.isprintable():
        raise InvalidRequest(
            f"A capability is named by 1 to {LONGEST} characters on one line, such as testing."
        )
    return name


def rate(known: Reputation, rated: Rated, now: float) -> Reputation:
    """Returns what is known with one rating more."""
    evidence = known.get(rated.capability, NONE).with_rating(rated, now)
    found = {**known, rated.capability: evidence}
    if len(found) > MOST:
        least = min(found, key=lambda name: (name == "", found[name].faded(now).all))
        found = {name: one for name, one in found.items() if name != least}
    return found


def score(known: Reputation, capability: str, now: float, level: Level = "") -> float:
    """Returns how good an agent is at it, 0 to 1. What was said of all that it does counts, too."""
    sources = dict.fromkeys(("", capability))
    evidence = [known[name].faded(now) for name in sources if name in known]
    good = PRIOR * EXPECTED[level] + sum(one.good for one in evidence)
    return good / (PRIOR + sum(one.all for one in evidence))


def best(candidates: Sequence[Candidate], capability: str, now: float) -> Candidate | None:
    """Returns the one with the best score; of equals the first. None: nobody has the capability."""
    able = [one for one in candidates if one.level or capability in one.reputation]
    return max(
        able, key=lambda one: score(one.reputation, capability, now, one.level), default=None
    )


def level(capability: str, primary: Sequence[str], secondary: Sequence[str]) -> Level:
    """Returns how well an agent with this expertise knows a capability: it is one of the words of
    what it knows, or the whole of it."""
    for name, fields in (("primary", primary), ("secondary", secondary)):
        for known in fields:
            if capability == known.casefold() or capability in known.casefold().split():
                return "primary" if name == "primary" else "secondary"
    return ""


def capability_of(agent: str) -> str:
    """Returns the capability that a task names in the place of an agent; "" if it names one. Raises
    InvalidRequest."""
    return named(agent.removeprefix(BEST)) if agent.startswith(BEST) else ""


def summary(known: Reputation) -> Mapping[str, Any]:
    return {"of": {name: [one.good, one.all, one.at] for name, one in known.items()}}


def of_summary(kept: Mapping[str, Any]) -> Reputation:
    return {name: Evidence(*numbers) for name, numbers in kept.get("of", {}).items()}
