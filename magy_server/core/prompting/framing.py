"""This module frames texts in a prompt with marks, such that no text can end or make a mark.

A prompt is one text to the model: Magy's own notes, texts of files, mail of other agents. Each of
these stands between marks such as `<context>` and `</context>`. A text that was written elsewhere
may hold the same words, to pass for a word of the person; in it they are written `&lt;context>`.
Here is the one place that does so. Pure.
"""

from __future__ import annotations

import re

from magy_server.core.text.sanitizing import one_line
from magy_server.regex import regex

MARKS = ("context", "message", "note", "updated", "compacted", "conversation")
"""The parts of a prompt stand between these marks."""
TOOL_MARKS = ("web_page", "web_search")
"""A tool shows what strangers wrote between these marks."""


def _marks(names: tuple[str, ...]) -> str:
    """Returns a pattern for the `<` of each mark, however the mark is cased and spaced, and also
    where the text ends within it."""
    blank = r"[\s\u200b-\u200d\u2060\ufeff]*"
    return rf"<(?={blank}/?{blank}(?:{'|'.join(names)})(?:[\s/>]|\Z))"


_ANY = regex(_marks((*MARKS, *TOOL_MARKS)), re.IGNORECASE)
_FIRST = regex(rf"^([ \t]*){_marks(MARKS)}", re.IGNORECASE | re.MULTILINE)
_WRITTEN = regex(r"&lt;" + _marks((*MARKS, *TOOL_MARKS)).removeprefix("<"), re.IGNORECASE)
_SIMPLE = regex(r"[^\s\"'`<>()]+")
"""A name that says by itself where it ends."""


def escaped(text: str) -> str:
    """Returns the text without marks; everything else is as it was."""
    return _ANY.sub("&lt;", text) if "<" in text else text


def result(text: str) -> str:
    """Returns the result of a tool without Magy's marks at the beginnings of lines. It stands apart
    from prompts, and much of it is source that the model must see as it is; so marks elsewhere
    stay."""
    return _FIRST.sub(r"\1&lt;", text) if "<" in text else text


def unescaped(text: str, shown: str) -> str:
    """Returns what a model wrote of `shown` in the words of the original; the model saw it
    `escaped`."""
    if not _ANY.search(shown) or _WRITTEN.search(shown):
        return text
    return _WRITTEN.sub("<", text)


def framed(mark: str, text: str, **about: str) -> str:
    """Returns `text` between marks, with what is known of it, and leaves out what is empty."""
    fields = "".join(f" {name}={quoted(value)}" for name, value in about.items() if value)
    return f"<{mark}{fields}>\n{escaped(text)}\n</{mark}>"


def quoted(value: str) -> str:
    """Returns the text on one line, between quotes that it cannot end."""
    inside = one_line(value).replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
    return f'"{inside}"'


def named(name: str) -> str:
    """Returns the name of a file for a sentence of Magy's: in quotes where readers could not tell
    what belongs to it."""
    return name if _SIMPLE.fullmatch(name) and name == one_line(name) else quoted(name)
