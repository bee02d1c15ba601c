"""What goes back to the provider over several requests: thinking, and what its cache then reads."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from magy_server.core.events import Replied
from magy_server.core.values import Call
from magy_server.llm.anthropic import AnthropicProvider
from tests.loopback import (
    AnthropicServer,
    Part,
    call,
    redacted,
    text,
    thinking,
)

from .conversations import ask, assistant, output, request, user

TOP = Path(__file__).parents[2]


# --- thinking and caching over several requests -------------------------------------------------


@pytest.mark.req("A077")
async def test_thinking_is_echoed_unchanged_through_a_tool_round(
    server: AnthropicServer, provider: AnthropicProvider
) -> None:
    odd = " odd\n  white  space\t\u00e4 "
    server.reply(thinking(odd, "EqQB+/=="), redacted("a+b/c=="), call("read_file", {"path": "a"}))
    server.reply(text("Done."))
    first = request("Look", thinking_tokens=2000, max_tokens=8000)
    _, replied = await ask(provider, first)
    (made,) = (part for part in replied.content if isinstance(part, Call))
    # Through the log: what is echoed is what was stored.
    stored = Replied.model_validate_json(replied.model_dump_json())
    spoken = assistant(*stored.content)
    await ask(
        provider,
        request(*first.messages, spoken, user(output(made)), thinking_tokens=2000, max_tokens=8000),
    )
    echoed = server.requests[1].body["messages"][1]
    assert echoed["role"] == "assistant"
    assert echoed["content"][:2] == [
        {"type": "thinking", "thinking": odd, "signature": "EqQB+/=="},
        {"type": "redacted_thinking", "data": "a+b/c=="},
    ]


class PromptCache:
    """Counts tokens as the provider's prompt cache does: a request reads the longest prefix that
    was written at a mark and ends at most 20 blocks before one of its own marks, and writes up to
    its last mark. https://platform.claude.com/docs/en/build-with-claude/prompt-caching"""

    def __init__(self) -> None:
        self._written: set[str] = set()
        self.seen: list[tuple[int, int, int]] = []
        """(read, written, neither) of each request, in characters."""

    def __call__(self, sent: Any) -> list[Part]:
        prefixes, marks = [], []
        rest = [("", block) for block in [*sent["tools"], *sent["system"]]]
        rest += [(m["role"], block) for m in sent["messages"] for block in m["content"]]
        so_far = ""
        for index, (role, given) in enumerate(rest):
            block = copy.copy(given)
            if block.pop("cache_control", None):
                marks.append(index)
            so_far += role + json.dumps(block)
            prefixes.append(so_far)
        assert 1 <= len(marks) <= 4
        near = {index for mark in marks for index in range(max(0, mark - 20), mark + 1)}
        found = [len(p) for i, p in enumerate(prefixes) if i in near and p in self._written]
        read, upto, length = max(found, default=0), len(prefixes[marks[-1]]), len(so_far)
        self._written.update(prefixes[mark] for mark in marks)
        self.seen.append((read, upto - read, length - upto))
        return [call("read_file", {"n": len(self.seen)}, id=f"toolu_{len(self.seen)}_{n}")
                for n in range(1 + 14 * (len(self.seen) == 5))]  # fmt: skip


@pytest.mark.req("A070", "A072")
async def test_a_tool_loop_reads_all_it_sent_before_from_the_cache(
    server: AnthropicServer, provider: AnthropicProvider
) -> None:
    """Also after the fifth round, whose 15 calls are more blocks than the provider looks back."""
    cache = PromptCache()
    server.answer(cache)
    conversation = [*request("Look at everything").messages]
    system = ("You are Magy. " * 400,)
    for round in range(10):
        sent = request(*conversation, system=system, id=str(round))
        _, replied = await ask(provider, sent)
        calls = [part for part in replied.content if isinstance(part, Call)]
        results = [output(made, f"line of {made.id}\n" * 40) for made in calls]
        conversation += [assistant(*replied.content), user(*results)]
    sizes = [sum(counts) for counts in cache.seen]
    reads = [read for read, _, _ in cache.seen]
    assert reads[0] == 0
    assert reads[1:] == sizes[:-1]
    cost = sum(0.1 * read + 1.25 * write + neither for read, write, neither in cache.seen)
    assert cost < 0.3 * sum(sizes), cost / sum(sizes)
