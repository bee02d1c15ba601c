"""Guardrails and hooks that name a tool which does not exist watch nothing: they are found here."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from magy_server.core.hooks import Hook
from magy_server.core.permit import EDITOR_KEYS, KEYS
from magy_server.core.policy.guardrails import Guardrail
from magy_server.tools.kit import make_tools
from magy_server.tools.shell.processes import Processes

_FOREIGN = ("mcp__", "plugin_")
"""How the tools of MCP servers and the keys of plugins begin: which there are is known while they
run."""


def of_guardrails(rails: Sequence[Guardrail]) -> Iterator[str]:
    """Returns a sentence for each guardrail that watches nothing."""
    for number, rail in enumerate(rails, start=1):
        if not _is_known(rail.tool):
            yield f"guardrail {number} watches nothing: {_unknown(rail.tool)}"


def of_hooks(hooks: Sequence[Hook]) -> Iterator[str]:
    """Returns a sentence for each name in a hook's `match` that is no tool's. Hooks written for
    another program name tools that Magy may not have."""
    for hook in hooks:
        for part in hook.match.split("|") if hook.match and not hook.foreign else ():
            if not _is_known(part.strip()):
                yield f"hook `{hook.name}`, `match`: {_unknown(part.strip())}"


def _is_known(name: str) -> bool:
    return name.startswith(_FOREIGN) or any(fnmatchcase(one, name) for one in _known())


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, _known(), 1)
    return f"there is no tool {name!r}{f'; did you mean {near[0]!r}?' if near else '.'}"


def _known() -> list[str]:

    named = [name for tool in make_tools(Processes()) for name in (tool.name, tool.key)]
    return [*dict.fromkeys((*named, *KEYS, *EDITOR_KEYS, "shell"))]
