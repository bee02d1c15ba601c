"""The engine works with a `World`: the adapters and values that `app.py` composes."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

from magy_server.core.actions import ActionSpec
from magy_server.core.agents.tree import Stream, id_of
from magy_server.core.errors import Conflict
from magy_server.core.events import Event, Granted, Trusted, Withdrawn
from magy_server.core.no_editor import NO_EDITOR
from magy_server.core.permit import Ruleset
from magy_server.core.ports import (
    Batch,
    Bus,
    Clock,
    Editor,
    Files,
    ModelFacts,
    ModelList,
    Provider,
    Store,
)
from magy_server.core.prompting.messages import Built
from magy_server.core.settings import Settings
from magy_server.core.skills.skill import Skills
from magy_server.core.spawn_settings import SpawnSettings
from magy_server.core.specs import Agents, AgentSpec
from magy_server.core.state.state import State
from magy_server.core.text.secrets import Secrets
from magy_server.core.tool import Tool
from magy_server.core.values import Content, Grant, Hash, digest
from magy_server.dataclass import dataclass
from magy_server.engine.feature_ports import Ancestors, FreeSlots, NoAncestors, Slots
from magy_server.engine.read_cache import Results
from magy_server.engine.toolbox import Toolbox

USUAL_REPLY = 32_000
"""Tokens."""
MOST = 32
"""The most conversations whose prompts stay built: they take as much memory as their texts."""
ContextProvider = Callable[[State], Awaitable[Sequence[tuple[str, str]]]]
"""Adds sections (name, text) to the prompt of a session."""
Expand = Callable[
    [str, Sequence[Content], Sequence[Ruleset], Mapping[str, ActionSpec], Skills],
    Awaitable[tuple[tuple[Content, ...], Mapping[Hash, bytes]]],
]
"""(workspace root, what a person sent, the rules, the actions, the skills) -> the same with what
they mention in it, and the blobs of that."""
EndGroup = Callable[[int, str], Coroutine[Any, Any, object]]
"""async (process group, its MAGY_CALL marker): ends what a dead server left running."""


class Recent:
    """What was built of the latest `MOST` conversations. Others begin anew when they go on."""

    def __init__(self) -> None:
        self._built: dict[Stream, Built] = {}

    def get(self, stream: Stream) -> Built | None:
        return self._built.get(stream)

    def keep(self, stream: Stream, built: Built) -> None:
        self._built.pop(stream, None)
        self._built[stream] = built
        if len(self._built) > MOST:
            del self._built[next(iter(self._built))]


class Models(Protocol):
    """Models are named `provider/model`."""

    def named(self, full: str) -> tuple[Provider, str]:
        """The provider, and its own name for the model. Raises ProviderError."""

    def facts(self, full: str) -> ModelFacts: ...

    async def measured(self, full: str) -> ModelFacts:
        """The same, once the model's server was asked for what is not known beforehand."""

    async def default(self) -> str:
        """Returns the model for a caller that names none. Raises ProviderError when none is
        configured."""

    def models(self) -> Sequence[str]:
        """Returns the models to offer; a person may name any other."""

    async def listed(self) -> Sequence[ModelList]:
        """Returns the models of each provider that can be used, once they were asked for them. That
        takes seconds at most."""


async def as_written(
    root: str,
    content: Sequence[Content],
    rules: Sequence[Ruleset],
    actions: Mapping[str, ActionSpec],
    skills: Skills,
) -> tuple[tuple[Content, ...], Mapping[Hash, bytes]]:
    """A prompt mentions nothing."""
    return tuple(content), {}


async def no_group(group: int, marker: str) -> None:
    """No call starts a process."""


@dataclass(frozen=True, slots=True)
class World:
    """`me`: the id of this process."""

    me: str
    store: Store
    bus: Bus
    clock: Clock
    tools: Toolbox
    agents: Callable[[str | None], Agents]
    """The agents that a workspace root has."""
    rules: Callable[[str | None], Sequence[Ruleset]]
    """The configured rules that hold for a workspace root, besides the agent's own."""
    settings: Callable[[str | None], Settings]
    """The settings that hold for a workspace root."""
    models: Callable[[str | None], Models]
    """The models that a workspace root's configuration gives."""
    files: Files
    vouched: Callable[[str], bool] = lambda _root: True
    """Whether a workspace root is trusted, or has nothing that needs trust."""
    skills: Callable[[str | None], Skills] = lambda _root: Skills({})
    """The skills that a workspace root has."""
    expand: Expand = as_written
    contexts: Sequence[ContextProvider] = ()
    editor: Editor = NO_EDITOR
    ancestors: Ancestors = field(default_factory=NoAncestors)
    slots: Slots = field(default_factory=FreeSlots)
    end_group: EndGroup = no_group
    peers: Callable[[], Sequence[str]] = tuple
    """Ids of the other living processes on this store."""
    busy: Callable[[], bool] = lambda: False
    """Whether commands run in the background of any session here."""
    plugins: Callable[[], Mapping[str, str]] = dict
    """The plugins in use, and what each is for."""
    secrets: Secrets = field(default_factory=Secrets)
    """Keys that nothing may show that a tool gave."""
    typed: Secrets = field(default_factory=Secrets)
    """What the configuration has taken out of prompts, too, and of all that goes into them."""
    results: Results = field(default_factory=lambda: Results(time.monotonic))
    built: Recent = field(default_factory=Recent)
    """What was built of the conversations that are talking now."""
    _texts: dict[Hash, str] = field(default_factory=dict)
    _schemas: dict[str, tuple[Tool, str]] = field(default_factory=dict)
    _projects: dict[str | None, Project] = field(default_factory=dict)

    @property
    def limits(self) -> SpawnSettings:
        """How many children there may be."""
        return self.slots.limits

    @property
    def keys(self) -> Collection[str]:
        """Returns the permission keys of all tools, but for those of a project's servers."""
        return {tool.key for tool in self.tools.there(None).values()}

    def vouches(self, root: str | None) -> bool:
        """Returns whether somebody vouches for the files of a workspace; without one, there is
        nothing to vouch for."""
        return root is None or self.vouched(root)

    def agent(self, name: str, root: str | None) -> AgentSpec:
        """Raises NotFound, or InvalidConfig when its file is wrong."""
        return self.agents(root).named(name)

    def plugin(self, state: State) -> str:
        """Returns the only plugin of which a session has anything; "": it has all."""
        given = state.opened.plugin if state.opened else ""
        return self.agents(state.root).plugin(state.agent, given)

    async def texts(self, hashes: set[Hash]) -> Mapping[Hash, str]:
        """Blobs as text, from memory where they were read before."""
        if missing := [hash for hash in hashes if hash not in self._texts]:
            found = await self.store.blobs(missing)
            self._texts.update((hash, data.decode()) for hash, data in found.items())
        return self._texts

    async def pictures(self, hashes: set[Hash]) -> Mapping[Hash, bytes]:
        """Returns the pictures. They are not kept: they are large, and the next request may not
        need them."""
        return await self.store.blobs(list(hashes)) if hashes else {}

    async def above(self, state: State) -> Sequence[State]:
        """The sessions above it, its parent first. Raises NotFound when one was deleted."""
        parent = state.opened.parent if state.opened else None
        return await self.ancestors.above(parent) if parent else ()

    def schema(self, tool: Tool) -> str:
        """A tool never changes; another of its name may take its place."""
        known = self._schemas.get(tool.name)
        if known is None or known[0] is not tool:
            known = self._schemas[tool.name] = (tool, schema_text(tool))
        return known[1]

    async def end_commands(self, streams: Sequence[Stream]) -> None:
        """Ends all that run in the background of these sessions, whichever process started them:
        that one says in the log that they have ended."""
        async with asyncio.TaskGroup() as group:
            for stream in streams:
                info = await self.store.info(stream)
                name = id_of(stream)
                for call, leader in (info.summary.get("background", {}) if info else {}).items():
                    group.create_task(self.end_group(leader, f"{name}:{call}"))

    async def known_project(self, root: str | None) -> Project:
        """As it was when this process last looked: for what is appended only if it is so still."""
        return self._projects.get(root) or await self.project(root)

    async def project(self, root: str | None) -> Project:
        """As it is now, whichever process wrote it: only what is new is read."""
        known = await read_project(self.store, root, self._projects.get(root))
        self._projects[root] = known
        return known


@dataclass(frozen=True, slots=True)
class Project:
    """The fold of a workspace root's own stream."""

    stream: Stream
    head: int
    grants: tuple[Grant, ...] = ()
    trusted: Hash | None = None
    """The hash that the root's Magy files had when a person trusted them."""

    @property
    def stands(self) -> Batch:
        """Goes along with what is appended only if nothing was added to it since."""
        return Batch(self.stream, self.head, ())


async def read_project(store: Store, root: str | None, known: Project | None = None) -> Project:
    """Returns the fold of all of the stream; `known` is that of its beginning."""
    stream = project_stream(root)
    known = known or Project(stream, 0)
    head, trusted = known.head, known.trusted
    new = await store.read(stream, after=head)
    if not new:
        return known
    grants = {grant.id: grant for grant in known.grants}
    for entry in new:
        head = entry.seq
        match entry.event:
            case Granted(grant=grant):
                grants[grant.id] = grant
            case Withdrawn(grant=id):
                grants.pop(id, None)
            case Trusted():
                trusted = entry.event.files if entry.event.trusted else None
    return Project(stream, head, tuple(grants.values()), trusted)


async def record(store: Store, root: str | None, event: Event) -> None:
    """Appends to the stream of a workspace root, wherever that stands by now."""
    while True:
        project = await read_project(store, root)
        try:
            await store.append([Batch(project.stream, project.head, [event])])
            return
        except Conflict:
            continue


def project_stream(root: str | None) -> Stream:
    return Stream(f"project/{hashlib.sha256((root or '').encode()).hexdigest()[:32]}")


def schema_text(tool: Tool) -> str:
    body = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return json.dumps(body, sort_keys=True)


def put(text: str | bytes, blobs: dict[Hash, bytes]) -> Hash:
    """Adds a blob and gives its hash."""
    data = text.encode() if isinstance(text, str) else text
    hash = digest(data)
    blobs[hash] = data
    return hash
