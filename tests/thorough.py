"""How many of the cases that are alike a run tests. All of them with `THOROUGH=1`.

Where a process is killed at each of many places, for example, a run kills at every sixth of them.
Which sixth depends on the commit, so that the next ones kill at the others, and that a test which
failed is there again when it is repeated. Laws are held against a fifth of their examples.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

THOROUGH = os.environ.get("THOROUGH", "").lower() not in ("", "0", "false")
SHARES = 3
SELDOM = 6
FEWEST = 10


def _turn() -> int:
    """A number that the commit decides; 0 where there is no commit."""
    asked = ["git", "rev-parse", "--short=7", "HEAD"]
    here = Path(__file__).parent
    done = subprocess.run(asked, cwd=here, capture_output=True, text=True, check=False)
    return int(done.stdout or "0", 16)


TURN = _turn()
SHARE = TURN % SHARES


def rotating(cases: Sequence[T], further: int = 0, shares: int = SHARES) -> Sequence[T]:
    """Every third of them (or another of so many `shares`), or all. Where several tests have the
    same cases, each says another `further` (0, 1, 2, ...), so that together they have all of them
    in each run."""
    return cases if THOROUGH else cases[(TURN + further) % shares :: shares]


def seldom(cases: Sequence[T], further: int = 0) -> Sequence[T]:
    """Every sixth of them and one at least, or all: where very many show the same."""
    return rotating(cases, further, SELDOM) or [cases[(TURN + further) % len(cases)]]


def one_of(cases: Sequence[T], further: int = 0) -> Sequence[T]:
    """One of the cases, another one after the next commit, or all: for few that are dear and show
    the same."""
    return cases if THOROUGH else [cases[(SHARE + further) % SHARES % len(cases)]]


def examples(count: int) -> int:
    """How many examples there are of a law that is held against `count` where all are."""
    return count if THOROUGH else max(FEWEST, count // 5)


def said() -> str:
    """What a run says of it when it begins."""
    if THOROUGH:
        return "thorough: all places of a kill, all examples"
    return (
        f"cases that take turns: share {SHARE + 1} of {SHARES}; places of a kill: "
        f"{TURN % SELDOM + 1} of {SELDOM}; THOROUGH=1 tests all, with more examples"
    )
