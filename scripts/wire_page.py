"""The wire tables as documentation: the parts of `docs/protocol.md`."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel

from magy_server.api import wire
from magy_server.api.wire import (
    announcing,
    children,
    codes,
    edit_objects,
    graphs,
    live_edits,
    magi,
    reviews,
    sessions,
    updates,
)
from magy_server.api.wire.commands import COMMANDS
from magy_server.api.wire.methods import CLIENT_TO_SERVER, SERVER_TO_CLIENT
from magy_server.api.wire.refusals import NAME, PATTERNS
from magy_server.api.wire.shapes import LONGEST_ID
from magy_server.api.wire.updates import STOPS, UPDATES, Update, kind_of
from magy_server.api.wire.verbs import Method
from scripts import wire_conversation
from scripts.wire_samples import samples

WIDTH = 100
STAMPED = ("seq", "at")
"""What each update from the log has; the page says it once."""


def page() -> Iterable[str]:
    """`docs/protocol.md`, from the top."""
    yield f"# The wire\n\n{inspect.getdoc(wire)}\n"
    yield f"## A conversation\n\n{_conversation()}\n"
    yield f"## Sessions\n\n{_sessions()}\n"
    yield f"## Edits of open files\n\n{live_edits.described()}\n"
    yield f"### Edits as objects\n\n{inspect.getdoc(edit_objects)}\n"
    yield from _named(edit_objects.OBJECTS)
    yield f"## Reviews\n\n{inspect.getdoc(reviews)}\n"
    yield f"## Children\n\n{inspect.getdoc(children)}\n"
    yield f"## Graphs of tasks\n\n{inspect.getdoc(graphs)}\n"
    yield f"## Deliberations\n\n{inspect.getdoc(magi)}\n"
    yield f"## What a client announces\n\n{inspect.getdoc(announcing)}\n"
    yield from _named(announcing.PARTS)
    yield f"## Errors\n\n{inspect.getdoc(codes)}\n"
    yield from _meanings("Code", codes.CODES)
    yield from _reasons()
    yield f"## Updates\n\n{inspect.getdoc(updates)}\n"
    yield from kinds()
    yield f"## Methods\n\n{_FIELDS}\n"
    yield "## From the client\n"
    yield from describe(CLIENT_TO_SERVER)
    yield "## From the server\n"
    yield from describe(SERVER_TO_CLIENT)
    yield f"## Commands\n\n{_COMMANDS}\n"
    yield from commands(COMMANDS)


_FIELDS = (
    "A field marked `?` may be left out. An `id` is a string of 1 to "
    f"{LONGEST_ID} characters:\n{PATTERNS[NAME]}. An unknown field is refused, but\n"
    "for `_meta`, which may stand anywhere. Params are an object, never a list. Types in capitals\n"
    "are under [Types](#types)."
)
_COMMANDS = (
    "Of `workspace/executeCommand`, for any client; each takes one object as its argument.\n"
    "Those of a review: [in an editor without Magy code]"
    "(howto/review.md#in-an-editor-without-magy-code)."
)


@cache
def schema_of(model: type[BaseModel]) -> Mapping[str, Any]:
    return model.model_json_schema(by_alias=True)


def shapes() -> Mapping[str, Mapping[str, Any]]:
    """The schemas, by name, of the types that the page names."""
    found: dict[str, Mapping[str, Any]] = {}
    methods = (*CLIENT_TO_SERVER, *SERVER_TO_CLIENT, *COMMANDS)
    for model in [one for each in methods for one in (each.params, each.result)] + [*UPDATES]:
        if model:
            found |= schema_of(model).get("$defs", {})
    inside = ("Stamp", "Meta")
    return {name: one for name, one in found.items() if not any(part in name for part in inside)}


def _conversation() -> str:
    """Its messages stand on one line each; people read them on several."""

    def laid_out(message: re.Match[str]) -> str:
        return f"{message[1]} {pretty(json.loads(message[2]))}"

    text = inspect.getdoc(wire_conversation) or ""
    return re.sub(r"^(->|<-) (.*)$", laid_out, text, flags=re.MULTILINE)


def _sessions() -> str:
    stops = "\n".join(_meanings("`stop`", STOPS))
    return (inspect.getdoc(sessions) or "").replace("STOPS\n", stops)


def _named(models: Iterable[type[BaseModel]]) -> Iterable[str]:
    """Shapes that are described where they are used, and not among the types."""
    for model in models:
        yield f"**{model.__name__}**\n"
        yield from _table("Field", model)


def _meanings(title: str, meanings: Mapping[Any, str]) -> Iterable[str]:
    yield f"| {title} | |\n|---|---|"
    yield from (f"| `{word}` | {said} |" for word, said in meanings.items())
    yield ""


def _reasons() -> Iterable[str]:
    yield "| `data.reason` | Code | |\n|---|---|---|"
    for reason, said in codes.REASONS.items():
        numbers = ", ".join(f"`{code}`" for code in codes.CODES_OF[reason])
        yield f"| `{reason}` | {numbers} | {said} |"
    yield ""


def describe(methods: Iterable[Method]) -> Iterable[str]:
    """Markdown, one section a method."""
    for method in methods:
        kind = "request" if method.result else "notification"
        yield f"### `{method.name}` ({kind})\n\n{method.about}\n"
        yield from _shapes("Params", method)


def commands(methods: Iterable[Method]) -> Iterable[str]:
    """The same for commands."""
    for method in methods:
        yield f"### `{method.name}`\n\n{method.about}\n"
        yield from _shapes("Argument", method)


def kinds() -> Iterable[str]:
    """The same for kinds of updates, each with an example of every form that it has."""
    for model in UPDATES:
        yield f"### `{kind_of(model)}`\n\n{model.__doc__ and _joined(model.__doc__)}\n"
        yield "| Field | Type | |\n|---|---|---|"
        yield from _rows(_update_fields(model))
        yield ""
        forms: dict[tuple[str, ...], Mapping[str, Any]] = {}
        for one in samples():
            if one["sessionUpdate"] == kind_of(model):
                forms.setdefault(_form(one), one)
        yield from (f"```json update\n{pretty(one)}\n```\n" for one in forms.values())


def _update_fields(model: type[Update[Any]]) -> Iterable[tuple[str, Mapping[str, Any], bool]]:
    """(name, schema, whether it may be left out); what `_meta.magy` holds comes last."""
    schema = schema_of(model)
    required = schema.get("required", [])
    for name, body in schema["properties"].items():
        if name not in ("sessionUpdate", "_meta"):
            yield name, body, name not in required
    stamp = next(part for name, part in schema["$defs"].items() if name.endswith("Stamp"))
    for name, body in stamp["properties"].items():
        if name not in STAMPED:
            yield f"_meta.magy.{name}", body, name not in stamp.get("required", [])


def _rows(fields: Iterable[tuple[str, Mapping[str, Any], bool]]) -> Iterable[str]:
    for name, body, optional in fields:
        cells = (f"`{name}{'?' * optional}`", type_name(_given(body, optional)), _said(body))
        yield f"| {' | '.join(cells)} |"


def _said(body: Mapping[str, Any]) -> str:
    return about(body).replace("|", "\\|")


def _given(body: Mapping[str, Any], optional: bool) -> Mapping[str, Any]:
    """Its shape where it is there: what may be left out is never null."""
    options = [one for one in body.get("anyOf", ()) if one.get("type") != "null"]
    return {"anyOf": options} if optional and options else body


def _form(update: Mapping[str, Any]) -> tuple[str, ...]:
    inner = update.get("_meta", {}).get("magy", {})
    return (*sorted(update), *sorted(inner), str(update.get("state", "")))


def pretty(value: Any, indent: str = "") -> str:
    """JSON on few lines that are not too long."""
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(line) <= WIDTH or not isinstance(value, dict | list) or not value:
        return line
    inner = f"{indent}  "
    if isinstance(value, list):
        items = [pretty(one, inner) for one in value]
        return f"[\n{inner}" + f",\n{inner}".join(items) + f"\n{indent}]"
    items = [
        f"{json.dumps(key, ensure_ascii=False)}: {pretty(one, inner)}" for key, one in value.items()
    ]
    return f"{{\n{inner}" + f",\n{inner}".join(items) + f"\n{indent}}}"


def _joined(text: str) -> str:
    return " ".join(text.split())


def _shapes(given: str, method: Method) -> Iterable[str]:
    yield from _table(given, method.params)
    if method.result:
        yield from _table("Result", method.result)


def _table(title: str, model: type[BaseModel]) -> Iterable[str]:
    schema = schema_of(model)
    properties = schema.get("properties", {})
    if not properties:
        yield f"{title}: `{{}}`\n"
        return
    if described := schema.get("description"):
        yield f"{_joined(described)}\n"
    sent = title != "Result"
    yield (
        f"| {title} | Type | Default | |\n|---|---|---|---|"
        if sent
        else (f"| {title} | Type | |\n|---|---|---|")
    )
    required = schema.get("required", [])
    for name, body in properties.items():
        optional = "" if name in required else "?"
        cells = [f"`{name}{optional}`", type_name(body)]
        cells += [default(body)] if sent else []
        yield f"| {' | '.join([*cells, _said(body)])} |"
    yield ""


def default(body: Mapping[str, Any]) -> str:
    """What holds if it is left out. That of a whole type is with the type."""
    if body.get("default") is None or "$ref" in body:
        return ""
    return f"`{json.dumps(body['default'])}`"


def about(body: Mapping[str, Any]) -> str:
    """What it means, and which values it may have."""
    said, held = body.get("description", ""), bounds(body)
    return f"{said} ({held})" if said and held else said or held


def bounds(body: Mapping[str, Any]) -> str:
    """In the words of people; "" if any value of its type will do."""
    if options := body.get("anyOf"):
        return "; ".join(filter(None, map(bounds, options)))
    if body.get("pattern") == NAME and body.get("maxLength") == LONGEST_ID:
        return ""
    found = [
        _span(body.get("minimum"), body.get("maximum"), ""),
        _span(body.get("minLength"), body.get("maxLength"), " characters"),
        _span(body.get("minItems"), body.get("maxItems"), " items"),
    ]
    if body.get("pattern") not in (None, NAME):
        found.append(PATTERNS[body["pattern"]])
    each = bounds(items) if isinstance(items := body.get("items"), dict) else ""
    return ": ".join(filter(None, [*found, each and f"each {each}"]))


def _span(least: float | None, most: float | None, of: str) -> str:
    if most is None:
        if least is None:
            return ""
        return "not empty" if of and least == 1 else f"{least:,} or more{of}"
    return f"{least:,} to {most:,}{of}" if least is not None else f"at most {most:,}{of}"


def type_name(body: Mapping[str, Any]) -> str:
    """A JSON Schema as a short type, in TypeScript's words."""
    if "$ref" in body:
        return str(body["$ref"]).rsplit("/", 1)[-1]
    if body.get("pattern") == NAME:
        return "id"
    if "const" in body:
        return f'"{body["const"]}"'
    if "enum" in body:
        return " \\| ".join(f'"{value}"' for value in body["enum"])
    if alternatives := body.get("anyOf") or body.get("oneOf") or body.get("allOf"):
        return " \\| ".join(type_name(option) for option in alternatives)
    if body.get("type") == "array":
        item = type_name(body.get("items", {}))
        return f"({item})[]" if " " in item else f"{item}[]"
    return str(body.get("type", "any"))
