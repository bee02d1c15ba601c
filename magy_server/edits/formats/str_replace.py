"""This module reads edits as JSON: one object, a list of them, or `{"path": ..., "edits": [...]}`.

    {"path": "greet.py", "old_text": "'hello'", "new_text": "'good morning'"}
    {"path": "greet.py", "insert": {"line": 0, "text": "import sys"}}

The names of the fields are those of Magy's own tool; those of other tools' are understood
(`FIELDS`). What is not understood is refused, since it may have meant something.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Never

from magy_server.edits.formats.json_scan import DEPTH, Piece, Scanner
from magy_server.edits.formats.stream import BOM, Fence, Found, refusal
from magy_server.edits.model import EditError, FileEdit, Hunk
from magy_server.edits.text import plain
from magy_server.regex import regex

FIELDS: Mapping[str, tuple[str, ...]] = {
    "path": ("path", "file_path", "file", "filename", "target_file"),
    "old_text": ("old_text", "old_str", "old_string", "old", "search", "search_text", "find"),
    "new_text": ("new_text", "new_str", "new_string", "new", "replace", "replacement",
                 "replace_text", "replace_with"),
    "replace_all": ("replace_all", "every", "allow_multiple", "all_occurrences"),
    "line": ("line", "start_line", "line_number"),
    "expected": ("expected_replacements", "expected_occurrences"),
    "insert": ("insert",),
    "insert_line": ("insert_line",),
    "insert_text": ("insert_text", "text"),
    "content": ("content", "file_text", "contents"),
    "command": ("command",),
    "edits": ("edits", "changes", "replacements"),
}  # fmt: skip
"""Our name of each field, and what other tools call it; capitals and underscores do not matter."""
REMARKS = ("instruction", "instructions", "explanation", "description", "display_description",
           "comment", "reason", "thought", "title")  # fmt: skip
"""Fields that say something to people."""
VALID = (
    'An edit is {"path": ..., "old_text": ..., "new_text": ...}, perhaps with "replace_all": true; '
    'or {"path": ..., "insert": {"line": N or "after": TEXT, "text": ...}}.'
)
_COMMANDS = ("str_replace", "replace", "edit", "insert", "create", "write", "delete")
_SPACE = regex(r"\s*")
_SURROGATE = regex("[\ud800-\udfff]")


def _plain_key(key: str) -> str:
    return key.lower().replace("_", "").replace("-", "")


_OURS = {_plain_key(word): ours for ours, words in FIELDS.items() for word in words}
_OURS |= {_plain_key(word): "" for word in REMARKS}


class Unfit(ValueError):
    """JSON that is not an edit. The message is a sentence."""


class StrReplaceReader:
    """Gives each edit when its object is whole and its file known."""

    def __init__(self, path: str = "") -> None:
        self._path = path
        self._found = Found()
        self._scanner = Scanner()
        self._all: list[str] = []
        self._object_path = ""
        self._held: deque[tuple[Piece, bool]] = deque()
        """Edits of a list whose file is not named yet, and whether they name one themselves."""

    def edits(self) -> list[FileEdit]:
        return self._found.known()

    def feed(self, chunk: str) -> None:
        if not self._all:
            chunk = chunk.removeprefix(BOM)
        if not chunk:
            return
        self._all.append(chunk)
        for piece in self._scanner.feed(chunk):
            self._piece(piece)

    def finish(self) -> None:
        text = "".join(self._all)
        for value in self._values(text):
            for one in value if isinstance(value, list) else [value]:
                if not isinstance(one, dict):
                    raise self._refuse(f"{_said(one)} is not an edit. {VALID}", 1)
        if not self._found.known():
            raise self._refuse(f"there is no edit in it. {VALID}", 1)

    def _values(self, text: str) -> Iterator[Any]:
        """All values in the text, one after the other. Raises EditError for what is no JSON."""
        at, end = _inside_fence(text)
        text = text[:end]
        decoder = json.JSONDecoder(strict=False)
        while at < end:
            try:
                value, at = decoder.raw_decode(text, at)
            except json.JSONDecodeError as error:
                shown = text.split("\n")[error.lineno - 1][:200] if error.lineno else ""
                cut = (
                    " It seems to be cut off." if error.pos >= end or "Unterm" in error.msg else ""
                )
                raise self._refuse(
                    f"this is not well-formed JSON ({error.msg}, column {error.colno}).{cut} "
                    f"{VALID}", error.lineno, shown,
                ) from None  # fmt: skip
            except ValueError as error:
                raise self._refuse(f"{error}. {VALID}", 1) from None
            yield value
            if blank := _SPACE.match(text, at):
                at = blank.end()

    def _piece(self, piece: Piece) -> None:
        ours = _OURS.get(_plain_key(piece.key))
        match piece.kind:
            case "item" if not piece.key:
                self._one(piece, "")
            case "item" if ours == "edits":
                self._held.append((piece, self._names(piece)))
                self._release(whole=False)
            case "member" if ours == "path":
                self._object_path = piece.text
                self._release(whole=False)
            case "value":
                self._value(piece)
            case "lost":
                raise self._refuse(
                    f"this is not well-formed JSON, or has more than {DEPTH} brackets within each "
                    f"other. {VALID}", piece.line,
                )  # fmt: skip

    def _value(self, piece: Piece) -> None:
        """A whole object at the top. Edits in a list of it were seen before."""
        try:
            found = _fields(_loads(piece.text))
            if "edits" not in found:
                self._one(piece, "")
            else:
                self._list(found, piece)
        except Unfit as error:
            raise self._refuse(f"{error} {VALID}", piece.line) from None
        self._object_path = ""

    def _list(self, found: Mapping[str, Any], piece: Piece) -> None:
        if others := found.keys() - {"path", "edits"}:
            raise Unfit(f"A list of edits cannot stand beside {', '.join(sorted(others))}.")
        edits = found["edits"]
        self._object_path = _text(found, "path", "")
        if as_text := isinstance(edits, str):  # as some models write the list
            edits = _loads(edits)
        if not isinstance(edits, list):
            raise Unfit(f"edits is {_said(edits)}, not a list.")
        if as_text:
            self._hold(edits, piece.line)
        for one in edits:
            if not isinstance(one, dict):
                raise Unfit(f"{_said(one)} is not an edit.")
        self._release(whole=True)

    def _release(self, *, whole: bool) -> None:
        """Edits whose file is known; with `whole`, the tool's own file is meant otherwise."""
        while self._held and (whole or self._object_path or self._held[0][1]):
            piece, _ = self._held.popleft()
            self._one(piece, self._object_path, inner=True)

    def _hold(self, edits: Sequence[Any], line: int) -> None:
        self._held.extend((Piece("item", json.dumps(one), line), True) for one in edits)

    def _names(self, piece: Piece) -> bool:
        try:
            return bool(_fields(_loads(piece.text)).get("path"))
        except Unfit:
            return True  # then it is refused

    def _one(self, piece: Piece, path: str, *, inner: bool = False) -> None:
        try:
            found = _fields(_loads(piece.text))
            if "edits" in found:
                self._nested(found, piece, inner=inner)
                return
            edit = lowered(found, path or self._path, piece.line)
        except Unfit as error:
            raise self._refuse(f"{error} {VALID}", piece.line) from None
        if edit.op == "update":
            self._found.hunk(edit.path, edit.hunks[0])
        else:
            self._found.add(edit)

    def _nested(self, found: Mapping[str, Any], piece: Piece, *, inner: bool) -> None:
        """An object with a list of its own, in a list of such objects."""
        if inner:
            raise Unfit("A list of edits contains a list of edits.")
        if isinstance(found["edits"], list):
            self._hold(found["edits"], piece.line)
        self._list(found, piece)
        self._object_path = ""

    def _refuse(self, why: str, line: int, shown: str = "") -> EditError:
        return refusal(line, shown, why, self._found.hunks)


def lowered(found: Mapping[str, Any], default: str, source: int) -> FileEdit:
    """One edit from its fields, under our names. Raises Unfit."""
    path = _text(found, "path", "") or default
    if not path:
        raise Unfit("path is missing: name the file.")
    command = _text(found, "command", "")
    if command and command not in _COMMANDS:
        raise Unfit(
            f"The command {command!r} is not an edit command; known are {', '.join(_COMMANDS)}."
        )
    if command == "delete":
        _only(found, "path")
        return FileEdit(path, "delete")
    if "content" in found:
        _only(found, "path", "content")
        op: Literal["create", "write"] = "create" if command == "create" else "write"
        return FileEdit(path, op, content=_text(found, "content"))
    if command == "insert" or found.keys() & {"insert", "insert_line"}:
        return FileEdit(path, hunks=(_insertion(found, source),))
    _only(found, "path", "old_text", "new_text", "replace_all", "expected", "line")
    expected = _number(found, "expected", least=1) if "expected" in found else 1
    hunk = Hunk(
        _text(found, "old_text"),
        _text(found, "new_text"),
        every=_flag(found, "replace_all") or expected > 1,
        line=_number(found, "line", least=1) if "line" in found else None,
        source=source,
    )
    return FileEdit(path, hunks=(hunk,))


def _insertion(found: Mapping[str, Any], source: int) -> Hunk:
    """Whole lines: after line N (0: at the beginning), or after the lines that are quoted."""
    inner = found
    if "insert" in found:
        if not isinstance(found["insert"], dict):
            raise Unfit(f"insert is {_said(found['insert'])}, not an object.")
        after = found["insert"].get("after")
        inner = _fields({k: v for k, v in found["insert"].items() if k != "after"})
        if "insert_text" in found and not inner.keys() & {"insert_text", "new_text", "content"}:
            inner = {**inner, "insert_text": found["insert_text"]}  # the text stands beside it
            found = {k: v for k, v in found.items() if k != "insert_text"}
        _only(found, "path", "insert", "command")
        _only(inner, "line", "insert_line", "insert_text", "new_text", "content")
        if after is not None and not isinstance(after, int):
            if inner.keys() & {"line", "insert_line"}:
                raise Unfit("insert has both line and after; give only one.")
            quoted = _text({"after": after}, "after")
            quoted = _line(quoted if quoted.strip() else "", "insert.after is empty.")
            return Hunk(quoted, quoted + _inserted(inner), lines=True, source=source)
        if after is not None:
            inner = {"line": after, **inner}
    else:
        _only(found, "path", "insert_line", "insert_text", "new_text", "line")
    place = "insert_line" if "insert_line" in inner else "line"
    return Hunk(
        "", _inserted(inner), lines=True, line=_number(inner, place, least=0) + 1, source=source
    )


def _inserted(found: Mapping[str, Any]) -> str:
    name = next((n for n in ("insert_text", "new_text", "content") if n in found), "insert_text")
    return _line(_text(found, name), "The inserted text is empty.")


def _line(text: str, empty: str) -> str:
    if not text:
        raise Unfit(empty)
    return text if text.endswith("\n") else text + "\n"


# --- fields ---------------------------------------------------------------------------------------


def _loads(text: str) -> Any:
    try:
        return json.loads(text, strict=False, object_pairs_hook=_once, parse_constant=_constant)
    except Unfit:
        raise
    except json.JSONDecodeError as error:
        raise Unfit(f"This is not well-formed JSON ({error.msg}).") from None
    except ValueError as error:  # a number of thousands of digits
        raise Unfit(f"{error}.") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Unfit(f"{twice} occurs twice; write each edit as its own object.")
    return found


def _constant(name: str) -> Never:
    raise Unfit(f"{name} is no JSON.")


def _fields(value: Any) -> dict[str, Any]:
    """By our names, without remarks. A null counts as left out. Raises Unfit."""
    if not isinstance(value, dict):
        raise Unfit(f"{_said(value)} is not an edit.")
    found: dict[str, Any] = {}
    for key, one in value.items():
        ours = _OURS.get(_plain_key(key))
        if ours is None:
            raise Unfit(f"{key!r} is not known.")
        if ours in found:
            raise Unfit(f"{key} means the same as another field; give only one.")
        if ours and one is not None:
            found[ours] = one
    return found


def _only(found: Mapping[str, Any], *names: str) -> None:
    if others := found.keys() - {*names, "command"}:
        beside = ", ".join(name for name in names if name in found and name != "path")
        raise Unfit(f"{', '.join(sorted(others))} cannot stand beside {beside or 'the rest'}.")


def _text(found: Mapping[str, Any], name: str, default: str | None = None) -> str:
    if name not in found:
        if default is not None:
            return default
        raise Unfit(f"{name} is missing.")
    value = found[name]
    if not isinstance(value, str):
        raise Unfit(f"{name} is {_said(value)}, not a text.")
    if _SURROGATE.search(value):
        raise Unfit(f"{name} contains half a character (a lone surrogate).")
    return plain(value)


def _number(found: Mapping[str, Any], name: str, *, least: int) -> int:
    if name not in found:
        raise Unfit(f"{name} is missing.")
    value = found[name]
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 10**9:
        raise Unfit(f"{name} is {_said(value)}, not a number from {least}.")
    return value


def _flag(found: Mapping[str, Any], name: str) -> bool:
    value = found.get(name, False)
    if isinstance(value, str) and value.lower() in ("true", "false"):
        value = value.lower() == "true"
    if not isinstance(value, bool):
        raise Unfit(f"{name} is {_said(value)}, not true or false.")
    return value


def _said(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _inside_fence(text: str) -> tuple[int, int]:
    """Where the JSON is in a text that may have a fence around it."""
    start = len(text) - len(text.lstrip())
    line_end = text.find("\n", start)
    fence = Fence.of(text[start:line_end]) if line_end >= 0 else None
    stripped = text.rstrip()
    if fence is None:
        return start, len(stripped)
    last = stripped.rfind("\n") + 1
    return line_end + 1, last if last > line_end and fence.closes(stripped[last:]) else len(
        stripped
    )
