"""An agent's file may say how the agent goes about its work, and what it knows best: these settings
become words in its prompt.

    personality:
      traits: [careful, curious]
      risk_tolerance: 0.3
      collaboration_style: reviewer
      verbosity: concise
    expertise:
      primary: [PostgreSQL, query plans]
      secondary: [Python]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args

from magy_server.core.text.yaml_nodes import Nodes
from magy_server.core.values import Value

if TYPE_CHECKING:
    from yaml import Node

Style = Literal["lead", "contributor", "reviewer"]
Verbosity = Literal["concise", "normal", "detailed"]
MOST = 20
"""Traits, or fields of expertise."""
LONGEST = 80
"""Characters of one."""
_RISK = (
    (0.25, "Avoid risk: choose the smallest change that is sure to work, verify each step before "
           "the next, and ask before anything that is hard to take back."),
    (0.5, "Be careful: prefer what is proven, and say what could go wrong before you do it."),
    (0.75, "Weigh risk against gain: a larger change is fine where it clearly pays."),
    (1.0, "Be bold: try what promises most, also if it may fail, as long as it can be undone."),
)  # fmt: skip
"""Up to this risk tolerance it is told so."""
_STYLES: Mapping[Style, str] = {
    "lead": "You lead: split the work, decide where others differ, and see that it becomes whole.",
    "contributor": "You contribute: do your part well, and fit in with what others decided.",
    "reviewer": "You review: look for what is wrong or missing in the work of others, say it with "
                "evidence, and leave the mending to them unless you are asked.",
}  # fmt: skip
_LENGTHS: Mapping[Verbosity, str] = {
    "concise": "Answer in as few words as the matter allows.",
    "normal": "",
    "detailed": "Explain your reasons and what you considered, not only the result.",
}


class Personality(Value):
    """`risk_tolerance`: 0.0 conservative to 1.0 aggressive; None: not said."""

    traits: tuple[str, ...] = ()
    risk_tolerance: float | None = None
    collaboration_style: Style | None = None
    verbosity: Verbosity = "normal"


class Expertise(Value):
    primary: tuple[str, ...] = ()
    secondary: tuple[str, ...] = ()


def told(personality: Personality, expertise: Expertise) -> str:
    """Returns what the prompt says of them; "" for nothing."""
    return "\n".join(f"- {line}" for line in _lines(personality, expertise))


def _lines(personality: Personality, expertise: Expertise) -> Iterator[str]:
    if personality.traits:
        yield f"You are {', '.join(personality.traits)}."
    if personality.risk_tolerance is not None:
        yield next(said for most, said in _RISK if personality.risk_tolerance <= most)
    if personality.collaboration_style:
        yield _STYLES[personality.collaboration_style]
    if said := _LENGTHS[personality.verbosity]:
        yield said
    if expertise.primary:
        yield f"You know best: {', '.join(expertise.primary)}. Judge such matters yourself."
    if expertise.secondary:
        yield f"You also know: {', '.join(expertise.secondary)}. Check what you are not sure of."


class CharacterReader(Nodes):
    def personality(self, node: Node) -> Personality:
        return Personality(**self._fields(node, "personality", {
            "traits": self._words,
            "risk_tolerance": self._risk,
            "collaboration_style": lambda n: self.one_of(n, get_args(Style), "style"),
            "verbosity": lambda n: self.one_of(n, get_args(Verbosity), "verbosity"),
        }))  # fmt: skip

    def expertise(self, node: Node) -> Expertise:
        readers = {"primary": self._words, "secondary": self._words}
        return Expertise(**self._fields(node, "expertise", readers))

    def _fields(
        self, node: Node, what: str, readers: Mapping[str, Callable[[Node], Any]]
    ) -> dict[str, Any]:
        fields = {}
        for key, value in self.pairs(node):
            if key.value not in readers:
                self.unknown(key, f"setting of {what}", readers)
            fields[key.value] = readers[key.value](value)
        return fields

    def _words(self, node: Node) -> tuple[str, ...]:
        found = tuple(item for item, _ in self.items(node))
        if len(found) > MOST or any(len(one) > LONGEST or "\n" in one for one in found):
            self.fail(node, f"at most {MOST} of them, each a line of {LONGEST} characters.")
        return found

    def _risk(self, node: Node) -> float:
        value = self.scalar(node)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            self.fail(node, "risk_tolerance must be a number from 0.0 (conservative) to 1.0 "
                      f"(aggressive), not {node.value!r}.")  # fmt: skip
        return float(value)
