"""This module finds a session by the beginning of its id or title."""

from __future__ import annotations

from magy_server.api.sessions.pages import every
from magy_server.core.agents.tree import SESSIONS, stream_of
from magy_server.core.errors import NotFound
from magy_server.core.ports import Store, StreamInfo

NAMED = 3
"""Sessions named when an abbreviation is not enough."""


async def resolve(store: Store, given: str) -> StreamInfo:
    """Returns the session with this id, or the only one whose id begins so, or else whose title
    does, whatever its capitals. Raises NotFound."""
    given = given.encode("utf-8", "replace").decode()
    if exact := await store.info(stream_of(given)):
        return exact
    found: list[StreamInfo] = []
    if given.strip():
        found = await _with_ids(store, given) or await _with_titles(store, given)
    if len(found) == 1:
        return found[0]
    if not found:
        raise NotFound(f"There is no session {given!r}. `magy sessions` lists them.")
    names = ", ".join(info.id for info in found[:NAMED])
    more = " and more" if len(found) > NAMED else ""
    raise NotFound(f"{given!r} may be {names}{more}: type more of it.")


async def _with_ids(store: Store, given: str) -> list[StreamInfo]:
    """Returns sessions whose ids begin so; a few are enough. The sessions of child agents go by
    longer names; nobody means those by a beginning."""
    page = await store.streams(stream_of(given), flat="/" not in given, limit=NAMED + 1)
    return page.items


async def _with_titles(store: Store, given: str) -> list[StreamInfo]:
    """Returns the sessions with this title, or else those whose titles begin so."""
    wanted = given.strip().casefold()
    exact: list[StreamInfo] = []
    found: list[StreamInfo] = []
    async for infos in every(store, SESSIONS, flat=True):
        for info in infos:
            title = str(info.summary.get("title") or "").casefold()
            exact += [info] if title == wanted else []
            found += [info] if title.startswith(wanted) else []
    return exact or found
