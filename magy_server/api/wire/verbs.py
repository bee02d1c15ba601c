"""A door takes requests to these verbs; each is one of the methods that `methods.py` lists.

Quick to import: the shapes of a topic are loaded with the first request about it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

from magy_server.api.wire.shapes import Empty, SessionParams, Wire, parsed
from magy_server.dataclass import dataclass

if TYPE_CHECKING:
    from magy_server.api.wire import children as child
    from magy_server.api.wire import completions as completion
    from magy_server.api.wire import editor, graphs, magi, models, permissions, servers
    from magy_server.api.wire import reviews as review
    from magy_server.api.wire import rewriting as rewrite
    from magy_server.api.wire import sessions as session
    from magy_server.api.wire import workspaces as workspace

P = TypeVar("P")
R = TypeVar("R")
Verb = Callable[[P], Awaitable[R]]
"""async (the params, parsed) -> the result; None: an empty one. Raises MagyError, which the client
is told."""
Handler = Callable[[dict[str, Any]], Awaitable[Any]]
"""async (the params, as sent) -> the result as JSON. Raises InvalidRequest for wrong params."""
Made = Callable[[str], Awaitable[None]]
"""async (id): waits while the session with this id is being made: requests about it may follow
`session/new` without waiting for the answer."""


@dataclass(frozen=True, slots=True)
class Method:
    """One line of the wire. `result` None: a notification."""

    name: str
    params: type[Wire]
    result: type[Wire] | None
    about: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verbs:
    """What a client may ask, and which function does it: `session_new` is `magy/session/new`. The
    type checker reports a verb that is missing, or has another shape."""

    session_new: Annotated[Verb[session.NewParams, session.NewResult], "Start a session."]
    session_list: Annotated[
        Verb[session.ListParams, session.ListResult],
        "Sessions, the given project's first, newest first.",
    ]
    session_resume: Annotated[
        Verb[session.SubscribeParams, session.SubscribeResult],
        "Subscribe, and continue a turn that a crash or a closed editor interrupted.",
    ]
    session_subscribe: Annotated[
        Verb[session.SubscribeParams, session.SubscribeResult],
        "Attach: a bounded page of the log, then live updates.",
    ]
    session_unsubscribe: Annotated[Verb[SessionParams, None], "Unsubscribe: no more updates."]
    session_events: Annotated[
        Verb[session.EventsParams, session.EventsResult], "Another page of the log."
    ]
    session_prompt: Annotated[
        Verb[session.PromptParams, session.PromptResult],
        "Accept a prompt and answer at once; updates report what follows.",
    ]
    session_cancel: Annotated[
        Verb[session.CancelParams, session.CancelResult], "Stop the running turn."
    ]
    session_close: Annotated[
        Verb[SessionParams, None],
        "Cancel what runs, also in its children, end background commands, and unsubscribe; the log "
        "stays, and a prompt goes on with it.",
    ]
    session_delete: Annotated[
        Verb[SessionParams, session.DeleteResult],
        "Delete a session and its children permanently. What this process runs there is cancelled; "
        "where another process runs it, the answer is `busy`.",
    ]
    session_fork: Annotated[
        Verb[session.ForkParams, session.NewResult],
        "A new session that shares this one's history up to an entry.",
    ]
    session_options: Annotated[
        Verb[session.OptionsParams, session.ConfigResult],
        "Get the options that a new session would begin with, and what may be chosen.",
    ]
    session_set_config_option: Annotated[
        Verb[session.ConfigParams, session.ConfigResult],
        "Agent, model, title, `review` (review | propose | auto: what happens to edits), or"
        " `bypass` (on | off: answer questions with yes).",
    ]
    queue_reorder: Annotated[
        Verb[session.ReorderParams, session.QueueResult], "Reorder waiting prompts."
    ]
    queue_drop: Annotated[Verb[session.DropParams, session.QueueResult], "Drop waiting prompts."]
    session_compact: Annotated[
        Verb[session.CompactParams, None],
        "Replace the older part of what the model sees by a summary; the transcript stays.",
    ]
    session_summarize: Annotated[
        Verb[SessionParams, session.SummaryResult],
        "A summary of the session as for a pull request. Takes as long as the model does.",
    ]
    agent_list: Annotated[
        Verb[workspace.AgentsParams, workspace.AgentsResult],
        "List the agents of a project, except the hidden ones.",
    ]
    agent_health: Annotated[
        Verb[Empty, child.AgentHealthResult],
        "Report the state of the agents in this process; asks no model.",
    ]
    child_spawn: Annotated[
        Verb[child.ChildSpawnParams, child.ChildSpawned],
        "Start a child of a session on a task, with at most its permissions. Answers at once.",
    ]
    child_send: Annotated[
        Verb[child.ChildSendParams, child.ChildSent],
        "Send a message to an agent: a prompt, data for programs, or a signal.",
    ]
    child_wait: Annotated[
        Verb[child.ChildWaitParams, child.ChildWaited],
        "Wait until any or all of some children are idle. A time-out cancels nothing, and "
        "nothing is missed between two waits. The request can be cancelled.",
    ]
    child_list: Annotated[
        Verb[child.ChildListParams, child.ChildListResult],
        "List the children of a session, or all; parents come before their own children.",
    ]
    child_close: Annotated[
        Verb[child.ChildCloseParams, child.ChildClosed],
        "Close a child: it accepts nothing more, and its log stays. Closing it again has no"
        " effect.",
    ]
    child_limits: Annotated[
        Verb[child.ChildLimitsParams, child.ChildLimits],
        "Get the limits on the depth and number of children, and their present number; also"
        " changes the limits, even while children run.",
    ]
    graph_run: Annotated[
        Verb[graphs.GraphRunParams, graphs.GraphRunResult],
        "Have a graph of tasks done by children of a session, or go on with one. Answers at once; "
        "updates report what follows.",
    ]
    graph_show: Annotated[
        Verb[graphs.GraphShowParams, graphs.GraphShowResult],
        "Show how the graphs of a session are: each task, who does it, and what it took.",
    ]
    interaction_list: Annotated[
        Verb[session.InteractionsParams, session.InteractionsResult],
        "List the open questions: of a session, of a workspace root, or all.",
    ]
    interaction_respond: Annotated[
        Verb[session.RespondParams, session.RespondResult],
        "Answer a question; the first answer wins.",
    ]
    permission_list: Annotated[
        Verb[permissions.GrantsParams, permissions.GrantsResult],
        "List the remembered permissions of a session and its project, or of a project.",
    ]
    permission_withdraw: Annotated[
        Verb[permissions.WithdrawParams, permissions.WithdrawResult], "Forget one of them."
    ]
    review_list: Annotated[
        Verb[review.ReviewListParams, review.ReviewListResult],
        "List the files in which something waits for a decision.",
    ]
    review_get: Annotated[
        Verb[review.ReviewGetParams, review.ReviewGetResult],
        "Get the hunks of a file, derived from its present text.",
    ]
    review_resolve: Annotated[
        Verb[review.ReviewResolveParams, review.ReviewOutcome],
        "Accept, reject or amend hunks. Hunks that no longer exist are reported as stale.",
    ]
    review_undo: Annotated[
        Verb[review.ReviewUndoParams, review.ReviewOutcome],
        "Take back any decision, not only the last.",
    ]
    review_comment: Annotated[
        Verb[review.ReviewCommentParams, review.ReviewOutcome],
        "Comment on a hunk; it stays pending, and the model sees the comment.",
    ]
    review_navigate: Annotated[
        Verb[review.ReviewNavigateParams, review.ReviewNavigateResult],
        "Find the next or previous pending hunk; after the last file the first one follows.",
    ]
    checkpoint_list: Annotated[
        Verb[review.CheckpointListParams, review.CheckpointListResult],
        "List the turns of a session that one can go back to.",
    ]
    checkpoint_preview: Annotated[
        Verb[review.CheckpointParams, review.CheckpointPreview],
        "Preview what going back (or forward again) would do now.",
    ]
    checkpoint_restore: Annotated[
        Verb[review.CheckpointRestoreParams, review.CheckpointRestored],
        "Go back to where a turn started, or undo that. Changes by others stay.",
    ]
    edit_preview: Annotated[
        Verb[review.EditParams, review.EditResult],
        "Preview what an edit, in any format, would do to the live texts. Changes nothing.",
    ]
    edit_apply: Annotated[
        Verb[review.EditApplyParams, review.EditResult],
        "Make an edit; its changes are then under review like an agent's.",
    ]
    context_get: Annotated[
        Verb[editor.ContextParams, editor.ContextResult],
        "Get what is around the cursor, as blocks for a prompt: the client shows them to "
        "the person, then sends them.",
    ]
    prompt_complete: Annotated[
        Verb[editor.CompleteParams, editor.CompleteResult],
        "Complete a prompt: after `@` files and symbols, at the beginning also skills, "
        "agents and commands; after `/` at the beginning actions.",
    ]
    completion_status: Annotated[
        Verb[completion.CompletionStatusParams, completion.CompletionStatus],
        "Report whether inline completion is on, and what it took today.",
    ]
    doctor_run: Annotated[
        Verb[editor.DoctorParams, editor.DoctorResult],
        "Report what is wrong with this installation, and how to fix it. Takes a minute "
        "and a half at most.",
    ]
    rewrite_start: Annotated[
        Verb[rewrite.RewriteStartParams, rewrite.RewriteStartResult],
        "Rewrite a place of a file by an instruction: answers at once; magy/rewrite/draft "
        "tells the rest. The change is then under review like an agent's.",
    ]
    model_list: Annotated[
        Verb[models.ModelsParams, models.ModelsResult],
        "List the models of the providers that can be used, which are asked for them: that may "
        "take some seconds. One that does not answer is named, with the reason.",
    ]
    magi_list: Annotated[
        Verb[magi.MagiListParams, magi.MagiListResult],
        "List the rulings of a session or of all of a project, worked out again from the votes in "
        "the log. A prompt that begins with `@magi` asks for one.",
    ]
    magi_accept: Annotated[
        Verb[magi.MagiAcceptParams, magi.MagiAccepted],
        "Accept a ruling that overturns an earlier one; until then the earlier one holds.",
    ]
    magi_log: Annotated[
        Verb[magi.MagiLogParams, magi.MagiLogResult],
        "Read CASPER's emotional log of a project, take entries out, or say that it was read.",
    ]
    mcp_list: Annotated[
        Verb[servers.McpServersParams, servers.McpServersResult],
        "How the MCP servers of a project are doing, and what tools they give. Starts none, unless "
        "`connect` names it.",
    ]
    workspace_trust: Annotated[
        Verb[workspace.TrustParams, workspace.TrustResult],
        "Get or set whether a project is trusted, that is, whether its own configuration "
        "may do more than restrict.",
    ]


class _Later:
    def __init__(self, find: Callable[[], Verb[Any, Any]]) -> None:
        self.find = find

    def __call__(self, params: Any) -> Awaitable[Any]:
        return self.find()(params)


def later(find: Callable[[], Verb[P, R]]) -> Verb[P, R]:
    """Returns a verb that is looked for, and its topic imported, when it is first wanted."""
    return _Later(find)


def named(verb: str) -> str:
    """The method of a verb."""
    return f"magy/{verb.replace('_', '/', 1)}"


def handlers(verbs: Verbs, made: Made) -> Mapping[str, Handler]:
    """Returns the handlers by method."""
    names = (one.name for one in fields(verbs))
    return {named(one): handler(named(one), getattr(verbs, one), made) for one in names}


def handler(method: str, verb: Verb[Any, Wire | None], made: Made | None = None) -> Handler:
    """Makes a handler that takes a request to its verb, and the result back. Leave `made` out for a
    method that needs no session."""

    async def handle(params: dict[str, Any]) -> Any:
        found = verb.find() if isinstance(verb, _Later) else verb
        asked = parsed(_params(getattr(found, "__func__", found)), params, method)
        if made:
            await made(getattr(asked, "session_id", None) or "")
        result = await found(asked)
        return (result or Empty()).model_dump(mode="json", by_alias=True)

    return handle


@cache
def _params(answer: Callable[..., Any]) -> type[Wire]:
    """The shape that its first parameter is declared to have. Raises TypeError without one."""
    declared = (kind for name, kind in get_type_hints(answer).items() if name != "return")
    shape = next(declared, None)
    if isinstance(shape, type) and issubclass(shape, Wire):
        return shape
    raise TypeError(f"Declare the first parameter of {answer} as the shape of its params.")
