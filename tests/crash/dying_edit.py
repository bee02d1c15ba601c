"""`magy lsp` that dies by SIGKILL at the n-th point of `magy/edit/apply`: right before or after it
puts a file, or appends what it is going to do or has done; or as soon as a call is judged.

MAGY_DIE=7 python -m tests.crash.dying_edit lsp
MAGY_DIE=judged python -m tests.crash.dying_edit lsp
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

WHERE = os.environ["MAGY_DIE"]
points = itertools.count(1)
append, put = SqliteStore.append, WorkspaceFiles.put


def point() -> None:
    if str(next(points)) == WHERE:
        os.kill(os.getpid(), signal.SIGKILL)


async def dying_append(self: SqliteStore, batches: Sequence[Batch], *args: Any) -> Any:
    kinds = {event.type for batch in batches for event in batch.events}
    if WHERE == "judged" and WHERE in kinds:
        await append(self, batches, *args)
        os.kill(os.getpid(), signal.SIGKILL)
    if not any(batch.stream.startswith("edit/") for batch in batches):
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
