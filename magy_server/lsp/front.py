"""The front door of an editor: what stands behind the language server once it is initialized.

Light to import: the engine comes with `start`, after `initialize` has been answered.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from magy_server import __version__
from magy_server.api.wire.names import COMMANDS, KINDS, STANDARD
from magy_server.core.errors import MagyError
from magy_server.core.family import Stream, id_of
from magy_server.lsp.announced import Announced

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

    from magy_server.api.engine import Engine
    from magy_server.config.trust import Trust
    from magy_server.core.ports import Editor
    from magy_server.engine.session import Listener
    from magy_server.lsp.doctor import Examine
    from magy_server.lsp.door import Door
    from magy_server.lsp.plain.questions import PlainQuestions
    from magy_server.lsp.server import Server
    from magy_server.lsp.surface import Surface
    from magy_server.lsp.transport import Handler

LOG = logging.getLogger(__name__)
WARMING = (
    "magy/session/new", "magy/session/resume", "magy/session/subscribe", "magy/rewrite/start",
)  # fmt: skip


Compose = Callable[
    [Sequence[str], Mapping[str, Any], "Editor | None", Sequence["Listener"]],
    AbstractAsyncContextManager[tuple["Engine", "Trust"]],
]
"""(workspace roots, the editor's settings, its buffers, listeners) -> the running engine."""


class Front:
    """`lsp.server.FrontDoor`. `compose` gives the composition root, `examine` the doctor; they may
    import what is slow."""

    version = __version__
    experimental: Mapping[str, Any] = {"version": __version__, "protocol": 1}
    commands: Sequence[str] = COMMANDS
    standard: Sequence[str] = STANDARD

    def __init__(
        self,
        compose: Callable[[], Compose],
        scratch: Callable[[], str],
        examine: Callable[[], Examine],
    ) -> None:
        self._compose = compose
        self._examine = examine
        self._scratch = scratch
        self._stack = AsyncExitStack()
        self._door: Door | None = None
        self._surface: Surface | None = None
        self._warming: asyncio.Task[None] | None = None
        self._resuming: asyncio.Task[None] | None = None

    def configure(self, server: LanguageServer) -> None:
        """pygls announces what is registered with it; the requests come to us (`standard`)."""
        from lsprotocol import types

        lens = types.CodeLensOptions()
        action = types.CodeActionOptions(code_action_kinds=KINDS, resolve_provider=True)
        server.feature(types.TEXT_DOCUMENT_CODE_LENS, lens)(_announced)
        server.feature(types.TEXT_DOCUMENT_CODE_ACTION, action)(_announced)
        server.feature(types.CODE_ACTION_RESOLVE)(_announced)

    async def start(self, server: Server) -> Mapping[str, Handler]:
        """Raises MagyError; the person is told in a window as well, and may ask the doctor."""
        from magy_server.lsp.doctor import handlers

        server.connection.methods.update(handlers(self._examine, _roots(server)))
        try:
            return await self._start(server)
        except MagyError as error:
            from lsprotocol.types import MessageType

            server.show(f"Magy: {error.message}", MessageType.Error)
            raise

    async def _start(self, server: Server) -> Mapping[str, Handler]:
        from lsprotocol.types import MessageType

        from magy_server.api.children.news import ChildNews
        from magy_server.lsp.announce import Announcer
        from magy_server.lsp.door import Door
        from magy_server.lsp.plain.client import Home
        from magy_server.lsp.surface import Surface

        about = Announced(server.pygls.protocol.options)
        editor = server.editor([f"magy/editor/{name}" for name in about.editor])
        notify, spawn = server.connection.notify, _spawner(server)
        announcer = Announcer(server, notify, _asking(server, about), spawn)
        roots = _roots(server)
        compose = self._compose()(roots, about.settings, editor, [announcer])
        engine, trust = await self._stack.enter_async_context(compose)
        self._stack.callback(announcer.attach(engine))
        news = engine.loaded.news
        news.broken.add(lambda stream, sentence: _say_broken(server, stream, sentence))
        outbox = server.connection.outbox
        scratch = self._scratch()
        home = Home(
            roots, scratch, lambda root: trust.settings(root).default_agent,
            lambda: announcer.running,
        )  # fmt: skip
        surface = self._surface = Surface(server, engine, editor, about, home, spawn, self._examine)
        children = ChildNews(engine, notify, spawn)
        self._door = Door(
            engine, trust, outbox, roots, scratch, about.client, surface.groups, children
        )
        self._resuming = server.connection.spawn(_resume(engine, roots))
        for root in roots:
            if ignored := trust.ignored(root):
                server.show(f"Magy: {root} is not trusted, so its settings can only "
                    "restrict. Ignored: "
                            f"{', '.join(ignored)}.")  # fmt: skip
        for problem in dict.fromkeys(p for root in (*roots, None) for p in trust.problems(root)):
            server.show(f"Magy: {problem}", MessageType.Warning)
        server.commands.update(surface.plain.commands())
        methods = {**surface.plain.noting(self._door.methods()), **surface.plain.methods()}
        for name in WARMING:
            methods[name] = self._warming_too(methods[name], engine, server)
        return methods

    def _warming_too(self, handler: Handler, engine: Engine, server: Server) -> Handler:
        """The model's SDK is large: it is imported when somebody means to talk, not before."""

        async def handle(params: dict[str, Any]) -> Any:
            if self._warming is None:
                self._warming = server.connection.spawn(
                    _warm(engine, next(iter(_roots(server)), None))
                )
            return await handler(params)

        return handle

    async def stop(self, why: str) -> None:
        LOG.info("Stopping: %s.", why)
        for task in (self._warming, self._resuming):
            if task:
                task.cancel()
        if self._surface:
            self._surface.close()
        if self._door:
            self._door.close()
        await self._stack.aclose()


def _asking(server: Server, about: Announced) -> PlainQuestions | None:
    """How a client is asked that does not show questions itself."""
    from magy_server.config import layers
    from magy_server.lsp.abilities import Abilities
    from magy_server.lsp.plain.questions import PlainQuestions

    if about.interactions:
        return None
    shows = Abilities(server.client).show_document

    async def reveal(uri: str) -> bool:
        return shows and await server.show_document(uri, None, False)

    return PlainQuestions(server, reveal, Path(layers.state_dir()) / "transcripts")


async def _announced(*arguments: Any) -> None:
    """What pygls would call if the front door did not answer."""


def _roots(server: Server) -> list[str]:
    import os

    real = (os.path.realpath(path) for path in server.workspace.folder_paths())
    return list(dict.fromkeys(path for path in real if os.path.isdir(path)))


def _spawner(server: Server) -> Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]:
    """Work that nobody waits for; what it fails with is logged, never raised into the server."""

    async def guarded(work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except MagyError as error:
            LOG.error("%s", error)

    return lambda work: server.connection.spawn(guarded(work))


async def _resume(engine: Engine, roots: Sequence[str]) -> None:
    """Goes on with what was left open in this workspace."""
    try:
        await engine.resume_all(roots)
    except MagyError as error:
        LOG.warning("%s", error)


async def _warm(engine: Engine, root: str | None) -> None:
    try:
        models = engine.world.models(root)
        provider, _ = models.named(await models.default())
        await asyncio.to_thread(provider.warm)
    except MagyError as error:
        LOG.info("%s", error)  # the first turn says it to the person


def _say_broken(server: Server, stream: Stream, sentence: str) -> None:
    from lsprotocol.types import MessageType

    name = id_of(stream)
    server.show(f"Magy: session {name} has stopped: {sentence}", MessageType.Error)
