"""What stands between the marks of a prompt, and what is said about it, cannot end or make one.

A prompt is one text to the model: Magy's own notes, texts of files, mail of other agents. Each of
these stands between marks such as `<context>` and `</context>`. A text that was written elsewhere
may hold the same words, to pass for a word of the person; in it they are written `&lt;context>`.
Here is the one place that does so. Pure.
"""

from __future__ import annotations

import re

from magy_server.core.harmless import one_line

MARKS = ("context", "message", "note", "updated", "compacted", "conversation")
"""Between which parts of a prompt stand."""
TOOL_MARKS = ("web_page", "web_search")
"""Between which a tool shows what strangers wrote."""


def _marks(names: tuple[str, ...]) -> str:
    """A mark's `<`, however the mark is cased and spaced, and where the text ends within it."""
    blank = r"[\s\u200b-\u200d\u2060\ufeff]*"
    return rf"<(?={blank}/?{blank}(?:{'|'.join(names)})(?:[\s/>]|\Z))"


_ANY = re.compile(_marks((*MARKS, *TOOL_MARKS)), re.IGNORECASE)
_FIRST = re.compile(rf"^([ \t]*){_marks(MARKS)}", re.IGNORECASE | re.MULTILINE)
_WRITTEN = re.compile(r"&lt;" + _marks((*MARKS, *TOOL_MARKS)).removeprefix("<"), re.IGNORECASE)
_SIMPLE = re.compile(r"[^\s\"'`<>()]+")
"""A name that says by itself where it ends."""


def escaped(text: str) -> str:
    """Without marks; everything else is as it was."""
    return _ANY.sub("&lt;", text)


def result(text: str) -> str:
    """What a tool gave. It stands apart from what is said, and much of it is source that has to be
    shown as it is; so only what begins a line like one of Magy's own parts is no mark any more."""
    return _FIRST.sub(r"\1&lt;", text)


def unescaped(text: str, shown: str) -> str:
    """What a model wrote of `shown`, which it saw `escaped`: in the words of the original."""
    if not _ANY.search(shown) or _WRITTEN.search(shown):
        return text
    return _WRITTEN.sub("<", text)


def framed(mark: str, text: str, **about: str) -> str:
    """`text` between marks, with what is known of it; what is empty is left out."""
    fields = "".join(f" {name}={quoted(value)}" for name, value in about.items() if value)
    return f"<{mark}{fields}>\n{escaped(text)}\n</{mark}>"


def quoted(value: str) -> str:
    """On one line and between quotes that it cannot end."""
    inside = one_line(value).replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
    return f'"{inside}"'


def named(name: str) -> str:
    """The name of a file within a sentence of Magy's: in quotes where it is not plain what belongs
    to it."""
    return name if _SIMPLE.fullmatch(name) and name == one_line(name) else quoted(name)
