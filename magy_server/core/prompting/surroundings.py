"""This module finds which lines around a line belong together, in any language: by indentation, as
far as that tells. Lines count from 0, ends are exclusive.

An editor that knows the language knows better; this is for those that do not say. Files may be
generated, or hostile: the work grows with the text looked at and no faster, so that no expression
here may go back over what it has read of blanks or brackets (`*+`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from magy_server.regex import regex

ABOVE = 40
"""The most lines of comments and decorators that are taken along above a definition."""
FAR = 5_000
"""The most lines that are looked at in each direction."""
LONG = 2_000
"""The most characters of a line that are looked at: nobody wrote a longer one."""
_WORDS = (
    "def|class|function|func|fun|fn|sub|proc|procedure|method|macro|module|interface|impl|struct|"
    "enum|union|trait|protocol|object|record|namespace|package|contract|service|message|type|"
    "defmodule|defp|defmacro|defimpl|test|describe|resource|let|constructor"
)
_BEFORE = (
    "public|private|protected|internal|static|final|abstract|virtual|override|async|export|default|"
    "declare|inline|extern|unsafe|const|constexpr|pub(?:\\([\\w:]+\\))?|open|sealed|data|local|"
    "partial|suspend|readonly|get|set|unsigned|signed|mutable"
)
_DEFINES = regex(
    rf"""\s*+(?:
      (?:(?:{_BEFORE})\s++)* (?:{_WORDS})\b (?!\s*[=:.,;)])        # def name, pub fn name
    | \(\s*(?:def|cl-def|define)[\w*-]*\s                         # (defun name, (define (name
    | (?:(?:{_BEFORE})\s++)* (?:const|let|var)\s+[\w$]+\s*=.*(?:=>|\bfunction\b)   # const f = () =>
    | [\w.$]+\s*(?:=|:)\s*(?:async\s+)?function\b                 # name: function
    | [\w-]+\s*\(\)\s*\{{?\s*$                                    # name() {{
    )""",
    re.VERBOSE,
)
_CALLABLE = regex(
    r"\s*+(?!(?:return|else|new|throw|await|yield|not)\b)[\w~$<>:*&\[\],.@ \t]*[\w$~>]\s*\([^;]*$"
)
"""`int main(int argc,`: the head of a function in C and its kin, if a body follows."""
_CONTROL = regex(
    r"\s*+[})\]]*+\s*+(?:if|elif|elsif|else|for|foreach|while|until|switch|match|case|when|try|except|"
    r"catch|finally|with|do|loop|unless|begin|rescue|ensure|select|using|lock|synchronized)\b"
)
_CLOSING = regex(r"\s*+(?:[})\]]|(?:end|fi|done|esac|endif|endfunction|endfunc|endclass)\b)")
_BESIDE = regex(
    r"#\s*+(?:if|ifdef|ifndef|else|elif|endif|define|undef|include|pragma)\b"
    r"|\s*+(?:public|private|protected|signals|(?:public |private )?slots|default)\s*+:\s*+$"
    r"|\s*+where\s*+$"
)
"""What stands further left and divides nothing: preprocessor lines, labels, Rust's `where`."""
_TAKEN = regex(r"\s*+(?:@|#\[|//|#|;|--|/\*|\*|%|\"\"\"|\[)")
"""Decorators, attributes and comments."""


def definition(lines: Sequence[str], at: int) -> tuple[int, int] | None:
    """The innermost definition around line `at`, decorators and comments above it included; where
    no line looks like the head of one, the block at the margin that the line is in. None: the line
    is in no block."""
    at = min(at, len(lines) - 1)
    first, near = _near(lines, at, FAR + ABOVE)
    found = _definition(near, at - first)
    if found is None or (near[at - first].strip() and not found[0] <= at - first < found[1]):
        return None  # such as `#endif`, which only looks like a comment on what is below
    return found[0] + first, found[1] + first


def block(lines: Sequence[str], head: int) -> tuple[int, int]:
    """Returns the lines that belong to the line `head` by their indentation, with what closes them
    and what is said above."""
    first, near = _near(lines, head, ABOVE)
    start, end = _block(near, head - first)
    return start + first, end + first


def window(total: int, at: int, around: int) -> tuple[int, int]:
    """Returns at most `around` lines before and behind line `at` of `total`."""
    at = max(0, min(at, total - 1))
    return max(0, at - around), min(total, at + around + 1)


def _near(lines: Sequence[str], at: int, above: int) -> tuple[int, list[str]]:
    """What is looked at for a line, and the number of the first of it."""
    first = max(0, at - above)
    return first, [line[:LONG] for line in lines[first : at + FAR + ABOVE]]


def _definition(lines: Sequence[str], at: int) -> tuple[int, int] | None:
    anchor = _anchor(lines, at)
    if anchor is None:
        return None
    at = anchor
    outermost = None
    for head in _heads(lines, at):
        outermost = head
        if _defines(lines, head):
            found = _block(lines, head)
            if found[0] <= at < found[1]:
                return found
    if outermost is None or (outermost == at and not _deeper_below(lines, at)):
        return None
    found = _block(lines, outermost)
    margin = _indent(lines[outermost]) == 0
    return found if margin and found[0] <= at < found[1] and found[1] - found[0] > 1 else None


def _block(lines: Sequence[str], head: int) -> tuple[int, int]:
    return _start(lines, head), _end(lines, head)


def _anchor(lines: Sequence[str], at: int) -> int | None:
    """The line itself; for a blank one, or a comment or decorator, that which it stands above or
    in. None: there is nothing around."""
    if at < 0:
        return None
    for line in range(at, min(len(lines), at + ABOVE)):
        text = lines[line]
        if text.strip() and not _TAKEN.match(text):
            # The blank line behind a definition belongs to what stands before it, if to anything.
            return line if line == at or _adjacent(lines, at, line) else at
    return at if lines[at].strip() else None


def _adjacent(lines: Sequence[str], at: int, line: int) -> bool:
    return all(lines[i].strip() for i in range(at, line))


def _heads(lines: Sequence[str], at: int) -> Iterator[int]:
    """Returns the line and those around it that are indented less, going out."""
    limit = _width(lines, at) + 1
    for line in range(at, max(-1, at - FAR), -1):
        text = lines[line]
        indent = _indent(text)
        if not text.strip() or indent >= limit or _divides_nothing(text):
            continue
        if _CLOSING.match(text) or text.strip() == "{":
            limit = indent + 1  # what it closes or opens stands above it, not further right
            continue
        yield line
        limit = indent
        if indent == 0:
            return


def _width(lines: Sequence[str], at: int) -> int:
    """Returns how far a line is indented; a blank one counts as what stands before it."""
    while at > 0 and not lines[at].strip():
        at -= 1
    return _indent(lines[at])


def _defines(lines: Sequence[str], head: int) -> bool:
    text = lines[head]
    if _CONTROL.match(text) or _TAKEN.match(text):
        return False
    if _DEFINES.match(text):
        return True
    return bool(_CALLABLE.match(text)) and (
        text.rstrip().endswith(("{", ":", "=>")) or _brace_follows(lines, head)
    )


def _brace_follows(lines: Sequence[str], head: int) -> bool:
    """`{` on a line of its own, or behind the last parameter."""
    for line in range(head + 1, min(len(lines), head + 20)):
        text = lines[line].strip()
        if text.endswith("{"):
            return True
        if not text or text.endswith((";", "}")) or text.startswith("#"):
            return False
    return False


def _start(lines: Sequence[str], head: int) -> int:
    start, indent = head, _indent(lines[head])
    while start > max(0, head - ABOVE):
        above = lines[start - 1]
        if not above.strip() or _indent(above) not in (indent, indent + 1):
            break
        if not _TAKEN.match(above) or _divides_nothing(above):
            break
        start -= 1
    return start


def _end(lines: Sequence[str], head: int) -> int:
    indent, end, open_ = _indent(lines[head]), head + 1, _opens(lines[head])
    for line in range(head + 1, min(len(lines), head + FAR)):
        text = lines[line]
        if not text.strip() or (_divides_nothing(text) and _indent(text) <= indent):
            continue
        if _indent(text) > indent:
            end = line + 1
            continue
        if _indent(text) < indent:
            break
        if text.strip() == "{" and open_ is None:
            end, open_ = line + 1, "{"
        elif _CLOSING.match(text):
            end = line + 1
            if not text.rstrip().endswith(("{", ":", "(")):
                break
        else:
            break
    return end


def _opens(text: str) -> str | None:
    last = text.rstrip()[-1:]
    return last if last in ("{", ":", "(") else None


def _deeper_below(lines: Sequence[str], at: int) -> bool:
    below = next((line for line in lines[at + 1 : at + ABOVE] if line.strip()), "")
    return _indent(below) > _indent(lines[at])


def _divides_nothing(text: str) -> bool:
    return bool(_BESIDE.match(text))


def _indent(text: str) -> int:
    """In columns, of tabs of 8."""
    wide = text.expandtabs(8)
    return len(wide) - len(wide.lstrip())
