"""What an editor made of an edit, told from the texts that it shows."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from magy_server.api.positions import Positions
from magy_server.edits.model import TextChange
from magy_server.edits.rebasing.diff import apply
from magy_server.lsp.verify_edit import Verdict, carried, span
from tests.thorough import examples

BASE = "one\ntwo\nthree\nfour\nfive\n"
EDIT = (TextChange(4, 7, "2"), TextChange(14, 18, "4\n4b"))
TEXT = st.text(st.sampled_from("ab\né😋"), max_size=12)


def steps(before: str, changes: tuple[TextChange, ...] = EDIT) -> list[str]:
    """What an editor shows that carries the edit out at its old positions, part by part."""
    at, there = Positions(BASE, "utf-16"), Positions(before, "utf-16")
    shown = []
    for change in reversed(changes):
        ends = [there.offset(**at.position(end)) for end in (change.start, change.end)]
        before = before[: ends[0]] + change.text + before[ends[1] :]
        shown.append(before)
    return shown


def judged(*texts: str, mending: bool = False) -> Verdict:
    verdict = Verdict(BASE, EDIT, "utf-16", mending=mending)
    for text in texts:
        verdict.show(text)
    return verdict


def test_the_edit_as_asked() -> None:
    assert judged(*steps(BASE)).landed
    assert judged(apply(BASE, EDIT)).landed
    assert judged(apply(BASE, EDIT).replace("\n", "\r\n")).landed
    other_order = apply(BASE, EDIT[:1])
    assert judged(other_order, apply(BASE, EDIT), apply(BASE, EDIT) + "typed").landed


def test_the_edit_in_smaller_parts_from_the_end_on() -> None:
    """VS Code leaves out of an edit what stays, and tells of the rest in one notification."""
    base = "    message = 'hello ' + name\n    print(message)\n"
    after = "    message = f'hi, {name}'\n    print(message, flush=True)\n"
    verdict = Verdict(base, (TextChange(14, len(base) - 2, after[14:-2]),), "utf-16")
    texts = [base[:-2] + ", flush=True)\n"]
    for old, new in (("' + name\n", "{name}'\n"), ("hello ", "hi, "), ("'hi", "f'hi")):
        assert not verdict.show(texts[-1])
        assert old in texts[-1]
        texts.append(texts[-1].replace(old, new))
    assert verdict.show(texts[-1]) and texts[-1] == after
    assert verdict.landed

    typed = Verdict(base, (TextChange(14, len(base) - 2, after[14:-2]),), "utf-16")
    assert not typed.show(base.replace("print", "# typed\n    print"))
    assert not any(typed.show(text) for text in texts), "what was typed was swallowed"


def test_what_was_typed_behind_it_is_kept() -> None:
    typed = BASE + "typed"
    assert judged(typed, *steps(typed)).landed


def test_what_was_typed_before_it_is_put_right() -> None:
    typed = "typed\n" + BASE
    verdict = judged(typed, *steps(typed))
    assert not verdict.landed and verdict.merged
    assert apply(steps(typed)[-1], verdict.owed or ()) == "typed\n" + apply(BASE, EDIT)


def test_what_was_typed_in_the_lines_of_it_wins() -> None:
    typed = BASE.replace("two", "t!wo")
    verdict = judged(typed, *steps(typed))
    assert not verdict.landed and not verdict.merged
    assert apply(steps(typed)[-1], verdict.owed or ()) == typed


def test_an_expected_text_that_swallowed_what_was_typed_is_not_believed() -> None:
    """The typing was inside what the edit replaced, and the edit is as it was asked for."""
    typed = BASE.replace("two", "two!")
    wrong = apply(BASE, EDIT)
    assert not judged(typed, wrong).landed


def test_what_is_typed_later_moves_what_is_owed() -> None:
    typed = "typed\n" + BASE
    wrong = steps(typed)[-1]
    verdict = judged(typed, *steps(typed), "more\n" + wrong)
    assert apply("more\n" + wrong, verdict.owed or ()) == "more\ntyped\n" + apply(BASE, EDIT)
    assert not verdict.lost


def test_what_is_typed_into_what_is_owed_stays() -> None:
    typed = "typed\n" + BASE
    wrong = steps(typed)[-1]
    meant = "typed\n" + apply(BASE, EDIT)
    for at in range(len(wrong) + 1):
        inside = wrong[:at] + "!" + wrong[at:]
        verdict = judged(typed, *steps(typed), inside)
        assert not verdict.lost
        done = apply(inside, verdict.owed or ())
        assert done.count("!") == 1 and done.replace("!", "") == meant
    verdict = judged(typed, *steps(typed), "")
    assert verdict.lost and not verdict.landed


def test_other_texts_decide_nothing() -> None:
    verdict = judged("something", "else", BASE.upper())
    assert (verdict.landed, verdict.owed, verdict.texts) == (False, None, 3)


@settings(max_examples=examples(300))
@given(before=TEXT, after=TEXT)
def test_a_span_is_the_difference(before: str, after: str) -> None:
    found = span(before, after)
    assert apply(before, [found]) == after
    assert len(found.text) <= len(after) and (before != after) == (
        found.start < found.end or found.text != ""
    )


@settings(max_examples=examples(300))
@given(text=TEXT, at=st.integers(0, 12), new=TEXT, typed_at=st.integers(0, 12))
def test_carried_changes_do_the_same(text: str, at: int, new: str, typed_at: int) -> None:
    change = TextChange(min(at, len(text)), min(at + 2, len(text)), new)
    where = min(typed_at, len(text))
    typed = TextChange(where, where, "!")
    moved = carried((change,), typed)
    assert moved is not None
    done = apply(apply(text, [typed]), moved)
    assert done.replace("!", "", 1) == apply(text, [change])


def test_an_edit_of_very_many_parts_is_judged_while_it_comes_and_while_someone_types() -> None:
    lines = [f"line {n}\n" for n in range(6000)]
    base = "".join(lines)
    starts = [sum(map(len, lines[:n])) for n in range(0, 6000, 3)]
    parts = tuple(TextChange(start, start + 4, "Line") for start in starts)
    coming = [apply(base, parts[-20 * n :]) for n in range(1, len(parts) // 20 + 1)]
    verdict = Verdict(base, parts, "utf-32")
    assert [verdict.show(text) for text in coming] == [False] * (len(coming) - 1) + [True]
    assert verdict.landed
    typing = Verdict(base, parts, "utf-32")
    typed = [base + "typed"[:n] for n in range(1, 6)] * 20
    assert not any(typing.show(text) for text in typed)
    assert typing.show(apply(typed[-1], parts)) and typing.landed
