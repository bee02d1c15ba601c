"""`magy sessions prune`: what goes, what stays, and that nothing is ever half gone."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from magy_server.api.sessions.pruning import Plan, planned
from magy_server.core.agents.tree import Stream
from magy_server.core.events import Event, Opened
from magy_server.core.ports import Batch
from magy_server.core.reviews.review_events import Reviewed
from magy_server.core.values import NO_FILE, Origin
from magy_server.store.memory import MemoryStore
from magy_server.store.sqlite import SqliteStore
from tests.cli.harness import Done, Magy
from tests.contracts.build import blob, finished
from tests.patience import PATIENCE

SCRIPT = """
prompt: much
call: bash {"command": "seq 60000"}
---
text: Done.
prompt: edit
call: edit_file {"path": "app.py", "old_text": "'hello'", "new_text": "'bye'"}
---
text: Changed.
prompt: slow
delay: 600
text: Too late.
prompt:
text: Yes.
"""
DAY = 86_400


@pytest.fixture
def old(magy: Magy) -> Magy:
    """With a session of 40 days ago that has much, one of 35, and one of today."""
    magy.script(SCRIPT)
    for days, prompt in ((5, "much"), (35, "talk"), (0, "today")):
        assert magy("run", prompt, "--bypass").returncode == 0
        age(magy, days)
    return magy


def age(magy: Magy, days: int) -> None:
    """Everything happened so many days earlier."""
    rows(magy, f"UPDATE streams SET updated = updated - {days * DAY}")


def rows(magy: Magy, query: str) -> Sequence[Any]:
    with closing(sqlite3.connect(magy.state / "magy.db", timeout=PATIENCE)) as db, db:
        return db.execute(query).fetchall()


def titles(magy: Magy) -> list[str]:
    return [session["title"] for session in magy.sessions()]


def prune(magy: Magy, *words: str) -> Done:
    return magy("sessions", "prune", "--older-than", "30d", *words)


def test_first_it_says_what_would_go(old: Magy) -> None:
    done = prune(old, "--dry-run")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == f"{old.root} (here)"
    assert "talk  1 turn" in lines[1] and "much  1 turn" in lines[2]
    assert lines[2].endswith(" KiB") and "today" not in done.stdout
    assert lines[4].startswith("2 sessions can go: ")
    assert lines[5] == "1 session stays: 1 younger."
    refused = prune(old)
    assert refused.returncode == 2
    assert refused.stdout == done.stdout
    assert "There is nobody here to confirm this: add --yes." in refused.stderr
    assert titles(old) == ["today", "talk", "much"]


def test_it_goes_with_its_texts_and_their_room(old: Magy) -> None:
    file = old.state / "magy.db"
    before = file.stat().st_size
    (large,) = rows(old, "SELECT max(length(data)) FROM blobs")[0]
    assert large > 300_000
    done = prune(old, "--yes")
    assert done.returncode == 0, done.stderr
    assert "\nDeleted 2 sessions.\nThe database is " in done.stdout
    assert titles(old) == ["today"]
    assert before - file.stat().st_size > 300_000
    assert rows(old, "SELECT count(*) FROM blobs WHERE hash NOT IN (SELECT hash FROM refs)")[0] == (
        0,
    )
    assert old("run", "again", "--continue").returncode == 0
    assert prune(old, "-y").stdout == "There is nothing to delete.\n1 session stays: 1 younger.\n"


def test_the_newest_of_each_project_stay_and_other_projects_alone(
    old: Magy, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    assert old("run", "elsewhere", cwd=other).returncode == 0
    age(old, 31)

    def gone(*words: str) -> list[str]:
        found = json.loads(prune(old, "--dry-run", "--json", *words).stdout)
        return [session["title"] for session in found["sessions"]]

    assert sorted(gone()) == ["elsewhere", "much", "talk", "today"]
    assert gone("--keep", "1") == ["talk", "much"]
    assert gone("--project", str(other)) == ["elsewhere"]
    other.rmdir()
    done = prune(old, "--json", "--yes", "--project", str(other))
    found = json.loads(done.stdout)
    assert found["deleted"] == {"sessions": 1, "settledReviews": 0}
    assert [session["title"] for session in found["sessions"]] == ["elsewhere"]
    assert found["sessions"][0]["bytes"] > 0
    assert sorted(titles(old)) == ["much", "talk", "today"]


def test_what_waits_for_a_review_stays_until_it_is_settled(magy: Magy) -> None:
    magy.script(SCRIPT)
    assert magy("run", "edit", "--bypass").returncode == 0
    age(magy, 40)
    done = prune(magy, "--yes")
    assert (
        done.stdout == "There is nothing to delete.\n1 session stays: 1 with changes to review.\n"
    )
    (id,) = (session["sessionId"] for session in magy.sessions())
    assert magy("sessions", "undo", id).returncode == 0
    assert prune(magy, "--dry-run").stdout.splitlines()[-1] == "1 session stays: 1 younger."
    age(magy, 40)
    done = prune(magy, "--yes")
    assert "1 session and 1 settled review can go: " in done.stdout
    assert "\nDeleted 1 session and 1 settled review.\n" in done.stdout
    assert rows(magy, "SELECT stream FROM streams WHERE stream NOT LIKE 'project/%'") == []
    assert rows(magy, "SELECT hash FROM blobs") == rows(magy, "SELECT hash FROM refs")


def test_what_runs_elsewhere_stays_and_finds_its_database_whole(old: Magy) -> None:
    running = old.start("run", "slow")
    try:
        deadline = time.monotonic() + PATIENCE
        while "slow" not in titles(old):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        old.wait_for_turn()
        age(old, 50)
        done = prune(old, "--yes")
        assert "1 session stays: 1 in the middle of a turn." in done.stdout
        assert "Deleted 3 sessions." in done.stdout
        assert "did not get smaller, because another Magy uses the database." in done.stdout
        assert titles(old) == ["slow"]
        running.terminate()
        _, said = running.communicate(timeout=PATIENCE)
        assert "database" not in said
    finally:
        running.kill()
        running.wait()
    assert "The database is " in prune(old, "--yes").stdout


MANY = 60


def test_killed_in_between_each_session_is_whole_or_gone(magy: Magy) -> None:
    """Each shares a text with the next one."""

    async def fill() -> None:
        store = await SqliteStore.open(magy.state, clock=lambda: time.time() - 40 * DAY)
        for n in range(MANY):
            texts = [f"text {n}", f"text {n + 1}"]
            events: list[Event] = [opened(), *map(finished, texts)]
            batch = Batch(
                Stream(f"session/s{n}"), 0, events, blob(texts[0]) | blob(texts[1]), {"turns": 1}
            )
            await store.append([batch])
        await store.close()

    asyncio.run(fill())
    pruning = magy.start("sessions", "prune", "--older-than", "30d", "--yes")
    try:
        deadline = time.monotonic() + PATIENCE
        while rows(magy, "SELECT count(*) FROM streams")[0] == (MANY,):
            assert time.monotonic() < deadline and pruning.poll() is None
    finally:
        pruning.kill()
        pruning.communicate()
    left = {stream for (stream,) in rows(magy, "SELECT stream FROM streams")}
    assert 0 < len(left) < MANY
    counted = dict(rows(magy, "SELECT stream, count(*) FROM entries GROUP BY stream"))
    assert counted == dict.fromkeys(left, 3)
    assert rows(magy, "SELECT DISTINCT hash FROM refs ORDER BY hash") == rows(
        magy, "SELECT hash FROM blobs ORDER BY hash"
    )
    done = prune(magy, "--yes")
    assert f"Deleted {len(left)} sessions." in done.stdout
    assert rows(magy, "SELECT 1 FROM streams") == rows(magy, "SELECT 1 FROM blobs") == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "the following arguments are required: --older-than"),
        (["--older-than", "30"], "'30' is not an age: write a number and h, d or w, as in 30d"),
        (["--older-than", "0d"], "'0d' is not an age"),
        (["--older-than", "-1d"], "expected one argument"),
        (["--older-than", "1d", "--keep", "few"], "'few' is not a number of sessions"),
        (["--older-than", "1d", "--yes", "--dry-run"], "not allowed with argument"),
    ],
)
def test_what_cannot_be_meant_is_said(magy: Magy, words: list[str], said: str) -> None:
    done = magy("sessions", "prune", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


# --- what stays, and why ----------------------------------------------------------------------


def opened(root: str = "/shop") -> Opened:
    return Opened(root=root, cwd=root, agent="build", model="test")


async def plan(*given: Batch, before: float = 10.0) -> Plan:
    """Of these, appended one after the other, a second each."""
    ticks = iter(range(1, 1000))
    store = MemoryStore(clock=lambda: next(ticks))
    for one in given:
        await store.append([one])
    return await planned(store, before)


def session(name: str, **summary: Any) -> Batch:
    return Batch(Stream(f"session/{name}"), 0, [opened()], {}, {"state": "idle", **summary})


@pytest.mark.parametrize(
    ("summary", "why"),
    [
        ({"state": "requires_action"}, "waiting for an answer"),
        ({"state": "running"}, "in the middle of a turn"),
        ({"waiting": [{"messageId": "m"}]}, "in the middle of a turn"),
        ({"background": {"2.0": 4711}}, "with a command in the background"),
    ],
)
@pytest.mark.parametrize("name", ["a", "a/1.0"], ids=["itself", "a child"])
async def test_a_session_stays_with_all_below_it(
    name: str, summary: dict[str, Any], why: str
) -> None:
    others = [session("a")] if name != "a" else []
    found = await plan(*others, session(name, **summary), session("b"))
    assert [one.info.id for one in found.sessions] == ["b"]
    assert {name: number for name, number in found.stay.items() if number} == {why: 1}


async def test_a_child_that_did_something_lately_keeps_its_tree() -> None:
    found = await plan(session("a"), session("b"), session("a/1.0"), before=3.0)
    assert [one.info.id for one in found.sessions] == ["b"]
    assert found.stay["younger"] == 1


def review(path: str, pending: bool, by: str = "a", kind: str = "review") -> Batch:
    event = Reviewed(
        root="/shop", path=path, base=NO_FILE, agent=NO_FILE,
        origins=(Origin(session=by, agent="build", turn="t", call="1.0"),),
    )  # fmt: skip
    about = {"pending": pending, "reviewed": event.model_dump(mode="json")}
    return Batch(Stream(kind + path), 0, [event], {}, about)


async def test_reviews_go_when_they_are_settled_and_old() -> None:
    found = await plan(
        session("a"),
        session("b"),
        review("/shop/settled", False),
        review("/shop/settled", True, by="b/2.0", kind="proposal"),
        review("/shop/open", True, by="c"),
        *[session(f"x{n}") for n in range(5)],
        review("/shop/late", False),
        before=7.0,
    )
    assert found.settled == ["review/shop/settled"]
    assert [one.info.id for one in found.sessions] == ["x0", "a"]
    assert found.stay["with changes to review"] == 1


async def test_a_settled_review_of_what_is_a_folder_now_keeps_what_is_below() -> None:
    found = await plan(
        review("/shop/a", False), review("/shop/a/b", True), review("/shop/ab", False)
    )
    assert found.settled == ["review/shop/ab"]
