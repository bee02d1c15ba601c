"""Mail between agents, results and waits: on the real store, with the real loop."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from magy_server.core.agents.mail import DataPayload, Mailed, SignalPayload, TextPayload
from magy_server.core.errors import InvalidRequest, NotFound
from magy_server.core.events import Ended, Finished, Prompted, Replied
from magy_server.core.prompting.transcript import transcript
from magy_server.core.values import Text
from tests.patience import PATIENCE
from tests.thorough import examples

from .home import Home, delivered, faulty, home, mailed, texts

SCRIPT = """
prompt: start
text: Started.

prompt: work
text: I found it in app.py.

prompt: task 1.0
text: So it is in app.py.

prompt: slowly
text: One moment.
delay: 600
text: Too late.

prompt: quickly
text: Here it is.

prompt: more
text: And more.

prompt: fail
error: auth

prompt:
text: Understood.
"""
PING, CANCEL, SHUTDOWN = (SignalPayload(signal=s) for s in ("ping", "cancel", "shutdown"))


async def refused(sending: Awaitable[Any]) -> str:
    with pytest.raises((InvalidRequest, NotFound)) as caught:
        await sending
    return caught.value.message


async def streaming(here: Home, id: str) -> None:
    """Its model has begun to speak, and goes on for long."""
    session = await here.live(id)
    async with asyncio.timeout(PATIENCE):
        while not session.streaming.partials:
            await asyncio.sleep(0.005)


# --- results --------------------------------------------------------------------------------------


async def test_a_result_comes_in_the_same_transaction_and_opens_a_turn_once(
    tmp_path: Path,
) -> None:
    async with home(tmp_path, SCRIPT) as here:
        await here.new()
        await here.prompt("s", "start")
        await here.rested("s")
        await here.child("s/1.0", run="p1")
        await here.rested("s/1.0")
        state = await here.rested("s", 2)
        entries = await here.world.store.read("session/s")
        (mail,) = mailed([entry.event for entry in entries])
        assert (mail.sender, mail.agent, mail.name) == ("s/1.0", "general", "task 1.0")
        assert mail.payload == TextPayload(text="I found it in app.py.")
        assert mail.report and (mail.report.status, mail.report.requests) == ("completed", 1)
        assert delivered([e.event for e in entries], mail.id) == 1 and not state.queue.waiting
        assert state.spending.run == mail.run == "p1"
        ends = {e.event.type: e.at for e in await here.world.store.read("session/s/1.0")}
        assert ends["ended"] == next(e.at for e in entries if e.event == mail)
        assert "So it is in app.py." in await here.seen("s")
        # A new process finds nothing left to deliver.
    async with home(tmp_path, SCRIPT) as here:
        await here.service.resume_all([str(here.root)])
        assert (await here.state("s")).turns == 2
        assert len(mailed(await here.events("s"))) == 1


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ("fail", "failed", 'makes this request fail with "auth"'),
        ("quickly", "completed", "Here it is."),
    ],
)
async def test_what_a_child_ended_with_is_said(
    tmp_path: Path, text: str, status: str, said: str
) -> None:
    async with home(tmp_path, SCRIPT, settings={"model": {"retries": 0}}) as here:
        await here.new()
        await here.child("s/1.0", text)
        state = await here.rested("s")
        reported = state.reports["s/1.0"]
        assert reported.mail.report and reported.mail.report.status == status
        assert said in texts([reported.mail])[0]


async def test_what_was_cancelled_wakes_nobody_and_comes_with_the_next_prompt(
    tmp_path: Path,
) -> None:
    async with home(tmp_path, SCRIPT) as here:
        await here.new()
        await here.child("s/1.0", "slowly")
        await streaming(here, "s/1.0")
        await here.service.cancel("s/1.0", None)
        state = await here.until("s", lambda s: s.queue.waiting)
        (mail,) = mailed(state.queue.waiting)
        assert (mail.wakes, texts([mail])) == (False, ["One moment."])
        assert state.turn is None and state.turns == 0
        await here.prompt("s", "start")
        await here.rested("s")
        assert delivered(await here.events("s"), mail.id) == 1
        assert "One moment." in await here.seen("s")


async def test_what_was_deleted_behind_its_back_goes_on_nowhere(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as here:
        await here.new()
        await here.child("s/1.0", "slowly")
        await streaming(here, "s/1.0")
        assert await here.world.store.delete("session/s")
        assert "'s/1.0' was deleted" in await refused(here.service.cancel("s/1.0", None))
        assert "'s' was deleted" in await refused(here.prompt("s", "start"))
        async with asyncio.timeout(PATIENCE):
            while here.sessions.folded() or here.sessions.trees.held():
                await asyncio.sleep(0.01)
        assert "There is no session 's'" in await refused(here.prompt("s", "start"))


async def test_a_long_result_is_cut_and_says_where_the_rest_is(tmp_path: Path) -> None:
    async with home(tmp_path, f"text: {'x' * 30_000}\n") as here:
        await here.new()
        await here.child("s/a")
        await here.rested("s/a")
        (text,) = texts((await here.until("s", lambda s: s.reports)).queue.waiting)
        assert text.startswith("x" * 20_000 + "\n[These are the first 20000 of 30000 characters")
        assert "session s/a" in text


# --- sending --------------------------------------------------------------------------------------


async def test_a_message_opens_a_turn_joins_one_or_waits_and_comes_once(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as here:
        await here.new()
        await here.child("s/1.0", "quickly")
        await here.rested("s/1.0")
        send = here.mailing.send
        assert await send("s/1.0", "more", key="5.0", sender="s") == "started"
        assert await send("s/1.0", "more", key="5.0", sender="s") == "known"
        state = await here.rested("s/1.0", 2)
        (mail,) = mailed(await here.events("s/1.0"))
        assert re.fullmatch("[0-7][0-9A-HJKMNP-TV-Z]{25}", mail.id)
        assert (mail.sender, mail.agent, mail.to) == ("s", "build", "s/1.0")
        assert "And more." in await here.seen("s/1.0")
        assert await send("s/1.0", "slowly", key="6.0", sender="s") == "started"
        await streaming(here, "s/1.0")
        assert await send("s/1.0", "later", key="7.0", sender="s", delivery="queue") == "queued"
        assert await send("s/1.0", "also", key="8.0", sender="s") == "steered"
        assert await send("s/1.0", "quickly", key="9.0", sender="s",
                          delivery="interrupt") == "queued"  # fmt: skip
        state = await here.until("s/1.0", lambda s: not s.queue.waiting and s.turn is None)
        stops = [e.stop for e in await here.events("s/1.0") if isinstance(e, Ended)]
        assert stops == ["end_turn", "end_turn", "cancelled", "end_turn"]
        assert state.last_stop == "end_turn"


async def test_a_person_speaks_to_a_child_as_to_any_session(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as here:
        await here.new()
        await here.child("s/a", "quickly")
        await here.rested("s/a")
        said = [Text(text="more")]
        assert await here.mailing.send("s/a", said, key="k") == "started"
        assert await here.mailing.send("s/a", said, key="k") == "known"
        await here.rested("s/a", 2)
        (_, prompted) = [e for e in await here.events("s/a") if isinstance(e, Prompted)]
        assert (prompted.id, prompted.content, prompted.by) == ("k", tuple(said), here.world.me)


async def test_an_agent_speaks_to_its_own_and_to_its_parent(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as here:
        await here.new()
        for id in ("s/1.0", "s/1.1", "s/1.0/2.0"):
            await here.child(id, "quickly")
            await here.rested(id)

        def send(to: str, sender: str, **how: Any) -> Awaitable[Any]:
            return here.mailing.send(to, "hello", key="k", sender=sender, **how)

        assert await send("s/1.0/2.0", "s") == "started"
        assert await send("parent", "s/1.0") in ("started", "steered")
        assert "That is you" in await refused(send("s/1.0", "s/1.0"))
        assert "neither below you nor your parent" in await refused(send("s/1.1", "s/1.0"))
        assert "neither below you nor your parent" in await refused(send("s", "s/1.0/2.0"))
        assert "You have no parent" in await refused(send("parent", "s"))
        assert "There is no agent 's/9.0'" in await refused(send("s/9.0", "s"))
        up = send("parent", "s/1.0", delivery="interrupt")
        assert "cannot interrupt its parent" in await refused(up)
        up = here.mailing.send("parent", CANCEL, key="k2", sender="s/1.0")
        assert "cannot send cancel to its parent" in await refused(up)


async def test_a_closed_agent_takes_nothing(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as here:
        await here.new()
        await here.child("s/1.0", "quickly")
        await here.rested("s/1.0")
        await here.service.children.close("s/1.0", "finish", "done with it")
        for said in ("more", DataPayload(data={}), PING):
            why = await refused(here.mailing.send("s/1.0", said, key="k"))
            assert why.startswith(
                "Agent 's/1.0' is closed (done with it) and accepts nothing more."
            )
        assert (await here.state("s/1.0")).turns == 1


async def test_no_more_than_200_messages_wait(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as here:
        await here.new()
        await here.child("s/1.0", "slowly")
        await streaming(here, "s/1.0")

        async def send(number: int) -> str:
            return await here.mailing.send("s/1.0", "and", key=f"{number}.0", sender="s",
                                           delivery="queue")  # fmt: skip

        assert [await send(number) for number in range(200)] == ["queued"] * 200
        assert "200 messages wait for agent 's/1.0'" in await refused(send(200))
        assert await send(7) == "known"


# --- data and signals -----------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


async def test_data_never_reaches_a_model(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as here:
        await here.new()
        await here.child("s/1.0", "quickly")
        await here.rested("s/1.0")
        numbers = iter(range(1_000))

        @given(st.dictionaries(st.text(max_size=8), JSON))
        @settings(max_examples=examples(25), deadline=None)
        def holds(data: dict[str, Any]) -> None:
            found.append(DataPayload(data={**data, "secret": "XYZZY"}))

        found: list[DataPayload] = []
        holds()
        for number, payload in zip(numbers, found, strict=False):
            key = f"{number}.0"
            sent = await here.mailing.send("s/1.0", payload, key=key, sender="s")
            assert sent == "delivered"
            up = await here.mailing.send("parent", payload, key=key, sender="s/1.0")
            assert up == "delivered"
        await here.mailing.send("s/1.0", "more", key="text", sender="s")
        await here.rested("s/1.0", 2)
        assert [mail.payload for mail in await for_machines(here, "s/1.0")] == found
        assert "And more." in await here.seen("s/1.0")
        for id in ("s", "s/1.0"):
            assert "XYZZY" not in await here.seen(id)
            assert "XYZZY" not in transcript((await here.state(id)).conversation.items, 100_000)
        events = [json.dumps(e.model_dump(mode="json")) for e in await here.events("s/1.0")]
        assert sum("XYZZY" in event for event in events) == len(found)


async def beats(here: Home, id: str, count: int = 1) -> list[Any]:
    session, moved = await here.live(id), asyncio.Event()
    end = session.watch(moved.set)
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                moved.clear()
                mails = [event for event in await here.events(id) if isinstance(event, Mailed)]
                found = [m for m in mails if m.payload == SignalPayload(signal="heartbeat")]
                if len(found) >= count:
                    return found
                await moved.wait()
    finally:
        end()


async def for_machines(here: Home, id: str) -> list[Mailed]:
    mails = [event for event in await here.events(id) if isinstance(event, Mailed)]
    return [mail for mail in mails if not isinstance(mail.payload, TextPayload)]


async def test_a_ping_is_answered_once_though_the_model_says_nothing(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as here:
        await here.new()
        await here.child("s/1.0", "slowly")
        await streaming(here, "s/1.0")
        assert await here.mailing.send("s/1.0", PING, key="1.0", sender="s") == "delivered"
        assert await here.mailing.send("s/1.0", PING, key="1.0", sender="s") == "known"
        (beat,) = await beats(here, "s")
        (ping,) = await for_machines(here, "s/1.0")
        assert (beat.sender, beat.correlation) == ("s/1.0", ping.id)
        assert beat.metadata["state"] == "running"
        assert await here.mailing.send("s/1.0", PING, key="by a person") == "delivered"
        assert len(await beats(here, "s", 2)) == 2
        # It is answered for an agent that rests, too, and read again it is not answered again.
        await here.mailing.send("s/1.0", CANCEL, key="c", sender="s")
        await here.rested("s/1.0")
        await here.sessions.forget("session/s/1.0")
        await here.mailing.send("s/1.0", PING, key="3.0", sender="s")
        assert (await beats(here, "s", 3))[-1].metadata["state"] == "cancelled"
        assert not any(isinstance(e, Replied) for e in await here.events("s"))
        assert (await here.state("s")).turns == 0


def deaf_to_signals(here: Home) -> None:
    here.sessions.news.signalled._all.clear()


async def test_a_ping_that_nobody_could_answer_is_answered_after_a_restart(
    tmp_path: Path,
) -> None:
    async with home(tmp_path, SCRIPT) as here:
        await here.new()
        await here.child("s/1.0", "slowly")
        deaf_to_signals(here)  # as if the process had died right then
        await here.mailing.send("s/1.0", PING, key="1.0", sender="s")
    async with home(tmp_path, SCRIPT) as here:
        await here.service.resume_all([str(here.root)])
        await here.live("s/1.0")
        assert len(await beats(here, "s")) == 1


async def test_pings_that_were_answered_are_not_again_and_many_are_in_one_append(
    tmp_path: Path,
) -> None:
    count = 50
    async with home(tmp_path, SCRIPT) as here:
        await here.new()
        await here.child("s/1.0", "slowly")
        await streaming(here, "s/1.0")
        await here.mailing.send("s/1.0", PING, key="first", sender="s")
        await beats(here, "s")
        deaf_to_signals(here)  # as if the process had died right then
        for number in range(count):
            await here.mailing.send("s/1.0", PING, key=f"{number}.0", sender="s")
    async with home(tmp_path, SCRIPT) as here:
        await here.live("s/1.0")
        found = await beats(here, "s", count + 1)
        pings = [mail.id for mail in mailed(await here.events("s/1.0")) if mail.is_signal]
        assert sorted(beat.correlation for beat in found) == sorted(pings)
        assert len({e.at for e in await here.world.store.read("session/s")}) == 3
    async with home(tmp_path, SCRIPT) as here:
        head = (await here.state("s")).seq
        session = await here.live("s/1.0")
        await here.mailing.send("s/1.0", PING, key="last", sender="s")
        assert len(await beats(here, "s", count + 2)) == count + 2
        assert not session.gone and (await here.state("s")).seq == head + 1


async def test_what_a_childs_message_begins_is_as_with_its_result(tmp_path: Path) -> None:
    """Of one that a person spawned it comes along with their next prompt."""
    async with home(tmp_path, SCRIPT) as here:
        await here.new()
        await here.prompt("s", "start")
        await here.rested("s")
        for id in ("s/1.0", "s/mine", "s/mine/deep"):
            await here.child(id, "slowly")
            await streaming(here, id)
        send = here.mailing.send
        assert await send("parent", "hello", key="3.0", sender="s/mine") == "queued"
        assert await send("s/mine/deep", "more", key="4.0", sender="s/mine") == "steered"
        assert (await here.state("s")).turns == 1
        assert await send("parent", "hello", key="3.0", sender="s/1.0") == "started"
        state = await here.rested("s", 2)
        assert not state.queue.waiting


async def test_signals_cancel_and_shut_down(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as here:
        await here.new()
        await here.child("s/1.0", "slowly")
        await here.child("s/1.0/2.0", "slowly")
        await streaming(here, "s/1.0")
        assert await here.mailing.send("s/1.0", CANCEL, key="1.0", sender="s") == "delivered"
        for id in ("s/1.0", "s/1.0/2.0"):
            assert (await here.rested(id)).last_stop == "cancelled"
        assert await here.mailing.send("s/1.0", SHUTDOWN, key="2.0", sender="s") == "delivered"
        for id in ("s/1.0", "s/1.0/2.0"):
            assert (await here.state(id)).closed
        assert await here.mailing.send("s/1.0", SHUTDOWN, key="2.0", sender="s") == "known"


# --- waiting --------------------------------------------------------------------------------------


async def test_a_wait_sees_what_ended_before_it_began_and_what_ends_meanwhile(
    tmp_path: Path,
) -> None:
    async with home(tmp_path, SCRIPT) as here:
        await here.new()
        await here.child("s/a", "quickly")
        await here.rested("s/a")
        waited = await here.mailing.wait("s", ["s/a"], deadline=here.after(20))
        (result,) = waited.results
        assert (waited.why, result.text, result.child.status) == (
            "done", "Here it is.", "completed",
        )  # fmt: skip
        assert result.seq == waited.cursor and result.report and result.report.requests == 1
        # With the cursor only what comes after it counts.
        again = asyncio.create_task(
            here.mailing.wait("s", ["s/a"], after=waited.cursor, deadline=here.after(20))
        )
        await asyncio.sleep(0.05)
        assert not again.done()
        assert await here.mailing.send("s/a", "more", key="k1") == "started"
        (result,) = (await again).results
        assert result.text == "And more." and result.seq > waited.cursor


async def test_a_wait_that_times_out_stops_nobody(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as here:
        await here.new()
        await here.child("s/a", "slowly")
        await here.child("s/b", "quickly")
        await here.rested("s/b")
        waited = await here.mailing.wait("s", ["s/a", "s/b"], deadline=here.after(0.1))
        assert waited.why == "timed_out"
        assert [r.text for r in waited.results] == ["", "Here it is."]
        assert [r.child.status for r in waited.results] == ["running", "completed"]
        assert (await here.state("s/a")).turn
        first = await here.mailing.wait("s", until="any", deadline=here.after(20))
        found = {r.child.session: r.seq > 0 for r in first.results}
        assert (first.why, found) == ("done", {"s/a": False, "s/b": True})
        past = await here.mailing.wait("s", ["s/a"], deadline=here.after(-5))
        assert past.why == "timed_out"


@pytest.mark.req("E133")
async def test_a_wait_asks_nothing_while_it_waits(tmp_path: Path) -> None:
    """It has one timer and is told of each change: a longer wait reads no more than a short one."""
    store = await faulty(tmp_path)
    reads = store.done["read"]
    async with home(tmp_path, SCRIPT, store=store) as here:
        await here.new()
        await here.child("s/a", "slowly")
        await here.until("s/a", lambda s: s.turn)
        found = []
        for seconds in (0.05, 0.8):
            before = len(reads)
            waited = await here.mailing.wait("s", ["s/a"], deadline=here.after(seconds))
            assert waited.why == "timed_out"
            found.append(len(reads) - before)
        assert found[1] <= found[0]


@pytest.mark.req("E133")
async def test_a_model_waits_300_seconds_if_it_does_not_say_how_long(tmp_path: Path) -> None:
    script = "prompt: delegate\ncall: wait_agent {}\n---\ntext: I see.\n" + SCRIPT
    async with home(tmp_path, script) as here:
        await here.new()
        await here.child("s/a", "slowly")
        began = here.after(0)
        await here.prompt("s", "delegate")
        await here.until("s", lambda s: s.turn and any(c.started for c in s.turn.open_calls))
        (started,) = [e for e in await here.events("s") if e.type == "started"]
        assert started.evidence.deadline - began == pytest.approx(300, abs=15)


async def test_nobody_waits_upwards_or_for_who_is_not_there(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as here:
        await here.new()
        await here.child("s/1.0", "slowly")
        await here.child("s/1.1", "slowly")

        def wait(waiter: str, *ids: str) -> Awaitable[Any]:
            return here.mailing.wait(waiter, ids, deadline=here.after(20))

        for other in ("s", "s/1.0", "s/1.1"):
            assert "no two agents wait for each other" in await refused(wait("s/1.0", other))
        assert "There is no agent 's/7.0'" in await refused(wait("s", "s/7.0"))
        assert (await wait("s/1.1")).results == ()


async def test_a_wait_for_what_is_closed_or_deleted_ends(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as here:
        await here.new()
        await here.child("s/a", "slowly")
        await here.child("s/b", "slowly")
        both = asyncio.create_task(here.mailing.wait("s", deadline=here.after(60)))
        await streaming(here, "s/a")
        await here.service.children.close("s/a", "cancel")
        await here.service.delete("s/b")
        waited = await asyncio.wait_for(both, PATIENCE)
        assert (waited.why, waited.deleted) == ("done", ("s/b",))
        assert [r.child.status for r in waited.results] == ["closed"]


async def test_who_waits_and_is_deleted_is_told(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as here:
        await here.new()
        await here.child("s/a", "slowly")
        waiting = asyncio.create_task(here.mailing.wait("s", ["s/a"], deadline=here.after(60)))
        await streaming(here, "s/a")
        await here.service.delete("s")
        assert "which was waiting, was deleted" in await refused(
            asyncio.wait_for(waiting, PATIENCE)
        )


async def test_what_steers_the_waiter_interrupts_its_wait(tmp_path: Path) -> None:
    script = SCRIPT + '\nprompt: delegate\ncall: wait_agent {"job_ids": ["s/a"]}\n---\ntext: ok\n'
    async with home(tmp_path, script) as here:
        await here.new()
        await here.child("s/a", "slowly")
        await here.prompt("s", "delegate")
        await here.until("s", lambda s: s.turn and any(c.started for c in s.turn.open_calls))
        await here.prompt("s", "hurry", "p2")
        await here.rested("s")
        (finished,) = [e for e in await here.events("s") if isinstance(e, Finished)]
        assert finished.status == "completed"
        assert (await here.state("s/a")).turn
        assert "hurry" in await here.seen("s")


async def test_a_wait_of_another_process_sees_the_end(tmp_path: Path) -> None:
    async with home(tmp_path, SCRIPT) as here, home(tmp_path, SCRIPT) as there:
        await here.new()
        await here.child("s/a", "slowly")
        await streaming(here, "s/a")
        wait = asyncio.create_task(there.mailing.wait("s", ["s/a"], deadline=there.after(60)))
        await asyncio.sleep(0.05)
        await there.mailing.send("s/a", [Text(text="quickly")], key="k", delivery="interrupt")
        (result,) = (await asyncio.wait_for(wait, PATIENCE)).results
        assert result.text in ("One moment.", "Here it is.")
        # What is sent to a tree that nobody runs any more is delivered by who sends it, and who
        # delivers holds the tree meanwhile, and for a moment after that.
        while there.sessions.trees.holds("session/s"):
            await asyncio.sleep(0.01)
        await there.mailing.send("s/a", PING, key="p")
        assert len(await beats(there, "s")) == 1


class Ahead:
    """A clock that is some seconds ahead of everybody's."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def now(self) -> float:
        return time.time() + self._seconds


@pytest.mark.parametrize("passed", [3599.5, 7200])
async def test_a_wait_goes_on_after_a_restart_with_the_time_that_is_left(
    tmp_path: Path, passed: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = 'call: wait_agent {"job_ids": ["s/a"], "timeout": 3600}'
    script = SCRIPT + f"\nprompt: delegate\n{call}\n---\ntext: ok\n"
    async with home(tmp_path, script) as here:
        await here.new()
        await here.child("s/a", "slowly")
        await here.prompt("s", "delegate")
        await here.until("s", lambda s: s.turn and any(c.started for c in s.turn.open_calls))
    async with home(tmp_path, script) as here:
        monkeypatch.setattr(here.world.clock, "now", Ahead(passed).now)
        here.sessions.wake(await here.live("s"))
        state = await here.rested("s")
        (finished,) = [e for e in await here.events("s") if isinstance(e, Finished)]
        assert finished.status == "completed" and "running" in finished.for_model
        assert state.last_stop == "end_turn" and (await here.state("s/a")).turn


# --- each result exactly once ---------------------------------------------------------------------


@settings(
    max_examples=examples(12), deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate)
)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["spawn", "prompt", "wait", "steer", "restart", "pause"]),
            st.integers(0, 3),
        ),
        min_size=4,
        max_size=14,
    )
)
def test_each_result_is_delivered_once_whatever_happens_meanwhile(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    asyncio.run(_each_once(tmp_path_factory.mktemp("once"), steps))


async def _each_once(directory: Path, steps: list[tuple[str, int]]) -> None:
    left = list(enumerate(steps))
    while left:
        async with home(directory, "prompt:\ntext: Done.\n") as here:
            await here.new()
            await here.service.resume_all([str(here.root)])
            while left:
                number, (what, child) = left.pop(0)
                if what == "restart":
                    break
                await _step(here, what, f"s/{child}.0", number)
            else:
                await _settled(here)


async def _step(here: Home, what: str, child: str, number: int) -> None:
    there = await here.world.store.head(f"session/{child}")
    if what == "spawn":
        await here.child(child)
    elif what == "prompt":
        await here.prompt("s", "go on", f"p{number}")
    elif what == "wait" and there:
        waited = await here.mailing.wait("s", [child], until="any", deadline=here.after(0.01))
        assert all(result.report for result in waited.results if waited.why == "done")
    elif what == "steer" and there:
        await here.mailing.send(child, "and this", key=f"{number}.0", sender="s")
    await asyncio.sleep(0)


async def _settled(here: Home) -> None:
    """At the end each turn of each child was reported once, and each report has been read once."""
    ids = [f"s/{n}.0" for n in range(4) if await here.world.store.head(f"session/s/{n}.0")]
    for id in ids:
        (await here.live(id))
        await here.until(id, lambda s: s.turn is None and not s.queue.waiting)
    await here.state("s")  # what is in the log by now is known
    await here.until("s", lambda s: s.turn is None and not s.queue.waiting)
    events = await here.events("s")
    told = [(m.sender, m.report.turn) for m in mailed(events) if m.report]
    ended = [(id, e.turn) for id in ids for e in await here.events(id) if isinstance(e, Ended)]
    assert sorted(told) == sorted(ended) and len(set(told)) == len(told)
    for mail in mailed(events):
        assert delivered(events, mail.id) == 1


async def test_a_message_of_a_process_that_says_it_wrongly_fails_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with home(tmp_path, SCRIPT) as here:
        here.world.bus.publish("mail", {"by": "another", "to": 7})
        here.world.bus.publish("runner", {"by": "another", "run": 7})
        here.world.bus.publish("runner", {"by": "another", "free": 7})
    assert not caplog.records
