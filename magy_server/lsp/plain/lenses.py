"""This module makes code lenses above pending hunks, and code actions at the cursor, with which a
person reviews in editors without any Magy code.

Pure: from files under review, as the wire has them, to what the Language Server Protocol shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from magy_server.api.wire import names
from magy_server.api.wire.shapes import Range, Span

if TYPE_CHECKING:  # most of the time nothing is under review
    from magy_server.api.wire.reviews import ReviewFile, ReviewHunk

LLM_GENERATED = 1
"""`CodeActionTag.LLMGenerated` of LSP 3.18."""
MOST_LENSES = 500
"""Hunks of one file that get lenses: more would only be noise, and all of them cost a drawing."""

Json = dict[str, Any]
_SPAN: TypeAdapter[Range] = TypeAdapter(Span)


def lenses(files: Iterable[ReviewFile]) -> list[Json]:
    """Above each pending hunk; the first of a file also says how many there are."""
    found: list[Json] = []
    for file in files:
        for number, hunk in enumerate(file.hunks[:MOST_LENSES]):
            found.extend(_of_hunk(file, hunk, first=number == 0))
    return found


def _of_hunk(file: ReviewFile, hunk: ReviewHunk, *, first: bool) -> Iterable[Json]:
    line = {"line": hunk.range.start.line, "character": 0}
    here = {"start": line, "end": line}
    place = _place(file, hunk)
    accept = "Accept" if file.mode == "applied" else "Accept (apply)"
    yield _lens(here, f"{accept}{_about(hunk)}", names.ACCEPT, place)
    yield _lens(here, "Reject", names.REJECT, place)
    if first and len(file.hunks) > 1:
        count = len(file.hunks)
        whole = _place(file)
        yield _lens(here, f"Accept all in file ({count})", names.ACCEPT_ALL, whole)
        yield _lens(here, "Reject all", names.REJECT_ALL, whole)


def _lens(range: Json, title: str, name: str, argument: Json) -> Json:
    return {"range": range, "command": command(title, name, argument)}


def command(title: str, name: str, argument: Json) -> Json:
    return {"title": title, "command": name, "arguments": [argument]}


def _place(file: ReviewFile, hunk: ReviewHunk | None = None) -> Json:
    place = {"uri": file.uri, "proposed": file.mode == "proposed"}
    return place | {"hunkId": hunk.hunk_id} if hunk else place


def _about(hunk: ReviewHunk) -> str:
    """What the text itself does not show."""
    if hunk.state == "conflict":
        return " (conflict: you changed these lines)"
    if hunk.kind == "delete":
        removed = hunk.base_range.end.line - hunk.base_range.start.line
        removed += bool(hunk.base_range.end.character)
        return f" (removed {removed} line{'' if removed == 1 else 's'})"
    if hunk.kind in ("add", "change"):
        return ""
    return f" ({hunk.new_text or hunk.kind})"[:80]


# --- code actions -------------------------------------------------------------------------------


def actions(
    files: Iterable[ReviewFile], range: Range, only: Sequence[str] | None, tags: bool
) -> list[Json]:
    """Returns the actions for the hunks that touch `range`, and those for the whole file if there
    are any. `only`: the kinds that the editor asked for; `tags`: whether it knows tags."""
    found: list[Json] = []
    for file in files:
        here = [hunk for hunk in file.hunks if touches(hunk, range)]
        if not here:
            continue
        for hunk in here:
            found.extend(_choices(_place(file, hunk), _describe(file, hunk)))
        if len(file.hunks) > 1:
            found.extend(_choices(_place(file), f"all {len(file.hunks)} changes in this file"))
    wanted = [action for action in found if asked_for(str(action["kind"]), only)]
    return [action | {"tags": [LLM_GENERATED]} for action in wanted] if tags else wanted


def _choices(argument: Json, what: str) -> Iterable[Json]:
    one = "hunkId" in argument
    accept = command(f"Accept {what}", names.ACCEPT if one else names.ACCEPT_ALL, argument)
    reject = command(f"Reject {what}", names.REJECT if one else names.REJECT_ALL, argument)
    yield {"title": accept["title"], "kind": names.ACCEPT_KIND, "command": accept}
    yield {"title": reject["title"], "kind": names.REJECT_KIND, "command": reject}


def _describe(file: ReviewFile, hunk: ReviewHunk) -> str:
    agent = next((origin.agent for origin in reversed(hunk.origins) if origin.agent), "")
    verb = "proposed change" if file.mode == "proposed" else "change"
    return f"this {verb}" + (f" of {agent}" if agent else "")


def touches(hunk: ReviewHunk, range: Range) -> bool:
    """Whether the cursor or selection is in the hunk, or on a line that shows a deletion."""
    first, last = range.start.line, range.end.line
    start, end = hunk.range.start.line, hunk.range.end.line
    if hunk.range.end.character:
        end += 1  # it ends with the file's last line, which has no line end
    if start == end:
        return any(first <= line <= last for line in (start, hunk.anchor))
    return first < end and start <= last


def asked_for(kind: str, only: Sequence[str] | None) -> bool:
    """Returns whether the editor wants actions of this kind. Kinds are a hierarchy: `quickfix`
    includes `quickfix.magy.accept`."""
    return only is None or any(kind == want or kind.startswith(f"{want}.") for want in only)


def parse_range(value: Any) -> Range | None:
    """The range in the params of `textDocument/codeAction`; None when there is none."""
    try:
        return _SPAN.validate_python(value)
    except ValidationError:
        return None
