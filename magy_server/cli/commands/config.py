"""`magy config` prints the settings that hold here and where each comes from, checks configuration
files, and trusts projects."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from magy_server.cli import exit_codes, project_directory
from magy_server.cli.composition import Composition
from magy_server.cli.project_trust import trusted
from magy_server.cli.screen.terminal import Screen, standard_output
from magy_server.cli.screen.text import Marks, Span, filled, record
from magy_server.config import administrator, hooks, layers
from magy_server.config.layers import Loaded
from magy_server.config.trust import magy_files
from magy_server.core.errors import InvalidConfig
from magy_server.core.settings import Settings
from magy_server.core.spawn_settings import clamped
from magy_server.core.text.columns import width_of
from magy_server.core.text.sanitizing import one_line
from magy_server.regex import regex

DEFAULT = "default"
FILE = "magy.toml"
_BARE = regex(r"[A-Za-z0-9_-]+\Z")
_VARIABLE = regex(r"[A-Z_][A-Z0-9_]*\Z")
_COMMENT = 44
"""Column of the origins."""
NAMED = 20
"""Files that are named where there may be thousands."""


def settings(options: argparse.Namespace, app: Composition) -> int:
    return asyncio.run(_settings(options, app))


async def _settings(options: argparse.Namespace, app: Composition) -> int:
    screen = Screen(output := standard_output())
    if options.schema:
        schema = Settings.model_json_schema()
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
        await output.write(json.dumps(schema, indent=2) + "\n")
        return exit_codes.DONE
    root, _ = project_directory.project(options.root, None)
    match options.verb:
        case "path":
            await screen.write(paths(root))
        case "check":
            return await _check(screen, options.file, root)
        case "trust" | "untrust":
            return await _trust(screen, app, root, trusted=options.verb == "trust")
        case _:
            known = await trusted(app, root)
            loaded = layers.load(root, trusted=known, options={})
            if options.json:
                await output.write(record(as_json(loaded, root, known)))
            else:
                await screen.write(table(loaded, root, known))
    return exit_codes.DONE


async def _check(screen: Screen, file: str | None, root: str) -> int:
    if file is not None and not os.path.isfile(file):
        raise InvalidConfig(f"There is no file {file}.")
    files = [Path(file)] if file is not None else _files(root)
    wrong = False
    spans: list[Span] = []
    for path in files:
        if not path.exists():
            spans.append((f"{screen.marks.skipped} {one_line(str(path))} does not exist\n", "dim"))
            continue
        try:
            layer = layers.read(path)
            found = layers.validate(layer)
            if path != administrator.FILE:
                administrator.check_locks_nothing(layer.values, layer.name, administrator.FILE)
        except InvalidConfig as error:
            wrong = True
            spans.append((f"{screen.marks.failed} {one_line(error.message)}\n", "red"))
        else:
            spans += _right(one_line(str(path)), found, screen.marks)
    if not wrong and file is None:
        layers.load(root, trusted=False, options={})  # what is wrong only together
    await screen.write(spans)
    return exit_codes.USAGE if wrong else exit_codes.DONE


def _files(root: str) -> list[Path]:
    """The administrator's is there on few machines."""
    above = [path for path in [administrator.FILE] if path.exists()]
    return [*above, layers.config_dir() / FILE, Path(root) / FILE]


def _right(path: str, found: Settings, marks: Marks) -> list[Span]:
    from magy_server.tools.watched_names import of_guardrails, of_hooks

    remarks = clamped(found.spawn)[1]
    unwatched = [*of_guardrails(found.guardrail), *of_hooks(hooks.own(found))]
    if not remarks and not unwatched:
        return [(marks.done, "green"), (f" {path} is right\n", "")]
    spans: list[Span] = []
    if remarks:
        head = f"{path} sets values out of range; the nearest allowed value applies:"
        spans += _noticed(head, remarks, marks)
    if unwatched:
        spans += _noticed(f"{path} watches what is not there:", unwatched, marks)
    return spans


def _noticed(head: str, remarks: Sequence[str], marks: Marks) -> list[Span]:
    lines = [f"{marks.notice} {head}", *(f"  {one_line(remark)}" for remark in remarks)]
    return [(f"{line}\n", "yellow") for line in lines]


async def _trust(screen: Screen, app: Composition, root: str, *, trusted: bool) -> int:
    async with app.compose([root], {}) as (_, trust):
        await trust.set(root, trusted)
    if trusted:
        spans = await asyncio.to_thread(_vouched_for, root, screen.width)
    else:
        said = f"{root} is not trusted: its Magy files can only restrict what is allowed."
        spans = [(filled(one_line(said), screen.width), "")]
    await screen.write(spans)
    return exit_codes.DONE


def _vouched_for(root: str, width: int | None) -> list[Span]:
    """Returns the files that the trust is for."""
    names = sorted(os.path.relpath(path, root) for path in magy_files(root))
    head = f"{one_line(root)} is trusted with its present Magy files"
    if not names:
        return [(filled(f"{head}: there are none. Run this again when there are.", width), "")]
    more = [f"and {len(names) - NAMED:,} more"] if len(names) > NAMED else []
    spans = [(filled(f"{head}:", width), "")]
    spans += [(f"  {one_line(name)}\n", "") for name in [*names[:NAMED], *more]]
    return [*spans, (filled("When one of them changes, run this again.", width), "")]


# --- what is printed ------------------------------------------------------------------------------


def paths(root: str) -> list[Span]:
    found = [
        ("administrator's", administrator.FILE),
        ("user configuration", layers.config_dir() / FILE),
        ("project configuration", Path(root) / FILE),
        ("sessions", layers.state_dir()),
    ]
    spans: list[Span] = []
    for name, path in found:
        there = "" if path.exists() else "  (does not exist)"
        spans += [(f"{name:<23}", "bold"), (one_line(str(path)), ""), (f"{there}\n", "dim")]
    return spans


def flattened(loaded: Loaded) -> dict[str, Any]:
    """Returns every value that holds by its dotted key, without rules and guardrails: Magy judges
    these layer by layer, and never merges them."""
    found: dict[str, Any] = {}
    settings = loaded.settings.model_copy(update={"spawn": loaded.settings.spawn.held})
    values = settings.model_dump(
        mode="json", exclude={"permission", "guardrail", "examples", "locked"}
    )
    providers = values.pop("provider")
    for server in values["mcp"].values():
        for hidden in ("env", "headers"):
            server[hidden] = dict.fromkeys(server[hidden], "(hidden)")
    for key, value in values.items():
        if isinstance(value, Mapping):
            found |= {f"{key}.{name}": public(name, inner) for name, inner in value.items()}
        else:
            found[key] = public(key, value)
    for provider in providers:
        prefix = f"provider.{provider.pop('name')}"
        found |= {f"{prefix}.{key}": public(key, value) for key, value in provider.items()}
    return found


def asked(loaded: Loaded) -> dict[str, Any]:
    """Returns by dotted key what somebody asked for where something else holds."""
    spawn = loaded.settings.spawn
    holds = spawn.held.model_dump(mode="json")
    return {
        f"spawn.{key}": value
        for key, value in spawn.model_dump(mode="json").items()
        if value != holds[key]
    }


def public(key: str, value: Any) -> Any:
    """Returns the settings without secrets that people put there: a key in the place of its
    variable's name, credentials in an address."""
    if not isinstance(value, str) or not value:
        return value
    if key.endswith("_env") and not _VARIABLE.match(value) and value not in os.environ:
        return "(hidden: this is not the name of a variable)"
    if key.endswith("_url"):
        return _address(value)
    return value


def _address(url: str) -> str:
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "(hidden: this is not an address)"
    if "@" in parts.netloc:
        parts = parts._replace(netloc=f"(hidden)@{host}")
    if parts.query:
        parts = parts._replace(query="(hidden)")
    return parts.geturl()


def as_json(loaded: Loaded, root: str, trusted: bool) -> dict[str, Any]:
    wanted = asked(loaded)
    return {
        "root": root,
        "trusted": trusted,
        "values": {
            key: {
                "value": value,
                "origin": loaded.origins.get(key, DEFAULT),
                **({"asked": wanted[key]} if key in wanted else {}),
            }
            for key, value in flattened(loaded).items()
        },
        "permission": [{"origin": source, "rules": rules} for source, rules in loaded.rules],
        "guardrail": [
            {"origin": source, **rail.model_dump(mode="json", exclude_defaults=True)}
            for source, rails in loaded.guardrails
            for rail in rails
        ],
        "ignored": list(loaded.ignored),
        "overruled": list(loaded.overruled),
    }


def table(loaded: Loaded, root: str, trusted: bool) -> list[Span]:
    """Returns TOML; after each value a comment says where it comes from."""
    said = "trusted" if trusted else "not trusted: its own files can only restrict"
    spans: list[Span] = [(f"# {one_line(root)} ({said})\n", "dim")]
    flat = flattened(loaded)
    origins = {**loaded.origins}
    for key, value in asked(loaded).items():
        origins[key] = f"{origins.get(key, DEFAULT)}, asked: {toml(value)}"
    top = {key: value for key, value in flat.items() if "." not in key}
    spans += _lines(top, "", origins)
    for section in dict.fromkeys(key.rpartition(".")[0] for key in flat if "." in key):
        inside = {k: v for k, v in flat.items() if k.rpartition(".")[0] == section}
        spans.append((f"\n[{_section(section)}]\n", "heading"))
        spans += _lines(inside, f"{section}.", origins)
    for source, rules in loaded.rules:
        spans += [("\n[permission]", "heading"), (f"  # {one_line(source)}\n", "dim")]
        spans += [(f"{_name(key)} = {toml(value)}\n", "") for key, value in rules.items()]
    for source, rails in loaded.guardrails:
        for rail in rails:
            spans += [("\n[[guardrail]]", "heading"), (f"  # {one_line(source)}\n", "dim")]
            given = rail.model_dump(mode="json", exclude_defaults=True)
            spans += [(f"{key} = {toml(value)}\n", "") for key, value in given.items()]
    for what in loaded.ignored:
        spans.append(
            (f"\n# ignored, because the project is not trusted: {one_line(what)}", "yellow")
        )
    for what in loaded.overruled:
        spans.append((f"\n# locked by {administrator.FILE}: {one_line(what)}", "yellow"))
    return [*spans, ("\n", "")] if loaded.ignored or loaded.overruled else spans


def _section(dotted: str) -> str:
    first, dot, rest = dotted.partition(".")
    return f"{first}.{_name(rest)}" if dot else first


def _lines(values: Mapping[str, Any], prefix: str, origins: Mapping[str, str]) -> list[Span]:
    spans: list[Span] = []
    for key, value in values.items():
        if value is None:
            continue  # TOML has no word for nothing
        origin = origins.get(key, DEFAULT)
        left = f"{_name(key.removeprefix(prefix))} = {toml(value)}"
        gap = " " * max(2, _COMMENT - width_of(left))
        spans += [
            (left, "" if origin == DEFAULT else "bold"),
            (f"{gap}# {one_line(origin)}\n", "dim" if origin == DEFAULT else "cyan"),
        ]
    return spans


def _name(key: str) -> str:
    return key if _BARE.match(key) else json.dumps(key)


def toml(value: Any) -> str:
    """Returns a value as TOML writes it, on one line."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(one_line(value) if "\n" not in value else value, ensure_ascii=False)
        case Mapping():
            pairs = (f"{_name(k)} = {toml(v)}" for k, v in value.items() if v is not None)
            return f"{{ {', '.join(pairs)} }}" if value else "{}"
        case Sequence():
            return f"[{', '.join(map(toml, value))}]"
    return str(value)
