"""Decisions in processes that are killed: the file and the log never say different things for
long, and models are told what is so."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from magy_server.reviews.views import Which, Wish
from tests.engine.reviewing import Agent, Place, process
from tests.engine.test_reviews import BASE, NEW

AFTER = {
    "accept": NEW,
    "reject": NEW.replace("TWO", "two"),
    "amend": NEW.replace("TWO", "zwei"),
    "undo": NEW,
    "propose": BASE.replace("two", "TWO"),
}
SECOND = ("seven\n", "SEVEN\n")
FIRST = ("two\n", "TWO\n")


async def die(root: Path, state: Path, decision: str, when: str) -> None:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.engine.dying_review", str(root), str(state), decision, when
    )
    assert await child.wait() == -signal.SIGKILL


async def begun(root: Path, state: Path, decision: str) -> None:
    (root / "a.py").write_text(BASE)
    async with process(root, state) as place:
        agent = await place.agent()
        if decision == "propose":
            await agent.propose("a.py", NEW)
        else:
            await agent.write("a.py", NEW)


async def told_last(agent: Agent) -> str:
    told = await agent.told()
    return told[-1] if told else ""


@pytest.mark.parametrize("decision", ["reject", "amend", "undo", "propose"])
async def test_killed_after_the_file_was_changed(tmp_path: Path, decision: str) -> None:
    """The next look writes the decision down, and tells the model."""
    root, state = tmp_path.resolve() / "work", tmp_path / "state"
    root.mkdir()
    await begun(root, state, decision)
    await die(root, state, decision, "put")
    proposed = decision == "propose"
    async with process(root, state) as place:
        agent = await place.agent()
        count = len(await agent.told())
        assert place.text("a.py") == AFTER[decision]
        await place.reviews.list(str(root))
        left = await place.hunks("a.py", proposed)
        assert left == ([FIRST, SECOND] if decision == "undo" else [SECOND])
        told = await agent.told()
        assert len(told) == count + 1
        words = {"reject": "rejected", "amend": "with another text", "undo": "took back",
                 "propose": "accepted"}  # fmt: skip
        assert words[decision] in told[-1]
        assert (await place.decisions("a.py", proposed))[-1].id == "key"
        await again(place, decision)
        assert place.text("a.py") == AFTER[decision]
        assert len(await agent.told()) == count + 1


async def again(place: Place, decision: str) -> None:
    """The client asks once more, as it got no answer."""
    path, proposed = place.path("a.py"), decision == "propose"
    if decision == "undo":
        outcome = await place.reviews.undo("before", path, key="key")
    else:
        had = (await place.decisions("a.py", proposed))[-1]
        wish = Wish(had.verb, Which(ids=had.hunks), "why", "zwei\n", key="key")
        outcome = await place.reviews.resolve(path, wish, proposed)
    assert outcome.known


@pytest.mark.parametrize("decision", ["reject", "amend", "propose"])
async def test_killed_before_the_file_was_changed(tmp_path: Path, decision: str) -> None:
    """Nothing has happened: all is still pending, nobody was told, and it can be decided again."""
    root, state = tmp_path.resolve() / "work", tmp_path / "state"
    root.mkdir()
    await begun(root, state, decision)
    await die(root, state, decision, "append 1")
    proposed = decision == "propose"
    async with process(root, state) as place:
        agent = await place.agent()
        assert place.text("a.py") == (BASE if proposed else NEW)
        assert await place.hunks("a.py", proposed) == [FIRST, SECOND]
        assert await agent.told() == []
        assert await place.decisions("a.py", proposed) == []
        place.type("a.py", "typed\n" + place.text("a.py"))
        verb = "accept" if proposed else decision
        await place.decide(verb, "a.py", 0, proposed=proposed, text="zwei\n", key="key")
        assert place.text("a.py") == "typed\n" + AFTER[decision]
        assert await place.hunks("a.py", proposed) == [SECOND]
        assert len(await agent.told()) == 1


@pytest.mark.parametrize(
    ("decision", "when"),
    [("accept", "append 1"), ("reject", "append 2"), ("amend", "append 2"), ("undo", "append 2"),
     ("propose", "append 2")],
)  # fmt: skip
async def test_killed_after_all_was_written(tmp_path: Path, decision: str, when: str) -> None:
    root, state = tmp_path.resolve() / "work", tmp_path / "state"
    root.mkdir()
    await begun(root, state, decision)
    await die(root, state, decision, when)
    async with process(root, state) as place:
        agent = await place.agent()
        count = len(await agent.told())
        assert count == (2 if decision == "undo" else 1)
        assert place.text("a.py") == AFTER[decision]
        left = await place.hunks("a.py", decision == "propose")
        assert left == ([FIRST, SECOND] if decision == "undo" else [SECOND])
        await again(place, decision)
        assert len(await agent.told()) == count
