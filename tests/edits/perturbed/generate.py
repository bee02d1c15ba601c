"""From repositories and a seed to cases."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.edits.perturbed.applicable import APPLICABLE, Perturb
from tests.edits.perturbed.case import Case
from tests.edits.perturbed.concurrent import CONCURRENT
from tests.edits.perturbed.cut import cut_first_line, cut_last_line
from tests.edits.perturbed.history import Site, sites
from tests.edits.perturbed.numbered import numbers_in_old, numbers_then_trimmed
from tests.edits.perturbed.placeholders import SAYING, placeholder_of_the_file
from tests.edits.perturbed.placing import NOWHERE, PLACED
from tests.edits.perturbed.refusable import refusable

SEEN_THROUGH: Mapping[str, Perturb] = {
    **APPLICABLE,
    **{
        perturb.__name__: perturb
        for perturb in (
            numbers_in_old,
            numbers_then_trimmed,
            placeholder_of_the_file,
            cut_last_line,
            cut_first_line,
        )
    },
    **PLACED,
}
REFUSED = (
    "ambiguous",
    "foreign_block",
    "stale_target_line",
    "similar_sibling_trap",
    *SAYING,
    *NOWHERE,
)
CLASSES = (*SEEN_THROUGH, *REFUSED)


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
    known: Mapping[str, Perturb] = {
        **SEEN_THROUGH,
        **refusable(together),
        **SAYING,
        **NOWHERE,
        **CONCURRENT,
    }
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
