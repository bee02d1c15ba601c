"""`magy magi` has a question judged by three agents, and works out their ruling again."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from functools import partial

from magy_server.api.rulings import WorkedOut, accept, of_workspace, worked_out
from magy_server.api.sessions.totals import Totals
from magy_server.cli import emotional_log, exit_codes, project_directory, session_ids
from magy_server.cli.commands.run import run_turn
from magy_server.cli.composition import Composition
from magy_server.cli.given_prompt import prompt_of
from magy_server.cli.screen.complaints import complain
from magy_server.cli.screen.terminal import Screen, standard_output
from magy_server.cli.screen.text import Marks, Span, filled
from magy_server.cli.team_options import ACCEPT, LIST, LOG, REPLAY
from magy_server.cli.turn.interrupts import until_left
from magy_server.cli.turn.outcome import Counts
from magy_server.cli.turn.presentation import Shown
from magy_server.core.agents.tree import stream_of
from magy_server.core.errors import InvalidRequest, NotFound
from magy_server.core.magi.case import LONGEST_CONTEXT, LONGEST_QUESTION
from magy_server.core.magi.recorded import Record, records
from magy_server.core.magi.reports import Form, shown
from magy_server.core.magi.ruling import Canonical, canonical, encoded, rule
from magy_server.core.magi.tally import Final
from magy_server.core.text.columns import shortened
from magy_server.core.text.sanitizing import one_line
from magy_server.core.values import Embedded, Text
from magy_server.dataclass import dataclass
from magy_server.reviews.views import Summary

AGENT = "magi"
COLOURS: Mapping[Final, str] = {"APPROVED": "green", "REJECTED": "red", "DEADLOCK": "yellow"}


def magi(options: argparse.Namespace, app: Composition) -> int:
    """Runs the command, and returns the exit code. Raises MagyError."""
    words: list[str] = options.words
    if words[0] == REPLAY and len(words) == 2:
        return asyncio.run(_replay(options, words[1], app))
    if words == [LIST]:
        return asyncio.run(_list(options, app))
    if words[0] == ACCEPT and len(words) in (2, 3):
        return asyncio.run(_accept(words[1], "".join(words[2:]), app))
    if words[0] == LOG and (len(words) == 1 or words[1] in emotional_log.VERBS):
        return asyncio.run(emotional_log.log(options, words[1:], app))
    if options.unmet:
        raise InvalidRequest("--unmet is for a ruling that is there: `magy magi replay SESSION`.")
    return _ask(options, " ".join(words), app)


# --- asking ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class Quiet(Shown):
    """Shows questions only: the ruling is printed when the turn is over. `ended`: of the turn, the
    session, and what its agent said last."""

    ended: list[tuple[str, str]] = field(default_factory=list)

    async def end(
        self,
        session_id: str,
        found: Totals,
        unasked: list[str],
        reviewed: Sequence[Summary] = (),
        counts: Counts | None = None,
    ) -> int:
        self.ended.append((session_id, found.text))
        found.text = ""
        return await Shown.end(self, session_id, found, unasked, reviewed, counts)


def _ask(options: argparse.Namespace, question: str, app: Composition) -> int:
    content = prompt_of(question)
    for part in content:
        most = LONGEST_CONTEXT if isinstance(part, Embedded) else LONGEST_QUESTION
        if isinstance(part, Text | Embedded) and len(part.text) > most:
            what = "What is piped in" if isinstance(part, Embedded) else "The question"
            raise InvalidRequest(
                f"{what} has {len(part.text):,} characters, and at most {most:,} are judged. Put "
                "what is long into a file of the project, and name the file in the question."
            )
    if options.mode:
        content.append(Text(text=f"(The person chose the mode {options.mode}.)"))
    about = {"agent": AGENT, "fork": None, "newest": False, "cwd": None, "thinking": False,
             "json": False, "quiet": options.format is not None}  # fmt: skip
    given = argparse.Namespace(**{**vars(options), **about})
    plain = Shown.on(given)
    if options.format is None:
        return asyncio.run(until_left(partial(run_turn, given, app, plain, content)))
    quiet = Quiet(plain.output, plain.screen, given)
    code = asyncio.run(until_left(partial(run_turn, given, app, quiet, content)))
    return asyncio.run(_print_latest(app, quiet, options.format)) or code


async def _print_latest(app: Composition, quiet: Quiet, form: Form) -> int:
    """The ruling of the turn that was shown, or what the agent said where there is none."""
    for session, text in quiet.ended:
        async with app.store() as store:
            found = records(session, await store.read(stream_of(session)))
        if found and found[-1].ended:
            await quiet.output.write(_formed(canonical(rule(found[-1].deliberation)), form))
            return exit_codes.DONE
        await quiet.output.write(f"{text}\n")
    return exit_codes.DONE


# --- what there is --------------------------------------------------------------------------------


async def _list(options: argparse.Namespace, app: Composition) -> int:
    """The rulings of all sessions of this project."""
    root, _ = project_directory.project(options.root, None)
    async with app.store() as store:
        found = [one async for one in of_workspace(store, root)]
    if options.format == "json":
        rulings = [canonical(rule(one.record.deliberation)) for one in found]
        await standard_output().write(f"{encoded({'rulings': rulings}).decode()}\n")
        return exit_codes.DONE
    screen = Screen(standard_output())
    if not found:
        await screen.write([("No question was put to MAGI in this project yet.\n", "dim")])
    for one in found:
        await screen.write(_line(one, screen.marks, screen.width))
    return exit_codes.DONE


def _line(one: WorkedOut, marks: Marks, width: int | None) -> list[Span]:
    """A ruling: when, what, how sure; below it its question, and what is to be said of it."""
    record = one.record
    ruling = rule(record.deliberation)
    when = f"{datetime.fromtimestamp(record.at).astimezone():%Y-%m-%d %H:%M}"
    tally, question = ruling.tally, one_line(record.deliberation.case.question)
    room = len(question) if width is None else max(1, width - 3)
    spans: list[Span] = [
        (f"{when}  ", "cyan"),
        (tally.final, COLOURS[tally.final]),
        (f" ({tally.standing}, {tally.confidence} %)  {one_line(record.deliberation.id)}\n", ""),
        (f"  {shortened(question, room, marks.cut)}\n", ""),
    ]
    notes = [] if one.same else ["The log has another ruling than its votes come to."]
    notes += filter(None, [_holds(record)])
    return [*spans, *((filled(one_line(note), width, "  "), "yellow") for note in notes)]


# --- working it out again -------------------------------------------------------------------------


async def _replay(options: argparse.Namespace, session: str, app: Composition) -> int:
    output = standard_output()
    async with app.store() as store:
        info = await session_ids.resolve(store, session)
        found = await worked_out(store, info.id)
    if not found:
        raise NotFound(f"There is no ruling in session {info.id}.")
    unmet = frozenset(options.unmet)
    for one in found:
        deliberation = replace(one.record.deliberation, unmet=unmet)
        await output.write(_formed(canonical(rule(deliberation)), options.format or "text"))
        if said := _holds(one.record):
            complain(said)
    wrong = [one.record.deliberation.id for one in found if not one.same]
    for id in wrong:
        complain(f"{id}: the ruling in the log is another than its votes come to.")
    if not wrong:
        complain(f"{len(found)} worked out again: the same as in the log, byte for byte.")
    return exit_codes.ERROR if wrong else exit_codes.DONE


def _holds(record: Record) -> str:
    """Which ruling holds, where one overturns another; "": it overturns none."""
    review = record.deliberation.case.review
    if review is None or not rule(record.deliberation).overturns:
        return ""
    id = record.deliberation.id
    if record.accepted is not None:
        return f"{id} holds in the place of {review.of}: a person accepted it."
    session = id.rpartition("/")[0]
    return f"{review.of} holds until you accept {id}: magy magi accept {session} {id}"


async def _accept(session: str, id: str, app: Composition) -> int:
    """Without an id, the latest ruling that overturns another."""
    async with app.acting(session) as (service, info):
        if not id:
            found = [one.record for one in await worked_out(service.world.store, info.id)]
            open_ = [one.deliberation.id for one in found if _holds(one) and not one.accepted]
            if not open_:
                raise NotFound(f"No ruling in session {info.id} waits to be accepted.")
            id = open_[-1]
        await accept(service, info.id, id)
    complain(f"Accepted: {id}.")
    return exit_codes.DONE


def _formed(ruling: Canonical, form: Form) -> str:
    return f"{encoded(ruling).decode()}\n" if form == "json" else shown(ruling, form)
