"""This module reads from the log what a session's turns did to files, and what of that is
undone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from itertools import dropwhile
from typing import Literal

from magy_server.core.events import Admitted, Entry, Event, Finished, Opened, Prompted, Started
from magy_server.core.reviews.review_events import Noted, Restored, Restoring
from magy_server.core.reviews.undo_merge import Run, tied
from magy_server.core.values import Content, FileChange
from magy_server.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """A change that a turn made to a file, or had proposed, and a person accepted it. `inherited`:
    the session that this one is a copy of made it."""

    turn: str
    change: FileChange
    inherited: bool = False


@dataclass(frozen=True, slots=True)
class TurnBegun:
    id: str
    at: float
    content: tuple[Content, ...]
    inherited: bool = False


@dataclass(frozen=True, slots=True)
class Undone:
    """What a restore did. `steps`: those that it undid (or, with `redid`, did again), by number;
    `talked`: the turns that it took out of the conversation (or brought back)."""

    event: Restored
    redid: bool
    steps: frozenset[int]
    talked: tuple[str, ...]


@dataclass(slots=True)
class History:
    """`turns` and `steps` in order; `undone` are numbers of steps; `talk` are the turns that the
    conversation has."""

    turns: dict[str, TurnBegun] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    undone: set[int] = field(default_factory=set)
    restores: dict[str, Undone] = field(default_factory=dict)
    steps_by: dict[int, str] = field(default_factory=dict)
    """The newest restore that undid each step, or did it again."""
    talked_by: dict[str, str] = field(default_factory=dict)
    """The same for the turns in the conversation."""
    talk: list[str] = field(default_factory=list)
    begun: Restoring | None = None
    """A restore that has not ended."""

    def since(self, turn: str) -> list[str]:
        """Returns the turns from this one on."""
        return list(dropwhile(lambda id: id != turn, self.turns))

    def in_effect(self, turn: str) -> list[int]:
        """Returns the steps to take back to be where `turn` began."""
        turns = set(self.since(turn))
        return [
            number
            for number, step in enumerate(self.steps)
            if step.turn in turns and number not in self.undone
        ]

    def own(self, steps: Iterable[int]) -> list[int]:
        return [number for number in steps if not self.steps[number].inherited]

    def runs(self, steps: Iterable[int]) -> tuple[Run, ...]:
        """Their changes, as `take_back` wants them. What was undone and done again does not go on
        where the step before it had ended: those are runs of their own."""
        found: dict[str, list[FileChange]] = {}
        for number in steps:
            found.setdefault(self.steps_by.get(number, ""), []).append(self.steps[number].change)
        order = ["", *self.restores]
        return tuple(tuple(found[id]) for id in sorted(found, key=order.index))

    def state_of(self, turn: str, path: str = "") -> Literal["applied", "undone", "partly"]:
        """Returns the state of a turn's files, or of one file; for a turn that changed none, that
        of its words."""
        steps = [number for number, step in enumerate(self.steps) if step.turn == turn]
        if path:
            steps = [number for number in steps if self.steps[number].change.path == path]
        undone = sum(number in self.undone for number in steps)
        if undone and undone < len(steps):
            return "partly"
        silent = not steps and not path and turn not in self.talk
        return "undone" if undone or silent else "applied"

    def steps_of(self, restore: Undone) -> list[int]:
        """Returns the steps of a restore that no later restore undid or did again."""
        id = restore.event.id
        return sorted(number for number in restore.steps if self.steps_by[number] == id)

    def talk_of(self, restore: Undone) -> list[str]:
        id = restore.event.id
        return [turn for turn in restore.talked if self.talked_by[turn] == id]

    def turns_of(self, steps: Iterable[int], talked: Iterable[str]) -> tuple[str, ...]:
        found = {self.steps[number].turn for number in steps} | set(talked)
        return tuple(id for id in self.turns if id in found)

    def undone_by(self, turn: str = "") -> list[Undone]:
        """Returns the restores that undid something (of this turn) which is still undone, newest
        first."""
        found = []
        for restore in reversed(self.restores.values()):
            left = self.turns_of(self.steps_of(restore), self.talk_of(restore))
            if not restore.redid and left and (not turn or turn in left):
                found.append(restore)
        return found


def history(entries: Iterable[Entry]) -> History:
    reader = _Reader()
    for entry in entries:
        reader.read(entry)
    return reader.found


class _Reader:
    def __init__(self) -> None:
        self.found = History()
        self._prompts: dict[str, Prompted] = {}
        self._turn = ""
        self._began: dict[str, str] = {}
        """The turns of calls."""
        self._noted: set[str] = set()
        self._copied = 0
        """The seq of the last entry that was copied from another session."""

    def read(self, entry: Entry) -> None:
        event: Event = entry.event
        match event:
            case Opened(forked_from=(_, copied)):
                self._copied = copied
            case Prompted():
                self._prompts.setdefault(event.id, event)
            case Admitted(opens=True):
                self._open(event, entry)
            case Started():
                self._began.setdefault(event.call, self._turn)
            case Finished():
                self._finish(event, inherited=entry.seq <= self._copied)
            case Noted(changes=changes) if changes and event.id not in self._noted:
                self._noted.add(event.id)
                inherited = entry.seq <= self._copied
                self.found.steps += [Step(event.turn, change, inherited) for change in changes]
            case Restoring() if entry.seq > self._copied:
                self.found.begun = event
            case Restored():
                self._restore(event, inherited=entry.seq <= self._copied)

    def _open(self, event: Admitted, entry: Entry) -> None:
        self._turn = event.turn
        self.found.begun = None  # what was begun then is over
        said = [self._prompts[id].content for id in event.prompts if id in self._prompts]
        content = tuple(part for parts in said for part in parts)
        turn = TurnBegun(event.turn, entry.at, content, entry.seq <= self._copied)
        self.found.turns[event.turn] = turn
        self.found.talk.append(event.turn)

    def _finish(self, event: Finished, *, inherited: bool) -> None:
        """What a call did that did not complete was looked at when it was closed; what it only had
        in mind is no step, until a person accepts it."""
        for change in event.changes:
            if change.via != "proposed":
                turn = self._began.get(event.call, self._turn)  # it may come after the turn's end
                self.found.steps.append(Step(turn, change, inherited))

    def _restore(self, event: Restored, *, inherited: bool) -> None:
        found = self.found
        if event.id in found.restores:
            return
        found.begun = None
        former = found.restores.get(event.undoes)
        if event.undoes and former is None:
            return
        steps = found.steps_of(former) if former else found.in_effect(event.turn)
        steps = steps if inherited else found.own(steps)
        toggled = self._toggled(event, steps) if event.files else frozenset()
        talked = self._talk(event, former) if event.conversation else ()
        found.undone ^= toggled
        redid = not former.redid if former else False
        found.restores[event.id] = Undone(event, redid, toggled, talked)
        found.steps_by.update(dict.fromkeys(toggled, event.id))
        found.talked_by.update(dict.fromkeys(talked, event.id))

    def _toggled(self, event: Restored, steps: Sequence[int]) -> frozenset[int]:
        """The steps that are otherwise now. Where one place of a file that was moved was left
        alone, so were those that it only came through: nothing was done there either."""
        changes = [self.found.steps[number].change for number in steps]
        moved = tied(changes)
        left = set(event.conflicts)
        made = {change.path for change in event.changes}
        stay = left.union(*(moved.get(path, set()) - made for path in left))
        return frozenset(n for n, c in zip(steps, changes, strict=True) if c.path not in stay)

    def _talk(self, event: Restored, former: Undone | None) -> tuple[str, ...]:
        found = self.found
        if former is None:
            gone = tuple(dropwhile(lambda id: id != event.turn, found.talk))
            found.talk = found.talk[: len(found.talk) - len(gone)]
            return gone
        turns = tuple(found.talk_of(former))
        if former.redid:
            found.talk = [id for id in found.talk if id not in turns]
        else:
            found.talk = [*found.talk, *turns]
        return turns
