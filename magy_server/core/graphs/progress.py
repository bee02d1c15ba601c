"""`GraphProgress` says how far a graph is: the attempts at each task, who made them, and what they
took. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from itertools import chain
from typing import TYPE_CHECKING

from magy_server.core.agents.child import LIVE, ChildInfo
from magy_server.core.agents.mail import Mailed, Status, TextPayload
from magy_server.core.graphs.graph import SETTLED, GraphTask, TaskState, last, states
from magy_server.core.state.spending import NO_SPENDING, Spent
from magy_server.dataclass import dataclass

if TYPE_CHECKING:
    from magy_server.core.graphs.merging import Merged, Piece

MARKS: Mapping[TaskState, str] = {
    "waiting": "·", "ready": "·", "running": "▸", "asking": "?", "completed": "✓",
    "failed": "✗", "cancelled": "–", "skipped": "–",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Attempt:
    """`number`: from 1. `mail`: what it came to, once it has ended. `void`: the task is to be done
    after all, since the attempt was cancelled and somebody has gone on with the graph, or since
    what the run may spend was spent. `stuck`: it is, and nobody has gone on yet."""

    child: ChildInfo
    number: int
    status: Status
    mail: Mailed | None
    void: bool = False
    stuck: bool = False

    @property
    def text(self) -> str:
        payload = self.mail.payload if self.mail else None
        return payload.text if isinstance(payload, TextPayload) else ""

    @property
    def seconds(self) -> float:
        report = self.mail.report if self.mail else None
        return report.seconds if report else 0.0


@dataclass(frozen=True, slots=True)
class GraphProgress:
    """`tasks`: in order. `blocked`: why no more of it can begin now; "": nothing hinders it.
    `unable`: by task, why no agent can be spawned for it."""

    id: str
    tasks: Sequence[GraphTask]
    attempts: Mapping[str, Sequence[Attempt]]
    blocked: str = ""
    unable: Mapping[str, str] = field(default_factory=dict)
    states: Mapping[str, TaskState] = field(init=False)

    def __post_init__(self) -> None:
        tries = {id: [one.status for one in some if not one.void]
                 for id, some in self.attempts.items()}  # fmt: skip
        object.__setattr__(self, "states", states(self.tasks, tries, self.unable))

    @property
    def settled(self) -> bool:
        return all(state in SETTLED for state in self.states.values())

    @property
    def live(self) -> list[str]:
        """Returns the sessions of the agents that are at work."""
        tries = (one for some in self.attempts.values() for one in some)
        return [one.child.session for one in tries if one.status in LIVE]

    @property
    def result(self) -> Merged:
        """Returns what the tasks that nobody needs say together. Of one that gave nothing, what it
        would have built on stands in its place."""
        from magy_server.core.graphs.merging import conflicts, merged  # most runs have no graph

        shown = {task.id for task in last(self.tasks)}
        for task in reversed(self.tasks):
            if task.id in shown and self.states[task.id] != "completed":
                shown.update(task.needs)
        done = [one for one in self.tasks if self.states[one.id] == "completed"]
        found = merged(self._pieces(one.id for one in done if one.id in shown))
        settled = (
            f"{note} {one.id} was to settle it."
            for one in done for note in conflicts(self._pieces(one.needs))
        )  # fmt: skip
        return replace(found, notes=(*found.notes, *settled))

    def at_odds(self, task: GraphTask) -> list[str]:
        """Returns the tasks whose results the task is given and contradict each other."""
        from magy_server.core.graphs.contradictions import Text, contradictions

        texts = [Text(piece.task, piece.text) for piece in self._pieces(task.needs)]
        pairs = ((both.one.task, both.other.task) for both in contradictions(texts))
        return list(dict.fromkeys(chain.from_iterable(pairs)))

    def _pieces(self, tasks: Iterable[str]) -> list[Piece]:
        """What came of those of them that are done."""
        from magy_server.core.graphs.merging import Piece

        done = (id for id in tasks if self.states[id] == "completed")
        return [Piece(id, self.attempts[id][-1].text) for id in done]

    def reason(self, task: str) -> str:
        """Returns why a task failed."""
        return self.unable.get(task) or self.attempts[task][-1].text

    def took(self, task: str) -> Spent:
        """Returns what all attempts at a task took, with the agents below them."""
        return sum((one.child.tree for one in self.attempts.get(task, ())), NO_SPENDING)

    def seconds(self, task: str) -> float:
        """Returns how long the attempts at a task took that have ended."""
        return sum(one.seconds for one in self.attempts.get(task, ()))

    def line(self, task: GraphTask) -> str:
        """Returns who did a task, how it went and what it took."""
        tries = self.attempts.get(task.id, ())
        spent = self.took(task.id)
        parts = [begun(task.id, task.agent, self.states[task.id])]
        if tries:
            parts.append(tries[-1].child.model or "its model")
            if seconds := self.seconds(task.id):
                parts.append(f"{seconds:.1f} s")
            if spent.requests:
                more = "+" if spent.usage.unreported else ""
                unknown = spent.unpriced and not spent.cost
                cost = "cost unknown" if unknown else f"${spent.cost:.4f}"
                parts.append(f"{spent.usage.total}{more} tokens, {cost}")
        if len(tries) > 1:
            parts.append(f"{len(tries)} attempts")
        return ", ".join(parts)


def begun(task: str, agent: str, state: TaskState) -> str:
    """Returns how the line of a task begins."""
    return f"{MARKS[state]} {task} ({agent}): {state}"
