"""Conversations as the engine lets them grow, for the law that a request extends the one before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from magy_server.core.ports import Message, Picture
from magy_server.core.values import Call, Thinking

from .conversations import assistant, calling, output, user

PNG = Picture("image/png", b"\x89PNG\r\n\x1a\n" + bytes(8))

said = st.sampled_from(["one", "two words", "ünïcode\n"])
thoughts = st.builds(
    Thinking,
    text=st.sampled_from(["", "hm"]),
    signature=st.sampled_from(["", "rs_1", "reasoning"]),
    data=st.sampled_from(["", "proof"]),
)
calls = st.lists(
    st.tuples(
        st.sampled_from(["", "a b", "call_0", "toolu_1", "abcDEF012", "x" * 41]),
        st.sampled_from(["read_file", "odd.name", "ä"]),
        st.booleans(),
    ),
    max_size=3,
)
rounds = st.lists(
    st.tuples(st.lists(said, max_size=2), st.lists(thoughts, max_size=2), said, calls),
    min_size=1,
    max_size=6,
)


def growing(rounds: list[Any]) -> Iterator[list[Message]]:
    """The conversation at each request: tool results, then what was said meanwhile."""
    messages: list[Message] = [user("begin")]
    made: list[Call] = []
    for number, (news, thought, text, calls) in enumerate(rounds):
        if number:
            shown = [PNG] if number % 3 == 2 else []
            news = news if made else ["and then?", *news]
            messages.append(user(*(output(call, text) for call in made), *shown, *news))
        yield list(messages)
        made = [
            calling(f"{number}.{n}", id, name, odd=odd) for n, (id, name, odd) in enumerate(calls)
        ]
        messages.append(assistant(*thought, text, *made))
