"""These are the shapes of `magy/magi/*`: the rulings that three nodes have come to."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from magy_server.api.wire.shapes import SessionParams, Wire


class MagiListParams(SessionParams):
    form: Literal["markdown", "text", "box"] = Field(
        default="markdown", description="How `report` is written"
    )
    cursor: int = Field(
        default=0, ge=0, le=1_000_000, description="Of the result before; 0: the newest"
    )


class MagiRuling(Wire):
    """What a deliberation of the session came to, worked out from the votes in its log."""

    id: str
    at: str = Field(description="When it was asked for")
    final: Literal["APPROVED", "REJECTED", "DEADLOCK"]
    standing: Literal["decisive", "fragile", "provisional", "deadlock", "aborted"]
    confidence: int = Field(description="Percent")
    person_needed: bool = Field(description="A person has to decide before anything is done")
    same: bool = Field(description="It is, byte for byte, what the log has")
    report: str = Field(description="The whole report, for people")
    ruling: dict[str, Any] = Field(description="The canonical JSON that the report is made of")


class MagiListResult(Wire):
    rulings: list[MagiRuling] = Field(description="The newest first, ten at most")
    next_cursor: int | None = Field(default=None, description="Where older ones are; null: none")
