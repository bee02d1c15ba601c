"""This is the tree of settings as `magy.toml` has it; `config/layers.py` reads and merges it."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from magy_server.core.hooks import HookEvent
from magy_server.core.mcp.server_settings import McpServer
from magy_server.core.policy.guardrails import Guardrail
from magy_server.core.spawn_settings import SpawnSettings
from magy_server.core.values import Action, SandboxLevel, Value

Patterns = dict[str, Action]
Permission = dict[str, Action | Patterns | list[Patterns]]
"""By permission key: an action, or patterns with actions, in order."""
Examples = dict[str, dict[str, Action]]
"""By permission key: calls, and the action that rules must come to for each."""


class Identity(Value):
    name: str = Field(default="Magy", description="The name of this installation.")
    description: str = Field(default="", description="For people.")


class Given(Value):
    """A part of the settings knows which of its keys were given."""

    def model_post_init(self, context: Any) -> None:
        pass  # unlike other values, which forget that


class ModelSettings(Given):
    default: str = Field(
        default="",
        description="`provider/model` of new sessions. Empty: Magy chooses by the keys in the "
        "environment, else by the model servers that run on this machine.",
    )
    small: str = Field(
        default="", description="`provider/model` for titles; empty: the session's own."
    )
    max_tokens: Annotated[int, Field(ge=0)] = Field(
        default=0,
        description="The most tokens of one reply, thinking included; 0: the model's own limit, "
        "at most 32,000.",
    )
    thinking_tokens: Annotated[int, Field(ge=0)] = Field(
        default=0, description="Thinking budget of one reply; 0 is off, else at least 1024."
    )
    retries: Annotated[int, Field(ge=0, le=20)] = Field(
        default=4, description="How often Magy retries a request that may succeed later."
    )
    retry_delay: Annotated[float, Field(ge=0)] = Field(
        default=1.0, description="Seconds before the first retry; doubled each time."
    )
    timeout: Annotated[float, Field(gt=0)] = Field(
        default=120.0,
        description="Seconds until a reply must have started; if not set, 900 for a model on this "
        "machine.",
    )
    compact_at: Annotated[float, Field(gt=0, le=1)] = Field(
        default=0.8,
        description="Magy compacts the conversation when it fills this share of the context "
        "window; 1: only when the provider says that it is too long.",
    )


class AboutModel(Value):
    """Known of a model; what is left out is as in Magy's own table."""

    window: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="The context window in tokens, prompt and reply together."
    )
    max_tokens: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="The most tokens of one reply."
    )
    input: Annotated[float, Field(ge=0)] | None = Field(
        default=None, description="US dollars for a million tokens."
    )
    output: Annotated[float, Field(ge=0)] | None = Field(default=None, description="The same.")
    cache_read: Annotated[float, Field(ge=0)] | None = Field(
        default=None, description="The same; by default the price of `input`."
    )
    cache_write: Annotated[float, Field(ge=0)] | None = Field(
        default=None, description="The same; by default the price of `input`."
    )


class ProviderSettings(Given):
    name: str = Field(description="The part of `provider/model` before the slash.")
    kind: Literal["anthropic", "openai", "openai-chat", "scripted"] = Field(
        description="The wire format: Anthropic Messages, OpenAI Responses, or Chat "
        "Completions as OpenAI and most others speak it."
    )
    api_key_env: str = Field(
        default="", description="The environment variable that holds the key; never the key."
    )
    base_url: str | None = Field(
        default=None, description="The endpoint, if it is not the usual one."
    )
    models: list[str] = Field(
        default=[], description="The models to offer; you can name any other."
    )
    about: dict[str, AboutModel] = Field(
        default={}, description="Sizes and prices of models, by their names."
    )
    transport: Literal["http", "sdk"] = Field(
        default="http",
        description="How requests are sent: by Magy itself, or with `sdk` through the vendor's own "
        "library, which starts later and needs more memory.",
    )
    script: str | None = Field(
        default=None, description="For kind `scripted`: the script file, absolute."
    )


class LimitSettings(Given):
    requests: Annotated[int, Field(ge=0)] = Field(
        default=25, description="Model requests in one turn; 0 is no limit."
    )
    tokens: Annotated[int, Field(ge=0)] = Field(
        default=0, description="Tokens in one turn, cached ones included; 0 is no limit."
    )
    cost: Annotated[float, Field(ge=0)] = Field(
        default=0,
        description="US dollars for one turn, counted where prices are known; 0 is no limit.",
    )
    seconds: Annotated[float, Field(ge=0)] = Field(
        default=0, description="Time for one turn, seconds; 0 is no limit."
    )
    run_tokens: Annotated[int, Field(ge=0)] = Field(
        default=0,
        description="Tokens in one run, that is, a turn together with all that its children do "
        "for it; 0 is no limit.",
    )
    run_cost: Annotated[float, Field(ge=0)] = Field(
        default=0, description="US dollars for one run; 0 is no limit."
    )
    repeats: Annotated[int, Field(ge=0)] = Field(
        default=5,
        description="How often the same calls with the same outcome may come before "
        "Magy stops the turn as a loop; 0: no limit.",
    )


class EditSettings(Given):
    review: Literal["review", "propose", "auto"] = Field(
        default="review",
        description="What happens to an agent's edits: `review` makes them at once and keeps them "
        "pending until you judge them, `propose` only shows them until you accept them, "
        "`auto` makes and accepts them.",
    )
    style: Literal["auto", "str_replace", "patch"] = Field(
        default="auto",
        description="How models edit: by replacing texts, by patches, or whichever suits the "
        "model's family.",
    )


def _host(text: str) -> str:
    """Returns an entry of the list of hosts as it is. Raises ValueError for an address."""
    if not text.strip() or set(text) & set("/ @?#"):
        host = text.partition("://")[2] or text
        meant = host.strip().split("/")[0].rpartition("@")[2]
        hint = f"; write {meant!r}" if meant else ""
        raise ValueError(f"a host is written without scheme and path{hint}")
    return text


class ToolSettings(Given):
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
    http_hosts: list[Annotated[str, AfterValidator(_host)]] = Field(
        default=[],
        description="The hosts that `http_request` may reach, as in `sandbox.hosts`; empty: any. "
        "What it asks of them is judged all the same.",
    )
    github_url: str = Field(
        default="https://api.github.com",
        description="The API that the tool `github` speaks with; it gets your token.",
    )
    browser_sandbox: bool = Field(
        default=True,
        description="The tool `browser` runs only where Chromium's own sandbox can be had, which "
        "is not so for root. `false`: without it, where the whole machine is a sandbox.",
    )


class SandboxLimits(Given):
    """What one command, with all that it starts, may take; 0 is no limit."""

    memory_mb: Annotated[int, Field(ge=0)] = Field(default=8192, description="Memory, in MB.")
    processes: Annotated[int, Field(ge=0)] = Field(default=1024, description="Processes at once.")
    cpu_seconds: Annotated[int, Field(ge=0)] = Field(
        default=3600, description="Processor time of each of its processes, in seconds."
    )
    file_mb: Annotated[int, Field(ge=0)] = Field(
        default=16_384, description="The size of each file that it writes, in MB."
    )


class SandboxSettings(Given):
    """A project's `magy.toml`, trusted or not, can only choose a stricter level, hide more and
    lower the limits; the rest is the user's."""

    level: SandboxLevel = Field(
        default="off",
        description="The sandbox that commands run in: `off`, `standard` (they write only in the "
        "workspace), `strict` (also, they reach only the hosts listed, and each asks), `isolated` "
        "(a temporary directory, no network, and no commands of agents).",
    )
    hosts: list[Annotated[str, AfterValidator(_host)]] = Field(
        default=[],
        description="The hosts that commands reach in the strict sandbox, by HTTP and HTTPS: "
        '`"pypi.org"`, `"*.npmjs.org"`, `"localhost:8080"`.',
    )
    writable: list[str] = Field(
        default=[],
        description="More directories that commands may write in, absolute or with `~/`: caches of "
        "package managers, say. Not in the isolated sandbox.",
    )
    hidden: list[str] = Field(
        default=[], description="More files and directories that commands cannot see."
    )
    shown: list[str] = Field(
        default=[],
        description="What is hidden in the sandbox by default, and yet may be seen and used: "
        '`"/run/docker.sock"`, `"~/.ssh"`.',
    )
    allow_sandboxed: bool = Field(
        default=False,
        description="Whether commands in the standard sandbox that have no network, and write only "
        "in the workspace, run without a question. An agent must then say that a command needs the "
        "network, and that is asked about.",
    )
    limits: SandboxLimits = SandboxLimits.usual()


class CompletionSettings(Given):
    enabled: bool = Field(
        default=False,
        description="Whether Magy suggests how a line goes on while you type, in editors that can "
        "show it. Each suggestion is a request to a model.",
    )
    model: str = Field(
        default="",
        description="`provider/model` that is asked; empty: `model.small`, else the model of new "
        "sessions. Choose a small one that answers fast and does not think first.",
    )
    max_tokens: Annotated[int, Field(ge=16, le=4096)] = Field(
        default=256, description="The most tokens of one suggestion."
    )
    debounce_ms: Annotated[int, Field(ge=0, le=10_000)] = Field(
        default=300,
        description="Milliseconds without a keystroke before a model is asked. A suggestion that "
        "you ask for yourself does not wait.",
    )
    timeout: Annotated[float, Field(gt=0, le=300)] = Field(
        default=10.0, description="Seconds after which a suggestion comes too late."
    )
    before: Annotated[int, Field(ge=500, le=100_000)] = Field(
        default=8_000, description="The most characters before the cursor that are sent."
    )
    after: Annotated[int, Field(ge=0, le=100_000)] = Field(
        default=2_000, description="The same after the cursor."
    )
    neighbours: Annotated[int, Field(ge=0, le=20)] = Field(
        default=3,
        description="How many other open files of the same kind are looked through for lines that "
        "declare something; these are sent, too.",
    )
    off: list[str] = Field(
        default=[],
        description="Where Magy suggests nothing: names of languages as editors give them "
        '(`"markdown"`), and patterns for files as in permission rules (`"*.csv"`).',
    )
    day_cost: Annotated[float, Field(ge=0)] = Field(
        default=1.0,
        description="US dollars that suggestions may cost a day, in all projects together, counted "
        "where prices are known; 0 is no limit.",
    )


class HookSettings(Given):
    event: HookEvent = Field(description="When it is run.")
    command: str = Field(description="What bash runs; it gets JSON on its standard input.")
    match: str = Field(
        default="*",
        description="For which tools, by name or permission key, with `*`; several between `|`.",
    )
    name: str = Field(default="", description="For people; empty: its command.")
    timeout: Annotated[float, Field(gt=0, le=600)] = Field(
        default=60.0, description="Seconds after which it is ended, and has failed."
    )


class MagiSettings(Given):
    """The models of the three nodes of a deliberation, `provider/model`; empty: the model of those
    configured that suits the node best, else the session's. Three different ones judge best."""

    melchior: str = Field(default="", description="The scientist's: best a model strong in logic.")
    balthasar: str = Field(default="", description="The mother's: best a balanced model.")
    casper: str = Field(default="", description="The woman's: best an expressive model.")


class CasperSettings(Given):
    emotional_log: bool = Field(
        default=False,
        description="Whether CASPER, a node of a deliberation, keeps how a question felt in "
        "`memory/casper-emotional-log.json` of the project, and is reminded of it; see "
        "howto/magi.md.",
    )


class AuditSettings(Given):
    enabled: bool = Field(default=True, description="Whether Magy writes audit files.")
    directory: str = Field(
        default="", description="Their directory; empty: `audit`, beside the sessions."
    )
    preview_length: Annotated[int, Field(ge=0, le=10_000)] = Field(
        default=120, description="How many characters of a command or path the audit keeps."
    )


class RedactSettings(Given):
    """What may be in no transcript, in no audit and in no request to a model: it is replaced by
    `[redacted]` before it gets there. What an untrusted project says here does not count."""

    patterns: list[str] = Field(
        default=[],
        description="Regular expressions (RE2); what they match is replaced, in your prompts, too.",
    )
    files: list[str] = Field(
        default=[],
        description="Files whose values are replaced wherever they stand: of lines `NAME=value` "
        "the value, else the line. Relative to the workspace root, absolute or with `~/`; read "
        "when Magy starts.",
    )


class MirrorSettings(Given):
    enabled: bool = Field(
        default=False,
        description="Keep each session as a file of JSON lines, too, for people and programs to "
        "read: `projects/<sha1 of the root>/SESSION.jsonl`, children in `SESSION/agent-jobs/`.",
    )
    directory: str = Field(default="", description="Where; empty: beside the database.")


class Settings(Given):
    """`magy.toml`."""

    magy: Identity = Identity.usual()
    default_agent: str = Field(default="build", description="The agent that new sessions use.")
    custom_agents: bool = Field(
        default=True,
        description="Whether Magy reads agents from the user's and the project's directories.",
    )
    bypass: bool = Field(
        default=True,
        description="Whether a session may have bypass, which answers questions with yes.",
    )
    locked: list[str] = Field(
        default=[],
        description="Only in the administrator's file: settings by dotted key (`model.default`, "
        "`sandbox`) that nobody else can change; see howto/policy.md.",
    )
    titles: bool = Field(default=True, description="Whether the model gives each session a title.")
    model: ModelSettings = ModelSettings.usual()
    provider: list[ProviderSettings] = Field(
        default=[], description="More providers, or changes to those that Magy knows, by name."
    )
    limits: LimitSettings = LimitSettings.usual()
    spawn: SpawnSettings = SpawnSettings.usual()
    permission: Permission = Field(
        default={}, description="Rules by key, as in an agent file; see permissions.md."
    )
    examples: Examples = Field(
        default={},
        description="Calls by permission key, and the action that the rules of this file must come "
        "to for each, tried when the file is read: see howto/policy.md.",
    )
    guardrail: list[Guardrail] = Field(
        default=[],
        description="What blocks calls of tools, has them asked about or takes tools away, besides "
        "the rules: see howto/policy.md.",
    )
    mcp: dict[str, McpServer] = Field(
        default={}, description="Servers of the Model Context Protocol, by name; see howto/mcp.md."
    )
    edits: EditSettings = EditSettings.usual()
    tools: ToolSettings = ToolSettings.usual()
    sandbox: SandboxSettings = SandboxSettings.usual()
    completion: CompletionSettings = CompletionSettings.usual()
    hook: list[HookSettings] = Field(
        default=[], description="Commands to run at named moments; see howto/hooks.md."
    )
    claude_hooks: bool = Field(
        default=True,
        description="Whether Magy also runs the hooks in `.claude/settings.json`, yours and those "
        "of a trusted project.",
    )
    attach_skills: bool = Field(
        default=True,
        description="Whether a skill whose words stand in your prompt goes along unasked; "
        "`magy skills explain PROMPT` says which would.",
    )
    magi: MagiSettings = MagiSettings.usual()
    casper: CasperSettings = CasperSettings.usual()
    audit: AuditSettings = AuditSettings.usual()
    redact: RedactSettings = RedactSettings.usual()
    mirror: MirrorSettings = MirrorSettings.usual()
