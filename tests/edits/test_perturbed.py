"""The engine on spoilt edits from this repository's own history; and the generator's labels."""

from __future__ import annotations

import atexit
import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from tests.edits.perturbed.case import Case
from tests.edits.perturbed.concurrent import CONCURRENT
from tests.edits.perturbed.generate import CLASSES, NoHistory, generate
from tests.edits.perturbed.history import File, Site
from tests.edits.perturbed.judge import Answer, exact_only, judge, shares, verdict
from tests.edits.perturbed.placeholders import SAYING

TOP = Path(__file__).parents[2]
OLDEST = 15
"""Commits of this repository that cases are made of: new ones do not change the cases."""
A_CLASS = 15


@cache
def history() -> Path:
    """This repository; or, where it came without its history, one made of its files."""
    counted = _git(TOP, "rev-list", "--count", "--no-merges", "HEAD") or "0"
    if int(counted) > OLDEST:
        return TOP
    place = tempfile.mkdtemp(prefix="history-")
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return _made_up(Path(place))


def _made_up(into: Path) -> Path:
    """Each commit replaces some lines of each file by others of it; the next one undoes that."""
    rng = random.Random(1)
    _git(into, "init", "-q")
    names = ["-c", "user.name=n", "-c", "user.email=n@localhost"]
    texts = {path.name: path.read_text() for path in sorted((TOP / "magy_server").rglob("*.py"))}
    for turn in range(2 * OLDEST):
        for name, text in texts.items():
            lines = text.splitlines(keepends=True)
            for _ in range(3 if turn % 2 else 0):
                at, other = rng.randrange(len(lines) + 1), rng.randrange(len(lines) + 1)
                lines[at : at + 2] = lines[other : other + 3]
            (into / name).write_text("".join(lines))
        _git(into, "add", "-A")
        _git(into, *names, "commit", "-q", "-m", str(turn))
    return into


def _git(place: Path, *words: str) -> str:
    command = ["git", "-C", str(place), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


@cache
def cases() -> Sequence[Case]:
    return tuple(generate([history()], 1, A_CLASS, oldest=OLDEST))


def test_spoilt_edits_are_seen_through_or_refused() -> None:
    """At least 99 % right of what should apply, at most 0.05 % wrong of all, none applied that must
    be refused; concurrent edits merge, or are refused as often as git refuses them."""
    report = judge(cases())
    assert report.all.n > 250
    assert not report.misses(), "\n".join([report.table(), *shares(report)])


def test_every_class_is_there() -> None:
    found = {case.kind for case in cases()}
    # this repository has no tabs, and few braces that close others
    assert {*CLASSES, *CONCURRENT} - found <= {"tabs_as_spaces", "closers_only"}


def test_labels_agree_with_replacing_what_is_there_once() -> None:
    """An edit that is exact and unique in the text comes to just what the label says, line ends
    aside; and nothing that must be refused is exact and unique, but what leaves something out.
    Nor is a part of a line all of it."""
    for case in cases():
        if case.kind in (*SAYING, "cut_last_line", "cut_first_line"):
            continue
        if (
            case.kind not in ("crlf_file", "closers_only")
            and case.seen is None
            and not case.anchors
        ):
            assert verdict(case, exact_only(case)) != "wrong", case
        if case.kind in ("exact", "user_insert_elsewhere"):
            assert exact_only(case).text == case.expected


def test_blanks_in_empty_lines_count_where_nothing_changes() -> None:
    text, wanted = "a\n \nb\n \nc\n", "a\n \nB\n \nC\nd\n"
    case = Case("other_steps", "", "", "", text, "", "", True, wanted)
    assert verdict(case, Answer(wanted.replace("B\n \n", "B\n\n"))) == "right"
    assert verdict(case, Answer(wanted.replace("a\n \n", "a\n\n"))) == "wrong"
    assert verdict(case, Answer(wanted.replace("C", " C"))) == "wrong"
    exact = Case("exact", "", "", "", text, "", "", True, wanted)
    assert verdict(exact, Answer(wanted.replace("B\n \n", "B\n\n"))) == "wrong"


@pytest.mark.parametrize(
    "put", [["    # ..."], ["import first"], ["import first", ""]], ids=["stands", "twice", "gap"]
)
def test_concurrent_edits_that_may_be_refused_anyway_are_left_out(put: list[str]) -> None:
    lines = ["import first", "import second", "import third", "value = first.load(second)"]
    rng = random.Random(1)
    for perturb in CONCURRENT.values():
        assert perturb(Site("", "", "", File(lines), 2, 2, tuple(put)), rng) is None
    kept = Site("", "", "", File(lines), 2, 2, ("import fourth",))
    assert CONCURRENT["seen_block_gone"](kept, rng)


def test_a_block_that_only_closes_others_is_left_out() -> None:
    lines = ["</table>", "</section>", "</article>"]
    site = Site("", "", "", File(lines), 1, 1, ("<aside>words</aside>",))
    assert all(perturb(site, random.Random(1)) is None for perturb in CONCURRENT.values())


def test_a_seed_says_it_all() -> None:
    place = [history()]
    first, again, other = (list(generate(place, seed, 2, oldest=OLDEST)) for seed in (1, 1, 2))
    assert first == again
    assert len({*first} & {*other}) < len(first) / 10


def test_the_gates_notice_a_careless_engine() -> None:
    def first_place(case: Case) -> Answer:
        first = case.old.split("\n")[0]
        return Answer(case.text.replace(first, case.new, 1))

    report = judge([case for case in cases() if case.seen is None], first_place)
    assert len(report.misses()) == 3
    wrong = [found for found in report.failed if found["verdict"] == "wrong"]
    assert len(wrong) == len(report.failed) > 200
    assert {"text", "old", "new", "expected", "got", "commit", "path"} <= wrong[0].keys()


def test_the_command_prints_a_table_and_writes_what_failed(tmp_path: Path) -> None:
    failed = tmp_path / "failed.json"
    done = subprocess.run(
        [sys.executable, "-m", "tests.edits.perturbed", "--seed=1", "--cases=2", "--engine=exact",
         "--class=exact", "--class=line_number_prefix", f"--json={failed}", str(history())],
        cwd=TOP, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "exact                          2      2      0        0" in done.stdout
    assert "MISSED: right in 2 of 4 that should apply, under 99%" in done.stdout
    assert [case["kind"] for case in json.loads(failed.read_text())] == ["line_number_prefix"] * 2


def test_a_repository_without_history_says_so(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "a").write_text("a\n")
    who = ["-c", "user.name=n", "-c", "user.email=n@localhost"]
    for command in (["add", "a"], [*who, "commit", "-q", "-m", "one"]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    with pytest.raises(NoHistory, match="whole clone"):
        list(generate([tmp_path], 1, 1))
