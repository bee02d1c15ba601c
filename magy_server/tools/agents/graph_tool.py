"""With this tool an agent has several tasks done by child agents, of which some build on others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field, ValidationError

from magy_server.core.errors import InvalidRequest, ToolError
from magy_server.core.graphs.graph import GraphTask, check_writes, in_order
from magy_server.core.graphs.progress import GraphProgress
from magy_server.core.graphs.shapes import Shape, shaped
from magy_server.core.text.sanitizing import shortened
from magy_server.core.tool import FactContext, Gathered, ToolContext, previewed, run_again
from magy_server.core.tool import Result as Outcome
from magy_server.core.values import Facts, Resource
from magy_server.tools.shipped import tool

TITLE = 80
SPAWN = "spawn "
"""What permission rules call it begins so."""
SHOWN = 20_000
"""The most characters of the result that the model is given at once."""
LISTED = 200
REASON, REASONS = 400, 20
"""Characters of the reason why a task failed, and how many of them are said."""


def ordered(tasks: Sequence[GraphTask], shape: Shape, rounds: int) -> list[GraphTask]:
    """Returns the tasks of this shape, each after what it needs. Raises ToolError."""
    try:
        found = in_order(shaped(shape, tasks, rounds))
        check_writes(found)
    except InvalidRequest as error:
        raise ToolError(error.message) from None
    return found


async def _meant(
    ctx: FactContext, tasks: Sequence[GraphTask], shape: Shape, rounds: int, go_on: str
) -> list[GraphTask]:
    """The tasks in order; with `go_on`, those of the earlier call."""
    if not go_on:
        return ordered(tasks, shape, rounds)
    if tasks:
        raise ToolError("go_on names a graph that is there: leave `tasks` out.")
    return given(await ctx.team.began_graph(go_on))


def given(arguments: Mapping[str, Any]) -> list[GraphTask]:
    """Returns the tasks, in order, of a call with these arguments. Raises ToolError."""
    try:
        found = run_graph.shape.arguments(arguments)
    except ValidationError as error:
        from magy_server.core.prompting.parameters import problems

        raise ToolError(f"These tasks cannot be done: {problems(error)}.") from None
    return ordered(found["tasks"], found["shape"], found["rounds"])


async def _graph_facts(
    ctx: FactContext, tasks: Sequence[GraphTask], shape: Shape, rounds: int, go_on: str
) -> Gathered:
    """One question covers all agents of a graph; to go on with one is to have them work, too."""
    there = await _meant(ctx, tasks, shape, rounds, go_on)
    best = await _best(ctx, there)
    there = _with(there, best)
    for agent, model, plugin in _asked_for(there):
        await ctx.team.check(agent, model, "", plugin)
    trees = await _worktrees(ctx, there)
    agents = dict.fromkeys(task.agent for task in there)
    facts = Facts(
        resources=(
            *(Resource(kind="agent", subject=f"{SPAWN}{agent}") for agent in agents),
            *(
                Resource(kind="agent", subject=f"{SPAWN}{agent}", argv=(wanted,))
                for wanted, agent in best.items()
            ),
        ),
        title=said(there, "Go on with" if go_on else "Run"),
    )
    chose = [_chosen(tasks)] if shape == "auto" and len(tasks) > 1 else []
    shown = [_shown(task, trees[task.agent, task.worktree]) for task in there]
    return previewed(facts, "\n\n".join([*chose, *shown]), code=True)


def _chosen(tasks: Sequence[GraphTask]) -> str:
    from magy_server.core.graphs.scheduling import chosen

    found = chosen(tasks)
    return f"shape: {found.shape}, since {found.why} ({found.complexity} work)"


async def _worktrees(
    ctx: FactContext, tasks: Sequence[GraphTask]
) -> Mapping[tuple[str, bool], str]:
    """What a person is told of the worktrees of tasks, by agent and wish."""
    kinds = dict.fromkeys((task.agent, task.worktree) for task in tasks)
    return {kind: await ctx.team.worktree(kind[0], wanted=kind[1]) for kind in kinds}


def said(tasks: Sequence[GraphTask], begins: str = "Run") -> str:
    """Returns on one line what a call does; no name is cut."""
    count = "1 task" if len(tasks) == 1 else f"{len(tasks):,} tasks"
    named = f"{begins} {count}: {tasks[0].id}"
    for place, task in enumerate(tasks[1:], 1):
        left = len(tasks) - place
        longer = f"{named}, {task.id}"
        if len(longer if left == 1 else f"{longer} and {left - 1:,} more") > TITLE:
            return f"{named} and {left:,} more"
        named = longer
    return named


async def _best(ctx: FactContext, tasks: Sequence[GraphTask]) -> Mapping[str, str]:
    """By what tasks name in the place of an agent, the agent that is best at it now."""
    from magy_server.core.agents.reputation import capability_of  # few sessions have graphs

    try:
        wanted = {task.agent: capability_of(task.agent) for task in tasks}
    except InvalidRequest as error:
        raise ToolError(error.message) from None
    return {name: await ctx.team.best(what) for name, what in wanted.items() if what}


def _chosen_before(facts: Facts) -> Mapping[str, str]:
    """The same, as it was when the call was judged."""
    return {one.argv[0]: one.subject.removeprefix(SPAWN) for one in facts.resources if one.argv}


def _with(tasks: Sequence[GraphTask], best: Mapping[str, str]) -> list[GraphTask]:
    return [task.model_copy(update={"agent": best.get(task.agent, task.agent)}) for task in tasks]


def _asked_for(tasks: Sequence[GraphTask]) -> Collection[tuple[str, str, str]]:
    """Which agents are wanted, with which models and plugins."""
    return dict.fromkeys(
        (task.agent, model, task.plugin) for task in tasks for model in (task.model, task.instead)
    )


def _shown(task: GraphTask, worktree: str) -> str:
    """What a person reads of a task before they say yes."""
    about = {
        "needs": ", ".join(task.needs),
        "model": task.model,
        "plugin": task.plugin,
        "retries": f"{task.retries} {task.instead}".strip() if task.retries else "",
        "seconds": f"{task.seconds:g}" if task.seconds else "",
        "may change": ", ".join(task.writes),
        "worktree": worktree,
    }
    lines = [f"{name}: {value}" for name, value in about.items() if value]
    return "\n".join([f"## {task.id}, by {task.agent}", *lines, "", task.prompt])


# run again, it goes on: it finds the agents that it had spawned
@tool(
    effect="agent", key="agent", facts=_graph_facts, recover=run_again, waits=True, parental=True,
    seldom=True,
)  # fmt: skip
async def run_graph(
    ctx: ToolContext,
    tasks: Annotated[tuple[GraphTask, ...], "The tasks"] = (),
    shape: Annotated[
        Shape,
        "auto: what suits them; graph: as `needs` says; pipeline: each needs the one before; "
        "fan_out: side by side, the last brings together; discussion: as fan_out, but they also "
        "answer each other; swarm: the first splits the work, the others are roles, the last "
        "brings together",
    ] = "auto",
    rounds: Annotated[int, "How often each speaks to the others", Field(ge=1, le=4)] = 2,
    go_on: Annotated[str, "The id of a graph that was interrupted, instead of tasks"] = "",
) -> Outcome:
    """Have several agents do tasks of which some build on others, and get what all come to. Each
    begins as soon as what it needs is done, and is given those results with its task; what fails is
    tried again if you say so, and does not hold the others up. Use it when you know the steps; to
    decide after each result, use spawn_agent. Give tasks that may run at the same time different
    files to change. It returns when all is done."""
    from magy_server.core.graphs.shown import as_text, shown  # few sessions have graphs

    there = await _meant(ctx, tasks, shape, rounds, go_on)
    there = _with(there, _chosen_before(ctx.facts))
    told: dict[str, str] = {}

    def moved(how: GraphProgress) -> None:
        ctx.show("graph", as_text(shown(how)))
        for task in how.tasks:
            if how.states[task.id] not in (told.get(task.id), "waiting", "ready"):
                told[task.id] = how.states[task.id]
                ctx.emit(how.line(task) + "\n")

    await ctx.started()
    how = await ctx.team.run_graph(ctx.call, there, moved)
    return _outcome(how, as_text(shown(how)), ctx)


def _outcome(how: GraphProgress, graph: str, ctx: ToolContext) -> Outcome:
    """Who did what is in the graph; `for_user` says the rest."""
    lines = [how.line(task) for task in how.tasks]
    summary = "\n".join(lines[:LISTED])
    if len(lines) > LISTED:
        summary += f"\n({len(lines) - LISTED:,} more)"
    if how.settled:
        return _came(how, summary, graph, ctx)
    if how.live:
        why = "A message for you has arrived: read it first. Its agents continue; no other begins."
    else:
        why = f"It cannot go on: {how.blocked}"
    then = f'Then call run_graph with go_on "{how.id}".'
    return Outcome(
        for_model=f"Not all is done.\n{summary}\n\n{why} {then}",
        for_user="" if how.live else why,
        graph=graph,
    )


def _came(how: GraphProgress, summary: str, graph: str, ctx: ToolContext) -> Outcome:
    result = how.result
    text = result.text or "No task came to a result."
    notes = "\n".join(f"- {note}" for note in result.notes)
    failed = "\n".join(["What failed:", *why]) if (why := list(_reasons(how))) else ""
    said = [summary, failed, notes and f"Of the results:\n{notes}", text]
    whole = "\n\n".join(filter(None, said))
    if len(whole) > SHOWN:
        cut = (
            f"[The first {SHOWN} of {len(whole)} characters. The rest: bash_output with call_id "
            f'"{ctx.call}" and offset {SHOWN}.]'
        )
        said = [whole[:SHOWN], cut]
    # What all comes to a model tells the person, unless they made the call themself.
    user = [failed, notes, text[:SHOWN]] if ctx.given else [failed, notes]
    return Outcome(
        for_model="\n\n".join(filter(None, said)),
        for_user="\n\n".join(filter(None, user)),
        output=whole.encode(),
        graph=graph,
        ok="completed" in how.states.values(),
    )


def _reasons(how: GraphProgress) -> Iterator[str]:
    """Why tasks failed, a line each."""
    failed = [task.id for task in how.tasks if how.states[task.id] == "failed"]
    for id in failed[:REASONS]:
        yield f"- {id}: {shortened(how.reason(id), REASON)}"
    if len(failed) > REASONS:
        yield f"({len(failed) - REASONS:,} more)"
