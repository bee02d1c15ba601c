"""What refusals teach: the words are those of real servers."""

from __future__ import annotations

from typing import Any

import pytest

from magy_server.llm import chat_wire, responses_wire
from magy_server.llm.faults import words
from magy_server.llm.openai_quirks import Quirks, learned

from .conversations import request

SENT = request(model="gpt-4.1", thinking_tokens=500, max_tokens=9000, temperature=0.5)
REASONS = frozenset({"reasoning", "include"})
LIMITS = frozenset({"max_tokens", "max_completion_tokens", "max_output_tokens"})


def openai(message: str, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    """The SDK gives what stands below `error`."""
    return {"message": message, "type": "invalid_request_error", "param": param, "code": code}


CHAT = [
    (openai("Unrecognized request argument supplied: stream_options"), {"stream_options"}),
    ({"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"],
                  "msg": "Extra inputs are not permitted"}]}, {"stream_options"}),
    ({"object": "error", "message": {"detail": [{"loc": ["body", "reasoning_effort"],
      "msg": "Extra inputs are not permitted"}]}}, {"reasoning_effort"}),
    ({"error": {"message": "property 'stream_options' is unsupported"}}, {"stream_options"}),
    ("`reasoning_effort` must be one of `none` or `default`", {"reasoning_effort"}),
    (openai("Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            "'max_completion_tokens' instead.", "max_tokens", "unsupported_parameter"),
     {"max_tokens"}),
    (openai("Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            "'max_completion_tokens' instead."), {"max_tokens"}),
    (openai("max_tokens is too large: 32000. This model supports at most 16384 completion "
            "tokens", "max_tokens", "invalid_value"), LIMITS),
    ("'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context "
     "length is 32768 tokens and your request has 2000 input tokens", LIMITS),
    (openai("Unsupported value: 'temperature' does not support 0.5 with this model. Only the "
            "default (1) value is supported.", "temperature", "unsupported_value"),
     {"temperature"}),
]  # fmt: skip


@pytest.mark.parametrize(("error", "refused"), CHAT)
def test_a_parameter_that_chat_servers_refuse(error: Any, refused: set[str]) -> None:
    sent = chat_wire.body(SENT, Quirks())
    quirks = learned(Quirks(), sent, error)
    assert quirks == Quirks(refused=frozenset(refused))
    assert chat_wire.body(SENT, quirks) != sent
    assert learned(quirks, sent, error) is None, "nothing is learned twice"


RESPONSES = [
    (openai("Unsupported parameter: 'temperature' is not supported with this model.",
            "temperature"), {"temperature"}),
    (openai("Unsupported parameter: 'reasoning.effort' is not supported with this model.",
            "reasoning.effort", "unsupported_parameter"), REASONS),
    (openai("Unsupported value: 'low' is not supported with the 'gpt-5-pro' model.",
            "reasoning.effort", "unsupported_value"), {"reasoning.effort"}),
    (openai("Your organization must be verified to generate reasoning summaries.",
            "reasoning.summary", "unsupported_value"), {"reasoning.summary"}),
    (openai("Encrypted content is not supported with this model.", "include"), {"include"}),
    ("Unknown parameter: 'store'.", {"store"}),
    ({"detail": [{"loc": ["body", "prompt_cache_key"], "msg": "Extra inputs are not permitted"}]},
     {"prompt_cache_key"}),
    (openai("max_output_tokens exceeds the model's limit of 8192", "max_output_tokens"), LIMITS),
]  # fmt: skip


@pytest.mark.parametrize(("error", "refused"), RESPONSES)
def test_a_parameter_that_responses_servers_refuse(error: Any, refused: set[str]) -> None:
    sent = responses_wire.body(SENT, Quirks()) | {"temperature": 0.5}
    assert learned(Quirks(), sent, error) == Quirks(refused=frozenset(refused))


@pytest.mark.parametrize(
    "message",
    [
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
        "Missing `reasoning_content` field in the assistant message at message index 2.",
        "thinking is enabled but reasoning_content is missing in assistant tool call message",
    ],
)
def test_thinking_that_is_demanded(message: str) -> None:
    sent = chat_wire.body(SENT, Quirks())
    quirks = learned(Quirks(), sent, openai(message))
    assert quirks == Quirks(wants_thinking=True)
    assert learned(quirks, sent, openai(message)) is None


def test_pictures_that_have_no_place_in_a_result() -> None:
    sent = responses_wire.body(SENT, Quirks())
    quirks = learned(Quirks(), sent, {"message": "Output of tool call should be 'Input text'"})
    assert quirks == Quirks(pictures_apart=True)


@pytest.mark.parametrize(
    "error",
    [
        openai("Invalid schema for function 'x': store is not valid", "tools[0].parameters"),
        openai("We include no reasoning and store nothing"),
        openai("The model `x` does not exist", None, "model_not_found"),
        openai("prompt is too long"),
        "<html>Bad Request</html>",
        "",
        None,
        [],
        {"error": None},
        {"message": None},
    ],
)
def test_refusals_that_teach_nothing(error: Any) -> None:
    for sent in (chat_wire.body(SENT, Quirks()), responses_wire.body(SENT, Quirks())):
        assert learned(Quirks(), sent, error) is None


def test_what_was_not_sent_is_not_to_blame() -> None:
    sent = chat_wire.body(request(max_tokens=0), Quirks(refused=frozenset({"stream_options"})))
    for error, _ in CHAT:
        assert learned(Quirks(), sent, error) is None


def test_words_of_an_error_that_is_nested_without_end() -> None:
    error: Any = "deep"
    for _ in range(5000):
        error = {"error": error}
    assert words(error).text == ""
