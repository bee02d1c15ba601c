"""Trials in a process of their own, one after the other."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

from tests import guard

from .trial import Outcome, trial


def prepare() -> None:
    """Before the first trial."""
    guard.clean_environment(os.environ)


def run(seed: int, place: Path) -> Outcome:
    """The directory of a trial that failed stays, below `place`."""
    with guard.fresh_home() as home:
        os.environ.update(home)
        outcome = asyncio.run(trial(seed, place / f"{seed}"))
    if not outcome.problems:
        shutil.rmtree(outcome.directory)
    return outcome
