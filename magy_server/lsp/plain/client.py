"""This module puts together what every editor gets through the standard protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from magy_server.api.sessions.transcripts import Transcripts, session_of
from magy_server.api.verbs import Magy
from magy_server.api.wire import names
from magy_server.config import layers
from magy_server.jsonrpc.peer import Handler
from magy_server.lsp.client_options import ClientOptions
from magy_server.lsp.live_editor import LiveEditor
from magy_server.lsp.plain.actions import CodeActions, Known, asked
from magy_server.lsp.plain.answers import Answers
from magy_server.lsp.plain.prompt_sessions import Asking
from magy_server.lsp.plain.review import PlainReview
from magy_server.lsp.plain.targets import Pointing
from magy_server.lsp.server import Command, Server

TEXTS = "workspace/textDocumentContent"
USES = ("magy/session/new", "magy/session/prompt", "magy/session/resume")
LEAVES = ("magy/session/close", "magy/session/delete")
DELETES = "magy/session/delete"


class Plain:
    """`about`: what the client said of itself; `running`: the sessions that have a turn now, the
    latest last."""

    def __init__(
        self,
        server: Server,
        magy: Magy,
        about: ClientOptions,
        editor: LiveEditor,
        review: PlainReview,
        pointing: Pointing,
        running: Callable[[], Sequence[str]],
    ) -> None:
        at, can = magy.at, server.can
        self._running = running
        self._review = review
        self._transcripts = Transcripts(
            at.service,
            server.connection.request,
            at.spawn,
            Path(layers.state_dir()) / "transcripts",
        )
        answers = Answers(self._transcripts, server, about.answers)
        self._asking = Asking(at, None if about.answers == "none" else answers.tell, running)
        known = Known(lambda root: at.service.world.agents(root).actions, at.spawn)
        self._actions = CodeActions(
            known, lambda uri: self._asking.where(uri).root, pointing.symbol,
            resolves=can.resolve, tags=can.tags, bare=None if about.interactions else self._bare,
        )  # fmt: skip

        def asking() -> Mapping[str, Command]:
            from magy_server.lsp.plain.commands import PlainCommands

            return PlainCommands(server, magy, self._asking, known, pointing, answers).commands()

        def reviewing() -> Mapping[str, Command]:
            from magy_server.lsp.plain.review_commands import ReviewCommands

            return ReviewCommands(magy.view, magy.reviews, server, editor).commands()

        self._commands = {**_later(names.REVIEWING, reviewing), **_later(names.ASKING, asking)}
        for root in (*at.roots, None):
            at.spawn(known.first(root))
        at.spawn(self._transcripts.tidy())

    def close(self) -> None:
        self._transcripts.close()

    def methods(self) -> Mapping[str, Handler]:
        return {
            "textDocument/codeLens": self._review.code_lens,
            names.CODE_ACTION: self._code_action,
            names.RESOLVE: self._resolve,
            TEXTS: self._content,
        }

    def commands(self) -> Mapping[str, Command]:
        return self._commands

    def noting(self, methods: Mapping[str, Handler]) -> Mapping[str, Handler]:
        """The same methods, but that commands without a session go to the one used last."""
        noting = {name: self._noting(methods[name], self._asking.used) for name in USES}
        leaving = {name: self._noting(methods[name], self._asking.left) for name in LEAVES}
        deleting = self._noting(leaving[DELETES], self._transcripts.forget)
        return {**methods, **noting, **leaving, DELETES: deleting}

    def _noting(self, handler: Handler, note: Callable[[str], None]) -> Handler:
        async def handle(params: dict[str, Any]) -> Any:
            result = await handler(params)
            note(str(params.get("sessionId")))
            return result

        return handle

    def _bare(self) -> tuple[bool, bool]:
        return bool(self._running()), self._asking.last is not None

    async def _code_action(self, params: dict[str, Any]) -> Any:
        about = asked(params)
        return [*await self._review.code_action(about), *await self._actions.offered(about)]

    async def _resolve(self, params: dict[str, Any]) -> Any:
        return self._actions.resolve(params)

    async def _content(self, params: dict[str, Any]) -> Any:
        session_id = session_of(str(params.get("uri")))
        if session_id is None:
            return await self._review.content(params)
        return {"text": await self._transcripts.shown(session_id)}


def _later(names: Iterable[str], find: Callable[[], Mapping[str, Command]]) -> dict[str, Command]:
    """Commands that are imported with the first of them: clients of Magy's own use none."""
    found = cache(find)

    def named(name: str) -> Command:
        async def run(given: list[Any]) -> Any:
            return await found()[name](given)

        return run

    return {name: named(name) for name in names}
