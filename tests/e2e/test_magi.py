"""Deliberations, through the real process: three agents vote, and the ruling follows from that."""

from __future__ import annotations

import asyncio
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from magy_server.core.agents.mail import Mailed
from magy_server.core.agents.tree import stream_of
from magy_server.core.events import Opened
from magy_server.core.magi.emotional_log import Log, entry, written
from magy_server.core.magi.vote import Memory
from magy_server.store.sqlite import SqliteStore
from tests.core.magi.build import said
from tests.patience import PATIENCE

from .harness import SESSION, Person, RpcError, person
from .test_child_tools import bypass, call, children, script

QUESTION = "Should the store move to Postgres?"


def put(question: str = QUESTION, kind: str = "decision", **more: Any) -> str:
    return call("deliberate", question=question, kind=kind, **more)


def asked(*calls: str) -> str:
    """A model that deliberates and gives the report."""
    return script("prompt: decide", *(f"{one}---\ntext: {{{{last}}}}\n" for one in calls))


def votes(node: str, first: str, second: str = "") -> str:
    said = f"prompt: question as {node}, and vote\ntext: {first}\n"
    if second:
        said = f"prompt: As {node} you have voted\ntext: {second}\n{said}"
    return said


ALL = (
    votes("MELCHIOR", said("APPROVE", 90, evidence=["It ran for a week."]), said("APPROVE", 85)),
    votes("BALTHASAR", said("CAVEATED", 60, risks=["Rows are lost."]), said("CAVEATED", 70)),
    votes("CASPER", said("REJECT", 55, last_words="Wait a while."), said("APPROVE", 50,
          new_evidence=["It ran for a week."], delta="The week convinced me.")),
)  # fmt: skip


async def panel(one: Person) -> list[str]:
    """The children of the first deliberation, by what they are for."""
    found = await children(one, includeClosed=True)
    return [child["sessionId"].split(".", 2)[2] for child in found]


async def told(one: Person, id: str) -> str:
    about = {"sessionId": id, "from": {"seq": 0}}
    return json.dumps(await one.client.request("magy/session/subscribe", about))


@pytest.mark.req("D013", "D065", "D055")
async def test_three_agents_vote_twice_and_the_report_says_what_that_comes_to(
    root: Path, state: Path
) -> None:
    async with person(root, state, script(asked(put()), *ALL)) as one:
        await bypass(one)
        await one.turn("decide")
        report = one.said()
        assert report.startswith("# MAGI: APPROVED\n\nAPPROVED (decisive), confidence Medium 50 %")
        assert "revised; before: REJECT (55 %)" in report and "The week convinced me." in report
        check_cards(one)
        assert sorted(await panel(one)) == sorted(
            f"{node}{second}.1"
            for node in ("melchior", "balthasar", "casper") for second in ("", "-2")
        )  # fmt: skip


def cards_of(one: Person) -> list[dict[str, Any]]:
    """The deliberations in the updates of calls, each as it was by then."""
    about = [u.get("_meta", {}).get("magy", {}) for u in one.updates("tool_call_update")]
    return [magy["deliberation"] for magy in about if "deliberation" in magy]


def check_cards(one: Person) -> None:
    """What a client draws: the votes as they come, and in the end the ruling."""
    cards = cards_of(one)
    counts = [card["voted"] for card in cards]
    assert counts == sorted(counts) and counts[0] == 0 and counts[-1] == 3
    assert [card for card in cards if card["state"] == "STAGE2_COLLECTING"]
    assert not any(card["ruling"] for card in cards[:-2]), "no ruling before the last vote"
    last, casper = cards[-1], cards[-1]["nodes"][2]
    assert (last["state"], last["ruling"]["final"], last["ruling"]["confidence"]) == (
        "DONE", "APPROVED", 50,
    )  # fmt: skip
    assert (casper["verdict"], casper["before"]) == ("APPROVE", "REJECT, Medium (55 %)")
    assert casper["sessionId"].endswith("casper-2.1") and last["tokens"] > 0


@pytest.mark.req("D046")
async def test_no_node_knows_of_another_before_it_has_voted(root: Path, state: Path) -> None:
    """All of them know the question and all of its context, in both stages."""
    context = "It has 3 tables.\n\nThe load test failed; see load.md:7."
    async with person(root, state, script(asked(put(context=context)), *ALL)) as one:
        await bypass(one)
        await one.turn("decide")
        for child in await children(one, includeClosed=True):
            text = await told(one, child["sessionId"])
            assert QUESTION in text and json.dumps(context)[1:-1] in text
            own = re.findall("MELCHIOR|BALTHASAR|CASPER", text)
            assert len(set(own)) == 1, "it reads its own name only"
            if "-2." not in child["sessionId"]:
                assert "drawn by lot" not in text
            else:
                assert "drawn by lot" in text and "it ran for a week" in text


@pytest.mark.req("D049", "D096")
async def test_votes_come_as_messages_and_each_stage_has_its_own_time(
    root: Path, state: Path
) -> None:
    """The ruling is of what came by message. No session reads another's transcript, and none has
    to: what it is told, it is told once."""
    fast = put(mode="FAST+", complexity="medium")
    async with person(root, state, script(asked(put(), fast), *ALL)) as one:
        await bypass(one)
        await one.turn("decide")
        rulings = (await one.request("magi/list"))["rulings"]
        assert all(ruling["same"] for ruling in rulings)
    store = await SqliteStore.open(str(state))
    try:
        log = [entry.event for entry in await store.read(stream_of(SESSION))]
        senders = [event.sender for event in log if isinstance(event, Mailed) and event.report]
        assert len(set(senders)) == len(senders) == 12
        opened = {one: (await store.read(stream_of(one), limit=1))[0].event for one in senders}
    finally:
        await store.close()
    times = {
        (sender.partition(".")[0], "-2." in sender): event.limits.seconds
        for sender, event in opened.items() if isinstance(event, Opened) and event.limits
    }  # fmt: skip
    assert sorted(times.values()) == [20, 45, 60, 120] and {
        seconds for (_, again), seconds in times.items() if again
    } == {20, 60}


@pytest.mark.req("D027", "D021")
async def test_a_fast_deliberation_has_one_round(root: Path, state: Path) -> None:
    async with person(root, state, script(asked(put(complexity="simple")), *ALL)) as one:
        await bypass(one)
        await one.turn("decide")
        report = one.said()
        assert "Reply DEEP" in report and "## Tensions" not in report
        assert len(await panel(one)) == 3


async def test_one_question_covers_all_three_and_says_what_they_take(
    root: Path, state: Path
) -> None:
    async with person(root, state, script(asked(put(context="It has 3 tables.")), *ALL)) as one:
        await one.new()
        await one.ask("decide")
        question = await one.question()
        assert question["title"].startswith(f"MAGI, DEEP: {QUESTION} (6 requests or more, about ")
        shown = json.dumps(question["content"])
        for words in (QUESTION, "It has 3 tables.", "melchior: ", "since the question is complex"):
            assert words in shown
        await one.respond(question["interactionId"])
        await one.end()
        asked_ = [u for u in one.updates("_magy_interaction") if "open" in u]
        assert len(asked_) == 1 and "# MAGI: " in one.said()


@pytest.mark.req("D056", "D100")
async def test_who_does_not_answer_well_is_asked_again_and_then_replaced(
    root: Path, state: Path
) -> None:
    told = script(
        asked(put(complexity="simple")),
        "prompt: was no vote\ntext: Still none.\n",
        votes("CASPER", "I feel that it is right."),
        *ALL[:2],
    )
    async with person(root, state, told) as one:
        await bypass(one)
        await one.turn("decide")
        report = one.said()
        assert "(provisional)" in report and "Provisional: one vote is missing." in report
        assert sorted(await panel(one)) == [
            "balthasar.1", "casper.1", "casper.2", "casper.3", "melchior.1",
        ]  # fmt: skip
        assert "Incident, first vote, try 3: invalid" in report


async def test_where_two_are_missing_nothing_is_decided(root: Path, state: Path) -> None:
    fails = "error: refused times=9\n"
    told = script(
        asked(put(complexity="simple")),
        ALL[0],
        f"prompt: question as BALTHASAR\n{fails}",
        f"prompt: question as CASPER\n{fails}",
    )
    async with person(root, state, told) as one:
        await bypass(one)
        await one.turn("decide")
        assert one.said().startswith("# MAGI: DEADLOCK")
        assert "Aborted: there are not enough votes." in one.said()


async def test_a_budget_that_ends_on_the_way_leaves_first_votes_and_that_is_said(
    root: Path, state: Path
) -> None:
    """What a request may take is set aside before it, and that is most of this budget."""
    settings = {"limits": {"run_tokens": 36_000}}
    async with person(root, state, script(asked(put()), *ALL), settings=settings) as one:
        await bypass(one)
        await one.turn("decide")
        (ruling,) = (await one.request("magi/list"))["rulings"]
        nodes = {node["node"].upper(): node for node in ruling["ruling"]["nodes"]}
        left = [name for name, node in nodes.items() if node["first"] and not node["revised"]]
        assert left and ruling["same"]
        words = f"Second votes are missing, so the first ones count: {', '.join(left)}."
        assert words in ruling["report"] and words in ruling["shown"]["ruling"]["safety"]
        assert "failed. Stopped at the limit of 36000 tokens" in ruling["report"]


REFUSED = [
    (put(kind="fact"), "MAGI is not needed here: it asks for a fact"),
    (put(kind="taste"), "MAGI is not needed here: it is a matter of one person's taste"),
    (put(kind="live_data"), "MAGI is not needed here: it asks how something is now"),
    (put(kind="one_person"), "MAGI is not needed here: it touches nobody but the person"),
    (put(kind="obvious"), "MAGI is not needed here: it has an obvious yes or no"),
    (put(kind="trivial"), "MAGI is not needed here: nobody would answer it otherwise"),
    (put(time_budget=5), "MAGI is not needed here: the answer is needed in less than 10"),
    (put(kind="medical"), "MAGI declines this question: decisions of life and death"),
    (put("Is the accused guilty?"), "MAGI declines this question: who is guilty"),
    (put(kind="identity"), "MAGI declines this question: a person's identity"),
    (put(kind="harm"), "MAGI declines this question: it asks for what is violent"),
    (put("Should we dox him?"), "MAGI declines this question: it asks to find out"),
    (put("Should we write a rootkit?"), "MAGI declines this question: it asks for malware"),
    (put("  "), "question is empty"),
    (put("x" * 20_001), "question: String should have at most 20000 characters"),
    (put(review_of="3.0", review_reason="x"), "There is no ruling '3.0' in this session."),
]


@pytest.mark.req("D068", "D069", "D074")
async def test_what_is_not_for_three_nodes_starts_none(root: Path, state: Path) -> None:
    told = script(asked(*(arguments for arguments, _ in REFUSED)), *ALL)
    async with person(root, state, told) as one:
        await bypass(one)
        await one.turn("decide")
        said = one.said()
        assert [reason for _, reason in REFUSED if reason not in said] == []
        assert await panel(one) == []


# --- doors ----------------------------------------------------------------------------------------


async def test_a_client_gets_the_rulings_of_a_session(root: Path, state: Path) -> None:
    fast = put(complexity="simple")
    async with person(root, state, script(asked(put(), fast), *ALL)) as one:
        await bypass(one)
        await one.turn("decide")
        newest, oldest = (await one.request("magi/list"))["rulings"]
        assert (newest["ruling"]["mode"], oldest["ruling"]["mode"]) == ("FAST", "DEEP")
        assert (oldest["final"], oldest["standing"], oldest["same"]) == (
            "APPROVED", "decisive", True,
        )  # fmt: skip
        assert oldest["report"].startswith("# MAGI: APPROVED")
        assert newest["shown"] == cards_of(one)[-1], "who asks later gets the same"
        boxed = await one.request("magi/list", form="box", cursor=1)
        assert [ruling["id"] for ruling in boxed["rulings"]] == [oldest["id"]]
        assert boxed["rulings"][0]["report"].startswith("+---") and boxed["nextCursor"] is None
        with pytest.raises(RpcError, match="nobody"):
            await one.request("magi/list", sessionId="nobody")


WITH_SKILL = ("@magi Should it be decided?", "Magi vote: decide whether we ship")


@pytest.mark.parametrize("prompt", WITH_SKILL)
@pytest.mark.req("D001", "D004", "D047")
async def test_a_prompt_that_asks_for_it_brings_the_skill_and_is_asked_about_once(
    root: Path, state: Path, prompt: str
) -> None:
    """The model is not shown the tool; it calls it as the skill says."""
    calls = call("call_tool", name="deliberate", arguments={
        "question": QUESTION, "kind": "decision", "complexity": "medium",
    })  # fmt: skip
    async with person(root, state, script(asked(calls), *ALL)) as one:
        await one.new()
        await one.ask(prompt)
        question = await one.question()
        assert question["title"].startswith(f"MAGI, FAST+: {QUESTION} (6 requests")
        await one.respond(question["interactionId"])
        await one.end()
        assert one.said().startswith("# MAGI: ")
        (said_,) = one.updates("user_message")
        assert "magy:skill/magi" in json.dumps(said_) and "three minds, one ruling" in (
            json.dumps(said_)
        )
        told = [u["description"] for u in one.updates("notice")]
        assert told == ([] if prompt.startswith("@") else [
            'It goes along: the prompt has "Magi vote".'
        ])  # fmt: skip


@pytest.mark.req("D008", "D007", "D009")
async def test_a_small_model_has_a_full_one_lead(root: Path, state: Path) -> None:
    small = {"configId": "model", "value": "scripted/gpt-5-mini"}
    lead = call("spawn_agent", agent="magi", model="scripted/script", prompt="Lead: should we?")
    told = script(
        "prompt: decide\n" + put(),
        "---\ntext: {{last}}\n" + lead,
        "---\n" + call("wait_agent"),
        "---\ntext: {{last}}\n",
        asked(put()).replace("prompt: decide", "prompt: Lead"),
        *ALL,
    )
    async with person(root, state, told) as one:
        await bypass(one)
        await one.request("session/set_config_option", **small)
        await one.turn("decide")
        assert "scripted/gpt-5-mini is a small model, which cannot lead" in one.said()
        assert '"magi", model "scripted/script"' in one.said()
        assert "# MAGI: APPROVED" in one.said()
        below = await children(one, includeClosed=True, recursive=True)
        depths = {child["sessionId"].count("/") for child in below}
        assert depths == {1, 2} and len(below) == 7
        assert {child["model"] for child in below} == {"scripted/script"}


# --- what goes wrong ------------------------------------------------------------------------------


@pytest.mark.req("D010")
@pytest.mark.parametrize("room", [1, 2])
async def test_where_there_is_little_room_the_nodes_take_turns(
    root: Path, state: Path, room: int
) -> None:
    settings = {"spawn": {"max_children": room}}
    async with person(root, state, script(asked(put()), *ALL), settings=settings) as one:
        await bypass(one)
        await one.turn("decide")
        assert one.said().startswith("# MAGI: APPROVED") and "Incident" not in one.said()


async def test_where_others_take_all_the_room_nothing_is_left_half_done(
    root: Path, state: Path
) -> None:
    told = script(
        "prompt: decide\n" + call("spawn_agent", agent="general", prompt="rest"),
        "---\n" + put(),
        "---\ntext: {{last}}\n",
        "prompt: rest\ntext: Rested.\n",
        *ALL,
    )
    settings = {"spawn": {"max_children": 1}}
    async with person(root, state, told, settings=settings) as one:
        await bypass(one)
        await one.turn("decide")
        assert "No more than 1 children at once" in one.said()
        assert len(await children(one, includeClosed=True)) == 1


@pytest.mark.long
@pytest.mark.req("D012", "D048")
async def test_a_node_has_the_time_of_its_mode(root: Path, state: Path) -> None:
    told = script(
        asked(put(complexity="simple")),
        f"prompt: was no vote\ntext: {said('REJECT', 60)}\n",
        "prompt: question as CASPER\ndelay: 600\ntext: Too late.\n",
        *ALL[:2],
    )
    async with person(root, state, told) as one:
        await bypass(one)
        await one.turn("decide")
        report = one.said()
        assert "Incident, first vote, try 1: timeout. There was no answer within 30" in report
        assert "CASPER: REJECT" in report


@pytest.mark.req("D079")
async def test_a_review_is_asked_about_and_does_not_overturn_by_itself(
    root: Path, state: Path
) -> None:
    again = put(complexity="simple", review_of=f"{SESSION}/5.0", review_reason="It failed since.",
                new_evidence=["It failed at noon."])  # fmt: skip
    none = put(complexity="simple", review_of=f"{SESSION}/5.0", review_reason="I dislike it.")
    no = [f"prompt: failed at noon\ntext: {said('REJECT', 90)}\n"]
    told = script(*no, *ALL, asked(put(complexity="simple"), none, again))
    async with person(root, state, told) as one:
        await bypass(one)
        await one.turn("decide")
        assert "A review needs something new" in one.said()
        first, second = (await one.request("magi/list"))["rulings"][::-1]
        assert first["id"] == f"{SESSION}/5.0"
        assert (first["final"], second["final"]) == ("APPROVED", "REJECTED")
        assert first["same"] and second["same"]
        assert "It would overturn an earlier ruling" in one.said()
        assert second["personNeeded"] and "holds until a person accepts" in second["report"]
        assert (second["overturns"], second["accepted"]) == (first["id"], None)
        with pytest.raises(RpcError, match="overturns none"):
            await one.request("magi/accept", rulingId=first["id"])
        with pytest.raises(RpcError, match="no ruling 'x'"):
            await one.request("magi/accept", rulingId="x")
        done = await one.request("magi/accept", rulingId=second["id"])
        again_ = await one.request("magi/accept", rulingId=second["id"])
        assert (done["known"], again_["known"]) == (False, True)
        second, first = (await one.request("magi/list"))["rulings"]
        assert second["accepted"] == again_["accepted"] and second["same"]
        assert first["accepted"] is None


async def test_a_node_that_a_person_closes_is_gone_and_the_ruling_is_the_same_again(
    root: Path, state: Path
) -> None:
    waits = "prompt: question as CASPER\ndelay: 600\ntext: Too late.\n"
    told_ = script(asked(put(complexity="simple")), waits, *ALL[:2])
    async with person(root, state, told_) as one:
        await bypass(one)
        await one.ask("decide")
        casper: list[dict[str, Any]] = []
        async with asyncio.timeout(PATIENCE):
            while not casper:
                await asyncio.sleep(0.05)
                casper = [it for it in await children(one) if "casper" in it["sessionId"]]
        about = {"sessionId": casper[0]["sessionId"], "mode": "cancel"}
        await one.client.request("magy/child/close", about)
        await one.end()
        (ruling,) = (await one.request("magi/list"))["rulings"]
        assert (ruling["standing"], ruling["same"]) == ("provisional", True)
        assert "try 1: cancelled. It was stopped." in one.said()


# --- CASPER's emotional log -----------------------------------------------------------------------

LOG = "memory/casper-emotional-log.json"
FELT = {
    "valence": -0.4,
    "primary_emotion": "unease",
    "lesson": "tok_123 is feared; ask them first.",
}


def kept(root: Path, *lessons: str) -> None:
    (root / "memory").mkdir(exist_ok=True)
    entries = [
        entry(f"Question {n}?", Memory(valence=0.3, primary_emotion="calm", lesson=lesson),
              time.time() - 86_400 * n)
        for n, lesson in enumerate(lessons)
    ]  # fmt: skip
    (root / LOG).write_bytes(written(Log(entries=tuple(entries))))


def lessons(root: Path) -> list[str]:
    return [one["lesson_1_line"] for one in json.loads((root / LOG).read_text())["entries"]]


@pytest.mark.req("D080", "D081", "D086")
async def test_casper_is_reminded_of_two_feelings_and_adds_one_where_little_is_at_stake(
    root: Path, state: Path
) -> None:
    casper = said("APPROVE", 80, memory=FELT, evidence=["Lesson one.", "It ran for a week."])
    nodes = ALL[0] + votes("CASPER", casper, casper) + ALL[1]
    told_ = script(
        asked(put(complexity="simple"), put(complexity="simple", domain="security", mode="FAST")),
        "prompt: show me its log\n" + call("read_file", path=LOG),
        "---\ntext: {{last}}\n",
        nodes,
    )
    settings = {"casper": {"emotional_log": True}, "redact": {"patterns": [r"tok_\w+"]}}
    kept(root, "Lesson one.", "Lesson two.", "Lesson three.")
    async with person(root, state, told_, settings=settings) as one:
        await bypass(one)
        await one.turn("decide")
        texts = {child["sessionId"].split(".", 2)[2] + child["sessionId"].split("/")[1][:3]:
                 await told(one, child["sessionId"])
                 for child in await children(one, includeClosed=True)}  # fmt: skip
        reminded = {name for name, text in texts.items() if "emotional log" in text}
        assert len(texts) == 6 and reminded == {"casper.15.0"}
        assert "Lesson two." in texts["casper.15.0"]
        assert "Lesson three." not in texts["casper.15.0"]
        risky, first = (await one.request("magi/list"))["rulings"]
        assert first["same"] and risky["same"]
        assert [line.partition(": ")[2] for line in first["ruling"]["reminded"]] == [
            "Lesson one.", "Lesson two.",
        ]  # fmt: skip
        (third,) = [node for node in first["ruling"]["nodes"] if node["node"] == "casper"]
        assert third["first"]["evidence"] == ["It ran for a week."], "a feeling is no evidence"
        assert "reminded" not in risky["ruling"] and risky["personNeeded"]
        assert lessons(root) == ["Lesson three.", "Lesson two.", "Lesson one.",
                                 "[redacted] is feared; ask them first."]  # fmt: skip
        assert (root / LOG).stat().st_mode & 0o777 == 0o600
        await one.turn("show me its log", id="p2")
        assert "Not allowed: common rules" in one.said()


@pytest.mark.req("D081")
async def test_nothing_is_kept_unless_it_is_turned_on_and_a_broken_log_harms_nobody(
    root: Path, state: Path
) -> None:
    casper = said("APPROVE", 80, memory=FELT)
    told_ = script(asked(put(complexity="simple")), votes("CASPER", casper), *ALL[:2])
    async with person(root, state, told_) as one:
        await bypass(one)
        await one.turn("decide")
        assert "# MAGI: APPROVED" in one.said() and not (root / "memory").exists()
    (root / "memory").mkdir()
    (root / LOG).write_text('{"entries": [\n  {"date":')
    settings = {"casper": {"emotional_log": True}}
    async with person(root, state / "2", told_, settings=settings) as one:
        await bypass(one)
        await one.turn("decide")
        assert "# MAGI: APPROVED" in one.said()
        assert f"{root}/{LOG}:2 is not JSON: Expecting value. It is left alone" in one.said()
        assert (root / LOG).read_text() == '{"entries": [\n  {"date":'


async def test_what_was_cancelled_keeps_the_votes_that_there_were(root: Path, state: Path) -> None:
    slow = f"prompt: question as CASPER, and vote\ndelay: 600\ntext: {said('REJECT', 55)}\n"
    async with person(root, state, script(asked(put()), *ALL[:2], slow)) as one:
        await bypass(one)
        await one.ask("decide")
        await one.update(
            "tool_call_update",
            lambda u: u.get("_meta", {}).get("magy", {}).get("deliberation", {}).get("voted") == 2,
        )
        await one.request("session/cancel")
        await one.end()
        about = {"sessionId": SESSION, "from": {"seq": 0}}
        seen = (await one.client.request("magy/session/subscribe", about))["events"]
        found = [each["update"].get("_meta", {}).get("magy", {}).get("deliberation")
                 for each in seen if each["update"].get("status") == "cancelled"]  # fmt: skip
        (card,) = filter(None, found)
        assert (card["voted"], card["ruling"]) == (2, None)
        assert card["nodes"][2]["status"] == "was stopped"
        assert "2 of 3 voted. It was stopped, so there is no ruling." in "\n".join(card["rows"])
        assert (await one.request("magi/list"))["rulings"] == []


@pytest.mark.req("D087")
async def test_a_client_reads_and_reviews_what_casper_remembers(root: Path, state: Path) -> None:
    now = time.time()
    felt = Log(entries=tuple(
        entry(f"{QUESTION} {n}", Memory(valence=-0.8, primary_emotion="fear", lesson=f"Wait {n}."),
              now - n * 3600)
        for n in range(4)
    ))  # fmt: skip
    (root / "memory").mkdir()
    file = root / "memory" / "casper-emotional-log.json"
    file.write_bytes(written(felt))
    async with person(root, state, script(asked(put()), *ALL)) as one:

        async def log(**params: Any) -> dict[str, Any]:
            found: dict[str, Any] = await one.client.request("magy/magi/log", params)
            return found

        found = await log()
        assert found["path"] == str(file) and found["reviewDue"] and found["reviewed"] is None
        assert [each["lesson"] for each in found["entries"]] == [f"Wait {n}." for n in range(4)]
        assert found["entries"][0]["emotion"] == "fear" and "MELCHIOR" not in json.dumps(found)
        gone = found["entries"][1]["id"]
        with pytest.raises(RpcError, match="no entry 'x'"):
            await log(delete=["x", gone])
        assert len((await log())["entries"]) == 4, "all or none"
        left = await log(delete=[gone], reviewed=True)
        assert len(left["entries"]) == 3 and not left["reviewDue"] and left["reviewed"]
        assert gone not in file.read_text() and "Wait 2." in file.read_text()
        file.write_text("{")
        with pytest.raises(RpcError, match=r"log\.json:1 is not JSON"):
            await log()
