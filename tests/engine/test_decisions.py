"""Decisions as functions of reviews: taken back, they are as if they had never been."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from magy_server.core.ports import Found
from magy_server.core.reviews.review_events import Reviewed
from magy_server.core.values import Origin, Version
from magy_server.edits.agent_lines import PERSON
from magy_server.edits.text import split
from magy_server.reviews.current_review import Now, now
from magy_server.reviews.decisions import choose, decide, undone
from magy_server.reviews.file_review import (
    FileReview,
    Side,
    begun,
    changed,
    held_of,
    made,
    stored,
    typed,
)
from magy_server.reviews.views import Lines, Verb, Which, Wish
from tests.thorough import examples

WORD = st.sampled_from(["a\n", "b\n", "x = 1\n", "}\n", "\n", "c\r\n"])
TEXT = st.lists(WORD, max_size=10)
AGENTS = [Origin(session=f"s{n}", agent="build", turn="t", call=f"{n}.0") for n in range(3)]
STEP = st.tuples(st.integers(-1, 2), st.integers(0, 10), st.integers(0, 3), st.lists(WORD))


def side(lines: Sequence[str] | None) -> Side:
    if lines is None:
        return Side()
    data = "".join(lines).encode()
    return Side(Version(hash=hashlib.sha256(data).hexdigest()), data, split(data.decode()))


def encode(text: str, like: bytes) -> bytes:
    return text.encode()


def decode(data: bytes) -> str:
    return data.decode()


def review_of(first: list[str] | None, steps: list[tuple[int, int, int, list[str]]]) -> FileReview:
    """What agents (by number) and the person (-1) make of a file."""
    held = begun("/w", "/w/f", side(first))
    for by, start, count, new in steps:
        lines = list(held.text.lines or ())
        lines[start : start + count] = new
        after = side(split("".join(lines)))
        held = typed(held, after) if by < 0 else changed(held, after, AGENTS[by])
    return kept(held)


def kept(held: FileReview) -> FileReview:
    """As it comes back from the log."""
    one = stored(held, encode)
    return held_of(one.event, one.blobs, decode)


def now_of(held: FileReview, live: Side | None = None) -> Now:
    live = live or held.text
    event = stored(held, encode).event
    found = Found(held.path, live.version, live.data)
    return now(1, held, event, found, decode)


VERB: st.SearchStrategy[Verb] = st.sampled_from(["accept", "reject"])
stories = st.builds(review_of, st.none() | TEXT, st.lists(STEP, min_size=1, max_size=4))


@given(stories)
@settings(max_examples=examples(100))
def test_the_log_gives_back_what_was_put_in(held: FileReview) -> None:
    again = kept(held)
    assert again.review == held.review
    assert (again.base, again.text, again.origins) == (held.base, held.text, held.origins)
    for hunk in now_of(held).hunks:
        assert hunk.origins, "every hunk has an agent"


@given(stories, st.data())
@settings(max_examples=examples(150))
def test_taken_back_it_is_as_before(held: FileReview, data: st.DataObject) -> None:
    before = now_of(held)
    if not before.hunks:
        return
    ids = data.draw(st.lists(st.sampled_from([h.id for h in before.hunks]), min_size=1))
    verb = data.draw(VERB)
    which = data.draw(
        st.sampled_from([Which(ids=tuple(ids)), Which(all=True), Which(lines=Lines(0, 2))])
    )
    chosen = choose(before, which)
    if chosen.missing:
        return
    result = decide(before, Wish(verb, which), chosen)
    file = made(result.file, encode) if result.file else None
    after = kept(result.held if file is None else replaced(result.held, file))
    back = undone(now_of(after), kept(before.held), after)
    assert not isinstance(back, str)
    assert back.held.text.lines == before.held.text.lines
    assert back.held.text.exists is before.held.text.exists
    assert back.held.base.exists is before.held.base.exists
    assert [h.id for h in now_of(kept(back.held)).hunks] == [h.id for h in before.hunks]
    changes = file is not None and file.version != before.live.version
    assert (back.file is not None) is changes


def test_taken_back_at_once_changes_of_lines_that_are_all_alike_stay_apart() -> None:
    held = review_of(None, [(0, 0, 0, ["b\n"]), (-1, 0, 0, ["b\n", "b\n"]), (0, 0, 0, ["b\n"])])
    before = now_of(held)
    first, second = before.hunks
    which = Which(ids=(first.id,))
    result = decide(before, Wish("reject", which), choose(before, which))
    assert result.file is not None
    after = kept(replaced(result.held, made(result.file, encode)))
    back = undone(now_of(after), kept(before.held), after)
    assert not isinstance(back, str)
    assert [hunk.id for hunk in now_of(kept(back.held)).hunks] == [first.id, second.id]


def replaced(held: FileReview, file: Side) -> FileReview:
    return replace(held, text=file)


@given(stories, st.data())
@settings(max_examples=examples(100))
def test_taken_back_after_the_person_typed_elsewhere(held: FileReview, data: st.DataObject) -> None:
    """It comes back, or it is said that it cannot; what was typed stays in both cases."""
    before = now_of(held)
    if not before.hunks or not before.live.exists:
        return
    verb = data.draw(VERB)
    hunk = data.draw(st.sampled_from(before.hunks))
    which = Which(ids=(hunk.id,))
    result = decide(before, Wish(verb, which), choose(before, which))
    file = made(result.file, encode) if result.file else None
    if file is not None and not file.exists:
        return
    after = kept(result.held if file is None else replaced(result.held, file))
    lines = list(after.text.lines or ())
    if any(not line.endswith("\n") for line in lines):
        return
    at = data.draw(st.integers(0, len(lines)))
    typing = typed(after, side([*lines[:at], "typed here\n", *lines[at:]]))
    back = undone(now_of(kept(typing)), kept(before.held), after)
    if isinstance(back, str):
        return
    text = list(back.held.text.lines or ())
    assert text.count("typed here\n") == 1
    text.remove("typed here\n")
    assert text == list(before.held.text.lines or ())
    within = any(left.start < at < left.end for left in now_of(after).hunks)
    assert within or "typed here\n" in (back.held.base.lines or ())


@given(stories)
@settings(max_examples=examples(100))
def test_rejecting_all_leaves_the_base_and_accepting_all_the_text(held: FileReview) -> None:
    one = now_of(held)
    every = Which(all=True)
    if not one.hunks:
        return
    yes = decide(one, Wish("accept", every), choose(one, every)).held
    assert (yes.base.lines, yes.base.exists) == (one.held.text.lines, one.held.text.exists)
    assert not kept(yes).pending
    no = decide(one, Wish("reject", every), choose(one, every)).held
    if not any(hunk.amended for hunk in one.hunks):
        assert no.text.lines == one.held.base.lines
        assert no.text.exists is one.held.base.exists
    assert one.held.review is not None
    own = (mark for mark in one.held.review.marks if mark.by == PERSON)
    mine = [line for mark in own for line in (one.live.lines or ())[mark.start : mark.end]]
    assert Counter(no.text.lines) == Counter([*(one.held.base.lines or ()), *mine])
    assert not kept(replaced(no, made(no.text, encode))).pending


def test_what_is_stored_says_who() -> None:
    held = review_of(["a\n", "b\n"], [(1, 0, 1, ["x\n"]), (0, 1, 1, ["y\n"])])
    event: Reviewed = stored(held, encode).event
    assert event.origins == (AGENTS[1], AGENTS[0])
    assert [(m.start, m.end, m.origin, m.removed) for m in event.marks] == [
        (0, 1, 0, 2),
        (1, 2, 1, 0),
    ]
    yes = decide(
        now_of(held), Wish("accept", Which(all=True)), choose(now_of(held), Which(all=True))
    )
    assert stored(yes.held, encode).event.origins == ()


def test_what_is_typed_between_undo_and_redo_of_a_reject_is_in_no_hunk() -> None:
    """Wherever the person types: in a line that they had changed, or beside the lines that are put
    back."""
    held = review_of(["one\n", "two\n", "three\n"], [(0, 1, 1, ["TWO by an agent\n"])])
    held = kept(typed(held, side(["one\n", "TWO by an agent KEY\n", "three\n"])))
    every = Which(all=True)
    gone = decide(now_of(held), Wish("reject", every), choose(now_of(held), every)).held
    gone = kept(replaced(gone, made(gone.text, encode)))
    assert gone.text.lines == ["one\n", "two\n", "TWO by an agent KEY\n", "three\n"]

    between = ["one\n", "two\n", "KEY 2\n", "TWO by an agent KEY\n", "three\n"]
    back = undone(now_of(kept(typed(gone, side(between)))), held, gone)
    assert not isinstance(back, str)
    assert back.held.text.lines == ["one\n", "KEY 2\n", "TWO by an agent KEY\n", "three\n"]
    assert back.held.base.lines == ["one\n", "KEY 2\n", "two\n", "three\n"]

    more = kept(typed(held, side(["one\n", "TWO by an agent KEY, KEY 3\n", "three\n"])))
    again = undone(now_of(more), gone, held)
    assert not isinstance(again, str)
    wanted = ["one\n", "two\n", "TWO by an agent KEY, KEY 3\n", "three\n"]
    assert (again.held.text.lines, again.held.base.lines) == (wanted, wanted)
    assert not again.held.pending
