"""A shape says how tasks depend on each other, so that nobody has to write it down. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from magy_server.core.errors import InvalidRequest
from magy_server.core.graphs.graph import GraphTask, check_size, names
from magy_server.core.text.sanitizing import shortened

Shape = Literal["auto", "graph", "pipeline", "fan_out", "discussion", "swarm"]
"""What suits them; as the tasks say; each needs the one before it; all but the last side by side,
and the last gets what they found; as `fan_out`, but those side by side then read each other and
think again; the first splits the work for the others, who do their parts and fit them together, and
the last brings together."""
_LEAST = {"fan_out": "one task and one", "discussion": "two tasks that speak and one",
          "swarm": "one task that splits the work, two roles and one"}  # fmt: skip
ABOUT = 200
"""Characters of a role's task that who splits the work is told."""

REVISED = """{prompt}

You have said what you think of this. The messages before this one are what you and the others have
said, in that order. Judge them by their reasons and evidence, not by how many say the same.
Then give your answer anew: what you keep, what you change, and for which reason."""

CONCLUDED = """{prompt}

The messages before this one are what the others hold after they have answered each other. Say what
they agree on. Where they do not, decide by their reasons and evidence, or say that it is open and
what would settle it. That somebody changed their mind, or most are of one mind, proves nothing."""

SPLIT = """{prompt}

You lead. These work with you, each at its part, and see what you write:
{roles}

Write for each, under a heading with its name, what its part is, where it ends, and what the others
will rely on. For whom there is nothing to do, say so. Do none of the parts yourself."""

PART = """{prompt}

You are {id}, one of several at work: {others}. The message before this one has what {lead} wants of
each: do your part of it, {id}. If nothing in it is yours, say so in one sentence and end."""

FITTED = """{prompt}

You are {id}, and have done your part. The messages before this one are what you and the others have
done, in that order, yours first. Make yours fit theirs: give what they need of you, mend what does
not go together, and say where theirs is wrong. If there is nothing to change, say so in one
sentence. Then give your result anew, whole, with what you changed."""


def shaped(shape: Shape, tasks: Sequence[GraphTask], rounds: int = 2) -> list[GraphTask]:
    """Returns the tasks with their needs. `rounds`: how often each of a discussion or swarm speaks.
    Raises InvalidRequest when they do not fit the shape."""
    if shape == "auto" and tasks:
        from magy_server.core.graphs.scheduling import chosen

        found = chosen(tasks)
        shape, rounds = found.shape, found.rounds or rounds
    if shape in ("auto", "graph"):
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
    if len(tasks) < 2 + (shape == "discussion") + 2 * (shape == "swarm"):
        raise InvalidRequest(
            f"The shape {shape!r} takes at least {_LEAST[shape]} that brings together."
        )
    *side, end = tasks
    if shape == "swarm":
        lead, *roles = side
        check_size(len(roles) * rounds + 2, len(roles) ** 2 * (rounds - 1) + 2 * len(roles) + 1)
        split = lead.model_copy(update={"prompt": _split(lead, roles)})
        latest = _swarm(lead, roles, rounds)
        return [split, *latest, _needing(end, [lead, *latest[-len(roles) :]])]
    if shape == "discussion":
        check_size(len(side) * rounds + 1, len(side) ** 2 * (rounds - 1) + len(side))
        end = end.model_copy(update={"prompt": CONCLUDED.format(prompt=end.prompt)})
        side = _again(side, rounds, REVISED)
    return [*side, _needing(end, side[-len(tasks) + 1 :])]


def _needing(task: GraphTask, others: Sequence[GraphTask]) -> GraphTask:
    return task.model_copy(update={"needs": tuple(one.id for one in others)})


def _split(lead: GraphTask, roles: Sequence[GraphTask]) -> str:
    lines = [f"- {one.id} ({one.agent}): {shortened(one.prompt, ABOUT)}" for one in roles]
    return SPLIT.format(prompt=lead.prompt, roles="\n".join(lines))


def _swarm(lead: GraphTask, roles: Sequence[GraphTask], rounds: int) -> list[GraphTask]:
    first = [
        _needing(role, [lead]).model_copy(update={"prompt": PART.format(
            prompt=role.prompt, id=role.id, lead=lead.id,
            others=names(one.id for one in roles if one is not role),
        )})
        for role in roles
    ]  # fmt: skip
    later = _again(roles, rounds, FITTED)[len(roles) :]
    return [*first, *later]


def _again(speakers: Sequence[GraphTask], rounds: int, words: str) -> list[GraphTask]:
    """What they say first, and then, `rounds` times in all, with what all have said before."""
    said = [list(speakers)]
    for number in range(2, rounds + 1):
        said.append([
            speaker.model_copy(update={
                "id": f"{speaker.id}-{number}",
                "prompt": words.format(prompt=speaker.prompt, id=speaker.id),
                "needs": _own_first(place, [task.id for task in said[-1]]),
            })
            for place, speaker in enumerate(speakers)
        ])  # fmt: skip
    return [task for turn in said for task in turn]


def _own_first(place: int, ids: Sequence[str]) -> tuple[str, ...]:
    return (ids[place], *ids[:place], *ids[place + 1 :])
