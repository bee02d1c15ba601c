"""These are the shapes of `magy/model/*`: which models there are to choose from."""

from pydantic import Field

from magy_server.api.wire.shapes import Wire


class ModelsParams(Wire):
    cwd: str | None = Field(
        default=None,
        description="The directory whose project's providers to ask; null: the first folder",
    )


class ProviderModels(Wire):
    """The models of a provider that can be used: it is configured, has its key, or runs on this
    machine."""

    provider: str
    models: list[str] = Field(
        description="As `provider/model`: what the configuration names or Magy knows, then the "
        "rest of the provider's own list"
    )
    problem: str = Field(
        default="", description="Why its own list is not there, in a sentence; empty: it is"
    )


class ModelsResult(Wire):
    providers: list[ProviderModels]
