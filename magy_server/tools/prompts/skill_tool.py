"""The model is told which skills there are, and with this tool it reads one when it needs it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated

from pydantic import Field

from magy_server.core.errors import InvalidConfig, NotFound, NotTrusted, ToolError
from magy_server.core.events import SkillRead
from magy_server.core.skills.skill import Skill, Skills
from magy_server.core.specs import Agents
from magy_server.core.state.state import State
from magy_server.core.text.sanitizing import shortened
from magy_server.core.tool import FactContext, Gathered, Result, Tool, ToolContext
from magy_server.core.values import Facts
from magy_server.tools.files import disk
from magy_server.tools.files.pages import Page
from magy_server.tools.files.paths import resolve
from magy_server.tools.shipped import tool

SECTION = "skills"
NAME = "skill_invoke"
ABOUT = 300
"""Characters of a description that the prompt has."""
LISTED = 100
"""Skills that the prompt names; the others are found with the tool."""
LINES = 2_000
INPUT = "{input}"
_INTRODUCTION = (
    f"Skills say how a kind of work is done well. Before such work read its skill (`{NAME}`) and "
    "follow it:"
)
_GONE = f"There are no skills any more; `{NAME}` finds none."
SkillsOf = Callable[[str | None], Skills]
"""The skills of a workspace root."""


def skills_section(
    skills: SkillsOf, agents: Callable[[str | None], Agents]
) -> Callable[[State], Awaitable[Sequence[tuple[str, str]]]]:
    """Names the skills in the prompt of an agent that can read them. Of those that come with Magy
    it gives only the names, which say enough; the tool tells more."""

    async def context(state: State) -> Sequence[tuple[str, str]]:
        if state.opened is None:
            return []
        agent = agents(state.root).get(state.agent)
        if agent is None or (agent.tools is not None and NAME not in agent.tools):
            return []
        if text := _told(list(skills(state.root).values())[:LISTED]):
            return [(SECTION, text)]
        told = state.conversation.briefing.sections if state.conversation.briefing else ()
        return [(SECTION, _GONE)] if any(one.name == SECTION for one in told) else []

    return context


def _told(skills: Sequence[Skill]) -> str:
    shipped = [one.name for one in skills if one.source == "bundled"]
    lines = [_line(one) for one in skills if one.source != "bundled"]
    if shipped:
        lines.append(", ".join(shipped))
    return "\n".join([_INTRODUCTION, *lines]) if lines else ""


def _line(skill: Skill) -> str:
    return f"- {skill.name}: {shortened(skill.description, ABOUT)}"


def skill_tool(skills: SkillsOf) -> Tool:
    async def facts(ctx: FactContext, name: str, file: str, input: str) -> Gathered:
        title = f"Read the skill {name}" if name else "List the skills"
        return Facts(title=f"{title}: {file}" if file else title), {}

    @tool(effect="read", key="skill", kind="read", facts=facts)
    async def skill_invoke(
        ctx: ToolContext,
        name: Annotated[str, "Empty: what each skill is for"] = "",
        file: Annotated[str, "One of its files"] = "",
        input: Annotated[str, "For a skill of type tool",
                         Field(max_length=100_000)] = "",
    ) -> Result:  # fmt: skip
        """Read a skill."""
        there = await asyncio.to_thread(skills, ctx.root)
        if not name:
            lines = "\n".join(map(_line, there.values()))
            return Result(for_model=lines or "There are no skills.", for_user="Skills")
        try:
            skill = there.named(name)
        except (NotFound, NotTrusted, InvalidConfig) as error:
            raise ToolError(error.message) from None
        if file:
            return await asyncio.to_thread(_file, skill, file)
        said = await asyncio.to_thread(_whole, skill, input)
        return Result(
            for_model=said,
            for_user=f"Skill {name}",
            events=(SkillRead(call=ctx.call, skill=skill.used()),),
        )

    return skill_invoke


def _whole(skill: Skill, input: str) -> str:
    text = skill.body
    if skill.kind == "tool":
        text = text.replace(INPUT, input) if INPUT in text else f"{text}\n\n{input}".rstrip()
    if names := _others(skill):
        listed = "\n".join(f"- {name}" for name in names)
        text += f"\n\nFiles of this skill, in {os.path.dirname(skill.where)}; read one with the " \
                f"parameter `file`:\n{listed}"  # fmt: skip
    return text


def _others(skill: Skill) -> Sequence[str]:
    """The other files of a skill that is a folder, by path, at most `LISTED`."""
    if os.path.basename(skill.where) != "SKILL.md":
        return ()
    folder = os.path.dirname(skill.where)
    found: list[str] = []
    for directory, folders, names in os.walk(folder):
        folders[:] = sorted(one for one in folders if not one.startswith((".", "__")))
        found += (os.path.relpath(os.path.join(directory, name), folder) for name in sorted(names))
        if len(found) > LISTED:
            break
    return [name for name in found if name != "SKILL.md"][:LISTED]


def _file(skill: Skill, name: str) -> Result:
    folder = os.path.realpath(os.path.dirname(skill.where))
    try:
        if os.path.basename(skill.where) != "SKILL.md":
            raise ToolError(f"the skill {skill.name} is a single file and has no others.")
        place = resolve(folder, name)
        if not os.path.isfile(place.path):
            there = ", ".join(_others(skill)) or "none"
            raise ToolError(f"the skill {skill.name} has no file {name}. Its files are: {there}.")
        page = Page(disk.stream(place), 1, LINES)
    except ToolError as error:
        raise ToolError(f"{NAME}: {error.message}") from None
    text = "\n".join(page.lines)
    return Result(for_model=f"{text}{page.note}", for_user=f"{skill.name}: {place.name}")
