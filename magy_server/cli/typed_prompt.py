"""A person types a prompt on the terminal. Tab completes actions after a `/` at its beginning, and
what an `@` may mention: skills, agents and files."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from itertools import takewhile

from magy_server.cli import project_directory
from magy_server.cli.composition import ONCE, Composition
from magy_server.core.settings import ToolSettings
from magy_server.core.specs import Agents
from magy_server.core.text.sanitizing import one_line
from magy_server.dataclass import dataclass
from magy_server.tasks import Tasks
from magy_server.tools.prompts.openings import AT, Opening, after_at, alone, mention
from magy_server.tools.search.file_name_index import FileIndex, Names, best

PATIENCE = 2.0
"""Seconds for the names of the project's files."""
MOST = 50
MARK = "> "


def typed(options: argparse.Namespace, app: Composition) -> str:
    """Returns a line from the person at the terminal. Raises KeyboardInterrupt, and MagyError for a
    wrong configuration."""
    offers = asyncio.run(_offers(options, app))
    try:
        import readline
    except ImportError:  # some builds of Python have none: a line can be typed all the same
        pass
    else:
        readline.set_completer_delims("")
        readline.set_completer(Tab(offers).complete)
        editline = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if editline else "tab: complete")
    print("What should the agent do? Tab completes: / actions, @ files, skills and agents.")
    try:
        return input(MARK)
    except EOFError:
        print()
        return ""


async def _offers(options: argparse.Namespace, app: Composition) -> Offers:
    root, _ = project_directory.project(options.root, options.cwd)
    async with app.compose([root], ONCE) as (service, _):
        reading = Tasks()
        names = await FileIndex(ToolSettings().grep_program, reading.begin).names(root, PATIENCE)
        await reading.cancel()
        world = service.world
        return Offers(world.agents(root), world.skills(root).mentionable, names)


@dataclass(frozen=True, slots=True)
class Offers:
    """`skills`: name -> what it is for."""

    agents: Agents
    skills: Mapping[str, str]
    names: Names

    def at(self, before: str) -> tuple[str, Sequence[Opening]]:
        """Returns what was typed at the end of `before`, and what may stand in its place. It offers
        no commands of editors."""
        if found := alone(before, self.agents):
            return found
        at = AT.search(before)
        if at is None:
            return "", ()
        query = at["bare"] if at["quoted"] is None else at["quoted"]
        begins = before.strip() == at[0] and at["quoted"] is None
        first = after_at(self.agents, self.skills) if begins else ()
        taken = {one.text.rstrip() for one in first}
        files = [
            Opening(name, mention(name, taken), "file", "")
            for name in best(self.names, query, MOST, lambda: None)
        ]
        fit = [o for o in first if o.kind != "command" and o.label[1:].startswith(query)]
        return at[0], [*fit, *files]


class Tab:
    """readline calls this when somebody presses Tab."""

    def __init__(self, offers: Offers) -> None:
        self._offers = offers
        self._lines: Sequence[str] = ()

    def complete(self, before: str, number: int) -> str | None:
        """The line up to the cursor with the first, second... of what may be meant. Several that
        do not go on as typed are shown, as readline would take back what was typed."""
        if number == 0:
            self._lines = self._found(before)
        return self._lines[number] if number < len(self._lines) else None

    def _found(self, before: str) -> Sequence[str]:
        prefix, offered = self._offers.at(before)
        start = before[: len(before) - len(prefix)]
        lines = [start + one.text for one in offered]
        if len(lines) < 2:
            return lines
        common = _common(lines)
        if common != before and common.startswith(before):
            return [common]
        _show(offered)
        return ()


def _common(lines: Sequence[str]) -> str:
    first, last = min(lines), max(lines)
    same = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    return "".join(one for one, _ in same)


def _show(offered: Sequence[Opening]) -> None:
    """Shows them below the line that is typed, and that line again."""
    import readline

    labels = [(one_line(one.label), one_line(one.detail)) for one in offered]
    width = max(len(label) for label, _ in labels)
    columns = os.get_terminal_size(sys.stdout.fileno()).columns
    shown = [f"  {label:<{width}}  {about}"[: columns - 1].rstrip() for label, about in labels]
    rest = readline.get_line_buffer()
    print("", *shown, MARK + rest, sep="\n", end="", flush=True)
    readline.redisplay()
