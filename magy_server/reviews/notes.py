"""Notes tell models what was decided about their hunks; they are short and exact."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from magy_server.core.reviews.review_events import Decision, Noted
from magy_server.dataclass import dataclass
from magy_server.edits.proposal import reach
from magy_server.edits.rebasing.diff import blocks, unified
from magy_server.reviews.file_review import FileReview
from magy_server.reviews.views import HunkInfo

MOST = 2_000
"""Characters of a diff."""


def noted(
    held: FileReview,
    decision: Decision,
    hunks: Sequence[HunkInfo],
    left: Sequence[HunkInfo],
    cut: bool = False,
    taken: str = "",
) -> dict[str, Noted]:
    """Returns the notes by session. `hunks` were decided (`cut`: only some lines of them), `left`
    are pending afterwards; `taken` is the verb of a decision that is taken back."""
    sessions = dict.fromkeys(origin.session for hunk in hunks for origin in hunk.origins)
    found: dict[str, Noted] = {}
    for session in sessions:
        own = [hunk for hunk in hunks if any(o.session == session for o in hunk.origins)]
        still = sum(any(o.session == session for o in hunk.origins) for hunk in left)
        text = _text(held, decision, own, cut, taken)
        if decision.verb in ("accept", "commit", "reject", "amend"):
            text += f" Still pending there: {_count(still)} of yours." if still else ""
        found[session] = Noted(
            id=f"{decision.id}/{session}",
            text=text,
            verb=decision.verb,
            hunks=len(own),
            turn=own[-1].origins[-1].turn,
            changes=(decision.change,) if decision.change else (),
        )
    return found


def _text(
    held: FileReview, decision: Decision, hunks: Sequence[HunkInfo], cut: bool, taken: str
) -> str:
    name, reason = held.name, f" Reason: {decision.reason}" if decision.reason else ""
    what = f"some lines of {_count(len(hunks))}" if cut else _count(len(hunks))
    match decision.verb:
        case "accept" if held.proposed:
            return (
                f"The user accepted {what} that you proposed for {name}: they are applied.{reason}"
            )
        case "accept":
            return f"The user accepted {what} of yours in {name}.{reason}"
        case "commit":
            return f"Committed to git, which counts as accepted: {what} of yours in {name}."
        case "reject" if held.proposed:
            return (
                f"The user rejected {what} that you proposed for {name}.{reason}\n"
                f"{_diffs(held, hunks)}It was not applied. Do not propose it again unless asked."
            )
        case "reject":
            return (
                f"The user rejected {what} of yours in {name}.{reason}\n{_diffs(held, hunks)}"
                f"{_now(held, hunks)} Do not make this change again unless asked."
            )
        case "amend":
            diffs = _bounded("".join(_diff(hunk, hunk.new, decision.text) for hunk in hunks))
            return (
                f"The user replaced your hunk in {name} with another text.{reason}\n{diffs}"
                "The file now has that text, and it is accepted."
            )
        case "comment":
            return (
                f"The user commented on {what} of yours in {name}: {decision.text}\n"
                f"{_diffs(held, hunks)}It is still pending."
            )
        case _:
            return (
                f"The user took back a decision ({taken or 'a decision'}) about {what} of yours "
                f"in {name}. It is as it was before that decision."
            )


def _now(held: FileReview, hunks: Sequence[HunkInfo]) -> str:
    if any(hunk.kind == "rename" for hunk in hunks):
        return f"The file is {held.old_name} again."
    if not held.text.exists:
        return "The file is removed."
    return "The lines are as they were before." if all(not h.whole for h in hunks) else (
        "It is as it was before."
    )  # fmt: skip


def _count(number: int) -> str:
    return "1 hunk" if number == 1 else f"{number} hunks"


def _diffs(held: FileReview, hunks: Sequence[HunkInfo]) -> str:
    """What the model had done."""
    parts = []
    for hunk in hunks:
        if hunk.whole:
            parts.append(f"{hunk.kind}: {hunk.old or 'nothing'} -> {hunk.new or 'nothing'}\n")
        else:
            parts.append(_diff(hunk, hunk.old, hunk.new))
    return _bounded("".join(parts))


def _diff(hunk: HunkInfo, old: str, new: str) -> str:
    last = max(hunk.start + 1, hunk.end)
    where = f"line {hunk.start + 1}" if last == hunk.start + 1 else (
        f"lines {hunk.start + 1}-{last}"
    )  # fmt: skip
    lines = unified(old, new, "", limit=MOST).splitlines(keepends=True)[2:]
    return f"{where}:\n" + "".join(line for line in lines if not line.startswith("@@"))


def _bounded(text: str, most: int = MOST) -> str:
    if len(text) <= most:
        return text
    return text[:most].rsplit("\n", 1)[0] + "\n[the rest is left out]\n"


# --- at the beginning of a turn -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pending:
    """A file with pending hunks of one session. `wrote`: its lines as that session's agent left
    them; None: it is not known."""

    name: str
    proposed: bool
    hunks: tuple[HunkInfo, ...]
    live: Sequence[str]
    wrote: Sequence[str] | None


def pending_lines(file: Pending) -> str:
    return f"- {file.name}: {_listed(file)}\n{_since(file)}"


def reminder(session: str, lines: Sequence[str]) -> Noted | None:
    """What became of the agent's hunks that nobody has decided about yet: the lines of each file.
    The same again has the same id."""
    if not lines:
        return None
    text = _bounded(
        "The user has not judged these changes of yours yet:\n" + "".join(lines), 2 * MOST
    ).rstrip("\n")
    id = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return Noted(id=f"pending-{id}/{session}", text=text)


def _listed(file: Pending) -> str:
    what = _count(len(file.hunks))
    conflicts = sum(hunk.state == "conflict" for hunk in file.hunks)
    if conflicts:
        what += f", {conflicts} of them on lines that were changed later"
    return f"{what}, proposed and not applied" if file.proposed else what


def _since(file: Pending) -> str:
    """What others made of the agent's lines."""
    amended = [hunk for hunk in file.hunks if hunk.amended]
    if not amended or file.wrote is None:
        return ""
    changes = blocks(file.live, file.wrote)
    parts = []
    for hunk in amended:
        start, end = reach(changes, hunk.start, hunk.end)
        parts.append(_diff(hunk, "".join(file.wrote[start:end]), hunk.new))
    return "  changed after you wrote it; its present text:\n" + _bounded("".join(parts))
