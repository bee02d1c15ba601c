"""`magy agents list` prints the children of sessions as trees; it reads the store alone."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from magy_server.api.sessions.pages import every
from magy_server.cli import exit_codes, project_directory, session_ids
from magy_server.cli.commands.session_list import title_of
from magy_server.cli.composition import Composition
from magy_server.cli.screen.child_lines import line
from magy_server.cli.screen.terminal import Screen, standard_output
from magy_server.cli.screen.text import Span, record
from magy_server.core import wire_values
from magy_server.core.agents import tree
from magy_server.core.agents.child import ChildInfo
from magy_server.core.agents.tree import SESSIONS, stream_of
from magy_server.core.ports import Store, StreamInfo
from magy_server.core.summary import children, row
from magy_server.core.text.sanitizing import one_line


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
