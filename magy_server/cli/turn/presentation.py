"""The options of a command say how it shows a turn: for people, for programs, or only its end."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from magy_server.api.sessions.totals import Totals
from magy_server.cli.screen.complaints import complain
from magy_server.cli.screen.keyboard import Keyboard
from magy_server.cli.screen.printers import Lines, Printer, Records
from magy_server.cli.screen.terminal import Output, Screen, standard_output
from magy_server.cli.screen.text import record
from magy_server.cli.screen.updates_view import View
from magy_server.cli.turn import outcome
from magy_server.core.text.markdown import STOPS
from magy_server.dataclass import dataclass
from magy_server.reviews.views import Summary


@dataclass(slots=True)
class Shown:
    """How a turn is shown, from the options that `run` and `resume` share."""

    output: Output
    screen: Screen
    options: argparse.Namespace

    @classmethod
    def on(cls, options: argparse.Namespace) -> Shown:
        output = standard_output()
        return cls(output, Screen(output), options)

    def keyboard(self) -> Keyboard | None:
        return None if self.options.json else Keyboard.open()

    def printer(self, session_id: str, asks: bool) -> Printer:
        screen = self.screen
        view = View(
            screen.marks,
            thinking=self.options.thinking,
            rendered=screen.renders,
            wraps=screen.passing,
        )
        if self.options.json:
            return Records(self.output, session_id)
        if self.options.quiet and not asks:
            return Printer()
        return Lines(self.screen, view, quiet=self.options.quiet)

    async def end(
        self,
        session_id: str,
        found: Totals,
        unasked: list[str],
        reviewed: Sequence[Summary] = (),
        counts: outcome.Counts | None = None,
    ) -> int:
        """`reviewed`: the files of the project that are under review. `counts`: of the tasks of the
        graph that the turn was to do; None: it was to do none."""
        code = outcome.exit_code(found.stop, unasked=bool(unasked), counts=counts)
        if self.options.json:
            await self.output.write(record(outcome.result(found, session_id, code, unasked)))
        elif self.options.quiet:
            await self.screen.write([(f"{found.text}\n", "")] if found.text else [])
        else:
            width, changed = self.screen.width, bool(found.changes)
            line = outcome.last_line(found, session_id, self.screen.marks, width, counts)
            waits = outcome.waiting(reviewed, session_id, changed=changed, width=width)
            await self.screen.write([("\n", ""), *waits, *line])
        if self.options.quiet and found.stop != "end_turn":
            complain(f"{STOPS.get(found.stop or '', 'left open')}. {found.message}".strip())
        elif self.options.quiet and counts is not None and (missing := outcome.undone(counts)):
            complain(f"{missing}.")
        for rule in dict.fromkeys(unasked):
            complain(
                "refused, because without a terminal there is nobody to ask: "
                f"{rule.rstrip('.')}. Use an agent that allows it (a file with `extends: build` "
                "and `permissions`, see docs/howto/agents.md), or --bypass. What a guardrail, a "
                "hook or an MCP server asks, only a person answers: run it in a terminal."
            )
        return code
