"""This module turns the content of prompts and tool calls from ACP's shape into that of Magy's
wire, and back. Pure."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from magy_server.acp.shapes import Sent
from magy_server.core.errors import InvalidRequest
from magy_server.edits.formats.unified import UnifiedReader
from magy_server.edits.model import EditError, FileEdit
from magy_server.regex import regex

Json = dict[str, Any]
_GIT = regex(r"^(?=diff --git )", re.MULTILINE)


def prompt(blocks: Sequence[Sent | Json]) -> list[Json]:
    """Returns the content of `magy/session/prompt`. Raises InvalidRequest for what Magy does not
    understand."""
    return [
        _block(one if isinstance(one, dict) else one.model_dump(by_alias=True)) for one in blocks
    ]


def _block(block: Json) -> Json:
    match block:
        case {"type": "text", "text": words}:
            return text(words)
        case {"type": "image", "mimeType": mime, "data": data}:
            return {"type": "image", "mimeType": mime, "data": data, "uri": block.get("uri")}
        case {"type": "resource_link", "uri": uri, "name": name}:
            return {"type": "resource_link", "uri": uri, "name": name}
        case {"type": "resource", "resource": {"uri": uri, "text": words}}:
            return {"type": "resource", "resource": {"uri": uri, "text": words}}
        case {"type": "resource", "resource": {"uri": uri, "blob": data, **about}}:
            if str(about.get("mimeType")).startswith("image/"):
                return {"type": "image", "mimeType": about["mimeType"], "data": data, "uri": uri}
            return {"type": "resource_link", "uri": uri, "name": uri}
        case {"type": "audio"}:
            raise InvalidRequest("session/prompt: Magy hears no sound: send the words as text.")
    raise InvalidRequest(f"session/prompt: Magy knows no content of type {block.get('type')!r}.")


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def output(words: str) -> Json:
    """Text, as content of a tool call."""
    return {"type": "content", "content": text(words)}


def of_call(content: Sequence[Mapping[str, Any]], root: str) -> list[Json]:
    """Returns the content of a call in the shape of version 1, which has no patches: each hunk is a
    text before and one after. `root`: where the files are that patches name."""
    found: list[Json] = []
    for part in content:
        if part["type"] == "diff":
            found += hunks(part["changes"], part["patch"]["text"], root)
        else:
            found.append(dict(part))
    return found


def locations(content: Sequence[Mapping[str, Any]]) -> Json:
    """The `locations` of a call that has this content, in the shape of version 1: its hunks."""
    found = [
        {"path": part["path"], "line": part["_meta"]["magy"]["line"]}
        for part in content
        if part["type"] == "diff"
    ]
    return {"locations": found} if found else {}


def hunks(changes: Sequence[Mapping[str, Any]], patch: str, root: str) -> Iterator[Json]:
    """The hunks of a patch. `changes` has the absolute paths of its files, as far as they are
    known. `_meta.magy.line` is the first line of the hunk afterwards, from 1."""
    for edit in _edits(patch):
        named = {"type": "diff", "path": _path(edit.to or edit.path, changes, root)}
        if edit.op == "create":
            yield {**named, "newText": edit.content, **_at(1)}
        moved = 0
        for hunk in edit.hunks:
            line = (hunk.line or 1) + moved
            moved += hunk.new.count("\n") - hunk.old.count("\n")
            yield {**named, "oldText": hunk.old, "newText": hunk.new, **_at(line)}


def _edits(patch: str) -> Iterator[FileEdit]:
    """What changes more than text (a picture, a mode) has no hunks."""
    for part in _GIT.split(patch):
        reader = UnifiedReader()
        with suppress(EditError):
            reader.feed(part)
            reader.finish()
        yield from reader.edits()


def _at(line: int) -> Json:
    return {"_meta": {"magy": {"line": line}}}


def _path(name: str, changes: Sequence[Mapping[str, Any]], root: str) -> str:
    known = (change["path"] for change in changes if change["path"].endswith(f"/{name}"))
    return next(known, None) or os.path.join(root, name)
