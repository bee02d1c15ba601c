"""Typing into a file under review: what a keystroke costs the server, however long the file and
however many hunks wait for a decision."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from bench.measure import Failed, Row, Run, in_turn
from bench.peer import MAGY, Peer
from bench.transport import LINE, Typist

HUNKS = 50


def keystroke_reviewed(run: Run) -> Row:
    """A character in the middle of 50,000 lines with 50 pending hunks, beside 500 lines with as
    many. Hunks are derived again when the typing pauses, which is not part of a keystroke."""
    count = run.choose(200, 500)
    with Peer(run, *MAGY) as one, Peer(run, *MAGY) as other:
        long, short = Reviewer(run, one, 50_000), Reviewer(run, other, 500)
        ours, floor = in_turn(
            run.choose(5, 9), partial(long.type, count), partial(short.type, count)
        )
    return Row("keystroke, 50,000 lines vs 500, 50 hunks, CPU", "seconds", ours, floor, 3)


def keystroke_beside_bare(run: Run) -> Row:
    """The same 50,000 lines with and without a review."""
    count = run.choose(200, 500)
    with Peer(run, *MAGY) as one, Peer(run, *MAGY) as other:
        reviewed, plain = Reviewer(run, one, 50_000), Typist(run, other, 50_000)
        ours, floor = in_turn(
            run.choose(5, 9), partial(reviewed.type, count), partial(plain.type, count)
        )
    return Row("keystroke with 50 hunks pending vs none, CPU", "seconds", ours, floor, 1.5)


ROWS = (keystroke_reviewed, keystroke_beside_bare)


class Reviewer(Typist):
    """Someone who types into a document with `HUNKS` pending hunks."""

    def prepare(self, path: Path, lines: int) -> str:
        path.write_text("".join(f"{LINE[:-1]} # {number}\n" for number in range(lines)))
        numbers = range(lines // 2 - 5 * HUNKS, lines // 2 + 5 * HUNKS, 10)
        edits = [{"old_text": f" # {n}\n", "new_text": f" # {n}!\n"} for n in numbers]
        key = {"uri": self.uri, "requestKey": "bench"}
        self.peer.request("magy/edit/apply", format="str_replace", edits=edits, **key)
        (file,) = self.peer.request("magy/review/list")["files"]
        if file["pending"] != HUNKS:
            raise Failed(f"{file['pending']} hunks are pending, not {HUNKS}.")
        return path.read_text()
