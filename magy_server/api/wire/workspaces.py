"""These are the shapes of `magy/agent/list` and `magy/workspace/*`: the agents of a project, and
whether a person trusts it. A client may ask for these alone, so they are apart from those of
sessions."""

from pydantic import Field

from magy_server.api.wire.shapes import Wire


class AgentsParams(Wire):
    cwd: str | None = Field(
        default=None,
        description="The directory whose project's agents to list; null: the first folder",
    )


class AgentInfo(Wire):
    name: str
    description: str
    mode: str = Field(description="primary: people talk to it; subagent: for children; all: both")
    model: str | None = Field(default=None, description="null: the configured one")


class AgentsResult(Wire):
    agents: list[AgentInfo]


class TrustParams(Wire):
    root: str
    trusted: bool | None = Field(default=None, description="Null only asks")


class TrustResult(Wire):
    root: str
    trusted: bool
    ignored: list[str] = Field(
        default=[], description="Settings of the project that Magy ignores until it is trusted"
    )
