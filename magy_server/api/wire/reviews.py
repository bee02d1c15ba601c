"""What an agent changes is in the file at once and stays under review until a person has decided
about it, hunk by hunk, while the agent goes on. [Review](howto/review.md) tells it for people. A
client needs no diff of its own: `magy/review/get` gives the hunks of a file, worked out from its
present text, with their lines before and after and where to draw them.

- `magy/review/changed` tells in which files something is to be decided, with a `revision`. When it
  is another than the client has, the client gets the file again. It comes after edits and
  decisions, and when the person pauses typing.
- `magy/review/resolve` decides about hunks by `hunkIds`, by `lines`, or about `all`. A hunk's id
  depends on its content, not on its place. One that is not there any more is reported as `stale`,
  and nothing is guessed. `lines` need the current `revision`; with an older one they are refused
  (-32801).
- A decision that changes an open file is carried out by `workspace/applyEdit`; the answer comes
  when the client has shown the change. `file` in the answer has the hunks that are left.
- `decisionId` of the answer is for `magy/review/undo`, whenever that is.

The option `review` of a session decides what becomes of its edits: `review` applies them as above,
`propose` leaves the file alone until a hunk is accepted, and `auto` applies them without a review.
What is proposed is a review of its own for the file: pass `"proposed": true`. `mode` says which of
the two a `ReviewFile` is.

`baseUri` and `proposedUri` are read with the standard request `workspace/textDocumentContent`:
`{"uri": "magy://base/..."}` gives `{"text": "..."}`.

Lines and ranges are those of the Language Server Protocol: counted from 0, ends exclusive, columns
in the negotiated position encoding. A hunk is always whole lines, so most clients never look at a
column; only where the last line of a file has no line end does a range end behind its last
character instead of at the beginning of the line after it.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from magy_server.api.wire.shapes import (
    Count,
    Id,
    Prose,
    Range,
    RequestKey,
    SessionParams,
    Uri,
    Wire,
)

Mode = Literal["applied", "proposed"]
Reason = Annotated[Prose, Field(max_length=10_000, description="The model sees it")]


class Lines(Wire):
    """Lines [start, end), from 0."""

    start: Count
    end: Count


# --- review -------------------------------------------------------------------------------------


class HunkOrigin(Wire):
    """Which agent's call made a change. `command`: it happened while this command ran, which may or
    may not have done it."""

    session_id: str
    agent: str
    turn_id: str
    tool_call_id: str
    command: str = ""


class HunkComment(Wire):
    comment_id: str
    text: str


class Word(Wire):
    """A part of a line that differs, in columns of the negotiated encoding. `line` counts from the
    first line of that side of the hunk."""

    side: Literal["old", "new"]
    line: Count
    start: Count
    end: Count


class ReviewHunk(Wire):
    hunk_id: str = Field(
        description="Derived from its content: it stays the same when the hunk moves"
    )
    kind: str = Field(
        description="add | change | delete; or of the file as a whole, in words: create | remove | "
        "rename | mode | link | binary"
    )
    range: Range = Field(
        description="Its range in the present text; empty where lines were deleted"
    )
    base_range: Range = Field(description="Its range in the text at `baseUri`")
    anchor: Count = Field(description="Line to draw deleted lines at, and the hunk's buttons")
    above: bool = Field(description="Whether they are drawn above that line, or below it")
    old_text: str = ""
    new_text: str = ""
    words: list[Word] = Field(
        default=[], description="The differing parts within the lines, if they are small"
    )
    state: str = Field(
        default="pending",
        description="pending | conflict: of a proposal whose lines the person changed since",
    )
    amended: bool = Field(default=False, description="The person has changed it")
    origins: list[HunkOrigin] = Field(default=[])
    comments: list[HunkComment] = Field(default=[])


class FinalNewline(Wire):
    base: bool
    current: bool


class ReviewFile(Wire):
    uri: str
    base_uri: str = Field(description="The text before, through workspace/textDocumentContent")
    proposed_uri: str | None = Field(default=None, description="The text proposed, likewise")
    status: str = Field(description="created | modified | deleted | renamed")
    old_uri: str | None = None
    revision: str = Field(description="Changes with the review and with the text")
    doc_version: int | None = Field(
        default=None,
        description="The document version that ranges refer to; null: the file on disk",
    )
    mode: Mode
    eol: str = Field(description="The line end that most lines have")
    final_newline: FinalNewline
    added: int
    removed: int
    hunks: list[ReviewHunk]


class ReviewEntry(Wire):
    """A file under review, in a list."""

    uri: str
    path: str
    root: str
    status: str
    mode: Mode
    revision: str
    pending: int = Field(description="Hunks that wait for a decision; 0: it has left the review")
    added: int
    removed: int
    sessions: list[str] = Field(default=[])


class ReviewListParams(Wire):
    session_id: Id | None = Field(default=None, description="Only files with hunks of this session")
    cwd: str | None = Field(default=None, description="Only this project; null: all folders open")
    cursor: str | None = Field(default=None, description="`nextCursor` of the page before")
    limit: Annotated[int, Field(ge=1, le=1000)] = 200


class ReviewListResult(Wire):
    files: list[ReviewEntry]
    next_cursor: str | None = Field(default=None, description="null: this is the last page")


class ReviewGetParams(Wire):
    uri: Uri
    proposed: bool = Field(default=False, description="Count what is proposed, not what is applied")


class ReviewGetResult(Wire):
    file: ReviewFile | None = Field(default=None, description="null: the file is not under review")


class ReviewResolveParams(Wire):
    """Exactly one of `hunkIds`, `lines` and `all` says what is decided."""

    uri: Uri
    proposed: bool = False
    revision: str | None = Field(
        default=None,
        description="The revision that the client saw. With an older one, Magy decides the hunks "
        "that are still the same",
    )
    decision: Literal["accept", "reject", "amend"]
    hunk_ids: Annotated[list[str], Field(max_length=10_000)] | None = None
    lines: Lines | None = Field(
        default=None,
        description="Lines of the present text: the hunks in them, or only these lines of one "
        "hunk. Needs the current `revision`",
    )
    all: bool = False
    reason: Reason = ""
    text: Prose | None = Field(default=None, description="For amend: the new lines")
    request_key: RequestKey


class HunkState(Wire):
    hunk_id: str
    state: str = Field(
        description="accepted | rejected | amended | commented | pending | conflict | stale: the "
        "hunk no longer exists"
    )


class ReviewOutcome(Wire):
    decision_id: str | None = Field(default=None, description="For undo; null: nothing was decided")
    results: list[HunkState]
    applied: bool = Field(
        description="It was carried out in the text: a reject, an amendment or an undo; of what is "
        "proposed, an accept or an amendment"
    )
    message: str = Field(
        default="", description="A message for a person, if something was not done"
    )
    pending: Count = Field(description="Hunks that are left")
    file: ReviewFile | None = Field(
        default=None, description="The remaining hunks, up to 500; if there are more, use get"
    )


class ReviewUndoParams(Wire):
    decision_id: str
    uri: Uri | None = Field(default=None, description="The decision's file, if known")
    proposed: bool = False
    request_key: RequestKey


class ReviewCommentParams(Wire):
    uri: Uri
    proposed: bool = False
    hunk_id: str
    text: Annotated[Prose, Field(min_length=1, max_length=10_000)]
    request_key: RequestKey


class ReviewNavigateParams(Wire):
    uri: Uri | None = Field(default=None, description="null: start at the first file")
    line: Count = 0
    direction: Literal["next", "previous"] = "next"


class ReviewNavigateResult(Wire):
    """All null: nothing is pending."""

    uri: str | None = None
    range: Range | None = None
    hunk_id: str | None = None
    proposed: bool = False


class ReviewChanged(Wire):
    """Files whose review is not what it was: ask for those that are shown."""

    files: list[ReviewEntry]


# --- checkpoints --------------------------------------------------------------------------------


class CheckpointFile(Wire):
    path: str
    added: int
    removed: int
    state: str = Field(default="applied", description="applied | undone | partly")


class CheckpointInfo(Wire):
    """A turn as a point to go back to: its beginning."""

    turn_id: str
    prompt: str = Field(description="The first words of its prompt")
    at: str = Field(description="ISO 8601, UTC")
    files: list[CheckpointFile] = Field(default=[])
    state: str = Field(description="State of its files: applied | undone | partly")
    conversation: bool = Field(description="Whether the conversation can go back to here, too")
    why: str = Field(default="", description="Why the conversation cannot")
    restore_id: str = Field(default="", description="The restore that undid it; redo: `undoes`")
    inherited: bool = Field(
        default=False,
        description="Its files were changed by the session that this one was forked from, which "
        "alone can undo them",
    )


class CheckpointListParams(SessionParams):
    limit: Annotated[int, Field(ge=1, le=500)] = 50
    before: str | None = Field(default=None, description="A turn: list only those before it")


class CheckpointListResult(Wire):
    checkpoints: list[CheckpointInfo] = Field(description="Oldest first")
    redo: str | None = Field(
        default=None, description="The newest restore that can be taken back: pass it as `undoes`"
    )


class CheckpointParams(SessionParams):
    """`turnId` goes back to where that turn began, `undoes` takes such a restore back; without
    either the newest turn is undone that is not."""

    turn_id: Annotated[str, Field(min_length=1)] | None = None
    undoes: Annotated[str, Field(min_length=1)] | None = None
    files: bool = True
    conversation: bool = True


class RestoredFile(Wire):
    path: str
    uri: str
    action: str = Field(description="create | change | remove | rename | nothing")
    moved_from: str = Field(default="", description="Of a rename: the path that goes")
    diff: str = Field(default="", description="A unified diff; empty for what is not text")
    added: int = 0
    removed: int = 0
    conflict: str = Field(default="", description="Why it is left alone, as a sentence")


class GoneBack(Wire):
    turn_id: str
    undoes: str
    turns: list[str] = Field(description="The turns that are undone or redone, oldest first")
    files: list[RestoredFile]
    conversation: bool
    prompt: str = Field(default="", description="The prompt of the turn that is undone")


class CheckpointPreview(GoneBack):
    why: str = Field(default="", description="Why the conversation stays")


class CheckpointRestoreParams(CheckpointParams):
    request_key: RequestKey


class CheckpointRestored(GoneBack):
    restore_id: str = Field(description="For `undoes`")


# --- edits --------------------------------------------------------------------------------------


class EditParams(Wire):
    """An edit in any format of the edit engine, against the live texts. Exactly one of `text` and
    `edits` holds it. Paths in it are relative to `cwd`."""

    cwd: str | None = Field(default=None, description="Absolute; null: the first workspace folder")
    uri: Uri | None = Field(default=None, description="The file, where the edit names none")
    format: str | None = Field(
        default=None,
        description="str_replace | aider | cline | roo | unified | v4a | whole; null: found out",
    )
    text: Prose | None = Field(default=None, description="The edit as text")
    edits: Annotated[list[dict[str, Any]], Field(max_length=1000)] | None = Field(
        default=None, description="The edit as [objects](#edits-as-objects)"
    )
    seen: Prose | None = Field(
        default=None,
        description="The text that the edit was made for, if the file may have changed since. "
        "Only for an edit of one file",
    )


class EditNote(Wire):
    """How a hunk was found, where that was not exact."""

    hunk: int
    tier: str
    note: str


class EditFailure(Wire):
    """`code`: not_found | ambiguous | conflict | no_change | already_applied | placeholder | parse
    | unknown_file | exists, or failed for what the file system or the editor refuses."""

    path: str
    hunk: int
    code: str
    message: str
    lines: list[int] = Field(default=[], description="Those it speaks of, from 1")


class EditedFile(Wire):
    path: str
    uri: str
    op: str = Field(description="update | create | write | delete")
    from_uri: str | None = Field(default=None, description="Its path before it was renamed")
    added: int = 0
    removed: int = 0
    diff: str = ""
    notes: list[EditNote] = Field(default=[])


class EditResult(Wire):
    """All or nothing: with a failure, no file was changed, and `files` is what would fit. What
    could not be brought back after a failure is named in `message`."""

    applied: bool
    files: list[EditedFile]
    failures: list[EditFailure] = Field(default=[])
    message: str = Field(
        default="",
        description="A message for a person, if the edit was made differently than asked",
    )


class EditApplyParams(EditParams):
    label: Prose = Field(
        default="Magy: edit", max_length=200, description="Title of the step, for the editor's undo"
    )
    request_key: RequestKey
