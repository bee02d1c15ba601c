"""`magy worktrees` lists the git worktrees that agents of a project have, and removes those that
are not needed any more."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from magy_server.cli import exit_codes, project_directory
from magy_server.cli.composition import Composition, Verb
from magy_server.cli.screen.terminal import Screen, standard_output
from magy_server.cli.screen.text import Span, filled, record
from magy_server.core.agents.child import LIVE
from magy_server.core.agents.tree import stream_of
from magy_server.core.errors import InvalidRequest
from magy_server.core.ports import Store
from magy_server.core.summary import row
from magy_server.core.text.sanitizing import one_line
from magy_server.reviews.streams import all_decided
from magy_server.tools.git.repository import Repository
from magy_server.tools.shell.processes import Processes
from magy_server.tools.worktrees.listing import HARMLESS, Left, left, named, removed
from magy_server.tools.worktrees.writing import Looking, writing

MEANS = {
    "merged": "nothing in it that is not in the base branch",
    "proposed": "what is not merged was proposed to you for review",
    "unmerged": "not merged",
    "changed": "has changes that are not committed",
    "unfinished": "was never complete",
    "unknown": "git cannot say",
}
NOBODY = "deleted"
"""The state of a session that is not there any more."""


async def listed(options: argparse.Namespace, app: Composition) -> int:
    root, env = _place(options)
    found = await left(Looking(await Repository.open(root, env)))
    async with app.store() as store:
        states = {one.record.name: await _state(store, one) for one in found}
    if vars(options).get("json"):
        shown = [_as_json(one, states[one.record.name]) for one in found]
        await standard_output().write(record({"worktrees": shown}))
        return exit_codes.DONE
    screen = Screen(standard_output())
    spans = [span for one in found for span in _lines(one, states[one.record.name], screen.width)]
    await screen.write(spans or [("No agent has a worktree here.\n", "dim")])
    return exit_codes.DONE


async def prune(options: argparse.Namespace, app: Composition) -> int:
    """Returns 1 if one that was named had to stay."""
    if options.force and not options.names:
        raise InvalidRequest("--force needs the names of worktrees; `magy worktrees` lists them.")
    root, env = _place(options)
    gone: list[Left] = []
    stay: dict[str, str] = {}
    async with app.store() as store, writing(root, env) as git:
        for one in named(await left(git), options.names):
            if why := await _stays(store, one, force=options.force):
                stay[one.record.name] = why
                continue
            if not options.dry_run:
                await removed(git, one)
            gone.append(one)
    if options.json:
        names = [one.record.name for one in gone]
        await standard_output().write(record({"removed": names, "kept": stay}))
    else:
        screen = Screen(standard_output())
        await screen.write(_said(gone, stay, screen.width, dry=options.dry_run))
    return exit_codes.ERROR if options.names and stay else exit_codes.DONE


def _place(options: argparse.Namespace) -> tuple[str, Mapping[str, str]]:
    root, _ = project_directory.project(options.root, None)
    return root, Processes().environment(root, "", "worktrees")


async def _state(store: Store, one: Left) -> str:
    """The state of the session that the worktree is for."""
    info = await store.info(stream_of(one.record.session))
    found = row(info) if info else None
    return str(found.about["status"]) if found else NOBODY


async def _stays(store: Store, one: Left, *, force: bool) -> str:
    """Why it is not removed; "": it is."""
    state, made = await _state(store, one), one.record
    if state in LIVE:
        return f"its agent is {state}; cancel that first"
    if one.standing in HARMLESS or force:
        return ""
    if one.standing == "proposed" and await all_decided(store, made.root, made.session):
        return ""
    return MEANS[one.standing]


def _as_json(one: Left, state: str) -> Mapping[str, Any]:
    made = one.record
    return {
        "name": made.name, "path": made.worktree.path, "branch": made.worktree.branch,
        "base": made.worktree.base, "standing": one.standing, "why": one.why, "size": one.size,
        "session": made.session, "state": state,
    }  # fmt: skip


def _lines(one: Left, state: str, width: int | None) -> list[Span]:
    made = one.record
    style = "" if one.standing in HARMLESS else "yellow"
    about = f"branch {made.worktree.branch} from {made.worktree.base}, {_size(one.size)}"
    return [
        (f"{one_line(made.name)}", "bold"),
        (f"  {MEANS[one.standing]}{f': {one.why}' if one.why else ''}\n", style),
        (filled(one_line(about), width, "  "), "dim"),
        (filled(f"{one_line(made.session)}: {state}", width, "  "), "dim"),
    ]


def _size(size: int) -> str:
    for unit, least in (("GB", 10**9), ("MB", 10**6)):
        if size >= least:
            return f"{size / least:.1f} {unit}"
    return f"{-(-size // 1000)} kB"


def _said(
    gone: Sequence[Left], stay: Mapping[str, str], width: int | None, *, dry: bool
) -> list[Span]:
    would = "would be removed" if dry else "removed"
    lines = [f"{would}: {one_line(one.record.name)}" for one in gone]
    lines += [f"stays: {one_line(name)} ({one_line(why)})" for name, why in stay.items()]
    return [(filled(line, width), "") for line in lines or ["There is nothing to remove."]]


VERBS: Mapping[str | None, Verb] = {None: listed, "list": listed, "prune": prune}
