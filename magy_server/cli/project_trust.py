"""This module says whether a project is trusted, to commands that start no engine."""

from __future__ import annotations

from magy_server.cli.composition import Composition
from magy_server.cli.screen.complaints import complain
from magy_server.config.trust import files_hash
from magy_server.core.errors import NotTrusted, StoreError
from magy_server.engine.world import read_project


async def trusted(app: Composition, root: str) -> bool:
    """Whether the project is trusted, as far as that can be known: a database that cannot be read
    is complained about, and the project then counts as not trusted."""
    try:
        async with app.store() as store:
            known = (await read_project(store, root)).trusted
    except StoreError as error:
        complain(f"{error.message} The project counts as not trusted.")
        return False
    try:
        return known is not None and known == files_hash(root)
    except NotTrusted:
        return False
