"""What an engine makes of the cases: right, wrong or refused; and whether that is good enough."""

from __future__ import annotations

import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from tests.edits.perturbed.case import Case
from tests.edits.perturbed.concurrent import CONCURRENT
from tests.edits.perturbed.generate import CLASSES, REFUSED, SEEN_THROUGH

RIGHT, WRONG = 0.99, 0.0005
"""At least so much of what should apply is right; at most so much of all is wrong."""
MOVED = ("outdent_uniform", "numbers_then_trimmed", "other_steps")
"""What is indented otherwise than the file, empty lines too."""
MUST_MERGE = ("seen_stale_context", "seen_edit_elsewhere")
MUST_REFUSE = ("seen_same_line", "seen_block_gone")

Verdict = Literal["right", "wrong", "refused"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What an engine made of a case: a text, or why it refused."""

    text: str | None
    said: str = ""


Engine = Callable[[Case], Answer]


def magy(case: Case) -> Answer:
    """The engine itself."""
    from magy_server.edits.model import Hunk
    from magy_server.edits.plan import plan
    from magy_server.edits.rebasing.diff import apply
    from magy_server.edits.text import plain

    hunk = Hunk(
        plain(case.old), plain(case.new), lines=case.lines, line=case.line, anchors=case.anchors
    )
    resolved = plan(case.text, [hunk], case.seen)
    if resolved.failures:
        said = "\n".join(f"{found.code}: {found.message}" for found in resolved.failures)
        return Answer(None, said)
    placed = resolved.placed[0]
    return Answer(apply(case.text, resolved.changes), f"{placed.tier}: {placed.note}")


def exact_only(case: Case) -> Answer:
    """Replaces what is there exactly once: a yardstick, and a check of the labels."""
    if case.text.count(case.old) != 1:
        return Answer(None, f"{case.text.count(case.old)} times")
    return Answer(case.text.replace(case.old, case.new))


ENGINES: Mapping[str, Engine] = {"magy": magy, "exact": exact_only}


@dataclass
class Score:
    n: int = 0
    right: int = 0
    wrong: int = 0
    refused: int = 0
    git_refused: int = 0
    """By `git merge-file`, of the cases that have a text seen."""

    def add(self, other: Score) -> None:
        self.n += other.n
        self.right += other.right
        self.wrong += other.wrong
        self.refused += other.refused


@dataclass
class Report:
    scores: dict[str, Score] = field(default_factory=lambda: defaultdict(Score))
    failed: list[dict[str, Any]] = field(default_factory=list)
    """Cases that are not right, with all that is needed to judge them."""

    def total(self, kinds: Iterable[str]) -> Score:
        found = Score()
        for kind in kinds:
            if kind in self.scores:
                found.add(self.scores[kind])
        return found

    @property
    def applicable(self) -> Score:
        return self.total(SEEN_THROUGH)

    @property
    def refusable(self) -> Score:
        return self.total(REFUSED)

    @property
    def all(self) -> Score:
        return self.total(CLASSES)

    def misses(self) -> list[str]:
        """The gates that do not hold, in words."""
        return [*self._misses_alone(), *self._misses_concurrent()]

    def _misses_alone(self) -> Iterator[str]:
        apply, refuse, every = self.applicable, self.refusable, self.all
        if apply.right < RIGHT * apply.n:
            yield f"right in {apply.right} of {apply.n} that should apply, under {RIGHT:.0%}"
        if every.wrong > WRONG * every.n:
            yield f"wrong in {every.wrong} of {every.n}, over {WRONG:.0%}"
        if refuse.wrong:
            yield f"applied {refuse.wrong} of {refuse.n} that must be refused"

    def _misses_concurrent(self) -> Iterator[str]:
        for kind in MUST_MERGE:
            if (score := self.scores.get(kind)) and score.right < score.n:
                yield f"{kind}: merged {score.right} of {score.n}"
        for kind in MUST_REFUSE:
            if (score := self.scores.get(kind)) and score.refused < score.git_refused:
                yield f"{kind}: refused {score.refused}, git merge-file {score.git_refused}"

    def table(self) -> str:
        rows = [f"{'class':26}{'n':>6}{'right':>7}{'wrong':>7}{'refused':>9}"]
        for kind in (*CLASSES, *CONCURRENT):
            if score := self.scores.get(kind):
                rows.append(_row(kind, score))
        rows.append(_row("TOTAL should apply", self.applicable))
        rows.append(_row("TOTAL must be refused", self.refusable))
        rows.append(_row("TOTAL", self.all))
        return "\n".join(rows)


def _row(name: str, score: Score) -> str:
    row = f"{name:26}{score.n:6}{score.right:7}{score.wrong:7}{score.refused:9}"
    if name in CONCURRENT:
        row += f"   git merge-file refuses {score.git_refused}"
    return row


def judge(cases: Iterable[Case], engine: Engine = magy) -> Report:
    report = Report()
    for number, case in enumerate(cases):
        answer = engine(case)
        found = verdict(case, answer)
        score = report.scores[case.kind]
        score.n += 1
        score.refused += answer.text is None
        score.right += found == "right"
        score.wrong += found == "wrong"
        if case.seen is not None:
            score.git_refused += git_refuses(case)
        if found != "right":
            about = {"number": number, "verdict": found, "said": answer.said, "got": answer.text}
            report.failed.append({**about, **asdict(case)})
    return report


def verdict(case: Case, answer: Answer) -> Verdict:
    if answer.text == case.expected or (case.unclear and answer.text is None):
        return "right"
    if case.text != case.expected and case.kind in MOVED and _but_for_blanks(case, answer):
        return "right"
    return "refused" if answer.text is None else "wrong"


def _but_for_blanks(case: Case, answer: Answer) -> bool:
    """Whether the text is the one expected, but for blanks in empty lines within what changes: how
    many the model meant there, its other indentation does not tell."""
    if case.expected is None or answer.text is None:
        return False
    before, wanted, got = (text.split("\n") for text in (case.text, case.expected, answer.text))
    first = _alike(before, wanted)
    behind = _alike(before[::-1], wanted[::-1])
    slid = max(0, first + behind - min(len(before), len(wanted)))  # new lines like those beside
    first, last = first - slid, len(wanted) - behind + slid
    return len(wanted) == len(got) and all(
        a == b or (first <= n < last and not a.strip() and not b.strip())
        for n, (a, b) in enumerate(zip(wanted, got, strict=True))
    )


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines they begin with are the same."""
    differing = (n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(differing, min(len(one), len(other)))


def git_refuses(case: Case) -> bool:
    """Whether `git merge-file` finds a conflict between what the user and the model made of the
    text seen."""
    assert case.seen is not None
    wanted = exact_only(replace(case, text=case.seen)).text
    assert wanted is not None, "the edit is exact in what was seen"
    return bool(merge_file(case.seen, case.text, wanted)[0])


def merge_file(base: str, mine: str, theirs: str) -> tuple[int, str]:
    """`git merge-file`: how many conflicts, and the merged text with its marks."""
    with tempfile.TemporaryDirectory() as place:
        paths = [Path(place, name) for name in ("mine", "base", "theirs")]
        for path, text in zip(paths, (mine, base, theirs), strict=True):
            path.write_bytes(text.encode())
        done = subprocess.run(
            ["git", "merge-file", "-p", "-q", *map(str, paths)], stdout=subprocess.PIPE, check=False
        )
    if not 0 <= done.returncode < 128:
        raise RuntimeError(f"git merge-file failed with {done.returncode}")
    return done.returncode, done.stdout.decode()


def shares(report: Report) -> Sequence[str]:
    """The three figures that count, for people."""
    apply, every, refuse = report.applicable, report.all, report.refusable
    return (
        f"right {apply.right / max(1, apply.n):.2%} of those that should apply",
        f"wrong {every.wrong / max(1, every.n):.2%} of all",
        f"wrong {refuse.wrong} of {refuse.n} that must be refused",
    )
