"""`tool` makes the tools that Magy ships as `core.tool.tool` does, with schemas that are known."""

from __future__ import annotations

from functools import partial

from magy_server.core import tool as tools
from magy_server.tools.tool_schemas import SCHEMAS

tool = partial(tools.tool, schemas=SCHEMAS)
