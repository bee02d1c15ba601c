"""This module sees to what becomes of a child's worktree when its turn ends: its work lands, is put
up for review, or stays where it is."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from magy_server.core.agents.child import LIVE
from magy_server.core.agents.reports import last_words
from magy_server.core.errors import ToolError
from magy_server.core.events import Stop
from magy_server.core.state.state import State
from magy_server.core.summary import row
from magy_server.core.values import FileChange, Hash
from magy_server.engine import trees
from magy_server.engine.feature_ports import Landed
from magy_server.engine.rules import landing_mode
from magy_server.engine.world import World, put
from magy_server.tools.files.paths import below
from magy_server.tools.worktrees import checkouts, outcomes, records
from magy_server.tools.worktrees.listing import standing
from magy_server.tools.worktrees.merging import Unmerged
from magy_server.tools.worktrees.pull_requests import Forge, Request
from magy_server.tools.worktrees.records import Record
from magy_server.tools.worktrees.unmerged_files import Wanted, wanted_files
from magy_server.tools.worktrees.writing import Writing, writing

LOG = logging.getLogger(__name__)


async def made(state: State, env: Mapping[str, str]) -> None:
    """The worktree of the session is there. `env` is the environment for git. Raises ToolError."""
    record = _record(state)
    async with writing(record.root, env) as git:
        await checkouts.make(git, record)


async def reaped(world: World, state: State, env: Mapping[str, str]) -> None:
    """Removes the worktree and the branch of a session if the person was proposed all that is in
    them; for when they have decided it. Raises ToolError."""
    record = _record(state)
    async with writing(record.root, env) as git:
        known = await asyncio.to_thread(records.of, git.common, record.worktree)
        if known is None or await standing(git, known) != "proposed":
            return
        info = await world.store.info(state.stream)
        found = row(info) if info else None
        if found is None or found.about["status"] not in LIVE:  # it would work there
            await checkouts.remove(git, record.worktree, tip=known.proposed)


class Landing:
    """The end of one turn. `env` is the environment for git."""

    def __init__(self, world: World, env: Mapping[str, str], forge: Forge, state: State) -> None:
        self._world = world
        self._env = env
        self._forge = forge
        self._state = state
        self._record = _record(state)

    async def landed(self, stop: Stop, message: str) -> Landed:
        """Whatever goes wrong is said."""
        record = self._record
        try:
            if stop == "end_turn" and (busy := await self._at_work()):
                said = f"Not landed yet: {busy} still works in {record.worktree.path}."
                return Landed(message, said)
            async with writing(record.root, self._env) as git:
                if stop != "end_turn":
                    return Landed(_together(message, await outcomes.failed(git, record)))
                return await self._succeeded(git, message)
        except (ToolError, OSError) as error:
            said = error.message if isinstance(error, ToolError) else str(error)
            LOG.warning("the worktree of %s: %s", self._state.stream, said)
            said = f"Its worktree stays as it is: {said}"
            return Landed(message, said) if stop == "end_turn" else Landed(_together(message, said))

    async def _succeeded(self, git: Writing, message: str) -> Landed:
        title = self._state.options.get("title", "") or self._record.name
        request = Request(title, last_words(self._state), self._forge)
        proposes = await landing_mode(self._world, self._state) == "propose"
        settled = await outcomes.succeeded(
            git, self._record, request, self._unsaved, proposes=proposes
        )
        if settled.unmerged is None:
            return Landed(message, settled.text)
        review = await self._for_review(git, settled.unmerged)
        note = _together(settled.text, review.note)
        return replace(review, message=message, note=note, unproposed=settled.text)

    async def _at_work(self) -> str:
        """A session below that may work in the same worktree; "": there is none."""
        for info in await trees.below(self._world.store, self._state.id):
            found = row(info)
            if found and found.about["status"] in LIVE:
                return found.session
        return ""

    async def _unsaved(self, paths: Sequence[str]) -> Sequence[str]:
        found = []
        for path in paths:
            if self._world.editor.buffer(path) is None:
                continue
            there = await self._world.files.look(os.path.dirname(path), path)
            if there.disk is not None:
                found.append(path)
        return found

    # --- what a person decides --------------------------------------------------------------------

    async def _for_review(self, git: Writing, error: Unmerged) -> Landed:
        """The work as changes that are proposed to the person's files: hunk by hunk they decide."""
        there = await checkouts.worktrees(git)
        own = next((one for one in there if one.path == git.repository.top), None)
        if own is None or own.branch != self._record.worktree.base:
            return Landed("")
        try:
            wanted = await wanted_files(git, error.base, error.tip)
        except ToolError as problem:
            return Landed("", f"There is nothing to review: {problem.message}")
        changes: list[FileChange] = []
        blobs: dict[Hash, bytes] = {}
        left = list(wanted.left)
        for one in wanted.files:
            change = await self._proposed(git, one, blobs)
            if change is None:
                left.append(one.name)
            elif change.before != change.after:
                changes.append(change)
        files = "1 file" if len(changes) == 1 else f"{len(changes)} files"
        names = ", ".join(map(os.fsdecode, left))
        ends = "" if left else " Once all of them are decided, branch and worktree are removed."
        note = _together(
            f"Its changes of {files} are proposed for review instead.{ends}" if changes else "",
            f"Only in the branch, which therefore stays: {names}." if left else "",
        )
        if changes and not left:
            await checkouts.proposed(git, self._record.worktree, error.tip)
        return Landed("", note, changes=tuple(changes), blobs=blobs)

    async def _proposed(
        self, git: Writing, one: Wanted, blobs: dict[Hash, bytes]
    ) -> FileChange | None:
        """None: the file is not in the workspace, or cannot be reviewed."""
        path = os.path.join(git.repository.top, os.fsdecode(one.name))
        if below(self._record.root, path) is None:
            return None
        try:
            found = await self._world.files.look(self._record.root, path)
            after = await one.merged_into(git, found.data if found.version.hash else None)
        except ToolError:
            return None
        if found.version.kind != "file" or (found.version.hash and found.text is None):
            return None
        if found.version.hash:
            put(found.data, blobs)
        return FileChange(
            path=path,
            before=found.version.hash,
            after=None if after is None else put(after, blobs),
            via="proposed",
            mode=found.version.mode,
        )


def _record(state: State) -> Record:
    opened = state.opened
    assert opened is not None and opened.worktree is not None and opened.root is not None
    return Record(session=state.id, root=opened.root, place=opened.place, worktree=opened.worktree)


def _together(*said: str) -> str:
    return "\n".join(filter(None, said))
