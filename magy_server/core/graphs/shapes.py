"""A shape says how tasks depend on each other, so that nobody has to write it down. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from magy_server.core.errors import InvalidRequest
from magy_server.core.graphs.graph import GraphTask, check_size

Shape = Literal["graph", "pipeline", "fan_out", "discussion"]
"""As the tasks say; each needs the one before it; all but the last side by side, and the last gets
what they found; as `fan_out`, but those side by side then read each other and think again."""

REVISED = """{prompt}

You have said what you think of this. The messages before this one are what you and the others have
said, in that order. Judge them by their reasons and evidence, not by how many say the same.
Then give your answer anew: what you keep, what you change, and for which reason."""


def shaped(shape: Shape, tasks: Sequence[GraphTask], rounds: int = 2) -> list[GraphTask]:
    """Returns the tasks with their needs. `rounds`: how often each of a discussion speaks. Raises
    InvalidRequest when they do not fit the shape."""
    if shape == "graph":
        return list(tasks)
    if named := [task.id for task in tasks if task.needs]:
        raise InvalidRequest(
            f"The shape {shape!r} says itself what needs what: leave `needs` of {named[0]!r} out, "
            "or use the shape 'graph'."
        )
    if shape == "pipeline":
        before = [(), *((task.id,) for task in tasks)]
        return [
            task.model_copy(update={"needs": needs})
            for task, needs in zip(tasks, before, strict=False)
        ]
    if len(tasks) < 2 + (shape == "discussion"):
        least = "two tasks that speak and one" if shape == "discussion" else "one task and one"
        raise InvalidRequest(f"The shape {shape!r} takes at least {least} that brings together.")
    *side, end = tasks
    if shape == "discussion":
        check_size(len(side) * rounds + 1, len(side) ** 2 * (rounds - 1) + len(side))
        side = _discussion(side, rounds)
    latest = side[-len(tasks) + 1 :]
    return [*side, end.model_copy(update={"needs": tuple(task.id for task in latest)})]


def _discussion(speakers: Sequence[GraphTask], rounds: int) -> list[GraphTask]:
    said = [list(speakers)]
    for number in range(2, rounds + 1):
        said.append([
            speaker.model_copy(update={
                "id": f"{speaker.id}-{number}",
                "prompt": REVISED.format(prompt=speaker.prompt),
                "needs": _own_first(place, [task.id for task in said[-1]]),
            })
            for place, speaker in enumerate(speakers)
        ])  # fmt: skip
    return [task for turn in said for task in turn]


def _own_first(place: int, ids: Sequence[str]) -> tuple[str, ...]:
    return (ids[place], *ids[:place], *ids[place + 1 :])
