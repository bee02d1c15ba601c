"""What the engine works with: the adapters and values that `app.py` composes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from magy_server.core.errors import NotFound
from magy_server.core.events import (
    Briefed,
    Grant,
    Granted,
    Hash,
    Limits,
    Section,
    Trusted,
    Withdrawn,
)
from magy_server.core.permit import Ruleset, withholds
from magy_server.core.ports import Bus, Clock, Editor, Provider, Store
from magy_server.core.specs import AgentSpec
from magy_server.core.state import State
from magy_server.core.tool import Tool

ContextProvider = Callable[[State], Awaitable[Sequence[tuple[str, str]]]]
"""Adds sections (name, text) to the prompt of a session."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the engine needs of the configuration."""

    model: str
    max_tokens: int = 32_000
    thinking_tokens: int = 0
    limits: Limits = field(default_factory=Limits)
    retries: int = 4
    retry_delay: float = 1.0
    """Seconds before the first retry; doubled each time, unless the provider says how long."""


@dataclass(slots=True)
class World:
    me: str
    store: Store
    bus: Bus
    clock: Clock
    settings: Settings
    tools: Mapping[str, Tool]
    agents: Mapping[str, AgentSpec]
    rules: Callable[[str | None], Sequence[Ruleset]]
    """The configured rules that hold for a workspace root, besides the agent's own."""
    provider: Callable[[str], tuple[Provider, str]]
    """`provider/model` -> the provider and its own name for the model. Raises ProviderError."""
    contexts: Sequence[ContextProvider] = ()
    models: Sequence[str] = ()
    """`provider/model` names to offer; any other may be named."""
    editor: Editor | None = None
    peers: Callable[[], Sequence[str]] = tuple
    """Ids of the other living processes on this store."""
    _texts: dict[Hash, str] = field(default_factory=dict)
    _schemas: dict[str, str] = field(default_factory=dict)

    def agent(self, name: str) -> AgentSpec:
        try:
            return self.agents[name]
        except KeyError:
            known = ", ".join(n for n, spec in self.agents.items() if not spec.hidden)
            raise NotFound(f"There is no agent {name!r}. Agents are: {known}.") from None

    async def texts(self, hashes: set[Hash]) -> Mapping[Hash, str]:
        """Blobs as text, from memory where they were read before."""
        if missing := [hash for hash in hashes if hash not in self._texts]:
            found = await self.store.blobs(missing)
            self._texts.update((hash, data.decode()) for hash, data in found.items())
        return self._texts

    async def briefing(self, state: State) -> tuple[Briefed, dict[Hash, bytes]]:
        """What enters the prompts of a session from here on, as things stand now."""
        agent = self.agent(state.agent)
        root = state.opened.root if state.opened else None
        sources = [agent.rules, *self.rules(root)]
        blobs: dict[Hash, bytes] = {}
        sections = [("agent", agent.prompt)]
        for context in self.contexts:
            sections.extend(await context(state))
        offered = [tool for tool in self.tools.values() if self._offered(tool, agent, sources)]
        return Briefed(
            agent=agent.name,
            model=state.model or agent.model or self.settings.model,
            sections=tuple(_section(name, text, blobs) for name, text in sections),
            tools=tuple(_section(tool.name, self._schema(tool), blobs) for tool in offered),
            readers=tuple(tool.name for tool in offered if tool.effect == "read"),
            rules=put(json.dumps([s.model_dump(mode="json") for s in sources]), blobs),
            max_tokens=self.settings.max_tokens,
            thinking_tokens=self.settings.thinking_tokens,
            temperature=agent.temperature,
            limits=self.settings.limits,
        ), blobs

    def _schema(self, tool: Tool) -> str:
        """Tools are made once and never change."""
        if tool.name not in self._schemas:
            self._schemas[tool.name] = schema_text(tool)
        return self._schemas[tool.name]

    def _offered(self, tool: Tool, agent: AgentSpec, sources: Sequence[Ruleset]) -> bool:
        """E101: the agent's list of tools and the rules together."""
        listed = agent.tools is None or tool.name in agent.tools
        return listed and not withholds(sources, tool.key)

    async def project(self, root: str | None) -> Project:
        return await read_project(self.store, root)


@dataclass(frozen=True, slots=True)
class Project:
    """The fold of a workspace root's own stream."""

    stream: str
    head: int
    grants: tuple[Grant, ...] = ()
    trusted: Hash | None = None
    """The hash that the root's Magy files had when a person trusted them."""


async def read_project(store: Store, root: str | None) -> Project:
    stream = project_stream(root)
    grants: dict[str, Grant] = {}
    trusted: Hash | None = None
    head = 0
    for entry in await store.read(stream):
        head = entry.seq
        match entry.event:
            case Granted(grant=grant):
                grants[grant.id] = grant
            case Withdrawn(grant=id):
                grants.pop(id, None)
            case Trusted():
                trusted = entry.event.files if entry.event.trusted else None
    return Project(stream, head, tuple(grants.values()), trusted)


def project_stream(root: str | None) -> str:
    return f"project/{hashlib.sha256((root or '').encode()).hexdigest()[:32]}"


def schema_text(tool: Tool) -> str:
    body = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return json.dumps(body, sort_keys=True)


def put(text: str | bytes, blobs: dict[Hash, bytes]) -> Hash:
    """Adds a blob and gives its hash."""
    data = text.encode() if isinstance(text, str) else text
    hash = hashlib.sha256(data).hexdigest()
    blobs[hash] = data
    return hash


def _section(name: str, text: str, blobs: dict[Hash, bytes]) -> Section:
    return Section(name=name, hash=put(text, blobs))
