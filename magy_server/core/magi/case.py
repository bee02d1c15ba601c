"""A case is what is put to the three nodes; from it follows the mode: how long each may take, and
whether they vote again after a digest. Pure."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from magy_server.core.magi.vote import Node
from magy_server.core.values import Value
from magy_server.dataclass import dataclass
from magy_server.regex import regex

LONGEST_QUESTION, LONGEST_CONTEXT = 20_000, 60_000
"""Characters."""
Mode = Literal["FAST", "FAST+", "DEEP"]
Domain = Literal[
    "general", "technical", "legal", "medical", "financial", "security", "mental_health"
]
HIGH_RISK = frozenset({"legal", "medical", "financial", "security", "mental_health"})
SURE = 0.85
"""Who is less sure of the domain than this takes it for one of high risk."""


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds that a node has; `second` 0: there is no second vote."""

    first: float
    second: float


TIMES: dict[Mode, Times] = {
    "FAST": Times(30, 0), "FAST+": Times(45, 20), "DEEP": Times(120, 60),
}  # fmt: skip
GRACE = 15.0
"""Seconds after a node's time in which its answer may still come; then it is looked for once."""


class Review(Value):
    """Why an earlier ruling is to be looked at again, and what is new. `of`: its id. `felt`: CASPER
    proposes it, for what people go through."""

    of: str
    reason: str
    new_evidence: tuple[str, ...] = ()
    felt: bool = False


class Case(Value):
    """`context`: all that the nodes need to know besides. `domain_confidence`: how sure it is what
    the question is about. `high_stakes`: what is hard to undo, or harms people. `time_budget`:
    seconds that the person has; 0: they said nothing of it. `mode` None: as the rest calls for."""

    question: Annotated[str, Field(min_length=1, max_length=LONGEST_QUESTION)]
    context: Annotated[str, Field(max_length=LONGEST_CONTEXT)] = ""
    domain: Domain = "technical"
    domain_confidence: Annotated[float, Field(ge=0, le=1)] = 1.0
    high_stakes: bool = False
    complexity: Literal["simple", "medium", "complex"] = "complex"
    time_budget: Annotated[float, Field(ge=0, le=86_400)] = 0.0
    mode: Mode | None = None
    review: Review | None = None

    @property
    def high_risk(self) -> bool:
        return self.domain in HIGH_RISK or self.domain_confidence < SURE

    @property
    def critical(self) -> bool:
        """A person decides before anything is done."""
        return self.high_risk or self.high_stakes


_GRAVE = regex(r"(?i)\b(?:must|critical|audit|legal|safety)\b")
Why = tuple[Mode, str]


def mode(case: Case) -> Why:
    """Returns the mode, and why it is this one, for people."""
    if case.mode:
        return case.mode, "the person chose it"
    if case.domain in HIGH_RISK:
        return "DEEP", f"the domain {case.domain} is one of high risk"
    if case.high_risk:
        return "DEEP", "it is not sure enough what the question is about"
    if case.high_stakes:
        return "DEEP", "much is at stake"
    if word := _GRAVE.search(case.question):
        return "DEEP", f"the question has {word[0]!r}"
    if 0 < case.time_budget <= 10:
        return "FAST", "there are 10 seconds or less"
    if 10 < case.time_budget <= 60:
        return "FAST+", "there is a minute or less"
    if case.complexity == "simple":
        return "FAST", "the question is simple"
    if case.complexity == "medium":
        return "FAST+", "the question is of medium complexity"
    return "DEEP", "the question is complex"


PREFERRED: dict[Node, tuple[str, ...]] = {
    "melchior": ("gpt-5", "o3"),
    "balthasar": ("claude-sonnet", "gpt-4o"),
    "casper": ("claude-sonnet-4.6", "claude-sonnet-4-6", "claude-sonnet"),
}
"""Beginnings of the names of models: logic-heavy, balanced, expressive; the best first."""
_SMALL = regex(r"(?i)(?:^|[-_.:/\d])(?:mini|lite|nano|tiny|small|haiku|flash)(?:$|[-_.:\d])")


def is_small(model: str) -> bool:
    """Returns whether the model, `provider/model`, is one that is too small to lead or to judge."""
    return bool(_SMALL.search(model.rpartition("/")[2]))


def preferred(node: Node, models: list[str]) -> str:
    """Returns which of these models suits the node best; "": none of them is one of its own."""
    for beginning in PREFERRED[node]:
        for model in models:
            name = model.rpartition("/")[2]
            if name.startswith(beginning) and not is_small(model):
                return model
    return ""
