"""The parameters that ACP clients send, as pydantic models: `magy_server/acp/v1.py` and `v2.py`.

The schemas in `scripts/schemas/` are those of the npm package `@agentclientprotocol/sdk` 2.4.0
(Apache-2.0), without their descriptions. Only what an agent is sent is generated: requests,
notifications, and the answers to what it asks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

WIDE = 100
"""Characters of a line."""
Schema = Mapping[str, Any]
SCHEMAS = Path(__file__).parent / "schemas"
ROOTS = {
    1: (
        "InitializeRequest", "AuthenticateRequest", "NewSessionRequest", "LoadSessionRequest",
        "ResumeSessionRequest", "ForkSessionRequest", "ListSessionsRequest",
        "CloseSessionRequest", "DeleteSessionRequest", "SetSessionModeRequest",
        "SetSessionConfigOptionRequest", "PromptRequest", "CancelNotification",
        "RequestPermissionResponse", "ReadTextFileResponse",
    ),
    2: (
        "InitializeRequest", "LoginAuthRequest", "NewSessionRequest", "ResumeSessionRequest",
        "SetSessionConfigOptionRequest", "PromptRequest",
    ),
}  # fmt: skip
"""What is generated, and what that is made of; of version 2, what it does not have as version 1."""
SIMPLE = {
    "string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None",
    "object": "dict[str, Any]",
}  # fmt: skip


def schema(version: int) -> Schema:
    found: Schema = json.loads((SCHEMAS / f"acp-v{version}.json").read_text("utf-8"))
    return found


def module(version: int) -> Iterator[str]:
    """The whole file, as parts."""
    yield f'"""These models read what a client of ACP version {version} sends."""\n'
    models = [*_Models(schema(version)["$defs"]).all(ROOTS[version])]
    wide = any(len(line) > WIDE for model in models for line in model.splitlines())
    yield f"# fmt: off\n# ruff: noqa: {'E501, ' * wide}I001\n"
    yield "from typing import Any, Literal\n"
    yield "from magy_server.acp.shapes import Lax, Sent\n"
    yield from models


class _Models:
    def __init__(self, defs: Schema) -> None:
        self._defs = defs
        self._made: dict[str, str] = {}

    def all(self, roots: tuple[str, ...]) -> Iterator[str]:
        for name in roots:
            self._class(name, self._defs[name])
        yield from self._made.values()

    def _class(self, name: str, schema: Schema, tag: tuple[str, str] | None = None) -> str:
        """Its name; what it needs stands before it."""
        if name in self._made:
            return name
        self._made[name] = ""
        fields = [f"    {tag[0]}: Literal[{tag[1]!r}]"] if tag else []
        required = set(schema.get("required", ()))
        for key, body in {**_choices(schema), **schema.get("properties", {})}.items():
            if key != "_meta" or name == "ClientCapabilities":
                fields.append(f"    {self._field(key, body, required)}")
        del self._made[name]
        self._made[name] = "\n".join((f"\nclass {name}(Sent):", *(fields or ["    pass"])))
        return name

    def _field(self, key: str, body: Schema, required: set[str]) -> str:
        name = _snake(key)
        kind = self._kind(body)
        if key in required:
            return f"{name}: {kind}"
        if "None" not in kind.split(" | "):
            kind = f"{kind} | None"
        if body.get("x-deserialize-default-on-error"):
            kind = f"Lax[{kind}]"
        return f"{name}: {kind} = None"

    def _kind(self, schema: Schema) -> str:
        if "$ref" in schema:
            return self._named(schema["$ref"].rsplit("/", 1)[-1])
        if "const" in schema:
            return f"Literal[{schema['const']!r}]"
        for key in ("anyOf", "oneOf"):
            if key in schema:
                kinds = [self._variant(one) for one in schema[key]]
                return " | ".join(dict.fromkeys(kinds))
        if "allOf" in schema:
            return self._kind(schema["allOf"][0])
        kind = schema.get("type")
        if isinstance(kind, list):
            return " | ".join(self._kind({**schema, "type": one}) for one in kind)
        if kind == "array":
            return f"list[{self._kind(schema['items'])}]"
        return SIMPLE[kind] if kind else "Any"

    def _variant(self, schema: Schema) -> str:
        """One of several kinds of an object, told apart by a constant."""
        tags = [(key, body.get("const")) for key, body in schema.get("properties", {}).items()]
        if not tags or ("allOf" not in schema and "const" not in schema["properties"][tags[0][0]]):
            return self._kind(schema)
        (key, value), *_ = tags
        if "allOf" not in schema:
            return self._class(_pascal(f"{value}_{key}"), {}, (key, value))
        name = schema["allOf"][0]["$ref"].rsplit("/", 1)[-1]
        return self._class(name, self._defs[name], (key, value))

    def _named(self, name: str) -> str:
        body = self._defs[name]
        return self._class(name, body) if body.get("type") == "object" else self._kind(body)


def _choices(schema: Schema) -> dict[str, Any]:
    """The properties in which the forms of an object differ: each may be what it is in any."""
    found: dict[str, list[Schema]] = {}
    for form in schema.get("anyOf", ()):
        for key, body in form.get("properties", {}).items():
            found.setdefault(key, []).append(body)
    return {key: {"anyOf": bodies} for key, bodies in found.items()}


def _snake(key: str) -> str:
    if key == "_meta":
        return "meta"
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in key)


def _pascal(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))
