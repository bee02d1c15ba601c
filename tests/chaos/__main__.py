"""Kills at random until there were as many as asked for, and says what came of it."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import count
from multiprocessing import get_context
from pathlib import Path

from tests.chaos.trial import Outcome
from tests.chaos.worker import prepare, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000, help="how many there must be, at least")
    parser.add_argument("--seed", type=int, help="of the first trial; those after it count on")
    parser.add_argument("--workers", type=int, default=2, help="trials at a time")
    parser.add_argument("--directory", type=Path, help="where trials take place, and failed stay")
    chosen = parser.parse_args()
    seed = random.randrange(10**6) if chosen.seed is None else chosen.seed
    place = chosen.directory or Path(tempfile.mkdtemp(prefix="chaos-"))
    print(f"{chosen.kills} kills, seeds from {seed}, {chosen.workers} at a time, in {place}")
    began, failed, number = time.monotonic(), 0, 0
    kills: Counter[str] = Counter()
    for number, outcome in enumerate(_trials(chosen.kills, seed, chosen.workers, place), 1):
        kills.update(outcome.kills)
        failed += bool(outcome.problems)
        _say(outcome)
        if number % 20 == 0:
            print(f"{number} trials, {kills.total()} kills, {failed} failed", flush=True)
    seconds = time.monotonic() - began
    print(f"{number} trials, {kills.total()} kills ({_shown(kills)}) in {seconds:.0f} s, "
          f"{kills.total() / seconds:.1f} a second: {failed or 'none'} failed")  # fmt: skip
    if not failed and chosen.directory is None:
        place.rmdir()
    return 1 if failed else 0


def _trials(kills: int, seed: int, workers: int, place: Path) -> Iterator[Outcome]:
    """As they end, until there were so many kills."""
    seeds, done = count(seed), 0
    running: set[Future[Outcome]] = set()
    with ProcessPoolExecutor(workers, get_context("spawn"), prepare) as pool:
        while running or done < kills:
            while done < kills and len(running) < workers:
                running.add(pool.submit(run, next(seeds), place))
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            for future in ended:
                outcome = future.result()
                done += sum(outcome.kills.values())
                yield outcome


def _say(outcome: Outcome) -> None:
    if not outcome.problems:
        return
    print(f"\nFAILED after {outcome.lives} lives ({_shown(Counter(outcome.kills))}), "
          f"see {outcome.directory}. Again: "
          f"python -m tests.chaos --kills 1 --workers 1 --seed {outcome.seed}")  # fmt: skip
    for problem in outcome.problems:
        print(f"  - {problem[:2000]}")
    sys.stdout.flush()


def _shown(kills: Counter[str]) -> str:
    return ", ".join(f"{number} by {kind}" for kind, number in sorted(kills.items()))


if __name__ == "__main__":
    sys.exit(main())
