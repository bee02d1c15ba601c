"""The editor's front door starts the engine behind the language server, once that is initialized.

Light to import: the engine comes with `start`, after `initialize` has been answered.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from magy_server import __version__
from magy_server.api.wire.names import COMMANDS, KINDS, STANDARD
from magy_server.core.agents.tree import Stream, id_of
from magy_server.core.errors import MagyError
from magy_server.lsp.client_options import ClientOptions
from magy_server.lsp.greeting import EXPERIMENTAL

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

    from magy_server.api.doctor import Examine
    from magy_server.api.service import Service
    from magy_server.api.wire.editor import DoctorParams, DoctorResult
    from magy_server.api.wire.verbs import Handler, Verb
    from magy_server.config.trust import Trust
    from magy_server.core.ports import Editor
    from magy_server.engine.session import Listener
    from magy_server.lsp.plain.questions import PlainQuestions
    from magy_server.lsp.server import Answering, Server

LOG = logging.getLogger(__name__)
WARMING = (
    "magy/session/new", "magy/session/resume", "magy/session/subscribe", "magy/rewrite/start",
)  # fmt: skip


class Compose(Protocol):
    def __call__(
        self,
        roots: Sequence[str],
        options: Mapping[str, Any],
        editor: Editor | None,
        listeners: Sequence[Listener],
        *,
        keys: Mapping[str, str],
        restricted: bool,
    ) -> AbstractAsyncContextManager[tuple[Service, Trust]]:
        """Makes the running engine from the workspace roots, the editor's settings and buffers,
        listeners, and the keys that the editor keeps, by provider. `restricted`: the person has
        not trusted the roots in the editor."""


class EditorFrontDoor:
    """`lsp.server.FrontDoor`. `compose` gives the composition root, `examine` the doctor; they may
    import what is slow."""

    version = __version__
    experimental = EXPERIMENTAL
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
        self._told = ""
        """What the person was told last of why it does not start."""
        self._warming: asyncio.Task[None] | None = None
        self._resuming: asyncio.Task[None] | None = None

    def configure(self, server: LanguageServer) -> None:
        """pygls announces what is registered with it; the requests come to us (`standard`)."""
        from lsprotocol import types

        from magy_server.lsp.pygls_reader import announced

        lens = types.CodeLensOptions()
        action = types.CodeActionOptions(code_action_kinds=KINDS, resolve_provider=True)
        server.feature(types.TEXT_DOCUMENT_CODE_LENS, lens)(announced)
        server.feature(types.TEXT_DOCUMENT_CODE_ACTION, action)(announced)
        server.feature(types.CODE_ACTION_RESOLVE)(announced)

    async def start(self, server: Server) -> Answering:
        """Raises MagyError; the person is told in a window as well, and may ask the doctor."""
        from magy_server.api.wire.verbs import handler, later

        method = "magy/doctor/run"
        server.connection.methods[method] = handler(method, later(partial(self._doctor, server)))
        try:
            return await self._start(server)
        except MagyError as error:
            if error.message != self._told:  # it may be tried often before that is mended
                self._told = error.message
                server.show(f"Magy: {error.message}", "Error")
            raise

    def _doctor(self, server: Server) -> Verb[DoctorParams, DoctorResult]:
        """It serves from before there is a service."""
        from magy_server.api.doctor import DoctorVerbs

        return DoctorVerbs(self._examine, _roots(server)).run

    async def _start(self, server: Server) -> Answering:
        from magy_server.api.connected import Connected
        from magy_server.lsp.broadcasts import Announcer
        from magy_server.lsp.connect import connect
        from magy_server.lsp.server import Answering

        about = ClientOptions(server.client.options)
        editor = server.editor([f"magy/editor/{name}" for name in about.editor])
        spawn = server.connection.spawn
        announcer = Announcer(server, _asking(server, about), spawn)
        roots = _roots(server)
        compose = self._compose()(
            roots, about.settings, editor, [announcer],
            keys=about.keys, restricted=about.restricted,
        )  # fmt: skip
        service, trust = await self._stack.enter_async_context(compose)
        self._stack.callback(announcer.attach(service, roots))
        self._stack.callback(service.loaded.news.broken.add(partial(_say_broken, server)))
        at = Connected(
            service=service,
            trust=trust,
            client=about.client,
            roots=roots,
            scratch=self._scratch(),
            documents=server.workspace,
            outbox=server.connection.outbox,
            notify=server.connection.notify,
            warn=lambda text: server.show(text, "Warning"),
            spawn=spawn,
            examine=self._examine,
            draws=about.interactions or about.review,
        )
        answering = connect(
            server, at, about, editor, lambda: announcer.running,
            await self._stack.enter_async_context(AsyncExitStack()),
        )  # fmt: skip
        self._resuming = spawn(service.resume_all(roots))
        _say_distrust(server, trust, roots)
        methods = dict(answering.methods)
        for name in WARMING:
            methods[name] = self._warming_too(methods[name], service, server)
        return Answering(methods, answering.commands)

    def _warming_too(self, handler: Handler, service: Service, server: Server) -> Handler:
        """Somebody means to talk to a model; but first they are answered."""

        async def handle(params: dict[str, Any]) -> Any:
            try:
                return await handler(params)
            finally:
                if self._warming is None:
                    from magy_server.api.warming import warm

                    self._warming = server.connection.spawn(
                        warm(service, next(iter(_roots(server)), None))
                    )

        return handle

    async def stop(self, why: str) -> None:
        LOG.info("Stopping: %s.", why)
        for task in (self._warming, self._resuming):
            if task:
                task.cancel()
        await self._stack.aclose()


def _asking(server: Server, about: ClientOptions) -> PlainQuestions | None:
    """How a client is asked that does not show questions itself."""
    if about.interactions:
        return None
    from magy_server.config import layers
    from magy_server.lsp.plain.questions import PlainQuestions

    return PlainQuestions(server, Path(layers.state_dir()) / "transcripts")


def _roots(server: Server) -> list[str]:
    import os

    real = (os.path.realpath(path) for path in server.workspace.folder_paths())
    return list(dict.fromkeys(path for path in real if os.path.isdir(path)))


def _say_distrust(server: Server, trust: Trust, roots: Sequence[str]) -> None:
    for root in roots:
        if ignored := trust.ignored(root):
            said = f"{root} is not trusted, so its settings can only restrict. Ignored: "
            server.show(f"Magy: {said}{', '.join(ignored)}.")
    for problem in dict.fromkeys(p for root in (*roots, None) for p in trust.problems(root)):
        server.show(f"Magy: {problem}", "Warning")


def _say_broken(server: Server, stream: Stream, sentence: str) -> None:
    server.show(f"Magy: session {id_of(stream)} has stopped: {sentence}", "Error")
