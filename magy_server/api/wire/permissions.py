"""These are the shapes of `magy/permission/*`: what was allowed for longer than one call."""

from pydantic import Field, model_validator

from magy_server.api.wire.shapes import Id, Wire


class GrantsParams(Wire):
    """Of a session and its project, or of a project alone: give one of the two."""

    session_id: Id | None = None
    root: str | None = Field(default=None, description="A workspace root")

    @model_validator(mode="after")
    def _one(self) -> "GrantsParams":
        if (self.session_id is None) == (self.root is None):
            raise ValueError("give `sessionId` or `root`, not both")
        return self


class GrantInfo(Wire):
    grant_id: str
    key: str
    pattern: str
    scope: str = Field(description="project | session | run: until the person prompts again")


class GrantsResult(Wire):
    grants: list[GrantInfo]


class WithdrawParams(GrantsParams):
    grant_id: str


class WithdrawResult(Wire):
    withdrawn: bool
