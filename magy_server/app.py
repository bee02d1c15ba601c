"""The composition root: configuration -> adapters -> engine -> front door. The only file that
knows all layers; what is slow to import is imported where it is first needed."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from magy_server import config
from magy_server.bus.local import LocalBus
from magy_server.core.errors import MagyError, ProviderError
from magy_server.core.events import Limits
from magy_server.core.ports import Editor, Provider, Store
from magy_server.core.specs import AgentSpec, parse_agent
from magy_server.core.state import State
from magy_server.engine.audit import Audit
from magy_server.engine.engine import Engine
from magy_server.engine.runner import Runner
from magy_server.engine.session import Listener
from magy_server.engine.world import Settings, World, read_project
from magy_server.projects import Projects
from magy_server.resources import resource
from magy_server.store.sqlite import SqliteStore
from magy_server.tools.groups import end_group
from magy_server.tools.kit import make_tools
from magy_server.tools.process import Processes

NO_KEY = (
    "No model is configured: set ANTHROPIC_API_KEY in the editor's environment, or name another "
    "provider in magy.toml (see docs/reference/configuration.md)."
)


class SystemClock:
    def now(self) -> float:
        return time.time()


@asynccontextmanager
async def compose(
    roots: Sequence[str],
    options: Mapping[str, Any],
    editor: Editor | None = None,
    listeners: Sequence[Listener] = (),
) -> AsyncIterator[tuple[Engine, Projects]]:
    """The engine for these workspace roots (canonical paths), running. Raises MagyError."""
    state = config.state_dir()
    projects = Projects(options)
    async with AsyncExitStack() as closing:
        opened = await SqliteStore.open(str(state))
        closing.push_async_callback(opened.close)
        for root in roots:
            projects.add(root, (await read_project(opened, root)).trusted)
        processes = Processes(_key_names(projects, roots))
        bus = LocalBus(str(state / "bus"))
        closing.push_async_callback(bus.close)
        await bus.start()
        settings = projects.settings(roots[0] if roots else None)
        providers = Providers(settings.provider)
        closing.push_async_callback(providers.close)
        world = _world(opened, bus, settings, projects, processes, providers, editor)
        heard = [*listeners, *_audit(state, settings.audit, closing)]
        runner = await closing.enter_async_context(Runner(world, end_group, heard))
        # Closed before the runner: the ends of background commands still go into the log.
        closing.push_async_callback(processes.close)
        projects.engine = Engine(runner)
        yield projects.engine, projects


def _key_names(projects: Projects, roots: Sequence[str]) -> set[str]:
    """The variables that hold keys, in any project's configuration: no command gets to see them."""
    settings = [projects.settings(root) for root in (None, *roots)]
    return {p.api_key_env for one in settings for p in one.provider if p.api_key_env}


def _audit(
    state: Path, settings: config.AuditSettings, closing: AsyncExitStack
) -> Sequence[Listener]:
    if not settings.enabled:
        return ()
    audit = Audit(str(state / "audit"), settings.preview_length)
    closing.callback(audit.close)
    return (audit,)


def _world(
    store: Store,
    bus: LocalBus,
    settings: config.Settings,
    projects: Projects,
    processes: Processes,
    providers: Providers,
    editor: Editor | None,
) -> World:
    model = settings.model
    return World(
        me=bus.id,
        store=store,
        bus=bus,
        clock=SystemClock(),
        settings=Settings(
            model=model.default,
            max_tokens=model.max_tokens,
            thinking_tokens=model.thinking_tokens,
            limits=Limits(**settings.limits.model_dump()),
            retries=model.retries,
            retry_delay=model.retry_delay,
        ),
        tools={tool.name: tool for tool in make_tools(processes)},
        agents=built_in_agents(),
        rules=projects.rules,
        provider=providers.named,
        contexts=[environment],
        models=providers.models(model.default),
        editor=editor,
        peers=bus.peer_ids,
    )


def built_in_agents() -> dict[str, AgentSpec]:
    files = sorted(resource("agents").glob("*.md"))
    home = os.path.expanduser("~")
    agents: dict[str, AgentSpec] = {}
    for file in files:
        spec = parse_agent(file.stem, file.read_text("utf-8"), str(file))
        agents[spec.name] = spec.model_copy(update={"rules": spec.rules.at_home(home)})
    return agents


async def environment(state: State) -> Sequence[tuple[str, str]]:
    """What a coding agent must know of where it runs. Nothing in it changes from turn to turn."""
    opened = state.opened
    if opened is None:
        return []
    project = opened.root or "none: a scratch directory of Magy's"
    text = f"Workspace root: {project}\nPlatform: {platform.system()} {platform.machine()}\n"
    return [("environment", text + "Shell of the bash tool: bash")]


class Providers:
    """Makes providers when they are first used: their SDKs are slow to import."""

    def __init__(self, configured: Sequence[config.ProviderSettings]) -> None:
        self._configured = {p.name: p for p in configured}
        self._configured.setdefault(
            "anthropic",
            config.ProviderSettings(
                name="anthropic", kind="anthropic", api_key_env="ANTHROPIC_API_KEY"
            ),
        )
        self._made: dict[str, Provider] = {}

    def models(self, default: str) -> list[str]:
        listed = [f"{p.name}/{model}" for p in self._configured.values() for model in p.models]
        return list(dict.fromkeys([default, *listed]))

    def named(self, full: str) -> tuple[Provider, str]:
        """`provider/model` -> the provider, and its own name for the model."""
        name, slash, model = full.partition("/")
        if name not in self._configured or not slash or not model:
            known = ", ".join(self._configured)
            raise ProviderError(
                f"There is no provider for the model {full!r}: a model is named `provider/model`, "
                f"and the providers are {known}.",
                fault="not_found",
            )
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name], model

    async def close(self) -> None:
        for provider in self._made.values():
            await provider.close()

    def _make(self, name: str) -> Provider:
        about = self._configured[name]
        if about.kind == "scripted":
            from magy_server.llm.scripted import ScriptedProvider

            return ScriptedProvider.read(about.script or "")
        from magy_server.llm.anthropic import AnthropicProvider

        key = os.environ.get(about.api_key_env or "ANTHROPIC_API_KEY", "")
        if not key and not about.base_url:
            raise ProviderError(NO_KEY, fault="no_key")
        return AnthropicProvider(key, base_url=about.base_url)


def workspace_roots(folders: Sequence[str]) -> list[str]:
    """Canonical and existing, without repetitions."""
    real = (os.path.realpath(folder) for folder in folders)
    return list(dict.fromkeys(path for path in real if os.path.isdir(path)))


__all__ = ["MagyError", "Projects", "compose", "workspace_roots"]


def scratch() -> str:
    """Where sessions without a project work: a private directory, made if need be."""
    path = config.state_dir() / "scratch"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.path.realpath(path)
