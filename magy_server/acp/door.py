"""The door answers an ACP client: it begins engines where the client works, and turns the methods
of version 1 into Magy's verbs. What engines need is imported when the first one begins: the client
has its answer to `initialize` before."""

from __future__ import annotations

import asyncio
import json
import os
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from magy_server.acp import commands, mcp_servers, options, v1
from magy_server.acp.connection import Connection
from magy_server.acp.content import prompt
from magy_server.acp.conversation import COMPACTION, Conversation, no_turn
from magy_server.acp.options import Json
from magy_server.acp.permission import asking as asked_of
from magy_server.acp.shapes import read
from magy_server.core.agents import tree
from magy_server.core.errors import InvalidRequest, MagyError, NotFound
from magy_server.jsonrpc.peer import Handler
from magy_server.tasks import to_end

if TYPE_CHECKING:
    from magy_server.acp.workspace import Workspace
    from magy_server.api.doctor import Examine
    from magy_server.api.service import Service
    from magy_server.api.wire.sessions import Interaction
    from magy_server.config.trust import Trust
    from magy_server.core.ports import Editor
    from magy_server.engine.session import Listener

Key = tuple[str | None, str]
"""A directory, and the MCP servers that the client wants there, as JSON."""
PAGE = 200
"""Entries of a log that are read at once."""
Begun = tuple[str, Awaitable[Json]]
CLOSING = 10.0
"""Seconds in which a turn ends that is cancelled because its session is closed."""


class Compose(Protocol):
    def __call__(
        self,
        roots: list[str],
        options: Mapping[str, Any],
        editor: Editor | None,
        listeners: list[Listener],
    ) -> AbstractAsyncContextManager[tuple[Service, Trust]]:
        """Makes the running engine."""


class Door:
    """Version 1. `compose`, `scratch` and `examine` are of the composition root, and may import
    what is slow."""

    def __init__(
        self,
        connection: Connection,
        compose: Callable[[], Compose],
        scratch: Callable[[], str],
        examine: Callable[[], Examine],
    ) -> None:
        self._connection = connection
        self._compose, self._scratch, self._examine = compose, scratch, examine
        self._client = "acp"
        self._about: Mapping[str, Any] = {}
        """What the client says of itself beside the protocol."""
        self._reads = self._writes = self._notices = self._forms = False
        self._workspaces: dict[Key, asyncio.Task[Workspace]] = {}
        self._homes: dict[str, Workspace] = {}
        """By session that the client has open."""
        self._coming: dict[str, asyncio.Event] = {}
        """By session that is being loaded or resumed."""

    def methods(self) -> Mapping[str, Handler]:
        return {
            "authenticate": self._authenticate,
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/fork": self._fork,
            "session/list": self._list,
            "session/close": self._close,
            "session/delete": self._delete,
            "session/set_mode": self._set_mode,
            "session/set_config_option": self._set_option,
            "session/prompt": self._prompt,
            "session/cancel": self._cancel,
        }

    conversation: ClassVar[type[Conversation]] = Conversation

    async def stop(self, why: str) -> None:
        for task in self._workspaces.values():
            if not task.done():
                task.cancel()
            elif not task.cancelled() and task.exception() is None:
                await task.result().close()

    # --- the connection -------------------------------------------------------------------------

    def meet(self, params: Json) -> None:
        """Keeps what the client says of itself in `initialize`. Raises InvalidRequest."""
        asked = read(v1.InitializeRequest, params, "initialize")
        if asked.client_info:
            self._client = asked.client_info.name
        if can := asked.client_capabilities:
            self._about = can.meta or {}
            self._reads = bool(can.fs and can.fs.read_text_file)
            self._writes = bool(can.fs and can.fs.write_text_file)
            self._notices = bool(can.session and can.session.notices)
            self._forms = bool(can.elicitation and can.elicitation.form)

    async def _authenticate(self, params: Json) -> Json:
        asked = read(v1.AuthenticateRequest, params, "authenticate")
        raise no_login("authenticate", asked.method_id)

    @staticmethod
    def asking(root: str, question: Interaction) -> Json:
        """The parameters with which permission is asked; `root`: the workspace."""
        return asked_of(root, question)

    @property
    def _magy(self) -> Mapping[str, Any]:
        """What a client says of itself that knows Magy."""
        about = self._about.get("magy")
        return about if isinstance(about, dict) else {}

    # --- workspaces -----------------------------------------------------------------------------

    async def _workspace(
        self, root: str | None, named: mcp_servers.Named | None = None
    ) -> Workspace:
        """The engine of a directory, with these MCP servers beside those of the settings. It is
        made when it is first asked for. Raises MagyError."""
        servers = mcp_servers.settings(named)
        key = root, json.dumps(servers, sort_keys=True)
        task = self._workspaces.get(key)
        if task is None or (task.done() and (task.cancelled() or task.exception())):
            task = self._workspaces[key] = self._connection.spawn(self._made(root, servers))
        return await asyncio.shield(task)

    async def _made(self, root: str | None, servers: Mapping[str, Json]) -> Workspace:
        from magy_server.acp.editor import AskedEditor
        from magy_server.acp.workspace import Workspace
        from magy_server.engine.session import AT_WORK
        from magy_server.tools.files.paths import below

        editor = None
        made = Workspace(
            self._connection, self._client, root, self.asking,
            custom=self._magy.get("custom") is True, forms=self._forms,
        )  # fmt: skip
        if self._reads:

            def owner(path: str) -> str | None:
                inside = root is not None and below(root, path) is not None
                return made.asker(tree.root(AT_WORK.get())) if inside else None

            editor = AskedEditor(self._connection, owner, made.hangs, writes=self._writes)
        given = self._magy.get("settings")
        settings = dict(given) if isinstance(given, dict) else {}
        if servers:
            own = settings.get("mcp")
            settings["mcp"] = {**(own if isinstance(own, dict) else {}), **servers}
        roots = [] if root is None else [root]
        engine = self._compose()(roots, settings, editor, [made.questions])
        await made.start(engine, self._scratch(), self._examine)
        return made

    async def _anywhere(self) -> Workspace:
        """Any engine: all have the same store."""
        for task in self._workspaces.values():
            if task.done() and not task.cancelled() and task.exception() is None:
                return task.result()
        return await self._workspace(None)

    async def _home(self, session_id: str, cwd: str, named: mcp_servers.Named | None) -> Workspace:
        """Where a session is that the client names together with its directory. Raises
        InvalidRequest for another directory, NotFound."""
        here = _directory(cwd)
        found = await (await self._workspace(here, named)).info(session_id)
        if here not in (found["root"], found["cwd"]):
            raise InvalidRequest(
                f"Session {session_id!r} works in {found['cwd']}, not in {cwd}: name that "
                "directory."
            )
        return await self._workspace(found["root"], named)

    async def _reopened(self, asked: v1.LoadSessionRequest | v1.ResumeSessionRequest) -> Workspace:
        """A session that is open here stays in its engine. Raises as `_home`."""
        home = await self._home(asked.session_id, asked.cwd, asked.mcp_servers)
        return self._homes.get(asked.session_id, home)

    @contextmanager
    def _opening(self, session_id: str) -> Iterator[None]:
        """What the client sends for a session waits while that is loaded or resumed."""
        over = self._coming[session_id] = asyncio.Event()
        try:
            yield
        finally:
            over.set()
            if self._coming.get(session_id) is over:
                del self._coming[session_id]

    async def _open(self, session_id: str) -> tuple[Workspace, Conversation]:
        """Raises NotFound."""
        if session_id not in self._homes and (over := self._coming.get(session_id)):
            await over.wait()
        home = self._homes.get(session_id)
        if home is None:
            raise NotFound(f"Session {session_id!r} is not open here: load or resume it first.")
        return home, home.conversation(session_id)

    # --- sessions -------------------------------------------------------------------------------

    async def _new(self, params: Json) -> Json:
        asked = read(v1.NewSessionRequest, params, "session/new")
        _refuse_more(asked)
        home = await self._workspace(_directory(asked.cwd), asked.mcp_servers)
        session_id = str(uuid.uuid4())
        made = await home.ask("session/new", sessionId=session_id, cwd=asked.cwd)
        self._converse(home, session_id, made["configOptions"])
        await home.ask("session/subscribe", sessionId=session_id, **{"from": {"tail": 0}})
        answer = await self._state(home, session_id)
        self._connection.spawn(self._offer(home, session_id))
        return {"sessionId": session_id, **answer}

    async def _load(self, params: Json) -> Json:
        """All that was said comes before the answer."""
        asked = read(v1.LoadSessionRequest, params, "session/load")
        _refuse_more(asked)
        with self._opening(asked.session_id):
            home = await self._reopened(asked)
            return await to_end(self._told(home, asked.session_id))

    async def _told(self, home: Workspace, session_id: str) -> Json:
        """From the beginning on, also in the middle of a turn: who waits for it goes on waiting."""
        talk = home.conversations.get(session_id) or self._converse(home, session_id, [])
        async with talk.arriving:
            await home.ask("session/unsubscribe", sessionId=session_id)
            home.forget(session_id)
            talk.forget()
            after, more = 0, True
            while more:
                here = {"sessionId": session_id, "after": after, "limit": PAGE}
                page = await home.ask("session/events", **here)
                for item in page["events"]:
                    after = item["seq"]
                    for update in talk.told(item["update"]):
                        home.tell(session_id, update)
                more = page["more"]
            await self._offer(home, session_id)
            return await self._attached(home, session_id, {"seq": after})

    async def _resume(self, params: Json) -> Json:
        asked = read(v1.ResumeSessionRequest, params, "session/resume")
        _refuse_more(asked)
        with self._opening(asked.session_id):
            home = await self._reopened(asked)
            if asked.session_id in home.conversations:  # the client has all of it
                answer = await self._state(home, asked.session_id)
                found = await home.ask("interaction/list", sessionId=asked.session_id)
                home.questions.leave(asked.session_id)
                self._connection.spawn(_again(home, found["interactions"]))
            else:
                self._converse(home, asked.session_id, [])
                answer = await self._attached(home, asked.session_id, {"tail": 0})
        self._connection.spawn(self._offer(home, asked.session_id))
        return answer

    async def _fork(self, params: Json) -> Json:
        asked = read(v1.ForkSessionRequest, params, "session/fork")
        _refuse_more(asked)
        home = await self._home(asked.session_id, asked.cwd, asked.mcp_servers)
        new = str(uuid.uuid4())
        await home.ask("session/fork", sessionId=asked.session_id, newSessionId=new)
        self._converse(home, new, [])
        answer = await self._attached(home, new, {"tail": 0})
        self._connection.spawn(self._offer(home, new))
        return {"sessionId": new, **answer}

    async def _list(self, params: Json) -> Json:
        asked = read(v1.ListSessionsRequest, params, "session/list")
        home = await self._anywhere()
        if asked.cwd is not None and not os.path.isdir(asked.cwd):
            return {"sessions": []}
        where = {} if asked.cwd is None else {"cwd": os.path.realpath(asked.cwd), "only": True}
        found = await home.ask("session/list", cursor=asked.cursor, **where)
        sessions = [
            {key: one[key] for key in ("sessionId", "cwd", "title", "updatedAt") if one[key]}
            for one in found["sessions"]
        ]
        more = {"nextCursor": found["nextCursor"]} if found["nextCursor"] else {}
        return {"sessions": sessions, **more}

    async def _close(self, params: Json) -> Json:
        asked = read(v1.CloseSessionRequest, params, "session/close")
        home, talk = await self._open(asked.session_id)
        await self._end(home, talk)
        await home.ask("session/close", sessionId=asked.session_id)
        self._leave(asked.session_id)
        return {}

    async def _delete(self, params: Json) -> Json:
        asked = read(v1.DeleteSessionRequest, params, "session/delete")
        home = self._homes.get(asked.session_id)
        if home:
            await self._end(home, home.conversation(asked.session_id))
        await (home or await self._anywhere()).ask("session/delete", sessionId=asked.session_id)
        self._leave(asked.session_id)
        return {}

    async def _end(self, home: Workspace, talk: Conversation) -> None:
        """Prompts that wait are answered before their session goes."""
        async with talk.arriving:
            ending = [*talk.waiting.values()]
            await self._stop(home, talk)
        if ending:
            await asyncio.wait(ending, timeout=CLOSING)

    def _converse(self, home: Workspace, session_id: str, listed: options.Listed) -> Conversation:
        talk = self.conversation(session_id, home.root or "/", listed, notices=self._notices)
        home.open(talk)
        self._homes[session_id] = home
        return talk

    def _leave(self, session_id: str) -> None:
        if home := self._homes.pop(session_id, None):
            home.leave(session_id)

    async def _attached(self, home: Workspace, session_id: str, start: Json) -> Json:
        """Goes on with the session, from an entry that the client has. Its open questions are asked
        again."""
        talk = home.conversation(session_id)
        found = await home.ask("session/resume", sessionId=session_id, **{"from": start})
        talk.begin(found["summary"])
        talk.configured(found["summary"]["configOptions"])
        for item in found["events"]:
            for update in talk.told(item["update"]):
                home.tell(session_id, update)
        answer = await self._state(home, session_id)
        self._connection.spawn(_again(home, found["summary"]["interactions"]))
        return answer

    async def _state(self, home: Workspace, session_id: str) -> Json:
        talk = home.conversation(session_id)
        agents = (await home.ask("agent/list"))["agents"]
        modes = options.modes(talk.options, agents)
        return {"configOptions": options.v1(talk.options), **({"modes": modes} if modes else {})}

    async def _offer(self, home: Workspace, session_id: str) -> None:
        offered = await commands.offered(home, session_id)
        update = {"sessionUpdate": "available_commands_update", "availableCommands": offered}
        home.tell(session_id, update)

    # --- options --------------------------------------------------------------------------------

    async def _set_mode(self, params: Json) -> Json:
        asked = read(v1.SetSessionModeRequest, params, "session/set_mode")
        await self._configured(asked.session_id, options.MODE, asked.mode_id)
        return {}

    async def _set_option(self, params: Json) -> Json:
        asked = read(v1.SetSessionConfigOptionRequest, params, "session/set_config_option")
        talk = await self._configured(asked.session_id, asked.config_id, asked.value)
        return {"configOptions": options.v1(talk.options)}

    async def _configured(self, session_id: str, option: str, value: object) -> Conversation:
        """Raises InvalidRequest for an option that the client has not been given."""
        home, talk = await self._open(session_id)
        given = [one["configId"] for one in talk.options]
        if given and option not in given:
            raise InvalidRequest(
                f"session/set_config_option: there is no option {option!r}. "
                f"The options are {', '.join(given)}."
            )
        if not isinstance(value, str):
            raise InvalidRequest(
                f"session/set_config_option: value of {option!r} must be one of the option's."
            )
        found = await home.ask(
            "session/set_config_option", sessionId=session_id, configId=option, value=value
        )
        talk.configured(found["configOptions"])
        return talk

    # --- turns ----------------------------------------------------------------------------------

    async def _prompt(self, params: Json) -> Json:
        """The answer comes when the turn is over."""
        asked = read(v1.PromptRequest, params, "session/prompt")
        home, talk = await self._open(asked.session_id)
        said = prompt(asked.prompt)
        _, ended = await self._begin(home, talk, said)
        try:
            return await asyncio.shield(ended)
        except asyncio.CancelledError:
            if not self._connection.ended.done():  # else the turn stays open, for who comes back
                await to_end(self._cancelled(home, talk))  # after the answer nothing happens
            raise

    async def _begin(self, home: Workspace, talk: Conversation, said: list[Json]) -> Begun:
        """The id of the message, and what waits for the end of its turn."""
        async with talk.arriving:
            try:
                return await to_end(self._begun(home, talk, said))
            except asyncio.CancelledError:
                if not self._connection.ended.done():
                    await to_end(self._stop(home, talk))
                raise

    async def _begun(self, home: Workspace, talk: Conversation, said: list[Json]) -> Begun:
        from magy_server.engine.session import AT_WORK

        AT_WORK.set(talk.id)
        message = str(uuid.uuid4())
        command = commands.of(said)
        if command and command.name == "compact":
            message = f"{COMPACTION}{message}"
            ended = talk.wait(message)
            work = home.ask("session/compact", sessionId=talk.id, focus=command.rest)
            await talk.unless_refused(message, work)
            return message, ended
        if command and command.agent:
            await commands.spawn(home, talk.id, command, said)
            return message, no_turn()
        ended = talk.wait(message)
        words = await commands.meant(home, talk.id, said)
        work = home.ask("session/prompt", sessionId=talk.id, messageId=message, prompt=words)
        await talk.unless_refused(message, work)
        return message, ended

    async def _cancel(self, params: Json) -> None:
        asked = read(v1.CancelNotification, params, "session/cancel")
        await self._cancelled(*await self._open(asked.session_id))

    async def _cancelled(self, home: Workspace, talk: Conversation) -> None:
        async with talk.arriving:
            await self._stop(home, talk)

    async def _stop(self, home: Workspace, talk: Conversation) -> None:
        """Drops this client's prompts that wait, and cancels the turn."""
        for message in [*talk.waiting]:
            with suppress(MagyError):  # it does not wait (any more): it is in the turn
                await home.ask("queue/drop", sessionId=talk.id, messageIds=[message])
        await home.ask("session/cancel", sessionId=talk.id)

    # --- Magy's own verbs -----------------------------------------------------------------------

    async def custom(self, method: str, params: Json) -> Any:
        """`_magy/X` is `magy/X` of the language server."""
        name = method.removeprefix("_")
        session_id = params.get("sessionId") or params.get("parentSessionId") or ""
        home = self._homes.get(str(session_id).split("/")[0])
        for key in ("cwd", "root"):
            if home is None and isinstance(params.get(key), str):
                root = _directory(params[key])
                open_there = [one for one in self._homes.values() if one.root == root]
                home = open_there[-1] if open_there else await self._workspace(root)
        answer = await (home or await self._anywhere()).custom(name, params)
        if name in ("magy/session/close", "magy/session/delete"):
            self._leave(str(session_id))  # nothing tells it of its turns any more
        return answer


def no_login(method: str, asked: str) -> InvalidRequest:
    return InvalidRequest(
        f"{method}: there is no method {asked!r}. Magy takes the keys of its providers from the "
        "environment; `magy doctor` says which."
    )


def _directory(cwd: str) -> str:
    """Canonical. Raises InvalidRequest."""
    from magy_server.api.places import directory

    return directory(cwd)


async def _again(home: Workspace, asked: list[Json]) -> None:
    """After the answer to who came back."""
    from magy_server.api.wire.sessions import Interaction

    for one in asked:
        home.questions.ask(Interaction.model_validate(one))


def _refuse_more(
    asked: v1.NewSessionRequest
    | v1.LoadSessionRequest
    | v1.ResumeSessionRequest
    | v1.ForkSessionRequest,
) -> None:
    if asked.additional_directories:
        raise InvalidRequest("A session works in one directory: leave additionalDirectories out.")
