"""From repositories and a seed to cases."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.edits.perturbed.applicable import APPLICABLE, Perturb
from tests.edits.perturbed.case import Case
from tests.edits.perturbed.concurrent import CONCURRENT
from tests.edits.perturbed.history import Site, sites
from tests.edits.perturbed.refusable import refusable

CLASSES = (
    *APPLICABLE, "ambiguous", "foreign_block", "stale_target_line", "similar_sibling_trap",
)  # fmt: skip


class NoHistory(Exception):
    """The repositories have no commit that changes a text file: a shallow clone, perhaps."""


def generate(
    repos: Sequence[Path],
    seed: int,
    a_class: int,
    *,
    oldest: int | None = None,
    kinds: Sequence[str] | None = None,
) -> Iterator[Case]:
    """Up to `a_class` cases of each class (of `kinds`), from all repositories in turn; the same for
    the same seed and histories. `oldest`: see `sites`."""
    pools = [found for repo in repos if (found := sites(repo, seed, oldest))]
    if not pools:
        names = ", ".join(map(str, repos))
        raise NoHistory(f"no changed text file in the history of {names} (is it a whole clone?)")
    together = [site for pool in pools for site in pool]
    known: Mapping[str, Perturb] = {**APPLICABLE, **refusable(together), **CONCURRENT}
    for kind in kinds or known:
        yield from _of_class(kind, known[kind], pools, seed, a_class)


def _of_class(
    kind: str, perturb: Perturb, pools: Sequence[Sequence[Site]], seed: int, wanted: int
) -> Iterator[Case]:
    rng = random.Random(f"{seed} {kind}")
    waiting = [rng.sample(pool, len(pool)) for pool in pools]
    while wanted and any(waiting):
        for pool in waiting:
            while pool and wanted:
                if case := perturb(pool.pop(), rng):
                    wanted -= 1
                    yield case
                    break
