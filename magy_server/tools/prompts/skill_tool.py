"""The model is told which skills there are, and with this tool it reads one when it needs it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Annotated, Any

from pydantic import Field

from magy_server.core.errors import InvalidConfig, NotFound, NotTrusted, ToolError
from magy_server.core.events import SkillRead
from magy_server.core.skills.skill import Skill, Skills, Source
from magy_server.core.skills.statement import INVOKE, SECTION, SKILL
from magy_server.core.specs import Agents
from magy_server.core.state.state import State
from magy_server.core.text.sanitizing import shortened
from magy_server.core.tool import FactContext, Gathered, Result, Tool, ToolContext
from magy_server.core.values import Facts, Resource
from magy_server.tools.files import disk
from magy_server.tools.files.pages import Page
from magy_server.tools.files.paths import Place, below, resolve, resource
from magy_server.tools.shipped import tool

NAME = INVOKE
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
        only = agents(state.root).plugin(state.agent, state.opened.plugin)
        if text := _told(nearest_first(skills(state.root).of(only).values())):
            return [(SECTION, text)]
        told = state.conversation.briefing.sections if state.conversation.briefing else ()
        return [(SECTION, _GONE)] if any(one.name == SECTION for one in told) else []

    return context


_NEAREST: Sequence[Source] = ("project", "user", "installed", "bundled")


def nearest_first(skills: Iterable[Skill]) -> Sequence[Skill]:
    return sorted(skills, key=lambda one: _NEAREST.index(one.source))


def _told(skills: Sequence[Skill]) -> str:
    shipped = [one.name for one in skills if one.source == "bundled"]
    others = [one for one in skills if one.source != "bundled"]
    lines = [_line(one) for one in others[:LISTED]]
    if (left := len(others) - LISTED) > 0:
        lines.append(f"- {left} more, which `{NAME}` without a name lists")
    if shipped:
        lines.append(", ".join(shipped))
    return "\n".join([_INTRODUCTION, *lines]) if lines else ""


def _line(skill: Skill) -> str:
    return f"- {skill.name}: {shortened(skill.description, ABOUT)}"


def skill_tool(skills: SkillsOf) -> Tool:
    async def facts(ctx: FactContext, name: str, file: str, **_: Any) -> Gathered:
        title = f"Read the skill {name}" if name else "List the skills"
        if not (name and file):
            return Facts(title=title), {}
        skill = _named((await asyncio.to_thread(skills, ctx.root)).of(ctx.plugin), name)
        found = await asyncio.to_thread(_judged_file, ctx.root, skill, file)
        return Facts(resources=(found,), title=f"{title}: {file}"), {}

    @tool(effect="read", key=SKILL, kind="read", facts=facts)
    async def skill_invoke(
        ctx: ToolContext,
        name: Annotated[str, "Empty: what each skill is for"] = "",
        file: Annotated[str, "One of its files"] = "",
        input: Annotated[str, "For a skill of type tool",
                         Field(max_length=100_000)] = "",
    ) -> Result:  # fmt: skip
        """Read a skill."""
        there = (await asyncio.to_thread(skills, ctx.root)).of(ctx.plugin)
        if not name:
            return Result(for_model=_page(nearest_first(there.values()), input), for_user="Skills")
        skill = _named(there, name)
        if file:
            said = await asyncio.to_thread(_file, ctx, skill)
        else:
            said = await asyncio.to_thread(_whole, ctx, skill, input)
        return Result(
            for_model=said,
            for_user=f"{name}: {file}" if file else f"Skill {name}",
            events=(SkillRead(call=ctx.call, skill=skill.used()),),
        )

    return skill_invoke


def _page(skills: Sequence[Skill], after: str) -> str:
    """The skills behind the one that is named `after`, as many as a page has."""
    names = [one.name for one in skills]
    begin = names.index(after) + 1 if after in names else 0
    shown = skills[begin : begin + LISTED]
    lines = [_line(one) for one in shown]
    if left := len(skills) - begin - len(shown):
        lines.append(f"[{left} more: call again with input {shown[-1].name!r}]")
    return "\n".join(lines) or "There are no skills."


def _named(there: Skills, name: str) -> Skill:
    """Raises ToolError."""
    try:
        return there.named(name)
    except (NotFound, NotTrusted, InvalidConfig) as error:
        raise ToolError(error.message) from None


def _whole(ctx: ToolContext, skill: Skill, input: str) -> str:
    text = skill.body
    if skill.kind == "tool":
        text = text.replace(INPUT, input) if INPUT in text else f"{text}\n\n{input}".rstrip()
    if names := _others(ctx, skill):
        listed = "\n".join(f"- {name}" for name in names)
        text += f"\n\nFiles of this skill, in {os.path.dirname(skill.where)}; read one with the " \
                f"parameter `file`:\n{listed}"  # fmt: skip
    return text


def _folder(skill: Skill) -> str:
    """The canonical folder of a skill; "" for one that is a single file."""
    directory, file = os.path.split(skill.where)
    return os.path.realpath(directory) if file == "SKILL.md" else ""


def _within(root: str, folder: str) -> str:
    """The directory below which rules see the files of a skill."""
    return root if below(root, folder) else folder


def _files(folder: str) -> Sequence[str]:
    """The canonical paths of the other files of a skill, at most `LISTED`."""
    found: list[str] = []
    for directory, folders, names in os.walk(folder):
        folders[:] = sorted(one for one in folders if not one.startswith((".", "__")))
        shown = (name for name in sorted(names) if not name.startswith("."))
        found += (os.path.join(directory, name) for name in shown)
        if len(found) > LISTED:
            break
    return [path for path in found if path != os.path.join(folder, "SKILL.md")][:LISTED]


def _others(ctx: ToolContext, skill: Skill) -> Sequence[str]:
    """Those of them that may be read, by their paths in the folder."""
    folder = _folder(skill)
    within = _within(ctx.root, folder)
    return [
        os.path.relpath(path, folder)
        for path in (_files(folder) if folder else ())
        if ctx.may_read(os.path.realpath(path), within) != "deny"
    ]


def _judged_file(root: str, skill: Skill, name: str) -> Resource:
    """What a call would read. Raises ToolError."""
    folder = _folder(skill)
    if not folder:
        raise ToolError(f"{NAME}: the skill {skill.name} is a single file and has no others.")
    try:
        place = resolve(folder, name)
    except ToolError as error:
        raise ToolError(f"{NAME}: {error.message}") from None
    return resource(_within(root, folder), place.path, "read")


def _file(ctx: ToolContext, skill: Skill) -> str:
    """A file as it was judged. Raises ToolError."""
    folder, (found,) = _folder(skill), ctx.facts.resources
    name = below(folder, found.subject)
    if name is None:
        raise ToolError(f"{NAME}: the skill {skill.name} lies elsewhere now; read it again.")
    if not os.path.isfile(found.subject):
        there = ", ".join(_others(ctx, skill)) or "none"
        raise ToolError(
            f"{NAME}: the skill {skill.name} has no file {name}. Its files are: {there}."
        )
    try:
        page = Page(disk.stream(Place(folder, found.subject, name)), 1, LINES)
    except ToolError as error:
        raise ToolError(f"{NAME}: {error.message}") from None
    return "\n".join(page.lines) + page.note
