"""A person's decision in a process that dies by SIGKILL at one moment of it.

python -m tests.engine.dying_review ROOT STATE DECISION WHEN: WHEN is `put N` (the N-th time that a
file is changed; nothing is written down of it yet), or `append N` (right after the N-th append of
the decision).
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sys
from pathlib import Path
from typing import Any

from magy_server.reviews.views import Which, Wish
from magy_server.store.sqlite import SqliteStore
from magy_server.tools.files.workspace import WorkspaceFiles
from tests.engine.reviewing import Place, process


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def dying(when: str) -> None:
    """From now on it dies there."""
    append, put = SqliteStore.append, WorkspaceFiles.put
    counter = itertools.count(1)
    what, _, number = when.partition(" ")
    wanted = int(number or 1)

    async def appending(self: SqliteStore, *args: Any, **kwargs: Any) -> Any:
        entries = await append(self, *args, **kwargs)
        if what == "append" and next(counter) == wanted:
            die()
        return entries

    async def putting(self: WorkspaceFiles, *args: Any, **kwargs: Any) -> Any:
        found = await put(self, *args, **kwargs)
        if what == "put" and next(counter) == wanted:
            die()
        return found

    SqliteStore.append = appending  # type: ignore[method-assign]
    WorkspaceFiles.put = putting  # type: ignore[method-assign]


async def decide(place: Place, decision: str, when: str) -> None:
    path = place.path("a.py")
    proposed = decision == "propose"
    if decision == "undo":
        outcome = await place.decide("reject", "a.py", 0, key="before")
        dying(when)
        await place.reviews.undo(outcome.decision, path, key="key")
        return
    dying(when)
    verb: Any = "accept" if proposed else decision
    file = await place.reviews.get(path, proposed)
    wish = Wish(verb, Which(ids=(file.hunks[0].id,)), "why", "zwei\n", key="key")
    await place.reviews.resolve(path, wish, proposed)


async def main(root: str, state: str, decision: str, when: str) -> None:
    async with process(Path(root), Path(state)) as place:
        await decide(place, decision, when)
    print("survived")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
