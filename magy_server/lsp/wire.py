"""The shapes of the `magy/*` wire, defined once; `methods.py` has the methods.

`docs/protocol.md` is generated from both (`make docs`).

Where the Agent Client Protocol has the method, name and shapes are its own (`session/prompt` is
`magy/session/prompt`). Clients make session and message ids, so nothing depends on message order;
a mutating request whose id was seen before changes nothing and may be retried.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from magy_server.core.errors import InvalidRequest


def _whole(text: str) -> str:
    """Half a surrogate pair, which JSON can hold and UTF-8 cannot, becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


Prose = Annotated[str, AfterValidator(_whole)]


class Wire(BaseModel):
    """`_meta` may stand anywhere and is ignored; other unknown keys are errors."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", defer_build=True
    )


P = TypeVar("P", bound=Wire)


def parsed(model: type[P], params: dict[str, Any], method: str) -> P:
    """Raises InvalidRequest that says which parameter is wrong."""
    try:
        return model.model_validate({k: v for k, v in params.items() if k != "_meta"})
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(str(step) for step in item['loc']) or 'params'}: {item['msg']}"
            for item in error.errors(include_url=False, include_input=False)[:5]
        )
        raise InvalidRequest(f"{method}: {wrong}. See docs/protocol.md.") from None


Id = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/-]*$")]


class SessionParams(Wire):
    session_id: Id


class Empty(Wire):
    pass


# --- content ------------------------------------------------------------------------------------


class TextBlock(Wire):
    type: Literal["text"]
    text: Prose


class LinkBlock(Wire):
    type: Literal["resource_link"]
    uri: Prose
    name: Prose


class TextResource(Wire):
    uri: Prose
    text: Prose


class ResourceBlock(Wire):
    type: Literal["resource"]
    resource: TextResource


class ImageBlock(Wire):
    type: Literal["image"]
    mime_type: str = ""
    data: str = Field(description="Base64 of a PNG, JPEG, GIF or WebP picture, 3.75 MB at most")
    uri: Prose | None = Field(default=None, description="Where it comes from, for people")


Block = Annotated[TextBlock | LinkBlock | ResourceBlock | ImageBlock, Field(discriminator="type")]


class ConfigOption(Wire):
    config_id: str
    name: str
    current_value: str
    options: list[str] = []


class SessionInfo(Wire):
    session_id: str
    cwd: str
    root: str | None = Field(default=None, description="Workspace root; null: a global session")
    title: str | None = None
    agent: str = Field(default="", description="`rewrite`: of a magy/rewrite/start")
    updated_at: str | None = Field(default=None, description="ISO 8601, UTC")
    state: str = Field(default="idle", description="idle | running | requires_action")
    turns: int = 0
    head_seq: int = 0


class Waiting(Wire):
    message_id: str
    delivery: str
    text: str


class Interaction(Wire):
    interaction_id: str
    session_id: str
    kind: str
    tool_call_id: str
    title: str
    rule: str = Field(description="The rule that asks")
    remember: list[dict[str, str]] = Field(
        default=[], description='What "always" would allow: {key, pattern}'
    )
    agent: str = ""
    created_at: str


class Summary(Wire):
    """A session at a glance; what a client shows around the transcript."""

    session: SessionInfo
    config_options: list[ConfigOption]
    waiting: list[Waiting] = []
    interactions: list[Interaction] = []
    plan: list[dict[str, str]] = []
    usage: dict[str, int] = {}
    cost: dict[str, Any] = Field(
        default={},
        description="{amount, currency, unpriced}: US dollars; `unpriced` counts the requests "
        "whose price is not known",
    )
    context: dict[str, int] = Field(
        default={},
        description="{tokens, window}: how full the model is, roughly; window 0: unknown",
    )


class Update(Wire):
    """One update of a page: what `magy/session/update` would have carried."""

    seq: int
    at: float
    update: dict[str, Any]


# --- requests -----------------------------------------------------------------------------------


class NewParams(Wire):
    session_id: Id = Field(description="Made by the client; the same id again is harmless")
    cwd: str | None = Field(default=None, description="Absolute path; null: a global session")
    agent: str | None = None
    model: str | None = None


class NewResult(Wire):
    session_id: str
    config_options: list[ConfigOption]


class ListParams(Wire):
    cwd: str | None = Field(default=None, description="Its project's sessions come first")
    only: bool = Field(default=False, description="List only that project's sessions")
    cursor: str | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class ListResult(Wire):
    sessions: list[SessionInfo]
    next_cursor: str | None = None


class From(Wire):
    """Where to begin: after an entry the client has, or with the last `tail` turns."""

    seq: Annotated[int, Field(ge=0)] | None = None
    tail: Annotated[int, Field(ge=0, le=1000)] | None = None


class SubscribeParams(SessionParams):
    start: From = Field(default=From(tail=20), alias="from")


class SubscribeResult(Wire):
    head_seq: int
    floor_seq: int = Field(
        description="Seq of the first entry of `events`: 500 entries at most, so it may lie above "
        "what was asked for; older ones by magy/session/events"
    )
    summary: Summary
    events: list[Update]
    more: bool = Field(default=False, description="The rest follows as magy/session/update")


class EventsParams(SessionParams):
    before: Annotated[int, Field(ge=1)] | None = None
    after: Annotated[int, Field(ge=0)] | None = None
    limit: Annotated[int, Field(ge=1, le=1000)] = 200


class EventsResult(Wire):
    events: list[Update]
    head_seq: int
    more: bool


class PromptParams(SessionParams):
    message_id: Id = Field(description="Made by the client; also the turn's id if it opens one")
    prompt: Annotated[list[Block], Field(min_length=1)]
    delivery: Literal["auto", "steer", "queue", "interrupt"] = "auto"


class PromptResult(Wire):
    message_id: str
    outcome: Literal["started", "steered", "queued", "known"]


class CancelParams(SessionParams):
    turn_id: str | None = None


class CancelResult(Wire):
    cancelled: bool = Field(description="False: no such turn was running")


class ForkParams(SessionParams):
    new_session_id: Id
    seq: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="The last entry that the fork keeps; null: all"
    )


class DeleteResult(Wire):
    deleted: bool


class ConfigParams(SessionParams):
    config_id: Literal["agent", "model", "review", "bypass", "title"]
    value: Prose


class ConfigResult(Wire):
    config_options: list[ConfigOption]


class ReorderParams(SessionParams):
    order: list[str] = Field(description="Message ids; those left out follow in their old order")


class DropParams(SessionParams):
    message_ids: list[str]


class QueueResult(Wire):
    waiting: list[Waiting]


class CompactParams(SessionParams):
    focus: Prose = Field(default="", max_length=10_000, description="What the summary must keep")


class SummaryResult(Wire):
    text: str = Field(description="Markdown")


class AgentsParams(Wire):
    cwd: str | None = Field(default=None, description="Whose project's agents; null: the first")


class AgentInfo(Wire):
    name: str
    description: str
    mode: str
    model: str | None = None


class AgentsResult(Wire):
    agents: list[AgentInfo]


class InteractionsParams(Wire):
    session_id: Id | None = None


class InteractionsResult(Wire):
    interactions: list[Interaction]


class RespondParams(Wire):
    interaction_id: str
    session_id: Id
    outcome: Literal["allow", "refuse"]
    scope: Literal["once", "session", "project"] = "once"
    reason: Prose = Field(default="", max_length=10_000, description="Reaches the model")


class RespondResult(Wire):
    accepted: bool = Field(description="False: it was answered before; see `winner`")
    winner: str | None = Field(default=None, description="allowed | refused | closed")


class GrantsParams(Wire):
    session_id: Id


class GrantInfo(Wire):
    grant_id: str
    key: str
    pattern: str
    scope: str


class GrantsResult(Wire):
    grants: list[GrantInfo]


class WithdrawParams(SessionParams):
    grant_id: str


class WithdrawResult(Wire):
    withdrawn: bool


class TrustParams(Wire):
    root: str
    trusted: bool | None = Field(default=None, description="Null only asks")


class TrustResult(Wire):
    root: str
    trusted: bool
    ignored: list[str] = Field(default=[], description="What of the project is not used for now")


# --- server to client ---------------------------------------------------------------------------


class SessionUpdate(Wire):
    """An event of the log (then `_meta.magy` has its seq and time) or a delta (then it has not)."""

    session_id: str
    update: dict[str, Any]


class InteractionChanged(Wire):
    session_id: str
    opened: list[Interaction] = []
    resolved: list[str] = []


class ListChanged(Wire):
    session_id: str


class SaveParams(Wire):
    uri: str


class SaveResult(Wire):
    saved: bool
