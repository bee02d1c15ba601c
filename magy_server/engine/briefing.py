"""This module gathers what enters a session's prompts: agent, rules, tools, sizes, and mentions."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Mapping, Sequence, Set
from os.path import realpath
from urllib.parse import unquote, urlsplit

from magy_server.core.errors import InvalidConfig, MagyError
from magy_server.core.events import Briefed, Prompted
from magy_server.core.mcp.names import PREFIX, covers
from magy_server.core.permit import Ruleset, withholds
from magy_server.core.policy import strangers
from magy_server.core.ports import ModelFacts
from magy_server.core.prompting import seldom_tools
from magy_server.core.prompting.seldom_tools import CALL, FIND
from magy_server.core.settings import ModelSettings
from magy_server.core.skills.fitting import attached
from magy_server.core.skills.skill import AGAIN, Skills
from magy_server.core.skills.statement import INVOKE, SKILL, uses
from magy_server.core.skills.statement import SECTION as SKILLS
from magy_server.core.specs import AgentSpec
from magy_server.core.state.state import State
from magy_server.core.text.secrets import Secrets
from magy_server.core.tool import PLUGIN, Tool
from magy_server.core.values import Content, Embedded, Hash, Link, Section, Text
from magy_server.engine.rules import as_text, caps, inherited, levels_above, sources, told
from magy_server.engine.world import USUAL_REPLY, World, put
from magy_server.regex import regex

_PATCHERS = regex(r"(^|/)(gpt-(?!3|4o|4-)|o[1-9]|codex)", re.IGNORECASE)


async def briefing(world: World, state: State) -> tuple[Briefed, dict[Hash, bytes]]:
    """What enters the prompts of a session from here on, as things stand now."""
    root = state.root
    agent, above = world.agent(state.agent, root), await world.above(state)
    settings, models = world.settings(root), world.models(root)
    model, temperature = inherited(above, world)
    model = state.model or agent.model or model or await models.default()
    rules = await _rules(world, state, above)
    style = edit_style(model) if settings.edits.style == "auto" else settings.edits.style
    known = tuple((await world.tools.gathered(root)).values())
    listed = None if agent.tools is None else _listed(agent.tools, known)
    tools = _of(_plugin(world, state), [tool for tool in known if tool.style in ("", style)])
    deeper = world.limits.max_depth - len(above)
    there = [tool for tool in tools if _offered(world, tool, listed, rules, deeper)]
    offered, seldom = _hidden(there, agent)
    blobs: dict[Hash, bytes] = {}
    sections = [("agent", agent.instructions)]
    if above:
        parental = any(tool.parental for tool in offered)
        sections.append(("child", told(state, above, deeper if parental else 0)))
    if seldom:
        sections.append(("tools", seldom_tools.told(seldom)))
    for context in world.contexts:
        sections.extend(await context(state))
    if INVOKE not in {tool.name for tool in offered}:  # the model is told of skills to read them
        sections = [one for one in sections if one[0] != SKILLS]
    return Briefed(
        agent=agent.name,
        model=model,
        sections=tuple(_section(name, world.typed.clean(text), blobs) for name, text in sections),
        tools=tuple(_section(tool.name, world.schema(tool), blobs) for tool in offered),
        seldom=tuple(seldom),
        readers=tuple(tool.name for tool in offered if tool.effect == "read"),
        final=tuple(tool.name for tool in offered if tool.final),
        rules=put(as_text(rules[0]), blobs),
        **_sizes(settings.model, await models.measured(model)),
        thinking_tokens=settings.model.thinking_tokens,
        temperature=temperature if agent.temperature is None else agent.temperature,
        limits=caps(state, above, settings.limits),
    ), blobs


def _plugin(world: World, state: State) -> str:
    """The only plugin that it has. Raises InvalidConfig where that is not in use: without it the
    agent would be another."""
    own = world.plugin(state)
    if own and own not in world.plugins():
        raise InvalidConfig(unused(state.agent, own, world.plugins()))
    return own


def unused(agent: str, plugin: str, there: Collection[str]) -> str:
    """Returns what is to be said of a plugin that an agent is to have and that is not in use."""
    return (
        f"The agent {agent!r} is to have the plugin {plugin!r} alone, which is not in use. In use "
        f"are: {', '.join(there) or 'none'}. `magy plugins enable {plugin}` switches it on, and "
        "`magy plugins` says what is wrong with it; then start Magy again."
    )


def _of(plugin: str, tools: Sequence[Tool]) -> Sequence[Tool]:
    """Those that an agent has which has only this plugin; "": it has all."""
    own = f"{PLUGIN}{plugin}"
    return [one for one in tools if not (plugin and one.key.startswith(PLUGIN) and one.key != own)]


async def _rules(world: World, state: State, above: Sequence[State]) -> list[Sequence[Ruleset]]:
    """Its own as it would be briefed with them now, and those of each session above it."""
    found = await levels_above(world, above)
    return [await sources(world, state), *(level.sources for level in found)]


async def mentioned(
    world: World, state: State, content: Sequence[Content]
) -> tuple[Sequence[Content], Mapping[Hash, bytes]]:
    """A prompt with what it mentions (`@path`, `@init`, `/explain`), as it is now."""
    if state.opened is None:
        return [_cleaned(part, world.typed) for part in content], {}
    try:
        found = await _rules(world, state, await world.above(state))
        rules = [source for sources in found for source in sources]
        actions = world.agents(state.root).actions
    except MagyError:
        return [
            _cleaned(part, world.typed) for part in content
        ], {}  # the turn will say what is wrong with them
    skills = (await asyncio.to_thread(world.skills, state.root)).of(world.plugin(state))
    if withholds(rules, SKILL, INVOKE):
        skills = Skills({})
    mentions, blobs = await world.expand(state.place, content, rules, actions, skills)
    whole = [*mentions, *_called_for(world, state, mentions, skills)]
    expanded, more = await world.tools.mentioned(
        state.root, whole, lambda server: withholds(rules, f"{PREFIX}{server}")
    )
    blobs = {**blobs, **more}
    return [_cleaned(part, world.typed) for part in expanded] if world.typed else expanded, blobs


def unvouched(world: World, state: State, content: Sequence[Content]) -> tuple[str, ...]:
    """Returns where those parts of a prompt come from that nobody vouches for."""
    place = state.place if state.root else ""
    return strangers.attached(content, place, _path_of, vouched=world.vouches(state.root))


def _path_of(uri: str) -> str:
    """The canonical path of a file; of what is no URI, all of it."""
    try:
        return realpath(unquote(urlsplit(uri).path))
    except ValueError:
        return uri


def _called_for(
    world: World, state: State, content: Sequence[Content], skills: Skills
) -> Sequence[Content]:
    """The skills that a prompt calls for without naming any. What the model was given before, in
    this text, is not given again, but at work. Agents that work for Magy itself get none."""
    agent = world.agent(state.agent, state.root)
    if not world.settings(state.root).attach_skills or agent.hidden:
        return ()
    if agent.tools is not None and INVOKE not in agent.tools:
        return ()
    if uses(content):
        return ()
    request = "\n".join(part.text for part in content if isinstance(part, Text))
    files = [part.name for part in content if isinstance(part, Link)]
    known = {
        (part.skill.name, part.skill.hash)
        for item in state.conversation.items
        if isinstance(item, Prompted)
        for part in item.content
        if isinstance(part, Embedded) and part.skill and part.text != AGAIN
    }
    return [
        fit.skill.again(fit.why)
        if (fit.skill.name, fit.skill.hash) in known
        else fit.skill.content(fit.why)
        for fit in attached(skills.values(), request, files)
    ]


def _cleaned(part: Content, secrets: Secrets) -> Content:
    """A place that is to be rewritten stays as it is: the model's answer takes its place."""
    if isinstance(part, Embedded) and part.selected is not None:
        return part
    shown = {"text", "name", "uri"} & type(part).model_fields.keys()
    return part.model_copy(update={name: secrets.clean(getattr(part, name)) for name in shown})


def _listed(names: Sequence[str], known: Sequence[Tool]) -> Set[str]:
    """The tools that an agent lists. To list one tool that edits is to list all of them: which one
    it is depends on the model. Those of MCP servers may be listed by patterns."""
    edits = any(tool.style and tool.name in names for tool in known)
    return {
        tool.name
        for tool in known
        if tool.name in names
        or (tool.style and edits)
        or any(covers(name, tool.key) for name in names)
    }


def _offered(
    world: World,
    tool: Tool,
    listed: Set[str] | None,
    levels: Sequence[Sequence[Ruleset]],
    deeper: int,
) -> bool:
    """E101: the agent's list of tools (None: it has none) and the rules together. What an editor
    must help with needs one that can; what is for parents, that there may be children."""
    if tool.parental and deeper <= 0:
        return False
    if tool.needs and tool.needs not in world.editor.knows:
        return False
    wanted = not tool.final if listed is None else tool.name in listed
    return wanted and not any(withholds(sources, tool.key, tool.name) for sources in levels)


def _hidden(offered: Sequence[Tool], agent: AgentSpec) -> tuple[Sequence[Tool], Sequence[str]]:
    """Returns what the session has, and the names of the tools that the model must find. Who lists
    tools means them; who may not find any is shown all."""
    finds = {FIND, CALL} <= {tool.name for tool in offered} and agent.tools is None
    if finds and (seldom := [tool.name for tool in offered if tool.seldom]):
        return offered, seldom
    return [tool for tool in offered if tool.name not in (FIND, CALL)], ()


def edit_style(model: str) -> str:
    """OpenAI's models are trained on patches; the others do better at replacing texts."""
    return "patch" if _PATCHERS.search(model) else "str_replace"


def _sizes(settings: ModelSettings, facts: ModelFacts) -> dict[str, int]:
    """Where neither the person nor the table names a limit, none is sent: a small local model would
    refuse one that it cannot reach. Compaction leaves room for the reply."""
    wanted = settings.max_tokens
    usual = min(USUAL_REPLY, facts.max_tokens)
    reply = min(wanted, facts.max_tokens or wanted) if wanted else usual
    share = int(facts.window * settings.compact_at)
    room = max(facts.window - reply - facts.window // 50, facts.window // 4)
    compact_at = min(share, room) if settings.compact_at < 1 else 0
    return {"max_tokens": reply, "window": facts.window, "compact_at": compact_at}


def _section(name: str, text: str, blobs: dict[Hash, bytes]) -> Section:
    return Section(name=name, hash=put(text, blobs))
