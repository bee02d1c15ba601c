"""This module finds what a prompt names of MCP servers: `@SERVER:URI` is a resource, and
`/SERVER:PROMPT` at the beginning a prompt, with its arguments behind. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence

from magy_server.core.errors import InvalidRequest
from magy_server.core.values import Content, Text
from magy_server.dataclass import dataclass
from magy_server.regex import regex

SCHEME = "mcp"
"""The content that comes of it has the URI `mcp:SERVER/...`; `policy/strangers.py` knows it by
that."""
MOST = 20
"""Resources of one prompt."""
_CLOSING = ".,;:!?)]}>'\"`’”»…"
_SERVER = r"[A-Za-z0-9][A-Za-z0-9_-]*"
_URI = r"[A-Za-z][\w+.-]*:"
_RESOURCE = regex(
    rf'(?<![\w.@/\\+-])@(?:"(?P<q>{_SERVER}):(?P<quoted>{_URI}[^"\n]+)"|'
    rf"(?P<b>{_SERVER}):(?P<bare>{_URI}[^\s\"]+))"
)
_PROMPT = regex(rf"\s*/(?P<server>{_SERVER}):(?P<name>\S+)[ \t]*(?P<given>[^\n]*)")


@dataclass(frozen=True, slots=True)
class OfferedResource:
    uri: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class OfferedPrompt:
    """`needs` and `takes`: the names of its arguments, in order; `needs` are those among them that
    cannot be left out."""

    name: str
    about: str = ""
    takes: Sequence[str] = ()
    needs: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Mentionable:
    """`text` takes the place of what was typed, with its `@` or `/`."""

    text: str
    about: str = ""


def uri(server: str, what: str) -> str:
    return f"{SCHEME}:{server}/{what}"


def resources(text: str, servers: Collection[str]) -> Iterator[tuple[str, str]]:
    """Gives (server, URI) of what is named of these servers."""
    for found in _RESOURCE.finditer(text):
        server = found["q"] or found["b"]
        if server in servers:
            yield server, found["quoted"] or found["bare"].rstrip(_CLOSING)


def named(content: Sequence[Content], servers: Collection[str]) -> bool:
    """Returns whether a prompt names anything of these servers."""
    texts = [part.text for part in content if isinstance(part, Text)] if servers else []
    return any(next(resources(text, servers), None) for text in texts) or any(
        prompt(text, servers) for text in texts[:1]
    )


def mention(server: str, uri: str) -> str:
    """Returns how a prompt names a resource."""
    plain = uri == uri.rstrip(_CLOSING) and not any(char.isspace() for char in uri)
    return f"@{server}:{uri}" if plain else f'@"{server}:{uri}"'


def prompt(text: str, servers: Collection[str]) -> tuple[str, str, str] | None:
    """Returns (server, prompt, what is written behind it) of a text that begins so."""
    found = _PROMPT.match(text)
    if found is None or found["server"] not in servers:
        return None
    return found["server"], found["name"], found["given"]


def arguments(server: str, offered: OfferedPrompt, given: str) -> dict[str, str]:
    """Returns the arguments of a prompt: `NAME=VALUE`, or values in its order. Words in quotes are
    one value; the last argument takes all words that are left. Raises InvalidRequest."""
    called = f"/{server}:{offered.name}"
    try:
        words = shlex.split(given)
    except ValueError:
        raise InvalidRequest(f"{called}: a quote is not closed.") from None
    found: dict[str, str] = {}
    left: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        if equals and name in offered.takes and name not in found:
            found[name] = value
        else:
            left.append(word)
    free = [name for name in offered.takes if name not in found]
    if left and not free:
        raise InvalidRequest(f"{called} {_usage(offered)}; {left[0]!r} is too much.")
    for name in free[: len(left)]:
        found[name] = " ".join(left) if name == free[-1] else left.pop(0)
    if missing := [name for name in offered.needs if name not in found]:
        raise InvalidRequest(f"{called} {_usage(offered)}; there is no {missing[0]}.")
    return found


def _usage(offered: OfferedPrompt) -> str:
    if not offered.takes:
        return "takes no arguments"
    shown = (name if name in offered.needs else f"[{name}]" for name in offered.takes)
    return f"takes {' '.join(shown)}"
