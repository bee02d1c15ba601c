"""`magy lsp` that dies by SIGKILL right before or after its n-th append to the log.

MAGY_DIE="before 7" python -m tests.crash.dying lsp
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from typing import Any

from magy_server.__main__ import main
from magy_server.store.sqlite import SqliteStore

when, _, number = os.environ["MAGY_DIE"].partition(" ")
counter = itertools.count(1)
append = SqliteStore.append


async def dying(self: SqliteStore, *args: Any, **kwargs: Any) -> Any:
    here = next(counter) == int(number)
    if here and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        return await append(self, *args, **kwargs)
    finally:  # also where the append is refused: it has come to its end
        if here:
            os.kill(os.getpid(), signal.SIGKILL)


SqliteStore.append = dying  # type: ignore[method-assign]
sys.exit(main(sys.argv[1:]))
