"""The tree of settings, as `magy.toml` writes it; `config.py` reads and merges it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Action = Literal["allow", "ask", "deny"]
Patterns = dict[str, Action]
Permission = dict[str, Action | Patterns | list[Patterns]]
"""By permission key: an action, or patterns with actions, in order."""


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Identity(Part):
    name: str = Field(default="Magy", description="How this installation calls itself.")
    description: str = Field(default="", description="For people.")


class ModelSettings(Part):
    default: str = Field(
        default="",
        description="`provider/model` of new sessions. Empty: chosen from the keys in the "
        "environment, else from the model servers that run on this machine.",
    )
    small: str = Field(
        default="", description="`provider/model` for titles; empty: the session's own."
    )
    max_tokens: Annotated[int, Field(ge=0)] = Field(
        default=0,
        description="Most tokens of one reply, thinking included; 0: what the model can, at most "
        "32,000.",
    )
    thinking_tokens: Annotated[int, Field(ge=0)] = Field(
        default=0, description="Thinking budget of one reply; 0 is off, else at least 1024."
    )
    retries: Annotated[int, Field(ge=0, le=20)] = Field(
        default=4, description="How often a request that may succeed later is tried again."
    )
    retry_delay: Annotated[float, Field(ge=0)] = Field(
        default=1.0, description="Seconds before the first retry; doubled each time."
    )
    timeout: Annotated[float, Field(gt=0)] = Field(
        default=120.0,
        description="Seconds until a reply must have begun; if not set, 900 for a model on this "
        "machine.",
    )
    compact_at: Annotated[float, Field(gt=0, le=1)] = Field(
        default=0.8,
        description="The conversation is compacted when it fills this share of what the model "
        "can hold; 1: only when the provider says that it is too long.",
    )


class AboutModel(Part):
    """Known of a model; what is left out is as in Magy's own table."""

    window: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="Tokens that the model can hold, prompt and reply together."
    )
    max_tokens: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="Most tokens of one reply."
    )
    input: Annotated[float, Field(ge=0)] | None = Field(
        default=None, description="US dollars for a million tokens."
    )
    output: Annotated[float, Field(ge=0)] | None = Field(default=None, description="The same.")
    cache_read: Annotated[float, Field(ge=0)] | None = Field(
        default=None, description="The same; if only `input` is given, that."
    )
    cache_write: Annotated[float, Field(ge=0)] | None = Field(
        default=None, description="The same; if only `input` is given, that."
    )


class ProviderSettings(Part):
    name: str = Field(description="The part of `provider/model` before the slash.")
    kind: Literal["anthropic", "openai", "openai-chat", "scripted"] = Field(
        description="Which wire it speaks: Anthropic Messages, OpenAI Responses, or Chat "
        "Completions as OpenAI and most others speak it."
    )
    api_key_env: str = Field(
        default="", description="The environment variable that holds the key; never the key."
    )
    base_url: str | None = Field(default=None, description="Another endpoint than the usual one.")
    models: list[str] = Field(default=[], description="Models to offer; any other may be named.")
    about: dict[str, AboutModel] = Field(
        default={}, description="What is known of models, by their names: sizes and prices."
    )
    script: str | None = Field(
        default=None, description="For kind `scripted`: the script file, absolute."
    )


class LimitSettings(Part):
    requests: Annotated[int, Field(ge=0)] = Field(
        default=25, description="Model requests in one turn; 0 is no limit."
    )
    tokens: Annotated[int, Field(ge=0)] = Field(
        default=0, description="Tokens in one turn, cached ones included; 0 is no limit."
    )
    cost: Annotated[float, Field(ge=0)] = Field(
        default=0,
        description="US dollars for one turn, as far as prices are known; 0: no limit.",
    )
    seconds: Annotated[float, Field(ge=0)] = Field(
        default=0, description="Time for one turn, seconds; 0 is no limit."
    )
    run_tokens: Annotated[int, Field(ge=0)] = Field(
        default=0,
        description="Tokens in one run, which is a turn and all that its children do for it, "
        "together; 0 is no limit.",
    )
    run_cost: Annotated[float, Field(ge=0)] = Field(
        default=0, description="US dollars for one run; 0 is no limit."
    )
    repeats: Annotated[int, Field(ge=0)] = Field(
        default=5, description="So often the same calls with the same outcome are a loop; 0: never."
    )


class SpawnSettings(Part):
    """Limits of child agents. Magy clamps a value that is out of range, and says so."""

    max_depth: int = Field(
        default=2, description="So deep below a session children may be: 1 to 3."
    )
    max_children: int = Field(
        default=4, description="Children of one session that are not closed: 1 to 4."
    )
    max_total: int = Field(default=24, description="Children at work in one process: 1 to 256.")
    max_concurrent: int = Field(
        default=8, description="Turns of children at once; the others wait: 1 to 10."
    )
    max_queue: int = Field(default=200, description="Children that wait for a turn: 1 to 200.")
    wait_timeout: float = Field(
        default=300.0,
        description="Seconds that `wait_agent` waits if it is not told how long: 1 to 86,400.",
    )


class ToolSettings(Part):
    bash_timeout: Annotated[float, Field(gt=0)] = Field(
        default=30.0, description="Seconds for a command that does not name its own limit."
    )
    environment: list[str] = Field(
        default=[],
        description="Variables that commands get besides the usual ones, by name, or with `*`, "
        "which takes no keys along. Only of your own settings, not of a project's.",
    )
    grep_program: str = Field(
        default="rg", description="ripgrep; where it is not there, Magy searches by itself."
    )
    grep_matches: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=100, description="Most matching lines that one `grep` call shows."
    )
    glob_results: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=500, description="Most paths that one `glob` call shows."
    )
    search_url: str = Field(
        default="https://html.duckduckgo.com/html/",
        description="Where `web_search` asks, in DuckDuckGo's HTML form.",
    )


class EditSettings(Part):
    review: Literal["review", "propose", "auto"] = Field(
        default="review",
        description="What becomes of an agent's edits: made at once and pending until looked at "
        "(`review`), only shown until accepted (`propose`), or made and not asked about (`auto`).",
    )
    style: Literal["auto", "str_replace", "patch"] = Field(
        default="auto",
        description="How models edit: by replacing texts, by patches, or as their family is best.",
    )


class AuditSettings(Part):
    enabled: bool = Field(default=True, description="Write the audit files.")
    directory: str = Field(default="", description="Where; empty: `audit`, beside the sessions.")
    preview_length: Annotated[int, Field(ge=0, le=10_000)] = Field(
        default=120, description="Characters of a command or path that the audit keeps."
    )


class MirrorSettings(Part):
    enabled: bool = Field(
        default=False,
        description="Keep each session as a file of JSON lines, too, for people and programs to "
        "read: `projects/<sha1 of the root>/SESSION.jsonl`, children in `SESSION/agent-jobs/`.",
    )
    directory: str = Field(default="", description="Where; empty: beside the database.")


class Settings(Part):
    """`magy.toml`."""

    magy: Identity = Identity()
    default_agent: str = Field(default="build", description="The agent of new sessions.")
    custom_agents: bool = Field(
        default=True, description="Read agents from the user's and the project's directories."
    )
    titles: bool = Field(default=True, description="Let the model give each session a title.")
    model: ModelSettings = ModelSettings()
    provider: list[ProviderSettings] = Field(
        default=[], description="Providers besides those Magy knows, or changes to them, by name."
    )
    limits: LimitSettings = LimitSettings()
    spawn: SpawnSettings = SpawnSettings()
    permission: Permission = Field(
        default={}, description="Rules by key, as in an agent file; see permissions.md."
    )
    edits: EditSettings = EditSettings()
    tools: ToolSettings = ToolSettings()
    audit: AuditSettings = AuditSettings()
    mirror: MirrorSettings = MirrorSettings()
