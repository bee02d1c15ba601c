"""Going back in the fold: the conversation, what the model knows, and what stays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from magy_server.core import prompt
from magy_server.core.agents.mail import Mailed, Report, TextPayload
from magy_server.core.codec import blobs, decode, encode
from magy_server.core.events import (
    Admitted,
    Briefed,
    Compacted,
    Ended,
    Finished,
    Planned,
    Prompted,
    Requeued,
)
from magy_server.core.prompting import compaction as compact
from magy_server.core.reviews.file_history import history
from magy_server.core.reviews.review_events import Noted, Restored, Restoring
from magy_server.core.state import rewind
from magy_server.core.state.fold import fold
from magy_server.core.state.state import State
from magy_server.core.steps import Admit, Rest, next_step
from magy_server.core.updates import updates
from magy_server.core.values import FileChange, Section, Seen, Task, Text

from .build import STREAM, Log, briefed, call, finished, prompted


def turn(log: Log, id: str, *changes: FileChange, status: Any = "completed") -> Log:
    log.begin(f"Do {id}", id)
    if changes:
        one = call(f"{len(log.entries)}.0", "edit_file")
        log.reply(one)
        seen = tuple(Seen(path=c.path, hash=c.after) for c in changes if c.after)
        log.add(Finished(call=one.id, status=status, for_model="Done.", changes=changes, seen=seen))
    log.reply(Text(text=f"Did {id}"))
    return log.add(Ended(turn=id, stop="end_turn"))


def changed(path: str, before: str | None, after: str | None) -> FileChange:
    return FileChange(path=path, before=before, after=after)


def back(id: str, turn: str, **fields: Any) -> Restored:
    both = {"files": True, "conversation": True}
    return Restored(**{"id": id, "turn": turn, **both, **fields})


def said(state: State) -> list[str]:
    found = []
    for item in state.conversation.items:
        if isinstance(item, Prompted):
            found.append(item.id)
        elif isinstance(item, Noted):
            found.append(item.text)
    return found


def messages(state: State) -> Sequence[object]:
    texts = {"h1": "agent", "h2": "agent, changed", "s": "A summary."}
    return prompt.build(state, texts).messages


def test_what_is_cut_and_what_stays() -> None:
    log = turn(Log(), "p1", changed("/w/a", None, "a1"))
    log.add(Planned(tasks=(Task(content="one"),)))
    before = log.state
    turn(log, "p2", changed("/w/a", "a1", "a2"), changed("/w/b", None, "b1"))
    log.add(Planned(tasks=(Task(content="two"),)), prompted("waits", "p9"))
    whole = log.state
    changes = (changed("/w/a", "a2", "a1"), changed("/w/b", "b1", None))
    log.add(back("r", "p2", changes=changes))
    state = log.state
    assert state.conversation == before.conversation
    assert state.history.files == before.history.files
    assert (
        state.spending.usage == whole.spending.usage
        and state.turns == 2
        and "p2" in state.queue.seqs
    )
    assert [p.id for p in state.queue.waiting] == ["p9"] and messages(state) == messages(before)
    assert isinstance(next_step(state), Admit)


def test_redo_brings_all_of_it_back() -> None:
    log = turn(turn(Log(), "p1"), "p2", changed("/w/a", None, "a1"))
    whole = log.state
    log.add(back("r", "p1", changes=(changed("/w/a", "a1", None),)))
    assert said(log.state) == []
    log.add(back("r2", "p1", undoes="r", changes=(changed("/w/a", None, "a1"),)))
    assert log.state.conversation == whole.conversation
    assert (log.state.history.files, log.state.history.pasts) == (
        whole.history.files,
        whole.history.pasts,
    )
    log.add(back("r3", "p1", undoes="r2", changes=(changed("/w/a", "a1", None),)))
    assert said(log.state) == [] and len(log.state.history.kept) == 1
    turn(log, "p3")
    assert not log.state.history.kept and said(log.state) == ["p3"]


def result(id: str, sender: str = "s/2.0", **fields: Any) -> Mailed:
    report = Report(turn=f"{sender}:task", status="completed", stop="end_turn")
    about = {"agent": "general", "to": "s", "payload": TextPayload(text=id), "report": report}
    return Mailed(**{"id": id, "sender": sender, **about, **fields})


def waiting(log: Log) -> list[str]:
    return [arrival.id for arrival in log.state.queue.waiting]


def admitted(log: Log, id: str, *mail: str) -> Log:
    """A turn that gets this mail along with the prompt."""
    log.add(prompted("Well?", id), Admitted(turn=id, prompts=(*mail, id)))
    return log.reply(Text(text="Well.")).add(Ended(turn=id, stop="end_turn"))


def test_a_result_that_was_given_in_what_is_undone_waits_again() -> None:
    """One that came with a prompt, one that was waited for, and one that still waits."""
    log = turn(Log(), "p1").add(result("early", "s/4.0", wakes=False))
    log.add(result("said", report=None, wakes=False))
    admitted(log, "p2", "early", "said")
    log.begin("Wait.", "p3").add(result("waited", "s/mine")).reply(call("99.0", "wait_agent"))
    log.add(finished("99.0"), Requeued(dropped=("waited",))).reply(Text(text="Done."))
    log.add(Ended(turn="p3", stop="end_turn"), result("late", wakes=False))
    whole = log.state
    log.add(back("r3", "p3"))
    assert waiting(log) == ["waited", "late"] and said(log.state) == ["p1", "p2"]
    log.add(back("r2", "p2"))
    assert waiting(log) == ["early", "waited", "late"] and said(log.state) == ["p1"]
    assert next_step(log.state) == Rest()
    log.add(result("later"), back("redo 2", "p2", undoes="r2"))
    assert waiting(log) == ["waited", "late", "later"] and next_step(log.state) == Rest()
    log.add(back("redo 3", "p3", undoes="r3"))
    assert waiting(log) == ["late", "later"]
    assert (
        log.state.conversation.items == whole.conversation.items and next_step(log.state) == Rest()
    )
    log.add(back("again", "p3", undoes="redo 3"))
    assert waiting(log) == ["waited", "late", "later"]
    log.add(prompted("Go on.", "p4"))
    step = next_step(log.state)
    assert step == Admit(("waited", "late", "later", "p4"), turn="p4", opens=True)


def test_a_result_was_given_before_or_not_at_all() -> None:
    """What an earlier turn was given stays there; who was spawned in what is undone is forgotten
    with it."""
    log = turn(Log(), "p1").add(result("early", wakes=False))
    admitted(log, "p2", "early")
    log.begin("Delegate.", "p3")
    spawn = call(f"{len(log.entries)}.0", "spawn_agent")
    log.reply(spawn).add(finished(spawn.id), result("own", f"s/{spawn.id}"))
    log.reply(call("99.0", "wait_agent")).add(finished("99.0"), Requeued(dropped=("own",)))
    log.reply(Text(text="Done.")).add(Ended(turn="p3", stop="end_turn"))
    log.add(back("r", "p3"))
    assert waiting(log) == [] and said(log.state) == ["p1", "p2"]


@pytest.mark.parametrize("fields", [{}, {"conversation": False}])
def test_nothing_begins_by_itself_after_going_back(fields: Any) -> None:
    log = turn(turn(Log(), "p1"), "p2").add(back("r", "p2", **fields), result("m"))
    assert next_step(log.state) == Rest()
    log.add(back("r2", "p2", undoes="r", **fields), result("n"))
    assert next_step(log.state) == Rest()
    turn(log, "p3").add(result("o"))
    assert isinstance(next_step(log.state), Admit)


def test_redo_goes_step_by_step() -> None:
    log = turn(turn(turn(Log(), "p1"), "p2"), "p3")
    log.add(back("r3", "p3"), back("r2", "p2"))
    assert "undone further" in rewind.cannot_return(log.state, "r3")
    log.add(back("too early", "p3", undoes="r3"))
    assert said(log.state) == ["p1"]
    log.add(back("redo 2", "p2", undoes="r2"))
    assert said(log.state) == ["p1", "p2"] and not rewind.cannot_return(log.state, "r3")
    log.add(back("redo 3", "p3", undoes="r3"))
    assert said(log.state) == ["p1", "p2", "p3"]


def test_what_was_noted_meanwhile_stays_said() -> None:
    log = turn(turn(Log(), "p1"), "p2")
    log.add(back("r", "p2"), Noted(id="n", text="A note."))
    assert said(log.state) == ["p1", "A note."]
    log.add(back("r2", "p2", undoes="r"))
    assert said(log.state) == ["p1", "p2", "A note."]
    log.add(back("r3", "p2"))
    assert said(log.state) == ["p1"]


def test_of_files_alone_the_model_knows_what_it_had_seen_by_then() -> None:
    log = turn(Log(), "p1", changed("/w/a", None, "a1"), changed("/w/b", None, "b1"))
    turn(log, "p2", changed("/w/a", "a1", "a2"), changed("/w/b", "b1", "b2"))
    undone = (changed("/w/a", "a2", "a1"), changed("/w/b", "b2", "b1 and the person's"))
    log.add(back("r", "p2", conversation=False, changes=undone))
    assert said(log.state) == ["p1", "p2"] and log.state.conversation.seen == {"/w/a": "a1"}
    assert log.state.history.files == {"/w/a": "created", "/w/b": "created"}
    redone = (changed("/w/a", "a1", "a2"), changed("/w/b", "b1 and the person's", "b2 and hers"))
    log.add(back("r2", "p2", conversation=False, undoes="r", changes=redone))
    assert log.state.conversation.seen == {"/w/a": "a2"}


def test_a_conversation_alone_leaves_what_is_known_of_the_files() -> None:
    log = turn(turn(Log(), "p1", changed("/w/a", "a0", "a1")), "p2", changed("/w/a", "a1", "a2"))
    log.add(back("r", "p2", files=False))
    assert log.state.conversation.seen == {"/w/a": "a1"} and log.state.history.files == {
        "/w/a": "changed"
    }
    log.add(back("r2", "p2", files=False, undoes="r"))
    assert log.state.conversation.seen == {"/w/a": "a2"}
    log.add(back("r3", "p2", changes=(changed("/w/a", "a2", "a1"),)))
    log.add(back("r4", "p2", files=False, undoes="r3"))
    assert log.state.conversation.seen == {}


def test_what_came_back_without_its_files_is_not_known() -> None:
    log = turn(Log(), "p1", changed("/w/a", "a0", "a1"), changed("/w/b", "b0", "b1"))
    undone = (changed("/w/a", "a1", "a0"), changed("/w/b", "b1", "b0"))
    log.add(back("r", "p1", changes=undone))
    redone = (changed("/w/b", "b0", "b1"),)
    log.add(back("r2", "p1", undoes="r", changes=redone, conflicts=("/w/a",)))
    assert log.state.conversation.seen == {"/w/b": "b1"}


def test_a_briefing_that_is_undone_is_told_again() -> None:
    log = turn(Log(), "p1")
    news = briefed(sections=(Section(name="agent", hash="h2"),))
    log.add(news)
    turn(log, "p2")
    turn(log, "p3")
    log.add(back("r", "p3"))
    assert log.state.conversation.briefing == news and "agent, changed" in str(messages(log.state))
    log.add(back("r2", "p1"))
    assert log.state.conversation.briefing == briefed() and not any(
        isinstance(item, Briefed) for item in log.state.conversation.items
    )


def compacted(log: Log, dropped: int) -> Log:
    return log.add(Compacted(dropped=dropped, summary="s"))


def test_a_compaction_that_swallowed_the_beginning() -> None:
    log = turn(turn(turn(Log(), "p1"), "p2"), "p3")
    compacted(log, 4)
    why = rewind.cannot_go_back(log.state, "p2")
    assert "compacted" in why and why == rewind.cannot_go_back(log.state, "p1")
    assert rewind.cannot_go_back(log.state, "p3") == ""
    log.add(back("r", "p3"))
    assert [type(item) for item in log.state.conversation.items] == [Compacted]
    assert log.state.conversation.told == ("Do p1", "Do p2")
    again = log.state
    log.add(back("r2", "p2"))
    assert log.state.conversation.items == again.conversation.items


def test_a_turn_after_a_compaction_goes_back_to_right_after_it() -> None:
    log = turn(turn(Log(), "p1"), "p2")
    compacted(log, 2)
    before = log.state
    turn(log, "p3")
    log.add(back("r", "p3"))
    assert log.state.conversation.items == before.conversation.items
    assert (log.state.conversation.told, log.state.conversation.context) == (
        before.conversation.told,
        before.conversation.context,
    )
    log.add(back("r2", "p2"))
    assert [type(item) for item in log.state.conversation.items] == [Compacted]
    assert (
        log.state.conversation.told == ("Do p1",)
        and log.state.conversation.prefix == log.state.conversation.briefing
    )


def test_what_was_compacted_cannot_come_back() -> None:
    log = turn(turn(Log(), "p1"), "p2")
    log.add(back("r", "p2"))
    compacted(log, 2)
    assert rewind.cannot_return(log.state, "r") != ""
    log.add(back("r2", "p2", undoes="r"))
    assert [type(item) for item in log.state.conversation.items] == [Compacted]


def test_decisions_about_changes_outlive_compactions() -> None:
    log = turn(Log(), "p1")
    log.add(Noted(id="n", text="The user rejected\nyour change."))
    assert "The user rejected your change." in compact.digest(log.state, 3)
    compacted(log, 3)
    turn(log, "p2")
    assert "The user rejected your change." in compact.digest(log.state, 2)


def test_what_was_taken_back_is_not_kept_in_memory_for_ever() -> None:
    log = turn(Log(), "p0")
    for n in range(1, 6):
        turn(log, f"p{n}").add(back(f"r{n}", f"p{n}"))
        turn(log, f"q{n}")
    held = {id(item) for past in log.state.history.pasts for item in past.conversation.items._items}
    assert held <= {id(item) for item in log.state.conversation.items}


def test_where_it_makes_no_sense_nothing_happens() -> None:
    log = turn(Log(), "p1")
    before = log.state
    log.add(back("r", "nobody"), back("r2", "p1", undoes="never"))
    assert log.state.conversation.items == before.conversation.items
    log.begin("Do p2", "p2")
    log.add(back("r3", "p1"))
    assert said(log.state) == ["p1", "p2"] and log.state.turn is not None


def test_what_was_begun_is_known_until_it_is_done_or_too_late() -> None:
    begun = Restoring(id="r", turn="p1", files=True, conversation=True)
    log = turn(Log(), "p1").add(begun)
    assert log.state.history.restoring == begun == history(log.entries).begun
    assert isinstance(next_step(log.state), Rest)
    done = Log()
    done.entries = [*log.entries]
    assert done.add(back("r", "p1")).state.history.restoring is None is history(done.entries).begun
    log.begin("Do p2", "p2")
    assert log.state.history.restoring is None is history(log.entries).begun


def test_requests_replay_as_they_were_sent() -> None:
    log = turn(turn(Log(), "p1"), "p2")
    log.add(back("r", "p2"))
    turn(log, "p3")
    log.add(back("r2", "p3"), back("r3", "p3", undoes="r2"))
    turn(log, "p4")
    pairs = list(prompt.requests(log.entries, State(STREAM), {"h1": "agent"}))
    assert len(pairs) == 4
    last = str(pairs[-1][0].messages)
    assert "Do p2" not in last and all(f"Do {id}" in last for id in ("p1", "p3", "p4"))


def test_a_log_can_be_folded_in_pieces() -> None:
    log = turn(turn(Log(), "p1", changed("/w/a", None, "a1")), "p2")
    log.add(back("r", "p2"), back("r2", "p2", undoes="r"), back("r3", "p1"))
    for cut in range(len(log.entries)):
        half = fold(log.entries[:cut], State(STREAM))
        assert fold(log.entries[cut:], half) == log.state


@pytest.mark.parametrize("event", [
    back("r", "p1", changes=(changed("/w/a", "h1", "h2"),), conflicts=("/w/b",), undoes="r0"),
    Restoring(id="r", turn="p1", files=True, conversation=False,
              changes=(changed("/w/a", "h1", "h2"),)),
])  # fmt: skip
def test_the_events_are_kept_with_what_they_name(event: Restored | Restoring) -> None:
    assert decode(encode(event)) == event and blobs(event) == ("h1", "h2")


def test_clients_are_told() -> None:
    log = turn(Log(), "p1", changed("/w/a", None, "a1"))
    log.add(back("r", "p1", changes=(changed("/w/a", "a1", None),), conflicts=("/w/b",)))
    told, notice = updates(log.entries[-1], {})
    assert told == {
        "sessionUpdate": "_magy_restored", "restoreId": "r", "turnId": "p1", "undoes": None,
        "files": True, "conversation": True, "conflicts": ["/w/b"],
        "changes": [{"operation": "delete", "path": "/w/a"}],
    }  # fmt: skip
    assert notice["sessionUpdate"] == "notice" and "1 left alone" in notice["description"]


# --- what is undone -----------------------------------------------------------------------------


def test_which_steps_are_in_effect() -> None:
    log = turn(Log(), "p1", changed("/w/a", None, "a1"))
    turn(log, "p2", changed("/w/a", "a1", "a2"), changed("/w/b", None, "b1"))
    turn(log, "p3", FileChange(path="/w/c", before=None, after="c1", via="proposed"))
    assert history(log.entries).in_effect("p2") == [1, 2]
    log.add(back("r", "p2", conflicts=("/w/b",)))
    found = history(log.entries)
    assert found.in_effect("p1") == [0, 2] and found.state_of("p2") == "partly"
    assert [one.event.id for one in found.undone_by("p2")] == ["r"] and found.talk == ["p1"]
    log.add(back("r2", "p1", conversation=False))
    assert history(log.entries).in_effect("p1") == []
    log.add(back("r3", "p2", undoes="r", conversation=False))
    found = history(log.entries)
    assert found.in_effect("p1") == [1]
    assert [one.event.id for one in found.undone_by()] == ["r2", "r"]  # of r, the conversation
    log.add(back("r4", "p2", undoes="r"))
    found = history(log.entries)
    assert [one.event.id for one in found.undone_by()] == ["r2"] and found.talk[-2:] == ["p2", "p3"]
    log.add(back("r4", "p2", undoes="r2"))  # known
    assert history(log.entries).in_effect("p1") == [1]
