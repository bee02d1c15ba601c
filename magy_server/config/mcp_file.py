"""This module writes `[mcp.NAME]` tables into a `magy.toml`, takes them out, and changes nothing
else in it."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from magy_server.config import layers
from magy_server.core.errors import InvalidConfig

_HEADER = re.compile(r"\s*\[+\s*(?P<name>[^\]\n]+?)\s*\]+")


def table(name: str, values: Mapping[str, Any]) -> str:
    """Returns the TOML of one server. Values are what JSON knows, but no null."""
    lines = [f"[mcp.{name}]", *(f"{key} = {_value(value)}" for key, value in values.items())]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{json.dumps(key)} = {_value(one)}" for key, one in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    # A string of JSON is one of TOML, too, but that DEL must be written out.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def added(text: str, name: str, values: Mapping[str, Any]) -> str:
    """Returns a `magy.toml` with one more server."""
    begin = text if not text or text.endswith("\n") else f"{text}\n"
    return f"{begin}\n{table(name, values)}" if begin.strip() else table(name, values)


def removed(text: str, name: str) -> str:
    """Returns a `magy.toml` without the tables of this server."""
    return "".join(_kept(text, name))


def _kept(text: str, name: str) -> Iterator[str]:
    names = (f"mcp.{name}", f'mcp."{name}"')
    dropping = False
    for line in text.splitlines(keepends=True):
        if found := _HEADER.match(line):
            header = found["name"].replace(" ", "")
            dropping = any(header == one or header.startswith(f"{one}.") for one in names)
        if not dropping:
            yield line


def rewritten(path: Path, text: str) -> None:
    """Replaces the file at once, so that nobody reads half of it; a new one is its owner's alone.
    Raises InvalidConfig when the text is not what Magy can read, and changes nothing then."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    fd, name = tempfile.mkstemp(prefix=".magy-", suffix=".toml", dir=path.parent)
    try:
        with open(fd, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(name, mode)
        try:
            layers.validate(layers.read(Path(name)))
        except InvalidConfig as error:
            raise InvalidConfig(error.message.replace(name, str(path))) from None
        os.replace(name, path)
    finally:
        if os.path.lexists(name):
            os.unlink(name)
