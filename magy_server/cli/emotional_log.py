"""`magy magi log` shows people CASPER's emotional log, and takes out what they do not want kept."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

from magy_server.api.sessions.pages import every
from magy_server.cli import exit_codes, project_directory
from magy_server.cli.composition import Composition
from magy_server.cli.screen.complaints import complain
from magy_server.cli.screen.terminal import Screen, standard_output
from magy_server.cli.screen.text import Span, filled
from magy_server.core.agents.tree import SESSIONS
from magy_server.core.errors import InvalidRequest, NotFound
from magy_server.core.magi import emotional_log
from magy_server.core.magi.emotional_log import Entry, Log
from magy_server.core.text.sanitizing import one_line
from magy_server.core.wire_values import stamp
from magy_server.team.magi import kept_log

SHOW, DELETE, REVIEWED, CLEAR, FORGET = "show", "delete", "reviewed", "clear", "forget"
VERBS = (SHOW, DELETE, REVIEWED, CLEAR, FORGET)


async def log(options: argparse.Namespace, words: Sequence[str], app: Composition) -> int:
    """Runs the verb, or lists the log; returns the exit code. Raises InvalidRequest, NotFound."""
    verb, ids = (words[0], words[1:]) if words else ("", [])
    if bool(ids) != (verb in (SHOW, DELETE)):
        raise InvalidRequest(
            f"`magy magi log {verb}` {'takes no' if ids else 'needs the'} ids of entries; "
            "`magy magi log` lists them."
        )
    root, _ = project_directory.project(options.root, None)
    if verb == FORGET:
        return await _forget(root, app)
    if verb == CLEAR:
        there = kept_log.clear(root)
        complain(f"{'Removed' if there else 'There is no'} {root}/{kept_log.PATH}.")
        return exit_codes.DONE
    now = time.time()
    if verb == REVIEWED:
        found = kept_log.change(root, partial(_reviewed, at=now))
    elif verb == DELETE:
        found = kept_log.change(root, partial(_without, ids=ids))
    else:
        found = kept_log.read(root)
    screen = Screen(standard_output())
    if verb == SHOW:
        chosen = [_one(found, id) for id in ids]
        await screen.write([span for one in chosen for span in _whole(one, now)])
    else:
        await screen.write(_lines(emotional_log.kept(found, now), root, now, screen.width))
    return exit_codes.DONE


def _reviewed(log: Log, at: float) -> Log:
    return log.model_copy(update={"reviewed": stamp(at)})


def _without(log: Log, ids: Sequence[str]) -> Log:
    return emotional_log.without(log, [_one(log, id).id for id in ids])


def _one(log: Log, id: str) -> Entry:
    found = {one.id: one for one in log.entries if one.id.startswith(id)}
    if len(found) != 1:
        what = "There is no entry" if not found else "There is more than one entry"
        raise NotFound(f"{what} {id!r} in CASPER's emotional log; `magy magi log` lists them.")
    return next(iter(found.values()))


async def _forget(root: str, app: Composition) -> int:
    """Of each project that has sessions, and of this one."""
    async with app.store() as store:
        roots = {info.root async for page in every(store, SESSIONS) for info in page if info.root}
    gone, failed = 0, False
    for one in sorted({root, *roots}):
        try:
            gone += kept_log.clear(one)
        except InvalidRequest as error:
            complain(error.message)
            failed = True
    complain(f"Removed the emotional log of {gone} {'project' if gone == 1 else 'projects'}.")
    return exit_codes.ERROR if failed else exit_codes.DONE


# --- what is shown --------------------------------------------------------------------------------


def _lines(log: Log, root: str, now: float, width: int | None) -> list[Span]:
    spans: list[Span] = [(f"{one_line(root)}/{kept_log.PATH}\n", "bold")]
    if not log.entries:
        return [*spans, (filled("CASPER remembers nothing here.", width, "  "), "dim")]
    for one in reversed(log.entries):
        spans.append((f"  {one.id}  {one.date[:10]}  {one.valence:+.1f}  ", "cyan"))
        spans.append((f"{one_line(one.primary_emotion)}: {one_line(one.lesson_1_line)}\n", ""))
    if emotional_log.review_due(log, now):
        due = "Strong feelings, many within a week: until `magy magi log reviewed` none is used."
        spans.append((filled(due, width, "  "), "yellow"))
    last = "`magy magi log delete ID` takes one out, `magy magi log clear` all."
    return [*spans, (filled(last, width, "  "), "dim")]


def _whole(one: Entry, now: float) -> list[Span]:
    until = emotional_log.seconds(one.date) + emotional_log.RETENTION * 86_400
    about = {
        "date": one.date,
        "topic_hash": one.topic_hash,
        "valence": f"{one.valence:+.2f}",
        "primary_emotion": one_line(one.primary_emotion),
        "lesson_1_line": one_line(one.lesson_1_line),
        "strength": f"{emotional_log.strength(one, now):.2f}",
        "kept until": f"{datetime.fromtimestamp(until, UTC):%Y-%m-%d}",
    }
    return [(f"{one.id}\n", "bold"), *((f"  {key}: {value}\n", "") for key, value in about.items())]
