"""A skill says which tools it uses; while it is at work, a call of another tool is asked about.

That holds for the turn in which the skill was named, attached or read, for the agent of that turn
and those below it. Tools that only read are never held back. A skill that says nothing is not
limited, if a person wrote it here or Magy ships it; one that was installed from elsewhere then may
only read. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from magy_server.core.events import Prompted, SkillRead
from magy_server.core.values import Content, Decision, Effect, Embedded, SkillUse

FREE = frozenset({"update_plan", "skill_invoke", "find_tools", "call_tool"})
"""Tools that touch nothing."""


def uses(content: Iterable[Content]) -> tuple[SkillUse, ...]:
    """Returns the skills that a prompt brings."""
    return tuple(one.skill for one in content if isinstance(one, Embedded) and one.skill)


def joined(known: tuple[SkillUse, ...], more: Sequence[SkillUse]) -> tuple[SkillUse, ...]:
    """Returns the skills at work with more of them."""
    new = tuple(one for one in more if one not in known)
    return (*known, *new) if new else known


def brought(events: Iterable[object]) -> tuple[SkillUse, ...]:
    """Returns the skills that prompts and readings among these bring."""
    found: tuple[SkillUse, ...] = ()
    for event in events:
        if isinstance(event, Prompted):
            found = joined(found, uses(event.content))
        elif isinstance(event, SkillRead):
            found = joined(found, (event.skill,))
    return found


def verdict(tool: str, effect: Effect, at_work: Sequence[SkillUse], *, bypass: bool
            ) -> Decision | None:  # fmt: skip
    """Returns the question about a call that no skill at work has stated; None: there is none."""
    limited = [skill for skill in at_work if skill.tools is not None]
    if bypass or not limited or effect == "read" or tool in FREE:
        return None
    if any(fnmatchcase(tool, stated) for skill in limited for stated in skill.tools or ()):
        return None
    skill = limited[-1]
    stated = f"only {', '.join(skill.tools)}" if skill.tools else "no tool that changes anything"
    rule = f"skill {skill.name} is at work, which states {stated}, not {tool}: ask"
    return Decision(action="ask", rule=rule, firm=True)
