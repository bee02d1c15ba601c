"""These are the shapes of `magy/rewrite/*`. Ranges are those of the Language Server Protocol."""

from typing import Annotated, Literal

from pydantic import Field

from magy_server.api.wire.shapes import Prose, Range, RequestKey, Uri, Wire

Instruction = Annotated[Prose, Field(min_length=1, max_length=20_000)]


class RewriteStartParams(Wire):
    request_key: RequestKey
    uri: Uri
    range: Range = Field(
        description="The range to rewrite, in the text at the time of the request; an empty range "
        "is a place to write at"
    )
    instruction: Instruction = Field(description="It may mention files, as a prompt does")
    cwd: str | None = Field(
        default=None,
        description="The directory whose project's settings apply; null: the file's directory",
    )
    model: str | None = Field(default=None, description="`provider/model`; null: as configured")


class RewriteStartResult(Wire):
    session_id: str = Field(
        description="The session made for it; cancel it with magy/session/cancel"
    )
    message_id: str = Field(description="Also the turn's id")


class RewriteCommand(Wire):
    """The argument of the command `magy.rewrite`. `range` is that of the text as it is when the
    command comes."""

    uri: Uri
    range: Range
    instruction: Instruction
    request_key: RequestKey | None = Field(
        default=None, description="Repeating a request gives the same rewrite; null: a new one"
    )


class RewriteDraft(Wire):
    session_id: str
    uri: str
    range: Range = Field(
        description="Where the selection is now; once `applied`, what stands in its place (in "
        "review mode `propose`: still the selection)"
    )
    text: str = Field(
        description="The new text of the selection: the complete lines so far; at the end all of it"
    )
    state: Literal["streaming", "applied", "failed", "cancelled"] = Field(
        description="The last three end the rewrite, and nothing follows them; a repeated request "
        "with the same key gets the end again"
    )
    message: str = Field(
        default="", description="For the person: why it failed, or what they should know"
    )
