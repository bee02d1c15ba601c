"""Who plays: a root with three children, one of which has a child of its own, and a fifth that the
person spawns. What each does next depends on nothing but what its conversation says.

    root     spawns alpha, beta and gamma, steers alpha, waits for alpha and beta, works with what
             they found, ends its turn; gamma's late result opens another turn, in which it works on
      alpha    spawns delta, works until it is steered, edits, waits for delta, works
        delta    works, edits
      beta     works, asks for permission, edits
      gamma    works, edits, and goes on until the person steers it
      review   the person's: works, edits

In another play the root has a graph of tasks done: north and south, and draft, which builds on
both. Each works and edits in a git worktree of its own, and all of it lands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tests.loopback import Part, call, text

END = "ALL DONE"

CONTEXT = {"beta": {"context": "all"}, "delta": {"context": "1"}}
"""What these are given of their parent's conversation; the others: nothing."""

_TASK = re.compile(r"^TASK (\w+)$", re.MULTILINE)
_JOB = re.compile(r'"?job_id"?: *"?([^\s",}]+)')


def task(role: str) -> str:
    """The prompt that makes an agent this one."""
    return f"TASK {role}"


def result(role: str, tag: str) -> str:
    """What a child's last message says, and nothing else does."""
    return f"RESULT-{role}-{tag}"


def steer(role: str, tag: str) -> str:
    """What the child waits for."""
    return f"STEER-{role}-{tag}"


def unedited(role: str) -> str:
    return f"{role}: to do\n"


def edited(role: str) -> str:
    return f"{role}: done\n"


@dataclass(frozen=True)
class Made:
    """A call that the model made, and what it was told; None: nothing yet."""

    name: str
    arguments: Mapping[str, Any]
    output: str | None


@dataclass(frozen=True)
class Told:
    """A request's conversation: `messages` as they are on the wire, without the system's."""

    messages: Sequence[Mapping[str, Any]]

    @cached_property
    def role(self) -> str:
        """Whose it is; "": nobody's in this play. Before its task, a line of its own, stands what
        its parent gave it of their conversation."""
        users = [text_of(message) for message in self.messages if message["role"] == "user"]
        found = [task[1] for text in users if (task := _TASK.search(text))]
        return found[-1] if found else ""

    @cached_property
    def replies(self) -> int:
        return sum(message["role"] == "assistant" for message in self.messages)

    @cached_property
    def heard(self) -> str:
        """All that was not said by the model itself."""
        return "\n".join(text_of(m) for m in self.messages if m["role"] != "assistant")

    @cached_property
    def calls(self) -> Sequence[Made]:
        outputs = {m["tool_call_id"]: text_of(m) for m in self.messages if m["role"] == "tool"}
        return [
            Made(c["name"], json.loads(c["arguments"]), outputs.get(id))
            for message in self.messages
            for id, c in ((c["id"], c["function"]) for c in message.get("tool_calls") or ())
        ]

    def named(self, tool: str) -> list[Made]:
        return [made for made in self.calls if made.name == tool]

    @cached_property
    def jobs(self) -> Mapping[str, str]:
        """The session of each child that was spawned, by role."""
        found = {}
        for made in self.named("spawn_agent"):
            role, job = _TASK.search(made.arguments["prompt"]), _JOB.search(made.output or "")
            if role and job:
                found[role[1]] = job[1]
        return found


def text_of(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(p.get("text", "") for p in content)


# --- what they do -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Goal:
    """`act` is done again and again until it is reached: a command whose outcome is not known, say,
    is run again."""

    reached: Callable[[Told], bool]
    act: Callable[[Told], Iterable[Part]]


def _works(role: str, step: str) -> Goal:
    """The command is told which reply asked for it: if Magy ran a call twice, it would show."""
    return Goal(
        lambda told: f"DONE {role} {step}" in told.heard,
        lambda told: [call("bash", {"command": f"./work {role} {step} {told.replies}"})],
    )


def _edits(role: str) -> Goal:
    path = f"{role}.txt"
    edit = {"path": path, "old_text": unedited(role), "new_text": edited(role)}

    def reached(told: Told) -> bool:
        looks = [made.output or "" for made in told.named("read_file")]
        return bool(looks) and edited(role).strip() in looks[-1]

    return Goal(reached, lambda told: [call("edit_file", edit), call("read_file", {"path": path})])


def _spawns(*roles: str) -> Goal:
    def act(told: Told) -> Iterable[Part]:
        for role in roles:
            if role not in told.jobs:
                given = {"agent": "worker", "prompt": task(role), "task_name": role}
                yield call("spawn_agent", given | CONTEXT.get(role, {}))

    return Goal(lambda told: set(roles) <= set(told.jobs), act)


def _steers(role: str, tag: str) -> Goal:
    def act(told: Told) -> Iterable[Part]:
        said = {"job_id": told.jobs[role], "message": steer(role, tag), "mode": "steer"}
        yield call("send_agent_message", said)

    return Goal(lambda told: bool(told.named("send_agent_message")), act)


def _waits(tag: str, *roles: str) -> Goal:
    """Waits only for those whose result is not known yet."""

    def missing(told: Told) -> list[str]:
        return [role for role in roles if result(role, tag) not in told.heard]

    def act(told: Told) -> Iterable[Part]:
        yield call("wait_agent", {"job_ids": [told.jobs[role] for role in missing(told)]})

    return Goal(lambda told: not missing(told), act)


def _hears(sign: str, act: Callable[[Told], Iterable[Part]]) -> Goal:
    return Goal(lambda told: sign in told.heard, act)


def _passes_time(told: Told) -> Iterable[Part]:
    yield call("bash", {"command": f"sleep 0.1 # {told.replies}"})


def _ends_turn(told: Told) -> Iterable[Part]:
    yield text("The rest will come.")


@dataclass(frozen=True)
class Play:
    """`parents`: who hears the result of each. `works`: the steps of each that are commands; `ask`
    needs the person's permission. `steered`: who waits for a word. `goals`: of a role, given the
    trial's tag. `repository`: they work in a git repository."""

    parents: Mapping[str, str]
    works: Mapping[str, Sequence[str]]
    steered: Sequence[str]
    goals: Callable[[str, str], Sequence[Goal]]
    repository: bool = False

    @property
    def roles(self) -> Sequence[str]:
        return ["root", *self.parents]

    def parts(self, told: Told, tag: str) -> Sequence[Part]:
        """What the model does now; its last word when it has reached all."""
        for goal in self.goals(told.role, tag):
            if not goal.reached(told):
                return list(goal.act(told))
        last = END if told.role == "root" else f"I am done. {result(told.role, tag)}"
        return [text(last)]

    def is_last(self, told: Told, tag: str) -> bool:
        return all(goal.reached(told) for goal in self.goals(told.role, tag))


def _of_all(role: str, tag: str) -> Sequence[Goal]:
    first = _works(role, "first")
    match role:
        case "root":
            return [
                _spawns("alpha", "beta", "gamma"),
                _steers("alpha", tag),
                _waits(tag, "alpha", "beta"),
                _works("root", "use"),
                _hears(result("gamma", tag), _ends_turn),
                _works("root", "late"),
            ]
        case "alpha":
            steered = _hears(steer("alpha", tag), _passes_time)
            rest = [_edits("alpha"), _waits(tag, "delta"), _works("alpha", "last")]
            return [_spawns("delta"), first, steered, *rest]
        case "beta":
            return [first, _works("beta", "ask"), _edits("beta")]
        case "gamma":
            return [first, _edits("gamma"), _hears(steer("gamma", tag), _passes_time)]
        case _:
            return [first, _edits(role)]


ALL = Play(
    {"alpha": "root", "beta": "root", "gamma": "root", "delta": "alpha", "review": "root"},
    {
        "root": ("use", "late"),
        "alpha": ("first", "last"),
        "beta": ("first", "ask"),
        "gamma": ("first",),
        "delta": ("first",),
        "review": ("first",),
    },
    ("alpha", "gamma"),
    _of_all,
)
"""What the head of this file says."""


def _of_two(role: str, tag: str) -> Sequence[Goal]:
    if role == "root":
        return [_spawns("alpha"), _waits(tag, "alpha"), _works("root", "use")]
    return [_works("alpha", "ask"), _edits("alpha")]


_GRAPH = [
    {"id": "north", "prompt": task("north"), "agent": "worker", "worktree": True},
    {"id": "south", "prompt": task("south"), "agent": "worker", "worktree": True},
    {"id": "draft", "prompt": task("draft"), "agent": "worker", "worktree": True,
     "needs": ["north", "south"]},
]  # fmt: skip
_GO_ON = re.compile(r'call run_graph with go_on "([^"]+)"')


def _graph(tag: str) -> Goal:
    """A graph that was interrupted is gone on with."""

    def act(told: Told) -> Iterable[Part]:
        left = _GO_ON.findall(told.heard)
        yield call("run_graph", {"go_on": left[-1]} if left else {"tasks": _GRAPH})

    return Goal(lambda told: result("draft", tag) in told.heard, act)


def _of_graph(role: str, tag: str) -> Sequence[Goal]:
    if role == "root":
        return [_graph(tag), _works("root", "use")]
    return [_works(role, "first"), _edits(role)]


GRAPH = Play(
    {"north": "draft", "south": "draft", "draft": "root"},
    {"root": ("use",), "north": ("first",), "south": ("first",), "draft": ("first",)},
    (),
    _of_graph,
    repository=True,
)
"""The other play."""
TWO = Play({"alpha": "root"}, {"root": ("use",), "alpha": ("ask",)}, (), _of_two)
"""The least that has it all: the root waits for a child, which asks, runs a command and edits."""
