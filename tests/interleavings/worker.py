"""Cases in a process of their own."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests import guard

from .case import Outcome, run_all


def prepare() -> None:
    """Before the first case."""
    guard.clean_environment(os.environ)


def run(seeds: list[int], place: Path, commands: float) -> list[Outcome]:
    own = place / f"{seeds[0]}"
    with guard.fresh_home() as home:
        os.environ.update(home)
        try:
            return asyncio.run(run_all(own, seeds, commands))
        except Exception as error:  # a server that died fails its cases, and no others
            return [Outcome(seeds[0], list(_causes(error)))]
        finally:
            shutil.rmtree(own, ignore_errors=True)


def _causes(error: BaseException) -> Iterator[str]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _causes(inner)
    else:
        yield f"{type(error).__name__}: {error}"
