from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from magy_server.engine.streaming import TAIL, Partial


@given(st.lists(st.text(max_size=5)), st.integers(0, 60))
def test_what_came_since_an_offset(pieces: list[str], offset: int) -> None:
    partial = Partial("text", "m")
    for piece in pieces:
        partial.add(piece)
    whole = "".join(pieces)
    assert partial.size == len(whole)
    assert partial.since(offset) == whole[offset:]
    assert partial.since(0) == whole


@given(st.integers(0, 3 * TAIL))
def test_output_keeps_its_tail_and_knows_where_it_begins(offset: int) -> None:
    partial = Partial("output", "c")
    whole = ""
    for n in range(60):
        piece = f"{n:04}" * 1500
        whole += piece
        partial.add(piece)
    assert TAIL <= partial.size - partial.start <= 2 * TAIL
    assert partial.since(offset) == whole[max(offset, partial.start) :]
