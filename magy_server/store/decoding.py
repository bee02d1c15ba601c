"""These functions turn stored lines back into entries, and say in a sentence why a line cannot be
read."""

from __future__ import annotations

from itertools import pairwise

from pydantic import ValidationError

from magy_server.core.agents.tree import Stream
from magy_server.core.codec import decode
from magy_server.core.errors import StoreCorrupt, StoreError, StoreNewer
from magy_server.core.events import Entry

_NEWER = frozenset({"union_tag_invalid", "extra_forbidden", "literal_error"})
"""An error of one of these types means an event kind, field or word that this Magy does not know.
Such a line is well-formed, so it is not damaged."""


def entry_of(stream: Stream, seq: int, at: float, body: bytes) -> Entry:
    """Returns the entry that a stored line holds. Raises StoreCorrupt or StoreNewer; either
    concerns this stream alone."""
    try:
        return Entry(stream=stream, seq=seq, at=at, event=decode(body))
    except ValidationError as error:
        raise _unreadable(stream, seq, error) from error


def check_gaps(entries: list[Entry]) -> list[Entry]:
    """Returns these entries if no number is missing between two neighbours. Raises StoreCorrupt."""
    for last, entry in pairwise(entries):
        if entry.seq != last.seq + 1:
            raise StoreCorrupt(
                f"{entry.stream}: entries {last.seq + 1} to {entry.seq - 1} are missing. The "
                "session cannot be used; run `magy doctor` to see what else is damaged."
            )
    return entries


def _unreadable(stream: Stream, seq: int, error: ValidationError) -> StoreError:
    problems = error.errors(include_url=False, include_input=False)
    first = problems[0]
    where = ".".join(str(step) for step in first["loc"])
    what = f"{where}: {first['msg']}" if where else first["msg"]
    if all(problem["type"] in _NEWER for problem in problems):
        return StoreNewer(
            f"{stream}, entry {seq} was written by a newer Magy ({what}). Update Magy to use this "
            "session; other sessions are not affected."
        )
    return StoreCorrupt(
        f"{stream}, entry {seq} cannot be read ({what}). The session cannot be used; run "
        "`magy doctor` to see what else is damaged. Other sessions are not affected."
    )
