"""These tables say what tools are called in Claude Code, whose hooks, skills and agents Magy
reads."""

from __future__ import annotations

from collections.abc import Mapping

THEIRS: Mapping[str, str] = {
    "bash": "Bash", "read_file": "Read", "edit_file": "Edit", "apply_patch": "MultiEdit",
    "write_file": "Write", "grep": "Grep", "glob": "Glob", "list_dir": "LS",
    "web_fetch": "WebFetch", "web_search": "WebSearch", "spawn_agent": "Task",
    "update_plan": "TodoWrite", "skill_invoke": "Skill",
}  # fmt: skip
"""By our name."""
EDITS = ("edit_file", "apply_patch")
"""Which of them there is depends on the model: to name one is to name both."""
OURS: Mapping[str, tuple[str, ...]] = {
    **{theirs: (ours,) for ours, theirs in THEIRS.items()},
    **dict.fromkeys((*EDITS, "Edit", "MultiEdit"), EDITS),
    "Agent": ("spawn_agent",),
}
"""By their name, and for what has two names here."""
