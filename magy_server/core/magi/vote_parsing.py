"""This module reads a vote from what a model has written, and mends what is only written wrongly.

Each thing that is mended is said. What would have to be guessed makes the answer no vote: two
verdicts, a vote in another node's name, a caveated yes without a condition. Pure.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from magy_server.core.magi.vote import (
    FEELINGS,
    LEAST,
    NODES,
    VERDICTS,
    Caveats,
    Memory,
    Mitigation,
    Node,
    Tier,
    Verdict,
    Vote,
)
from magy_server.core.text.sanitizing import one_line
from magy_server.dataclass import dataclass
from magy_server.regex import regex

LONGEST = 6_000
"""Characters of the reasoning; of each other text `LINE`."""
LINE = 600
MOST = 10
"""Texts of one list."""
LAST_WORDS = 12
"""Words of CASPER's final sentence."""
SENTENCES = 3
EMOTION, LESSON = 40, 160
"""Characters of what CASPER wants to remember."""
OBJECTS = 20
"""Objects that are looked for in one answer."""
LARGEST = 10_000
"""Characters in which the end of an object is looked for that is not quite JSON."""
_WORDS: Mapping[str, Verdict] = {
    "APPROVED": "APPROVE", "YES": "APPROVE", "ACCEPT": "APPROVE",
    "APPROVE WITH CAVEATS": "CAVEATED", "APPROVE_WITH_CAVEATS": "CAVEATED", "CAVEAT": "CAVEATED",
    "CONDITIONAL": "CAVEATED", "REJECTED": "REJECT", "NO": "REJECT", "DENY": "REJECT",
    "ABSTAINED": "ABSTAIN", "ABSTENTION": "ABSTAIN",
}  # fmt: skip
_SENTENCE = regex(r"(?<=[.!?。！？])\s*")
_COMMA = regex(r",(\s*[}\]])")
_NUMBER = regex(r"\s*(\d{1,3}(?:\.\d+)?)\s*%?\s*")
_TIERS: Mapping[str, Tier] = {"high": "High", "medium": "Medium", "low": "Low"}


@dataclass(frozen=True, slots=True)
class Read:
    """`repairs`: what was mended, a few words each. `problem`: why there is no vote, a sentence."""

    vote: Vote | None
    repairs: tuple[str, ...] = ()
    problem: str = ""


class _NoVote(Exception):
    """Says why."""


def read(node: Node, text: str) -> Read:
    """Returns the vote of this node in what its model has written."""
    reader = _Reader(node)
    try:
        return Read(reader.vote(text), tuple(dict.fromkeys(reader.repairs)))
    except _NoVote as error:
        return Read(None, problem=str(error))


class _Reader:
    def __init__(self, node: Node) -> None:
        self.node = node
        self.repairs: list[str] = []

    def vote(self, text: str) -> Vote:
        given = self._object(text)
        self._own(given)
        verdict = self._verdict(given.get("verdict"))
        fields: dict[str, Any] = {
            "verdict": verdict,
            "confidence": self._confidence(given),
            "caveats": self._caveats(given.get("caveats"), needed=verdict == "CAVEATED"),
            "reasoning": self._text(given, "reasoning", LONGEST),
            "feeling": self._feeling(given.get("feeling")),
            "last_words": self._last_words(given),
            "memory": self._memory(given.get("memory")),
            **self._range(given.get("range")),
        }
        for name in ("next_step", "protection", "stakes", "delta"):
            fields[name] = self._text(given, name)
        for name in (
            "evidence", "failure_modes", "tradeoffs", "rollback_signals", "risks", "new_evidence",
            "counter_arguments",
        ):  # fmt: skip
            fields[name] = self._texts(given, name)
        fields["summary"] = self._summary(given, str(fields["reasoning"]))
        return Vote(**fields)

    # --- finding it -------------------------------------------------------------------------------

    def _object(self, text: str) -> Mapping[str, Any]:
        found = [one for one in self._objects(text) if "verdict" in one]
        if not found:
            raise _NoVote("Its answer was not in the form of a vote.")
        said = {(str(one["verdict"]).strip().upper(), str(one.get("confidence"))) for one in found}
        if len(said) > 1:
            raise _NoVote("It voted twice, and differently.")
        if len(found) > 1:
            self.repairs.append("voted twice the same")
        return found[-1]

    def _objects(self, text: str) -> Iterator[dict[str, Any]]:
        """Those at the top, also between other words."""
        at, tried = 0, 0
        while (start := text.find("{", at)) >= 0 and tried < OBJECTS:
            tried += 1
            one, end = self._loaded(text, start)
            if one is None:
                at = start + 1
                continue
            if text[:start].strip() or text[end:].strip():
                self.repairs.append("words around the JSON")
            yield one
            at = end

    def _loaded(self, text: str, start: int) -> tuple[dict[str, Any] | None, int]:
        """The object that begins at `start`, which is a brace, and where it ends."""
        try:
            return _JSON.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = _end(text, start)
        try:
            one = _JSON.decode(_COMMA.sub(r"\1", text[start:end]))
        except (ValueError, RecursionError):
            return None, end
        self.repairs.append("commas at ends")
        return one, end

    def _own(self, given: Mapping[str, Any]) -> None:
        named = str(given.get("node") or self.node).strip().lower()
        other = next((node for node in NODES if node in named), self.node)
        if other != self.node:
            raise _NoVote(f"It voted as {other}, another voter.")

    # --- its parts --------------------------------------------------------------------------------

    def _verdict(self, given: object) -> Verdict:
        word = " ".join(str(given).upper().split()).strip(".!*\"'")
        meant = next((one for one in VERDICTS if one == word), None) or _WORDS.get(word)
        if meant is None:
            raise _NoVote(f"Its verdict was {one_line(str(given))[:40]!r}, none of the four.")
        if meant != given:
            self.repairs.append("verdict")
        return meant

    def _confidence(self, given: Mapping[str, Any]) -> int:
        raw = given.get("confidence")
        number = _number(raw)
        if number is not None and isinstance(raw, float | str) and 0 < number <= 1:
            number *= 100
            self.repairs.append("confidence as a share")
        elif number is not None and not isinstance(raw, int):
            self.repairs.append("confidence in another form")
        if number is not None and 0 <= number <= 100:
            return math.floor(number + 1e-9)
        if number is None and (said := self._said(given)):
            self.repairs.append("confidence by the lowest of its tier")
            return LEAST[said]
        raise _NoVote(f"Its confidence was {one_line(str(raw))[:40]!r}, not 0 to 100.")

    def _said(self, given: Mapping[str, Any]) -> Tier | None:
        """The tier that it names instead of a number."""
        for name in ("confidence", "tier", "feeling"):
            word = str(given.get(name) or "").strip().lower()
            if found := _TIERS.get(word) or FEELINGS.get(word):
                return found
        return None

    def _caveats(self, given: object, *, needed: bool) -> Caveats | None:
        about = given if isinstance(given, Mapping) else {}
        preconditions = self._texts(about, "preconditions")
        if not preconditions:
            if needed:
                raise _NoVote("It said yes with caveats, and named no condition for it.")
            return None
        mitigations = about.get("mitigations")
        return Caveats(
            preconditions=preconditions,
            risks=self._texts(about, "risks")[:3],
            mitigations=tuple(
                Mitigation(**{key: self._text(one, key) for key in Mitigation.model_fields})
                for one in (mitigations if isinstance(mitigations, list) else [])[:MOST]
                if isinstance(one, Mapping)
            ),
            monitoring=self._text(about, "monitoring"),
            review_date=self._text(about, "review_date"),
        )

    def _range(self, given: object) -> dict[str, int]:
        ends = [_number(one) for one in given] if isinstance(given, list) else []
        if self.node != "melchior" or len(ends) != 2:
            return {}
        low, high = sorted(end for end in ends if end is not None) if None not in ends else (-1, 0)
        if not 0 <= low <= high <= 100:
            self.repairs.append("a range that is none")
            return {}
        return {"low": math.floor(low), "high": math.ceil(high)}

    def _feeling(self, given: object) -> str | None:
        word = str(given or "").strip().lower().rpartition(" ")[2]
        return word if self.node == "casper" and word in FEELINGS else None

    def _last_words(self, given: Mapping[str, Any]) -> str:
        words = self._text(given, "last_words").split()
        if len(words) > LAST_WORDS:
            self.repairs.append("a long last sentence")
        return " ".join(words[:LAST_WORDS])

    def _memory(self, given: object) -> Memory | None:
        if self.node != "casper" or not isinstance(given, Mapping):
            return None
        valence = _number(given.get("valence"))
        emotion = self._text(given, "primary_emotion", EMOTION)
        lesson = self._text(given, "lesson", LESSON)
        if valence is None or not (-1 <= valence <= 1 and emotion and lesson):
            self.repairs.append("a memory that is none")
            return None
        return Memory(valence=round(valence, 2), primary_emotion=emotion, lesson=lesson)

    def _summary(self, given: Mapping[str, Any], reasoning: str) -> str:
        if not (said := self._text(given, "summary") or one_line(reasoning)):
            raise _NoVote("It gave no reason.")
        sentences = [one for one in _SENTENCE.split(said) if one.strip()]
        if len(sentences) > SENTENCES or not given.get("summary"):
            self.repairs.append("the first sentences of its reasons")
        return " ".join(sentences[:SENTENCES])[:LINE]

    def _text(self, given: Mapping[str, Any], name: str, most: int = LINE) -> str:
        value = given.get(name)
        text = one_line(str(value)) if isinstance(value, str | int | float) else ""
        if len(text) > most:
            self.repairs.append(f"a long {name}")
        return text[:most]

    def _texts(self, given: Mapping[str, Any], name: str) -> tuple[str, ...]:
        value = given.get(name)
        some = value if isinstance(value, list) else [value] if isinstance(value, str) else []
        texts = (one_line(one)[:LINE] for one in some if isinstance(one, str))
        return tuple(filter(None, texts))[:MOST]


def _number(given: object) -> float | None:
    if isinstance(given, bool):
        return None
    if isinstance(given, int | float):
        return float(given) if -1e6 < given < 1e6 else None
    found = _NUMBER.fullmatch(given) if isinstance(given, str) else None
    return float(found[1]) if found else None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object as it is read; one with two verdicts, or two confidences, is no vote."""
    said = {(key, str(value)) for key, value in pairs if key in ("verdict", "confidence")}
    if len(said) > len({key for key, _ in said}):
        raise _NoVote("It voted twice, and differently.")
    return dict(pairs)


_JSON = json.JSONDecoder(strict=False, object_pairs_hook=_once)


def _end(text: str, start: int) -> int:
    """Where the object that begins at `start` ends."""
    depth, quoted, skip = 0, False, False
    last = min(len(text), start + LARGEST)
    for at in range(start, last):
        char = text[at]
        if skip:
            skip = False
        elif quoted:
            skip, quoted = char == "\\", char != '"'
        elif char == '"':
            quoted = True
        elif char in "{}":
            depth += 1 if char == "{" else -1
            if not depth:
                return at + 1
    return last
