"""A skill may be a list of steps in YAML; this module makes the text of one.

steps:
  - action: git_diff
  - action: analyze
    prompt: Look for what could break.
  - action: respond
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from magy_server.core.text.yaml_nodes import Nodes

if TYPE_CHECKING:
    from yaml import Node

MOST = 50
_KNOWN = ("action", "prompt")
_INTRODUCTION = (
    "Do these steps one after the other. A step in backquotes is the name of a tool, if there is "
    "one of that name; otherwise the word says what to do."
)


def rendered(reader: Nodes, node: Node) -> str:
    """Returns the instructions. Raises InvalidConfig that names the line."""
    import yaml

    if not isinstance(node, yaml.SequenceNode) or not node.value:
        reader.fail(node, "write the steps as a list of `- action: ...`.")
    if len(node.value) > MOST:
        reader.fail(node, f"a skill has at most {MOST} steps; write a SKILL.md instead.")
    lines = [_INTRODUCTION, ""]
    for number, step in enumerate(node.value, 1):
        found: dict[str, str] = {}
        for key, value in reader.pairs(step):
            if key.value not in _KNOWN:
                reader.unknown(key, "part of a step", _KNOWN)
            found[key.value] = reader.string(value)
        if "action" not in found:
            reader.fail(step, "the step has no action; add `action: ...`.")
        about = f": {found['prompt']}" if "prompt" in found else "."
        lines.append(f"{number}. `{found['action']}`{about}")
    return "\n".join(lines)
