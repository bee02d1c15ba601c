"""The composition root builds Magy from its configuration: adapters, engine, front door. Only this
file knows all layers; it imports what is slow to import where it first needs that."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from magy_server import privacy, redacted_log
from magy_server.api.service import Service
from magy_server.bus.local import LocalBus
from magy_server.config import layers, secret_files, trust
from magy_server.core.actions import ActionSpec
from magy_server.core.errors import NotText
from magy_server.core.mcp.server_settings import hidden
from magy_server.core.no_editor import NO_EDITOR
from magy_server.core.permit import Ruleset
from magy_server.core.ports import Bus, Editor, Store
from magy_server.core.settings import AuditSettings, MirrorSettings, Settings
from magy_server.core.skills.skill import Skills
from magy_server.core.spawn_settings import RANGES, SpawnSettings, clamped
from magy_server.core.state.state import State
from magy_server.core.text.secrets import Secrets
from magy_server.core.text.surrogates import whole
from magy_server.core.tool import Tool
from magy_server.core.values import Content, Hash
from magy_server.core.variables import GITHUB_TOKENS
from magy_server.engine.feature_ports import Features
from magy_server.engine.loaded_sessions import LoadedSessions
from magy_server.engine.runner import Runner
from magy_server.engine.session import Listener
from magy_server.engine.toolbox import Toolbox
from magy_server.engine.trees import Herald
from magy_server.engine.world import Expand, World, read_project
from magy_server.hooks.hooks import Hooks
from magy_server.listeners.audit import Audit, audit_directory
from magy_server.listeners.titles import Titles
from magy_server.mcp.kept_logins import kept
from magy_server.mcp.servers import UNCHANGING, Means, Servers
from magy_server.projects import Projects
from magy_server.providers import Providers, key_variables, lend
from magy_server.reviews.checkpoints import Checkpoints
from magy_server.reviews.reviews import Reviews
from magy_server.sandbox import World as SandboxWorld
from magy_server.sandbox.os_sandbox import OsSandbox
from magy_server.store.sqlite import SqliteStore
from magy_server.team.access import TeamAccess
from magy_server.team.budget import Purse
from magy_server.team.children import Children
from magy_server.team.delivery import report
from magy_server.team.mailing import Mailing
from magy_server.team.reputations import Reputations
from magy_server.team.slots import LimitedSlots
from magy_server.team.supervision import Supervisor
from magy_server.team.worktrees import Reaper, Worktrees
from magy_server.tools.files.commits import Commits
from magy_server.tools.files.pictures import picture
from magy_server.tools.files.workspace import WorkspaceFiles
from magy_server.tools.prompts.instructions import instructions
from magy_server.tools.prompts.skill_tool import skills_section
from magy_server.tools.shell.piped_programs import PipedPrograms
from magy_server.tools.shell.process_groups import end_group
from magy_server.tools.shell.processes import Processes
from magy_server.tools.tool_schemas import SCHEMAS

if TYPE_CHECKING:  # most people have none
    from magy_server.plugins.reloading import LivePlugins

LOG = logging.getLogger(__name__)


class SystemClock:
    def now(self) -> float:
        return time.time()


@asynccontextmanager
async def compose(
    roots: Sequence[str],
    options: Mapping[str, Any],
    editor: Editor | None = None,
    listeners: Sequence[Listener] = (),
    store: Store | None = None,
    keys: Mapping[str, str] = MappingProxyType({}),
    restricted: bool = False,
) -> AsyncIterator[tuple[Service, Projects]]:
    """The engine for these workspace roots (canonical paths), running. `store` takes the
    place of the user's; whatever goes wrong, it is closed in the end. `keys`, by provider, are
    those that the editor keeps; `restricted`: there the roots are not trusted. Raises MagyError."""
    async with AsyncExitStack() as closing:
        if store:
            closing.push_async_callback(store.close)
        layers.load(None, trusted=False, options=options)  # what is wrong there is said first
        state = layers.state_dir()
        if not store:
            store = await SqliteStore.open(str(state))
            closing.push_async_callback(store.close)
        plugins = await _plugins()
        projects = Projects(options, store, restricted=restricted, plugins=plugins)
        await _add(projects, roots, store)
        own, (names, secrets, typed) = projects.settings(None), _hidden(projects, roots, keys)
        redacted_log.log_without(secrets)
        privacy.withdraw(names.__contains__)
        sandbox = _sandbox(projects, state)
        closing.push_async_callback(sandbox.close)
        processes = Processes(names, more=own.tools.environment, sandbox=sandbox)
        bus = await _bus(state, closing)
        configured = Configured(projects, os.environ, typed)
        closing.push_async_callback(configured.close)
        herald = Herald(bus, bus.id)
        slots = _slots(herald, projects, roots)
        sessions = LoadedSessions(store, bus, SystemClock(), bus.id)
        tools = await closing.enter_async_context(_tools(processes, projects, secrets, plugins))
        world = _world(
            sessions, slots, bus, projects, tools, processes, configured, editor, secrets, plugins
        )
        mirrors = await _mirrors(store, bus, state, own.mirror, closing)
        hooks = _hooks(projects, processes, world, closing)
        told = (*_audit(state, own.audit, secrets, closing), *_listening(plugins, closing))
        heard: Sequence[Listener] = (*listeners, *mirrors, herald, hooks, *told)
        for listener in heard:
            sessions.news.appended.add(listener)
        running = _running(world, sessions, slots, hooks, _worktrees(world, processes))
        service = await closing.enter_async_context(running)
        # Closed before the runner: the ends of background commands still go into the log.
        closing.push_async_callback(processes.close)
        yield service, projects


@asynccontextmanager
async def _running(
    world: World,
    sessions: LoadedSessions,
    slots: LimitedSlots,
    hooks: Hooks,
    worktrees: Worktrees,
) -> AsyncIterator[Service]:
    """The features, the loop that asks them, and the verbs on top."""
    children = Children(world, sessions, slots, worktrees)
    mailing = Mailing(world, sessions, children)
    reviews = Reviews(world, sessions)
    checkpoints = Checkpoints(world, sessions, reviews, children)
    purse = Purse(world, sessions)
    supervisor = Supervisor(world, sessions)
    titles = Titles(sessions, world, purse)
    sessions.companions += [partial(report, sessions), reviews.along]
    reputations, reaper = Reputations(world), Reaper(worktrees, reviews)
    for listener in (titles, purse, supervisor, reputations, reaper):
        sessions.news.appended.add(listener)
    team = partial(TeamAccess, world, sessions, children, mailing, reputations)
    features = Features(reviews, checkpoints, purse, supervisor, hooks, worktrees, team)
    async with AsyncExitStack() as closing:
        await closing.enter_async_context(Runner(world, sessions, features))
        closing.push_async_callback(children.settle)
        closing.push_async_callback(checkpoints.settle)
        closing.push_async_callback(mailing.close)
        closing.push_async_callback(reputations.close)
        closing.push_async_callback(reaper.close)
        await closing.enter_async_context(supervisor)
        closing.callback(reviews.close)
        closing.push_async_callback(titles.close)
        yield Service(
            world,
            sessions,
            slots,
            reviews=reviews,
            checkpoints=checkpoints,
            children=children,
            mailing=mailing,
            purse=purse,
            supervisor=supervisor,
        )


def _sandbox(projects: Projects, state: Path) -> OsSandbox:
    """The settings are looked up for each command: they hold as they are now."""
    world = SandboxWorld(
        home=os.path.realpath(os.path.expanduser("~")),
        private=[str(state), os.path.expanduser("~/.local/state/magy")],
        protected=trust.FILES,
        read_only=[str(layers.config_dir())],
    )

    def directory() -> AbstractAsyncContextManager[str]:
        from magy_server.tools.temporary import temporary

        return temporary()

    return OsSandbox(lambda root: projects.settings(root).sandbox, world, directory)


async def _bus(state: Path, closing: AsyncExitStack) -> LocalBus:
    bus = LocalBus(str(state / "bus"))
    closing.push_async_callback(bus.close)
    await bus.start()
    return bus


async def _add(projects: Projects, roots: Sequence[str], store: Store) -> None:
    for root in roots:
        if whole(root) != root:
            raise NotText(root)
        projects.add(root, (await read_project(store, root)).trusted)


def _hooks(
    projects: Projects, processes: Processes, world: World, closing: AsyncExitStack
) -> Hooks:
    def key(name: str) -> str:
        tool = world.tools.there(None).get(name)
        return tool.key if tool else name

    hooks = Hooks(projects.hooks, processes.environment, key, processes.sandbox)
    closing.push_async_callback(hooks.close)
    return hooks


def _worktrees(world: World, processes: Processes) -> Worktrees:
    """Pull requests are opened where the tool `github` leads."""
    api = world.settings(None).tools.github_url
    host = (urlsplit(api).hostname or "").removeprefix("api.")

    async def open_pull(repo: str, head: str, base: str, title: str, body: str) -> str:
        from magy_server.tools.web.github_tool import open_pull

        return await open_pull(api, repo, head, base, title, body)

    return Worktrees(world, processes.environment, host, open_pull)


def _slots(herald: Herald, projects: Projects, roots: Sequence[str]) -> LimitedSlots:
    """With as many children as there may be in this process, by what holds in its workspace
    roots."""
    where: Sequence[str | None] = roots or [None]
    asked = [projects.settings(root).spawn for root in where]
    for remark in dict.fromkeys(said for spawn in asked for said in clamped(spawn)[1]):
        LOG.warning("%s", remark)
    slots = LimitedSlots(herald.moved)
    lowest = {name: min(getattr(one, name) for one in asked) for name in RANGES}
    slots.configure(SpawnSettings(**lowest))
    return slots


def _hidden(
    projects: Projects, roots: Sequence[str], lent: Mapping[str, str]
) -> tuple[set[str], Secrets, Secrets]:
    """The variables that hold keys, in any project's configuration: no command gets to see them;
    what nothing may show that a tool gave; and what of that no prompt may have, either. Keys that
    the editor lends stand in the environment, too, from now on."""
    providers = [projects.settings(root).provider for root in (None, *roots)]
    for useless in {said: None for one in providers for said in lend(lent, one, os.environ)}:
        LOG.warning("%s", useless)
    names = set[str]().union(*map(key_variables, providers))
    keys = [os.environ.get(name, "") for name in names]
    asked = [(root, projects.settings(root).redact) for root in (None, *roots)]
    patterns = [pattern for _, one in asked for pattern in one.patterns]
    found = [value for root, one in asked for value in secret_files.values(one.files, root)]
    found += [os.environ.get(name, "") for name in GITHUB_TOKENS]
    found += secret_files.gh_tokens(os.environ)
    for root in (None, *roots):
        found += [value for one in projects.servers(root).values() for value in hidden(one)]
    return names, Secrets([*keys, *found], patterns), Secrets(found, patterns)


def _audit(
    state: Path, settings: AuditSettings, secrets: Secrets, closing: AsyncExitStack
) -> Sequence[Listener]:
    if not settings.enabled:
        return ()
    directory = str(audit_directory(settings, state))
    audit = Audit(directory, settings.preview_length, secrets.clean)
    closing.callback(audit.close)
    return (audit,)


async def _mirrors(
    store: Store, bus: Bus, state: Path, settings: MirrorSettings, closing: AsyncExitStack
) -> Sequence[Listener]:
    if not settings.enabled:
        return ()
    from magy_server.listeners.mirror import mirroring

    place = Path(settings.directory).expanduser() if settings.directory else state
    return (await closing.enter_async_context(mirroring(store, bus, place)),)


def _world(
    sessions: LoadedSessions,
    slots: LimitedSlots,
    bus: LocalBus,
    projects: Projects,
    tools: Toolbox,
    processes: Processes,
    configured: Configured,
    asked: Editor | None,
    secrets: Secrets,
    plugins: LivePlugins | None,
) -> World:
    editor = asked or NO_EDITOR
    return World(
        me=bus.id,
        store=sessions.store,
        bus=bus,
        clock=sessions.clock,
        settings=projects.settings,
        models=configured.models,
        tools=tools,
        agents=projects.agents,
        rules=projects.rules,
        vouched=projects.vouched,
        expand=_expand(editor),
        skills=projects.skills,
        contexts=[
            environment,
            skills_section(projects.skills, projects.agents),
            instructions(str(layers.config_dir() / "AGENTS.md")),
            *((plugins.sections(projects.agents),) if plugins else ()),
        ],
        editor=editor,
        files=WorkspaceFiles(editor, Commits(processes)),
        ancestors=sessions,
        slots=slots,
        end_group=end_group,
        peers=bus.peer_ids,
        busy=processes.busy,
        plugins=(lambda: plugins.names) if plugins else dict,
        secrets=secrets,
        typed=configured.hidden,
    )


async def _plugins() -> LivePlugins | None:
    """Those that the person has switched on; None: no plugin is, and nothing is imported."""
    config = str(layers.config_dir())
    if not os.path.lexists(os.path.join(config, "plugins.json")):
        return None
    from magy_server.plugins.reloading import load_live
    from magy_server.plugins.switches import chosen

    return await load_live(await asyncio.to_thread(chosen, config), SCHEMAS)


def _listening(plugins: LivePlugins | None, closing: AsyncExitStack) -> Sequence[Listener]:
    if not plugins:
        return ()
    closing.push_async_callback(plugins.close)
    return (plugins,)


def _tools(
    processes: Processes, projects: Projects, secrets: Secrets, plugins: LivePlugins | None
) -> Servers:
    """Magy's own tools, those of plugins, and those of MCP servers."""
    settings = projects.settings(None)
    network = settings.sandbox.allow_sandboxed

    def own() -> Sequence[Tool]:
        """An editor may be open for long before anybody asks an agent."""
        from magy_server.tools.kit import make_tools

        return make_tools(
            processes, settings.tools, skills=projects.skills, asks_for_network=network
        )

    log, login = partial(_server_log, secrets), partial(kept, layers.state_dir())
    means = Means(PipedPrograms(processes), picture, scratch, log, login)
    return Servers(own, projects.servers, means, plugins or UNCHANGING)


def _server_log(secrets: Secrets, server: str) -> Callable[[str], None]:
    from magy_server.mcp.server_log import ServerLog, log_path

    return ServerLog(log_path(layers.state_dir(), server), secrets.clean)


class Configured:
    """The models that the configuration of a workspace root gives, as it is now: a project that is
    not trusted any more loses its endpoints with the next request."""

    def __init__(self, projects: Projects, environ: Mapping[str, str], hidden: Secrets) -> None:
        self._projects = projects
        self._environ = environ
        self.hidden = hidden
        self._made: list[tuple[Settings, Providers]] = []

    def models(self, root: str | None) -> Providers:
        """Shared by roots that are configured alike."""
        settings = self._projects.settings(root)
        for known, providers in self._made:
            if (known.provider, known.model) == (settings.provider, settings.model):
                return providers
        providers = Providers(settings.provider, self._environ, settings.model, self.hidden)
        self._made.append((settings, providers))
        return providers

    async def close(self) -> None:
        for _, providers in self._made:
            await providers.close()


def _expand(editor: Editor) -> Expand:
    """What a prompt mentions."""

    async def expand(
        root: str,
        content: Sequence[Content],
        rules: Sequence[Ruleset],
        actions: Mapping[str, ActionSpec],
        skills: Skills,
    ) -> tuple[tuple[Content, ...], Mapping[Hash, bytes]]:
        from magy_server.tools.prompts.mentions import expand as mentioned

        return await mentioned(
            root, content, skills=skills, actions=actions, editor=editor, rules=rules
        )

    return expand


async def environment(state: State) -> Sequence[tuple[str, str]]:
    """What a coding agent must know of where it runs. Nothing in it changes from turn to turn."""
    opened = state.opened
    if opened is None:
        return []
    project = state.place if opened.root else "none: a scratch directory of Magy's"
    text = f"Workspace root: {project} (relative paths begin there)\n"
    text += f"Platform: {os.uname().sysname} {os.uname().machine}\n"
    return [("environment", text + "Shell of the bash tool: bash")]


def scratch() -> str:
    """Returns the private directory where sessions without a project work, and makes it if need
    be."""
    path = layers.state_dir() / "scratch"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.path.realpath(path)
