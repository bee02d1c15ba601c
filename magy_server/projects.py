"""This module reads the configuration and agents of each workspace root, and keeps its trust."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from magy_server.config import administrator, hooks, layers
from magy_server.config.agents import (
    agent_files,
    claude_user_files,
    claude_user_folders,
    common_rules,
    find_agents,
    user_directory,
)
from magy_server.config.shipped import shipped
from magy_server.config.trust import MOST, files_hash, magy_files, magy_folders
from magy_server.core.errors import InvalidConfig, NotTrusted
from magy_server.core.events import Trusted
from magy_server.core.hooks import Hook
from magy_server.core.mcp.server_settings import McpServer, Servers, usable
from magy_server.core.permit import Rule, Ruleset
from magy_server.core.policy.rule_tables import ruleset
from magy_server.core.ports import Store
from magy_server.core.settings import Settings
from magy_server.core.skills.skill import Skills
from magy_server.core.specs import Agents
from magy_server.dataclass import dataclass
from magy_server.engine.world import read_project, record
from magy_server.skills.finding import find_skills, looked_through, user_files

if TYPE_CHECKING:  # most people have none
    from magy_server.plugins.reloading import LivePlugins

Stamp = tuple[str, int, int, int]
"""Path, size, time of the last change in nanoseconds, inode."""
Signature = frozenset[Stamp]
"""Of files."""
SETTLED = 2_000_000_000
"""Nanoseconds after which a second change of a folder has another time, on any file system."""

NO_SHELL = Ruleset(
    source="the isolated sandbox",
    keys={
        "bash": (Rule(pattern="*", action="deny", bare=True),),
        "git": (Rule(pattern="*", action="allow", bare=True),),
    },
    narrows=True,
)
"""There agents run no commands; the tools that only look at a repository are none."""


@dataclass(frozen=True, slots=True)
class Project:
    loaded: layers.Loaded
    rules: tuple[Ruleset, ...]
    agents: Agents
    skills: Skills
    trusted: bool
    signature: Signature
    servers: Servers
    """The MCP servers that can be used, with their variables filled in."""
    hooks: tuple[Hook, ...] = ()
    problems: tuple[str, ...] = ()
    """What is wrong with other MCP servers, and with other programs' files."""
    broken: str | None = None
    """Why the configuration as it is now cannot be used; the rest is then what held before."""


class Projects:
    """`options` are the editor's settings; `restricted`: the person has not trusted these folders
    there, so that no project is trusted here, whatever was said before; `plugins`: those that the
    person has switched on. Implements `config.trust.Trust`.

    Files are read again when they have changed, and a project that changed is no longer trusted:
    then the methods may raise InvalidConfig naming file and key. What holds may be asked for in
    any thread; trust is given and taken on the loop."""

    def __init__(
        self,
        options: Mapping[str, Any],
        store: Store,
        *,
        restricted: bool = False,
        plugins: LivePlugins | None = None,
    ) -> None:
        self._options = options
        self._restricted = restricted
        self._store = store
        self._plugins = plugins
        self._hashes: dict[str | None, str | None] = {}
        self._known: dict[str | None, Project] = {}
        self._folders: dict[str | None, _Folders] = {}
        self._just_seen: dict[str | None, Project] = {}
        """What was looked at since the loop last waited: all that is asked for at one moment is as
        it was then, and a prompt asks twenty times. Used on the loop alone."""
        self._keeping = threading.Lock()
        self._homes: dict[str, str] = {}
        """The workspace roots of worktrees, by place."""
        self.of(None)

    def add(self, root: str, trusted_hash: str | None) -> None:
        """Reads a root's configuration; it is trusted if its Magy files have this hash. Raises
        InvalidConfig naming file and key."""
        self._hashes[root] = trusted_hash
        made = self._read(root, signature_of(root))
        with self._keeping:
            self._known[root] = made

    def of(self, root: str | None) -> Project:
        if root is not None and root not in self._hashes:
            root = self._home(root)
        known = self._known.get(root)
        if known is not None and self._just_seen.get(root) is known and _loop() is not None:
            return known
        found = self._as_it_is(root, known)
        if (loop := _loop()) is not None:
            if not self._just_seen:
                loop.call_soon(self._just_seen.clear)
            self._just_seen[root] = found
        return found

    def _as_it_is(self, root: str | None, known: Project | None) -> Project:
        if known is not None and self._unchanged(root, known):
            return known
        signature = self._looked(root)
        if known is not None and known.signature == signature:
            return known
        vouched = self._hashes.get(root)
        if known is None and root is None:
            made = self._read(root, signature)
        else:
            made = self._read_again(root, known or self.of(None), signature)
        with self._keeping:
            now = self._known.get(root)
            if now is known and self._hashes.get(root) == vouched:
                self._known[root] = made
                return made
        return now or self.of(root)  # meanwhile somebody else has read it, or it is trusted or not

    def _unchanged(self, root: str | None, known: Project) -> bool:
        """Returns whether all that was read for a root is as it was, and no folder has more or
        less in it: that takes a tenth of the time of looking through the folders."""
        folders = self._folders.get(root)
        return (
            folders is not None
            and folders.named == _environment()
            and all(map(_stands, folders.stamps))
            and all(map(_stands, known.signature))
        )

    def _looked(self, root: str | None) -> Signature:
        """Looks through the folders. Those that have just changed could change again without
        another time: they are looked through until they have settled."""
        named, now = _environment(), time.time_ns()
        folders = _Folders(named, tuple(map(_stamp, _folders(root))))
        signature = signature_of(root)
        if all(changed < now - SETTLED for _, _, changed, _ in folders.stamps):
            self._folders[root] = folders
        else:
            self._folders.pop(root, None)
        return signature

    def _home(self, place: str) -> str:
        """The workspace root that a git worktree of Magy's belongs to: what holds there holds in
        the worktree, whatever the files in that say. Any other place is its own."""
        if place not in self._homes:
            around = [root for root in self._hashes if root and place.startswith(f"{root}/")]
            if not around:
                return place
            from magy_server.tools.worktrees.records import project_of

            found = project_of(place)
            if found not in around:
                return place
            self._homes[place] = found
        return self._homes[place]

    def _read(self, root: str | None, signature: Signature) -> Project:
        trusted = self._vouched(root)
        loaded = layers.load(root, trusted=trusted, options=self._options)
        home = os.path.expanduser("~")
        own = (
            *(ruleset(source, table).at_home(home) for source, table in loaded.rules),
            *(Ruleset(source=source, guardrails=rails) for source, rails in loaded.guardrails),
        )
        walls = (NO_SHELL,) if loaded.settings.sandbox.level == "isolated" else ()
        found, skills = self._found(root, trusted=trusted, custom=loaded.settings.custom_agents)
        servers, unusable = mcp_servers(loaded, os.environ)
        found_hooks, foreign = hooks.configured(loaded.settings, root if trusted else None)
        run: tuple[Ruleset, ...] = ()
        if root and (found_hooks or servers):
            from magy_server.config import run_unasked  # few projects have any

            run = run_unasked.asking(root, found_hooks, servers)
        return Project(
            loaded, (common_rules(), *own, *walls, *run), found, skills, trusted, signature,
            servers, tuple(found_hooks), (*loaded.problems, *unusable, *foreign),
        )  # fmt: skip

    def _read_again(self, root: str | None, known: Project, signature: Signature) -> Project:
        """What is wrong now must not keep anyone from looking at what was before, but nothing
        runs by it: see `rules`."""
        try:
            return self._read(root, signature)
        except InvalidConfig as error:
            custom = known.loaded.settings.custom_agents
            found, skills = self._found(root, trusted=False, custom=custom)
            return replace(
                known,
                agents=found,
                skills=skills,
                trusted=False,
                signature=signature,
                servers={},
                broken=error.message,
            )

    def _found(self, root: str | None, *, trusted: bool, custom: bool) -> tuple[Agents, Skills]:
        """The agents and the skills of a root. What skills have editors offer is among the
        actions."""
        config, home = str(layers.config_dir()), os.path.expanduser("~")
        skills = find_skills(
            shipped().skills,
            config,
            home,
            root,
            trusted=trusted,
            brought=self._plugins.skills if self._plugins else {},
        )
        agents = find_agents(root, trusted=trusted, custom=custom)
        offered = {action.id: action for skill in skills.values() for action in skill.actions}
        return replace(agents, common_actions={**agents.common_actions, **offered}), skills

    def _vouched(self, root: str | None) -> bool:
        wanted = None if self._restricted else self._hashes.get(root)
        try:
            return root is not None and wanted is not None and wanted == files_hash(root)
        except NotTrusted:
            return False

    # --- what holds -----------------------------------------------------------------------------

    def rules(self, root: str | None) -> Sequence[Ruleset]:
        """Raises InvalidConfig."""
        known = self.of(root)
        if known.broken is not None:
            raise InvalidConfig(known.broken)
        return known.rules

    def agents(self, root: str | None) -> Agents:
        return self.of(root).agents

    def skills(self, root: str | None) -> Skills:
        return self.of(root).skills

    def settings(self, root: str | None) -> Settings:
        return self.of(root).loaded.settings

    def servers(self, root: str | None) -> Servers:
        """Those that hold for a workspace root now. Of a configuration that is broken, none."""
        return self.of(root).servers

    def problems(self, root: str | None) -> list[str]:
        """What is wrong with files that were read, each naming its file: for people."""
        known = self.of(root)
        found = (*known.agents.problems, *known.skills.problems, *known.problems)
        plugins = self._plugins.problems if self._plugins else ()
        return [*filter(None, [known.broken]), *found, *plugins]

    def hooks(self, root: str | None) -> Sequence[Hook]:
        return self.of(root).hooks

    # --- trust ----------------------------------------------------------------------------------

    def trusted(self, root: str) -> bool:
        return self.of(root).trusted

    def vouched(self, root: str) -> bool:
        """Whether a person trusts the workspace, or it has nothing that needs trust: no Magy files,
        and no editor that restricts it."""
        known = self.of(root)
        return known.trusted or (not self._restricted and not any(magy_files(root)))

    def ignored(self, root: str) -> Sequence[str]:
        known = self.of(root)
        agents = known.agents
        held_back = [] if known.trusted else hooks.unused(known.loaded.settings, root)
        skills = known.skills.untrusted.values()
        unused = (*agents.untrusted.values(), *agents.unused, *skills, *held_back)
        return (*known.loaded.ignored, *unused)

    async def set(self, root: str, trusted: bool) -> None:
        """Remembers the person's word, for the root's Magy files as they are now. Raises
        NotTrusted where they cannot be trusted."""
        if trusted and self._restricted:
            raise NotTrusted(f"Trust {root} in the editor first: it is open in restricted mode.")
        files = files_hash(root) if trusted else ""
        await record(self._store, root, Trusted(root=root, files=files, trusted=trusted))
        self.add(root, (await read_project(self._store, root)).trusted)


def mcp_servers(
    loaded: layers.Loaded, environ: Mapping[str, str]
) -> tuple[Servers, tuple[str, ...]]:
    """The MCP servers that can be used, by name, and what is wrong with the others, in
    sentences."""
    servers: dict[str, McpServer] = {}
    problems = []
    for name, server in loaded.settings.mcp.items():
        if not server.enabled:
            continue
        try:
            servers[name] = usable(name, server, environ)
        except InvalidConfig as error:
            where = loaded.origins.get(f"mcp.{name}", "the settings")
            problems.append(f"{where}: MCP server {name!r}: {error.message}")
    return servers, tuple(problems)


def signature_of(root: str | None) -> Signature:
    """Of everything that is read for a root; cheap enough for every turn."""
    return frozenset(map(_stamp, _sources(root)))


def _sources(root: str | None) -> Iterator[str]:
    yield str(administrator.FILE)
    yield os.path.join(layers.config_dir(), "magy.toml")
    yield from agent_files(user_directory())
    yield from claude_user_files()
    yield from user_files(str(layers.config_dir()), os.path.expanduser("~"))
    yield from hooks.files(root)
    if root is not None:
        yield from islice(magy_files(root), MOST + 1)


class _Folders(NamedTuple):
    """`named`: what says where a person's folders are. `stamps`: of each folder in which something
    could be added that is read for a root."""

    named: Sequence[str | None]
    stamps: tuple[Stamp, ...]


def _environment() -> Sequence[str | None]:
    return tuple(map(os.environ.get, ("MAGY_CONFIG_DIR", "XDG_CONFIG_HOME", "HOME")))


def _folders(root: str | None) -> Iterator[str]:
    """The folders that `_sources` looks through, those that are not there included."""
    yield str(user_directory())
    yield from claude_user_folders()
    yield from looked_through(str(layers.config_dir()), os.path.expanduser("~"))
    if root is not None:
        yield from islice(magy_folders(root), MOST + 1)


def _loop() -> asyncio.AbstractEventLoop | None:
    """The loop that runs in this thread."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _stamp(path: str) -> Stamp:
    try:
        about = os.stat(path)
    except OSError as error:
        return path, -1, error.errno or 0, 0
    return path, about.st_size, about.st_mtime_ns, about.st_ino


def _stands(stamp: Stamp) -> bool:
    """Returns whether a file or folder still has this stamp. Most are not there, which `access`
    says in half the time, for it raises nothing."""
    path, size, changed, _ = stamp
    if size == -1 and changed == errno.ENOENT:
        return not os.access(path, os.F_OK)
    return _stamp(path) == stamp
