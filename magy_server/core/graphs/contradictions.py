"""Two agents may say the opposite of each other, or the same in other words. This module tells
which: by comparing words, so that whoever reads both can judge. It knows no opposites but numbers
and a no, in some languages; what it calls the same has lost no word. Pure.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Literal

from magy_server.dataclass import dataclass
from magy_server.regex import regex

MORE = 0.15
"""Part of a text that another, which says the same, may say besides."""
LONGEST = 400
"""Characters of a sentence that is compared, and shown."""
MOST = 2_000
"""Sentences of one text that are compared."""
LEAST = 3
"""Words of a sentence, without numbers: shorter ones prove nothing."""
_SIGN = r"\u3040-\u30ff\u3400-\u9fff"
_TOKEN = regex(rf"-?\b\d+(?:[.,:]\d+)*|[{_SIGN}]|[^\W\d_{_SIGN}]+|_+|!=+|[<>=%$€£&|~^+?]+")
"""A number, a word (a sign, of scripts without spaces), or what makes a difference in code."""
_NOT = regex(r"n['’]t\b")
_NE = regex(r"\bn['’](?=\w)")
_FENCE = regex(r"\s*(```+|~~~+)")
_END = regex(r"(?<=[.!?])\s+|(?<=[。！？])|\n")
_MARKS = regex(r"^[\s>*+#-]+|^\d+[.)]\s+|[*`]+")
_NAMED = regex(
    r"^[ \t]*(?:(?:export|default|pub|public|private|static|async|abstract|final)[ \t]+)*"
    r"(?:def|class|function|func|fn|struct|interface|trait|enum|type|sub)[ \t]+([A-Za-z_]\w*)"
)
_NOES = (
    "no not never none nothing neither nor without cannot",
    "nicht kein keine keinen keinem keiner nie niemals ohne nichts",
    "ne pas jamais aucun aucune sans rien",
    "nunca sin ningún ninguna nada jamás",
    "不 没 沒 无 無 未 非 别 別 勿 否",
)
NO = frozenset(chain.from_iterable(map(str.split, _NOES)))
"""Words that turn a sentence into its opposite: English, German, French, Spanish, Chinese."""
_FOUND = frozenset("有")
"""It goes with a no: 没有 is one."""

Kind = Literal["prose", "code", "fence"]


@dataclass(frozen=True, slots=True)
class Text:
    task: str
    text: str


@dataclass(frozen=True, slots=True)
class Contradiction:
    """What two tasks say; both are shown as they stand."""

    one: Text
    other: Text


def same(one: str, other: str) -> bool:
    """Returns whether the longer of two texts says all that the shorter does, word for word, and
    little besides; nothing that could turn it round. Lines of code must be equal."""
    mine, theirs = list(_tokens(one)), list(_tokens(other))
    if len(mine) > len(theirs):
        mine, theirs = theirs, mine
    more = len(theirs) - len(mine)
    if not more:
        return mine == theirs
    if more > MORE * len(mine):
        return False
    there = iter(theirs)
    added: list[str] = []
    for token in mine:
        for found in there:
            if found == token:
                break
            added.append(found)
        else:
            return False
    added += there
    return not any(token in NO or _is_number(token) or not token[0].isalpha() for token in added)


def contradictions(texts: Sequence[Text]) -> list[Contradiction]:
    """Returns where one says what another does, but with another number or a no more or less, and
    where they give different code for one name; each statement once, in their order."""
    found: list[Contradiction] = []
    prose: dict[tuple[str, ...], Text] = {}
    code: dict[str, Text] = {}
    for text in texts:
        for line in _sentences(text.text):
            _compare(prose, _skeleton(line), Text(text.task, line), found)
        for name, body in _definitions(text.text).items():
            was = code.setdefault(name, Text(text.task, body))
            if was.task != text.task and was.text != body:
                found.append(Contradiction(Text(was.task, name), Text(text.task, name)))
    return found


def _compare(
    there: dict[tuple[str, ...], Text], key: tuple[str, ...], said: Text,
    found: list[Contradiction],
) -> None:  # fmt: skip
    if len(key) < LEAST:
        return
    was = there.setdefault(key, said)
    if was.task != said.task and _turns(was.text) != _turns(said.text):
        found.append(Contradiction(was, said))


def _skeleton(sentence: str) -> tuple[str, ...]:
    """The words but numbers and noes."""
    return tuple(
        token for token in _words(sentence)
        if token not in NO and token not in _FOUND and not _is_number(token)
    )  # fmt: skip


def _turns(sentence: str) -> tuple[Sequence[str], bool]:
    """The numbers, and whether there is a no: two of them are one in French."""
    words = list(_words(sentence))
    return [one for one in words if _is_number(one)], any(one in NO for one in words)


def _sentences(text: str) -> Iterator[str]:
    number = 0
    for line, kind in lines(text):
        if kind != "prose" or number >= MOST:
            continue
        for sentence in _END.split(line):
            plain = _MARKS.sub("", sentence).strip()
            if plain and len(plain) <= LONGEST:
                number += 1
                yield plain


def _definitions(text: str) -> Mapping[str, str]:
    """By name, the block of code in which a text defines it."""
    found: dict[str, str] = {}
    block: list[str] = []
    for line, kind in (*lines(text), ("", "fence")):
        if kind == "code":
            block.append(line.rstrip())
            continue
        for one in block:
            if named := _NAMED.match(one):
                found.setdefault(named[1], "\n".join(block))
        block = []
    return found


def lines(text: str) -> Iterator[tuple[str, Kind]]:
    """Each line, and what it is; a fence begins or ends a block of code."""
    fence = ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
            yield line, "fence"
        else:
            yield line, "code" if fence else "prose"


def _is_number(token: str) -> bool:
    return token[-1].isdigit()


def _tokens(text: str) -> Iterator[str]:
    """Words; lines of code as they are, behind a line break."""
    for line, kind in lines(text):
        if kind == "code":
            yield "\n" + line.rstrip()
        elif kind == "prose":
            yield from _words(line)


def _words(text: str) -> Iterator[str]:
    plain = unicodedata.normalize("NFKC", _MARKS.sub("", text)).casefold()
    for found in _TOKEN.finditer(_NE.sub("ne ", _NOT.sub(" not", plain))):
        yield found[0]
