"""This module turns reviews into values of the wire: lines become ranges in the negotiated
encoding."""

from __future__ import annotations

from collections.abc import Callable

from magy_server.api.places import uri_of, virtual_uri
from magy_server.api.positions import Positions
from magy_server.api.reviews.word_differences import words
from magy_server.api.wire import reviews as wire
from magy_server.api.wire.shapes import Range
from magy_server.core.values import Origin
from magy_server.reviews.views import HunkInfo, Outcome, ReviewFile, Summary

SENT = 500
"""Hunks that a decision comes back with: of more, all would be sent again for each."""
UriOf = Callable[[str], str]
"""The URI that the editor knows a path by, where it has it open; else the usual one."""


def review_file(file: ReviewFile, encoding: str, uri: UriOf = uri_of) -> wire.ReviewFile:
    live, base = Positions(file.live or "", encoding), Positions(file.base or "", encoding)
    return wire.ReviewFile(
        uri=uri(file.path),
        base_uri=virtual_uri("base", file.path),
        proposed_uri=virtual_uri("proposed", file.path) if file.proposed else None,
        status=file.status,
        old_uri=uri_of(file.moved_from) if file.moved_from else None,
        revision=file.revision,
        doc_version=file.version,
        mode=_mode(file.proposed),
        eol=file.eol,
        final_newline=wire.FinalNewline(base=file.base_ends, current=file.live_ends),
        added=file.added,
        removed=file.removed,
        hunks=[_hunk(hunk, live, base, encoding) for hunk in file.hunks],
    )


def _hunk(hunk: HunkInfo, live: Positions, base: Positions, encoding: str) -> wire.ReviewHunk:
    return wire.ReviewHunk(
        hunk_id=hunk.id,
        kind=hunk.kind,
        range=_lines(live, hunk.start, hunk.end),
        base_range=_lines(base, hunk.base_start, hunk.base_end),
        anchor=hunk.anchor,
        above=hunk.above,
        old_text=hunk.old,
        new_text=hunk.new,
        words=words(hunk.old, hunk.new, encoding) if hunk.kind == "change" else [],
        state=hunk.state,
        amended=hunk.amended,
        origins=[_origin(origin) for origin in hunk.origins],
        comments=[wire.HunkComment(comment_id=one.id, text=one.text) for one in hunk.comments],
    )


def _lines(at: Positions, start: int, end: int) -> Range:
    return Range.model_validate(at.range(at.offset(start, 0), at.offset(end, 0)))


def _origin(origin: Origin) -> wire.HunkOrigin:
    return wire.HunkOrigin(
        session_id=origin.session,
        agent=origin.agent,
        turn_id=origin.turn,
        tool_call_id=origin.call,
        command=origin.command,
    )


def entry(summary: Summary, uri: UriOf = uri_of) -> wire.ReviewEntry:
    return wire.ReviewEntry(
        uri=uri(summary.path),
        path=summary.path,
        root=summary.root,
        status=summary.status,
        mode=_mode(summary.proposed),
        revision=summary.revision,
        pending=summary.pending,
        added=summary.added,
        removed=summary.removed,
        sessions=[session for session in summary.sessions if session],
    )


def gone(root: str, path: str, uri: UriOf) -> wire.ReviewEntry:
    """A file that has left the review."""
    return wire.ReviewEntry(
        uri=uri(path), path=path, root=root, status="modified", mode="applied", revision="",
        pending=0, added=0, removed=0,
    )  # fmt: skip


def outcome(found: Outcome, verb: str, encoding: str, uri: UriOf = uri_of) -> wire.ReviewOutcome:
    file = found.file
    writes = ("accept", "amend") if file.proposed else ("reject", "amend", "undo")
    return wire.ReviewOutcome(
        decision_id=found.decision or None,
        results=[wire.HunkState(hunk_id=id, state=state) for id, state in found.results],
        applied=bool(found.decision) and verb in writes,
        message=found.message,
        pending=len(file.hunks),
        file=review_file(file, encoding, uri) if 0 < len(file.hunks) <= SENT else None,
    )


def _mode(proposed: bool) -> wire.Mode:
    return "proposed" if proposed else "applied"
