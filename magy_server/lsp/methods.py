"""The methods of the `magy/*` wire, in one table; `wire.py` has their shapes."""

from __future__ import annotations

from dataclasses import dataclass

from magy_server.lsp import child_wire as child
from magy_server.lsp import editor_wire as editor
from magy_server.lsp import review_wire as review
from magy_server.lsp import rewrite_wire as rewrite
from magy_server.lsp.shapes import Empty, SessionParams, Wire
from magy_server.lsp.wire import (
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


@dataclass(frozen=True, slots=True)
class Method:
    """One line of the wire. `result` None: a notification."""

    name: str
    params: type[Wire]
    result: type[Wire] | None
    about: str


CLIENT_TO_SERVER = (
    Method("magy/session/new", NewParams, NewResult, "Make a session."),
    Method("magy/session/list", ListParams, ListResult,
           "Sessions, the given project's first, newest first."),
    Method("magy/session/resume", SubscribeParams, SubscribeResult,
           "Subscribe, and go on with a turn that a crash or a closed editor left open."),
    Method("magy/session/subscribe", SubscribeParams, SubscribeResult,
           "Attach: a bounded page of the log, then live updates."),
    Method("magy/session/unsubscribe", SessionParams, Empty, "No more updates."),
    Method("magy/session/events", EventsParams, EventsResult, "Another page of the log."),
    Method("magy/session/prompt", PromptParams, PromptResult,
           "Accepts a prompt and answers at once; what comes of it follows as updates."),
    Method("magy/session/cancel", CancelParams, CancelResult, "Stop the running turn."),
    Method("magy/session/close", SessionParams, Empty,
           "Cancel what runs, end background commands, and unsubscribe; the log stays."),
    Method("magy/session/delete", SessionParams, DeleteResult, "Remove a session for good."),
    Method("magy/session/fork", ForkParams, NewResult,
           "A new session that shares this one's history up to an entry."),
    Method("magy/session/set_config_option", ConfigParams, ConfigResult,
           "Agent, model, title, `review` (review | propose | auto: what becomes of edits), or "
           "`bypass` (on | off: answer questions with yes)."),
    Method("magy/queue/reorder", ReorderParams, QueueResult, "Reorder waiting prompts."),
    Method("magy/queue/drop", DropParams, QueueResult, "Drop waiting prompts."),
    Method("magy/session/compact", CompactParams, Empty,
           "Replace the older part of what the model sees by a summary; the transcript stays."),
    Method("magy/session/summarize", SessionParams, SummaryResult,
           "A summary of the session as for a pull request. Takes as long as the model does."),
    Method("magy/agent/list", AgentsParams, AgentsResult, "The agents a person may choose."),
    Method("magy/agent/health", Empty, child.AgentHealthResult,
           "How the agents of this process are; asks no model."),
    Method("magy/child/spawn", child.ChildSpawnParams, child.ChildSpawned,
           "Start a child of a session on a task, with at most its permissions. Answers at once."),
    Method("magy/child/send", child.ChildSendParams, child.ChildSent,
           "A message to an agent: a prompt, data for machines, or a signal."),
    Method("magy/child/wait", child.ChildWaitParams, child.ChildWaited,
           "Wait until any or all of some children rest. A time-out cancels nothing, and nothing "
           "is missed between two waits. May be cancelled."),
    Method("magy/child/list", child.ChildListParams, child.ChildListResult,
           "The children of a session, or all, parents before their own children."),
    Method("magy/child/close", child.ChildCloseParams, child.ChildClosed,
           "A child takes nothing more; its log stays. Closing it again changes nothing."),
    Method("magy/child/limits", child.ChildLimitsParams, child.ChildLimits,
           "How deep and how many children may be, and how many there are; may be changed while "
           "they run."),
    Method("magy/interaction/list", InteractionsParams, InteractionsResult, "Open questions."),
    Method("magy/interaction/respond", RespondParams, RespondResult,
           "Answer a question; the first answer wins."),
    Method("magy/permission/list", GrantsParams, GrantsResult,
           "Remembered permissions of a session and its project."),
    Method("magy/permission/withdraw", WithdrawParams, WithdrawResult, "Forget one of them."),
    Method("magy/review/list", review.ReviewListParams, review.ReviewListResult,
           "Files in which something waits for a decision."),
    Method("magy/review/get", review.ReviewGetParams, review.ReviewGetResult,
           "The hunks of a file, derived from its text as it is now."),
    Method("magy/review/resolve", review.ReviewResolveParams, review.ReviewOutcome,
           "Accept, reject or amend hunks. What is not there any more is said to be stale."),
    Method("magy/review/undo", review.ReviewUndoParams, review.ReviewOutcome,
           "Take any decision back, not only the last."),
    Method("magy/review/comment", review.ReviewCommentParams, review.ReviewOutcome,
           "Say something about a hunk; it stays pending, and the model is told."),
    Method("magy/review/navigate", review.ReviewNavigateParams, review.ReviewNavigateResult,
           "The next or previous pending hunk, from file to file, round and round."),
    Method("magy/checkpoint/list", review.CheckpointListParams, review.CheckpointListResult,
           "The turns of a session as points to go back to."),
    Method("magy/checkpoint/preview", review.CheckpointParams, review.CheckpointPreview,
           "What going back (or forth again) would do now."),
    Method("magy/checkpoint/restore", review.CheckpointRestoreParams, review.CheckpointRestored,
           "Go back to where a turn began, or take that back. What others changed stays."),
    Method("magy/edit/preview", review.EditParams, review.EditResult,
           "What an edit, in any format, would do to the live texts. Changes nothing."),
    Method("magy/edit/apply", review.EditApplyParams, review.EditResult,
           "Do it; the changes are then under review like an agent's."),
    Method("magy/context/get", editor.ContextParams, editor.ContextResult,
           "What is around the cursor, as blocks for a prompt: shown to the person, then sent."),
    Method("magy/prompt/complete", editor.CompleteParams, editor.CompleteResult,
           "What may follow an `@`: files, symbols, and at the beginning skills, agents and "
           "commands; and what may follow a `/` at the beginning: actions."),
    Method("magy/doctor/run", editor.DoctorParams, editor.DoctorResult,
           "What is wrong here, and how to mend it. Takes half a minute at most."),
    Method("magy/rewrite/start", rewrite.RewriteStartParams, rewrite.RewriteStartResult,
           "Rewrite a place of a file by an instruction: answers at once; magy/rewrite/draft tells "
           "the rest. The change is then under review like an agent's."),
    Method("magy/workspace/trust", TrustParams, TrustResult,
           "Whether a project's own configuration may do more than narrow; sets it if asked."),
)  # fmt: skip

SERVER_TO_CLIENT = (
    Method("magy/session/update", SessionUpdate, None, "An event or a delta of a subscription."),
    Method("magy/interaction/changed", InteractionChanged, None,
           "Questions were opened or resolved, in any session of this workspace."),
    Method("magy/child/changed", child.ChildChanged, None,
           "A child began, rests, asks, has a result or was closed: how it is now. Sent for the "
           "trees of which this connection is subscribed to any session; what comes in a burst is "
           "said once."),
    Method("magy/review/changed", review.ReviewChanged, None,
           "Decisions, edits, or typing that has paused changed what is pending in these files. "
           "Sent to who announced `review` or `interactions`."),
    Method("magy/rewrite/draft", rewrite.RewriteDraft, None,
           "How far a rewrite is that this client started, or that was taken up again after a "
           "crash and this client announced `review` or `interactions`."),
    Method("magy/session/listChanged", ListChanged, None, "A session's row changed."),
    Method("magy/editor/save", SaveParams, SaveResult,
           "Save a buffer. Only sent if the client announced `editor.save`."),
    Method("magy/editor/diagnostics", editor.DiagnosticsParams, editor.DiagnosticsAnswer,
           "What checkers found. Only sent if announced, as all that follow; to be answered at "
           "once, from what the editor knows already."),
    Method("magy/editor/definition", editor.PlaceParams, editor.LocationsAnswer,
           "Where the name at this place is defined."),
    Method("magy/editor/references", editor.PlaceParams, editor.LocationsAnswer,
           "Where the name at this place is used."),
    Method("magy/editor/symbols", editor.SymbolsParams, editor.SymbolsAnswer,
           "The definitions in a file, or those of the workspace by name."),
    Method("magy/editor/eval", editor.EvalParams, editor.EvalAnswer,
           'Evaluate code, which a person has allowed. Announced as `eval: "elisp"`.'),
)  # fmt: skip
