"""What the engine works with: the adapters and values that `app.py` composes."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from magy_server.core.actions import ActionSpec
from magy_server.core.children import SpawnLimits
from magy_server.core.errors import MagyError
from magy_server.core.events import (
    Briefed,
    Content,
    Grant,
    Granted,
    Hash,
    Limits,
    Section,
    Trusted,
    Withdrawn,
)
from magy_server.core.permit import Ruleset, withholds
from magy_server.core.ports import Bus, Clock, Editor, Files, ModelFacts, Provider, Store
from magy_server.core.secrets import Secrets
from magy_server.core.specs import Agents, AgentSpec
from magy_server.core.state import State
from magy_server.core.tool import Tool
from magy_server.engine.lanes import Lanes
from magy_server.engine.levels import as_text, caps, inherited, levels, sources, told
from magy_server.engine.results import Results

if TYPE_CHECKING:
    from magy_server.engine.budget import Purse
    from magy_server.engine.children import Children
    from magy_server.engine.mailing import Mailing
    from magy_server.engine.reviews import Reviews
    from magy_server.engine.supervision import Supervisor

USUAL_REPLY = 32_000
"""Tokens."""
_PATCHERS = re.compile(r"(^|/)(gpt-(?!3|4o|4-)|o[1-9]|codex)", re.IGNORECASE)

ContextProvider = Callable[[State], Awaitable[Sequence[tuple[str, str]]]]
"""Adds sections (name, text) to the prompt of a session."""
Expand = Callable[
    [str, Sequence[Content], Sequence[Ruleset], Mapping[str, ActionSpec]],
    Awaitable[tuple[tuple[Content, ...], Mapping[Hash, bytes]]],
]
"""(workspace root, what a person sent, the rules, the actions) -> the same with what they mention
in it, and the blobs of that."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the engine needs of the configuration."""

    max_tokens: int = 0
    """The most tokens of one reply; 0: what the model can, at most `USUAL_REPLY`."""
    thinking_tokens: int = 0
    compact_at: float = 0.8
    """Share of a model's window; 1: never."""
    small: str = ""
    """`provider/model` for titles and the like; "": the session's own."""
    titles: bool = True
    limits: Limits = field(default_factory=Limits)
    review: str = "review"
    """review | propose | auto: what becomes of an agent's edits, in sessions that do not say."""
    edits: str = "auto"
    """Which style of edits models are offered: str_replace | patch; auto: by their family."""
    retries: int = 4
    retry_delay: float = 1.0
    """Seconds before the first retry; doubled each time, unless the provider says how long."""
    wait_timeout: float = 300.0
    """Seconds that `wait_agent` waits when the model does not say how long."""


class Models(Protocol):
    """Models are named `provider/model`."""

    def named(self, full: str) -> tuple[Provider, str]:
        """The provider, and its own name for the model. Raises ProviderError."""
        ...

    def facts(self, full: str) -> ModelFacts: ...

    async def measured(self, full: str) -> ModelFacts:
        """The same, once the model's server was asked for what is not known beforehand."""
        ...

    async def default(self) -> str:
        """For who names none. Raises ProviderError: nothing is configured."""
        ...

    def models(self) -> Sequence[str]:
        """Those to offer; any other may be named."""
        ...


@dataclass(slots=True)
class World:
    me: str
    store: Store
    bus: Bus
    clock: Clock
    tools: Mapping[str, Tool]
    agents: Callable[[str | None], Agents]
    """The agents that a workspace root has."""
    rules: Callable[[str | None], Sequence[Ruleset]]
    """The configured rules that hold for a workspace root, besides the agent's own."""
    settings: Callable[[str | None], Settings]
    """The settings that hold for a workspace root."""
    models: Callable[[str | None], Models]
    """The models that a workspace root's configuration gives."""
    expand: Expand | None = None
    contexts: Sequence[ContextProvider] = ()
    editor: Editor | None = None
    files: Files | None = None
    reviews: Reviews | None = None
    children: Children | None = None
    mailing: Mailing | None = None
    purse: Purse | None = None
    supervisor: Supervisor | None = None
    peers: Callable[[], Sequence[str]] = tuple
    """Ids of the other living processes on this store."""
    busy: Callable[[], bool] = lambda: False
    """Whether commands run in the background of any session here."""
    secrets: Secrets = field(default_factory=Secrets)
    """Keys that nothing may show that a tool gave."""
    results: Results = field(default_factory=lambda: Results(time.monotonic))
    lanes: Lanes = field(default_factory=Lanes)
    _texts: dict[Hash, str] = field(default_factory=dict)
    _schemas: dict[str, str] = field(default_factory=dict)

    @property
    def limits(self) -> SpawnLimits:
        """How many children there may be."""
        return self.lanes.limits

    @property
    def keys(self) -> Collection[str]:
        """The permission keys of the tools that there are."""
        return {tool.key for tool in self.tools.values()}

    def agent(self, name: str, root: str | None) -> AgentSpec:
        """Raises NotFound, or InvalidConfig when its file is wrong."""
        return self.agents(root).named(name)

    async def mentioned(
        self, state: State, content: Sequence[Content]
    ) -> tuple[Sequence[Content], Mapping[Hash, bytes]]:
        """A prompt with what it mentions (`@path`, `@init`, `/explain`), as it is now."""
        opened = state.opened
        if self.expand is None or opened is None:
            return content, {}
        try:
            found = await self._rules(state, await self.above(state))
            rules = [source for sources in found for source in sources]
            actions = self.agents(opened.root).actions
        except MagyError:
            return content, {}  # the turn will say what is wrong with them
        return await self.expand(opened.root or opened.cwd, content, rules, actions)

    async def texts(self, hashes: set[Hash]) -> Mapping[Hash, str]:
        """Blobs as text, from memory where they were read before."""
        if missing := [hash for hash in hashes if hash not in self._texts]:
            found = await self.store.blobs(missing)
            self._texts.update((hash, data.decode()) for hash, data in found.items())
        return self._texts

    async def pictures(self, hashes: set[Hash]) -> Mapping[Hash, bytes]:
        """Not kept: they are large, and the next request may not need them."""
        return await self.store.blobs(list(hashes)) if hashes else {}

    async def above(self, state: State) -> Sequence[State]:
        """The sessions above it, its parent first. Raises NotFound when one was deleted."""
        if self.children is None or state.opened is None or state.opened.parent is None:
            return ()
        return await self.children.above(state.opened.parent)

    async def briefing(self, state: State) -> tuple[Briefed, dict[Hash, bytes]]:
        """What enters the prompts of a session from here on, as things stand now."""
        root = state.opened.root if state.opened else None
        agent, above = self.agent(state.agent, root), await self.above(state)
        settings, models = self.settings(root), self.models(root)
        model, temperature = inherited(above, self)
        model = state.model or agent.model or model or await models.default()
        rules = await self._rules(state, above)
        style = edit_style(model) if settings.edits == "auto" else settings.edits
        tools = [tool for tool in self.tools.values() if tool.style in ("", style)]
        deeper = self.limits.depth - len(above) if self.children else 0
        offered = [tool for tool in tools if self._offered(tool, agent, rules, deeper)]
        blobs: dict[Hash, bytes] = {}
        sections = [("agent", agent.prompt)]
        if above:
            parental = any(tool.parental for tool in offered)
            sections.append(("child", told(state, above, deeper if parental else 0)))
        for context in self.contexts:
            sections.extend(await context(state))
        return Briefed(
            agent=agent.name,
            model=model,
            sections=tuple(_section(name, text, blobs) for name, text in sections),
            tools=tuple(_section(tool.name, self._schema(tool), blobs) for tool in offered),
            readers=tuple(tool.name for tool in offered if tool.effect == "read"),
            final=tuple(tool.name for tool in offered if tool.final),
            rules=put(as_text(rules[0]), blobs),
            **_sizes(settings, await models.measured(model)),
            thinking_tokens=settings.thinking_tokens,
            temperature=temperature if agent.temperature is None else agent.temperature,
            limits=caps(state, above, settings.limits),
        ), blobs

    async def _rules(self, state: State, above: Sequence[State]) -> list[Sequence[Ruleset]]:
        """Its own as it would be briefed with them now, and those of each session above it."""
        found = await levels(self, state, above)
        return [await sources(self, state), *(level.sources for level in found[1:])]

    def _schema(self, tool: Tool) -> str:
        """Tools are made once and never change."""
        if tool.name not in self._schemas:
            self._schemas[tool.name] = schema_text(tool)
        return self._schemas[tool.name]

    def _offered(
        self, tool: Tool, agent: AgentSpec, levels: Sequence[Sequence[Ruleset]], deeper: int
    ) -> bool:
        """E101: the agent's list of tools and the rules together. To list one tool that edits is to
        list all of them: which one it is depends on the model. What an editor must help with needs
        one that can; what is for parents, that there may be children."""
        if tool.effect == "agent" and (self.children is None or (tool.parental and deeper <= 0)):
            return False
        if tool.needs and (self.editor is None or tool.needs not in self.editor.knows):
            return False
        listed = tool.name in (agent.tools or ()) or (agent.tools is None and not tool.final)
        if tool.style and agent.tools is not None:
            listed = any(name in agent.tools for name, t in self.tools.items() if t.style)
        return listed and not any(withholds(sources, tool.key) for sources in levels)

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


def edit_style(model: str) -> str:
    """OpenAI's models are trained on patches; the others do better at replacing texts."""
    return "patch" if _PATCHERS.search(model) else "str_replace"


def put(text: str | bytes, blobs: dict[Hash, bytes]) -> Hash:
    """Adds a blob and gives its hash."""
    data = text.encode() if isinstance(text, str) else text
    hash = hashlib.sha256(data).hexdigest()
    blobs[hash] = data
    return hash


def _sizes(settings: Settings, facts: ModelFacts) -> dict[str, int]:
    """Where neither the person nor the table names a limit, none is sent: a small local model would
    refuse one that it cannot reach. Compaction leaves room for the reply."""
    wanted = settings.max_tokens
    usual = min(USUAL_REPLY, facts.max_tokens)
    reply = min(wanted, facts.max_tokens or wanted) if wanted else usual
    share = int(facts.window * settings.compact_at)
    room = max(facts.window - reply - facts.window // 50, facts.window // 4)
    compact_at = min(share, room) if settings.compact_at < 1 else 0
    return {"max_tokens": reply, "window": facts.window, "compact_at": compact_at}


def _section(name: str, text: str, blobs: dict[Hash, bytes]) -> Section:
    return Section(name=name, hash=put(text, blobs))
