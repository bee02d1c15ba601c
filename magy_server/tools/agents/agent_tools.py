"""With these tools an agent spawns the child agents that it needs, and speaks to them, waits for
them, lists and closes them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from magy_server.core.agents.child import LIVE, ChildInfo, Result, Spawn, Waited
from magy_server.core.agents.narrowing import narrowing
from magy_server.core.errors import InvalidRequest, ToolError
from magy_server.core.events import Requeued
from magy_server.core.permit import Ruleset
from magy_server.core.prompting.framing import escaped
from magy_server.core.text.sanitizing import shortened
from magy_server.core.tool import (
    Delivery,
    FactContext,
    Gathered,
    Team,
    ToolContext,
    previewed,
    run_again,
)
from magy_server.core.tool import Result as Outcome
from magy_server.core.values import Evidence, Facts, Limits, Resource, Text
from magy_server.regex import regex
from magy_server.tools.shipped import tool

NAME = 80
"""The most characters of a task's name."""
LONGEST = 100_000
"""The most characters of a task or message."""
SHOWN = 20_000
"""The most characters of results that one wait gives; it gives the first one whole, however long it
is."""
LISTED = 50
ABOUT = 160
"""Characters of what an agent is for."""
_HEAD = regex(r"^(?=## \S+ \()", re.MULTILINE)
"""The result of a child begins so."""
PATIENCE = 86_400.0
"""A wait may last so many seconds."""
Action = Literal["allow", "ask", "deny"]


class Caps(BaseModel):
    """0: no cap of its own."""

    model_config = ConfigDict(extra="forbid")

    requests: Annotated[int, Field(ge=0)] = 0
    tokens: Annotated[int, Field(ge=0)] = 0
    cost: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0
    run_tokens: Annotated[int, Field(ge=0)] = 0
    run_cost: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0


def _facts(subject: str, title: str, shown: str = "") -> Gathered:
    """`shown`: what a person is to read before they say yes."""
    facts = Facts(resources=(Resource(kind="agent", subject=subject),), title=title)
    return previewed(facts, shown, code=True)


def _line(text: str, most: int) -> str:
    line = text.strip().split("\n", 1)[0]
    return line if len(line) <= most else line[: most - 1] + "…"


# --- spawn_agent ----------------------------------------------------------------------------------


def _turns(context: str) -> int:
    """Returns how many of the latest turns; -1 for all."""
    if context in ("none", "all"):
        return 0 if context == "none" else -1
    if context.isdigit() and 1 <= int(context) <= 1000:
        return int(context)
    raise ToolError(
        f"context must be none, all, or how many of your latest turns (1 to 1000), not {context!r}."
    )


def _rules(team: Team, permissions: dict[str, Action | dict[str, Action]] | None) -> Ruleset | None:
    try:
        return narrowing(permissions, team.keys) if permissions else None
    except InvalidRequest as error:
        raise ToolError(error.message) from None


async def _spawn_facts(
    ctx: FactContext,
    agent: str,
    prompt: str,
    task_name: str,
    context: str,
    model: str,
    permissions: dict[str, Action | dict[str, Action]] | None,
    limits: Caps | None,
    directory: str,
    worktree: bool,
    plugin: str,
) -> Gathered:
    _turns(context)
    _rules(ctx.team, permissions)
    if not prompt.strip():
        raise ToolError("prompt is empty; describe the agent's task.")
    where = await ctx.team.check(agent, model, directory, plugin)
    about = {
        "model": model,
        "plugin": plugin,
        "context": "" if context == "none" else context,
        "permissions": json.dumps(permissions) if permissions else "",
        "limits": json.dumps(limits.model_dump(exclude_defaults=True)) if limits else "",
        "directory": directory and where,
        "worktree": await ctx.team.worktree(agent, wanted=worktree),
    }
    lines = [f"{name}: {value}" for name, value in about.items() if value]
    shown = "\n".join([*lines, *([""] if lines else []), prompt])
    return _facts(f"spawn {agent}", f"Spawn {agent}: {shortened(task_name or prompt, NAME)}", shown)


async def _spawn_recover(
    ctx: ToolContext, evidence: Evidence, arguments: Mapping[str, Any]
) -> Outcome | None:
    found = await ctx.team.spawned(ctx.call)
    return None if found is None else _spawned(found, known=True)


@tool(
    effect="agent", key="agent", facts=_spawn_facts, recover=_spawn_recover, parental=True,
    seldom=True,
)  # fmt: skip
async def spawn_agent(
    ctx: ToolContext,
    agent: Annotated[str, "Which agent, such as explore or general; list_agents names all"],
    prompt: Annotated[
        str,
        "The whole task; the agent sees nothing of this conversation unless you give it context",
        Field(min_length=1, max_length=LONGEST),
    ],
    task_name: Annotated[str, "A short name of the task, for people", Field(max_length=NAME)] = "",
    context: Annotated[
        str, "none, all, or a number: how many of your latest turns it sees"
    ] = "none",
    model: Annotated[str, "provider/model; empty: the agent's, else yours"] = "",
    permissions: Annotated[
        dict[str, Action | dict[str, Action]] | None,
        'Further restrictions, such as {"edit": "deny"} or {"bash": {"git push *": "ask"}}',
    ] = None,
    limits: Annotated[Caps | None, "Limits of each of its turns: US dollars, seconds"] = None,
    directory: Annotated[str, "Its directory, in the workspace; empty: yours"] = "",
    worktree: Annotated[
        bool, "It works on a git branch of its own, which is merged when it is done"
    ] = False,
    plugin: Annotated[str, "The only plugin that it has; empty: as its agent"] = "",
) -> Outcome:
    """Start an agent that works beside you on a task of its own: `explore` finds out, `general`
    does. It sees only its task: state the goal, what you know, which files are its own, and what
    to report. Never let two agents change the same file, unless each has a worktree. Returns at
    once with its job_id; its result is what it says last. Start all that can work side by side,
    then call wait_agent once; a result that you do not wait for is given to you when you have
    nothing to do. Check what it reports before you build on it, and call close_agent for agents
    that you no longer need."""
    where = await ctx.team.check(agent, model, directory, plugin)
    wanted = Spawn(
        key=ctx.call,
        agent=agent,
        prompt=(Text(text=escaped(prompt)),),
        name=task_name,
        context=_turns(context),
        model=model,
        rules=_rules(ctx.team, permissions),
        limits=Limits(**limits.model_dump(), repeats=0) if limits else None,
        cwd=where if directory else "",
        worktree=worktree,
        plugin=plugin,
    )
    await ctx.started()
    found, known = await ctx.team.spawn(wanted)
    return _spawned(found, known=known)


def _spawned(child: ChildInfo, *, known: bool) -> Outcome:
    said = {
        "job_id": child.session,
        "status": child.status,
        "next_action": {"tool": "wait_agent", "arguments": {"job_ids": [child.session]}},
    }
    note = "It was spawned before." if known else ""
    text = "\n".join(filter(None, [json.dumps(said, indent=1), note]))
    return Outcome(for_model=text, for_user=f"Spawned {child.agent}: {child.name}")


# --- send_agent_message ---------------------------------------------------------------------------


async def _send_facts(ctx: FactContext, job_id: str, message: str, mode: Delivery) -> Gathered:
    if not message.strip():
        raise ToolError("message is empty; write a message.")
    to, agent = await ctx.team.addressee(job_id)
    return _facts(f"send {agent}", f"Send to {agent} ({to}): {shortened(message, NAME)}", message)


# sending it again says whether it was sent: the call names it
@tool(effect="agent", key="agent", facts=_send_facts, recover=run_again, seldom=True)
async def send_agent_message(
    ctx: ToolContext,
    job_id: Annotated[str, 'The id of an agent below you, or "parent"'],
    message: Annotated[str, Field(min_length=1, max_length=LONGEST)],
    mode: Annotated[
        Delivery,
        "queue: waits for its next turn; steer: joins its running turn; interrupt: stops that turn",
    ] = "queue",
) -> Outcome:
    """Say something to an agent: more work, a correction, an answer. Its own answer comes as the
    result of its turn."""
    to, _ = await ctx.team.addressee(job_id)
    await ctx.started()
    outcome = await ctx.team.send(to, message, mode, ctx.call)
    means = {
        "started": "it starts a turn with it",
        "steered": "it reads it with its next request",
        "queued": "it reads it with its next turn",
        "known": "it already had it",
    }
    text = f"Sent to {to}: {means.get(outcome, outcome)}."
    return Outcome(for_model=text, for_user=text)


# --- wait_agent -----------------------------------------------------------------------------------


async def _wait_facts(
    ctx: FactContext, job_ids: Sequence[str], until: str, timeout: float | None
) -> Gathered:
    jobs = [await ctx.team.named(job) for job in await _jobs(ctx, job_ids)]
    names = ", ".join(shortened(child.name or child.agent, NAME) for child in jobs)
    return _facts("wait", f"Wait for {names}" if len(jobs) < 4 else "Wait for agents")


async def _jobs(ctx: FactContext, job_ids: Sequence[str]) -> list[str]:
    """Raises ToolError for one that is not there, and when there is none to wait for."""
    if job_ids:
        return list(dict.fromkeys([(await ctx.team.named(job)).session for job in job_ids]))
    if own := await ctx.team.awaited():
        return list(own)
    raise ToolError("You have no agents to wait for; spawn_agent starts one.")


async def _wait_recover(
    ctx: ToolContext, evidence: Evidence, arguments: Mapping[str, Any]
) -> Outcome | None:
    """Waits on, for what is left of its time."""
    deadline = evidence.deadline or ctx.team.now()
    jobs = await _jobs(ctx, arguments.get("job_ids") or ())
    until: Literal["any", "all"] = "any" if arguments.get("until") == "any" else "all"
    return _waited(await ctx.team.wait(jobs, until, deadline))


@tool(
    effect="agent", key="agent", facts=_wait_facts, recover=_wait_recover, waits=True,
    parental=True, seldom=True)  # fmt: skip
async def wait_agent(
    ctx: ToolContext,
    job_ids: Annotated[
        tuple[str, ...],
        "The ids of the agents; empty: all that you have spawned",
        Field(max_length=64),
    ] = (),
    until: Annotated[Literal["any", "all"], "any: return at the first new result"] = "all",
    timeout: Annotated[
        float | None,
        "Seconds; leave it out unless you have a reason",
        Field(gt=0, le=PATIENCE, allow_inf_nan=False),
    ] = None,
) -> Outcome:
    """Wait until agents are done, and get their results. Running out of time cancels nothing: wait
    again, or do something else meanwhile. It also ends when somebody has something to say to
    you."""
    jobs = await _jobs(ctx, job_ids)
    deadline = ctx.team.now() + (ctx.team.timeout if timeout is None else timeout)
    await ctx.started(Evidence(deadline=deadline))
    return _waited(await ctx.team.wait(jobs, until, deadline))


def _waited(waited: Waited) -> Outcome:
    """Results that are shown here are read, and need not be given again; the others stay."""
    shown, left = _fitting(waited.results)
    parts = [_result(result, shown) for result in waited.results]
    parts += [f"## {id}: it was deleted and will report nothing more." for id in waited.deleted]
    open_jobs = [r.child.session for r in waited.results if r.child.status in LIVE]
    if left:
        parts.append(f"Not all results fit here: wait again for {', '.join(left)}.")
    elif not (shown or open_jobs or waited.deleted):
        parts.append(
            "There is nothing to wait for: no agent is working, and you have had all results. "
            "Send one of them more work, or continue."
        )
    match waited.why:
        case "timed_out":
            parts.append(
                f"The time is up, and nothing was cancelled. Not done: {', '.join(open_jobs)}. "
                "Wait again, or do something else."
            )
        case "interrupted":
            parts.append("A message for you has arrived: read it first. The agents continue.")
    read = tuple(result.mail for result in shown if result.mail)
    states = [f"{r.child.name or r.child.agent}: {r.child.status}" for r in waited.results]
    states += [f"{id}: deleted" for id in waited.deleted]
    return Outcome(
        for_model="\n\n".join(parts),
        for_user=", ".join(states),
        events=(Requeued(dropped=read),) if read else (),
    )


def _fitting(results: Sequence[Result]) -> tuple[Sequence[Result], Sequence[str]]:
    """Returns the results that are shown, whole, and the ids of those for which there is no
    room."""
    shown: list[Result] = []
    left = []
    room = SHOWN
    for result in results:
        if not result.text or result.had:
            continue
        if shown and len(result.text) > room:
            left.append(result.child.session)
        else:
            shown.append(result)
            room -= len(result.text)
    return shown, left


def _result(result: Result, shown: Sequence[Result]) -> str:
    child = result.child
    head = f"## {child.session} ({child.agent}: {child.name}): {child.status}"
    if child.questions:
        head += f"\nIt has {child.questions} open question(s) to the person."
    if result in shown:
        text = _HEAD.sub(r"\\", result.text)
        return f"{head}\n{text}"
    if result.had:
        return f"{head}\nYou have already received its result."
    size = len(result.text)
    return f"{head}\nIts result has {size} characters; wait again to receive it." if size else head


# --- list_agents, close_agent ---------------------------------------------------------------------


async def _list_facts(ctx: FactContext, include_closed: bool) -> Gathered:
    return _facts("list", "List agents")


@tool(effect="agent", key="agent", facts=_list_facts, recover=run_again, parental=True, seldom=True)
async def list_agents(
    ctx: ToolContext,
    include_closed: Annotated[bool, "Include closed agents"] = False,
) -> Outcome:
    """List the agents below you, with each one's state, latest message and cost; and the agents
    that can be spawned and the plugins, with what each is for."""
    found = await ctx.team.list(closed=include_closed)
    lines = [*_some(list(map(_listed, found))), *(["You have no agents."] if not found else [])]
    there = [f"- {name}: {shortened(about, ABOUT)}" for name, about in ctx.team.offered().items()]
    if there:
        lines += ["", "Agents to spawn:", *_some(there)]
    if plugins := [f"- {name}: {shortened(it, ABOUT)}" for name, it in ctx.team.plugins().items()]:
        lines += ["", "Plugins, of which an agent may have one alone:", *_some(plugins)]
    return Outcome(
        for_model="\n".join(lines), for_user=f"{len(found)} agents" if found else "no agents"
    )


def _some(lines: Sequence[str]) -> Sequence[str]:
    more = [f"({len(lines) - LISTED} more)"] if len(lines) > LISTED else []
    return [*lines[:LISTED], *more]


def _listed(child: ChildInfo) -> str:
    parts = [f"{child.session} ({child.agent}: {child.name}): {child.status}"]
    if child.questions:
        parts.append(f"{child.questions} question(s) to the person")
    if child.waiting:
        parts.append(f"{child.waiting} waiting")
    more = "+" if child.tree.usage.unreported else ""
    parts.append(f"{child.tree.usage.total}{more} tokens, ${child.tree.cost:.4f}")
    said = _line(child.said, 120)
    return "- " + "; ".join(parts) + (f"\n  {said}" if said else "")


async def _close_facts(ctx: FactContext, job_id: str, mode: str, reason: str) -> Gathered:
    child = await ctx.team.named(job_id)
    return _facts("close", f"Close {child.agent} ({child.session}), {mode}")


@tool(
    effect="agent", key="agent", facts=_close_facts, recover=run_again, parental=True, seldom=True
)
async def close_agent(
    ctx: ToolContext,
    job_id: str,
    mode: Annotated[
        Literal["finish", "cancel"], "finish: it still does the work that it has; cancel: it stops"
    ] = "finish",
    reason: Annotated[str, "For people", Field(max_length=500)] = "",
) -> Outcome:
    """Close an agent and all below it: it accepts no more tasks, and makes room for another
    agent."""
    child = await ctx.team.named(job_id)
    await ctx.started()
    before, closed = await ctx.team.close(child.session, mode, reason)
    if not closed:
        text = f"{child.session} was already closed."
        return Outcome(for_model=text, for_user=text)
    text = f"Closed: {', '.join(closed)}. It was {before}."
    return Outcome(for_model=text, for_user=text)


# --- rate_agent -----------------------------------------------------------------------------------


async def _rate_facts(
    ctx: FactContext, job_id: str, capability: str, score: float, reason: str
) -> Gathered:
    return _facts("rate", f"Rate {shortened(job_id, NAME)} for {_capability(capability)}: {score}")


def _capability(given: str) -> str:
    from magy_server.core.agents import reputation  # seldom wanted

    try:
        return reputation.named(given)
    except InvalidRequest as error:
        raise ToolError(error.message) from None


async def _rate_recover(
    ctx: ToolContext, evidence: Evidence, arguments: Mapping[str, Any]
) -> Outcome | None:
    raise ToolError("It is not known whether the rating was kept; do not rate this again.")


@tool(
    effect="agent", key="agent", facts=_rate_facts, recover=_rate_recover, seldom=True
)  # fmt: skip
async def rate_agent(
    ctx: ToolContext,
    job_id: Annotated[str, "The id of an agent below you, or whose result you were given"],
    capability: Annotated[str, "What it was good or bad at, in a word or two, such as testing"],
    score: Annotated[float, "0 bad to 1 good", Field(ge=0, le=1, allow_inf_nan=False)],
    reason: Annotated[str, "What shows it", Field(min_length=1, max_length=500)],
) -> Outcome:
    """Say how good the work of an agent was, after you have looked at it. A task that names
    `best:CAPABILITY` as its agent gets the best rated one."""
    name = _capability(capability)
    await ctx.started()
    agent = await ctx.team.rate(job_id, name, score, reason)
    text = f"Rated {agent} for {name}: {score}."
    return Outcome(for_model=text, for_user=text)


AGENT_TOOLS = (
    spawn_agent, send_agent_message, wait_agent, list_agents, close_agent, rate_agent,
)  # fmt: skip
