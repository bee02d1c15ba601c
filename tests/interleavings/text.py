"""The text of a case, and what must stand in it: kept by what was typed and answered, never by what
Magy says of the text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

KEY = re.compile(r"⟦\d+⟧")
TARGETS = 4
BETWEEN = 5
"""Lines before, between and behind the targets, which Magy is never asked to change."""
WORDS = 3


def tag(target: int) -> str:
    return f"<{target}>"


def more(target: int) -> str:
    """Of further lines of a target."""
    return f"<{target}+>"


def belongs(line: str, target: int) -> bool:
    bare = strip(line)
    return bare.startswith((tag(target), more(target)))


def strip(text: str) -> str:
    """Without what was typed."""
    return KEY.sub("", text)


def lines_of(text: str) -> list[str]:
    """Without what was typed: a line that was only typed is none."""
    bare = (strip(line) if KEY.search(line) else line for line in text.split("\n"))
    return [line for line, raw in zip(bare, text.split("\n"), strict=True) if line or not raw]


@dataclass(frozen=True, slots=True)
class State:
    """Lines of a target: as accepted, and as they are."""

    base: tuple[str, ...]
    text: tuple[str, ...]

    @property
    def pending(self) -> bool:
        return self.base != self.text


@dataclass(slots=True)
class Sheet:
    """What must stand. `words` are those of the other lines, by line; a word that the person has
    deleted is no longer among them. `keys` must be there; `loose` ones were in lines that the
    person then decided to replace: they may be there."""

    words: list[list[str]] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    loose: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    typed_in: set[int] = field(default_factory=set)
    """Targets in whose lines something was typed."""
    typed_at: set[int] = field(default_factory=set)
    """Targets in or right beside which something was typed: there Magy may have to refuse."""

    @classmethod
    def new(cls) -> Sheet:
        sheet = cls()
        for number in range((TARGETS + 1) * BETWEEN):
            sheet.words.append([f"w{number}.{n}" for n in range(WORDS)])
        for target in range(TARGETS):
            first = (f"{tag(target)} as it was {target}",)
            sheet.states.append(State(first, first))
        return sheet

    def lines(self, side: str = "text") -> list[str]:
        found: list[str] = []
        for number, words in enumerate(self.words):
            if number and number % BETWEEN == 0:
                found += getattr(self.states[number // BETWEEN - 1], side)
            found.append(f"{number:02}: {' '.join(words)}")
        return [*found, ""]

    @property
    def text(self) -> str:
        return "\n".join(self.lines())

    # --- the end --------------------------------------------------------------------------------

    def problems(self, text: str, file: Any) -> list[str]:
        """`file`: the review of it, as `magy/review/get` answers."""
        found = self._of_keys(text)
        if self._sure(lines_of(text)) != self._sure(self.lines()):
            found.append(_differing("the text", self.lines(), lines_of(text)))
        hunks = file["hunks"] if file else []
        lines = text.split("\n")
        for hunk in reversed(hunks):
            start, end = (hunk["range"][side]["line"] for side in ("start", "end"))
            found += self._of_hunk(hunk, "\n".join([*lines[start:end], ""]))
            lines[start:end] = (
                hunk["oldText"].removesuffix("\n").split("\n") if hunk["oldText"] else []
            )
        if self._sure(lines_of("\n".join(lines))) != self._sure(self.lines("base")):
            base = _differing("the base", self.lines("base"), lines_of("\n".join(lines)))
            found.append(base)
        return found

    def _sure(self, lines: Sequence[str]) -> list[str]:
        """Without the lines of targets that were typed in: a line of Magy's with a key in it is the
        person's, and stays when the rest is rejected."""
        return [line for line in lines if not any(belongs(line, n) for n in self.typed_in)]

    def _of_keys(self, text: str) -> list[str]:
        there = KEY.findall(text)
        # What of a line of Magy's became the person's stays beside what is put back.
        sure = KEY.findall("\n".join(self._sure(text.split("\n"))))
        found = [f"key {key} is there twice" for key in sorted(set(sure)) if there.count(key) > 1]
        found += [f"key {key} is lost" for key in sorted(self.keys - set(there) - self.loose)]
        back = self.gone & set(there) - self.loose
        return found + [f"key {key}, which was deleted, is back" for key in sorted(back)]

    def _of_hunk(self, hunk: Any, live: str) -> list[str]:
        old, new = hunk["oldText"], hunk["newText"]
        if live.rstrip("\n") != new.rstrip("\n"):
            return [f"the hunk {old!r} -> {new!r} is not where it is said to be: {live!r}"]
        said = [line for line in lines_of(old) + lines_of(new) if line]
        for target, state in enumerate(self.states):
            own = all(belongs(line, target) for line in said)
            typed = target in self.typed_in  # what of it is whose is not judged
            # A rewrite may come to the same, without keys that were selected.
            gone = self.loose & set(KEY.findall(old)) - set(KEY.findall(new))
            if own and (state.pending or typed) and (gone or lines_of(old) != lines_of(new)):
                return []
        by = [one["command"] or one["toolCallId"] for one in hunk.get("origins", ())]
        return [f"nobody made the hunk {old!r} -> {new!r}, said to be by {by}"]


def _differing(what: str, wanted: Sequence[str], there: Sequence[str]) -> str:
    missing = [line for line in wanted if line not in there]
    extra = [line for line in there if line not in wanted]
    if missing or extra:
        return f"{what} has {extra} where {missing} must be"
    return f"{what} is out of order: {there}"
