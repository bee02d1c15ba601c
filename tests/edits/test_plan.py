"""From what a model wants, written for a text it has seen, to changes of the live text."""

from __future__ import annotations

import pytest

from magy_server.edits import plan as plan_module
from magy_server.edits.model import Hunk, Resolved
from magy_server.edits.plan import DONE_ALREADY, plan, plan_text
from magy_server.edits.rebasing.diff import apply
from magy_server.edits.rebasing.rebase import Conflict

SEEN = """\
def price(item):
    net = item.net
    tax = net * 0.19
    return net + tax


def label(item):
    name = item.name.strip()
    return name.title()
"""
TAX = Hunk("    tax = net * 0.19\n", "    tax = net * item.rate\n", lines=True)
NAME = Hunk("    return name.title()\n", "    return name\n", lines=True)


def text(live: str, resolved: Resolved) -> str:
    assert not resolved.failures
    return apply(live, resolved.changes)


def refusal(resolved: Resolved) -> str:
    (failure,) = resolved.failures
    assert failure.code == "conflict"
    return failure.message


def test_without_a_text_seen_the_live_one_counts() -> None:
    for seen in (None, SEEN):
        assert text(SEEN, plan(SEEN, [TAX], seen)) == SEEN.replace("0.19", "item.rate")


def test_what_the_user_typed_around_it_is_merged() -> None:
    live = "import money\n\n" + SEEN.replace("net = item.net\n", "net = money.of(item)  # cents\n")
    shown = Hunk(
        "    net = item.net\n    tax = net * 0.19\n",
        "    net = item.net\n    tax = net * item.rate\n",
        lines=True,
    )
    assert text(live, plan(live, [shown, NAME], SEEN)) == live.replace("0.19", "item.rate").replace(
        "name.title()", "name"
    )


def test_the_old_text_need_not_be_unique_any_more() -> None:
    live = SEEN + "\n\ndef gross(net):\n    tax = net * 0.19\n    return net + tax\n"
    assert [failure.code for failure in plan(live, [TAX]).failures] == ["ambiguous"]
    assert text(live, plan(live, [TAX], SEEN)) == live.replace("0.19", "item.rate", 1)


def test_a_conflict_shows_what_both_did_and_what_to_do() -> None:
    live = "# prices\n" + SEEN.replace("0.19", "0.20")
    resolved = plan(live, [NAME, TAX], SEEN)
    assert refusal(resolved) == (
        "The user changed these same lines after they were read; this edit would undo that "
        "change:\n"
        "line 4, what was changed since:\n"
        "-    tax = net * 0.19\n"
        "+    tax = net * 0.20\n"
        "line 4, what this edit would change:\n"
        "-    tax = net * 0.19\n"
        "+    tax = net * item.rate\n"
        "Read the file again, and edit its present lines."
    )
    assert [(failure.hunk, failure.lines) for failure in resolved.failures] == [(1, (4,))]
    assert [placed.hunk for placed in resolved.placed] == [0]


def test_two_insertions_at_one_point_undo_nothing() -> None:
    at = "    tax = net * 0.19\n"
    live = SEEN.replace(at, f"{at}    audit(tax)\n")
    message = refusal(plan(live, [Hunk(at, f"{at}    check(tax)\n", lines=True)], SEEN))
    assert "undo" not in message
    assert "nothing tells which come first" in message
    assert "+    audit(tax)" in message and "+    check(tax)" in message


def test_one_conflict_that_stops_many_hunks_is_worked_out_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[Conflict] = []
    shown = plan_module._shown

    def counted(conflict: Conflict) -> str:
        told.append(conflict)
        return shown(conflict)

    monkeypatch.setattr(plan_module, "_shown", counted)
    there = [f"line {n} = value" for n in range(300)]
    seen = "\n".join(there) + "\n"
    live = "".join(f"\t{line}\n" for line in there)
    wanted = [Hunk(f"{line}\n", f"{line} + 1\n", lines=True) for line in there[::3]]
    resolved = plan(live, wanted, seen)
    assert [failure.code for failure in resolved.failures] == ["conflict"] * 100
    assert len(told) == len(set(told)) == 1


@pytest.mark.parametrize("clash", [False, True])
def test_many_hunks_over_many_edits_of_the_user(clash: bool) -> None:
    there = [f"line {n} = value\n" for n in range(20_000)]
    live = [f"user {line}" if n % 4 == (0 if clash else 1) else line
            for n, line in enumerate(there)]  # fmt: skip
    wanted = [Hunk(line, f"model {line}", lines=True) for line in there[::20]]
    resolved = plan("".join(live), wanted, "".join(there))
    if clash:
        assert [failure.code for failure in resolved.failures] == ["conflict"] * 1_000
    else:
        live[::20] = [f"model {line}" for line in there[::20]]
        before = [f"user {line}" if n % 4 == 1 else line for n, line in enumerate(there)]
        assert apply("".join(before), resolved.changes) == "".join(live)


@pytest.mark.parametrize("size", [5, 3000])
def test_a_conflict_is_told_at_bounded_length(size: int) -> None:
    block = "".join(f"line {n}\n" for n in range(size))
    live = block.replace("line", "live")
    resolved = plan(live, [Hunk(block, block.replace("line", "mine"), lines=True)], block)
    assert len(refusal(resolved)) < 6000


def test_a_block_that_is_gone_is_not_looked_for_in_its_like() -> None:
    price, _, rest = SEEN.partition("\n\n\n")
    cost = price.replace("price", "cost").replace("+ tax", "- tax")
    hunk = Hunk(f"{price}\n", f"{price}\n".replace("0.19", "item.rate"), lines=True)
    seen, live = f"{price}\n\n\n{cost}\n\n\n{rest}", f"{cost}\n\n\n{rest}"
    message = refusal(plan(live, [hunk], seen))
    assert "-def price(item):\n" in message


def test_what_the_user_has_done_already_is_no_failure() -> None:
    live = "\n" + SEEN.replace("0.19", "item.rate")
    resolved = plan(live, [TAX, NAME], SEEN)
    assert text(live, resolved) == live.replace("name.title()", "name")
    assert resolved.placed[0].note == DONE_ALREADY
    assert resolved.placed[0].changes == ()


def test_a_hunk_that_was_not_seen_is_looked_for_in_what_is_there() -> None:
    live = SEEN + "\n\nLIMIT = 3\n"
    wanted = Hunk("LIMIT = 3", "LIMIT = 4")
    resolved = plan(live, [TAX, wanted], SEEN)
    assert text(live, resolved) == live.replace("0.19", "item.rate").replace("= 3", "= 4")
    assert [placed.hunk for placed in resolved.placed] == [0, 1]


def test_it_must_not_be_what_another_hunk_changes() -> None:
    live = SEEN.replace("    return net + tax\n", "    return net + tax  # gross\n")
    end = SEEN.index("    return net + tax\n")
    below = Hunk("    tax = net * 0.19\n", "    tax = net * 0.19\n    check(tax)\n", lines=True)
    gross = "    return net + tax  # gross\n"
    same = Hunk(gross, f"    assert tax\n{gross}", lines=True)
    resolved = plan(live, [below, same], SEEN)
    assert "hunk 1" in refusal(resolved)
    assert (
        apply(live, resolved.changes)[: end + 22]
        == SEEN[:end] + "    check(tax)\n" + live[end : end + 7]
    )


def test_what_is_in_neither_is_told_of_the_live_text() -> None:
    live = SEEN + "\n\nLIMIT = 3\n"
    resolved = plan(live, [NAME, Hunk("LIMITS = frozenset()\n", "x\n", lines=True)], SEEN)
    (failure,) = resolved.failures
    assert (failure.hunk, failure.code) == (1, "not_found")
    assert len(resolved.placed) == 1


def test_line_ends_follow_the_live_text() -> None:
    live = SEEN.replace("\n", "\r\n")
    new = text(live, plan(live, [TAX, NAME], SEEN))
    assert new == live.replace("0.19", "item.rate").replace("name.title()", "name")


# --- whole texts --------------------------------------------------------------------------------


def test_a_whole_text_is_what_it_changes() -> None:
    live = SEEN.replace("tax = net * 0.19", "tax = net * 0.20")
    new = SEEN.replace("name.title()", "name")
    assert text(live, plan_text(live, new, SEEN)) == live.replace("name.title()", "name")
    assert text(live, plan_text(live, new)) == new


def test_a_whole_text_is_refused_whole() -> None:
    live = SEEN.replace("0.19", "0.20").replace("title()", "upper()")
    new = SEEN.replace("0.19", "0.21").replace("title()", "lower()").replace("net + tax", "tax")
    resolved = plan_text(live, new, SEEN)
    assert not resolved.placed
    message = refusal(resolved)
    assert message.count("what was changed since:") == 2
    assert "+    tax = net * 0.20" in message and "+    return name.lower()" in message


# --- what was made, and rejected since ------------------------------------------------------------


@pytest.mark.parametrize("wanted", [TAX, NAME])
def test_an_edit_whose_result_was_rejected_is_made_again(wanted: Hunk) -> None:
    made = text(SEEN, plan(SEEN, [wanted]))
    assert plan(made, [wanted], made).failures[0].code == "already_applied"
    again = plan(SEEN, [wanted], made)
    assert text(SEEN, again) == made


def test_an_insertion_that_was_rejected_is_made_again_beside_what_was_typed() -> None:
    line = "    return name.title()\n"
    wanted = Hunk(line, f"    name = name.strip().casefold()\n{line}", lines=True)
    made = text(SEEN, plan(SEEN, [wanted]))
    live = "typed = 1\n" + SEEN
    assert text(live, plan(live, [wanted], made)) == "typed = 1\n" + made


def test_an_edit_that_the_user_wrote_over_is_not_made_again() -> None:
    wanted = Hunk("    tax = net * 0.19\n", "    tax = net * item.rate\n", lines=True)
    made = text(SEEN, plan(SEEN, [wanted]))
    live = made.replace("net * item.rate", "net * 0.21")
    resolved = plan(live, [wanted], made)
    assert not resolved.placed
    assert [one.code for one in resolved.failures] == ["not_found"]


def test_the_same_edit_twice_in_a_call_is_made_once_more() -> None:
    made = text(SEEN, plan(SEEN, [TAX]))
    resolved = plan(SEEN, [TAX, TAX], made)
    assert [one.hunk for one in resolved.placed] == [0]
    assert [one.code for one in resolved.failures] == ["already_applied"]


def test_a_whole_text_that_says_what_was_seen_does_not_say_what_is_there() -> None:
    made = SEEN.replace("0.19", "item.rate")
    assert not plan_text(made, made, made).failures
    assert "-    tax = net * item.rate" in refusal(plan_text(SEEN, made, made))
