"""The wire tables as documentation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from magy_server.lsp.methods import Method
from magy_server.lsp.wire import Wire


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
    yield f"| {title} | Type | |\n|---|---|---|"
    required = schema.get("required", [])
    for name, body in properties.items():
        optional = "" if name in required else "?"
        about = body.get("description", "").replace("|", "\\|")
        yield f"| `{name}{optional}` | {type_name(body)} | {about} |"
    yield ""


def type_name(body: dict[str, Any]) -> str:
    """A JSON Schema as a short type, in TypeScript's words."""
    if "$ref" in body:
        return str(body["$ref"]).rsplit("/", 1)[-1]
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
