"""Review, checkpoints and edits as one editor gets them: put together for a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from lsprotocol import types

from magy_server.core.errors import EditorError, MagyError
from magy_server.engine.engine import Engine
from magy_server.lsp.checkpoints import CheckpointVerbs
from magy_server.lsp.door import place
from magy_server.lsp.edits import EditVerbs
from magy_server.lsp.front import Announced
from magy_server.lsp.places import SCHEME
from magy_server.lsp.plain_review import PlainReview, Window
from magy_server.lsp.review import ReviewVerbs, View
from magy_server.lsp.review_news import ReviewNews
from magy_server.lsp.server import Server
from magy_server.lsp.workspace import LiveEditor

LLM_GENERATED = types.CodeActionTag.LlmGenerated

Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]


class Surface:
    """`groups`: the verbs of `magy/*` by the first part of their names; `plain`: the same for
    clients that know only the standard protocol."""

    def __init__(
        self,
        server: Server,
        engine: Engine,
        editor: LiveEditor,
        about: Announced,
        roots: Sequence[str],
        spawn: Spawn,
    ) -> None:
        reviews, files = engine.world.reviews, engine.world.files
        if reviews is None or files is None:
            raise MagyError("Magy was put together without reviews.", reason="not_started")
        self._server = server
        can = Abilities(server.client)
        view = View(reviews, files, server.workspace, roots, about.client)
        verbs = ReviewVerbs(view, lambda cwd: place(cwd, roots)[0])
        self.plain = PlainReview(
            view,
            verbs,
            Window(server.show, self._reveal, editor.unseen),
            server.connection.spawn,
            shows_lenses=about.lenses,
            tags=can.tags,
        )
        self.groups: Mapping[str, object] = {
            "review": verbs,
            "checkpoint": CheckpointVerbs(engine),
            "edit": EditVerbs(
                reviews,
                files,
                engine.world.store,
                lambda cwd: place(cwd, roots),
                next(iter(roots), None),
                about.client,
            ),
        }
        self._shows = can.show_document
        self._news = ReviewNews(
            view,
            server.connection.notify if about.interactions or about.review else None,
            server.connection.request,
            spawn,
            lenses=about.lenses and can.refresh_lenses,
            texts=self.plain.texts,
        )
        server.workspace.touched = self._news.touched
        spawn(view.learn())
        if can.texts:
            spawn(self._offer_texts())

    def close(self) -> None:
        self._server.workspace.touched = lambda uri: None
        self._news.close()

    async def _offer_texts(self) -> None:
        """pygls does not announce it (as of 2.1), so it is registered afterwards."""
        method = "workspace/textDocumentContent"
        options = {"schemes": [SCHEME]}
        registration = {"id": "magy-texts", "method": method, "registerOptions": options}
        await self._ask("client/registerCapability", {"registrations": [registration]})

    async def _reveal(self, uri: str, range: Mapping[str, Any]) -> None:
        if self._shows:
            params = {"uri": uri, "takeFocus": True, "selection": range}
            await self._ask("window/showDocument", params)

    async def _ask(self, method: str, params: Any) -> None:
        """The client may refuse: then it has not."""
        try:
            await self._server.connection.request(method, params, 10.0)
        except EditorError:
            return


class Abilities:
    """What the client can, of what matters here."""

    def __init__(self, client: types.ClientCapabilities) -> None:
        window, workspace, document = client.window, client.workspace, client.text_document
        shown = window.show_document if window else None
        self.show_document = bool(shown and shown.support)
        lens = workspace.code_lens if workspace else None
        self.refresh_lenses = bool(lens and lens.refresh_support)
        texts = workspace.text_document_content if workspace else None
        self.texts = bool(texts and texts.dynamic_registration)
        action = document.code_action if document else None
        tags = action.tag_support if action else None
        self.tags = bool(tags and LLM_GENERATED in tags.value_set)
