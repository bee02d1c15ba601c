"""This module writes a form of an MCP server as an `elicitation/create`, which both versions have
alike, and reads the answer. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from magy_server.acp.options import Json
from magy_server.core.agents import tree
from magy_server.core.errors import InvalidRequest

if TYPE_CHECKING:
    from magy_server.api.wire import sessions as wire
    from magy_server.api.wire.forms import Form, FormField

METHOD = "elicitation/create"
ACTIONS = ("accept", "decline", "cancel")
_BOUNDS = {
    "string": ("minLength", "maxLength"), "array": ("minItems", "maxItems"), "boolean": ("", ""),
    "number": ("minimum", "maximum"), "integer": ("minimum", "maximum"),
}  # fmt: skip
"""By type, what its bounds are called."""


def asking(question: wire.Interaction, form: Form, wrong: str) -> Json:
    """The parameters of the request. `wrong`: why the answer before this one did not do."""
    own = question.session_id == tree.root(question.session_id)
    call = {"toolCallId": question.tool_call_id} if own else {}
    message = f"The MCP server {form.server} asks: {form.message}\n\n({question.rule})"
    return {
        "sessionId": tree.root(question.session_id),
        **call,
        "mode": "form",
        "message": f"{wrong}\n\n{message}" if wrong else message,
        "requestedSchema": {
            "type": "object",
            "properties": {field.name: _property(field) for field in form.fields},
            "required": [field.name for field in form.fields if field.required],
        },
        "_meta": {"magy": {"interactionId": question.interaction_id, "rule": question.rule}},
    }


def answer_of(given: Any) -> tuple[str, Mapping[str, Any]]:
    """What was done with the form (accept, decline or cancel), and what was filled in. Raises
    InvalidRequest."""
    said = given if isinstance(given, dict) else {}
    action, content = said.get("action"), said.get("content")
    if action not in ACTIONS:
        raise InvalidRequest(f"{METHOD}: action must be one of {', '.join(ACTIONS)}.")
    if content is not None and not isinstance(content, dict):
        raise InvalidRequest(f"{METHOD}: content must be an object.")
    return action, content or {}


def _property(field: FormField) -> Json:
    words = {"title": field.title, "description": field.about, "default": field.default}
    found: Json = {key: value for key, value in words.items() if value not in ("", None)}
    low, high = _BOUNDS["array" if field.many else field.type]
    whole = field.many or field.type != "number"
    for name, bound in ((low, field.low), (high, field.high)):
        if name and bound is not None:
            found[name] = int(bound) if whole else bound
    choices = [{"const": one.value, "title": one.name or one.value} for one in field.choices]
    if field.many:
        return {"type": "array", "items": {"anyOf": choices}, **found}
    if choices:
        found["oneOf"] = choices
    if field.format:
        found["format"] = field.format
    return {"type": field.type, **found}
