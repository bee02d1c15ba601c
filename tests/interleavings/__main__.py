"""Runs as many cases as asked for, and says what came of them."""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from .case import COMMANDS, Outcome
from .worker import prepare, run

BATCH = 100
"""Cases for one server."""
SHOWN = 20


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.interleavings", description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, help="of the first case; those after it count on")
    parser.add_argument("--workers", type=int, default=2, help="servers at a time")
    parser.add_argument(
        "--commands", type=float, default=COMMANDS, help="in how many a command runs, too"
    )
    chosen = parser.parse_args()
    seed = random.randrange(10**6) if chosen.seed is None else chosen.seed
    print(
        f"{chosen.cases} cases, seeds from {seed}, {chosen.workers} servers at a time", flush=True
    )
    began = time.monotonic()
    place = Path(tempfile.mkdtemp(prefix="interleavings-"))
    cases = steps = keys = refused = failed = 0
    for outcome in _outcomes(seed, chosen.cases, chosen.workers, place, chosen.commands):
        cases, steps, keys = cases + 1, steps + len(outcome.did), keys + outcome.keys
        refused += outcome.refused
        failed += bool(outcome.problems)
        if outcome.problems and failed <= SHOWN:
            _say(outcome)
        if cases % 500 == 0:
            print(f"{cases} cases, {failed} failed, {time.monotonic() - began:.0f} s", flush=True)
    shutil.rmtree(place, ignore_errors=True)
    print(
        f"{cases} cases from seed {seed} in {time.monotonic() - began:.0f} s: {steps} steps beside "
        f"{keys} keys, {refused} refused where the person typed: {failed or 'none'} failed"
    )
    return 1 if failed or cases < chosen.cases else 0


def _outcomes(
    seed: int, cases: int, workers: int, place: Path, commands: float
) -> Iterator[Outcome]:
    all = range(seed, seed + cases)
    batches = [list(all[n : n + BATCH]) for n in range(0, cases, BATCH)]
    with ProcessPoolExecutor(workers, get_context("spawn"), prepare) as pool:
        futures = [pool.submit(run, batch, place, commands) for batch in batches]
        for future in as_completed(futures):
            yield from future.result()


def _say(outcome: Outcome) -> None:
    near = f"python -m tests.interleavings --cases 20 --seed {outcome.seed - 10}"
    print(f"\nFAILED {outcome.seed}: {' '.join(outcome.did)}. Again, with those around it: {near}")
    for problem in outcome.problems:
        print(f"  - {problem[:2000]}")
    trace = Path(tempfile.gettempdir(), f"interleavings-{outcome.seed}.log")
    trace.write_text("\n".join(outcome.trace), encoding="utf-8")
    print(f"  What happened, in order: {trace}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
