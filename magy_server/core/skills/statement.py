"""A skill says which tools it uses; while it is at work, a call of another tool is asked about.

That holds for the turn in which the skill was named, attached or read, for the agent of that turn,
those below it, and those that it spawned. One that was installed from elsewhere is at work as long
as what it brought is in the conversation. Of several, each must state the tool: none widens what
another may. Tools that only read are never held back. A skill that says nothing is not limited, if
a person wrote it here or Magy ships it; one that was installed then may only read. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from magy_server.core.agents.mail import Mailed
from magy_server.core.events import Prompted, SkillRead
from magy_server.core.values import Content, Decision, Effect, Embedded, SkillUse

SKILL, INVOKE = "skill", "skill_invoke"
"""The permission key and the name of the tool that reads skills."""
SECTION = "skills"
"""The name of the section of prompts that tells of them."""
FREE = frozenset({"update_plan", INVOKE, "find_tools", "call_tool"})
"""Tools that touch nothing."""
WITH: Mapping[str, tuple[str, ...]] = {
    "spawn_agent": ("wait_agent", "list_agents", "send_agent_message", "close_agent"),
    "bash": ("bash_stop",),
}
"""Who states a tool states those, too, which go on with what it began."""


def uses(content: Iterable[Content]) -> tuple[SkillUse, ...]:
    """Returns the skills that a prompt brings."""
    return tuple(one.skill for one in content if isinstance(one, Embedded) and one.skill)


def joined(known: tuple[SkillUse, ...], more: Sequence[SkillUse]) -> tuple[SkillUse, ...]:
    """Returns the skills at work with more of them."""
    new = tuple(one for one in more if one not in known)
    return (*known, *new) if new else known


def lasting(known: tuple[SkillUse, ...], more: Iterable[SkillUse]) -> tuple[SkillUse, ...]:
    """Returns those of a conversation with those of `more` that stay in it: the installed ones."""
    return joined(known, [one for one in more if one.source == "installed"])


def brought(events: Iterable[object]) -> tuple[SkillUse, ...]:
    """Returns the skills that prompts, messages and readings among these bring."""
    found: tuple[SkillUse, ...] = ()
    for event in events:
        if isinstance(event, Prompted):
            found = joined(found, uses(event.content))
        elif isinstance(event, Mailed):
            found = joined(found, event.skills)
        elif isinstance(event, SkillRead):
            found = joined(found, (event.skill,))
    return found


def verdict(tool: str, effect: Effect, at_work: Sequence[SkillUse], *, bypass: bool
            ) -> Decision | None:  # fmt: skip
    """Returns the question about a call that no skill at work has stated; None: there is none."""
    if bypass or effect == "read" or tool in FREE:
        return None
    held = [skill for skill in at_work if not _states(skill, tool)]
    if not held:
        return None
    skill = held[-1]
    stated = f"only {', '.join(skill.tools)}" if skill.tools else "no tool that changes anything"
    rule = f"skill {skill.name} is at work, which states {stated}, not {tool}: ask"
    return Decision(action="ask", rule=rule, firm=True)


def _states(skill: SkillUse, tool: str) -> bool:
    """Returns whether the skill is not limited, or says that it uses the tool."""
    if skill.tools is None:
        return True
    along = (other for one in skill.tools for other in WITH.get(one, ()))
    return any(fnmatchcase(tool, stated) for stated in (*skill.tools, *along))
