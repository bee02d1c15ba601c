"""Reviews: what agents did to a text, what the person types meanwhile, and what is decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magy_server.edits.agent_lines import PERSON, Mark, Review, carry, compare
from magy_server.edits.hunks import ReviewHunk, accept, cut, hunks, reject
from magy_server.edits.proposal import accepted, place, proposed
from magy_server.edits.rebasing.diff import blocks
from magy_server.edits.text import split
from tests.thorough import examples

END = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r"])
WORD = st.sampled_from(["a", "b", "x = 1", "return", "}", "", "  y"])


@st.composite
def texts(draw: st.DrawFn) -> list[str]:
    lines = [draw(WORD) + draw(END) for _ in range(draw(st.integers(0, 12)))]
    last = draw(st.sampled_from(["", "", "end"]))
    return split("".join([*lines, last]))


@st.composite
def edited(draw: st.DrawFn, text: Sequence[str]) -> list[str]:
    """The text after one to three strokes somewhere."""
    lines = list(text)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(lines)))
        end = min(len(lines), start + draw(st.integers(0, 3)))
        lines[start:end] = [draw(WORD) + draw(END) for _ in range(draw(st.integers(0, 3)))]
    return split("".join(lines))


@dataclass
class Story:
    """Agents and the person change a text by turns."""

    first: list[str]
    review: Review
    steps: list[tuple[int, list[str]]]


@st.composite
def stories(draw: st.DrawFn, most: int = 5) -> Story:
    first = draw(texts())
    review = Review(first)
    steps = []
    for _ in range(draw(st.integers(1, most))):
        by = draw(st.sampled_from([PERSON, 0, 0, 1]))
        text = draw(edited(review.text))
        steps.append((by, text))
        review = carry(review, text, by)
    return Story(first, review, steps)


def all_of(review: Review) -> range:
    return range(len(review.parts))


def check(review: Review) -> None:
    """What always holds."""
    at = -1
    for part in review.parts:
        assert at < part.start <= part.end <= len(review.text), "parts touch, or leave the text"
        assert part.agents, "a part without an agent"
        assert list(part.old) != list(review.text[part.start : part.end])
        covered = [n for mark in part.marks for n in range(mark.start, mark.end)]
        assert covered == list(range(part.end - part.start))
        at = part.end


@given(stories())
@settings(max_examples=examples(100))
def test_all_accepted_is_the_text_and_all_rejected_the_base(story: Story) -> None:
    review = story.review
    check(review)
    assert review.text == story.steps[-1][1]
    yes = accept(review, all_of(review))
    assert (list(yes.text), yes.base, yes.parts) == (review.text, review.text, ())
    no = reject(review, all_of(review))
    assert (list(no.text), no.base, no.parts) == (review.base, review.base, ())


@given(stories(), st.data())
@settings(max_examples=examples(100))
def test_any_order_of_decisions_comes_to_the_same(story: Story, data: st.DataObject) -> None:
    """Deciding hunk by hunk gives what choosing for each hunk gives."""
    review = story.review
    found = hunks("f", review)
    choice = {h.id: data.draw(st.booleans(), label=h.id) for h in found}
    wanted: list[str] = []
    at = 0
    for hunk in found:
        wanted += review.text[at : hunk.start]
        wanted += hunk.new if choice[hunk.id] else hunk.old
        at = hunk.end
    wanted += review.text[at:]
    order = data.draw(st.permutations(found))
    alike = {(h.old, h.new) for h in found}
    for hunk in order:
        left = hunks("f", review)
        # of equal hunks the later ones are numbered by place; these are told apart by it
        same = [h for h in left if (h.old, h.new) == (hunk.old, hunk.new)]
        assert same
        ids = [h.id for h in left]
        now = left[ids.index(hunk.id)] if len(alike) == len(found) else _nth(review, left, hunk)
        review = (accept if choice[hunk.id] else reject)(review, now.parts)
        check(review)
    assert list(review.text) == wanted == review.base


def _nth(review: Review, left: Sequence[ReviewHunk], hunk: ReviewHunk) -> ReviewHunk:
    """The same hunk, found by how much of the base lies before it: that only changes by what was
    accepted; so by what lies behind."""
    return min(
        (h for h in left if (h.old, h.new) == (hunk.old, hunk.new)),
        key=lambda h: abs(h.start - hunk.start),
    )


@given(texts(), st.data())
@settings(max_examples=examples(100))
def test_what_the_person_does_elsewhere_is_kept(first: list[str], data: st.DataObject) -> None:
    """Changes of the person that meet no part are in the text and in the base, and no hunk."""
    agents = carry(Review(first), data.draw(edited(first)), 0)
    text = data.draw(edited(agents.text))
    review = carry(agents, text)
    changes = blocks(agents.text, text)
    apart = all(b < part.start or part.end < a for a, b, _, _ in changes for part in agents.parts)
    if not apart:
        return
    assert [(p.old, p.marks) for p in review.parts] == [(p.old, p.marks) for p in agents.parts]
    for a, b, c, d in changes:
        shift = _moved_base(agents, a)
        was = agents.base[a + shift : b + shift]
        assert was == list(agents.text[a:b])
        now = _moved_base(review, c)
        assert review.base[c + now : d + now] == text[c:d]
    left = reject(review, all_of(review))
    for _, _, c, d in changes:
        now = _moved_base(review, c)
        assert list(left.text[c + now : d + now]) == text[c:d]


def _moved_base(review: Review, line: int) -> int:
    return sum(len(p.old) - (p.end - p.start) for p in review.parts if p.end <= line)


@given(stories())
@settings(max_examples=examples(100))
def test_stored_and_read_again_it_is_the_same(story: Story) -> None:
    review = story.review
    again = compare(review.base, review.text, review.marks)
    assert again.parts == review.parts
    assert again.base == review.base


@given(stories(), st.lists(st.builds(Mark, *[st.integers(0, 9)] * 2, st.integers(-1, 2))))
def test_wrong_marks_do_no_harm(story: Story, marks: list[Mark]) -> None:
    review = compare(story.review.base, story.review.text, marks)
    assert review.base == story.review.base
    assert reject(review, all_of(review)).text == story.review.base


@given(stories(), texts())
def test_ids_do_not_change_when_lines_move(story: Story, above: list[str]) -> None:
    above = [line for line in above if line.endswith(("\n", "\r"))]
    if above and above[-1].endswith("\r") and story.review.text[:1] == ["\n"]:
        return
    marks = [m.__class__(m.start + len(above), m.end + len(above), m.by, m.removed)
             for m in story.review.marks]  # fmt: skip
    moved = compare(above + story.review.base, above + list(story.review.text), marks)
    assert [h.id for h in hunks("f", moved)] == [h.id for h in hunks("f", story.review)]


@given(stories(), st.data())
def test_line_by_line_is_the_whole_hunk(story: Story, data: st.DataObject) -> None:
    """To accept each line of a hunk, in any order, is to accept it; and so for rejecting."""
    review = story.review
    found = hunks("f", review)
    if not found:
        return
    hunk = data.draw(st.sampled_from(found))
    whole = accept(review, hunk.parts)
    lines = data.draw(st.permutations(range(hunk.start, hunk.end)))
    one = review
    for line in lines:
        one, chosen = cut(one, line, line + 1)
        one = accept(one, chosen)
    if hunk.end > hunk.start:
        one, chosen = cut(one, hunk.start, hunk.end)
        assert list(accept(one, chosen).text) == list(whole.text)
        assert accept(one, chosen).base == whole.base
    one = review
    for line in reversed(range(hunk.start, hunk.end)):
        one, chosen = cut(one, line, line + 1)
        one = reject(one, chosen)
    if hunk.end > hunk.start and all(p.end > p.start for p in review.parts):
        assert list(one.text) == list(reject(review, hunk.parts).text)


@given(stories(), st.data())
def test_a_part_of_the_lines_leaves_the_rest_alone(story: Story, data: st.DataObject) -> None:
    review = story.review
    start = data.draw(st.integers(0, len(review.text)))
    end = data.draw(st.integers(start, len(review.text)))
    some, chosen = cut(review, start, end)
    assert some.base == review.base
    yes, no = accept(some, chosen), reject(some, chosen)
    assert list(yes.text) == list(review.text)
    assert no.base == review.base
    assert [ended(line) for line in no.text] == [ended(line) for line in taken(review, start, end)]
    for one in (yes, no):
        check(one)
        for lines in (one.text, one.base):
            assert all(line.endswith(("\n", "\r")) for line in lines[:-1])


def taken(review: Review, start: int, end: int) -> list[str]:
    """The text without what the parts have in these lines: line n of a part replaced line n of the
    old ones, its last one all the rest."""
    lines: list[str] = []
    at = 0
    for part in review.parts:
        lines += review.text[at : part.start]
        at, size = part.end, part.end - part.start
        if not size and start <= part.start <= end:
            lines += part.old
        for n, line in enumerate(review.text[part.start : part.end]):
            if start <= part.start + n < end:
                lines += part.old[n : None if n == size - 1 else n + 1]
            else:
                lines.append(line)
    return [*lines, *review.text[at:]]


def ended(line: str) -> str:
    return line.rstrip("\r\n") + "\n"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_added_below_a_last_line_without_end_go_one_by_one(end: str) -> None:
    base, text = [f"a{end}", "b"], [f"a{end}", f"b{end}", f"x{end}", "y"]
    review = carry(Review(base), text, 0)
    first = reject(*cut(review, 1, 2))  # it can only lose its end as the last one
    assert (list(first.text), first.base) == (text, base)
    assert hunks("f", first) == hunks("f", review)
    second = reject(*cut(review, 1, 3))
    assert list(second.text) == [f"a{end}", f"b{end}", "y"] and second.base == base
    last = reject(*cut(review, 2, 4))
    assert list(last.text) == [f"a{end}", f"b{end}"]
    assert list(reject(*cut(last, 1, 2)).text) == base
    accepted = accept(*cut(review, 2, 4))
    assert accepted.base == text and not hunks("f", accepted)
    typed = carry(review, [*text[:2], f"mine{end}", *text[2:]])
    spared = reject(typed, all_of(typed), spare=True)
    assert list(spared.text) == [f"a{end}", f"b{end}", f"mine{end}"]


# --- examples that say what is meant --------------------------------------------------------------

BASE = ["one\n", "two\n", "three\n", "four\n", "five\n"]


def test_undoing_by_hand_what_the_agent_did_ends_the_hunk() -> None:
    review = carry(Review(BASE), ["one\n", "TWO\n", "three\n", "four\n"], 0)
    assert len(review.parts) == 2
    back = carry(review, BASE)
    assert back.parts == ()
    deleted = carry(Review(BASE), ["one\n", "five\n"], 0)
    typing = carry(deleted, ["one\n", "two\n", "five\n"])
    assert [p.old for p in typing.parts] == [("three\n", "four\n")]
    assert carry(typing, BASE).parts == ()


def test_a_line_typed_below_a_hunk_is_the_persons_and_survives_its_rejection() -> None:
    review = carry(Review(BASE), ["one\n", "TWO\n", "three\n", "four\n", "five\n"], 0)
    review = carry(review, ["one\n", "TWO\n", "mine\n", "three\n", "four\n", "five\n"])
    (hunk,) = hunks("f", review)
    assert (hunk.old, hunk.new, hunk.amended) == (("two\n",), ("TWO\n",), False)
    no = reject(review, hunk.parts)
    assert no.text == ["one\n", "two\n", "mine\n", "three\n", "four\n", "five\n"]


def test_a_stroke_over_own_lines_and_a_hunk_loses_neither() -> None:
    review = carry(Review(BASE), ["one\n", "TWO\n", "three\n", "four\n", "five\n"], 0)
    review = carry(review, ["ONE\n", "Two!\n", "THREE\n", "four\n", "five\n"])
    (hunk,) = hunks("f", review)
    assert (hunk.old, hunk.new, hunk.amended) == (("two\n",), ("Two!\n",), True)
    assert review.base == ["ONE\n", "two\n", "THREE\n", "four\n", "five\n"]


@pytest.mark.parametrize("lines", [6, 40, 600])
def test_what_was_typed_all_around_a_hunk_is_not_drawn_into_it(lines: int) -> None:
    base = [f"the line number {n}\n" for n in range(lines)]
    review = carry(Review(base), [*base[:3], "what an agent wrote\n", *base[4:]], 0)
    typed = ["key\n", *(line.replace("line", "li-ne") for line in review.text), "key\n"]
    typed[4:4] = ["key\n"]
    typed[5] = "what an agent wrote, and more\n"
    review = carry(review, typed)
    (hunk,) = hunks("f", review)
    assert (hunk.old, hunk.new) == ((base[3],), ("what an agent wrote, and more\n",))
    assert "the li-ne number 2\n" in review.base and "the li-ne number 4\n" in review.base


def test_own_lines_deleted_with_a_hunk_are_gone_for_good() -> None:
    review = carry(Review(BASE), ["one\n", "new\n", *BASE[1:]], 0)
    review = carry(review, ["three\n", "four\n", "five\n"])
    assert (review.parts, review.base) == ((), ["three\n", "four\n", "five\n"])


def test_a_hunk_that_the_person_rewrote_is_still_the_agents() -> None:
    review = carry(Review(BASE), ["one\n", "TWO\n", *BASE[2:]], 3)
    review = carry(review, ["one\n", "zwei\n", *BASE[2:]])
    (hunk,) = hunks("f", review)
    assert (hunk.by, hunk.amended, hunk.old, hunk.new) == ((3,), True, ("two\n",), ("zwei\n",))
    review = carry(review, ["one\n", "deux\n", *BASE[2:]], 4)
    assert set(hunks("f", review)[0].by) == {3, 4}


def test_hunks_with_one_line_between_are_one_and_with_two_are_not() -> None:
    text = ["ONE\n", "two\n", "THREE\n", "four\n", "five\n", "six\n", "SEVEN\n"]
    review = carry(Review([line.lower() for line in text]), text, 0)
    assert [(h.start, h.end) for h in hunks("f", review)] == [(0, 3), (6, 7)]


def test_equal_hunks_have_ids_of_their_own() -> None:
    base = ["x\n", "1\n", "2\n", "3\n", "x\n"]
    review = carry(Review(base), ["y\n", "1\n", "2\n", "3\n", "y\n"], 0)
    first, second = hunks("f", review)
    assert first.id != second.id
    assert first.id != hunks("g", review)[0].id


def test_line_ends_count() -> None:
    review = carry(Review(["a\r\n", "b\n", "c"]), ["a\n", "b\n", "c\n"], 0)
    assert [(h.old, h.new) for h in hunks("f", review)] == [
        (("a\r\n", "b\n", "c"), ("a\n", "b\n", "c\n"))
    ]
    assert reject(review, [0, 1]).text == ["a\r\n", "b\n", "c"]


def test_empty_texts() -> None:
    review = carry(Review([]), ["a\n"], 0)
    assert [(h.start, h.end, h.old) for h in hunks("f", review)] == [(0, 1, ())]
    assert reject(review, [0]).text == []
    gone = carry(Review(["a\n"]), [], 0)
    assert [(h.start, h.end, h.old) for h in hunks("f", gone)] == [(0, 0, ("a\n",))]
    assert reject(gone, [0]).text == ["a\n"]


def test_a_rejected_file_keeps_what_the_person_wrote_into_it() -> None:
    review = carry(Review([]), ["a\n", "b\n"], 0)
    review = carry(review, ["a\n", "mine\n", "b\n"])
    assert reject(review, [0]).text == []
    assert reject(review, [0], spare=True).text == ["mine\n"]


# --- proposals ------------------------------------------------------------------------------------


@given(stories(), st.data())
@settings(max_examples=examples(100))
def test_a_proposal_follows_the_live_text(story: Story, data: st.DataObject) -> None:
    """What is accepted is in the live text, and the proposal has it no more."""
    review = story.review
    live = data.draw(edited(review.base)) if data.draw(st.booleans()) else review.base
    places = place(review, live)
    for one, two in pairwise(places):
        assert one.end <= two.start
    now = proposed(live, places)
    conflicts = [spot for spot in places if spot.conflict]
    if not conflicts:
        assert now.base == list(live)
        assert list(now.text) == accepted(live, places)
    free = [spot for spot in places if not spot.conflict]
    for spot in free:
        assert tuple(live[spot.start : spot.end]) == spot.part.old
    if conflicts or len(now.parts) != len(places):
        return
    chosen = [number for number in all_of(now) if data.draw(st.booleans())]
    text = accepted(live, [places[number] for number in chosen])
    left = accept(now, chosen)
    assert left.base == text
    assert accepted(text, place(left, text)) == accepted(live, places)
    less = reject(now, chosen)
    assert less.base == list(live)


@given(stories())
def test_a_proposal_that_nobody_disturbs(story: Story) -> None:
    review = story.review
    places = place(review, review.base)
    assert not any(spot.conflict for spot in places)
    assert accepted(review.base, places) == list(review.text)
    assert place(review, review.text) == ()


def test_a_conflict_of_a_proposal_stays_until_it_is_decided() -> None:
    review = carry(Review(BASE), ["one\n", "TWO\n", *BASE[2:]], 0)
    live = ["one\n", "zwei\n", *BASE[2:]]
    (spot,) = place(review, live)
    assert (spot.start, spot.end, spot.conflict) == (1, 2, True)
    again = proposed(live, [spot])
    (spot,) = place(again, live)
    assert spot.conflict
    assert spot.part.old == ("two\n",)
    assert place(again, ["one\n", "TWO\n", *BASE[2:]]) == ()
    assert not place(again, BASE)[0].conflict


def test_two_insertions_at_one_point_are_a_conflict_and_equal_ones_are_one() -> None:
    review = carry(Review(BASE), ["one\n", "new\n", *BASE[1:]], 0)
    assert place(review, ["one\n", "new\n", *BASE[1:]]) == ()
    (spot,) = place(review, ["one\n", "other\n", *BASE[1:]])
    assert (spot.start, spot.end, spot.conflict) == (1, 2, True)


def test_what_touches_a_proposal_is_no_conflict() -> None:
    review = carry(Review(BASE), ["one\n", "TWO\n", *BASE[2:]], 0)
    live = ["one\n", "mine\n", "two\n", "also\n", *BASE[2:]]
    (spot,) = place(review, live)
    assert (spot.start, spot.end, spot.conflict) == (2, 3, False)
    assert accepted(live, [spot]) == ["one\n", "mine\n", "TWO\n", "also\n", *BASE[2:]]


def test_what_a_person_typed_into_a_part_outlives_an_agent_that_writes_over_it() -> None:
    """Rejected, the agent's second change takes back only what agents wrote."""
    first = ["one\n", "two\n", "three\n"]
    review = carry(Review(first), ["one\n", "two A\n", "three\n"], 0)
    review = carry(review, ["one\n", "two A typed\n", "three\n"])
    review = carry(review, ["one\n", "two A typed B\n", "three\n"], 1)
    back = reject(review, all_of(review), spare=True)
    assert "two A typed\n" in back.text and "two A typed B\n" not in back.text
    assert back.text[0] == "one\n" and back.text[-1] == "three\n"
