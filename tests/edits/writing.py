"""Edits written out in a format, and the edit that turns one text into another."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from magy_server.edits.formats.blocks import MARKER, Style
from magy_server.edits.formats.diff_names import quoted
from magy_server.edits.formats.heading_names import path_on
from magy_server.edits.formats.sections import section
from magy_server.edits.formats.stream import says_no_newline
from magy_server.edits.model import FileEdit, Hunk
from magy_server.edits.rebasing.diff import Block, blocks
from magy_server.edits.text import plain, split

NO_NEWLINE = "\\ No newline at end of file"
CONTEXT = 3
"""Lines around a change, at least."""
_ESCAPE = re.compile(rf"\\*(?:{MARKER.pattern})\s*\Z")
_ESCAPE_ROO = re.compile(r"\\*(?:<{7}|={7}|>{7}|-{7}|:start_line:|:end_line:)")
_MARKS = {"aider": ("<<<<<<<", ">>>>>>>"), "cline": ("-------", "+++++++"),
          "roo": ("<<<<<<<", ">>>>>>>")}  # fmt: skip


def write(format: str, edits: Sequence[FileEdit]) -> str:
    """`edits` such that `parse` gives the same again; hints that the format has no place for are
    left out. Raises ValueError when it cannot say something that matters, or does not exist."""
    if format not in _WRITERS:
        raise ValueError(f"there is no format {format!r}; known are {', '.join(_WRITERS)}")
    return _WRITERS[format](edits)


# --- from two texts -------------------------------------------------------------------------------


def edit_of(before: str | None, after: str | None, path: str) -> FileEdit:
    """What turns `before` into `after`; None: there is no such file. Each hunk has so much context
    that its `old` is in `before` once. Raises ValueError when both are None."""
    if before is None and after is None:
        raise ValueError("there is no file before, and none after")
    if before is None:
        return FileEdit(path, "create", content=plain(after or ""))
    if after is None:
        return FileEdit(path, "delete")
    before, after = plain(before), plain(after)
    if before == after:
        return FileEdit(path)
    if not before:
        return FileEdit(path, hunks=(Hunk("", after, lines=True, line=1, at_end=True),))
    return FileEdit(path, hunks=tuple(_hunks(before, after)))


def _hunks(before: str, after: str) -> Iterator[Hunk]:
    old, new = split(before), split(after)
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line))
    found = blocks(old, new)
    closed = before if before.endswith("\n") else f"{before}\n"  # as who looks for it takes it
    for group, a, b in _joined(found, [_spread(closed, starts, block) for block in found]):
        c, d = group[0][2] - (group[0][0] - a), group[-1][3] + (b - group[-1][1])
        yield Hunk("".join(old[a:b]), "".join(new[c:d]), lines=True, line=a + 1)


def _spread(text: str, starts: Sequence[int], block: Block) -> tuple[int, int]:
    """So many lines around the block that they are in `text` once."""
    more, last = CONTEXT, len(starts) - 1
    a, b = max(0, block[0] - more), min(last, block[1] + more)
    while (a, b) != (0, last):
        old = text[starts[a] : starts[b]]
        if old.strip() and text.find(old) == text.rfind(old):
            break
        more *= 2
        a, b = max(0, a - more), min(last, b + more)
    return a, b


def _joined(
    found: Sequence[Block], ranges: Sequence[tuple[int, int]]
) -> Iterator[tuple[list[Block], int, int]]:
    """The blocks whose surroundings meet, with all of those."""
    order = sorted(range(len(found)), key=lambda n: ranges[n])
    group: list[Block] = []
    a = b = 0
    for n in order:
        start, end = ranges[n]
        if group and start > b:
            yield sorted(group), a, b
            group = []
        a, b = (min(a, start), max(b, end)) if group else (start, end)
        group.append(found[n])
    if group:
        yield sorted(group), a, b


# --- formats --------------------------------------------------------------------------------------


def _unfit(edit: FileEdit, what: str, format: str) -> ValueError:
    return ValueError(f"{edit.path}: {format} cannot express {what}")


def _line_path(path: str) -> str:
    if not path or path != path.strip() or "\n" in path or "\r" in path:
        raise ValueError(f"{path!r} cannot be written as a line of its own")
    return path


def _unified(edits: Sequence[FileEdit]) -> str:
    return "".join(line for edit in edits for line in _unified_file(edit))


def _unified_file(edit: FileEdit) -> Iterator[str]:
    left, right = quoted(f"a/{edit.path}"), quoted(f"b/{edit.to or edit.path}")
    git = f"diff --git {left} {right}\n"
    match edit.op:
        case "write":
            raise _unfit(edit, "a file that is written whole", "a diff")
        case "create":
            yield git + "new file mode 100644\n"
            if edit.content:
                yield f"--- /dev/null\n+++ {right}\n"
                yield from _body(edit, Hunk("", edit.content, lines=True, line=1), 0)
        case "delete":
            yield git + "deleted file mode 100644\n"
            if edit.hunks:
                yield f"--- {left}\n+++ /dev/null\n"
        case "update":
            if edit.to:
                names = quoted(edit.path), quoted(edit.to)
                yield f"{git}rename from {names[0]}\nrename to {names[1]}\n"
            if edit.hunks:
                yield f"--- {left}\n+++ {right}\n"
    shift = 0
    for hunk in edit.hunks:
        yield from _body(edit, hunk, shift)
        shift += len(split(hunk.new)) - len(split(hunk.old))


def _body(edit: FileEdit, hunk: Hunk, shift: int) -> Iterator[str]:
    old, new = split(hunk.old), split(hunk.new)
    yield _at(edit, hunk, len(old), len(new), shift)
    yield from _signed(old, new)


def _at(edit: FileEdit, hunk: Hunk, old: int, new: int, shift: int) -> str:
    if not hunk.lines or hunk.every:
        raise _unfit(edit, "a change that is not of whole lines, or of every place", "a diff")
    if hunk.line is not None:
        start = hunk.line if old else hunk.line - 1
        return f"@@ -{start},{old} +{hunk.line + shift if new else start + shift},{new} @@\n"
    heading = " ".join(hunk.anchors)
    if (
        not old
        or hunk.at_end
        or len(hunk.anchors) > 1
        or section(f"@@ {heading}").heading != heading
    ):
        raise _unfit(edit, "where this hunk belongs", "a diff")
    return f"@@ {heading}\n" if heading else "@@ ... @@\n"


def _signed(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    at = 0
    for a, b, c, d in [*blocks(old, new), (len(old), len(old), 0, 0)]:
        for sign, lines in ((" ", old[at:a]), ("-", old[a:b]), ("+", new[c:d])):
            for line in lines:
                yield sign + (line if line.endswith("\n") else f"{line}\n{NO_NEWLINE}\n")
        at = b


def _v4a(edits: Sequence[FileEdit]) -> str:
    lines = [line for edit in edits for line in _v4a_file(edit)]
    return "".join(["*** Begin Patch\n", *lines, "*** End Patch\n"])


def _v4a_file(edit: FileEdit) -> Iterator[str]:
    path = _line_path(edit.path)
    match edit.op:
        case "write":
            raise _unfit(edit, "a file that is written whole", "a V4A patch")
        case "create":
            yield f"*** Add File: {path}\n"
            yield from _signed([], split(edit.content))
        case "delete":
            yield f"*** Delete File: {path}\n"
        case "update":
            yield f"*** Update File: {path}\n"
            if edit.to:
                yield f"*** Move to: {_line_path(edit.to)}\n"
            for hunk in edit.hunks:
                yield from _v4a_hunk(edit, hunk)


def _v4a_hunk(edit: FileEdit, hunk: Hunk) -> Iterator[str]:
    if not hunk.lines or hunk.every or not (hunk.old or hunk.at_end or hunk.anchors):
        raise _unfit(edit, "this hunk", "a V4A patch")
    for anchor in hunk.anchors:
        if section(f"@@ {anchor}").heading != anchor:
            raise _unfit(edit, f"the anchor {anchor!r}", "a V4A patch")
        yield f"@@ {anchor}\n"
    if not hunk.anchors:
        yield "@@\n"
    yield from _signed(split(hunk.old), split(hunk.new))
    if hunk.at_end and hunk.old:
        yield "*** End of File\n"


def _blocks(style: Style) -> Callable[[Sequence[FileEdit]], str]:
    return lambda edits: "\n".join(block for edit in edits for block in _block_file(edit, style))


def _block_file(edit: FileEdit, style: Style) -> Iterator[str]:
    if edit.to or edit.op in ("write", "delete") or (edit.op == "create" and style == "roo"):
        raise _unfit(edit, "this operation", f"{style} blocks")
    if path_on(edit.path, known=True) != edit.path or edit.path != _line_path(edit.path):
        raise _unfit(edit, "this name", f"{style} blocks")
    created = (Hunk("", edit.content, lines=True, at_end=True),)
    for hunk in edit.hunks if edit.op == "update" else created:
        if hunk.every or hunk.anchors or not hunk.lines:
            raise _unfit(edit, "this hunk", f"{style} blocks")
        blank = not hunk.old.strip() if style == "aider" else not hunk.old
        if blank and (style == "roo" or hunk.old or not hunk.at_end):
            raise _unfit(edit, "a hunk with nothing to search for", f"{style} blocks")
        head, tail = _MARKS[style]
        at = f":start_line:{hunk.line}\n-------\n" if style == "roo" and hunk.line else ""
        yield (
            f"{edit.path}\n{head} SEARCH\n{at}{_side(hunk.old, style)}=======\n"
            f"{_side(hunk.new, style)}{tail} REPLACE\n"
        )


def _side(text: str, style: Style) -> str:
    lines = text.split("\n")
    unended = lines.pop()
    out = [_escaped(line, style) for line in lines]
    if unended:
        out += [_escaped(unended, style), NO_NEWLINE]
    return "".join(line + "\n" for line in out)


def _escaped(line: str, style: Style) -> str:
    note = line.startswith("\\") and says_no_newline("\\" + line.lstrip("\\"))
    roo = style == "roo" and _ESCAPE_ROO.match(line)
    return "\\" + line if note or roo or _ESCAPE.match(line) else line


def _str_replace(edits: Sequence[FileEdit]) -> str:
    found = [one for edit in edits for one in _objects(edit)]
    return json.dumps(found, ensure_ascii=False, indent=1) + "\n"


def _objects(edit: FileEdit) -> Iterator[dict[str, Any]]:
    if edit.to or (edit.op == "delete" and edit.hunks):
        raise _unfit(edit, "this operation", "str_replace")
    if edit.op != "update":
        content = {} if edit.op == "delete" else {"content": edit.content}
        yield {"command": edit.op, "path": edit.path, **content}
    for hunk in edit.hunks:
        if hunk.anchors or (hunk.at_end and hunk.line is None):
            raise _unfit(edit, "this hunk", "str_replace")
        if not hunk.old and hunk.line is not None and hunk.new.endswith("\n"):
            insert = {"line": hunk.line - 1, "text": hunk.new}
            yield {"path": edit.path, "insert": insert}
            continue
        one: dict[str, Any] = {"path": edit.path, "old_text": hunk.old, "new_text": hunk.new}
        if hunk.every:
            one["replace_all"] = True
        if hunk.line is not None and hunk.old:
            one["line"] = hunk.line
        yield one


def _whole(edits: Sequence[FileEdit]) -> str:
    return "\n".join(_whole_file(edit) for edit in edits)


def _whole_file(edit: FileEdit) -> str:
    if edit.op not in ("write", "create") or edit.to:
        raise _unfit(edit, "this operation", "whole files")
    if edit.content and not edit.content.endswith("\n"):
        raise _unfit(edit, "a last line without a line end", "whole files")
    if path_on(edit.path) != edit.path:
        raise _unfit(edit, "this name", "whole files")
    longest = max((len(run) for run in re.findall(r"`{3,}", edit.content)), default=2)
    fence = "`" * (longest + 1)
    return f"{edit.path}\n{fence}\n{edit.content}{fence}\n"


_WRITERS: Mapping[str, Callable[[Sequence[FileEdit]], str]] = {
    "str_replace": _str_replace,
    "aider": _blocks("aider"),
    "cline": _blocks("cline"),
    "roo": _blocks("roo"),
    "unified": _unified,
    "v4a": _v4a,
    "whole": _whole,
}
