"""The methods of the `magy/*` wire, in one table; `wire.py` has their shapes."""

from __future__ import annotations

from dataclasses import dataclass

from magy_server.api.wire import children as child
from magy_server.api.wire import editor
from magy_server.api.wire import reviews as review
from magy_server.api.wire import rewriting as rewrite
from magy_server.api.wire.sessions import (
    AgentsParams,
    AgentsResult,
    CancelParams,
    CancelResult,
    CompactParams,
    ConfigParams,
    ConfigResult,
    DeleteResult,
    DropParams,
    EventsParams,
    EventsResult,
    ForkParams,
    GrantsParams,
    GrantsResult,
    InteractionChanged,
    InteractionsParams,
    InteractionsResult,
    ListChanged,
    ListParams,
    ListResult,
    NewParams,
    NewResult,
    PromptParams,
    PromptResult,
    QueueResult,
    ReorderParams,
    RespondParams,
    RespondResult,
    SaveParams,
    SaveResult,
    SessionUpdate,
    SubscribeParams,
    SubscribeResult,
    SummaryResult,
    TrustParams,
    TrustResult,
    WithdrawParams,
    WithdrawResult,
)
from magy_server.api.wire.shapes import Empty, SessionParams, Wire


@dataclass(frozen=True, slots=True)
class Method:
    """One line of the wire. `result` None: a notification."""

    name: str
    params: type[Wire]
    result: type[Wire] | None
    about: str


CLIENT_TO_SERVER = (
    Method("magy/session/new", NewParams, NewResult, "Start a session."),
    Method("magy/session/list", ListParams, ListResult,
           "Sessions, the given project's first, newest first."),
    Method("magy/session/resume", SubscribeParams, SubscribeResult,
           "Subscribe, and continue a turn that a crash or a closed editor interrupted."),
    Method("magy/session/subscribe", SubscribeParams, SubscribeResult,
           "Attach: a bounded page of the log, then live updates."),
    Method("magy/session/unsubscribe", SessionParams, Empty, "Unsubscribe: no more updates."),
    Method("magy/session/events", EventsParams, EventsResult, "Another page of the log."),
    Method("magy/session/prompt", PromptParams, PromptResult,
           "Accept a prompt and answer at once; updates report what follows."),
    Method("magy/session/cancel", CancelParams, CancelResult, "Stop the running turn."),
    Method("magy/session/close", SessionParams, Empty,
           "Cancel what runs, end background commands, and unsubscribe; the log stays."),
    Method("magy/session/delete", SessionParams, DeleteResult, "Delete a session permanently."),
    Method("magy/session/fork", ForkParams, NewResult,
           "A new session that shares this one's history up to an entry."),
    Method("magy/session/set_config_option", ConfigParams, ConfigResult,
           "Agent, model, title, `review` (review | propose | auto: what happens to edits), or "
           "`bypass` (on | off: answer questions with yes)."),
    Method("magy/queue/reorder", ReorderParams, QueueResult, "Reorder waiting prompts."),
    Method("magy/queue/drop", DropParams, QueueResult, "Drop waiting prompts."),
    Method("magy/session/compact", CompactParams, Empty,
           "Replace the older part of what the model sees by a summary; the transcript stays."),
    Method("magy/session/summarize", SessionParams, SummaryResult,
           "A summary of the session as for a pull request. Takes as long as the model does."),
    Method("magy/agent/list", AgentsParams, AgentsResult, "List the agents that a person "
        "may choose."),
    Method("magy/agent/health", Empty, child.AgentHealthResult,
           "Report the state of the agents in this process; asks no model."),
    Method("magy/child/spawn", child.ChildSpawnParams, child.ChildSpawned,
           "Start a child of a session on a task, with at most its permissions. Answers at once."),
    Method("magy/child/send", child.ChildSendParams, child.ChildSent,
           "Send a message to an agent: a prompt, data for programs, or a signal."),
    Method("magy/child/wait", child.ChildWaitParams, child.ChildWaited,
           "Wait until any or all of some children are idle. A time-out cancels nothing, and "
           "nothing is missed between two waits. The request can be cancelled."),
    Method("magy/child/list", child.ChildListParams, child.ChildListResult,
           "List the children of a session, or all; parents come before their own children."),
    Method("magy/child/close", child.ChildCloseParams, child.ChildClosed,
           "Close a child: it accepts nothing more, and its log stays. Closing it again has no "
           "effect."),
    Method("magy/child/limits", child.ChildLimitsParams, child.ChildLimits,
           "Get the limits on the depth and number of children, and their present number; also "
           "changes the limits, even while children run."),
    Method("magy/interaction/list", InteractionsParams, InteractionsResult, "Open questions."),
    Method("magy/interaction/respond", RespondParams, RespondResult,
           "Answer a question; the first answer wins."),
    Method("magy/permission/list", GrantsParams, GrantsResult,
           "List the remembered permissions of a session and its project."),
    Method("magy/permission/withdraw", WithdrawParams, WithdrawResult, "Forget one of them."),
    Method("magy/review/list", review.ReviewListParams, review.ReviewListResult,
           "List the files in which something waits for a decision."),
    Method("magy/review/get", review.ReviewGetParams, review.ReviewGetResult,
           "Get the hunks of a file, derived from its present text."),
    Method("magy/review/resolve", review.ReviewResolveParams, review.ReviewOutcome,
           "Accept, reject or amend hunks. Hunks that no longer exist are reported as stale."),
    Method("magy/review/undo", review.ReviewUndoParams, review.ReviewOutcome,
           "Take back any decision, not only the last."),
    Method("magy/review/comment", review.ReviewCommentParams, review.ReviewOutcome,
           "Comment on a hunk; it stays pending, and the model sees the comment."),
    Method("magy/review/navigate", review.ReviewNavigateParams, review.ReviewNavigateResult,
           "Find the next or previous pending hunk; after the last file the first one follows."),
    Method("magy/checkpoint/list", review.CheckpointListParams, review.CheckpointListResult,
           "List the turns of a session that one can go back to."),
    Method("magy/checkpoint/preview", review.CheckpointParams, review.CheckpointPreview,
           "Preview what going back (or forward again) would do now."),
    Method("magy/checkpoint/restore", review.CheckpointRestoreParams, review.CheckpointRestored,
           "Go back to where a turn started, or undo that. Changes by others stay."),
    Method("magy/edit/preview", review.EditParams, review.EditResult,
           "Preview what an edit, in any format, would do to the live texts. Changes nothing."),
    Method("magy/edit/apply", review.EditApplyParams, review.EditResult,
           "Make an edit; its changes are then under review like an agent's."),
    Method("magy/context/get", editor.ContextParams, editor.ContextResult,
           "Get what is around the cursor, as blocks for a prompt: the client shows them to the "
           "person, then sends them."),
    Method("magy/prompt/complete", editor.CompleteParams, editor.CompleteResult,
           "Complete a prompt: after `@` files and symbols, at the beginning also skills, agents "
           "and commands; after `/` at the beginning actions."),
    Method("magy/doctor/run", editor.DoctorParams, editor.DoctorResult,
           "Report what is wrong with this installation, and how to fix it. Takes half a minute "
           "at most."),
    Method("magy/rewrite/start", rewrite.RewriteStartParams, rewrite.RewriteStartResult,
           "Rewrite a place of a file by an instruction: answers at once; magy/rewrite/draft tells "
           "the rest. The change is then under review like an agent's."),
    Method("magy/workspace/trust", TrustParams, TrustResult,
           "Get or set whether a project is trusted, that is, whether its own configuration may "
           "do more than restrict."),
)  # fmt: skip

SERVER_TO_CLIENT = (
    Method("magy/session/update", SessionUpdate, None, "An event or a delta of a subscription."),
    Method("magy/interaction/changed", InteractionChanged, None,
           "Questions were opened or resolved, in any session of this workspace."),
    Method("magy/child/changed", child.ChildChanged, None,
           "The state of a child that started, became idle, asks, has a result or was closed. "
           "Sent for the trees in which this connection is subscribed to any session; a "
           "burst of changes is sent once."),
    Method("magy/review/changed", review.ReviewChanged, None,
           "Decisions, edits, or typing (once it pauses) changed what is pending in these files. "
           "Sent to clients that announced `review` or `interactions`."),
    Method("magy/rewrite/draft", rewrite.RewriteDraft, None,
           "The progress of a rewrite that this client started; a rewrite resumed after a crash "
           "is reported to clients that announced `review` or `interactions`."),
    Method("magy/session/listChanged", ListChanged, None, "A session's row changed."),
    Method("magy/editor/save", SaveParams, SaveResult,
           "Save a buffer. Only sent if the client announced `editor.save`."),
    Method("magy/editor/diagnostics", editor.DiagnosticsParams, editor.DiagnosticsAnswer,
           "Ask for diagnostics. Only sent if announced, like all requests below; the client "
           "answers at once, from what the editor already knows."),
    Method("magy/editor/definition", editor.PlaceParams, editor.LocationsAnswer,
           "Ask where the name at this place is defined."),
    Method("magy/editor/references", editor.PlaceParams, editor.LocationsAnswer,
           "Ask where the name at this place is used."),
    Method("magy/editor/symbols", editor.SymbolsParams, editor.SymbolsAnswer,
           "Ask for the definitions in a file, or in the workspace by name."),
    Method("magy/editor/eval", editor.EvalParams, editor.EvalAnswer,
           'Evaluate code that a person has allowed. Announced as `eval: "elisp"`.'),
)  # fmt: skip
