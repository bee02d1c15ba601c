"""A model may quote only a part of a line, and write the whole line anew. This module then replaces
the rest of the line, too, which would else stand there twice."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from magy_server.edits.finding.normal_forms import indentation
from magy_server.edits.finding.source import Source
from magy_server.edits.placing.decorations import Wanted
from magy_server.edits.placing.splice import Unsafe
from magy_server.regex import regex

NOTE = "old had only a part of its last line; new was taken for all of it"
SHORTEST = 4
"""Characters of a text that is taken for all of a line but its indentation."""
_SIGNS = "()[]{}"
_QUOTED = regex(
    r"(?<=\w)'(?=\w)|(?<=[&<])'(?=\w)"  # an apostrophe, a lifetime
    r"|([\"'`])(?:\\.|(?!\1)[^\\\n])*\1"
)
_CLOSES = (";", ":", "{", "}", ")", "]", ",", '"', "'", "`")
_OPERATOR = regex(r"(?:[-+*/%&|^!=<>?(\[,~]|\b(?:and|or|not|in|is))\s*$")
"""No line of any language ends behind one of these."""
_TAG = regex(r"<[^<>=\n]*>\s*$")
"""This one is closed, and no comparison: `<td>`, `Vec<T>`."""
_AS_IT_IS = regex(r"<<|^#\s*(?:if|el|endif|define|undef|include|pragma|line|error|warning)")
"""Here documents, and lines that stand at the margin whatever is around them."""
_PREFIXES = regex(
    r"and|as|async|auto|await|case|char|class|const|def|delete|else|enum|extends|final|for|from"
    r"|function|if|import|in|int|is|let|long|mut|my|new|not|or|private|protected|public|ref|return"
    r"|static|struct|throw|typeof|unsafe|unsigned|var|void|where|while|with|yield"
)
"""These words stand before a value."""


def fitted(text: str, span: tuple[int, int], old: str, new: str) -> tuple[tuple[int, int], str]:
    """What to replace by what, when `old` is at `span` and becomes `new`. Raises Unsafe: what of
    the line is to stay cannot be told."""
    start, end = span
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", end)
    head, rest = text[first:start], text[end : len(text) if last < 0 else last]
    several = "\n" in old
    if not new.strip():
        return span, new
    if old.endswith("\n") or new.endswith("\n"):
        rest = ""
    if rest.strip() and (several or not head.strip()) and _completes(old, rest, new):
        return (start, end + len(rest)), new
    if head.strip():
        if (several or not rest.strip()) and _begins(old, head, new):
            lead = head[: len(head) - len(head.lstrip())]
            return (first, end), new if new.startswith(lead) else lead + new.lstrip(" \t")
    elif head and _has_margin(old, head, new):
        return (first, end), new
    return span, new


def lost_margin(lines: Sequence[str], first: int, wanted: Wanted) -> bool:
    """Whether `wanted`, which quotes all of line `first` but its indentation, left that out of its
    new lines too: as they are, they would not go with the lines around them."""
    margin = indentation(lines[first])
    old, new = wanted.old[0], wanted.new
    rest = [line for line in new[1:] if line.strip()]
    if len(wanted.old) != 1 or not margin or not rest or old.rstrip() != lines[first].strip():
        return False
    if moved := [line for line in rest if line.strip() == old.strip()]:
        deepest = len(margin) if new[0].rstrip().endswith((":", "{")) else len(margin) - 1
        return all(len(indentation(line)) <= deepest for line in moved)
    if any(_balance(new[0])) or any(map(_AS_IT_IS.search, new)):
        return False
    below = next((line for line in lines[first + 1 :] if line.strip()), "")
    least = min(len(indentation(line)) for line in rest)
    return least < len(indentation(below)) and not any(line.startswith(margin) for line in rest)


def completed(source: Source, wanted: Wanted) -> Wanted | None:
    """With its last line in full, of which it has only a part and new has all; None if it is no
    such text, or may be one in several places."""
    *before, cut = wanted.old or ("",)
    lines = source.form("indentation")
    found = lines.runs([line.strip() for line in before]) if before else range(len(lines.keys))
    hits = {lines.keys[n] for at in found for n in [at + len(before)] if n < len(lines.keys)}
    whole = [line for line in hits if line != cut.strip() and line.startswith(cut.strip())]
    if not cut.strip() or len(whole) != 1:
        return None
    full = indentation(cut) + whole[0]
    old = "\n".join(wanted.old).rstrip()
    try:
        (_, end), _ = fitted("\n".join([*before, full]), (0, len(old)), old, "\n".join(wanted.new))
    except Unsafe:
        return None
    return replace(wanted, old=(*before, full), note=NOTE) if end > len(old) else None


def completes(text: str, span: tuple[int, int], old: str, new: str) -> bool:
    """Returns whether `new` has, or may have, all of the line of which `old`, at `span`, is a
    part."""
    try:
        return fitted(text, span, old, new)[0] != span
    except Unsafe:
        return True


def _completes(old: str, rest: str, new: str) -> bool:
    """Returns whether `new` goes on to the end of the line, of which `old` left out `rest`."""
    before, after = old.rsplit("\n", 1)[-1], new.rsplit("\n", 1)[-1].rstrip()
    end = rest.rstrip()[-1]
    if before.rstrip() == after:
        return False
    if any(_balance(rest)):
        texts, lines = _like((old, rest, new)), _like((before, rest, after))
        longer = new.count("\n") > old.count("\n")
        if texts == lines == "part" or not (longer or after.endswith(_CLOSES)):
            return False
        if "whole" in (texts, lines) and "part" not in (texts, lines) and after.endswith(end):
            return True
        if "whole" in (texts, lines) or (max(_balance(before)) > 0 and after.endswith(end)):
            raise Unsafe(_unclear(before, rest))
        return False
    if "part" not in (_like((old, rest, new)), _like((before, rest, after))):
        return False
    if not after or old + rest == new:
        return False
    if re.search(r"\w$", before):
        rest = re.sub(r"^\w+", "", rest) or rest  # the cut went through a word
    if (
        _tells(rest, after)
        and after.endswith(rest.strip())
        and not before.rstrip().endswith(rest.strip())
    ):
        return True
    if end in ":;{" and after.endswith(end) and not before.rstrip().endswith(end):
        return True
    if _two_values(before, after, rest) or (
        end == "," and after.endswith(end) and not before.rstrip().endswith(end)
    ):
        raise Unsafe(_unclear(before, rest))
    return False


def _like(texts: tuple[str, str, str]) -> str:
    """Whether new, the third, leaves as much open as old does, the first, or as that with the rest
    of its line."""
    old, rest, new = texts
    now = _balance(new)
    return "part" if now == _balance(old) else "whole" if now == _balance(old + rest) else ""


def _two_values(before: str, after: str, rest: str) -> bool:
    """`before` ends with an operator and `after` with a value, to which another would be joined."""
    value = re.search(r"(\w+)$", after)
    return bool(
        _OPERATOR.search(before)
        and not _TAG.search(before)
        and value
        and not value[1].endswith("_")
        and _PREFIXES.fullmatch(value[1]) is None
        and re.match(r"\s*\w", rest)
    )


def _begins(old: str, head: str, new: str) -> bool:
    """Returns whether `new` has the line from its beginning, of which `old` left out `head`."""
    before, after, said = old.split("\n", 1)[0], new.split("\n", 1)[0].strip(), head.strip()
    if re.match(rf"{re.escape(said)}(?!(?<=\w)\w)", before.strip()) or head + old == new:
        return False
    if (head + old).rstrip() == new.rstrip():
        return True  # but for the blanks behind it
    if head[:1].isspace() and len(said) > 2 and new.startswith(head):
        return True  # with its indentation, which is in the middle of no line
    if (head + old).strip() == new.strip():
        return False
    like = {_like((old, head, new)), _like((before, head, after))}
    if any(_balance(head)):
        word = re.match(r"\w+|\S", said)
        return "part" not in like and word is not None and after.startswith(word[0])
    return _tells(head, after) and after.startswith(said)


def _tells(part: str, line: str) -> bool:
    """Whether that `line` has `part` at an edge is no accident: a letter or two may be."""
    part = part.strip()
    return len(part) < len(line) and (len(part) > 2 or not any(map(str.isalnum, part)))


def _has_margin(old: str, head: str, new: str) -> bool:
    """Whether `new` has the indentation of the line, behind which `old` begins. The same text with
    more of it is but indented further."""
    inside = new[len(head) : len(head) + 1].strip() and not old[:1].isspace()
    if not new.startswith(head) or not inside or old.strip() == new.strip() or len(old) < SHORTEST:
        return False
    return all(line.startswith(head) for line in new.split("\n") if line.strip())


def _balance(text: str) -> tuple[int, ...]:
    """Returns how many of each kind of bracket are open, and whether a quote is."""
    a, b, c, d, e, f = map(text.count, _SIGNS)
    quotes = sum(map(_QUOTED.sub("", text).count, "\"'`"))
    return a - b, c - d, e - f, quotes % 2


def _unclear(before: str, rest: str) -> str:
    return (
        f"old ends in the middle of a line, `{before.strip()}`, and it is not clear whether new "
        f"replaces the rest of it, `{rest.strip()}`; quote the whole line"
    )
