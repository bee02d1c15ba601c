"""What a model is told of a tool's parameters: all that it needs, and nothing that says nothing."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from magy_server.core.settings import ToolSettings
from magy_server.core.tool import Result, tool
from magy_server.tools.kit import make_tools
from magy_server.tools.shell.processes import Processes


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")
    title: str
    count: int = Field(default=0, ge=0)


@tool(effect="read", key="read")
async def put_together(
    ctx: Any,
    parts: Annotated[list[Part], "What it is made of"],
    limit: Annotated[Part | None, "At most this"] = None,
    named: dict[str, str | None] | None = None,
    mode: Literal["all", "some"] = "all",
    force: bool = False,
) -> Result:
    """Put parts together."""
    return Result("")


def test_a_schema_has_what_tells_a_model_something() -> None:
    part = {
        "type": "object",
        "properties": {"title": {"type": "string"}, "count": {"type": "integer"}},
        "required": ["title"],
    }
    text = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert put_together.parameters == {
        "type": "object",
        "properties": {
            "parts": {"type": "array", "items": part, "description": "What it is made of"},
            "limit": {**part, "description": "At most this"},
            "named": {"type": "object", "additionalProperties": text},
            "mode": {"type": "string", "enum": ["all", "some"], "default": "all"},
            "force": {"type": "boolean"},
        },
        "required": ["parts"],
    }


def test_no_schema_of_a_tool_that_comes_with_magy_says_nothing() -> None:
    for one in make_tools(Processes(), ToolSettings()):
        text = json.dumps(one.parameters)
        assert not [key for key in ('"title": "', '"$ref"', '"$defs"', ": false", '"null"')
                    if key in text], one.name  # fmt: skip
