"""This table has all tools that `magy mcp serve` offers: name, description, arguments, function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from magy_server.dataclass import dataclass
from magy_server.mcp_server import change_offers as changes
from magy_server.mcp_server import child_offers as children
from magy_server.mcp_server import session_offers as sessions
from magy_server.mcp_server import tool_inputs
from magy_server.mcp_server.calling import Calling, Told
from magy_server.mcp_server.served_project import Served

Run = Callable[[Served, Any, Calling], Awaitable[Told]]
"""async (what is served, the arguments, the call) -> the answer. Raises MagyError."""


@dataclass(frozen=True, slots=True)
class Offer:
    """`looks`: it changes nothing."""

    name: str
    about: str
    given: type[tool_inputs.Input]
    run: Run
    looks: bool = False


OFFERS = (
    Offer(
        "session_start",
        "Start a session of a coding agent on a prompt, and wait for its answer. It goes on when "
        "the waiting is over, or is cancelled.",
        tool_inputs.StartSession,
        sessions.start,
    ),
    Offer(
        "session_prompt",
        "Say something to a session, and wait for its answer.",
        tool_inputs.PromptSession,
        sessions.prompt,
    ),
    Offer(
        "session_wait",
        "Wait until a session has nothing to do any more. Answers at once if it rests.",
        tool_inputs.WaitForSession,
        sessions.wait,
        looks=True,
    ),
    Offer("session_cancel", "Stop the turn of a session.", tool_inputs.Session, sessions.cancel),
    Offer(
        "session_list",
        "The sessions of the project, the latest first, as JSON.",
        tool_inputs.ListSessions,
        sessions.listed,
        looks=True,
    ),
    Offer(
        "session_read",
        "The transcript of a session, as Markdown.",
        tool_inputs.ReadSession,
        sessions.read,
        looks=True,
    ),
    Offer(
        "child_spawn",
        "Start a child agent of a session on a task. It works beside the session, with at most "
        "the session's permissions.",
        tool_inputs.SpawnChild,
        children.spawn,
    ),
    Offer("child_send", "Say something to a child agent.", tool_inputs.SendChild, children.send),
    Offer(
        "child_wait",
        "Wait until any or all of some children are idle, and read their results.",
        tool_inputs.WaitForChildren,
        children.wait,
        looks=True,
    ),
    Offer(
        "child_list",
        "The children of a session, with all below them, as JSON.",
        tool_inputs.Session,
        children.listed,
        looks=True,
    ),
    Offer(
        "child_close",
        "Close a child for good; its transcript stays.",
        tool_inputs.CloseChild,
        children.close,
    ),
    Offer(
        "review_list",
        "The files with changes that wait for a decision, as JSON.",
        tool_inputs.ListReview,
        changes.listed,
        looks=True,
    ),
    Offer(
        "review_get",
        "The hunks of a file that wait for a decision.",
        tool_inputs.GetReview,
        changes.hunks,
        looks=True,
    ),
    Offer(
        "review_resolve",
        "Accept or reject hunks of a file. A rejected one is taken out of the file; the agent that "
        "made it is told.",
        tool_inputs.ResolveReview,
        changes.resolve,
    ),
    Offer(
        "edit_apply",
        "Make an edit in any usual format, also where the file has moved on meanwhile: all of it "
        "or nothing. Says how each hunk was found, and gives the diff. The change is then under "
        "review.",
        tool_inputs.ApplyEdit,
        changes.edit,
    ),
)
