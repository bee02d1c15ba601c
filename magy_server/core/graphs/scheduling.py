"""This module chooses the shape that suits tasks which somebody gives without saying how they
depend on each other, and tells how hard they are: from their words, without a model. The same tasks
always come to the same. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence, Set
from typing import Literal

from magy_server.core.errors import InvalidRequest
from magy_server.core.graphs.graph import GraphTask, check_writes
from magy_server.dataclass import dataclass
from magy_server.regex import regex

Complexity = Literal["simple", "moderate", "complex", "critical"]
LEVELS: Sequence[Complexity] = ("simple", "moderate", "complex", "critical")
LONG = (40, 160, 500)
"""Words; from each on, a task counts one more."""
MANY = (3, 8)
"""Things that a task needs a tool for."""
DEEP = (6, 20)
"""Turns or tasks before it."""
POINTS = (2, 3, 5)
"""From each on, it is of the next level."""
ALIKE = 0.8
"""Part of the words of two tasks from which on they ask the same."""
LEADS = frozenset({"architect", "engineering-lead", "orchestrator", "plan", "project-manager"})
"""Agents that split work for others."""
_WORD = regex(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+")
"""Of scripts without spaces, each sign."""
_THING = regex(r"https?://\S+|`[^`\n]+`|(?<![\w/])(?:[\w.-]+/)*[\w-]+\.[A-Za-z]\w{0,5}\b")
"""An address, something in backticks, a file."""
_TOGETHER = regex(
    r"\b(?:combin|summar|synthes|consolidat|merge|compare|bring (?:\w+ )?together|put (?:\w+ )?"
    r"together|conclude|both (?:answers|results|reports)|all (?:answers|results|reports|findings)|"
    r"zusammen|fasse|vergleich|schlussfolger|aus (?:beiden|allen)|"
    r"rassembl|fusionn|résum|synthét|compar|à partir d|"
    r"reún|resum|sintetiz|combin|fusion|a partir de)|"
    r"[综総]合|汇总|彙總|合并|合併|总结|總結|比较|比較|归纳",
    re.IGNORECASE,
)
_AFTER = regex(
    r"\b(?:then|afterwards?|after that|next step|the previous|the (?:step|task) before|"
    r"danach|anschließend|dann|vorherig|vorig|"
    r"ensuite|puis|précédent|"
    r"después|luego|a continuación|anterior)\b|然后|然後|接着|上一步|之后|之後",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Choice:
    """`rounds`: how often each may speak; 0: as whoever gave the tasks says. `why`: half a
    sentence for people."""

    shape: Literal["graph", "pipeline", "fan_out", "discussion", "swarm"]
    complexity: Complexity
    why: str
    rounds: int = 0


def complexity(text: str, *, tools: int = 0, depth: int = 0) -> Complexity:
    """Returns how hard a task is. `tools`: how many different tools or things it takes; `depth`:
    turns of the conversation, or tasks, before it."""
    points = (
        sum(len(_words(text)) >= bound for bound in LONG)
        + sum(tools > bound for bound in MANY)
        + sum(depth >= bound for bound in DEEP)
    )
    return LEVELS[bisect_right(POINTS, points)]


def chosen(tasks: Sequence[GraphTask]) -> Choice:
    """Returns the shape of tasks, at least one of them."""
    hard = complexity(
        "\n".join(dict.fromkeys(task.prompt for task in tasks)),
        tools=len({thing for task in tasks for thing in _THING.findall(task.prompt)}),
        depth=len(tasks) - 1,
    )
    if any(task.needs for task in tasks):
        return Choice("graph", hard, "they say themselves what they need")
    if len(tasks) == 1:
        return Choice("graph", hard, "there is one task")
    *side, end = tasks
    if len(side) > 1 and _brings_together(end, side):
        return _gathered(side, hard)
    if all(_follows(task, tasks[:place]) for place, task in enumerate(tasks) if place):
        return Choice("pipeline", hard, "each goes on from the one before")
    if _share_files(tasks):
        return Choice("pipeline", hard, "some may change the same files")
    return Choice("graph", hard, "none needs another")


def _gathered(side: Sequence[GraphTask], hard: Complexity) -> Choice:
    """`side`: all tasks but the one that brings together what they come to."""
    much = hard in ("complex", "critical")
    if side[0].agent in LEADS and len({task.agent for task in side[1:]}) > 1:
        return Choice(
            "swarm", hard, "one leads, several trades work, one brings together",
            0 if much else 1,
        )  # fmt: skip
    if _share_files(side):
        return Choice("pipeline", hard, "some may change the same files")
    if much and _ask_the_same(side):
        return Choice("discussion", hard, "several answer one hard question")
    return Choice("fan_out", hard, "the last one brings together what the others find")


def _brings_together(task: GraphTask, others: Sequence[GraphTask]) -> bool:
    named = [one for one in others if _names(task, one.id)]
    return len(named) > 1 or bool(_TOGETHER.search(task.prompt))


def _follows(task: GraphTask, before: Sequence[GraphTask]) -> bool:
    return _names(task, before[-1].id) or bool(_AFTER.search(task.prompt))


def _names(task: GraphTask, id: str) -> bool:
    """Only with marks around it: many ids are ordinary words."""
    return any(f"{one}{id}{other}" in task.prompt for one, other in ("``", '""', "''", "“”", "«»"))


def _share_files(tasks: Sequence[GraphTask]) -> bool:
    try:
        check_writes(tasks)
    except InvalidRequest:
        return True
    return False


def _ask_the_same(tasks: Sequence[GraphTask]) -> bool:
    first = set(_words(tasks[0].prompt))
    return all(_likeness(first, set(_words(task.prompt))) >= ALIKE for task in tasks[1:])


def _likeness(one: Set[str], other: Set[str]) -> float:
    return len(one & other) / max(1, len(one | other))


def _words(text: str) -> Sequence[str]:
    return _WORD.findall(text.casefold())
