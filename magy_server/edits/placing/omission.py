"""This module notices new text that leaves something out in words: "// ... rest of the code"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache

from magy_server.edits.finding.normal_forms import squeeze
from magy_server.regex import regex

LONGEST = 120
"""Characters of a line that says so: longer ones say something else."""
_OPENING = regex(
    r"#+[|!<]?(?!\w)|//+[!/]?|--(?:\[\[)?(?=[\s.…(\[])|;+(?=\s|\.|…)|%+(?=\s|\.|…)|/\*+|<!--|<%(?:--|#)"
    r"|\{/\*|\{#|\{\{!(?:--)?|\(\*|\{-|@\*|<#--|<#|(?:rem|REM|dnl)(?=\s)"
)
"""What begins a comment in some language. A shebang, a heading or a directive is followed by a
word at once."""
_WEAK = regex(r"\"{3}|'{3}|(?:['\"!*]|\.\.|::)(?=\s)")
"""What begins one in few languages, and in others a text, a bullet or an operator."""
_GLUED = regex(r"(?:#|--)(?=\w)")
"""A comment without a blank, or a directive, an option, a tag."""
_DOTS = regex(r"\.{3,}|…+|⋮|\. \. \.")
_SIGNS = " ()[]{}<>*/#-–—=!%;:@|"
_NAMES = regex(r"\w[._(\[]\w")
"""Code, which may be commented out: `...other._def.shape`."""
_TRAILING = regex(r"(?<=[\s{(\[])(?:#|//|--|;|%|/\*|<!--|\{/\*|\(\*)\s*\S.*$")

_A = r"(?:the |your |my |all |any |this |that |of |its |in |for |other )*"
_CODE = (
    r"(?:code|implementation|logic|content|method|function|class|module|component|import|body"
    r"|file|definition|program|script|functionality|behaviou?r|source|text|page|document)(?:e?s)?"
)
_THING = (
    rf"(?:{_CODE}|test|field|prop|property|propertie|line|item|case|option|route|handler|style|part"
    r"|section|block|export|statement|declaration|variable|constant|type|interface|struct|enum"
    r"|member|helper|setting|config|configuration|parameter|argument|attribute|element|markup|html"
    r"|jsx|css|rule|query|querie|column|value|entry|entrie|key|step|job|target|dependency"
    r"|dependencie|check|branch|loop|setup|template|data|stuff|thing|list|table|array|object|dict"
    r"|schema|everything|it|this|children|header|footer)(?:e?s)?"
)
_TEXT = (
    r"(?:code|implementation|logic|content|method|function|import|body|bodie|functionality"
    r"|behaviou?r|markup|html|jsx|css|style)(?:e?s)?"
)
_SAME = (
    r"(?:unchanged|unmodified|untouched|intact|the same|same|as before|as is|as it was"
    r"|as they were)"
)
_STAY = (
    rf"(?:(?:is |are |remains? |stays? |kept |keeps? |left |continues? )*"
    rf"(?:{_SAME}(?: as before| as above)?|omitted|elided|not shown|not changed)"
    r"(?: here| for brevity| for clarity| for space| above| below)?"
    r"|(?:goes |go |continues? )?(?:here|above|below)|continues|for brevity|remains|stays)"
)
_OLD = r"(?:existing|remaining|other|previous|original|unchanged|current|same)"
_KEEP = (
    r"(?:keep|kept|leave|preserve|retain|maintain|include|insert|add|put|paste|copy|use|reuse"
    r"|do not change|don t change|do not touch|no changes? (?:to|in))"
)
_AFTER = regex(
    r"\b(?:rest|remaining|remainder|existing|other|previous|unchanged|same|omitted)\b"
    r"|\bas (?:before|is)\b|\bfor brevity\b"
)


@cache
def _dotted() -> re.Pattern[str]:
    """These say so with dots only. Long patterns are compiled when the first edit comes, since that
    takes as long as importing a large module."""
    return re.compile(
        rf"omitted|elided|truncated|skipped|(?:and )?(?:so on|(?:\w+ )?more(?: {_THING})?|etc)"
    )


@cache
def _before() -> re.Pattern[str]:
    return re.compile(
        rf"{_A}(?:rest|remaining|remainder|existing|other|previous|unchanged|same|omitted)\b"
        rf"|(?:\w+ ){{0,3}}{_THING} (?:unchanged|omitted|here)\b"
    )


@cache
def _phrases() -> re.Pattern[str]:
    return re.compile(
        "|".join(
            f"(?:{phrase})"
            for phrase in (
                rf"(?:todo |continues? with )?{_A}(?:rest|remainder) of {_A}"
                rf"(?:\S+ ){{0,2}}?{_THING}(?: {_STAY})?",
                rf"(?:rest|remainder) of \S+(?: {_STAY})?",
                rf"{_A}(?:rest|remainder)(?: {_STAY})",
                rf"{_A}(?:existing|remaining|unchanged) (?:\w+ ){{0,2}}?{_TEXT}(?: {_STAY})?",
                rf"{_A}{_OLD} (?:\w+ ){{0,2}}?{_THING} {_STAY}",
                rf"{_KEEP} {_A}(?:existing|remaining|original|current|previous) (?:\w+ ){{0,2}}?"
                rf"{_TEXT}(?: {_STAY})?",
                rf"{_KEEP} {_A}(?:rest|remainder|everything(?: else)?)"
                rf"(?: of {_A}(?:\w+ ){{0,2}}?{_THING})?(?: {_STAY})?",
                rf"(?:keep|leave|preserve|retain|maintain) {_A}(?:\w+ )?{_THING} {_SAME}",
                rf"{_A}(?:everything|all|anything|nothing)(?: else)? (?:below |above )?{_STAY}",
                rf"{_A}(?:\w+ ){{0,2}}?{_THING} (?:is |are )?(?:omitted|elided|truncated)"
                r"(?: here| for brevity| for clarity| for space)?",
                rf"{_A}(?:\w+ ){{0,2}}?{_CODE} (?:remains? |stays? )?{_SAME}"
                r"(?: as before| as above)?",
                r"(?:remains? |stays? )?(?:unchanged|unmodified|as before|same as before)",
                r"same as (?:before|above|existing|previous|original|the original|in the original)",
                rf"{_A}same (?:code|implementation|logic|content)(?: {_STAY})?",
                rf"no (?:other |further |more )?changes?(?: {_STAY}| needed| made)?",
                r"no (?:other |further |more )?changes? (?:below|above|after|before) (?:this|here)"
                r"(?: line| point)?",
                rf"lines? \d+ (?:to )?\d+ {_STAY}",
                r"(?:(?:omitted|truncated|shortened|snipped|elided) )?for (?:brevity|clarity)",
                r"snip(?:ped)?",
            )
        )
    )


def omission(old: Sequence[str], new: Sequence[str], there: Sequence[str]) -> str | None:
    """Returns the line of `new` that stands for text which it leaves out; None if there is none. A
    line that `old` has as often is an ordinary line. So is one that the text `there` has, when
    nothing of `old` goes, or when it says nothing but dots and nothing became shorter."""
    shorter = len(new) < len(old)
    if not any(_omits(line, shorter) for line in Counter(new) - Counter(old)):
        return None  # as nearly always, and cheap
    found = [
        line
        for n, line in enumerate(new)
        if _omits(line, shorter)
        and (shorter or not _ends_a_sentence(new[n - 1] if n else "", line))
    ]
    if not found:
        return None
    left = Counter(map(squeeze, old))
    left.subtract(map(squeeze, found))
    more = [line.strip() for line in found if left[squeeze(line)] < 0]
    known = {line.strip() for line in there}
    out = (line for line in old if _omits(line, shorter))
    if len(found) <= sum(line.strip() not in known for line in out):
        return None  # what old leaves out new may leave out, too, in other words
    gone = {line.strip() for line in old} - {line.strip() for line in new}
    return next(
        (
            line
            for line in more
            if line not in known or (gone and (shorter or re.search(r"\w", line)))
        ),
        None,
    )


def _ends_a_sentence(before: str, line: str) -> bool:
    """Whether a comment of one or two words is the end of what the line before it says."""
    opening, text = _OPENING.match(before.strip()), line.strip()
    return (
        opening is not None
        and not re.search(r"[*<{(\[@]", opening[0])  # what closes again does not go on
        and text.startswith(opening[0])
        and text[len(opening[0]) :].lstrip()[:1].islower()
        and len(_words(text).split()) < 3
        and not _DOTS.search(text)
        and before.strip()[-1:] not in tuple(".:;!?)}")
        and len(_words(before).split()) > 3
    )


def _omits(line: str, shorter: bool) -> bool:
    text = line.strip()
    return 0 < len(text) <= LONGEST and leaves_out(text, shorter)


def leaves_out(text: str, shorter: bool = True) -> bool:
    """Whether a line, without its indentation, says that it stands for others. Dots alone say so in
    a comment; in brackets only of a text that became `shorter`; bare, they are a stub's body."""
    if _DOTS.fullmatch(text):
        return False
    if sign := _WEAK.match(text):
        words = _words(text[sign.end() :])
        alone = text[0] in "'!\"" and text[0] not in text[1:] and len(words.split()) > 2
        return (alone or bool(_DOTS.search(text))) and _is_phrase(words)
    if tag := _GLUED.match(text):
        words = _words(text[tag.end() :])
        return len(words.split()) > 2 and _is_phrase(words)
    if sign := _OPENING.match(text):
        said = text[sign.end() :]
        words = _words(said)
        if sign[0].startswith("##") and not _DOTS.search(said):
            return len(words.split()) > 2 and _is_phrase(words)  # a heading may be a word
        return (
            _DOTS.fullmatch(said.strip(_SIGNS)) is not None if not words else _says_so(said, words)
        )
    words = _words(text)
    if text[0] in "([{<" and text[-1] in ")]}>":
        if not words:
            return shorter and _DOTS.search(text) is not None
        dots = _DOTS.match(text[1:].lstrip())
        if dots is None or text[1:].lstrip()[dots.end() :][:1].isspace():
            return len(words.split()) > 1 and _says_so(text[1:], words)
        return False
    if dots := _DOTS.match(text):
        if text[dots.end() :][:1].isspace():
            return _says_so(text, words)
        return _is_phrase(words) and len(words.split()) > 1
    trailing = _TRAILING.search(text)
    return trailing is not None and _behind(text[: trailing.start()].rstrip(), trailing[0])


def _says_so(said: str, words: str) -> bool:
    """Returns what a comment says, with its dots, and the words of it."""
    if _is_phrase(words):
        return True
    dots = list(_DOTS.finditer(said))
    if not dots or _NAMES.search(said):
        return False
    if _dotted().fullmatch(words):
        return True
    if not re.search(r"\w", said[: dots[0].start()]):
        glued = re.match(r"\w", said[dots[0].end() :]) is not None  # as a spread is
        return glued < len(words.split()) <= 8 and _AFTER.search(words) is not None
    return not re.search(r"\w", said[dots[-1].end() :]) and _before().match(words) is not None


def _behind(code: str, comment: str) -> bool:
    """Returns whether a comment behind code stands for more of it."""
    words, dotted = _words(comment), _DOTS.search(comment) is not None
    enclosed = code[-1:] in tuple("{([") and comment.rstrip(" ;,")[-1:] in tuple("})]")
    if not words:
        return dotted and enclosed
    stub = code in ("pass", "...", "{") or code.endswith((" pass", " ..."))
    return (dotted or enclosed or stub) and _is_phrase(words)


def _is_phrase(words: str) -> bool:
    return _phrases().fullmatch(words) is not None


def _words(said: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", _DOTS.sub(" ", said).lower()))
