"""`magy sessions undo` and `redo` undo, and redo, what a session's turns did to files and said."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence

from magy_server.api.reviews.checkpoint_verbs import CheckpointVerbs
from magy_server.api.wire import reviews as wire
from magy_server.api.wire.shapes import Wire
from magy_server.cli import exit_codes
from magy_server.cli.composition import Composition, Options
from magy_server.cli.screen.terminal import Screen, standard_output
from magy_server.cli.screen.text import Marks, Span, counted, first_words, record
from magy_server.cli.screen.tool_calls import diff
from magy_server.core.errors import InvalidRequest
from magy_server.core.ports import StreamInfo
from magy_server.core.text.sanitizing import one_line

UNPROMPTED = "(no prompt: the agent continued by itself)"
"""As what its children reported has it do."""
STATES = {"applied": "", "undone": "  undone", "partly": "  partly undone"}
DONE = {"create": "created", "change": "changed", "remove": "removed", "rename": "renamed to",
        "nothing": "as it was"}  # fmt: skip
WOULD = {"create": "would be created", "change": "would change", "remove": "would be removed",
         "rename": "would be renamed to", "nothing": "is as it was"}  # fmt: skip


async def undo(options: Options, app: Composition) -> int:
    """Runs the command, and returns the exit code: 1 when it had to leave files alone. Raises
    MagyError."""
    async with app.acting(options.session) as (service, info):
        checkpoints = CheckpointVerbs(service)
        if not options.list:
            return await _restore(checkpoints, info, options, options.turn, None)
        found = await checkpoints.list(wire.CheckpointListParams(session_id=info.id, limit=500))
        await _say(options, found, _turns(found.checkpoints, _root(info)))
        return exit_codes.DONE


async def redo(options: Options, app: Composition) -> int:
    """Takes back the newest undo that is not itself undone, and returns the exit code."""
    async with app.acting(options.session) as (service, info):
        checkpoints = CheckpointVerbs(service)
        found = await checkpoints.list(wire.CheckpointListParams(session_id=info.id, limit=1))
        if found.redo is None:
            raise InvalidRequest("There is nothing to redo: nothing was undone.")
        return await _restore(checkpoints, info, options, None, found.redo)


async def _restore(
    checkpoints: CheckpointVerbs,
    info: StreamInfo,
    options: Options,
    turn: str | None,
    undoes: str | None,
) -> int:
    params = wire.CheckpointRestoreParams(
        session_id=info.id,
        turn_id=turn,
        undoes=undoes,
        files=not options.conversation,
        conversation=not options.files,
        request_key=secrets.token_hex(8),
    )
    marks = Screen(standard_output()).marks
    if options.dry_run:
        preview = await checkpoints.preview(params)
        await _say(options, preview, _previewed(preview, marks, _root(info)))
        return exit_codes.ERROR if preview.why or _left(preview.files) else exit_codes.DONE
    restored = await checkpoints.restore(params)
    await _say(options, restored, _restored(restored, marks, _root(info)))
    return exit_codes.ERROR if _left(restored.files) else exit_codes.DONE


async def _say(options: Options, found: Wire, spans: Sequence[Span]) -> None:
    """Prints it as one JSON object, or for people."""
    said = [(record(found.model_dump(mode="json", by_alias=True)), "")] if options.json else spans
    await Screen(standard_output()).write(said)


def _root(info: StreamInfo) -> str:
    return info.root or str(info.summary.get("cwd") or "/")


def _left(files: Sequence[wire.RestoredFile]) -> list[wire.RestoredFile]:
    return [file for file in files if file.conflict]


def _turns(found: Sequence[wire.CheckpointInfo], root: str) -> list[Span]:
    spans: list[Span] = []
    for point in found:
        spans.append((f"{point.turn_id}  ", "bold"))
        spans.append((f"{one_line(point.prompt) or UNPROMPTED}\n", ""))
        for file in point.files:
            name, state = _name(file.path, root), STATES[file.state]
            spans.append((f"    {name} +{file.added} -{file.removed}{state}\n", "dim"))
        if not point.files and point.state == "undone":
            spans.append(("    changed no files; its messages are undone\n", "dim"))
    return spans


def _previewed(preview: wire.CheckpointPreview, marks: Marks, root: str) -> list[Span]:
    spans = _files(preview.files, WOULD, marks, root, whole=True)
    before = _before(preview.prompt, preview.turn_id)
    words = "would come back" if preview.undoes else f"would go back to before {before}"
    if preview.conversation:
        spans.append((f"conversation: {words}\n", ""))
    elif preview.why:
        spans.append((f"conversation: {preview.why}\n", "yellow"))
    return spans or [("nothing would change\n", "")]


def _restored(restored: wire.CheckpointRestored, marks: Marks, root: str) -> list[Span]:
    spans = _files(restored.files, DONE, marks, root, whole=False)
    if restored.conversation:
        before = _before(restored.prompt, restored.turn_id)
        words = "as it was again" if restored.undoes else f"back to before {before}"
        spans.append((f"conversation: {words}\n", ""))
    if restored.prompt:
        spans += [("your prompt there was:\n", "dim"), (f"{restored.prompt}\n", "")]
    return spans


def _files(
    files: Sequence[wire.RestoredFile],
    words: dict[str, str],
    marks: Marks,
    root: str,
    *,
    whole: bool,
) -> list[Span]:
    spans: list[Span] = []
    for file in files:
        name = _name(file.path, root)
        if file.conflict:
            spans.append((f"{marks.failed} {name} left alone: {file.conflict}\n", "yellow"))
            continue
        lines = f" +{file.added} -{file.removed}" if file.added or file.removed else ""
        what = f"{name} {words[file.action]}"
        if file.moved_from:
            what = f"{_name(file.moved_from, root)} {words[file.action]} {name}"
        spans.append((f"{marks.done} {what}{lines}\n", ""))
        if whole and file.diff:
            spans += diff(file.diff, marks, None)
    if left := _left(files):
        spans.append((f"{counted(len(left), 'file')} left alone\n", "yellow"))
    return spans


def _name(path: str, root: str) -> str:
    return one_line(os.path.relpath(path, root))


def _before(prompt: str, turn: str) -> str:
    words = first_words(prompt)
    return f'"{words}"' if words else f"turn {turn}"
