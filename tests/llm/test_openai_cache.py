"""What OpenAI's prompt cache finds again: it reads the longest prefix that an earlier request had,
without any marks. https://developers.openai.com/api/docs/guides/prompt-caching"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from magy_server.core.ports import Message, Picture, Provider
from magy_server.core.values import Call, Text
from magy_server.llm.openai import ChatProvider, ResponsesProvider
from tests.loopback import (
    ChatServer,
    ModelServer,
    Part,
    Quirks,
    ResponsesServer,
    call,
    text,
    thinking,
    usage,
)
from tests.loopback.images import PNG

from .conversations import ask, assistant, output, request, user

ROUNDS = 10
THINKING = Quirks(reasoning="reasoning_content", echo="required")


class Looper:
    """Thinks, speaks and calls in every round, in the fifth with 15 calls at once."""

    def __init__(self) -> None:
        self.rounds = 0

    def __call__(self, body: Any) -> list[Part]:
        self.rounds += 1
        calls = range(15 if self.rounds == 5 else 2)
        return [
            thinking(f"thought {self.rounds}", f"proof {self.rounds}"),
            text(f"Round {self.rounds}."),
            *(call("read_file", {"ä": n, "round": self.rounds}) for n in calls),
            usage(input=self.rounds),
        ]


def items(body: Any) -> list[Any]:
    """The conversation, and before it all that stands before it."""
    name = "input" if "input" in body else "messages"
    rest = {key: value for key, value in body.items() if key != name}
    return [rest, *body[name]]


@pytest.mark.parametrize(
    ("serve", "make"),
    [
        (ResponsesServer, ResponsesProvider),
        (ChatServer, ChatProvider),
        (lambda: ChatServer(quirks=THINKING), ChatProvider),
    ],
    ids=["responses", "chat", "chat with reasoning"],
)
async def test_every_request_of_a_tool_loop_extends_the_one_before(
    serve: Callable[[], ModelServer], make: Callable[..., Provider]
) -> None:
    async with serve() as server:
        server.answer(Looper())
        provider = make("test-key", server.base_url)
        shown = Message("user", (Text(text="Look at everything"), Picture("image/png", PNG)))
        conversation: list[Message] = [shown]
        for round in range(ROUNDS):
            sent = request(*conversation, id=str(round), thinking_tokens=2000, max_tokens=8000)
            _, replied = await ask(provider, sent)
            calls = [part for part in replied.content if isinstance(part, Call)]
            results = [output(made, f"line of {made.id}\n" * 40) for made in calls]
            conversation += [assistant(*replied.content), user(*results)]
        await provider.close()
        taken = server.taken
    assert len(taken) == ROUNDS
    for earlier, later in pairwise(taken):
        before = items(earlier.body)
        assert items(later.body)[: len(before)] == before
        end = earlier.raw.rindex(b"]")  # of the conversation
        assert later.raw.startswith(earlier.raw[:end])
