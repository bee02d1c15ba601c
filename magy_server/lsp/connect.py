"""This module puts together all that answers one editor, once the editor has said what it can
do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AsyncExitStack
from typing import Any

from magy_server.api.connected import Connected
from magy_server.api.places import SCHEME, virtual_uri
from magy_server.api.verbs import Magy
from magy_server.api.wire.verbs import handlers
from magy_server.core.errors import EditorError
from magy_server.lsp.client_options import ClientOptions
from magy_server.lsp.inline import InlineCompletion
from magy_server.lsp.live_editor import LiveEditor
from magy_server.lsp.plain.client import Plain
from magy_server.lsp.plain.review import PlainReview
from magy_server.lsp.plain.targets import Pointing
from magy_server.lsp.server import Answering, Server

ANSWER = 10.0
"""Seconds a client may take to answer what nothing waits for."""


def connect(
    server: Server,
    at: Connected,
    about: ClientOptions,
    editor: LiveEditor,
    running: Callable[[], Sequence[str]],
    closing: AsyncExitStack,
) -> Answering:
    """`running`: the sessions that have a turn now, the latest last. `closing` ends it."""
    can = server.can
    magy = Magy(at)
    review = PlainReview(magy.view, server, shows_lenses=about.lenses)
    pointing = Pointing(at.documents, lambda: magy.contexts, magy.reach)
    plain = Plain(server, magy, about, editor, review, pointing, running)
    closing.push_async_callback(magy.close)
    closing.callback(plain.close)
    closing.callback(server.workspace.touched.add(magy.news.touched))
    magy.news.told.add(_refreshing(server, at, about.lenses and can.refresh_lenses, review.texts))
    magy.begin()
    if can.texts:
        at.spawn(_told(server, "client/registerCapability", _offered_texts()))
    inline = InlineCompletion(server, magy)
    closing.callback(inline.begin())
    methods = plain.noting(handlers(magy.verbs(), magy.made))
    return Answering({**methods, **plain.methods(), **inline.methods()}, plain.commands())


def _refreshing(
    server: Server, at: Connected, lenses: bool, texts: Collection[str]
) -> Callable[[Collection[str]], None]:
    """Has the client ask again for what it shows of changed reviews. `lenses`: it draws lenses and
    can be asked to do so again. `texts`: the `magy:` URIs it may be showing."""

    def refresh(paths: Collection[str]) -> None:
        if lenses:
            at.spawn(_told(server, "workspace/codeLens/refresh", None))
        for uri in {virtual_uri(side, path) for path in paths for side in ("base", "proposed")}:
            if uri in texts:
                at.spawn(_told(server, "workspace/textDocumentContent/refresh", {"uri": uri}))

    return refresh


async def _told(server: Server, method: str, params: Any) -> None:
    try:
        await server.connection.request(method, params, ANSWER)
    except EditorError:
        return  # it has refused, or will ask again by itself, or not


def _offered_texts() -> dict[str, Any]:
    """pygls does not announce it (as of 2.1), so it is registered afterwards."""
    method = "workspace/textDocumentContent"
    options = {"schemes": [SCHEME]}
    return {"registrations": [{"id": "magy-texts", "method": method, "registerOptions": options}]}
