"""`magy sessions undo` and `redo` take back, and bring back, what a session's turns did to files
and said."""

from __future__ import annotations

import argparse
import dataclasses
import os
import secrets
from collections.abc import Sequence
from typing import Any

from magy_server.api.service import Service
from magy_server.cli import ending
from magy_server.cli.screen.calls import diff
from magy_server.cli.screen.printers import record
from magy_server.cli.screen.terminal import Screen, standard_output
from magy_server.cli.screen.text import Marks, Span, counted, one_line
from magy_server.core.errors import InvalidRequest
from magy_server.core.events import Content
from magy_server.core.ports import StreamInfo
from magy_server.engine.session import Session
from magy_server.reviews.checkpoints import Checkpoint, Checkpoints, Preview, Restore
from magy_server.reviews.file_changes import FileChanged
from magy_server.reviews.undo_plan import first_words

Options = argparse.Namespace
UNPROMPTED = "(no prompt: the agent continued by itself)"
"""As what its children reported has it do."""
STATES = {"applied": "", "undone": "  undone", "partly": "  partly undone"}
DONE = {"create": "created", "change": "changed", "remove": "removed", "nothing": "as it was"}
WOULD = {"create": "would be created", "change": "would change", "remove": "would be removed",
         "nothing": "is as it was"}  # fmt: skip


async def undo(service: Service, info: StreamInfo, options: Options) -> int:
    """Runs the command, and returns the exit code: 1 when it had to leave files alone. Raises
    MagyError."""
    checkpoints = service.checkpoints
    session = await service.loaded.session(info.stream)
    said = Said(options, session)
    if options.list:
        await said.turns(await checkpoints.list(session, limit=500))
        return ending.DONE
    return await _restore(checkpoints, session, said, options, options.turn or "", "")


async def redo(service: Service, info: StreamInfo, options: Options) -> int:
    """Takes back the newest undo that is not itself undone, and returns the exit code."""
    checkpoints = service.checkpoints
    session = await service.loaded.session(info.stream)
    said = Said(options, session)
    newest = await checkpoints.newest(session)
    if newest is None:
        raise InvalidRequest("There is nothing to redo: nothing was undone.")
    return await _restore(checkpoints, session, said, options, "", newest)


async def _restore(
    checkpoints: Checkpoints,
    session: Session,
    said: Said,
    options: Options,
    turn: str,
    undoes: str,
) -> int:
    files, conversation = not options.conversation, not options.files
    if options.dry_run:
        preview = await checkpoints.preview(
            session, turn, files=files, conversation=conversation, undoes=undoes
        )
        await said.preview(preview)
        return ending.ERROR if preview.why or _left(preview.files) else ending.DONE
    restore = await checkpoints.restore(
        session, secrets.token_hex(8), turn, files=files, conversation=conversation, undoes=undoes
    )
    await said.restore(restore)
    return ending.ERROR if _left(restore.files) else ending.DONE


def _left(files: Sequence[FileChanged]) -> list[FileChanged]:
    return [file for file in files if file.conflict]


class Said:
    """Prints for people, or as one JSON object."""

    def __init__(self, options: Options, session: Session) -> None:
        self._json = options.json
        self._screen = Screen(standard_output())
        opened = session.state.opened
        self._root = (opened.root or opened.cwd) if opened else "/"

    async def turns(self, found: Sequence[Checkpoint]) -> None:
        if self._json:
            await self._record({"turns": [_json(point) for point in found]})
            return
        spans: list[Span] = []
        for point in found:
            spans.append((f"{point.turn}  ", "bold"))
            spans.append((f"{one_line(point.prompt) or UNPROMPTED}\n", ""))
            for file in point.files:
                name = self._name(file.path)
                state = STATES[file.state]
                spans.append((f"    {name} +{file.added} -{file.removed}{state}\n", "dim"))
            if not point.files and point.state == "undone":
                spans.append(("    changed no files; its messages are undone\n", "dim"))
        await self._screen.write(spans)

    async def preview(self, preview: Preview) -> None:
        if self._json:
            await self._record(_json(preview))
            return
        spans = self._files(preview.files, WOULD, whole=True)
        before = _before(preview.prompt, preview.turn)
        words = "would come back" if preview.undoes else f"would go back to before {before}"
        if preview.conversation:
            spans.append((f"conversation: {words}\n", ""))
        elif preview.why:
            spans.append((f"conversation: {preview.why}\n", "yellow"))
        await self._screen.write(spans or [("nothing would change\n", "")])

    async def restore(self, restore: Restore) -> None:
        if self._json:
            await self._record(_json(restore))
            return
        spans = self._files(restore.files, DONE, whole=False)
        if restore.conversation:
            before = _before(restore.prompt, restore.turn)
            words = "as it was again" if restore.undoes else f"back to before {before}"
            spans.append((f"conversation: {words}\n", ""))
        if restore.text:
            spans += [("your prompt there was:\n", "dim"), (f"{restore.text}\n", "")]
        await self._screen.write(spans)

    def _files(
        self, files: Sequence[FileChanged], words: dict[str, str], *, whole: bool
    ) -> list[Span]:
        spans: list[Span] = []
        marks: Marks = self._screen.marks
        for file in files:
            name = self._name(file.path)
            if file.conflict:
                spans.append((f"{marks.failed} {name} left alone: {file.conflict}\n", "yellow"))
                continue
            lines = f" +{file.added} -{file.removed}" if file.added or file.removed else ""
            spans.append((f"{marks.done} {name} {words[file.action]}{lines}\n", ""))
            if whole and file.diff:
                spans += diff(file.diff, marks, None)
        if left := _left(files):
            spans.append((f"{counted(len(left), 'file')} left alone\n", "yellow"))
        return spans

    def _name(self, path: str) -> str:
        return one_line(os.path.relpath(path, self._root))

    async def _record(self, value: dict[str, Any]) -> None:
        await self._screen.write([(record(value), "")])


def _before(prompt: Sequence[Content], turn: str) -> str:
    """Returns the prompt of a turn, as people know it."""
    words = one_line(first_words(prompt))
    return f'"{words}"' if words else f"turn {turn}"


def _json(value: Checkpoint | Preview | Restore) -> dict[str, Any]:
    found = dataclasses.asdict(value)
    if "prompt" in found and not isinstance(value, Checkpoint):
        found["prompt"] = [part.model_dump(mode="json") for part in value.prompt]
    return found
