"""This module tells the checks what settings hold in the project, and whether a person trusts it.
It changes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING
from urllib.parse import quote

from magy_server.doctor.finding import Around

if TYPE_CHECKING:
    import sqlite3

    from magy_server.config import layers
    from magy_server.core.settings import Settings


@contextmanager
def reading(path: str) -> Iterator[sqlite3.Connection]:
    """The database, for reading only, beside a server that writes it. Where no other process has
    it open (there is no log of writes), it is read without making one. Raises sqlite3.Error."""
    import sqlite3

    quiet = "" if os.path.exists(f"{path}-wal") else "&immutable=1"
    uri = f"file:{quote(path)}?mode=ro{quiet}"
    with closing(sqlite3.connect(uri, uri=True, timeout=2.0, isolation_level=None)) as db:
        yield db


def trusts(root: str) -> str | None:
    """Returns the hash that the project's files had when a person trusted them; None when nobody
    does."""
    import sqlite3

    from magy_server.config import layers
    from magy_server.core.errors import StoreError
    from magy_server.core.events import Trusted
    from magy_server.engine.world import project_stream
    from magy_server.store import sql

    path = str(layers.state_dir() / "magy.db")
    if not os.path.exists(path):
        return None
    try:
        with reading(path) as db:
            entries = sql.read(db, project_stream(root), 0, None, None)
    except (sqlite3.Error, StoreError):
        return None  # the check of the database says it
    said = [entry.event for entry in entries if isinstance(entry.event, Trusted)]
    return said[-1].files if said and said[-1].trusted else None


def trusted(around: Around) -> bool:
    """Returns whether a person trusts this project with the files that it has now."""
    from magy_server.config.trust import files_hash
    from magy_server.core.errors import NotTrusted

    known = trusts(around.root)
    try:
        return known is not None and known == files_hash(around.root)
    except NotTrusted:
        return False


def loaded(around: Around) -> layers.Loaded:
    """Returns the configuration that holds here; where a file is wrong, Magy's own."""
    from magy_server.config import layers
    from magy_server.core.errors import InvalidConfig
    from magy_server.core.settings import Settings

    try:
        return layers.load(around.root, trusted=trusted(around), options={})
    except InvalidConfig:
        return layers.Loaded(Settings(), ())


def settings(around: Around) -> Settings:
    return loaded(around).settings
