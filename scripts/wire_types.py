"""The wire tables as TypeScript: `clients/vscode/src/wire/generated.ts`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from magy_server.api.wire.announcing import Announcement
from magy_server.api.wire.commands import COMMANDS
from magy_server.api.wire.methods import CLIENT_TO_SERVER, SERVER_TO_CLIENT
from magy_server.api.wire.names import COMMANDS as EVERY_COMMAND
from magy_server.api.wire.updates import UPDATES
from magy_server.api.wire.verbs import Method

Schema = Mapping[str, Any]
Mode = Literal["validation", "serialization"]
Used = tuple[type[BaseModel], Mode]
SENT: Mode = "validation"
"""By the client, which may leave out what has a default."""
RECEIVED: Mode = "serialization"
"""From the server, which always says it."""

CLOSER: Mapping[tuple[str, str], str] = {
    ("SessionUpdate", "update"): "AnyUpdate",
    ("Update", "update"): "AnyUpdate",
    ("Interaction", "content"): "(Output | Diff)[]",
    ("Summary", "plan"): "PlanEntry[]",
    **{(type, "cost"): "Cost" for type in ("Child", "ChildReport", "Summary")},
    **{(type, "treeCost"): "Cost" for type in ("Child", "Summary")},
}
"""Fields whose type the server leaves open because it builds them apart."""
TABLES = {
    "Requests": "What the client asks",
    "EditorRequests": "What the server asks the editor",
    "Commands": "Commands with an object as their argument",
}
COST = """\
/** US dollars; nothing of it is there before the first request. */
export interface Cost {
  amount?: number;
  currency?: string;
  /** Requests whose price is not known */
  unpriced?: number;
}
"""


class _Said(GenerateJsonSchema):
    """Of what the server sends, every field is there: a default is said, too."""

    def field_is_required(self, field: Any, total: bool) -> bool:
        return self.mode == RECEIVED or super().field_is_required(field, total)


def module() -> Iterable[str]:
    """The whole file, as parts."""
    # Updates are made by hand: what is not said of them is left out.
    updates: list[Used] = [(model, SENT) for model in UPDATES]
    asked = list(_models(CLIENT_TO_SERVER, SENT, RECEIVED))
    told = list(_models(SERVER_TO_CLIENT, RECEIVED, SENT))
    ran = list(_models(COMMANDS, SENT, RECEIVED))
    every: list[Used] = [*updates, *asked, *told, *ran, (Announcement, SENT)]
    unique = list(dict.fromkeys(every))
    schemas, whole = models_json_schema(unique, by_alias=True, schema_generator=_Said)
    names = {used: _clean(str(schemas[used]["$ref"]).rsplit("/", 1)[-1]) for used in unique}
    yield COST
    for name, schema in sorted(whole["$defs"].items()):
        yield _type(_clean(name), schema)
    yield "/** What happens in a session, told apart by `sessionUpdate`. */"
    yield f"export type AnyUpdate = {' | '.join(names[one] for one in updates)};\n"
    requests = [one for one in SERVER_TO_CLIENT if one.result]
    news = [one for one in SERVER_TO_CLIENT if not one.result]
    yield from _table("Requests", CLIENT_TO_SERVER, names, SENT, RECEIVED)
    yield from _table("EditorRequests", requests, names, RECEIVED, SENT)
    yield from _table("Commands", COMMANDS, names, SENT, RECEIVED)
    yield "/** Notifications from the server: the type of their parameters. */"
    yield "export interface Notifications {"
    for one in news:
        yield f'{_comment(one.about, "  ")}  "{one.name}": {names[one.params, RECEIVED]};'
    yield "}\n"
    yield from _names("NOTIFICATIONS", "Every name of `Notifications`.", news)
    yield from _names("EDITOR_REQUESTS", "Every name of `EditorRequests`.", requests)
    yield (
        "/** What the server takes in `workspace/executeCommand`: the language client registers a\n"
        " * command of each name, so that nothing else may. */"
    )
    yield _list("SERVER_COMMANDS", EVERY_COMMAND)


def _names(constant: str, about: str, methods: Iterable[Method]) -> Iterator[str]:
    yield f"/** {about} */"
    yield _list(constant, (one.name for one in methods)) + "\n"


def _list(constant: str, names: Iterable[str]) -> str:
    lines = "\n".join(f'  "{name}",' for name in names)
    return f"export const {constant} = [\n{lines}\n] as const;"


def _models(methods: Iterable[Method], params: Mode, result: Mode) -> Iterator[Used]:
    for one in methods:
        yield one.params, params
        if one.result:
            yield one.result, result


def _table(
    name: str, methods: Iterable[Method], names: Mapping[Used, str], params: Mode, result: Mode
) -> Iterator[str]:
    yield f"/** {TABLES[name]}: parameters and result by name. */\nexport interface {name} {{"
    for one in methods:
        assert one.result
        yield f'{_comment(one.about, "  ")}  "{one.name}": {{'
        yield f"    params: {names[one.params, params]};"
        yield f"    result: {names[one.result, result]};\n  }};"
    yield "}\n"


def _clean(name: str) -> str:
    """A schema's name as an identifier: `Meta_ChildStamp_` is `MetaChildStamp`."""
    return re.sub(r"[^A-Za-z0-9]", "", name.removesuffix("-Output"))


def _type(name: str, schema: Schema) -> str:
    about = _comment(schema.get("description", ""))
    if "properties" not in schema:
        if schema.get("type") == "object":
            return f"{about}export type {name} = Record<string, never>;\n"
        return f"{about}export type {name} = {_name(schema)};\n"
    required = schema.get("required", [])
    rows = []
    for key, body in schema["properties"].items():
        optional = key not in required
        kind = CLOSER.get((name, key)) or _name(body)
        mark = "?" if optional else ""
        rows.append(f"{_comment(body.get('description', ''), '  ')}  {key}{mark}: {kind};")
    return f"{about}export interface {name} {{\n" + "\n".join(rows) + "\n}\n"


def _comment(text: str, indent: str = "") -> str:
    """As a comment before what it is about, or nothing."""
    words = " ".join(text.split()).replace("*/", "* /")
    return f"{indent}/** {words} */\n" if words else ""


def _name(body: Schema) -> str:
    """A JSON Schema as a TypeScript type."""
    if "$ref" in body:
        return _clean(str(body["$ref"]).rsplit("/", 1)[-1])
    if "const" in body:
        return f'"{body["const"]}"'
    if "enum" in body:
        return " | ".join(f'"{value}"' for value in body["enum"])
    if options := body.get("anyOf") or body.get("oneOf") or body.get("allOf"):
        return " | ".join(dict.fromkeys(_name(option) for option in options))
    match body.get("type"):
        case "array":
            inner = _name(body.get("items", {}))
            return f"({inner})[]" if " " in inner else f"{inner}[]"
        case "object":
            inner = body.get("additionalProperties", True)
            return f"Record<string, {'unknown' if isinstance(inner, bool) else _name(inner)}>"
        case "integer" | "number":
            return "number"
        case "string" | "boolean" | "null" as simple:
            return str(simple)
    return "unknown"
