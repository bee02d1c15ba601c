"""This module speaks the draft of version 2, from one pinned schema: its updates are those of
Magy's own wire.

A prompt is answered as soon as it is accepted, and its turn ends with a `state_update`. There are
no `fs/*` in it: files are read and written on disk, and the client is told so.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from magy_server.acp import commands, options, v2
from magy_server.acp.content import prompt
from magy_server.acp.conversation import STOPS, Conversation
from magy_server.acp.door import Door, no_login
from magy_server.acp.options import Json
from magy_server.acp.permission import call_of, common
from magy_server.acp.shapes import read
from magy_server.core.errors import MagyError
from magy_server.jsonrpc.peer import Handler

if TYPE_CHECKING:
    from magy_server.acp.workspace import Workspace
    from magy_server.api.wire import sessions as wire

AS_THEY_ARE = frozenset((
    "user_message", "agent_message_chunk", "agent_message", "agent_thought_chunk", "agent_thought",
    "tool_call_update", "tool_call_content_chunk", "plan_update", "notice",
))  # fmt: skip
"""Updates that the draft has as Magy has them."""
ON_DISK = (
    "This version of the protocol cannot ask the editor for files: Magy reads and writes them on "
    "disk. Save what the agent should see."
)


class DraftConversation(Conversation):
    """One session, as a client of version 2 has it."""

    introduces = "tool_call_update"

    def told(self, update: Mapping[str, Any]) -> list[Json]:
        kind = update["sessionUpdate"]
        if kind in AS_THEY_ARE:
            return [dict(update)]
        first = super().told(update)
        match kind:
            case "state_update":
                return [_state(update)]
            case "config_option_update" if first:
                return [{"sessionUpdate": kind, "configOptions": listed(self.options)}]
            case "usage_update" | "session_info_update":
                return first
        return []


class Draft(Door):
    conversation: ClassVar[type[Conversation]] = DraftConversation

    def methods(self) -> Mapping[str, Handler]:
        kept = ("session/list", "session/close", "session/delete", "session/cancel")
        return {
            **{name: one for name, one in super().methods().items() if name in kept},
            "auth/login": self._login,
            "session/new": self._new,
            "session/resume": self._resume,
            "session/set_config_option": self._set_option,
            "session/prompt": self._prompt,
        }

    def meet(self, params: Json) -> None:
        asked = read(v2.InitializeRequest, params, "initialize")
        self._client = asked.info.name
        if can := asked.capabilities:
            self._about = can.meta or {}
            self._forms = bool(can.elicitation and can.elicitation.form)

    async def _login(self, params: Json) -> Json:
        asked = read(v2.LoginAuthRequest, params, "auth/login")
        raise no_login("auth/login", asked.method_id)

    async def _new(self, params: Json) -> Json:
        asked = read(v2.NewSessionRequest, params, "session/new")
        made = await super()._new(_place(asked))
        home, talk = await self._open(made["sessionId"])
        self._connection.spawn(_said_of_files(home, talk.id))
        return made

    async def _resume(self, params: Json) -> Json:
        asked = read(v2.ResumeSessionRequest, params, "session/resume")
        here = {**_place(asked), "sessionId": asked.session_id}
        if isinstance(asked.replay_from, v2.ReplayFromStart):
            return await super()._load(here)
        return await super()._resume(here)

    async def _state(self, home: Workspace, session_id: str) -> Json:
        talk = home.conversation(session_id)
        offered = [_command(one) for one in await commands.offered(home, session_id)]
        return {"configOptions": listed(talk.options), "availableCommands": offered}

    async def _offer(self, home: Workspace, session_id: str) -> None:
        """The answer has the commands."""

    async def _set_option(self, params: Json) -> Json:
        asked = read(v2.SetSessionConfigOptionRequest, params, "session/set_config_option")
        talk = await self._configured(asked.session_id, asked.config_id, asked.value)
        return {"configOptions": listed(talk.options)}

    async def _prompt(self, params: Json) -> Json:
        """The answer comes when the message is in the log."""
        asked = read(v2.PromptRequest, params, "session/prompt")
        home, talk = await self._open(asked.session_id)
        said = prompt(asked.prompt)
        ends = talk.ends
        message, ended = await self._begin(home, talk, said)
        self._connection.spawn(_over(home, talk, ended, ends))
        return {"messageId": message}

    @staticmethod
    def asking(root: str, question: wire.Interaction) -> Json:
        subject = {"type": "tool_call", "toolCall": call_of(question)}
        return {**common(question), "title": question.title, "subject": subject}


def listed(found: options.Listed) -> list[Json]:
    """Options, which name themselves otherwise than in version 1."""
    shown = [{**one, "configId": one["id"]} for one in options.v1(found)]
    return [{key: one[key] for key in one if key != "id"} for one in shown]


def _place(asked: v2.NewSessionRequest | v2.ResumeSessionRequest) -> Json:
    """Where the session works, and with which servers, in the shape of version 1."""
    servers = [
        one if isinstance(one, dict) else one.model_dump(by_alias=True)
        for one in asked.mcp_servers or ()
    ]
    return {"cwd": asked.cwd, "additionalDirectories": asked.additional_directories or [],
            "mcpServers": servers}  # fmt: skip


def _command(one: Mapping[str, Any]) -> Json:
    return {**one, "type": "command", "input": {"type": "text", **one["input"]}}


def _state(update: Mapping[str, Any]) -> Json:
    """Stop reasons that the draft does not have are Magy's own."""
    stop = update.get("stopReason")
    if stop is None or stop in STOPS or stop == "error":
        return dict(update)
    return {**update, "stopReason": f"_{stop}"}


async def _said_of_files(home: Workspace, session_id: str) -> None:
    update = {"sessionUpdate": "notice", "severity": "info", "title": "Files on disk"}
    home.tell(session_id, {**update, "description": ON_DISK})


async def _over(home: Workspace, talk: Conversation, ended: Awaitable[Json], ends: int) -> None:
    """How a turn ends is said by an update: of a prompt that had none (it was cancelled before, or
    went to another agent), here. `ends`: those of `talk` before the prompt."""
    with suppress(MagyError):
        result = await ended
        if not talk.busy and talk.ends == ends:
            state = {"state": "idle", "stopReason": result["stopReason"]}
            home.tell(talk.id, {"sessionUpdate": "state_update", **state})
