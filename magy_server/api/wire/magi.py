"""A deliberation puts a question to three nodes that know nothing of each other, and their votes
come to a ruling by fixed rules. It is a call of the tool `deliberate`; its id is that of the
session, a slash, and that of the call.

While it goes on, updates of that call (`tool_call_update`) have it in `_meta.magy.deliberation`:
all of it each time, so a client draws the latest one. It holds what is recorded, so it is the same
for who looks in later. The last one comes with the end of the call, and is in the log; the call's
`content` then is the whole report, for clients that draw nothing. `box` is a drawing in 73 columns
of ASCII and of what nodes wrote, `rows` says the same in lines of any length. A call that is
cancelled ends with the votes that there were, and with no ruling.

`magy/magi/list` has the rulings of a session, or of all sessions of a project, worked out again
from the votes in the log, and what goes on now. With `magy/magi/accept` a person accepts a ruling
that overturns an earlier one, which holds until then. `magy/magi/log` has CASPER's emotional log of
a project, for people.
"""

from typing import Any, Literal

from pydantic import Field

from magy_server.api.wire.shapes import Id, SessionParams, Wire

# The words of `core/magi`, which is only imported when somebody deliberates.
Node = Literal["melchior", "balthasar", "casper"]
Verdict = Literal["APPROVE", "CAVEATED", "REJECT", "ABSTAIN"]
Tier = Literal["High", "Medium", "Low"]
Tension = Literal["agree", "beside", "apart", "against"]
Final = Literal["APPROVED", "REJECTED", "DEADLOCK"]
Standing = Literal["decisive", "fragile", "provisional", "deadlock", "aborted"]
State = Literal[
    "INIT", "STAGE1_SPAWNING", "STAGE1_COLLECTING", "VALIDATING", "STAGE2_DIGEST",
    "STAGE2_COLLECTING", "TALLYING", "CRISIS", "REPORTING", "DONE",
]  # fmt: skip


class NodeShown(Wire):
    """A column: what one node has said by now."""

    node: Node
    name: str
    role: str = Field(description="How it thinks: as a scientist, a mother, a woman")
    status: str = Field(description='What it is doing, in words; "": it has voted')
    verdict: Verdict | None = Field(description="The vote that counts; null: there is none yet")
    confidence: int | None = Field(description="Percent")
    tier: Tier | None = Field(description="The name of that confidence")
    before: str = Field(description='The first vote in words, where there is a second; "": none')
    summary: str = Field(description="Two or three sentences")
    own: list[str] = Field(description="What only this node says: risks, what is at stake")
    flags: list[str]
    dissents: bool = Field(description="The ruling is against its vote")
    model: str
    session_id: str | None = Field(description="The child of its latest attempt")


class TensionShown(Wire):
    """How two votes stand to each other."""

    between: list[Node]
    kind: Tension = Field(
        description="agree: the same verdict and tier; beside: on one side; apart: one of them is "
        "on no side; against: they disagree"
    )
    gap: int = Field(description="Of their confidence, in points")
    line: str = Field(description="All of this on one line, for people")
    said: list[str] = Field(description="What each has against the other's view")


class RulingShown(Wire):
    final: Final
    standing: Standing
    confidence: int = Field(description="Percent: the lowest of those who agree")
    tier: Tier
    person_needed: bool = Field(description="A person has to decide before anything is done")
    why: str
    dissent: list[str] = Field(description="Who disagrees, and why")
    conditions: list[str] = Field(description="What a caveated yes depends on")
    options: list[str] = Field(description="Of a deadlock: the ways on")
    may_fail: list[str]
    next_step: str
    safety: list[str] = Field(description="What every form of a ruling has to say")
    warnings: list[str]


class Deliberation(Wire):
    """How a deliberation is by now, for people."""

    deliberation_id: str
    question: str = Field(description="Its first 500 characters")
    mode: str
    state: State
    voted: int = Field(description="How many of the three nodes have voted")
    line: str = Field(description="Where it stands, or what the ruling is, on one line")
    nodes: list[NodeShown]
    tensions: list[TensionShown] = Field(description="Between each two that have voted")
    ruling: RulingShown | None
    tokens: int = Field(description="Of attempts that have ended")
    cost: dict[str, Any]
    spent: str = Field(description='The same in words; "": nothing yet')
    rows: list[str] = Field(description="All of it as lines of text")
    box: list[str] = Field(description="All of it drawn, in 73 columns")


class MagiListParams(Wire):
    session_id: Id | None = Field(
        default=None, description="null: of all sessions of the project, those first in which "
        "somebody deliberated last"
    )  # fmt: skip
    cwd: str | None = Field(
        default=None,
        description="Where `sessionId` is null: a directory of the project; null: the first folder",
    )
    form: Literal["markdown", "text", "box"] = Field(
        default="markdown", description="How `report` is written"
    )
    cursor: int = Field(
        default=0, ge=0, le=1_000_000, description="Of the result before; 0: the newest"
    )


class MagiRuling(Wire):
    """What a deliberation came to, worked out from the votes in the log."""

    id: str = Field(description="Of its session, a slash, and of the call that began it")
    at: str = Field(description="When it was asked for")
    final: Final
    standing: Standing
    confidence: int = Field(description="Percent")
    person_needed: bool = Field(description="A person has to decide before anything is done")
    overturns: str | None = Field(
        description="The ruling in whose place it comes once a person accepts it; null: none"
    )
    accepted: str | None = Field(description="When a person accepted that; null: nobody has")
    same: bool = Field(description="It is, byte for byte, what the log has")
    report: str = Field(description="The whole report, for people")
    ruling: dict[str, Any] = Field(description="The canonical JSON that the report is made of")
    shown: Deliberation = Field(description="The same as the updates of the call have it")


class MagiListResult(Wire):
    rulings: list[MagiRuling] = Field(description="Of a session the newest first; ten at most")
    running: list[Deliberation] = Field(description="What goes on now, the oldest first")
    next_cursor: int | None = Field(default=None, description="Where older ones are; null: none")


class MagiAcceptParams(SessionParams):
    ruling_id: str = Field(description="The `id` of one that `overturns` another")


class MagiAccepted(Wire):
    accepted: str = Field(description="When a person accepted it")
    known: bool = Field(description="That was before this request")


class MagiLogParams(Wire):
    cwd: str | None = Field(
        default=None, description="A directory of the project; null: the first folder"
    )
    delete: list[str] = Field(
        default_factory=list, max_length=1000, description="Takes the entries with these ids out"
    )
    reviewed: bool = Field(default=False, description="Says that a person has read it now")


class FeelingShown(Wire):
    """How a question felt, and what was learned. The question itself is not kept."""

    id: str
    date: str
    topic_hash: str = Field(description="The same for the same question")
    valence: float = Field(description="From -1, how bad it felt, to 1, how good")
    emotion: str
    lesson: str
    strength: float = Field(description="How much it counts by now, from 0 to 1")
    kept_until: str


class MagiLogResult(Wire):
    path: str = Field(description="The file")
    entries: list[FeelingShown] = Field(description="The newest first")
    reviewed: str | None = Field(description="When a person has read it last; null: never")
    review_due: bool = Field(
        description="Many strong feelings within a week: none is used until a person has read them"
    )
