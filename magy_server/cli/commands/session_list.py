"""`magy sessions list` prints sessions by project: this project first, the newest session first."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from magy_server.api.sessions.pages import every
from magy_server.cli import exit_codes, project_directory
from magy_server.cli.composition import Composition
from magy_server.cli.screen.terminal import Screen, standard_output
from magy_server.cli.screen.text import Marks, Span, counted, record
from magy_server.core.agents.tree import SESSIONS
from magy_server.core.ports import Page, Store, StreamInfo
from magy_server.core.text.columns import shortened, width_of
from magy_server.core.text.sanitizing import one_line
from magy_server.core.wire_values import stamp

LIMIT = 30
TITLE = 20
"""Columns that a title needs."""
STATES = {"running": "open", "requires_action": "asks"}
NO_SIZES: Mapping[str, str] = {}
WORDS = {"running": "yellow", "requires_action": "question"}


async def listed(options: argparse.Namespace, app: Composition) -> int:
    root, _ = project_directory.project(options.root, None)
    asked = vars(options)
    output = standard_output()
    async with app.store() as store:
        found = await read(
            store,
            root,
            only=asked.get("here", False),
            cursor=asked.get("cursor"),
            limit=asked.get("limit", LIMIT),
            whole=asked.get("all", False),
        )
    if asked.get("ids"):
        await output.write("".join(f"{info.id}\n" for info in found.items))
    elif asked.get("json"):
        await output.write(record(as_json(found)))
    else:
        screen = Screen(output)
        await screen.write(lines(found, root, screen.marks, screen.width))
    return exit_codes.DONE


async def read(
    store: Store, root: str, *, only: bool, cursor: str | None, limit: int, whole: bool
) -> Page:
    """Reads a page of the list, or all of it. Raises InvalidRequest for what is not a cursor."""
    which: dict[str, Any] = {"first_root": root, "root": root if only else None, "flat": True}
    if not whole:
        return await store.streams(SESSIONS, cursor=cursor, limit=limit, **which)
    pages = every(store, SESSIONS, cursor, **which)
    return Page([info async for infos in pages for info in infos], None)


def title_of(info: StreamInfo) -> str:
    return one_line(str(info.summary.get("title") or "no prompt yet"))


def as_json(found: Page) -> dict[str, Any]:
    return {"sessions": [one_as_json(info) for info in found.items], "nextCursor": found.cursor}


def one_as_json(info: StreamInfo) -> dict[str, Any]:
    """Returns a session as clients get it, with what it took."""
    from magy_server.api.present import session_info

    about = session_info(info).model_dump(mode="json", by_alias=True)
    took = {key: info.summary.get(key) for key in ("usage", "cost")}
    return {**about, "createdAt": stamp(info.created), **took}


def lines(
    found: Page, root: str, marks: Marks, width: int | None, sizes: Mapping[str, str] = NO_SIZES
) -> list[Span]:
    """`sizes`: what stands beside the turns of some, by their streams."""
    if not found.items:
        return [("There are no sessions yet. `magy run` starts one.\n", "dim")]
    spans: list[Span] = []
    ids = max(10, *(width_of(one_line(info.id)) for info in found.items))
    for place, group in _grouped(found.items, root):
        here = " (here)" if place == root else ""
        gap = "\n" if spans else ""
        spans.append((f"{gap}{one_line(place or 'no project')}{here}\n", "bold"))
        for info in group:
            spans += _line(info, marks, width, ids, sizes.get(info.stream, ""))
    if found.cursor:
        spans.append((f"more: magy sessions list --cursor {found.cursor}\n", "dim"))
    return spans


def _grouped(items: Sequence[StreamInfo], root: str) -> list[tuple[str | None, list[StreamInfo]]]:
    """This project first, then each by its newest session; those of no project last (E072)."""
    groups: dict[str | None, list[StreamInfo]] = {}
    for info in items:
        groups.setdefault(info.root, []).append(info)
    last = groups.pop(None, None)
    ordered = sorted(groups.items(), key=lambda group: group[0] != root)
    return [*ordered, (None, last)] if last else list(ordered)


def _line(info: StreamInfo, marks: Marks, width: int | None, ids: int, size: str) -> list[Span]:
    """Returns a session in one line; where that leaves its title no room, the id stands below.
    `ids`: the width of the longest id."""
    id, title = one_line(info.id), title_of(info)
    when = f"{datetime.fromtimestamp(info.updated).astimezone():%Y-%m-%d %H:%M}"
    state = str(info.summary.get("state", "idle"))
    tail = f"  {counted(info.summary.get('turns', 0), 'turn')}" + (f"  {size}" if size else "")
    mark = f"  {STATES[state]}" if state in STATES else ""
    end: list[Span] = [(tail, "dim"), (mark, WORDS.get(state, "")), ("\n", "")]
    head = f"  {id}{' ' * (ids - width_of(id))}  {when}  "
    if width is None:
        return [(head, "cyan"), (title, ""), *end]
    room = width - width_of(tail + mark)
    if room - width_of(head) >= TITLE:
        return [(head, "cyan"), (shortened(title, room - width_of(head), marks.cut), ""), *end]
    titled: Span = (f"  {shortened(title, room - 2, marks.cut)}", "")
    return [titled, *end, (f"    {when}  {id}\n", "cyan")]
