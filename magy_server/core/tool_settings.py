"""What a person may configure of the tools: the `[tools]` table of `magy.toml`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from magy_server.core.values import Value


class ToolSettings(Value):
    bash_timeout: Annotated[float, Field(gt=0)] = Field(
        default=30.0, description="The time limit in seconds of a command that sets none itself."
    )
    environment: list[str] = Field(
        default=[],
        description="More environment variables for commands, by name or with `*` (which never "
        "matches a key). Only your own settings can set this, not a project's.",
    )
    grep_program: str = Field(
        default="rg",
        description="The ripgrep program. Where it is missing or older than version 14, Magy takes "
        "the one that came with it.",
    )
    grep_matches: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=100, description="The most matching lines that one `grep` call shows."
    )
    glob_results: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=500, description="The most paths that one `glob` call shows."
    )
    search_url: str = Field(
        default="https://html.duckduckgo.com/html/",
        description="The search page that `web_search` asks; it must answer like DuckDuckGo's "
        "HTML page.",
    )
