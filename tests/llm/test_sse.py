"""Events out of chunks that may cut anywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.llm.sse import Events


def read(*chunks: bytes) -> list[bytes]:
    events = Events()
    found = [data for chunk in chunks for data in events.feed(chunk)]
    return found + list(events.finish())


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
        (b"data:a\n\n", [b"a"]),
        (b"data:  a\n\n", [b" a"]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b"data: a\r\n\r\ndata: b\r\rdata: c\n\n", [b"a", b"b", b"c"]),
        (b"event: x\nid: 7\nretry: 9\ndata: a\n\n", [b"", b"", b"", b"a"]),
        (b": still there\n\n", [b""]),
        (b"\n\n\n", []),
        (b"event: x\n\n", [b""]),
        (b"data\n\n", [b""]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b'error: {"code": 5}\n\n', [b'{"error":{"code": 5}}']),
        (b"data: the last", [b"the last"]),
        (b"data: the last\n", [b"the last"]),
        (b"data: one\xe2\x80\xa8line\n\n", [b"one\xe2\x80\xa8line"]),  # no line end in this format
    ],
)
def test_what_is_an_event(stream: bytes, expected: list[bytes]) -> None:
    assert read(stream) == expected


@given(
    st.lists(st.sampled_from([b"data: a", b"data:", b": c", b"x", b"\n", b"\r", b"\r\n", b"\n\n"])),
    st.data(),
)
def test_where_chunks_are_cut_does_not_matter(pieces: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert read(*chunks) == read(stream)


def test_a_line_of_many_chunks_is_one_line() -> None:
    assert read(b"data: ", *[b"x" * 20] * 50_000, b"\n\n") == [b"x" * 1_000_000]


def test_an_event_that_comments_part_is_bounded_too() -> None:
    events, megabyte = Events(), b"data: " + b"x" * (1 << 20) + b"\n: c\n"
    with pytest.raises(ValueError, match="over 64 MB"):
        for _ in range(70):
            events.feed(megabyte)
    events = Events()
    for _ in range(70):
        events.feed(megabyte + b"\n")
