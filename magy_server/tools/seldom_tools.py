"""With these tools a model finds and calls the tools that it is not shown, since they are seldom
used."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

from magy_server.core.errors import ToolError
from magy_server.core.ports import ToolSchema
from magy_server.core.tool import FactContext, Gathered, Result, ToolContext
from magy_server.regex import regex
from magy_server.tools.shipped import tool

MOST = 8
"""So many tools are described at once."""
NAMED = 60
"""So many more are named."""
_WORD = regex(r"\w+")


@tool(effect="read", key="tools", kind="search")
async def find_tools(
    ctx: ToolContext,
    query: Annotated[str, "Names of tools, or words for what you want to do"],
) -> Result:
    """Describe tools that you have and that are not described to you, with their parameters. Call
    them with call_tool."""
    there = await ctx.seldom()
    matches = matching(there, query)
    found, others = matches[:MOST], _named(matches[MOST:])
    if not found:
        return Result(for_model=f"No tool matches {query!r}. There are: {_named(there) or 'none'}.")
    texts = [*map(_described, found), *([f"Others that match: {others}."] if others else [])]
    return Result(for_model="\n\n".join(texts), for_user=f"Found {_named(found)}")


def _named(schemas: Sequence[ToolSchema]) -> str:
    """Returns their names, and how many more there are."""
    names = [schema.name for schema in schemas[:NAMED]]
    left = len(schemas) - len(names)
    return ", ".join(names) + (f" and {left} more" if left else "")


def matching(there: Sequence[ToolSchema], query: str) -> list[ToolSchema]:
    """Returns the tools that are named, or else those that have most of the words, best first."""
    words = {word.lower() for word in _WORD.findall(query)}
    if named := [schema for schema in there if schema.name in words]:
        return named

    def score(schema: ToolSchema) -> int:
        name, text = schema.name.lower(), schema.description.lower()
        return sum(3 * (word in name) + (word in text) for word in words)

    return [schema for schema in sorted(there, key=score, reverse=True) if score(schema)]


def _described(schema: ToolSchema) -> str:
    parameters = json.dumps(schema.parameters, ensure_ascii=False, separators=(",", ":"))
    return f"{schema.name}: {schema.description}\nparameters: {parameters}"


async def _wrong(ctx: FactContext, **arguments: Any) -> Gathered:
    raise ToolError(
        'call_tool: give the name of another tool and its arguments, as {"name": "git_log", '
        '"arguments": {"stat": true}}. find_tools says which tools there are.'
    )


@tool(effect="exec", key="tools", facts=_wrong)
async def call_tool(
    ctx: ToolContext,
    name: Annotated[str, "The tool"],
    arguments: Annotated[dict[str, Any], "Its arguments, as its parameters say"],
) -> Result:
    """Call a tool that is not described to you; find_tools tells its parameters."""
    raise ToolError("call_tool: nothing was called.")  # a call that can be made is that tool's own
