"""Layers merge into one tree: defaults < user magy.toml < project magy.toml < editor < environment.
An administrator's file, `/etc/magy/magy.toml`, gives other defaults, and says what none of these
can change: see howto/policy.md.

An untrusted project may only narrow: of its `magy.toml` only `permission` entries that deny or ask,
lower values of `limits` and `spawn`, guardrails, and `bypass`, `completion.enabled` and `enabled`
of an MCP server when they are false are used; the rest is named, so that a person can be told. Its
`.mcp.json` is not even read. No project makes the sandbox less strict.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from magy_server.config import administrator
from magy_server.config.expected_values import expectation, told
from magy_server.core.errors import InvalidConfig
from magy_server.core.mcp.server_settings import parsed, says_how
from magy_server.core.policy.examples import wrong_example
from magy_server.core.policy.guardrails import Guardrail, check
from magy_server.core.policy.linear_patterns import checked, found_in
from magy_server.core.policy.rule_tables import ruleset
from magy_server.core.settings import Permission, SandboxSettings, Settings
from magy_server.dataclass import dataclass
from magy_server.regex import regex
from magy_server.regular_files import beginning

LARGEST = 1 << 18
"""Bytes of a magy.toml."""
MCP_JSON = ".mcp.json"
"""Where a project names MCP servers for all programs that know them."""
_DEEPEST = 64
_PART = r"(?:[\w-]++|\"[^\"\n]*+\"|'[^'\n]*+')"
_NESTED = regex(rf"(?<![\w-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{_DEEPEST}}}")
"""A key of more parts: reading one takes time that grows with the square of their number."""
_CAPS = ("limits", "spawn")
"""The tables of which an untrusted project may lower the values."""


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
    guardrails: tuple[tuple[str, tuple[Guardrail, ...]], ...] = ()
    """(source, guardrails) of every layer that has some: none takes another's place."""
    ignored: tuple[str, ...] = ()
    """What an untrusted project asked for and does not get."""
    overruled: tuple[str, ...] = ()
    """What was asked for and the administrator has locked, each with the layer that asked."""
    problems: tuple[str, ...] = ()
    """What is wrong with MCP servers, in sentences; it concerns only them."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """The layer that each value comes from, by dotted key: `model.default`, `permission.bash` (all
    layers with a rule of that key, in order), `provider.NAME.base_url`. What is not here is as
    Magy sets it."""


def config_dir() -> Path:
    """Looked up for every step of every turn."""
    if given := os.environ.get("MAGY_CONFIG_DIR"):
        return Path(given)
    return Path(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"), "magy")


def state_dir() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(os.environ.get("MAGY_STATE_DIR") or Path(base) / "magy")


def load(
    root: str | None,
    *,
    trusted: bool,
    options: Mapping[str, Any],
    above: Path = administrator.FILE,
) -> Loaded:
    """Reads and merges all layers; `above` is the administrator's file. Raises InvalidConfig naming
    file and key."""
    administrator.vouched(above)
    layers = [read(config_dir() / "magy.toml")]
    ignored: tuple[str, ...] = ()
    walls: Mapping[str, Any] | None = None
    problems: list[str] = []
    if root is not None:
        project = read(Path(root) / "magy.toml")
        shared = Path(root) / MCP_JSON
        if "sandbox" in project.values:
            walls = validate(project).sandbox.model_dump(exclude_unset=True)
            kept = {name: value for name, value in project.values.items() if name != "sandbox"}
            project = Layer(project.name, kept)
        if trusted:
            servers, problems = read_servers(shared)
            layers.append(servers)
        else:
            project, ignored = narrow(project)
            ignored += (str(shared),) if os.path.lexists(shared) else ()
        layers.append(project)
    layers.append(Layer("the editor's settings", options))
    layers.append(Layer("the environment", from_environment(os.environ)))
    merged = _merge(read(above), layers, ignored)
    merged = replace(merged, problems=(*problems, *_doubled(layers)))
    return _walled(merged, str(Path(root or "", "magy.toml")), walls) if walls else merged


def _walled(loaded: Loaded, project: str, asked: Mapping[str, Any]) -> Loaded:
    """With the sandbox as a project wants it, where that is stricter."""
    from magy_server.config.narrowed_sandbox import narrowed, widening

    held = loaded.settings.sandbox
    found = narrowed(held.model_dump(), asked)
    settings = loaded.settings.model_copy(
        update={"sandbox": SandboxSettings.model_validate({**held.model_dump(), **found})}
    )
    origins = {**loaded.origins, **{f"sandbox.{name}": project for name in found}}
    ignored = (*loaded.ignored, *(f"{project}: sandbox.{name}" for name in widening(asked)))
    return replace(loaded, settings=settings, origins=origins, ignored=ignored)


def read(path: Path) -> Layer:
    """A magy.toml; one that does not exist is empty. Raises InvalidConfig."""
    try:
        text = _data(path).decode()
    except FileNotFoundError:
        return Layer(str(path), {})
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfig(_unreadable(path, error)) from None
    import tomllib  # many have no such file

    if _NESTED.search(text):
        raise InvalidConfig(
            f"{path} has a key of more than {_DEEPEST} parts; no setting is that deep."
        )
    try:
        return Layer(str(path), tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise InvalidConfig(f"{path} is not valid TOML: {error}.") from None
    except RecursionError:
        raise InvalidConfig(f"{path} is nested too deeply; no setting is.") from None


def _unreadable(path: Path, error: OSError | UnicodeDecodeError) -> str:
    if isinstance(error, UnicodeDecodeError):
        line = error.object.count(b"\n", 0, error.start) + 1
        return f"{path} is not UTF-8 text (line {line}); save it as UTF-8."
    return f"{path} cannot be read: {error.strerror}."


def read_servers(path: Path) -> tuple[Layer, list[str]]:
    """The MCP servers of a `.mcp.json` as a layer, and what is wrong in it, in sentences. One that
    does not exist has none."""
    nothing = Layer(str(path), {})
    try:
        text = _data(path).decode()
    except FileNotFoundError:
        return nothing, []
    except (OSError, UnicodeDecodeError) as error:
        return nothing, [_unreadable(path, error)]
    except InvalidConfig as error:
        return nothing, [error.message]
    tables, problems = parsed(text, str(path))
    return Layer(str(path), {"mcp": tables} if tables else {}), problems


def _doubled(layers: Iterable[Layer]) -> Iterator[str]:
    """Says which servers are told of twice under one name."""
    first: dict[str, str] = {}
    for layer in layers:
        for name, table in layer.values.get("mcp", {}).items():
            if says_how(table):
                if name in first:
                    yield (
                        f"Two MCP servers are called {name!r}: Magy uses that of {layer.name}, and "
                        f"not that of {first[name]}. Give one of them another name."
                    )
                first[name] = layer.name


def _data(path: Path) -> bytes:
    data = beginning(path, LARGEST)
    if data is None:
        raise InvalidConfig(
            f"{path} is not a regular file; write the settings into a regular file."
        )
    if len(data) > LARGEST:
        raise InvalidConfig(
            f"{path} is larger than {LARGEST >> 10} KB, the most that a settings file may be."
        )
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
        elif key in _CAPS:
            kept[key] = {f"max:{name}": cap for name, cap in value.items()}
        elif key == "guardrail" or (key == "bypass" and not value):
            kept[key] = value
        elif key == "examples":
            pass  # were tried just now, and some of the rules that they are about are left out here
        elif key == "mcp":
            kept[key] = {name: {"enabled": False} for name in value if _only_off(value[name])}
            ignored += [f"{layer.name}: {key}.{name}" for name in value if name not in kept[key]]
        elif key == "completion":
            kept[key] = {name: on for name, on in value.items() if name == "enabled" and not on}
            ignored += [f"{layer.name}: {key}.{name}" for name in value if name not in kept[key]]
        else:
            ignored.append(f"{layer.name}: {key}")
    return Layer(f"{layer.name} (not trusted)", kept), tuple(ignored)


def _only_narrowing(table: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Entries that only deny or ask. A list with an allow in it is left out whole: its order
    matters, and a part of it would mean something else."""
    kept = {key: rules for key, rules in table.items() if "allow" not in _actions(rules)}
    return kept, [key for key in table if key not in kept]


def _only_off(table: Mapping[str, Any]) -> bool:
    return table == {"enabled": False}


def _actions(rules: Any) -> set[str]:
    if isinstance(rules, str):
        return {rules}
    if isinstance(rules, Mapping):
        return {str(action) for action in rules.values()}
    return {action for rule in rules for action in _actions(rule)}


def validate(layer: Layer) -> Settings:
    """Raises InvalidConfig naming the layer, the key, and the key that was perhaps meant; also for
    a guardrail whose pattern cannot be used, and for an example that is not so."""
    if not layer.values:
        return _nothing_said()
    try:
        settings = Settings.model_validate(dict(layer.values))
    except ValidationError as error:
        problems = [_problem(item) for item in told(error.errors(include_url=False))[:5]]
        said = " ".join(one if one.endswith("?") else f"{one}." for one in problems)
        raise InvalidConfig(f"{layer.name}: {said}") from None
    check(settings.guardrail, layer.name)
    for pattern in settings.redact.patterns:
        if found_in(checked(pattern, f"{layer.name}: redact.patterns"), ""):
            raise InvalidConfig(
                f"{layer.name}: redact.patterns: {pattern!r} matches nothing at all, and so "
                "everywhere; let it match at least one character."
            )
    _try_examples(layer.name, settings)
    return settings


@lru_cache(maxsize=1)
def _nothing_said() -> Settings:
    """Most layers say nothing."""
    return Settings()


def _try_examples(source: str, settings: Settings) -> None:
    rules = ruleset(source, settings.permission)
    for key, calls in settings.examples.items():
        for call, expected in calls.items():
            if wrong := wrong_example(rules, key, call, expected):
                raise InvalidConfig(f"{source}: examples: {wrong}")


def _problem(item: Mapping[str, Any]) -> str:
    where = _place(item["loc"])
    if item["type"] != "extra_forbidden":
        return f"{where}{expectation(item)}"
    model: type[BaseModel] = Settings
    for step in item["loc"][:-1]:
        if step in model.model_fields:
            model = _inner(model.model_fields[step].annotation) or model
    near = difflib.get_close_matches(str(item["loc"][-1]), model.model_fields, 1)
    known = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(model.model_fields)}"
    return f"unknown key {where!r}; {known}"


def _place(steps: Sequence[str | int]) -> str:
    """Returns the dotted key; entries of a list are counted from 1, as people count."""
    found = ""
    for step in steps:
        if isinstance(step, int):
            found += f" {step + 1}"
        else:
            found += f".{step}" if found else step
    return found


def _inner(annotation: Any) -> type[BaseModel] | None:
    """The model of a field, also of a list or table of models."""
    for one in (annotation, *getattr(annotation, "__args__", ())):
        if isinstance(one, type) and issubclass(one, BaseModel):
            return one
    return None


def _merge(above: Layer, layers: list[Layer], ignored: tuple[str, ...]) -> Loaded:
    """`above`: what the administrator says, which comes first and has the last word."""
    merged: dict[str, Any] = {}
    origins: dict[str, str] = {}
    overruled: list[str] = []
    rules: list[tuple[str, Permission]] = []
    rails: list[tuple[str, tuple[Guardrail, ...]]] = []
    locked = validate(above).locked
    administrator.check_locked(locked, above.name)
    for layer in (above, *layers):
        values = dict(layer.values)
        if layer is not above:
            administrator.check_locks_nothing(values, layer.name, above.name)
            values, lost = administrator.without_locked(values, locked)
            overruled += [f"{key} of {layer.name}" for key in lost]
        for key in _CAPS:
            caps = values.get(key)
            if isinstance(caps, Mapping) and any(name.startswith("max:") for name in caps):
                values[key] = _lowered(key, merged.get(key, {}), caps)
        found = validate(Layer(layer.name, values)).guardrail
        if table := values.pop("permission", None):
            rules.append((layer.name, table))
            _trace(origins, layer.name, {"permission": table})
        if values.pop("guardrail", None):
            rails.append((layer.name, tuple(found)))
        values.pop("examples", None)
        values.pop("locked", None)
        _trace(origins, layer.name, values)
        for key, value in values.items():
            merged[key] = _joined(key, merged.get(key), value)
    _limit(merged, origins, rails)
    _cap(merged, origins, above)
    return Loaded(
        Settings.model_validate(merged), tuple(rules), tuple(rails), ignored, tuple(overruled),
        origins=origins,
    )  # fmt: skip


def _cap(merged: dict[str, Any], origins: dict[str, str], above: Layer) -> None:
    """Brings what was merged down to what the administrator allows."""
    for table in _CAPS:
        caps = {f"max:{name}": cap for name, cap in above.values.get(table, {}).items()}
        if lowered := _lowered(table, merged.get(table, {}), caps):
            merged[table] = {**merged.get(table, {}), **lowered}
            origins |= {f"{table}.{name}": above.name for name in lowered}
    if above.values.get("bypass") is False:
        merged["bypass"], origins["bypass"] = False, above.name


def _limit(
    merged: dict[str, Any],
    origins: dict[str, str],
    rails: Iterable[tuple[str, tuple[Guardrail, ...]]],
) -> None:
    """Lowers the tokens of a run to the least that a guardrail has, whatever any layer says."""
    for source, some in rails:
        for rail in some:
            now = merged.get("limits", {}).get("run_tokens", 0)
            if rail.action == "limit" and (not now or rail.tokens < now):
                merged["limits"] = {**merged.get("limits", {}), "run_tokens": rail.tokens}
                origins["limits.run_tokens"] = f"{source}: guardrail"


def _lowered(table: str, held: Mapping[str, Any], caps: Mapping[str, Any]) -> dict[str, Any]:
    """The limits that an untrusted project changes: only to stricter ones. In `limits` 0 means
    none, so is widest; in `spawn` it is what it is, and clamped."""
    lowered: dict[str, Any] = {}
    if not caps:
        return lowered
    defaults = Settings().model_dump()[table]
    for name, cap in caps.items():
        name = name.removeprefix("max:")
        now = held.get(name, defaults.get(name, 0))
        if (table == "spawn" or cap) and (cap < now or (table == "limits" and not now)):
            lowered[name] = cap
    return lowered


def _trace(origins: dict[str, str], layer: str, values: Mapping[str, Any]) -> None:
    """Notes what `layer` sets, as `_merge` lets it: tables key by key, a provider as a whole, and
    permissions beside those of the layers before."""
    for key, value in values.items():
        if key == "provider":
            for one in value:
                path = f"provider.{one['name']}"
                for known in [known for known in origins if known.rpartition(".")[0] == path]:
                    del origins[known]
                origins |= {f"{path}.{name}": layer for name in one if name != "name"}
        elif key == "permission":
            for name in value:
                before = origins.get(f"permission.{name}")
                origins[f"permission.{name}"] = f"{before}, {layer}" if before else layer
        elif isinstance(value, Mapping):
            origins |= {f"{key}.{name}": layer for name in value}
        else:
            origins[key] = layer


def _joined(key: str, old: Any, new: Any) -> Any:
    if key == "provider" and old:
        names = {provider["name"] for provider in new}
        return [p for p in old if p["name"] not in names] + list(new)
    if key == "hook" and old:
        return [*old, *new]
    if key == "mcp" and old:
        changed = {name: {**old.get(name, {}), **new[name]} for name in new}
        return {**old, **{n: new[n] if says_how(new[n]) else changed[n] for n in new}}
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return {**old, **new}
    return new
