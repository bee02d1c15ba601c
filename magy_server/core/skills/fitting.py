"""A request may call for a skill that nobody has named: each skill with a capability is scored.

A phrase that stands in the request counts `EACH`, and so does a mentioned file that fits a glob,
each once. Who reaches `ENOUGH` is attached, the best first, at most `MOST` of them. Short phrases
are in everything and count nothing, a long text is only read by who wants it, and a stranger's
skill never comes unasked. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

from magy_server.core.skills.skill import Skill
from magy_server.dataclass import dataclass
from magy_server.regex import regex

EACH, ENOUGH = 0.5, 1.0
MOST = 2
"""Skills that are attached to one request."""
SHORTEST = 3
"""Characters of a phrase that counts."""
LONGEST = 20_000
"""Characters of a text that is attached."""
_PERHAPS = regex(r"(?i)magi|マギ|마기|three|triple|[3三多]|multi|advocate|관점|다각")
"""Where a vote may be asked for, in any language."""
LOOKED = 20_000
"""Characters of a request that are looked at, from its beginning: a pasted log says nothing."""


@dataclass(frozen=True, slots=True)
class Fit:
    """How well a skill fits. `because`: each contribution, for people."""

    skill: Skill
    score: float
    because: tuple[str, ...]

    @property
    def enough(self) -> bool:
        return self.score >= ENOUGH

    @property
    def why(self) -> str:
        return f"the prompt has {', '.join(self.because)}"


def fits(skills: Iterable[Skill], request: str, files: Sequence[str]) -> Sequence[Fit]:
    """Returns those that score at all, the best first; of equals, by name. `files`: names of
    mentioned files, relative to the workspace root."""
    words = " ".join(request[:LOOKED].lower().split())
    found = [
        Fit(skill, EACH * len(because), because)
        for skill in skills
        if (because := tuple(_contributions(skill, words, files)))
    ]
    return sorted(found, key=lambda fit: (-fit.score, fit.skill.name))


def attached(skills: Iterable[Skill], request: str, files: Sequence[str]) -> Sequence[Fit]:
    """Returns those that are attached to the request."""
    wanted = [
        one
        for one in skills
        if one.kind == "instruction" and one.source != "installed" and len(one.body) <= LONGEST
    ]
    found = [fit for fit in fits(wanted, request, files) if fit.enough]
    return [*_called(wanted, request, found), *found][:MOST]


def _called(skills: Sequence[Skill], request: str, found: Sequence[Fit]) -> Iterator[Fit]:
    """The skill for deliberations, where the request asks for a vote in any of its ways."""
    if not _PERHAPS.search(request):
        return
    from magy_server.core.skills.deliberation_words import SKILL, asks_for_vote

    words = asks_for_vote(request)
    for skill in skills:
        if words and skill.name == SKILL and all(fit.skill is not skill for fit in found):
            yield Fit(skill, ENOUGH, (f'"{words}"',))


def _contributions(skill: Skill, words: str, files: Sequence[str]) -> Iterator[str]:
    if skill.capability is None:
        return
    for phrase in skill.capability.phrases:
        if len(phrase) >= SHORTEST and phrase in words and _whole(phrase).search(words):
            yield f'"{phrase}"'
    for glob in skill.capability.files:
        if fit := next((one for one in files if fnmatchcase(one, glob)), None):
            yield f"{fit} ({glob})"


@lru_cache(maxsize=1024)
def _whole(phrase: str) -> re.Pattern[str]:
    """The phrase as whole words."""
    return re.compile(rf"(?<!\w){re.escape(phrase)}(?!\w)")
