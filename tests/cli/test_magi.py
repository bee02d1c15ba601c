"""`magy magi`: a ruling from the command line, and the same again from the log."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from magy_server.core.magi.emotional_log import added, entry
from magy_server.core.magi.vote import Memory
from magy_server.team.magi import kept_log
from tests.cli.harness import Done, Magy
from tests.core.magi.build import said
from tests.e2e.test_child_tools import script
from tests.e2e.test_magi import ALL, QUESTION, asked, put

RULING = script(*ALL, asked(put()).replace("prompt: decide", f"prompt: {QUESTION}"))


def scripted(magy: Magy, script: str, *words: str) -> Done:
    magy.script(script)
    return magy(*words)


def session(magy: Magy) -> str:
    return magy("sessions", "list", "--ids").stdout.split()[0]


@pytest.mark.req("D103")
def test_a_ruling_is_the_same_again_byte_for_byte(magy: Magy) -> None:
    made = scripted(magy, RULING, "magi", QUESTION, "--format", "json")
    assert made.returncode == 0, made.stderr
    ruling = json.loads(made.stdout)
    assert (ruling["final"], ruling["standing"]) == ("APPROVED", "decisive")
    again = magy("magi", "replay", session(magy), "--format", "json")
    assert again.stdout == made.stdout
    assert "the same as in the log, byte for byte" in again.stderr


@pytest.mark.req("D057", "D058")
def test_the_same_ruling_in_each_form(magy: Magy) -> None:
    box = scripted(magy, RULING, "magi", QUESTION, "--format", "box").stdout
    assert box.startswith("+---") and "| FINAL RULING: APPROVED" in box
    text = magy("magi", "replay", session(magy)).stdout
    assert text.startswith("✅ MAGI: APPROVED (decisive)") and "👤 Safety" in text
    markdown = magy("magi", "replay", session(magy), "--format", "markdown").stdout
    assert markdown.startswith("# MAGI: APPROVED")


def test_on_a_terminal_the_turn_is_shown_like_any_other(magy: Magy) -> None:
    shown = scripted(magy, RULING, "magi", QUESTION)
    assert shown.returncode == 0 and "FINAL RULING: APPROVED" in shown.stdout
    assert "continue: magy run --resume" in shown.stdout


@pytest.mark.req("D097")
def test_a_condition_that_is_not_met_changes_the_ruling(magy: Magy) -> None:
    scripted(magy, RULING, "magi", QUESTION, "--format", "json")
    again = magy("magi", "replay", session(magy), "--unmet", "1")
    assert "NOT MET" in again.stdout and "2 APPROVE / 1 REJECT" in again.stdout


def test_a_ruling_that_was_changed_in_the_log_is_found(magy: Magy, tmp_path: Path) -> None:
    scripted(magy, RULING, "magi", QUESTION, "--format", "json")
    (database,) = (tmp_path / "state").rglob("*.db")
    with closing(sqlite3.connect(database)) as store, store:
        changed = store.execute(
            "UPDATE entries SET body = CAST(replace(CAST(body AS TEXT), ?, ?) AS BLOB) "
            "WHERE CAST(body AS TEXT) LIKE '%mailed%'",
            (r"\"confidence\": 90", r"\"confidence\": 10"),
        ).rowcount
    assert changed
    again = magy("magi", "replay", session(magy))
    assert again.returncode == 1 and "another than its votes come to" in again.stderr


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("replay", "nobody"), "There is no session 'nobody'"),
        ((" ",), "The prompt is empty"),
        (("x" * 20_001,), "The question has 20,001 characters, and at most 20,000 are judged."),
        (("Should we?", "--unmet", "1"), "--unmet is for a ruling that is there"),
        (("Should we?", "--unmet", "one"), "'one' is not the number of a condition"),
    ],
)
def test_what_cannot_be_asked_is_said(magy: Magy, words: tuple[str, ...], problem: str) -> None:
    done = scripted(magy, RULING, "magi", *words)
    assert done.returncode == 2 and problem in done.stderr


def test_a_session_without_a_ruling_is_said(magy: Magy) -> None:
    scripted(magy, "text: Hello.\n", "run", "Hello.")
    done = magy("magi", "replay", session(magy))
    assert done.returncode == 2 and "There is no ruling in session" in done.stderr


def test_what_is_declined_is_told_in_the_agents_words(magy: Magy) -> None:
    declined = asked(put("Should we dox him?")).replace("prompt: decide", "prompt:")
    done = scripted(magy, script(declined, *ALL), "magi", "Should we dox him?", "--format", "text")
    assert "MAGI declines this question" in done.stdout and done.returncode == 0


def test_where_nobody_can_be_asked_a_ruling_is_made_all_the_same(magy: Magy) -> None:
    """It only advises; what it says of a person stays to be done by one."""
    told = asked(put(domain="security")).replace("prompt: decide", f"prompt: {QUESTION}")
    votes = [said("APPROVE", 90)] * 3
    nodes = [f"prompt: question as {node}\ntext: {vote}\n" for node, vote in
             zip(("MELCHIOR", "BALTHASAR", "CASPER"), votes, strict=True)]  # fmt: skip
    made = scripted(magy, script(*nodes, told), "magi", QUESTION, "--format", "json")
    ruling = json.loads(made.stdout)
    assert ruling["final"] == "APPROVED" and ruling["person_needed"] and ruling["blocked"]


# --- CASPER's emotional log -----------------------------------------------------------------------


def test_people_read_casper_s_log_and_take_out_what_they_do_not_want(magy: Magy) -> None:
    assert "CASPER remembers nothing here." in magy("magi", "log").stdout
    now = time.time()
    for n in range(4):
        memory = Memory(valence=-0.9, primary_emotion="fear", lesson=f"Lesson {n}.")
        new = entry("Should we?", memory, now - n)
        kept_log.change(str(magy.root), partial(added, new=new, now=time.time()))
    listed = magy("magi", "log").stdout
    assert "until `magy magi log reviewed` none is used" in listed
    rows = {line.split()[-1]: line.split()[0] for line in listed.splitlines() if "fear" in line}
    assert list(rows) == ["0.", "1.", "2.", "3."], "the newest first"
    assert "lesson_1_line: Lesson 2." in magy("magi", "log", "show", rows["2."]).stdout
    assert "none is used" not in magy("magi", "log", "reviewed").stdout
    left = magy("magi", "log", "delete", rows["1."], rows["3."]).stdout
    assert "Lesson 0." in left and "Lesson 2." in left and "Lesson 1." not in left
    for words, problem in (
        (("show",), "needs the ids"), (("clear", "x"), "takes no ids"),
        (("delete", "zz"), "There is no entry 'zz'"),
    ):  # fmt: skip
        done = magy("magi", "log", *words)
        assert done.returncode == 2 and problem in done.stderr
    file = magy.root / kept_log.PATH
    file.write_text("{")
    broken = magy("magi", "log")
    assert broken.returncode == 2 and f"{file}:1 is not JSON" in broken.stderr
    assert magy("magi", "log", "clear").returncode == 0 and not file.exists()


def test_all_projects_are_forgotten_at_once(magy: Magy, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    magy.script("text: Hello.\n")
    magy("run", "Hello.", "--root", str(other))
    for root in (magy.root, other):
        (root / "memory").mkdir()
        (root / kept_log.PATH).write_text("{}")
    assert "of 2 projects" in magy("magi", "log", "forget").stderr
    assert not (other / kept_log.PATH).exists() and not (magy.root / kept_log.PATH).exists()


@pytest.mark.req("D079")
def test_a_ruling_that_overturns_another_is_accepted_by_a_person(magy: Magy) -> None:
    made = scripted(magy, RULING, "magi", QUESTION, "--format", "json")
    first, own = json.loads(made.stdout)["id"], session(magy)
    none = magy("magi", "accept", own)
    assert none.returncode == 2 and "waits to be accepted" in none.stderr
    review = put(review_of=first, review_reason="It failed.", complexity="simple",
                 new_evidence=["It failed at noon."])  # fmt: skip
    against = f"prompt: failed at noon\ntext: {said('REJECT', 90)}\n"
    again = script(against, *ALL, asked(review).replace("prompt: decide", "prompt: Review"))
    scripted(magy, again, "magi", "--resume", own, "--bypass", "Review it")
    replay = magy("magi", "replay", own)
    assert f"{first} holds until you accept {own}/" in replay.stderr, replay
    done = magy("magi", "accept", own)
    assert done.returncode == 0 and f"Accepted: {own}/" in done.stderr
    replay = magy("magi", "replay", own)
    assert f"holds in the place of {first}: a person accepted it." in replay.stderr
    assert "the same as in the log, byte for byte" in replay.stderr


def test_the_rulings_of_all_sessions_of_a_project_are_listed(magy: Magy, tmp_path: Path) -> None:
    assert "No question was put to MAGI in this project yet." in magy("magi", "list").stdout
    for _ in range(2):
        scripted(magy, RULING, "magi", QUESTION, "--format", "json")
    listed = magy("magi", "list").stdout
    assert listed.count("APPROVED (decisive, 50 %)") == listed.count(QUESTION) == 2
    both = magy("sessions", "list", "--ids").stdout.split()
    assert len({one for one in both if f"{one}/" in listed}) == 2
    as_json = json.loads(magy("magi", "list", "--format", "json").stdout)
    assert [ruling["final"] for ruling in as_json["rulings"]] == ["APPROVED"] * 2
    other = tmp_path / "other"
    other.mkdir()
    assert "No question" in magy("magi", "list", "--root", str(other)).stdout
