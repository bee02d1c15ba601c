"""A graph says which tasks agents have, and which of them need the results of which.

It is data: how far it is, and what may begin, are functions of the attempts at its tasks, which
the logs of the agents tell. Pure.
"""

from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field

from magy_server.core.agents.child import LIVE
from magy_server.core.agents.mail import Status
from magy_server.core.errors import InvalidRequest
from magy_server.core.values import Value

MOST = 10_000
"""Tasks of one graph."""
MOST_NEEDS = 100_000
"""Needs of all tasks of one graph together."""
LONGEST = 100_000
"""The most characters of a task's prompt."""
NAMED = 10
"""Tasks that an error names."""

TaskId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$", min_length=1, max_length=32)]


class GraphTask(Value):
    """One task: an agent gets `prompt`, and with it the results of those that it `needs`.

    `retries`: how often a failure is tried again, with the model `instead` if that is named.
    `seconds`: how long one attempt may take; 0: as long as any turn. `writes`: the files and
    directories below the workspace root that it may change; none named: whatever its agent may.
    `worktree`: each attempt works in a git worktree of its own, and what it did is landed.
    `plugin`: the only one of which it has tools, skills and words; "": as its agent."""

    id: TaskId = Field(description="A short name, by which others need it")
    prompt: str = Field(
        min_length=1,
        max_length=LONGEST,
        description="The whole task; besides, the agent sees the results of what the task needs, "
        "nothing else",
    )
    agent: str = Field(
        "general",
        description="Which agent, such as explore or general; list_agents names all. "
        "best:testing is the one that is best at testing",
    )
    needs: tuple[TaskId, ...] = Field((), description="The ids of tasks that must be done before")
    model: str = Field("", description="provider/model; empty: the agent's, else yours")
    retries: int = Field(0, ge=0, le=3, description="How often it is tried again if it fails")
    instead: str = Field("", description="The model for those tries")
    seconds: float = Field(0, ge=0, le=86_400, description="Time for one try; 0: no limit")
    writes: tuple[str, ...] = Field(
        (), description="The files and directories that it may change; empty: as its agent may"
    )
    worktree: bool = Field(
        False,
        description="It works on a git branch of its own, which is merged when it is done: tasks "
        "that run at the same time may change the same files",
    )
    plugin: str = Field(
        "",
        pattern=r"^[a-z0-9_]*$",
        max_length=32,
        description="The only plugin that it has; empty: as its agent. list_agents names them",
    )


TaskState = Literal[
    "waiting", "ready", "running", "asking", "completed", "failed", "cancelled", "skipped"
]
"""It waits for others; it may begin; an agent is at work; the agent asks the person; how its last
attempt ended; nothing that it needs gave a result."""
SETTLED: tuple[TaskState, ...] = ("completed", "failed", "cancelled", "skipped")


def in_order(tasks: Sequence[GraphTask]) -> list[GraphTask]:
    """Returns the tasks, each after all that it needs, else in the order given. Raises
    InvalidRequest for what is no graph, naming the tasks."""
    known = {task.id: task for task in tasks}
    check_size(len(tasks), sum(len(task.needs) for task in tasks))
    if len(known) < len(tasks):
        raise InvalidRequest(f"Two tasks have the id {_twice(tasks)!r}; give each its own.")
    for task in tasks:
        if not task.prompt.strip():
            raise InvalidRequest(f"The prompt of task {task.id!r} is empty; say what to do.")
        if strange := [id for id in task.needs if id not in known]:
            raise InvalidRequest(
                f"Task {task.id!r} needs {names(strange)}, which is not a task of this graph. "
                f"There are: {names(known)}."
            )
    needs = {task.id: set(task.needs) for task in tasks}
    after: dict[str, list[str]] = {task.id: [] for task in tasks}
    for task in tasks:
        for id in needs[task.id]:
            after[id].append(task.id)
    free = deque(task.id for task in tasks if not needs[task.id])
    found: list[GraphTask] = []
    while free:
        id = free.popleft()
        found.append(known[id])
        for later in after[id]:
            needs[later].discard(id)
            if not needs[later]:
                free.append(later)
    if len(found) < len(tasks):
        raise InvalidRequest(f"Tasks need each other: {_cycle(needs)}. Take one need away.")
    return found


def check_size(tasks: int, needs: int) -> None:
    """Raises InvalidRequest for more than a graph may have."""
    if not 0 < tasks <= MOST:
        raise InvalidRequest(f"A graph has 1 to {MOST:,} tasks, not {tasks:,}.")
    if needs > MOST_NEEDS:
        raise InvalidRequest(f"A graph has at most {MOST_NEEDS:,} needs, not {needs:,}.")


def check_writes(tasks: Sequence[GraphTask]) -> None:
    """Raises InvalidRequest when two tasks that may be at work at the same time may change the same
    place. `tasks`: in order."""
    place = {task.id: number for number, task in enumerate(tasks)}
    before: list[int] = []  # for each task, the tasks that are done before it begins, as bits
    for task in tasks:
        bits = 0
        for id in task.needs:
            bits |= before[place[id]] | 1 << place[id]
        before.append(bits)
    owners: dict[str, list[int]] = {}
    for number, task in enumerate(tasks):
        for path in {plain(path) for path in task.writes}:
            if not task.worktree:
                owners.setdefault(path, []).append(number)
    for path, own in owners.items():
        # If each is done before the next begins, any is before any later one.
        for above in ((), *(owners.get(part, ()) for part in _above(path))):
            for first, second in pairwise(sorted({*own, *above})):
                if not before[second] >> first & 1:
                    raise InvalidRequest(
                        f"Tasks {tasks[first].id!r} and {tasks[second].id!r} may both change "
                        f"{path} at the same time. Let one need the other, or give each files of "
                        "its own."
                    )


def plain(path: str) -> str:
    """Returns the path of a file or directory below the workspace root without what means nothing
    in it. Raises InvalidRequest for what is none."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or ".." in parts or not parts or set("*?\0") & set(path):
        raise InvalidRequest(
            f"writes: {path!r} must be the path of a file or directory below the workspace root, "
            "without wildcards."
        )
    return "/".join(parts)


def names(ids: Iterable[str]) -> str:
    """Returns the ids for a sentence; of many, the first ones and how many there are."""
    ids = list(ids)
    more = f" and {len(ids) - NAMED:,} more" if len(ids) > NAMED else ""
    return ", ".join(ids[:NAMED]) + more


def states(
    tasks: Sequence[GraphTask],
    attempts: Mapping[str, Sequence[Status]],
    unable: Collection[str] = (),
) -> dict[str, TaskState]:
    """Returns how each task is. `tasks`: in order; `attempts`: by task, how each attempt is;
    `unable`: those for which no agent can be spawned."""
    found: dict[str, TaskState] = {}
    for task in tasks:
        tries = attempts.get(task.id, ())
        state = _tried(task, tries) if tries else _untried(task, found)
        found[task.id] = "failed" if state == "ready" and task.id in unable else state
    return found


def _tried(task: GraphTask, tries: Sequence[Status]) -> TaskState:
    last = tries[-1]
    if last in LIVE:
        return "asking" if last == "waiting" else "running"
    if last == "completed":
        return "completed"
    if last == "failed":
        return "failed" if len(tries) > task.retries else "ready"
    return "cancelled"


def _untried(task: GraphTask, found: Mapping[str, TaskState]) -> TaskState:
    """What failed holds nobody up: the others do with what there is, if there is anything."""
    needed = [found[id] for id in task.needs]
    if any(state not in SETTLED for state in needed):
        return "waiting"
    return "ready" if not needed or "completed" in needed else "skipped"


def last(tasks: Sequence[GraphTask]) -> list[GraphTask]:
    """Returns the tasks that no other needs: what they say is what the graph comes to."""
    needed = {id for task in tasks for id in task.needs}
    return [task for task in tasks if task.id not in needed]


def _twice(tasks: Iterable[GraphTask]) -> str:
    counts = Counter(task.id for task in tasks)
    return max(counts, key=counts.__getitem__)


def _cycle(needs: Mapping[str, set[str]]) -> str:
    """`needs`: of those that never become free, what they still need."""
    at = next(id for id, left in needs.items() if left)
    way: list[str] = []
    while at not in way:
        way.append(at)
        at = min(id for id in needs[at] if needs[id])
    way = [*way[way.index(at) :], at]
    if len(way) > NAMED:
        way = [*way[: NAMED - 1], "…", at]
    return " needs ".join(way)


def _above(path: str) -> Iterable[str]:
    parts = path.split("/")
    return ("/".join(parts[:end]) for end in range(1, len(parts)))
