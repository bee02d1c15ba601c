"""Review, checkpoints and edits as one editor gets them: put together for a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from lsprotocol import types

from magy_server.api.children.verbs import ChildVerbs
from magy_server.api.edits.verbs import EditVerbs
from magy_server.api.engine import Engine
from magy_server.api.places import SCHEME
from magy_server.api.reviews.checkpoints import CheckpointVerbs
from magy_server.api.reviews.news import ReviewNews
from magy_server.api.reviews.verbs import ReviewVerbs, View
from magy_server.core.errors import EditorError
from magy_server.lsp.abilities import Abilities
from magy_server.lsp.announced import Announced
from magy_server.lsp.context import ContextVerbs
from magy_server.lsp.doctor import Examine
from magy_server.lsp.door import place
from magy_server.lsp.knowing import knowing
from magy_server.lsp.plain.client import Home, Plain
from magy_server.lsp.plain.pointing import Pointing
from magy_server.lsp.plain.review import PlainReview, Window
from magy_server.lsp.reach import Reach
from magy_server.lsp.rewrite import RewriteVerbs
from magy_server.lsp.server import Server
from magy_server.lsp.workspace import LiveEditor

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
        home: Home,
        spawn: Spawn,
        examine: Callable[[], Examine],
    ) -> None:
        self._server = server
        roots = home.roots
        can = Abilities(server.client)
        view = View(engine.reviews, engine.world.files, server.workspace, roots, about.client)
        verbs = ReviewVerbs(view, lambda cwd: place(cwd, roots)[0])
        review = PlainReview(
            view, verbs, Window(server.show, self._reveal, editor.unseen), server.connection.spawn,
            shows_lenses=about.lenses, tags=can.tags,
        )  # fmt: skip
        self.rewrites = _rewrites(server, engine, about, roots)
        reach = Reach(engine.world, roots)
        contexts = ContextVerbs(server.workspace, editor, reach)
        children = ChildVerbs(engine, about.client)
        self.plain = Plain(
            server, engine, about, home, spawn, can, review,
            Pointing(server.workspace, contexts, reach), self.rewrites.command, children,
        )  # fmt: skip
        self.groups: Mapping[str, object] = {
            "review": verbs,
            "child": children,
            "rewrite": self.rewrites,
            "checkpoint": CheckpointVerbs(engine),
            "edit": _edits(engine, about, roots),
            **knowing(engine, editor, reach, contexts, spawn, examine),
        }
        self._shows = can.show_document
        notify = server.connection.notify if about.interactions or about.review else None
        lenses = about.lenses and can.refresh_lenses
        self._news = ReviewNews(
            view, notify, server.connection.request, spawn, lenses=lenses, texts=review.texts
        )
        self._untouch = server.workspace.touched.add(self._news.touched)
        spawn(view.learn())
        spawn(self.rewrites.resume())
        if can.texts:
            spawn(self._offer_texts())

    def close(self) -> None:
        self._untouch()
        self._news.close()
        self.plain.close()
        self.rewrites.close()

    async def _offer_texts(self) -> None:
        """pygls does not announce it (as of 2.1), so it is registered afterwards."""
        method = "workspace/textDocumentContent"
        options = {"schemes": [SCHEME]}
        registration = {"id": "magy-texts", "method": method, "registerOptions": options}
        await self._ask("client/registerCapability", {"registrations": [registration]})

    async def _reveal(self, uri: str, range: Mapping[str, Any]) -> None:
        if self._shows:
            await self._server.show_document(uri, range, True)

    async def _ask(self, method: str, params: Any) -> None:
        """The client may refuse: then it has not."""
        try:
            await self._server.connection.request(method, params, 10.0)
        except EditorError:
            return


def _edits(engine: Engine, about: Announced, roots: Sequence[str]) -> EditVerbs:
    return EditVerbs(
        engine.reviews,
        engine.world.files,
        engine.world.store,
        lambda cwd: place(cwd, roots),
        next(iter(roots), None),
        about.client,
    )


def _rewrites(
    server: Server, engine: Engine, about: Announced, roots: Sequence[str]
) -> RewriteVerbs:
    return RewriteVerbs(
        engine,
        server.workspace,
        server.connection.outbox,
        lambda cwd: place(cwd, roots),
        roots,
        lambda text: server.show(text, types.MessageType.Warning),
        tells=about.interactions or about.review,
    )
