"""Content of prompts and tool calls, from ACP to Magy's wire and back. Pure."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from magy_server.acp.shapes import Sent
from magy_server.core.errors import InvalidRequest
from magy_server.regex import regex

Json = dict[str, Any]
_NONE = "/dev/null"
_HUNK = regex(r"^@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@.*$", re.MULTILINE)
_FILE = regex(r"^--- (.*)\n\+\+\+ (.*)\n", re.MULTILINE)


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
    starts = [*_FILE.finditer(patch)]
    for n, start in enumerate(starts):
        end = starts[n + 1].start() if n + 1 < len(starts) else len(patch)
        body = patch[start.end() : end]
        heads = [*_HUNK.finditer(body)]
        for at, head in enumerate(heads):
            stop = heads[at + 1].start() if at + 1 < len(heads) else len(body)
            before, after = _sides(body[head.end() + 1 : stop])
            yield {
                "type": "diff",
                "path": _path(start[1], start[2], changes, root),
                **({} if start[1] == _NONE else {"oldText": before}),
                "newText": after,
                "_meta": {"magy": {"line": int(head[1])}},
            }


def _path(old: str, new: str, changes: Sequence[Mapping[str, Any]], root: str) -> str:
    name = (old if new == _NONE else new)[2:]
    known = (change["path"] for change in changes if change["path"].endswith(f"/{name}"))
    return next(known, None) or os.path.join(root, name)


def _sides(hunk: str) -> tuple[str, str]:
    sides: dict[str, list[str]] = {"-": [], "+": []}
    last = ""
    for line in hunk.removesuffix("\n").split("\n"):
        mark, words = line[:1], f"{line[1:]}\n"
        if mark == "\\":  # the line above it has no end
            for side in ("-", "+") if last == " " else (last,):
                sides[side][-1] = sides[side][-1].rstrip("\n")
            continue
        for side in ("-", "+") if mark == " " else (mark,):
            if side in sides:
                sides[side].append(words)
        last = mark if mark in (" ", "-", "+") else last
    return "".join(sides["-"]), "".join(sides["+"])
