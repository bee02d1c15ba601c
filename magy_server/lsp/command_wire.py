"""The commands of `workspace/executeCommand`: each takes one object. `docs/protocol.md` is
generated from this."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from magy_server.lsp import names
from magy_server.lsp.child_wire import ChildClosed, ChildListResult, SpawnKey
from magy_server.lsp.editor_wire import Diagnostic, Uri, those
from magy_server.lsp.methods import Method
from magy_server.lsp.review_wire import Range
from magy_server.lsp.rewrite_wire import RewriteCommand
from magy_server.lsp.shapes import Id, Prose, Wire

MOST = 50
"""Diagnostics that one prompt gives."""
Diagnostics = Annotated[list[Diagnostic], those(Diagnostic, MOST)]
_WHICH = "Left out: the session that this connection used last in that project, else a new one"


class Prompting(Wire):
    session_id: Id | None = Field(default=None, description=_WHICH)
    message_id: Id | None = Field(
        default=None,
        description="The prompt's id, made by the client, as no other in the project; the same "
        "again is harmless. Without `sessionId` it is looked for in the sessions that this "
        "connection used, and in the ten of the project that something was done in last, if within "
        "the hour",
    )
    delivery: Literal["steer", "queue", "interrupt"] = Field(
        default="queue", description="What it does to a turn that runs there"
    )


class ActionRun(Prompting):
    action: str = Field(description="Its id: `explain`, or `AGENT.ID` for one of an agent's own")
    uri: Uri
    range: Range
    diagnostics: Diagnostics = Field(default=[])
    text: Prose = Field(default="", description="What the person adds")


class PromptRun(Prompting):
    text: Prose = Field(
        min_length=1, description="`@spawn AGENT TASK` starts a child, and names that"
    )
    uri: Uri | None = Field(default=None, description="With it, lines of this file are given")
    range: Range | None = None


class Prompted(Wire):
    session_id: str
    message_id: str


class CancelRun(Wire):
    session_id: Id | None = Field(
        default=None, description="Left out: the one used last of those that run"
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
        default=None, description="The same again is the same child; null: a new one"
    )
    agent: str = Field(default="", description='"": the parent\'s')
    name: Annotated[Prose, Field(max_length=80)] = ""
    uri: Uri | None = Field(default=None, description="With it, lines of this file are given")
    range: Range | None = None


class Spawned(Wire):
    session_id: str
    parent_session_id: str


class ChildrenRun(Wire):
    session_id: Id | None = Field(default=None, description="Left out: the one used last")


class CloseRun(Wire):
    session_id: Id
    mode: Literal["finish", "cancel"] = "finish"


class ShowRun(Wire):
    session_id: Id | None = Field(default=None, description="Left out: the one used last")


class Shown(Wire):
    uri: str | None = Field(description="null: the client can show no document")
    path: str | None = Field(default=None, description="A file with the transcript, if one is kept")


COMMANDS = (
    Method(names.RUN, ActionRun, Prompted,
           "Have an action done: a prompt with the action's text and the lines meant. Answers at "
           "once."),
    Method(names.PROMPT, PromptRun, Prompted, "Ask anything. Answers at once."),
    Method(names.REWRITE, RewriteCommand, Prompted,
           "Have the lines replaced as the instruction says, under review. Answers at once."),
    Method(names.CANCEL, CancelRun, Cancelled, "Stop a running turn."),
    Method(names.NEW, NewRun, NewMade,
           "Make a session; what follows without a `sessionId` goes there."),
    Method(names.SHOW, ShowRun, Shown,
           "Show a session's transcript, as Markdown, with the way to those of its children."),
    Method(names.SPAWN, SpawnRun, Spawned,
           "Start a child of a session on a task. Answers at once; how it ends is told."),
    Method(names.CHILDREN, ChildrenRun, ChildListResult,
           "The children of a session; they are also said in a window."),
    Method(names.CLOSE, CloseRun, ChildClosed,
           "A child takes nothing more, nor those below it; `cancel` stops them as well."),
)  # fmt: skip
