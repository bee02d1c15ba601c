"""A workspace is one directory in which an ACP client works: the engine behind it, and Magy's
verbs, whose messages become those of the client."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from magy_server.acp.children import Child
from magy_server.acp.conversation import Conversation
from magy_server.acp.options import Json
from magy_server.acp.permission import Asking
from magy_server.acp.questions import Questions
from magy_server.api.connected import Connected, NoDocuments, Source
from magy_server.api.service import Service
from magy_server.api.verbs import Magy
from magy_server.api.warming import warm
from magy_server.api.wire.verbs import Handler, handler, handlers, later
from magy_server.config.trust import Trust
from magy_server.core.agents import tree
from magy_server.core.agents.tree import Stream, id_of
from magy_server.core.errors import EditorError, MagyError, NotFound
from magy_server.jsonrpc.outbox import Outbox
from magy_server.jsonrpc.peer import MethodNotFound, Peer

if TYPE_CHECKING:
    from magy_server.api.doctor import Examine
    from magy_server.api.sessions.session_verbs import SessionVerbs

LOG = logging.getLogger(__name__)
HANGS = (
    "For a minute Magy does not ask it: files are read from disk, where unsaved text is not seen, "
    "and are not changed."
)


class _Translated:
    """A source whose messages are turned into those of the client."""

    def __init__(self, source: Source, translate: Callable[[Any], list[Json]]) -> None:
        self._source = source
        self._translate = translate

    async def pull(self, budget: int) -> Sequence[Mapping[str, Any] | bytes]:
        """Nothing means that there is nothing more: what the client is not told is passed over."""
        while messages := await self._source.pull(budget):
            if said := [one for message in messages for one in self._translate(message)]:
                return said
        return []


class Translating:
    """The outbox that Magy's verbs see."""

    def __init__(self, outbox: Outbox, translate: Callable[[Any], list[Json]]) -> None:
        self._outbox = outbox
        self._translate = translate
        self._sources: dict[Source, _Translated] = {}

    def send(self, message: Mapping[str, Any] | bytes) -> None:
        for one in self._translate(message):
            self._outbox.send(one)

    def wake(self, source: Source) -> None:
        known = self._sources.get(source)
        if known is None:
            known = self._sources[source] = _Translated(source, self._translate)
        self._outbox.wake(known)

    def forget(self, source: Source) -> None:
        if known := self._sources.pop(source, None):
            self._outbox.forget(known)


class Workspace:
    """`conversations`: the sessions that the client has open here. `custom`: it takes Magy's own
    messages; `forms`: people fill in forms there."""

    def __init__(
        self, peer: Peer, client: str, root: str | None, asking: Asking, *, custom: bool,
        forms: bool,
    ) -> None:  # fmt: skip
        self.root = root
        self.conversations: dict[str, Conversation] = {}
        self.questions = Questions(
            peer, client, partial(asking, root or "/"), self.conversations.__contains__, forms=forms
        )
        self.completing = asyncio.Lock()
        self.verbs: Mapping[str, Handler] = {}
        self._apart: Mapping[str, Handler] = {}
        self._peer = peer
        self._client = client
        self._custom = custom
        self._children: dict[str, Child] = {}
        self._stack = AsyncExitStack()

    async def start(
        self, composing: Any, scratch: str, examine: Callable[[], Examine]
    ) -> Mapping[str, Handler]:
        """`composing`: the engine, as a context. Returns the verbs. Raises MagyError."""
        service, trust = self._service, _ = await self._stack.enter_async_context(composing)
        self._stack.callback(self.questions.attach(service))
        self._stack.callback(service.loaded.news.broken.add(self._broken))
        roots = [self.root] if self.root is not None else []
        magy = Magy(self._connected(service, trust, roots, scratch, examine))
        self._stack.push_async_callback(magy.close)
        magy.begin()
        self.verbs = handlers(magy.verbs(), magy.made)
        self._apart = self._subscribing(magy)
        return self.verbs

    def _subscribing(self, magy: Magy) -> Mapping[str, Handler]:
        """`session/prompt` is answered by what the subscriptions of conversations tell, so the
        client has others for what it asks for itself."""

        @cache
        def apart() -> SessionVerbs:
            return magy.apart(Translating(self._peer.outbox, self._untranslated))

        verbs = {
            "magy/session/subscribe": later(lambda: apart().subscribe),
            "magy/session/resume": later(lambda: apart().resume),
            "magy/session/unsubscribe": later(lambda: apart().unsubscribe),
        }
        return {method: handler(method, verb, magy.made) for method, verb in verbs.items()}

    def _connected(
        self,
        service: Service,
        trust: Trust,
        roots: Sequence[str],
        scratch: str,
        examine: Callable[[], Examine],
    ) -> Connected:
        return Connected(
            service=service,
            trust=trust,
            client=self._client,
            roots=roots,
            scratch=scratch,
            documents=NoDocuments("utf-8"),
            outbox=Translating(self._peer.outbox, self._translated),
            notify=self._notified,
            warn=partial(LOG.warning, "%s"),
            spawn=self._peer.spawn,
            examine=examine,
            draws=self._custom,
        )

    async def close(self) -> None:
        await self._stack.aclose()

    async def info(self, session_id: str) -> Mapping[str, Any]:
        """Where a session works: {root, cwd}. Raises NotFound."""
        found = await self._service.info(session_id)
        return {"root": found.root, "cwd": found.summary.get("cwd", "")}

    def leave(self, session_id: str) -> None:
        """The client does not have this session any more."""
        if talk := self.conversations.pop(session_id, None):
            talk.stop("The session was closed.")
        self.forget(session_id)

    def forget(self, session_id: str) -> None:
        """The client has seen nothing of its questions and children."""
        self.questions.leave(session_id)
        for child in [one for one in self._children if tree.root(one) == session_id]:
            del self._children[child]

    async def custom(self, method: str, params: Json) -> Any:
        """One of Magy's own methods, named as on the wire of the language server. Raises
        MagyError."""
        if method not in self.verbs:
            raise MethodNotFound(f"There is no method _{method}.")
        answer = await self._apart.get(method, self.verbs[method])(params)
        if method in ("magy/session/close", "magy/session/delete"):
            await self._apart["magy/session/unsubscribe"]({"sessionId": params["sessionId"]})
        return answer

    def asker(self, session_id: str) -> str | None:
        """The session by which to ask the client for a file: the one that works ("": none does),
        else the one opened last. Raises EditorError."""
        if session_id and session_id not in self.conversations:
            raise EditorError(
                f"Session {session_id!r} is not open in the editor, which cannot be asked for it."
            )
        return session_id or next(reversed(self.conversations), None)

    def open(self, talk: Conversation) -> None:
        """The client has this session from now on. Whoever opens one means to talk to a model."""
        if not self.conversations:
            self._peer.spawn(warm(self._service, self.root))
        self.conversations[talk.id] = talk

    async def ask(self, verb: str, **params: Any) -> Any:
        """Does one of Magy's verbs, such as `session/new`. Raises MagyError."""
        return await self.verbs[f"magy/{verb}"](params)

    def conversation(self, session_id: str) -> Conversation:
        """Raises NotFound."""
        found = self.conversations.get(session_id)
        if found is None:
            raise NotFound(f"Session {session_id!r} is not open here: load or resume it first.")
        return found

    def tell(self, session_id: str, update: Json) -> None:
        self._peer.notify("session/update", {"sessionId": session_id, "update": update})

    def hangs(self, session_id: str, said: str) -> None:
        """The client does not give or take files: its person is told."""
        LOG.warning("%s %s", said, HANGS)
        if talk := self.conversations.get(session_id):
            for update in talk.noticed("warning", "The editor hangs", f"{said} {HANGS}"):
                self.tell(session_id, update)

    # --- what Magy says -------------------------------------------------------------------------

    def _translated(self, message: Any) -> list[Json]:
        params = message["params"]
        if message["method"] != "magy/session/update":
            return self._untranslated(message)
        about = {"sessionId": tree.root(params["sessionId"])}
        return [
            {"jsonrpc": "2.0", "method": "session/update", "params": {**about, "update": update}}
            for update in self.updates(params["sessionId"], params["update"])
        ]

    def _untranslated(self, message: Any) -> list[Json]:
        return [{**message, "method": f"_{message['method']}"}] if self._custom else []

    def updates(self, session_id: str, update: Mapping[str, Any]) -> list[Json]:
        """What the client is told of an update, in the root session."""
        if talk := self.conversations.get(session_id):
            return talk.told(update)
        child = self._children.get(session_id)
        grown = child.did(update) if child and tree.root(session_id) in self.conversations else None
        return [grown] if grown else []

    def _notified(self, method: str, params: Any) -> None:
        if method == "magy/child/changed":
            self._child(params["child"])
        if self._custom:
            self._peer.notify(f"_{method}", params)

    def _child(self, of: Mapping[str, Any]) -> None:
        session_id = of["sessionId"]
        talk = self.conversations.get(tree.root(session_id))
        if talk is None:
            return
        child = self._children.get(session_id)
        if child is None:
            child = self._children[session_id] = Child(of, talk.introduces)
            self._peer.spawn(self._follow(session_id))
        self.tell(tree.root(session_id), child.changed(of))

    async def _follow(self, session_id: str) -> None:
        """What the child does from its beginning on."""
        try:
            found = await self.ask("session/subscribe", sessionId=session_id)
        except MagyError as error:
            LOG.info("%s", error)
            return
        for item in found["events"]:
            for update in self.updates(session_id, item["update"]):
                self.tell(tree.root(session_id), update)

    def _broken(self, stream: Stream, sentence: str) -> None:
        """A session that cannot go on answers no prompt."""
        LOG.error("Session %s has stopped: %s", id_of(stream), sentence)
        if talk := self.conversations.get(id_of(stream)):
            talk.stop(f"The session has stopped: {sentence}")
