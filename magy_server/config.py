"""One typed tree of settings: defaults < user magy.toml < project magy.toml < editor < environment.

An untrusted project may only narrow: of its `magy.toml` only `permission` entries that deny or ask
and lower `limits` are used; the rest is named, so that a person can be told.
"""

from __future__ import annotations

import difflib
import os
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from magy_server.core.errors import InvalidConfig

LARGEST = 1 << 20
"""Bytes of a magy.toml."""
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
    seconds: Annotated[float, Field(ge=0)] = Field(
        default=0, description="Time for one turn, seconds; 0 is no limit."
    )
    repeats: Annotated[int, Field(ge=0)] = Field(
        default=5, description="So often the same calls with the same outcome are a loop; 0: never."
    )


class ToolSettings(Part):
    bash_timeout: Annotated[float, Field(gt=0)] = Field(
        default=30.0, description="Seconds for a command that does not name its own limit."
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
    permission: Permission = Field(
        default={}, description="Rules by key, as in an agent file; see permissions.md."
    )
    edits: EditSettings = EditSettings()
    tools: ToolSettings = ToolSettings()
    audit: AuditSettings = AuditSettings()


@dataclass(frozen=True, slots=True)
class Layer:
    """A place that settings come from; `name` is for messages."""

    name: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Loaded:
    settings: Settings
    rules: tuple[tuple[str, Permission], ...]
    """(source, permission table) of every layer that has one, each judged for itself."""
    ignored: tuple[str, ...] = ()
    """What an untrusted project asked for and does not get."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """The layer that each value comes from, by dotted key: `model.default`, `permission.bash` (all
    layers with a rule of that key, in order), `provider.NAME.base_url`. What is not here is as
    Magy sets it."""


def config_dir() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(os.environ.get("MAGY_CONFIG_DIR") or Path(base) / "magy")


def state_dir() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(os.environ.get("MAGY_STATE_DIR") or Path(base) / "magy")


def load(root: str | None, *, trusted: bool, options: Mapping[str, Any]) -> Loaded:
    """Reads and merges all layers. Raises InvalidConfig naming file and key."""
    layers = [read(config_dir() / "magy.toml")]
    ignored: tuple[str, ...] = ()
    if root is not None:
        project = read(Path(root) / "magy.toml")
        if not trusted:
            project, ignored = narrow(project)
        layers.append(project)
    layers.append(Layer("the editor's settings", options))
    layers.append(Layer("the environment", from_environment(os.environ)))
    return _merge(layers, ignored)


def read(path: Path) -> Layer:
    """A magy.toml; one that does not exist is empty. Raises InvalidConfig."""
    try:
        text = _data(path).decode()
    except FileNotFoundError:
        return Layer(str(path), {})
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfig(f"{path} cannot be read: {error}.") from None
    try:
        return Layer(str(path), tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise InvalidConfig(f"{path} is not valid TOML: {error}.") from None


def _data(path: Path) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):  # a pipe would be waited for
            raise InvalidConfig(f"{path} is no regular file; write the settings into one.")
        with open(fd, "rb", closefd=False) as file:
            data = file.read(LARGEST + 1)
    finally:
        os.close(fd)
    if len(data) > LARGEST:
        raise InvalidConfig(f"{path} is larger than {LARGEST >> 20} MB; no settings are so long.")
    return data


def from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """MAGY_MODEL, MAGY_AGENT, and MAGY_SCRIPT: a script file to play the model."""
    values: dict[str, Any] = {}
    if script := environ.get("MAGY_SCRIPT"):
        values["provider"] = [{"name": "scripted", "kind": "scripted", "script": script}]
        values["model"] = {"default": "scripted/script"}
        values["titles"] = False  # a script answers what it was written for
    if model := environ.get("MAGY_MODEL"):
        values["model"] = {"default": model}
    if agent := environ.get("MAGY_AGENT"):
        values["default_agent"] = agent
    return values


def narrow(layer: Layer) -> tuple[Layer, tuple[str, ...]]:
    """What an untrusted project may say, and the names of what it may not."""
    validate(layer)
    kept: dict[str, Any] = {}
    ignored: list[str] = []
    for key, value in layer.values.items():
        if key == "permission":
            kept[key], widened = _only_narrowing(value)
            ignored += [f"{layer.name}: permission.{name}" for name in widened]
        elif key == "limits":
            kept["limits"] = {f"max:{name}": limit for name, limit in value.items()}
        else:
            ignored.append(f"{layer.name}: {key}")
    return Layer(f"{layer.name} (not trusted)", kept), tuple(ignored)


def _only_narrowing(table: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Entries that only deny or ask. A list with an allow in it is left out whole: its order
    matters, and a part of it would mean something else."""
    kept = {key: rules for key, rules in table.items() if "allow" not in _actions(rules)}
    return kept, [key for key in table if key not in kept]


def _actions(rules: Any) -> set[str]:
    if isinstance(rules, str):
        return {rules}
    if isinstance(rules, Mapping):
        return {str(action) for action in rules.values()}
    return {action for rule in rules for action in _actions(rule)}


def validate(layer: Layer) -> Settings:
    """Raises InvalidConfig naming the layer, the key, and the key that was perhaps meant."""
    try:
        return Settings.model_validate(dict(layer.values))
    except ValidationError as error:
        problems = [_problem(dict(item)) for item in error.errors(include_url=False)[:5]]
        raise InvalidConfig(f"{layer.name}: {'; '.join(problems)}.") from None


def _problem(item: dict[str, Any]) -> str:
    where = ".".join(str(step) for step in item["loc"])
    if item["type"] != "extra_forbidden":
        return f"{where}: {item['msg']} (it is {item['input']!r})"
    model: type[BaseModel] = Settings
    for step in item["loc"][:-1]:
        if step in model.model_fields:
            model = _inner(model.model_fields[step].annotation) or model
    near = difflib.get_close_matches(str(item["loc"][-1]), model.model_fields, 1)
    known = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(model.model_fields)}"
    return f"unknown key {where!r}; {known}"


def _inner(annotation: Any) -> type[BaseModel] | None:
    """The model of a field, also of a list or table of models."""
    for one in (annotation, *getattr(annotation, "__args__", ())):
        if isinstance(one, type) and issubclass(one, BaseModel):
            return one
    return None


def _merge(layers: list[Layer], ignored: tuple[str, ...]) -> Loaded:
    merged: dict[str, Any] = {}
    origins: dict[str, str] = {}
    rules: list[tuple[str, Permission]] = []
    for layer in layers:
        values = dict(layer.values)
        limits = values.get("limits")
        if isinstance(limits, Mapping) and any(name.startswith("max:") for name in limits):
            values["limits"] = _lowered(merged.get("limits", {}), limits)
        validate(Layer(layer.name, values))
        _trace(origins, layer.name, values)
        if table := values.pop("permission", None):
            rules.append((layer.name, table))
        for key, value in values.items():
            merged[key] = _joined(key, merged.get(key), value)
    return Loaded(Settings.model_validate(merged), tuple(rules), ignored, origins)


def _lowered(limits: Mapping[str, Any], caps: Mapping[str, Any]) -> dict[str, Any]:
    """The limits that an untrusted project changes: only to stricter ones. 0 means none, so is
    widest."""
    defaults = LimitSettings().model_dump()
    lowered = {}
    for name, cap in caps.items():
        name = name.removeprefix("max:")
        now = limits.get(name, defaults.get(name, 0))
        if cap and (not now or cap < now):
            lowered[name] = cap
    return lowered


def _trace(origins: dict[str, str], layer: str, values: Mapping[str, Any]) -> None:
    """Notes what `layer` sets, as `_merge` lets it: tables key by key, a provider as a whole, and
    permissions beside those of the layers before."""
    for key, value in values.items():
        if key == "provider":
            for one in value:
                path = f"provider.{one['name']}"
                _forget(origins, path)
                origins |= {f"{path}.{name}": layer for name in one if name != "name"}
        elif key == "permission":
            for name in value:
                before = origins.get(f"permission.{name}")
                origins[f"permission.{name}"] = f"{before}, {layer}" if before else layer
        elif isinstance(value, Mapping):
            origins |= {f"{key}.{name}": layer for name in value}
        else:
            origins[key] = layer


def _forget(origins: dict[str, str], table: str) -> None:
    for key in [key for key in origins if key.rpartition(".")[0] == table]:
        del origins[key]


def _joined(key: str, old: Any, new: Any) -> Any:
    if key == "provider" and old:
        names = {provider["name"] for provider in new}
        return [p for p in old if p["name"] not in names] + list(new)
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return {**old, **new}
    return new
