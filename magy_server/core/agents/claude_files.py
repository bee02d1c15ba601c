"""What people have written for Claude Code serves here, too: `.claude/agents/*.md` are agents, and
files below `.claude/commands` are actions that a prompt names. `docs/howto/agents.md` says what
differs.

What is not understood there is left alone: it is another program's file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from magy_server.core.actions import ActionSpec
from magy_server.core.errors import InvalidConfig
from magy_server.core.permit import Ruleset
from magy_server.core.skills.foreign_names import OURS
from magy_server.core.specs import AgentSpec
from magy_server.core.text.yaml_nodes import Nodes, front_matter

if TYPE_CHECKING:
    from yaml import Node

ARGUMENTS = "$ARGUMENTS"
"""In a command: what the person wrote behind its name."""
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_FORM = "it must begin with a line `---`, then `name: ...` and `description: ...`, then another."


def parse_agent(stem: str, text: str, where: str, base: AgentSpec) -> AgentSpec:
    """Returns the agent of a file. It has the rules of `base`, since such files have none. Raises
    InvalidConfig."""
    front, prompt = front_matter(text, where, _FORM)
    found = _Reader(where).words(front)
    name = found.get("name", stem).strip()
    if not _NAME.fullmatch(name):
        raise InvalidConfig(f"{where}: {name!r} is not a valid agent name; use small letters, "
                            "digits, - and _.")  # fmt: skip
    if not prompt or not found.get("description"):
        raise InvalidConfig(f"{where}: an agent needs a description and a system prompt.")
    rules = Ruleset(source=f"agent {name}", keys=base.rules.keys)
    return AgentSpec(
        name=name, description=" ".join(found["description"].split()), rules=rules, prompt=prompt,
        tools=_may_use(found, where), where=where,
    )  # fmt: skip


def parse_command(id: str, text: str, where: str) -> ActionSpec:
    """Returns the action of a file, which need not have front matter. Raises InvalidConfig."""
    found: Mapping[str, str] = {}
    body = text.strip()
    if text.startswith("---"):
        front, body = front_matter(text, where, _FORM)
        found = _Reader(where).words(front)
    if not body:
        raise InvalidConfig(f"{where}: there is nothing to ask below the front matter.")
    title = " ".join(found.get("description", "").split()) or body.split("\n", 1)[0]
    return ActionSpec(
        id=id, title=title[:80], kind="source", when="named", prompt=body, where=where
    )


def _may_use(found: Mapping[str, str], where: str) -> tuple[str, ...] | None:
    """Returns the tools that the agent has; None: all. Raises InvalidConfig for a restriction that
    cannot be kept: the agent would have more than its file says."""
    if found.get("permissionMode") == "plan":
        raise InvalidConfig(f"{where}: `permissionMode: plan` is not known here; say with `tools` "
                            "what the agent may use.")  # fmt: skip
    tools = _tools(found["tools"]) if "tools" in found else None
    without = _tools(found.get("disallowedTools", ""))
    if without and tools is None:
        raise InvalidConfig(f"{where}: `disallowedTools` needs `tools` beside it here; list there "
                            "what the agent may use.")  # fmt: skip
    return tools if tools is None else tuple(one for one in tools if one not in without)


def _tools(said: str) -> tuple[str, ...]:
    words = re.sub(r"\([^)]*\)", "", said.strip("[]")).replace(",", " ").split()
    return tuple(dict.fromkeys(name for word in words for name in OURS.get(word, (word,))))


class _Reader(Nodes):
    def words(self, front: str) -> Mapping[str, str]:
        """The settings that are plain texts; Claude Code takes lines that are no YAML, too, such as
        a description with a colon."""
        try:
            node = self.compose(front)
        except InvalidConfig:
            return _lines(front)
        return dict(self._texts(node)) if node is not None else {}

    def _texts(self, node: Node) -> list[tuple[str, str]]:
        import yaml

        found = []
        for key, value in self.pairs(node):
            if isinstance(value, yaml.ScalarNode):
                found.append((str(key.value), str(value.value)))
            elif isinstance(value, yaml.SequenceNode):
                items = [str(one.value) for one in value.value if isinstance(one, yaml.ScalarNode)]
                found.append((str(key.value), ", ".join(items)))
        return found


def _lines(front: str) -> Mapping[str, str]:
    pairs = (line.partition(":") for line in front.split("\n") if ":" in line)
    return {key.strip(): value.strip().strip("\"'") for key, _, value in pairs if key.strip()}
