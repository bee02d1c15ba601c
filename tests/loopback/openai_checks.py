"""What the OpenAI APIs refuse with 400, as far as Magy could get it wrong, in their own words.
Which fields there are is read from the types of the official SDK."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, get_args, get_type_hints

from .images import MAGIC
from .parts import Fault

_REASONS = re.compile(r"(o\d|gpt-[5-9])")
"""Models that reason, and refuse parameters of sampling."""
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_URL = re.compile(r"data:(image/(?:png|jpeg|gif|webp));base64,(.*)", re.DOTALL)

# --- errors and models, the same on both wires --------------------------------------------------

_ERRORS: Mapping[str, tuple[str, str | None]] = {
    "400": ("invalid_request_error", None),
    "401": ("invalid_request_error", "invalid_api_key"),
    "403": ("invalid_request_error", "unsupported_country_region_territory"),
    "404": ("invalid_request_error", "model_not_found"),
    "408": ("timeout", "request_timeout"),
    "429": ("requests", "rate_limit_exceeded"),
    "503": ("service_unavailable_error", "server_is_overloaded"),
}


def error_body(fault: Fault) -> dict[str, Any]:
    """`Fault.type` is `error.code` here."""
    type, code = _ERRORS.get(fault.name, ("server_error", "server_error"))
    message = fault.message or f"loopback answers {fault.name}"
    return {"error": {"message": message, "type": type, "param": None, "code": fault.type or code}}


def listed(models: Sequence[str]) -> dict[str, Any]:
    data = [
        {"id": model, "object": "model", "created": 1767225600, "owned_by": "loopback"}
        for model in models
    ]
    return {"object": "list", "data": data}


# --- both wires ---------------------------------------------------------------------------------


@cache
def _request_fields(wire: str) -> frozenset[str]:
    from openai.types.chat import completion_create_params as chat
    from openai.types.responses import response_create_params as responses

    base: Any = {
        "chat": chat.CompletionCreateParamsBase,
        "responses": responses.ResponseCreateParamsBase,
    }[wire]
    # llama.cpp's own parameter: a server on loopback may be one.
    return frozenset(get_type_hints(base)) | {"stream", "return_progress"}


def _common(body: Mapping[str, Any], wire: str) -> Iterator[str]:
    for name in body:
        if name not in _request_fields(wire):
            yield f"Unknown parameter: '{name}'."
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "you must provide a model parameter"
    if "stream_options" in body and not body.get("stream"):
        yield "The 'stream_options' parameter is only allowed when 'stream' is enabled."
    if _REASONS.match(str(body.get("model", ""))):
        for name in ("temperature", "top_p"):
            if body.get(name, 1) != 1:
                yield f"Unsupported parameter: '{name}' is not supported with this model."
    if len(body.get("prompt_cache_key") or "") > 64:
        yield "Invalid 'prompt_cache_key': string too long. Expected at most 64 characters."
    if "tools" in body and not body["tools"]:
        yield "Invalid 'tools': empty array. Expected an array with minimum length 1."
    names = [tool.get("name") or tool.get("function", {}).get("name") for tool in
             body.get("tools") or ()]  # fmt: skip
    if len(set(names)) < len(names):
        yield "Invalid 'tools': names must be unique."


def _function(where: str, given: Mapping[str, Any]) -> Iterator[str]:
    if "name" not in given:
        yield f"Missing required parameter: '{where}.name'."
    elif not _NAME.fullmatch(given["name"]):
        yield f"Invalid '{where}.name': string does not match pattern '^[a-zA-Z0-9_-]+$'."
    schema = given.get("parameters")
    if schema is not None and schema.get("type") != "object":
        yield f"Invalid schema for function '{given.get('name')}': schema must be an object."
    if given.get("strict") and (
        schema is None
        or schema.get("additionalProperties") is not False
        or set(schema.get("required", ())) != set(schema.get("properties", {}))
    ):
        yield f"Invalid schema for function '{given.get('name')}': strict needs every property."


def _only(
    where: str, given: Mapping[str, Any], allowed: set[str] | frozenset[str]
) -> Iterator[str]:
    yield from (f"Unknown parameter: '{where}.{name}'." for name in given if name not in allowed)


def _image(where: str, url: Any) -> Iterator[str]:
    if not isinstance(url, str):
        yield f"Invalid type for '{where}': expected a string, got {type(url).__name__}."
        return
    if url.startswith(("http://", "https://")):
        return
    match = _URL.fullmatch(url)
    if not match:
        yield f"Invalid '{where}'. Expected a base64-encoded data URL with an image MIME type."
        return
    try:
        data = base64.b64decode(match[2], validate=True)
    except binascii.Error:
        yield f"Invalid '{where}'. Expected a base64-encoded data URL, got an invalid base64 value."
        return
    if not data.startswith(MAGIC[match[1]]):
        yield "The image data you provided does not represent a valid image."


# --- Responses ----------------------------------------------------------------------------------


class Memory:
    """What the service knows to have made: reasoning, and which item needs it before it. Of what
    was made with `store` false it knows only what it can prove by the encrypted content."""

    def __init__(self) -> None:
        self.reasoning: dict[str, dict[str, Any]] = {}
        self.stored: set[str] = set()
        self.needs: dict[str, str] = {}

    def made(self, output: Sequence[dict[str, Any]], *, stored: bool) -> None:
        before: str | None = None
        for item in output:
            if before is not None:
                self.needs[item["id"]] = before
            before = item["id"] if item["type"] == "reasoning" else None
            if before is not None:
                self.reasoning[before] = item
        if stored:
            self.stored |= {item["id"] for item in output}

    def proved(self, item: Mapping[str, Any]) -> bool:
        """The id may be left out; how the summary is cut into parts is not looked at."""
        return any(
            made.get("encrypted_content") == item["encrypted_content"]
            and item.get("id", made["id"]) == made["id"]
            and _summary(item) == _summary(made)
            for made in self.reasoning.values()
        )


def _summary(item: Mapping[str, Any]) -> str:
    return "\n\n".join(part["text"] for part in item["summary"])


def response_problems(body: dict[str, Any], memory: Memory) -> list[str]:
    return list(_response_problems(body, memory))


def _response_problems(body: dict[str, Any], memory: Memory) -> Iterator[str]:
    yield from _common(body, "responses")
    for index, tool in enumerate(body.get("tools") or ()):
        where = f"tools[{index}]"
        if tool.get("type") == "function":
            allowed = {"type", "name", "description", "parameters", "strict"}
            yield from _only(where, tool, allowed)
            yield from _function(where, tool)
        else:
            yield f"Invalid value: '{tool.get('type')}' for '{where}.type'."
    if "max_output_tokens" in body and (body["max_output_tokens"] or 16) < 16:
        yield "Invalid 'max_output_tokens': integer below minimum value. Expected at least 16."
    for name in body.get("include") or ():
        if name not in _includable():
            yield f"Invalid value: '{name}' for 'include'."
    given = body.get("input")
    if not isinstance(given, str | list) or not given:
        yield "One of 'input' or 'previous_response_id' must be provided."
    elif isinstance(given, list):
        yield from _items(given, memory)


@cache
def _includable() -> frozenset[str]:
    from openai.types.responses import ResponseIncludable

    return frozenset(get_args(ResponseIncludable))


@cache
def _item_fields() -> Mapping[str, frozenset[str]]:
    """By `type`, for the kinds that Magy may send."""
    from openai.types import responses
    from openai.types.responses import response_input_item_param as items

    kinds: Mapping[str, Any] = {
        "message": responses.EasyInputMessageParam,
        "output": responses.ResponseOutputMessageParam,
        "function_call": responses.ResponseFunctionToolCallParam,
        "function_call_output": items.FunctionCallOutput,
        "reasoning": responses.ResponseReasoningItemParam,
    }
    return {kind: frozenset(get_type_hints(type)) for kind, type in kinds.items()}


def _items(items: list[dict[str, Any]], memory: Memory) -> Iterator[str]:
    ids = [item["id"] for item in items if item.get("id")]
    for id in {id for id in ids if ids.count(id) > 1}:
        yield f"Duplicate item found with id {id}. Remove duplicate items from your input."
    for index, item in enumerate(items):
        where, kind = f"input[{index}]", item.get("type", "message")
        fields = _item_fields()
        allowed = fields.get(kind)
        if allowed is None:
            yield f"Invalid value: '{kind}' for '{where}.type'."
            continue
        both = fields["output"] if item.get("role") == "assistant" else frozenset[str]()
        yield from _only(where, item, allowed | both)
        match kind:
            case "message":
                yield from _message(where, item)
            case "reasoning":
                yield from _reasoning(item, memory)
                if index + 1 == len(items) or not _of_model(items[index + 1]):
                    yield (
                        f"Item '{item.get('id')}' of type 'reasoning' was provided without its "
                        "required following item."
                    )
            case "function_call":
                yield from _response_call(where, item)
        need = memory.needs.get(item.get("id") or "")
        if need and (index == 0 or items[index - 1].get("id") != need):
            yield (
                f"Item '{item['id']}' of type '{kind}' was provided without its required "
                f"'reasoning' item: '{need}'."
            )
    yield from _response_rounds(items)


def _of_model(item: Mapping[str, Any]) -> bool:
    return item.get("type") in ("reasoning", "function_call") or item.get("role") == "assistant"


def _message(where: str, item: Mapping[str, Any]) -> Iterator[str]:
    role, content = item.get("role"), item.get("content")
    if role not in ("user", "assistant", "system", "developer"):
        yield f"Invalid value: '{role}' for '{where}.role'."
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        yield f"Missing required parameter: '{where}.content'."
        return
    theirs = {"output_text", "refusal"}
    allowed = theirs if role == "assistant" else {"input_text", "input_image", "input_file"}
    yield from _contents(f"{where}.content", content, allowed)


def _contents(where: str, content: Sequence[Any], allowed: set[str]) -> Iterator[str]:
    for index, part in enumerate(content):
        at, kind = f"{where}[{index}]", part.get("type")
        if kind not in allowed:
            values = " and ".join(f"'{name}'" for name in sorted(allowed))
            yield f"Invalid value: '{kind}' for '{at}.type'. Supported values are: {values}."
        elif kind == "input_image":
            yield from _only(at, part, {"type", "image_url", "detail", "file_id"})
            if part.get("detail", "auto") not in ("low", "high", "auto", "original"):
                yield f"Invalid value: '{part['detail']}' for '{at}.detail'."
            yield from _image(f"{at}.image_url", part.get("image_url"))
        elif kind in ("input_text", "output_text") and not isinstance(part.get("text"), str):
            yield f"Missing required parameter: '{at}.text'."


def _reasoning(item: Mapping[str, Any], memory: Memory) -> Iterator[str]:
    id = item.get("id", "")
    if not isinstance(item.get("summary"), list):
        yield "Missing required parameter: 'summary' of a reasoning item."
    elif item.get("encrypted_content") is not None:
        if not memory.proved(item):
            yield f"The encrypted content for item {id} could not be verified."
    elif id not in memory.stored:
        yield (
            f"Item with id '{id}' not found. Items are not persisted when `store` is set to "
            "false. Try again with `store` set to true, or remove this item from your input."
        )


def _response_call(where: str, item: Mapping[str, Any]) -> Iterator[str]:
    for name in ("call_id", "name", "arguments"):
        if not isinstance(item.get(name), str):
            yield f"Missing required parameter: '{where}.{name}'."
    if not _NAME.fullmatch(str(item.get("name"))):
        yield f"Invalid '{where}.name': string does not match pattern '^[a-zA-Z0-9_-]+$'."
    if item.get("id") is not None and not str(item["id"]).startswith("fc"):
        yield f"Invalid '{where}.id': '{item['id']}'. Expected an ID that begins with 'fc'."
    if len(str(item.get("call_id"))) > 64:
        yield f"Invalid '{where}.call_id': string too long. Expected at most 64 characters."


def _response_rounds(items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    called: list[str] = []
    answered: list[str] = []
    for index, item in enumerate(items):
        call = str(item.get("call_id"))
        if item.get("type") == "function_call":
            if call in called:
                yield f"Duplicate 'call_id': {call}."
            called.append(call)
        elif item.get("type") == "function_call_output":
            if call not in called or call in answered:
                yield f"No tool call found for function call output with call_id {call}."
            answered.append(call)
            if isinstance(item.get("output"), list):
                where = f"input[{index}].output"
                yield from _contents(where, item["output"], {"input_text", "input_image"})
            elif not isinstance(item.get("output"), str):
                yield f"Missing required parameter: 'input[{index}].output'."
    for call in called:
        if call not in answered:
            yield f"No tool output found for function call {call}."


# --- Chat Completions ---------------------------------------------------------------------------


def chat_problems(
    body: dict[str, Any],
    *,
    unknown: Sequence[str] = (),
    reasoning: str = "",
    required: bool = False,
) -> list[str]:
    """`unknown`: fields that this server does not know. `reasoning`: the field of an assistant's
    message that it takes besides OpenAI's; `required`: it must be there beside calls."""
    return list(_chat_problems(body, unknown, reasoning, required))


def _chat_problems(
    body: dict[str, Any], unknown: Sequence[str], reasoning: str, required: bool
) -> Iterator[str]:
    yield from _common(body, "chat")
    yield from (f"Unrecognized request argument supplied: {n}" for n in unknown if n in body)
    if _REASONS.match(str(body.get("model", ""))) and "max_tokens" in body:
        yield (
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead."
        )
    if "max_tokens" in body and "max_completion_tokens" in body:
        yield "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
    for index, tool in enumerate(body.get("tools") or ()):
        where = f"tools[{index}]"
        yield from _only(where, tool, {"type", "function"})
        if not isinstance(tool.get("function"), dict):
            yield f"Missing required parameter: '{where}.function'."
            continue
        yield from _only(
            f"{where}.function",
            tool["function"],
            {"name", "description", "parameters", "strict"},
        )
        yield from _function(f"{where}.function", tool["function"])
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        yield "Invalid 'messages': empty array. Expected an array with minimum length 1."
        return
    for index, message in enumerate(messages):
        yield from _chat_message(f"messages[{index}]", message, reasoning, required)
    yield from _chat_rounds(messages)


@cache
def _message_fields() -> Mapping[str, frozenset[str]]:
    from openai.types.chat import chat_completion_message_param as messages

    kinds = [get_type_hints(kind) for kind in get_args(messages.ChatCompletionMessageParam)]
    return {get_args(fields["role"])[0]: frozenset(fields) for fields in kinds}


def _chat_message(
    where: str, message: Mapping[str, Any], reasoning: str, required: bool
) -> Iterator[str]:
    role, content = str(message.get("role")), message.get("content")
    known = _message_fields()
    if role not in known:
        yield f"Invalid value: '{role}' for '{where}.role'."
        return
    extra = {reasoning} if reasoning and role == "assistant" else set[str]()
    yield from _only(where, message, known[role] | extra)
    calls = message.get("tool_calls")
    if role == "assistant":
        if content is None and not calls:
            yield f"Invalid value for '{where}.content': expected a string, got null."
        if calls is not None:
            yield from _chat_calls(f"{where}.tool_calls", calls)
        if required and calls and not message.get(reasoning):
            yield f"Missing `{reasoning}` field in the assistant message at index {where}."
    elif content is None:
        yield f"Invalid value for '{where}.content': expected a string, got null."
    if role == "tool" and not isinstance(message.get("tool_call_id"), str):
        yield f"Missing required parameter: '{where}.tool_call_id'."
    if isinstance(content, list):
        yield from _chat_parts(f"{where}.content", content, role)


def _chat_calls(where: str, calls: Any) -> Iterator[str]:
    if not calls:
        yield f"Invalid '{where}': empty array. Expected an array with minimum length 1."
    ids = [call.get("id") for call in calls]
    if len(set(ids)) < len(ids):
        yield f"Invalid '{where}': ids must be unique."
    for index, call in enumerate(calls):
        at, function = f"{where}[{index}]", call.get("function") or {}
        yield from _only(at, call, {"id", "type", "function"})
        yield from _only(f"{at}.function", function, {"name", "arguments"})
        if not isinstance(call.get("id"), str) or not call["id"]:
            yield f"Missing required parameter: '{at}.id'."
        elif len(call["id"]) > 40:
            yield f"Invalid '{at}.id': string too long. Expected at most 40 characters."
        if call.get("type") != "function":
            yield f"Missing required parameter: '{at}.type'."
        if not isinstance(function.get("arguments"), str):
            yield f"Invalid type for '{at}.function.arguments': expected a string."
        if not _NAME.fullmatch(str(function.get("name"))):
            yield f"Invalid '{at}.function.name': string does not match '^[a-zA-Z0-9_-]+$'."


def _chat_parts(where: str, content: Sequence[Any], role: str) -> Iterator[str]:
    if not content:
        yield f"Invalid '{where}': empty array. Expected an array with minimum length 1."
    for index, part in enumerate(content):
        at, kind = f"{where}[{index}]", part.get("type")
        if kind == "image_url" and role != "user":
            yield (
                f"Invalid '{at}'. Image URLs are only allowed for messages with role 'user', but "
                f"this message with role '{role}' contains an image URL."
            )
        elif kind == "image_url":
            url = part.get("image_url")
            if isinstance(url, dict):
                yield from _only(f"{at}.image_url", url, {"url", "detail"})
                yield from _image(f"{at}.image_url.url", url.get("url"))
            else:
                yield f"Invalid type for '{at}.image_url': expected an object."
        elif kind != "text" and not (kind == "refusal" and role == "assistant"):
            yield f"Invalid value: '{kind}' for '{at}.type'."


def _chat_rounds(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Every call is answered by a message of its own right after the message that made it."""
    waiting: list[str] = []
    for index, message in enumerate(messages):
        if message.get("role") == "tool":
            if message.get("tool_call_id") not in waiting:
                yield (
                    f"Invalid parameter: messages[{index}] with role 'tool' must be a response to "
                    "a preceding message with 'tool_calls'."
                )
            else:
                waiting.remove(str(message["tool_call_id"]))
            continue
        if waiting:
            yield _unanswered(waiting)
        waiting = [str(call.get("id")) for call in message.get("tool_calls") or ()]
    if waiting:
        yield _unanswered(waiting)


def _unanswered(calls: Sequence[str]) -> str:
    return (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to "
        "each 'tool_call_id'. The following tool_call_ids did not have response messages: "
        + ", ".join(calls)
    )
