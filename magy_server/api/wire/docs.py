"""The wire tables as documentation."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from magy_server.api.wire.methods import Method
from magy_server.api.wire.refusals import NAME, PATTERNS
from magy_server.api.wire.shapes import LONGEST_ID, Wire


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


def _shapes(given: str, method: Method) -> Iterable[str]:
    yield from _table(given, method.params)
    if method.result:
        yield from _table("Result", method.result)


def _table(title: str, model: type[Wire]) -> Iterable[str]:
    schema = model.model_json_schema(by_alias=True)
    properties = schema.get("properties", {})
    if not properties:
        yield f"{title}: `{{}}`\n"
        return
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
        yield f"| {' | '.join([*cells, about(body).replace('|', chr(92) + '|')])} |"
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


def type_name(body: dict[str, Any]) -> str:
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
