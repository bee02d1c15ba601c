"""`magy agents list` prints the children of sessions as trees, and `magy agents ratings` how good
agents have been, and at what. They read the store alone."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from magy_server.api.sessions.pages import every
from magy_server.cli import exit_codes, project_directory, session_ids
from magy_server.cli.commands.session_list import title_of
from magy_server.cli.composition import Composition
from magy_server.cli.screen.child_lines import line
from magy_server.cli.screen.terminal import Screen, standard_output
from magy_server.cli.screen.text import Span, record
from magy_server.core import wire_values
from magy_server.core.agents import reputation, tree
from magy_server.core.agents.child import ChildInfo
from magy_server.core.agents.tree import SESSIONS, stream_of
from magy_server.core.ports import Store, StreamInfo
from magy_server.core.summary import children, row
from magy_server.core.text.sanitizing import one_line

RATED = 500
"""Agents of which ratings are printed."""
ALL = "all it does"


async def listed(options: argparse.Namespace, app: Composition) -> int:
    asked = vars(options)
    output = standard_output()
    async with app.store() as store:
        if given := asked.get("session"):
            heads = [await session_ids.resolve(store, given)]
            below = await store.below(heads[0].stream)
        else:
            root, _ = project_directory.project(options.root, None)
            below = await _children(store, None if asked.get("everywhere") else root)
            ids = dict.fromkeys(tree.root(info.id) for info in below)
            infos = [await store.info(stream_of(id)) for id in ids]
            heads = [info for info in infos if info]
    found = [one for one in children(filter(None, map(row, below)))
             if asked.get("all") or one.status != "closed"]  # fmt: skip
    if asked.get("ids"):
        await output.write("".join(f"{child.session}\n" for child in found))
    elif asked.get("json"):
        await output.write(record({"children": [wire_values.child(child) for child in found]}))
    else:
        screen = Screen(output)
        await screen.write(_lines(screen, heads, found))
    return exit_codes.DONE


async def _children(store: Store, root: str | None) -> list[StreamInfo]:
    """Returns the children in a project or in all, the newest first."""
    return [
        info
        async for infos in every(store, SESSIONS, root=root)
        for info in infos
        if tree.parent(info.id) is not None
    ]


def _lines(screen: Screen, heads: Sequence[StreamInfo], found: Sequence[ChildInfo]) -> list[Span]:
    spans: list[Span] = []
    for info in heads:
        below = [child for child in found if tree.is_below(child.session, info.id)]
        if below:
            spans += [(one_line(info.id), "bold"), (f"  {title_of(info)}\n", "")]
        for child in below:
            *words, end = line(child, screen.marks, tree.depth(info.id))
            spans += [*words, (end[0].rstrip("\n"), end[1]), (f"  {child.session}\n", "dim")]
    return spans or [("There are no child agents. `magy agents spawn` starts one.\n", "dim")]


# --- ratings --------------------------------------------------------------------------------------


async def ratings(options: argparse.Namespace, app: Composition) -> int:
    asked, output = vars(options), standard_output()
    async with app.store() as store:
        page = await store.streams(reputation.STREAMS, limit=RATED)
    now = time.time()
    rows = [
        row
        for info in sorted(page.items, key=lambda info: info.stream)
        for row in _rows(info.stream.removeprefix(reputation.STREAMS), info.summary, now)
        if asked.get("agent") in (None, row["agent"])
    ]
    if asked.get("json"):
        await output.write(record({"ratings": rows}))
    else:
        await Screen(output).write(_rated(rows))
    return exit_codes.DONE


def _rows(agent: str, summary: Mapping[str, Any], now: float) -> Iterator[Mapping[str, Any]]:
    known = reputation.of_summary(summary)
    for capability in sorted(known):
        yield {
            "agent": agent,
            "capability": capability or None,
            "score": round(reputation.score(known, capability, now), 3),
            "weight": round(known[capability].faded(now).all, 3),
        }


def _rated(rows: Sequence[Mapping[str, Any]]) -> list[Span]:
    if not rows:
        return [("Nothing is known yet: no agent has done a task.\n", "dim")]
    named = [(one_line(row["agent"]), one_line(row["capability"] or ALL)) for row in rows]
    wide, wider = (max(len(names[place]) for names in named) for place in (0, 1))
    spans: list[Span] = []
    for (agent, capability), one in zip(named, rows, strict=True):
        spans += [
            (f"{agent:{wide}}  ", "bold"),
            (f"{capability:{wider}}  {one['score']:.2f}", ""),
            (f"  of {one['weight']:.1f} ratings\n", "dim"),
        ]
    return spans
