"""This module finds the MCP servers that people have configured for other agents."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from magy_server.core.mcp.server_settings import McpServer, parsed
from magy_server.dataclass import dataclass
from magy_server.regular_files import beginning

LARGEST = 8 << 20
"""Bytes of one file: Claude Code keeps much else in its own."""
_CODEX = {
    "command": "command", "args": "args", "env": "env", "cwd": "cwd", "url": "url",
    "http_headers": "headers", "enabled": "enabled", "startup_timeout_sec": "start_timeout",
    "tool_timeout_sec": "call_timeout", "enabled_tools": "tools", "disabled_tools": "without_tools",
}  # fmt: skip
"""Codex's keys and ours."""


@dataclass(frozen=True, slots=True)
class Found:
    """A server of another program: `table` is what `magy.toml` would say."""

    name: str
    table: Mapping[str, Any]
    of: str
    where: str


def found(root: str, home: str) -> tuple[list[Found], list[str]]:
    """The servers of Claude Code, Codex and VS Code, for everything and for this project; and what
    was wrong in their files, in sentences."""
    servers: list[Found] = []
    problems: list[str] = []
    for of, path in _places(root, home):
        try:
            data = beginning(path, LARGEST)
        except OSError:
            continue
        if data is None or len(data) > LARGEST:
            problems.append(f"{path} is no regular file, or too large; nothing is taken from it.")
            continue
        try:
            tables = _codex(data) if of == "Codex" else _json(data, path, root, problems)
        except (ValueError, RecursionError, AttributeError) as error:
            problems.append(f"{path} cannot be read: {error}.")
            continue
        for name, table in tables.items():
            if "${input:" in json.dumps(table):
                problems.append(
                    f"{path}: MCP server {name!r} wants values that are typed in there; write them "
                    "yourself: magy mcp add, with --env or --header."
                )
                continue
            try:
                McpServer.model_validate(table)
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                at = ".".join(map(str, first["loc"]))
                problems.append(f"{path}: MCP server {name!r}: {at}: {first['msg']}.")
            else:
                servers.append(Found(name, table, of, path))
    return servers, problems


def _places(root: str, home: str) -> Iterator[tuple[str, str]]:
    yield "Claude Code", os.path.join(home, ".claude.json")
    yield "Claude Code", os.path.join(root, ".mcp.json")
    yield "Codex", os.path.join(os.environ.get("CODEX_HOME") or f"{home}/.codex", "config.toml")
    for folder in (f"{home}/.config/Code/User", f"{home}/Library/Application Support/Code/User"):
        yield "VS Code", os.path.join(folder, "mcp.json")
    yield "VS Code", os.path.join(root, ".vscode", "mcp.json")


def _json(
    data: bytes, path: str, root: str, problems: list[str]
) -> Mapping[str, Mapping[str, Any]]:
    """Claude Code's own file has servers for everything, and some for each project; VS Code writes
    variables in its own way."""
    text = re.sub(r"\$\{env:(\w+)\}", r"${\1}", data.decode())
    whole = json.loads(text.replace("${workspaceFolder}", json.dumps(root)[1:-1]))
    tables: dict[str, Mapping[str, Any]] = {}
    parts = [whole] if isinstance(whole, dict) else []
    if Path(path).name == ".claude.json" and parts:
        projects = whole.get("projects")
        own = projects.get(root) if isinstance(projects, dict) else None
        parts += [own] if isinstance(own, dict) else []
        parts = [part for part in parts if part.get("mcpServers")]
    for part in parts:
        names = {key: part[key] for key in ("mcpServers", "servers") if key in part}
        read, wrong = parsed(json.dumps(names), path)
        tables |= read
        problems += wrong
    return tables


def _codex(data: bytes) -> Mapping[str, Mapping[str, Any]]:
    servers = tomllib.loads(data.decode()).get("mcp_servers", {})
    tables: dict[str, Mapping[str, Any]] = {}
    for name, given in servers.items():
        table = {ours: given[theirs] for theirs, ours in _CODEX.items() if theirs in given}
        if token := given.get("bearer_token_env_var"):
            headers = {"Authorization": f"Bearer ${{{token}}}"}
            table["headers"] = {**table.get("headers", {}), **headers}
        tables[name] = table
    return tables
