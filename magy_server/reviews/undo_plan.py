"""This module plans what going back undoes, and what the model is told of it. Pure."""

from __future__ import annotations

import os
from collections.abc import Sequence

from magy_server.core.errors import InvalidRequest, NotFound
from magy_server.core.events import Prompted
from magy_server.core.prompting.sizes import words
from magy_server.core.reviews.file_history import History
from magy_server.core.reviews.review_events import Noted, Restored
from magy_server.core.reviews.undo_merge import Run
from magy_server.core.state.rewind import cannot_go_back, cannot_return, restore
from magy_server.core.state.state import State
from magy_server.core.values import Content, Text
from magy_server.dataclass import dataclass

NAMED = 20
"""Paths that the model is told; of more, how many."""
FIRST_WORDS = 80


@dataclass(frozen=True, slots=True)
class Aim:
    """Where a restore goes. `runs` are to be taken back; `moves` are what they themselves had taken
    back; `why`: why the conversation cannot go there, although that was asked."""

    turn: str
    undoes: str
    turns: tuple[str, ...]
    runs: tuple[Run, ...]
    conversation: bool
    why: str = ""
    redid: bool = False
    """Changes are made again, not undone."""
    moves: Run = ()

    @property
    def nothing(self) -> bool:
        return not any(self.runs) and not self.conversation


def aim(
    history: History, state: State, turn: str, undoes: str, *, files: bool, conversation: bool
) -> Aim:
    """Raises NotFound, InvalidRequest."""
    if not files and not conversation:
        raise InvalidRequest("Choose what to restore: the files, the conversation, or both.")
    if undoes:
        return _again(history, state, undoes, files=files, conversation=conversation)
    turn = turn or _newest(history, files=files, conversation=conversation)
    if turn not in history.turns:
        raise NotFound(f"There is no turn {turn!r} in this session.")
    steps = history.own(history.in_effect(turn)) if files else []
    talked = [id for id in history.since(turn) if id in history.talk] if conversation else []
    why = cannot_go_back(state, turn) if conversation else ""
    return Aim(
        turn=turn,
        undoes="",
        turns=history.turns_of(steps, () if why else talked),
        runs=history.runs(steps),
        conversation=conversation and not why,
        why=why,
    )


def _newest(history: History, *, files: bool, conversation: bool) -> str:
    """The newest turn of which something is left to undo."""
    steps = history.own(history.in_effect(next(iter(history.turns), "")))
    changed = {history.steps[number].turn for number in steps}
    for turn in reversed(history.turns):
        if (files and turn in changed) or (conversation and turn in history.talk):
            return turn
    undone = history.undone or (conversation and history.turns and not history.talk)
    why = "everything is already undone" if undone else "no turn has changed anything yet"
    raise InvalidRequest(f"There is nothing to undo: {why}.")


def _again(history: History, state: State, undoes: str, *, files: bool, conversation: bool) -> Aim:
    former = history.restores.get(undoes)
    if former is None:
        raise NotFound(f"There is no restore {undoes!r} in this session.")
    steps = history.own(history.steps_of(former)) if files else []
    talked = history.talk_of(former) if conversation else []
    if not steps and not talked:
        raise InvalidRequest("That undo was redone already.")
    paths = {history.steps[number].change.path for number in steps}
    why = cannot_return(state, undoes) if talked else ""
    return Aim(
        turn=former.event.turn,
        undoes=undoes,
        turns=history.turns_of(steps, () if why else talked),
        runs=(tuple(change for change in former.event.changes if change.path in paths),),
        conversation=bool(talked) and not why,
        why=why,
        redid=not former.redid,
        moves=tuple(history.steps[number].change for number in steps),
    )


# --- words --------------------------------------------------------------------------------------


def said(content: Sequence[Content]) -> str:
    return words(Prompted(id="", content=tuple(content)))


def first_words(content: Sequence[Content]) -> str:
    """Returns the beginning of what the person wrote; what they attached, if they wrote nothing."""
    written = "\n".join(part.text for part in content if isinstance(part, Text))
    line = (written.strip() or said(content).strip()).split("\n", 1)[0]
    return line if len(line) <= FIRST_WORDS else line[: FIRST_WORDS - 1] + "…"


def note(now: State, event: Restored, found: History, root: str) -> Noted | None:
    """What the model must know after `event`, in a conversation that is still about the turn: which
    of its changes are not what it believes. What the conversation forgot never happened. `found`
    is as it was before."""
    if restore(now, event).history.past(event.turn) is None:
        return None
    former = found.restores.get(event.undoes)
    paths = [change.path for change in event.changes]
    if event.conversation and former:
        still = {found.steps[number].change.path for number in found.steps_of(former)}
        paths = sorted(still & set(event.conflicts) if event.files else still)
    if not paths:
        return None
    text = (
        f"The user undid your changes to these files: {_named(paths, root)}. They are as they were "
        "before, except for the user's own changes. Read them before you change them, and do not "
        "make those changes again unless asked."
    )
    if former and not event.conversation and not former.redid:
        text = (
            "The user had undone your changes to these files and has now restored them: "
            f"{_named(paths, root)}. Read them before you change them."
        )
    return Noted(id=f"{event.id}/{now.id}", text=text)


def _named(paths: Sequence[str], root: str) -> str:
    names = [os.path.relpath(path, root) for path in paths]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
