"""A graph is a set of tasks, of which some need the results of others. Each becomes a child of the
session as soon as all that it needs is done. A model begins graphs with the tool `run_graph`, a
person with `magy/graph/run`; both are tool calls of the session, are asked about once, and go on
after a crash. A graph's id is that of the call that began it.

While it runs, updates of that call (`tool_call_update`) have it in `_meta.magy.graph`: all of it
each time, so a client draws the latest one. The last one comes with the end of the call, and is in
the log; the first part of the call's `content` then says the same, for clients that do not draw it.
`line` is a task on one line, `depth` says how far to indent it, and `sessionId` is the child whose
transcript it leads to.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from magy_server.api.wire.refusals import KEY, PLUGIN, TASK
from magy_server.api.wire.shapes import Id, Prose, SessionParams, Wire
from magy_server.core.graphs.graph import LONGEST, MOST, TaskState
from magy_server.core.graphs.shapes import Shape

MOST_GRAPHS = 50
"""Graphs of one session that are shown: the latest."""
TaskName = Annotated[str, Field(min_length=1, max_length=32, pattern=TASK)]


class GraphTask(Wire):
    """A task: an agent gets the prompt, with the results of those that it needs."""

    id: TaskName
    prompt: Annotated[Prose, Field(min_length=1, max_length=LONGEST)]
    agent: str = "general"
    needs: list[TaskName] = Field(default=[], description="Ids of tasks that must be done before")
    model: str = Field(
        default="", description="`provider/model`; \"\": the agent's, else the session's"
    )
    retries: Annotated[int, Field(ge=0, le=3)] = Field(
        default=0, description="How often it is tried again if it fails"
    )
    instead: str = Field(default="", description="The model for those tries")
    seconds: Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)] = Field(
        default=0, description="Time for one try; 0: no limit"
    )
    writes: list[Prose] = Field(
        default=[],
        description="Files and directories below the root that it may change; none: as its agent "
        "may",
    )
    worktree: bool = Field(
        default=False,
        description="It works in a git branch and work tree of its own, which is merged in the end",
    )
    plugin: Annotated[str, Field(max_length=32, pattern=PLUGIN)] = Field(
        default="",
        description='The only plugin of which it has tools, skills and words; "": as its agent',
    )


class GraphRunParams(SessionParams):
    request_key: Annotated[str, Field(min_length=1, max_length=60, pattern=KEY)] = Field(
        description="Chosen by the client; also the id of the prompt and of its turn. Repeating a "
        "request has no effect; another graph under the same key is refused"
    )
    tasks: list[GraphTask] = Field(default=[], max_length=MOST)
    shape: Shape = Field(
        default="auto",
        description="auto: what suits them; graph: as `needs` says; pipeline: each needs the one "
        "before; fan_out: side by side, the last brings together; discussion: as fan_out, but they "
        "also answer each other; swarm: the first splits the work, the others are roles, the last "
        "brings together",
    )
    rounds: Annotated[int, Field(ge=1, le=4)] = Field(
        default=2, description="How often each speaks to the others"
    )
    go_on: str = Field(
        default="", description="Instead of tasks: the id of a graph that was interrupted"
    )


class GraphRunResult(Wire):
    message_id: str
    outcome: Literal["started", "steered", "queued", "known"]


class TaskShown(Wire):
    """A task as it is now, with all attempts at it together."""

    id: str
    agent: str
    model: str
    state: TaskState
    needs: list[str]
    depth: int = Field(description="How many tasks come before it, one after the other")
    session_id: str | None = Field(description="The child of its latest attempt")
    attempts: int
    seconds: float = Field(description="Of attempts that have ended")
    tokens: int
    cost: dict[str, Any]
    line: str = Field(description="All of this on one line, for people")
    about: str = Field(description="The beginning of its prompt")


class Graph(Wire):
    graph_id: str
    counts: dict[TaskState, int] = Field(description="How many tasks are in each state")
    tasks: list[TaskShown] = Field(
        description="Each after all that it needs. Of many, 200: those at work, failed and "
        "cancelled before all others"
    )


class GraphShown(Graph):
    running: bool = Field(description="A call runs it; else `magy/graph/run` can go on with it")
    mermaid: str | None = Field(default=None, description="A picture, if asked for")
    dot: str | None = None


class GraphShowParams(SessionParams):
    graph_id: Id | None = Field(default=None, description="null: all that the session has")
    limit: Annotated[int, Field(ge=1, le=MOST)] = Field(
        default=200, description="Tasks of one graph, at most"
    )
    pictures: bool = Field(
        default=False, description="Also draw each as a Mermaid and a DOT picture"
    )


class GraphShowResult(Wire):
    graphs: list[GraphShown] = Field(description="The first begun first; the latest 50")
