"""`magy lsp` that dies by SIGKILL at the n-th point of a restore: right before or after it puts a
file, or appends what it is going to do or has done.

MAGY_DIE=7 python -m tests.crash.dying_restore lsp
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

from magy_server.__main__ import main
from magy_server.core.ports import Batch
from magy_server.store.sqlite import SqliteStore
from magy_server.tools.files.workspace import WorkspaceFiles

points = itertools.count(1)
append, put = SqliteStore.append, WorkspaceFiles.put


def point() -> None:
    if next(points) == int(os.environ["MAGY_DIE"]):
        os.kill(os.getpid(), signal.SIGKILL)


async def dying_append(self: SqliteStore, batches: Sequence[Batch], *args: Any) -> Any:
    kinds = {event.type for batch in batches for event in batch.events}
    if not kinds & {"restoring", "restored"}:
        return await append(self, batches, *args)
    point()
    entries = await append(self, batches, *args)
    point()
    return entries


async def dying_put(self: WorkspaceFiles, *args: Any) -> Any:
    point()
    found = await put(self, *args)
    point()
    return found


SqliteStore.append = dying_append  # type: ignore[assignment, method-assign]
WorkspaceFiles.put = dying_put  # type: ignore[assignment, method-assign]
sys.exit(main(sys.argv[1:]))
