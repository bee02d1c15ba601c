"""These are the shapes of `magy/completion/*`. Suggestions themselves are standard:
`textDocument/inlineCompletion`."""

from pydantic import Field

from magy_server.api.wire.shapes import Wire


class CompletionStatusParams(Wire):
    cwd: str | None = Field(
        default=None,
        description="The directory whose project's settings to report; null: the first project",
    )


class CompletionStatus(Wire):
    enabled: bool = Field(description="`completion.enabled` of the project")
    model: str = Field(description='`provider/model` that is asked; "" if none is')
    paused: str = Field(description='Why the model is not asked at the moment; "" if it is')
    requests: int = Field(description="Requests to models today, in all projects together")
    tokens: int = Field(description="What they took, cached tokens included")
    cost: float = Field(description="US dollars that they cost, counted where prices are known")
    estimated: int = Field(
        description="How many of them are not counted in `tokens`, as their end was not heard: "
        "cancelled while one types, say. `cost` has an estimate of them"
    )
    day_cost: float = Field(description="The limit of `cost`, in US dollars; 0: none")
