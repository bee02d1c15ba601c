"""What refusals teach: the words are those of real servers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from magy_server.llm import anthropic_wire, chat_wire, responses_wire
from magy_server.llm.faults import words
from magy_server.llm.openai_quirks import Quirks, learned
from magy_server.llm.pictures import is_blind

from .conversations import assistant, calling, output, request, user
from .growing import PNG

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
    ({"error": "Argument not supported on this model: reasoning_effort"}, {"reasoning_effort"}),
    (openai("temperature is deprecated for this model."), {"temperature"}),
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


LOOKED = calling("3.0", "call_a")
SHOWN = request("Look", assistant(LOOKED), user(replace(output(LOOKED), pictures=(PNG,))))


@pytest.mark.parametrize(
    "message",
    ["Output of tool call should be 'Input text'",
     "Invalid value: 'input_image'. Supported values are: 'input_text'."],
)  # fmt: skip
def test_pictures_that_have_no_place_in_a_result(message: str) -> None:
    sent = responses_wire.body(SHOWN, Quirks())
    quirks = learned(Quirks(), sent, {"message": message})
    assert quirks == Quirks(pictures_apart=True)
    without = responses_wire.body(SENT, Quirks())
    assert learned(Quirks(), without, {"message": message}) is None


BLIND = [
    (400, openai("Failed to deserialize the JSON body into the target type: messages[1]: unknown "
                 "variant `image_url`, expected `text` at line 1 column 679289")),
    (500, {"error": {"code": 500, "type": "server_error", "message": "image input is not "
           "supported - hint: if this is unexpected, you may need to provide the mmproj"}}),
    (404, {"error": {"message": "No endpoints found that support image input", "code": 404}}),
    (400, openai("Invalid content type. image_url is only supported by certain models.",
                 "messages.[0].content.[1].type")),
    (400, "this model does not support image input (ref: 3e9)"),
    (500, "this model is missing data required for image input"),
    (400, openai("Invalid value: 'image_url'. Supported values are: 'text'.")),
    (400, openai("'messages.0' : for 'role:user' the following must be satisfied["
                 "('messages.0.content' : value must be a string)]")),
    (400, "json: cannot unmarshal array into Go struct field Message.messages.content of type "
          "string"),
    (400, {"object": "error", "message": "At most 0 image(s) may be provided in one request."}),
    (400, {"object": "error", "message": "qwen3 is not a multimodal model"}),
    (422, {"detail": "Image inputs are not supported by this model"}),
]  # fmt: skip


@pytest.mark.parametrize(("status", "error"), BLIND)
def test_a_model_that_cannot_see(status: int, error: Any) -> None:
    for wire in (chat_wire, responses_wire):
        sent = wire.body(SHOWN, Quirks())
        quirks = learned(Quirks(pictures_apart=True), sent, error, status)
        assert quirks == Quirks(pictures_apart=True, blind=True)
        again = wire.body(SHOWN, quirks)
        assert "image" not in str(again) and "cannot see" in str(again)
        assert learned(quirks, again, error, status) is None
        assert learned(Quirks(), again, error, status) is None, "no picture was sent"
    assert is_blind(anthropic_wire.body(SHOWN), error)


@pytest.mark.parametrize("status", [400, 404, 422, 500])
@pytest.mark.parametrize(
    "message",
    [
        "Invalid 'messages[1].content[0].image_url.url'. Expected a base64-encoded data URL with "
        "an image MIME type, but got unsupported MIME type 'image/tiff'.",
        "You uploaded an unsupported image. Please make sure your image has of one the following "
        "formats: ['png', 'jpeg', 'gif', 'webp'].",
        "The image data you provided does not represent a valid image.",
        "Could not process image",
        "At least one of the image dimensions exceed max allowed size for many-image requests: "
        "2000 pixels",
        "The model `gpt-image-1` does not exist",
        "No endpoints found that support tool use",
        "Internal server error",
        "not " * 100_000,
    ],
)
def test_a_picture_that_is_refused_does_not_mean_that_the_model_is_blind(
    status: int, message: str
) -> None:
    sent = chat_wire.body(SHOWN, Quirks())
    assert learned(Quirks(), sent, openai(message), status) is None


def test_what_fails_is_not_taken_for_a_refused_parameter() -> None:
    for status in (404, 500):
        for error, _ in CHAT:
            assert learned(Quirks(), chat_wire.body(SENT, Quirks()), error, status) is None


def test_openai_is_always_asked_to_keep_nothing() -> None:
    official = Quirks(official=True)
    sent = responses_wire.body(SENT, official)
    assert learned(official, sent, openai("Unknown parameter: 'store'.", "store")) is None


@pytest.mark.parametrize(
    "error",
    [
        openai("Invalid schema for function 'x': store is not valid", "tools[0].parameters"),
        openai("We include no reasoning and store nothing"),
        openai("The model `x` does not exist", None, "model_not_found"),
        openai("prompt is too long"),
        openai("Invalid value in messages[3]: 'set the temperature to 3' is a control character"),
        openai("messages.3: found '{\"temperature\": 3}', which is not allowed"),
        openai("You asked: what is a good temperature, or reasoning_effort, for this?"),
        openai("max_tokens", "messages[0].content"),
        openai("max_tokens must be positive, got -5616: prompt is too long"),
        openai("Bad words: set the parameter temperature to 3"),
        openai("The context holds 8192 tokens, 9000 were asked for. Reduce max_tokens."),
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
