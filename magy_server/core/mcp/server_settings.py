"""This is what a person says of an MCP server: `[mcp.NAME]` in `magy.toml`, or an entry of a
project's `.mcp.json`. Pure."""

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field, ValidationError

from magy_server.core.errors import InvalidConfig
from magy_server.core.mcp.names import SERVER
from magy_server.core.patterns import matches_command
from magy_server.core.values import Value
from magy_server.regex import regex

_VARIABLE = regex(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<other>[^}]*))?\}")
_PLACE = regex(
    r"(?:~|\.\.?)?(?:/[\w. -]+){2,}/?|(?:~|\.\.?)?/[\w. -]{0,30}|\.\.?|~"  # a path
    r"|[\w.-]+:\d{1,5}"  # host and port
    r"|\w+://[\w.:-]+(?:/[\w.-]{1,16})*/?"  # an address without a user, a query, a long part
)
_ADDRESS = regex(r"https?://[^/?#\s\x00-\x1f][^\s\x00-\x1f]*")
_STARTED = ("command", "args", "env", "cwd", "url", "headers")
"""What says how a server is reached."""


class McpServer(Value):
    command: str = Field(
        default="", description="The program of a server on this machine, which speaks on stdio."
    )
    args: list[str] = Field(default=[], description="Its arguments.")
    env: dict[str, str] = Field(
        default={},
        description="Variables for it. It gets what commands get, and these; `${NAME}` takes a "
        "variable of yours, `${NAME:-else}` has another value where there is none.",
    )
    cwd: str = Field(
        default="", description="Where it starts; empty: the project. Relative to the project."
    )
    url: str = Field(default="", description="The address of a server that speaks HTTP.")
    headers: dict[str, str] = Field(
        default={}, description="Headers for it, such as `Authorization`; `${NAME}` as in `env`."
    )
    enabled: bool = Field(
        default=True, description="Whether Magy uses it. A project that is not trusted can only "
        "say no."
    )  # fmt: skip
    start_timeout: Annotated[float, Field(gt=0, le=600)] = Field(
        default=30.0, description="Seconds until it must have answered and named its tools."
    )
    call_timeout: Annotated[float, Field(gt=0, le=86_400)] = Field(
        default=120.0, description="Seconds that a call may take without a sign of progress."
    )
    tools: list[str] = Field(
        default=["*"], description="The tools that Magy uses, by the server's names for them or "
        "with `*`."
    )  # fmt: skip
    without_tools: list[str] = Field(default=[], description="The tools of these that it leaves.")

    @property
    def starts(self) -> str:
        """Returns in one line what is started, or where it is; without values that may be
        secret."""
        return self.url or " ".join([self.command, *self.args])


class Usable(McpServer):
    """A server with its variables filled in. `filled`: their values in its command, arguments and
    address."""

    filled: tuple[str, ...] = ()

    @property
    def starts(self) -> str:
        text = super().starts
        for value in self.filled:
            text = text.replace(value, "…")
        return text


Servers = Mapping[str, McpServer]


def says_how(table: Mapping[str, Any]) -> bool:
    """Returns whether a table says how the server is reached, so that it stands for itself; others
    only change what another says of it."""
    return any(key in table for key in ("command", "url"))


def usable(name: str, server: McpServer, environ: Mapping[str, str]) -> Usable:
    """Returns the server with its variables filled in. Raises InvalidConfig with what is wrong."""
    if not SERVER.fullmatch(name):
        raise InvalidConfig(
            f"the name {name!r} cannot be used: take up to 32 letters, digits, - and single _."
        )
    if bool(server.command) == bool(server.url):
        raise InvalidConfig(
            "it has both a command and a url; keep one of them."
            if server.url
            else "it has neither a command nor a url, so it cannot be reached; add one."
        )
    missing: list[str] = []
    given = {field: _filled(getattr(server, field), environ, missing) for field in _STARTED}
    if missing:
        names = ", ".join(dict.fromkeys(missing))
        raise InvalidConfig(
            f"there is no variable {names} in Magy's environment; set it, or write "
            f"${{{missing[0]}:-VALUE}}."
        )
    if server.url and not _ADDRESS.fullmatch(given["url"]):
        filled = "" if given["url"] == server.url else ", with its variables filled in,"
        raise InvalidConfig(f"{server.url!r}{filled} is no http or https address.")
    shown = " ".join([server.command, *server.args, server.url])
    found = (environ.get(match["name"], "") for match in _VARIABLE.finditer(shown))
    return Usable(**{**server.model_dump(), **given}, filled=tuple(filter(None, found)))


def _filled(value: Any, environ: Mapping[str, str], missing: list[str]) -> Any:
    def value_of(match: re.Match[str]) -> str:
        name, other = match["name"], match["other"]
        if other and "${" in other:
            raise InvalidConfig(
                f"`${{{name}:-...}}` has another variable inside; write the value itself there."
            )
        if environ.get(name):
            return environ[name]
        if other is None:
            missing.append(name)
        return other or ""

    if isinstance(value, str):
        return _VARIABLE.sub(value_of, value)
    if isinstance(value, Mapping):
        return {key: _filled(one, environ, missing) for key, one in value.items()}
    return [_filled(one, environ, missing) for one in value]


def hidden(server: McpServer) -> Iterator[str]:
    """The values of a usable server that nothing may show: of its variables, and of its headers,
    also word by word (`Bearer KEY`). What names a place stands in too many texts."""
    filled = server.filled if isinstance(server, Usable) else ()
    for value in (*server.env.values(), *server.headers.values(), *filled):
        if not _PLACE.fullmatch(value):
            yield from {value, *value.split()}


# --- .mcp.json and its like ---------------------------------------------------------------------


def parsed(text: str, where: str) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Returns the tables of a `.mcp.json`, by name, and what is wrong in it, in sentences that name
    the file. What is wrong is left out. `servers` is what VS Code calls them."""
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        return {}, [f"{where} is not valid JSON: {error}."]
    found = whole.get("mcpServers", whole.get("servers")) if isinstance(whole, dict) else None
    if not isinstance(found, dict):
        return {}, [f'{where} has no object "mcpServers"; no server is read from it.']
    tables: dict[str, dict[str, Any]] = {}
    problems: list[str] = []
    for name, entry in found.items():
        try:
            table, unknown = _table(entry)
            McpServer.model_validate(table)
        except InvalidConfig as error:
            problems.append(f"{where}: MCP server {name!r}: {error.message}")
            continue
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            at = ".".join(map(str, first["loc"]))
            problems.append(f"{where}: MCP server {name!r}: {at}: {first['msg']}.")
            continue
        tables[name] = table
        problems += [f"{where}: MCP server {name!r}: {said}" for said in unknown]
    return tables, problems


_SPOKEN = ("", "stdio", "http", "streamable-http", "streamable_http")
_IGNORED = frozenset({"type", "name", "description", "gallery", "version", "dev", "envFile"})


def _table(entry: object) -> tuple[dict[str, Any], list[str]]:
    """Returns an entry as a table of `magy.toml`, and sentences on what is left out of it."""
    if not isinstance(entry, dict):
        raise InvalidConfig("it is not an object.")
    if (kind := entry.get("type", "")) not in _SPOKEN:
        raise InvalidConfig(
            f"the transport {kind!r} is not one that Magy speaks; it speaks stdio and http."
        )
    table: dict[str, Any] = {}
    unknown: list[str] = []
    for key, value in entry.items():
        match key:
            case "command" | "args" | "env" | "cwd" | "url" | "headers":
                table[key] = value
            case "disabled":
                table["enabled"] = not _truth(key, value)
            case "enabled":
                table["enabled"] = _truth(key, value)
            case "envFile":
                unknown.append(f"{key} is not read; name the variables in env.")
            case _ if key not in _IGNORED:
                near = difflib.get_close_matches(key, _STARTED, 1)
                meant = f"; did you mean {near[0]!r}?" if near else "."
                unknown.append(f"unknown key {key!r}{meant}")
    return table, unknown


def _truth(key: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("true", "false"):
        return value == "true"
    raise InvalidConfig(f"{key} is {json.dumps(value)[:40]}; write true or false.")


def asked_for(server: McpServer, tool: str) -> bool:
    """Returns whether the person wants this tool of the server, by the server's own name for it."""

    def named(patterns: list[str]) -> bool:
        return any(matches_command(pattern, tool) for pattern in patterns)

    return named(server.tools) and not named(server.without_tools)
