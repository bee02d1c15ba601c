"""This module looks up and checks everything that the first append of a child holds."""

from __future__ import annotations

import os
from asyncio import to_thread
from collections.abc import Iterable, Mapping, Sequence

from magy_server.core.agents import tree
from magy_server.core.agents.child import Spawn
from magy_server.core.agents.tree import stream_of
from magy_server.core.errors import InvalidRequest, ProviderError
from magy_server.core.events import Configured, Event, Opened, Prompted
from magy_server.core.permit import Ruleset
from magy_server.core.specs import AgentSpec
from magy_server.core.state.state import State
from magy_server.core.summary import task_id
from magy_server.core.text.sanitizing import shortened, visible
from magy_server.core.values import Content, Hash, Limits, Text, Worktree
from magy_server.dataclass import dataclass
from magy_server.engine.briefing import mentioned, unused, unvouched
from magy_server.engine.rules import at_work
from magy_server.engine.session import Session
from magy_server.engine.world import World, put
from magy_server.regex import regex
from magy_server.team.fork import context
from magy_server.team.worktrees import Worktrees

KEY = regex(r"[A-Za-z0-9._-]{1,60}")
NAME = 80
"""Characters."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """`first`: all events but the task's, which is the last."""

    first: Sequence[Event]
    task: Prompted
    blobs: Mapping[Hash, bytes]
    called: bool

    def events(self, above: State) -> list[Event]:
        """A task that a model gives is of the run that this is in; what a person gives is a run of
        its own."""
        run = above.turn.run if self.called and above.turn else ""
        return [*self.first, self.task.model_copy(update={"run": run})]


def check_key(wanted: Spawn) -> None:
    """Raises InvalidRequest for what cannot be the last part of a child's id."""
    key = wanted.key
    if not KEY.fullmatch(key) or not key.strip("."):
        raise InvalidRequest(
            f"{key!r} cannot name a child: a key is 1 to 60 letters, digits, `.`, `_` or `-`, and "
            "not only dots."
        )
    if wanted.by and tree.is_call(key):
        raise InvalidRequest(
            f"{key!r} cannot name a child that a person spawns: a number, a dot and a number name "
            "the children of calls. Add a letter."
        )


async def beginning(
    world: World,
    worktrees: Worktrees,
    above: Session,
    child: str,
    wanted: Spawn,
    blobs: Mapping[Hash, bytes],
) -> Beginning:
    """Raises InvalidRequest, NotFound, NotTrusted, InvalidConfig or ProviderError that say what is
    wrong with what is wanted."""
    parent, opened = above.state, above.state.opened
    assert opened is not None
    if not any(not isinstance(part, Text) or part.text.strip() for part in wanted.prompt):
        raise InvalidRequest("The task is empty; say what the child must do.")
    agent = agent_for(world, opened.root, wanted.agent or parent.agent, called=not wanted.by)
    found = dict(blobs)
    place, own, cwd = await _where(worktrees, parent, child, agent, wanted)
    begin = Opened(
        root=opened.root,
        cwd=cwd,
        agent=agent.name,
        model=_model(world, parent, agent, wanted.model),
        title=shortened(wanted.name, NAME) or _title(wanted.prompt, agent),
        parent=above.id,
        call="" if wanted.by else tree.call_of(wanted.key),
        rules=_rules(wanted.rules, found),
        limits=_limits(wanted.limits),
        skills=() if wanted.by else at_work([parent, *await world.above(parent)]),
        place=place,
        worktree=own,
        plugin=plugin_for(world, parent, agent, wanted.plugin),
    )
    stream = stream_of(child)
    first: list[Event] = [begin]
    if wanted.context:
        entries = await world.store.read(above.stream)
        first, more = context(entries, stream, begin, wanted.context)
        found |= more
    if parent.review:
        first.append(Configured(option="review", value=parent.review))
    first += wanted.letters
    prompt: Sequence[Content] = wanted.prompt
    state = State(stream, opened=begin, options={"agent": agent.name})
    if wanted.by:  # what a person mentions in it
        prompt, named = await mentioned(world, state, prompt)
        found |= named
    strange = unvouched(world, state, prompt)
    task = Prompted(id=task_id(child), content=tuple(prompt), by=world.me, untrusted=strange)
    return Beginning(first, task, found, called=not wanted.by)


async def _where(
    worktrees: Worktrees, parent: State, child: str, agent: AgentSpec, wanted: Spawn
) -> tuple[str, Worktree | None, str]:
    """What is the workspace to its tools ("": its root), its worktree, and its directory."""
    opened = parent.opened
    assert opened is not None
    cwd = await to_thread(directory, parent, wanted.cwd)
    if not (wanted.worktree or agent.worktree.enabled):
        return opened.place, None, cwd
    title = shortened(wanted.name, NAME) or _title(wanted.prompt, agent)
    own, place = await worktrees.planned(opened.root, child, title, agent.worktree)
    inner = os.path.relpath(cwd, parent.place)
    return place, own, os.path.normpath(os.path.join(place, inner))


def agent_for(world: World, root: str | None, name: str, *, called: bool) -> AgentSpec:
    """An agent that may be a child; a person may choose any but the hidden ones. Raises
    InvalidRequest, NotFound, NotTrusted, InvalidConfig."""
    agent = world.agent(name, root)
    if agent.hidden:
        raise InvalidRequest(
            f"The agent {name!r} works for Magy itself and cannot be spawned. "
            f"{_named(offered(world, root))}"
        )
    if called and agent.mode == "primary":
        raise InvalidRequest(
            f"The agent {name!r} is for people, not for spawning. {_named(offered(world, root))}"
        )
    return agent


def offered(world: World, root: str | None) -> Mapping[str, str]:
    """Returns the agents that a model may spawn, and what each is for."""
    specs = world.agents(root).values()
    return {
        spec.name: spec.description for spec in specs if spec.mode != "primary" and not spec.hidden
    }


def _named(agents: Iterable[str]) -> str:
    names = ", ".join(agents)
    return f"Agents to spawn are: {names}." if names else "There are none to spawn."


def _model(world: World, parent: State, agent: AgentSpec, wanted: str) -> str:
    """Its own, or its parent's as that is now; "": the configured one."""
    briefed = parent.conversation.briefing.model if parent.conversation.briefing else ""
    above = world.agents(parent.root).get(parent.agent)
    check_model(world, parent.root, wanted)
    return wanted or agent.model or parent.model or briefed or (above and above.model) or ""


def plugin_for(world: World, parent: State, agent: AgentSpec, wanted: str) -> str:
    """The only plugin of which the child has anything; "": it has all. Raises InvalidRequest."""
    above, own = world.plugin(parent), wanted or agent.plugin
    if above and own not in ("", above):
        raise InvalidRequest(
            f"The child is to have the plugin {own!r}, but the session above it has only "
            f"{above!r}, and a child has no other."
        )
    if own and own not in world.plugins():
        raise InvalidRequest(unused(agent.name, own, world.plugins()))
    return own or above


def check_model(world: World, root: str | None, name: str) -> None:
    """Raises InvalidRequest for a model that does not exist; "" stands for no particular one."""
    if not name:
        return
    if not all(name.partition("/")):
        raise InvalidRequest(f"model must be `provider/model`, not {name!r}.")
    try:
        world.models(root).named(name)
    except ProviderError as error:
        raise InvalidRequest(error.message) from None


def directory(above: State, wanted: str) -> str:
    """Canonical; "" stands for the one where the parent works now. Raises InvalidRequest for one
    that is not in the parent's workspace."""
    root = above.place
    own = "" if wanted else above.conversation.cwd
    wanted = wanted or own
    if not wanted:
        return above.opened.cwd if above.opened else root
    if not os.path.isabs(wanted) or "\0" in wanted:
        raise InvalidRequest(f"{wanted!r} is not an absolute path; name a directory below {root}.")
    found = os.path.realpath(wanted)
    if found != root and not found.startswith(root.rstrip("/") + "/"):
        raise InvalidRequest(f"{wanted} is outside the workspace; name a directory below {root}.")
    if own and found != own:
        raise InvalidRequest(
            f"{own}, where the parent works, leads elsewhere by now; name another."
        )
    if not os.path.isdir(found):
        what = "is not a directory" if os.path.exists(found) else "does not exist"
        raise InvalidRequest(f"{wanted} {what}; name one below {root}.")
    return found


def _rules(rules: Ruleset | None, blobs: dict[Hash, bytes]) -> Hash | None:
    if rules is None or not rules.keys:
        return None
    own = rules.model_copy(update={"narrows": True}).at_home(os.path.expanduser("~"))
    return put(own.model_dump_json(), blobs)


def _limits(limits: Limits | None) -> Limits | None:
    for name, value in limits.model_dump().items() if limits else ():
        if not 0 <= value < float("inf"):
            raise InvalidRequest(f"limits: {name} must be a number, 0 or more, not {value}.")
    return limits


def _title(prompt: Sequence[Content], agent: AgentSpec) -> str:
    """The first words of the task."""
    texts = (part.text.strip() for part in prompt if isinstance(part, Text))
    line = next((text.split("\n", 1)[0] for text in texts if text), agent.name)
    line = visible(line)
    return line if len(line) <= NAME else line[: NAME - 1] + "…"
