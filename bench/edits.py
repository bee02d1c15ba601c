"""The edit engine in a file of 10,000 lines, beside git on the same texts.

git is a program of its own each time: what it costs to start (a few milliseconds) is in its
figures, as it would be for whoever called it instead.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from bench.measure import Failed, Row, Run, in_turn, stopwatch
from magy_server.edits.model import Hunk
from magy_server.edits.plan import plan
from magy_server.edits.rebasing.diff import apply, changes, unified
from magy_server.edits.rebasing.rebase import merge3, rebase

LINES = 10_000
HUNKS = 50
MANY = 1000
CONTEXT = 3


def exact(run: Run) -> Row:
    """One edit as the model read it: found, checked to be unique, applied."""
    hunk = hunks(1)[0]
    return _beside_diff(run, "one exact edit", [hunk], 1)


def fuzzy(run: Run) -> Row:
    """One edit with a slip in two lines of its context: every tier is tried until the last."""
    return _beside_diff(run, "one fuzzy edit", [slipped(hunks(1)[0])], 6)


def fifty(run: Run) -> Row:
    """Fifty edits of one call, exact."""
    return _beside_diff(run, f"{HUNKS} edits", hunks(HUNKS), 4)


def thousand(run: Run) -> Row:
    """A thousand edits of one call, exact: as many as there are, each costs the same."""
    return _beside_apply(run, f"{MANY:,} edits", hunks(MANY), hunks(MANY), 8)


def thousand_fuzzy(run: Run) -> Row:
    """A thousand edits of one call with slips; git gets them without."""
    wanted = hunks(MANY)
    return _beside_apply(run, f"{MANY:,} fuzzy edits", list(map(slipped, wanted)), wanted, 60)


def stale(run: Run) -> Row:
    """Fifty edits, of a text that the user has changed in twenty places since the model read it."""
    base, wanted = text(), hunks(HUNKS)
    live = typed(base)
    theirs = apply(base, plan(base, wanted).changes)
    ours, floor = in_turn(
        run.choose(10, 30),
        lambda: stopwatch(lambda: _edited(live, wanted, base)),
        lambda: _merge_file(run, base, live, theirs),
    )
    return Row(f"{HUNKS} stale edits vs git merge-file", "seconds", ours, floor, 8)


def rebased(run: Run) -> Row:
    """Fifty pending changes put on a text that was changed in twenty places."""
    base = text()
    wanted = plan(base, hunks(HUNKS)).changes
    live, theirs = typed(base), apply(base, wanted)
    ours, floor = in_turn(
        run.choose(10, 30),
        lambda: stopwatch(lambda: rebase(base, live, wanted)),
        lambda: _merge_file(run, base, live, theirs),
    )
    return Row(f"rebase of {HUNKS} hunks vs git merge-file", "seconds", ours, floor, 4)


def undone(run: Run) -> Row:
    """The same as an undo of the fifty, that keeps what was typed since."""
    before = text()
    after = apply(before, plan(before, hunks(HUNKS)).changes)
    live = merge3(before, typed(before), after).text
    ours, floor = in_turn(
        run.choose(10, 30),
        lambda: stopwatch(lambda: merge3(after, live, before)),
        lambda: _merge_file(run, after, live, before),
    )
    return Row(f"undo of {HUNKS} hunks vs git merge-file", "seconds", ours, floor, 5)


ROWS = (exact, fuzzy, fifty, thousand, thousand_fuzzy, stale, rebased, undone)


# --- the two sides ------------------------------------------------------------------------------


def _beside_diff(run: Run, name: str, wanted: Sequence[Hunk], target: float) -> Row:
    base = text()
    after = _edited(base, wanted)
    ours, floor = in_turn(
        run.choose(10, 30),
        lambda: stopwatch(lambda: _edited(base, wanted)),
        lambda: _diff(run, base, after),
    )
    return Row(f"{name}, {LINES:,} lines vs git diff", "seconds", ours, floor, target)


def _beside_apply(
    run: Run, name: str, wanted: Sequence[Hunk], as_they_are: Sequence[Hunk], target: float
) -> Row:
    base = text()
    patch = unified(base, _edited(base, as_they_are), "text", limit=len(base) * 10)
    base_path, patch_path = _files(run, base, patch)
    ours, floor = in_turn(
        run.choose(3, 10),
        lambda: stopwatch(lambda: _edited(base, wanted)),
        lambda: _apply(run, base_path, patch_path),
    )
    return Row(f"{name}, {LINES:,} lines vs git apply", "seconds", ours, floor, target)


def _apply(run: Run, base: str, patch: str) -> float:
    Path(run.directory, "text").write_bytes(Path(base).read_bytes())
    return _git("-C", str(run.directory), "apply", patch, fine=(0,))


def _edited(live: str, wanted: Sequence[Hunk], seen: str | None = None) -> str:
    resolved = plan(live, wanted, seen)
    if resolved.failures:
        raise Failed(resolved.failures[0].message)
    return apply(live, resolved.changes)


def _diff(run: Run, before: str, after: str) -> float:
    paths = _files(run, before, after)
    return _git("diff", "--no-index", "--no-ext-diff", *paths, fine=(1,))


def _merge_file(run: Run, base: str, mine: str, theirs: str) -> float:
    paths = _files(run, mine, base, theirs)
    return _git("merge-file", "-p", *paths, fine=(0,))


def _files(run: Run, *texts: str) -> list[str]:
    """Written beforehand: that is not measured."""
    found: list[str] = []
    for n, content in enumerate(texts):
        path = Path(run.directory, f"text-{n}")
        path.write_bytes(content.encode())
        found.append(str(path))
    return found


def _git(*arguments: str, fine: Sequence[int]) -> float:
    done: list[int] = []
    seconds = stopwatch(
        lambda: done.append(
            subprocess.run(["git", *arguments], stdout=subprocess.DEVNULL, check=False).returncode
        )
    )
    if done[0] not in fine:
        raise Failed(f"git {arguments[0]} ended with {done[0]}")
    return seconds


# --- the texts ----------------------------------------------------------------------------------


@cache
def text() -> str:
    """Lines as of a program: indented, many alike, every seventh empty or a brace."""
    rng = random.Random(1)
    words = ["".join(rng.choices("abcdeeghilmnorst_", k=6)) for _ in range(400)]
    lines = []
    for n in range(LINES):
        if n % 7 == 0:
            lines.append(rng.choice(["", "}", "    }", "    return"]))
        else:
            lines.append("    " * rng.randint(0, 3) + " ".join(rng.choices(words, k=5)))
    return "\n".join([*lines, ""])


def hunks(count: int) -> list[Hunk]:
    """At equal distances, with context; each replaces a line and adds another below it."""
    lines = text().split("\n")
    found = []
    for n in range(count):
        at = (2 * n + 1) * LINES // (2 * count)
        while at % 7 in (0, 1, 6):  # neither an empty line nor right beside one
            at += 1
        above, below = lines[at - CONTEXT : at], lines[at + 1 : at + 1 + CONTEXT]
        old = "\n".join([*above, lines[at], *below, ""])
        new = "\n".join([*above, f"{lines[at]} changed", f"    added {n}", *below, ""])
        found.append(Hunk(old, new, lines=True))
    return found


def slipped(hunk: Hunk) -> Hunk:
    """With a slip in two lines of its context."""
    lines = hunk.old.split("\n")
    spoilt = {line: line.replace("e", "ee", 1) for line in (lines[1], lines[-2])}
    for line, slip in spoilt.items():
        hunk = replace(hunk, old=hunk.old.replace(line, slip), new=hunk.new.replace(line, slip))
    return hunk


def typed(base: str) -> str:
    """With twenty lines rewritten, away from all hunks."""
    lines = base.split("\n")
    for n in range(20):
        lines[n * LINES // 20 + 25] = f"the user's line {n}"
    new = "\n".join(lines)
    if len(changes(base, new, 0, len(base))) != 20:
        raise Failed("the user was meant to change twenty places")
    return new
