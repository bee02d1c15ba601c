"""These are the commands of `workspace/executeCommand`; each takes one object. `docs/protocol.md`
is generated from this."""

from typing import Annotated, Literal

from pydantic import Field

from magy_server.api.wire import names
from magy_server.api.wire.children import ChildClosed, ChildListResult, SpawnKey
from magy_server.api.wire.editor import Diagnostic, Uri, those
from magy_server.api.wire.rewriting import RewriteCommand
from magy_server.api.wire.shapes import Id, Prose, Range, Wire
from magy_server.api.wire.verbs import Method

MOST = 50
"""Diagnostics that one prompt gives."""
Diagnostics = Annotated[list[Diagnostic], those(Diagnostic, MOST)]
_WHICH = "Default: the session that this connection used last in that project, else a new one"


class Prompting(Wire):
    session_id: Id | None = Field(default=None, description=_WHICH)
    message_id: Id | None = Field(
        default=None,
        description="The prompt's id, chosen by the client and unique in the project; repeating a "
        "request has no effect. Without `sessionId` Magy looks for it in the sessions that "
        "this connection used, and in the project's ten latest sessions of the last hour",
    )
    delivery: Literal["steer", "queue", "interrupt"] = Field(
        default="queue", description="What the prompt does to a running turn"
    )


class ActionRun(Prompting):
    action: str = Field(description="Its id: `explain`, or `AGENT.ID` for an agent's own action")
    uri: Uri
    range: Range
    diagnostics: Diagnostics = Field(default=[])
    text: Prose = Field(default="", description="Text that the person adds")


class PromptRun(Prompting):
    text: Prose = Field(
        min_length=1,
        description="`@spawn AGENT TASK` starts a child (`@spawn AGENT --worktree TASK`: on a git "
        "branch of its own); the answer names the child",
    )
    uri: Uri | None = Field(
        default=None, description="With `range`, these lines of the file are sent along"
    )
    range: Range | None = None


class Prompted(Wire):
    session_id: str
    message_id: str


class CancelRun(Wire):
    session_id: Id | None = Field(
        default=None, description="Default: the running session that was used last"
    )


class Cancelled(Wire):
    cancelled: bool
    session_id: str | None = None


class NewRun(Wire):
    uri: Uri | None = Field(
        default=None, description="In the project of this file; else in the first folder"
    )
    agent: str | None = None


class NewMade(Wire):
    session_id: str


class SpawnRun(Wire):
    text: Prose = Field(min_length=1, description="The task")
    session_id: Id | None = Field(default=None, description=f"Of the parent. {_WHICH}")
    request_key: SpawnKey | None = Field(
        default=None, description="Repeating a request gives the same child; null: a new one"
    )
    agent: str = Field(default="", description='"": the parent\'s')
    name: Annotated[Prose, Field(max_length=80)] = ""
    uri: Uri | None = Field(
        default=None, description="With `range`, these lines of the file are sent along"
    )
    range: Range | None = None
    worktree: bool = Field(default=False, description="It works on a git branch of its own")


class Spawned(Wire):
    session_id: str
    parent_session_id: str


class LastUsed(Wire):
    session_id: Id | None = Field(
        default=None, description="Default: the session that was used last"
    )


class CloseRun(Wire):
    session_id: Id
    mode: Literal["finish", "cancel"] = "finish"


class Shown(Wire):
    uri: str | None = Field(description="null: the client can show no document")
    path: str | None = Field(
        default=None, description="A file with the transcript, if Magy keeps one"
    )


COMMANDS = (
    Method(names.RUN, ActionRun, Prompted,
           "Run an action: a prompt with the action's text and the selected lines. Answers at "
           "once."),
    Method(names.PROMPT, PromptRun, Prompted, "Ask anything. Answers at once."),
    Method(names.REWRITE, RewriteCommand, Prompted,
           "Rewrite the lines by an instruction; the change is under review. Answers at once."),
    Method(names.CANCEL, CancelRun, Cancelled, "Stop a running turn."),
    Method(names.NEW, NewRun, NewMade,
           "Start a session; later commands without a `sessionId` go there."),
    Method(names.SHOW, LastUsed, Shown,
           "Show a session's transcript as Markdown, with links to those of its children."),
    Method(names.SPAWN, SpawnRun, Spawned,
           "Start a child of a session on a task. Answers at once; a notification tells how it "
           "ended."),
    Method(names.CHILDREN, LastUsed, ChildListResult,
           "List the children of a session, also in a message window."),
    Method(names.CLOSE, CloseRun, ChildClosed,
           "Close a child and all below it: they accept nothing more; `cancel` also stops them."),
)  # fmt: skip
