"""Who types into the file of a case while all else goes on."""

from __future__ import annotations

import asyncio
import random

from .command import Quiet
from .editor import Editor
from .text import BETWEEN, KEY, TARGETS, Sheet, belongs, strip

PACES = (0.002, 0.005, 0.02, 0.05)
"""Seconds between two keys, on average."""


class Person:
    def __init__(
        self, rng: random.Random, editor: Editor, uri: str, sheet: Sheet, quiet: Quiet
    ) -> None:
        self._quiet = quiet
        self._rng, self._editor, self._uri, self._sheet = rng, editor, uri, sheet
        self._number = 0
        self._left = rng.choice((20, 100, 400))
        self._pace = rng.choice(PACES)
        self._inside = rng.choice((0.0, 0.0, 0.1, 0.4))
        """How often it is in a line that Magy changes."""
        self._at_edits = rng.choice((0.0, 0.1, 0.4))
        editor.moments[uri] = self._moment

    async def type(self) -> None:
        """Until there is nothing left to type; cancelled when the case is over."""
        while self._left > 0:
            await asyncio.sleep(self._rng.expovariate(1 / self._pace) if self._pace else 0)
            if not self._quiet.still:
                self._one()

    def _moment(self, when: str) -> None:
        if self._left > 0 and self._rng.random() < self._at_edits:
            self._one()

    # --- what is typed --------------------------------------------------------------------------

    def _one(self) -> None:
        self._left -= 1
        chance = self._rng.random()
        if chance < 0.08:
            self._editor.save(self._uri)
        elif chance < 0.2:
            self._delete_word()
        elif chance < 0.3:
            self._delete_key()
        elif chance < 0.6:
            self._new_line()
        else:
            self._in_line()

    @property
    def _text(self) -> str:
        return self._editor.texts[self._uri]

    def _put(self, start: int, end: int, new: str) -> None:
        self._editor._replace(self._uri, [(start, end, new)])

    def _key(self) -> str:
        self._number += 1
        key = f"⟦{self._number}⟧"
        self._sheet.keys.add(key)
        return key

    def _spots(self) -> list[tuple[int, str]]:
        """Where lines begin, and the lines."""
        found, at = [], 0
        for line in self._text.split("\n"):
            found.append((at, line))
            at += len(line) + 1
        return found

    def _in_line(self) -> None:
        inside = self._rng.random() < self._inside
        spots = [
            (at, line)
            for at, line in self._spots()
            if strip(line) and bool(_target(line) is not None) is inside
        ]
        at, line = self._rng.choice(spots)
        if (target := _target(line)) is not None:
            self._sheet.typed_in.add(target)
            self._sheet.typed_at.add(target)
        # Not in a tag, a number or another key, by which the line is known.
        begin = len(line) - len(line.split(" ", 1)[-1])
        places = [n for n in range(begin, len(line) + 1) if not _inside(line, n)]
        if line.startswith("⟦"):
            return
        spot = at + self._rng.choice(places)
        self._put(spot, spot, self._key())

    def _new_line(self) -> None:
        """Above a line; within a target only if it may be there."""
        spots = self._spots()
        number = self._rng.randrange(len(spots))
        at, line = spots[number]
        beside = {_target(line), _target(spots[number - 1][1]) if number else None}
        if beside != {None} and len(beside) == 1:
            if not self._inside:
                return
            self._sheet.typed_in.update(n for n in beside if n is not None)
        self._sheet.typed_at.update(n for n in beside if n is not None)
        self._put(at, at, f"{self._key()}\n")

    def _delete_key(self) -> None:
        text = self._text
        there = [
            found
            for found in KEY.finditer(text)
            if _target(_line(text, found.start())) is None and found[0] not in self._sheet.loose
        ]
        if there:
            found = self._rng.choice(there)
            self._sheet.keys.discard(found[0])
            self._sheet.gone.add(found[0])
            alone = _line(text, found.start()) == found[0]
            self._put(found.start(), found.end() + alone, "")

    def _delete_word(self) -> None:
        number = self._rng.randrange((TARGETS + 1) * BETWEEN)
        words = self._sheet.words[number]
        if len(words) < 2:
            return
        word = self._rng.choice(words[1:])
        at = self._text.find(f" {word}")
        if at < 0 or self._text[at + len(word) + 1 : at + len(word) + 2] not in (" ", "\n"):
            return  # a key is in it
        words.remove(word)
        self._put(at, at + len(word) + 1, "")


def _target(line: str) -> int | None:
    return next((n for n in range(TARGETS) if belongs(line, n)), None)


def _line(text: str, at: int) -> str:
    return text[text.rfind("\n", 0, at) + 1 :].split("\n", 1)[0]


def _inside(line: str, at: int) -> bool:
    return any(found.start() < at < found.end() for found in KEY.finditer(line))
