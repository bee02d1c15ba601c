"""This module turns what a model wants into changes of the live text: it has them resolved in the
text that the model has seen (`resolve.py`), then rebased onto what that has become since."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from magy_server.edits import explain
from magy_server.edits.model import Failure, Hunk, Placed, Resolved
from magy_server.edits.placing.decorations import numbered_anew
from magy_server.edits.placing.omission import omission
from magy_server.edits.rebasing.diff import changes, unified
from magy_server.edits.rebasing.overlap import Claims, Range
from magy_server.edits.rebasing.rebase import Conflict, Moved, rebase
from magy_server.edits.resolve import resolve
from magy_server.edits.text import line_end, plain, split

SHOWN = 4000
"""Characters of the differences that a conflict shows; the rest is counted."""
LINES = 20
"""A failure names so many line numbers."""
AGAIN = ("not_found", "already_applied")
"""These hold for the text that was seen, and perhaps not for the live one."""
CHANGED_SINCE = (
    "This edit was made before, and the user changed its lines later, so it was not made again. "
    "Read the file, and edit its present lines."
)
DONE_ALREADY = "this same change was already made"


def plan(live: str, hunks: Sequence[Hunk], seen: str | None = None) -> Resolved:
    """What `hunks` come to in `live` (raw). `seen`: the raw text that they were written for.

    What the user did meanwhile is merged; where it is in the way, the failure `conflict` shows it.
    A hunk that is not in `seen` is looked for in `live`, which the model may know from elsewhere;
    one that was made in `seen` too, as it may have been rejected since.
    """
    if seen is None or seen == live:
        return resolve(live, hunks)
    found = resolve(seen, hunks)
    placed, failures = _moved(seen, live, found.placed)
    lost = [failure for failure in found.failures if failure.code in AGAIN]
    failures += [failure for failure in found.failures if failure.code not in AGAIN]
    made = {failure.hunk: failure for failure in lost}
    late = resolve(live, [hunks[failure.hunk] for failure in lost]) if lost else Resolved(())
    failures += [replace(failure, hunk=lost[failure.hunk].hunk) for failure in late.failures]
    taken = Claims.of((one.hunk, _ranges(one), ()) for one in placed)
    for one in late.placed:
        one = replace(one, hunk=lost[one.hunk].hunk)
        other = taken.met(_ranges(one))
        again = made[one.hunk].code == "already_applied"
        if other is not None and again:
            failures.append(made[one.hunk])  # by another hunk of the call
        elif again and one.tier == "resembling":
            failures.append(Failure(one.hunk, "conflict", CHANGED_SINCE))
        elif other is not None:
            failures.append(_overlapping(live, one, other))
        else:
            placed.append(one)
    return Resolved(
        tuple(sorted(placed, key=lambda one: one.hunk)),
        tuple(sorted(failures, key=lambda failure: failure.hunk)),
    )


def plan_text(live: str, new: str, seen: str | None = None) -> Resolved:
    """Plans a whole text, as `plan` does hunks: `new` (plain) is to replace what was `seen`. One
    hunk."""
    old = live if seen is None else seen
    before, after = plain(old).split("\n"), new.split("\n")
    left_out = omission(before, after, before) if old.strip() else None
    if left_out is not None:
        return Resolved((), (Failure(0, "placeholder", explain.placeholder(left_out, True)),))
    if (line := numbered_anew(before, after)) is not None:
        return Resolved((), (Failure(0, "parse", explain.numbered_anew(line)),))
    if seen is None or seen == live:
        return Resolved((Placed(0, tuple(changes(live, new, 0, len(live)))),))
    meant = changes(seen, new, 0, len(seen))
    if not meant and plain(live) != new:
        diff = "".join(split(unified(seen, live, "", limit=SHOWN))[2:])  # without the files' names
        message = (
            "This is the text that was read, so it changes nothing; but the user or a command has "
            f"changed the file since, and that change stays:\n{diff}"
            "Read the file again, and edit only the lines that you want to change."
        )
        return Resolved((), (Failure(0, "conflict", message),))
    wanted = rebase(seen, live, meant)
    if wanted.conflicts:
        told = {conflict: _Told(conflict) for conflict in wanted.conflicts}
        return Resolved((), (_conflict(0, list(told.values())),))
    return Resolved((Placed(0, wanted.changes),))


def _moved(seen: str, live: str, found: Sequence[Placed]) -> tuple[list[Placed], list[Failure]]:
    """Returns the changes in `live` of the hunks that were placed in `seen`."""
    moved = iter(rebase(seen, live, [change for one in found for change in one.changes]).moved)
    placed: list[Placed] = []
    failures: list[Failure] = []
    told: dict[Conflict, _Told] = {}
    for one in found:
        parts = [next(moved) for _ in one.changes]
        if conflicts := dict.fromkeys(part.conflict for part in parts if part.conflict):
            for conflict in conflicts.keys() - told.keys():
                told[conflict] = _Told(conflict)
            failures.append(_conflict(one.hunk, [told[conflict] for conflict in conflicts]))
        else:
            placed.append(_placed(one, parts))
    return placed, failures


def _placed(one: Placed, parts: Sequence[Moved]) -> Placed:
    notes = [one.note] if one.note else []
    if parts and all(part.same for part in parts):
        notes.append(DONE_ALREADY)
    found = tuple(change for part in parts for change in part.changes)
    return replace(one, changes=found, note="; ".join(notes))


# --- what is said of a conflict -----------------------------------------------------------------


class _Told:
    """What is said of one conflict, however many hunks it stopped."""

    def __init__(self, conflict: Conflict) -> None:
        self.shown = _shown(conflict)
        self.lines = tuple(_lines(conflict))[:LINES]
        self.only_order = not conflict.base
        """Both put something between the same two lines; neither would undo the other's."""


def _conflict(hunk: int, told: Sequence[_Told]) -> Failure:
    shown = "\n".join(one.shown for one in told)
    if len(shown) > SHOWN:
        cut = shown.rfind("\n", 0, SHOWN)
        shown = f"{shown[:cut]}\n[{shown.count(chr(10), cut + 1) + 1} more lines are left out]"
    if all(one.only_order for one in told):
        message = (
            "After the file was read, other lines were inserted at the same place, and nothing "
            f"tells which come first:\n{shown}\n"
            "Read the file again, and insert these before or after those."
        )
    else:
        message = (
            "The user changed these same lines after they were read; this edit would undo that "
            "change:\n"
            f"{shown}\n"
            "Read the file again, and edit its present lines."
        )
    lines = tuple(line for one in told for line in one.lines)
    return Failure(hunk, "conflict", message, lines[:LINES])


def _shown(conflict: Conflict) -> str:
    """Returns what was made of the lines meanwhile, and what the edit would have."""
    return "\n".join(
        [
            f"line {conflict.live_line}, what was changed since:",
            *_differences(conflict.base, conflict.live),
            f"line {conflict.live_line}, what this edit would change:",
            *_differences(conflict.base, conflict.wanted),
        ]
    )


def _differences(before: str, after: str) -> Iterator[str]:
    """Without the names and line numbers of a unified diff, which would be those of a part."""
    for line in split(unified(_ended(before), _ended(after), "", limit=SHOWN))[2:]:
        if not line.startswith("@@"):
            yield line.removesuffix("\n")


def _ended(text: str) -> str:
    """A last line that lacks its end is not what a conflict is about."""
    text = plain(text)
    return text if not text or line_end(text) else f"{text}\n"


def _lines(conflict: Conflict) -> range:
    return range(conflict.live_line, conflict.live_line + max(1, len(split(conflict.live))))


def _ranges(one: Placed) -> list[Range]:
    """What its changes change, in half characters: an insertion takes a half on either side, so
    that it meets what it touches."""
    return [
        (2 * c.start, 2 * c.end) if c.start < c.end else (2 * c.start - 1, 2 * c.end + 1)
        for c in one.changes
    ]


def _overlapping(live: str, one: Placed, other: int) -> Failure:
    line = len(split(live[: one.changes[0].start])) or 1
    message = (
        f"This hunk and hunk {other + 1} of the same call change the same place, near line "
        f"{line}. Send what both want there as one hunk."
    )
    return Failure(one.hunk, "conflict", message, (line,))
