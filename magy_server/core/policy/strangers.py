"""This module tells which texts of a conversation are by strangers: such a text may hold
instructions for a model, and a model may follow them.

Nobody vouches for what comes from the web, from MCP servers, from files outside of trusted
workspaces, and from folders of dependencies. Once a session has read such a text, and as long as
that is in its conversation, a call that wants the network, or to write outside the workspace, is
asked about: no rule that allows, no remembered answer and no hook answers that. Bypass does, as it
skips what only asks (X30). What a child has read counts for its parent when the result comes, and
what a parent has read counts for its children. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from magy_server.core.mcp.names import in_words, server_of
from magy_server.core.text.sanitizing import shortened
from magy_server.core.values import Content, Decision, Embedded, Facts, Image, Resource
from magy_server.regex import regex

DEPENDENCIES = frozenset({
    "node_modules", "bower_components", "jspm_packages", ".yarn", ".pnpm-store", "elm-stuff",
    "site-packages", "dist-packages", "__pypackages__", ".eggs", ".venv", "venv", "vendor",
    "third_party", "Pods", "Carthage",
})  # fmt: skip
"""Folders whose files others have written, wherever they lie in a workspace."""
MOST = 20
"""So many places are remembered: the latest."""
LONGEST = 200
"""Characters of one."""
_EDITOR_CODE = "emacs_eval"
_EDITOR = "editor"
_FETCHED = ("mcp", "http", "https")
"""A client may attach a page, too."""
_INSIDE = rf"(?:[^\n:]*/)?(?:{'|'.join(map(re.escape, sorted(DEPENDENCIES)))})/[^\n:]*?"
_HIT = regex(rf"(?m)^(?P<file>{_INSIDE})[:-]\d+[:-]")
"""A line that a tool has found in a folder of dependencies."""
_TOLD = regex(r"(?m)^(mcp__[\w-]+): ")
"""`find_tools` describes a tool."""
_PRINTED = regex(rf"(?m)^(?:\./)?(?P<file>{_INSIDE})(?:[:\n]|$)")
"""What a command prints of one; it need not number lines."""


def places(facts: Facts, key: str, root: str, *, vouched: bool) -> tuple[str, ...]:
    """Returns where the text of the result of a call under `key` comes from, as far as nobody
    vouches for it. `vouched`: the workspace `root` is trusted, or has nothing that needs trust."""
    found = dict.fromkeys(_places(facts, key, root, vouched))
    return tuple(shortened(place, LONGEST) for place in found if place)[:MOST]


def _places(facts: Facts, key: str, root: str, vouched: bool) -> Iterator[str]:
    from magy_server.core.shell import networking

    commands = [one for one in facts.resources if one.kind == "exec"]
    if not vouched and (key == _EDITOR or commands):
        yield _not_trusted(root)
    for resource in facts.resources:
        match resource.kind:
            case "net":
                yield in_words(key, resource.subject)
            case "exec" if networking.shows(resource):
                yield f"the output of `{resource.subject}`"
            case "exec" if resource.opaque and _names_dependency(resource.subject):
                yield f"what `{resource.subject}` reads"
            case "read" if not commands or _is_printed(resource, commands):
                yield _file(resource.subject, resource.relative, root, vouched)
                if resource.repository:
                    yield f"the repository {resource.repository}, a clone in the workspace"


def _names_dependency(text: str) -> bool:
    from magy_server.core.shell import printing  # only commands need it

    return bool(printing.within(text, DEPENDENCIES))


def _is_printed(file: Resource, commands: Sequence[Resource]) -> bool:
    """Whether a command may print the text of a file that it names; if nobody vouches for that."""
    from magy_server.core.shell import printing  # only commands need it

    if file.relative is None:
        return not printing.only_names(commands)
    folders = [part for part in file.relative.split("/") if part in DEPENDENCIES]
    folders += file.repository.split("/")[-1:] if file.repository else []
    return not folders or printing.prints(commands, folders[0])


def _file(path: str, relative: str | None, root: str, vouched: bool) -> str:
    """Returns the place of a file's text; "": somebody vouches for it."""
    if relative is None:
        return path
    if DEPENDENCIES.intersection(relative.split("/")):
        return relative
    return "" if vouched else _not_trusted(root)


def _not_trusted(root: str) -> str:
    return f"{root}, which is not trusted"


def found(facts: Facts, text: str) -> tuple[str, ...]:
    """Returns the files in folders of dependencies of which a search has shown lines, and the MCP
    servers whose tools were described: `text` is what the model was told. A search leaves out such
    folders if git ignores them."""
    from magy_server.core.shell import networking

    if any(map(networking.searches, facts.resources)):
        shape = _PRINTED
    elif facts.kind == "search":
        shape = _HIT
    else:
        return ()
    servers = described(_TOLD.findall(text)) if facts.kind == "search" else ()
    files = dict.fromkeys(hit["file"] for hit in shape.finditer(text))
    return (*servers, *(shortened(file, LONGEST) for file in files))[:MOST]


def described(tools: Iterable[str]) -> tuple[str, ...]:
    """Returns whose words the descriptions of these tools are, as far as MCP servers give them."""
    servers = dict.fromkeys(filter(None, map(server_of, tools)))
    return tuple(map(_tools_of, servers))


def _tools_of(server: str) -> str:
    return f"the tools of the MCP server {server}"


def attached(
    content: Iterable[Content], root: str, path_of: Callable[[str], str], *, vouched: bool
) -> tuple[str, ...]:
    """Returns where those texts and pictures of a prompt come from that nobody vouches for: who
    attaches or mentions a file has not written it. `root`: the workspace; "": there is none.
    `path_of` says which canonical path the URI of a file means."""
    places = dict.fromkeys(_attached(one, root, path_of, vouched) for one in content)
    return tuple(shortened(place, LONGEST) for place in places if place)[:MOST]


def _attached(one: Content, root: str, path_of: Callable[[str], str], vouched: bool) -> str:
    match one:
        case Image(name=name) if name:
            return _file(name, name, root, vouched)
        case Embedded(uri=uri):
            scheme = uri.partition(":")[0].lower()
            if scheme in _FETCHED:
                return uri
            if scheme == "file":
                path = path_of(uri)
                return _file(path, _below(root, path), root, vouched)
    return ""


def _below(root: str, path: str) -> str | None:
    """Returns a path from `root`, or all of it if there is no root; None: it is elsewhere."""
    start = f"{root.rstrip('/')}/" if root else ""
    return path.removeprefix(start) if path.startswith(start) else None


def joined(known: tuple[str, ...], more: Sequence[str]) -> tuple[str, ...]:
    """Returns the places with more of them, the latest last."""
    if not more or set(more) <= set(known):
        return known
    return (*(place for place in known if place not in more), *more)[-MOST:]


def all_of(known: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Returns the places of several conversations."""
    found: tuple[str, ...] = ()
    for places in known:
        found = joined(found, places)
    return found


def verdict(facts: Facts, key: str, read: Sequence[str], *, bypass: bool) -> Decision | None:
    """Returns the question about a call after texts of strangers were `read` (their places); None:
    there is none. How a server describes its tools is no reason to ask about a call of them: who
    has allowed that has allowed the tools as they are described."""
    if server := server_of(key):
        read = [place for place in read if place != _tools_of(server)]
    if not read or bypass:
        return None
    what = wants(facts, key)
    if not what:
        return None
    others = f" and {len(read) - 1} more" if len(read) > 1 else ""
    rule = f"{what}, after a text was read that nobody vouches for ({read[-1]}{others}): ask"
    return Decision(action="ask", rule=rule, firm=True)


def wants(facts: Facts, key: str) -> str:
    """Returns in words what of a call is dangerous in the hands of a stranger; "" if nothing is. A
    command in a sandbox writes nowhere else, and may have no network."""
    confined = facts.confined if facts.confined and not facts.confined.missing else None
    if confined and confined.network == "none":
        return ""
    runs = [resource for resource in facts.resources if resource.kind == "exec"]
    if key == _EDITOR_CODE:
        return "may reach the network"
    if any(resource.kind == "net" for resource in facts.resources):
        return "wants the network"
    from magy_server.core.shell import networking

    for command in runs:
        if command.opaque:
            return "may reach the network, as it cannot be checked"
        if networking.reaches(command):
            return "wants the network"
    if confined:
        return ""
    from magy_server.core.shell.elsewhere import writes_elsewhere  # seldom needed

    for command in runs:
        if writes_elsewhere(command):
            return f"may write outside the workspace (`{shortened(command.subject, LONGEST)}`)"
    looks = bool(runs) and all(map(networking.only_looks, runs))
    kinds = ("write",) if looks else ("write", "read")
    outside = [one for one in facts.resources if one.kind in kinds and one.relative is None]
    return f"may write outside the workspace ({outside[0].subject})" if outside else ""
