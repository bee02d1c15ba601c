"""This module moves a file that an agent moved back to where it was: at both ends, or at
neither."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from magy_server.core.errors import EditorError, InvalidRequest, ToolError
from magy_server.core.ports import Found
from magy_server.core.reviews.review_events import Decision
from magy_server.core.values import NO_FILE
from magy_server.dataclass import dataclass
from magy_server.reviews.current_review import Now
from magy_server.reviews.decisions import Made, choose, decide
from magy_server.reviews.file_review import FileReview, Side
from magy_server.reviews.restore_files import look
from magy_server.reviews.review_store import ReviewStore
from magy_server.reviews.streams import Standing
from magy_server.reviews.views import Which, Wish


@dataclass(frozen=True, slots=True)
class Back:
    """`found` is where the file is, `there` what is at its old path, `file` what shall be there."""

    made: Made
    found: Found
    there: Found
    file: Side

    @property
    def held(self) -> FileReview:
        """What is still pending, at the old path."""
        return replace(self.made.held, path=self.there.path, moved_from="", text=self.file)

    @property
    def came(self) -> bool:
        """Returns whether the file is at its old path already."""
        return self.there.version == self.file.version and self.there.disk is None


async def planned(store: ReviewStore, now: Now, made: Made) -> Back:
    """Raises InvalidRequest when one of the ends is known to be in the way."""
    back = await _back(store, now, made)
    if back.there.version.hash is not None and not back.came:
        raise InvalidRequest(
            f"There is another file at {back.there.path} now. Move it away first, or accept the "
            "new name.",
            reason="conflict",
        )
    if now.found.disk is not None:
        raise InvalidRequest(
            f"{now.held.name} has unsaved changes in the editor. Save or discard them first; "
            "nothing was changed.",
            reason="conflict",
        )
    return back


async def _back(store: ReviewStore, now: Now, made: Made) -> Back:
    held = now.held
    file = store.made(made.held.text)
    comes_back = (file.version.hash, held.removed)
    there = await look(store.files, held.root, held.moved_from, comes_back, ())
    version = file.version.model_copy(update={"mode": now.live.version.mode})
    return Back(made, now.found, there, replace(file, version=version))


async def carry_out(store: ReviewStore, root: str, back: Back, label: str) -> tuple[Found, Found]:
    """What was made of the old path, and of the new one. Raises ToolError, EditorError: nothing has
    changed."""
    files, there = store.files, back.there
    found = (await files.put(root, there, back.file.version, back.file.data, label)).now
    try:
        return found, (await files.put(root, back.found, NO_FILE, b"", label)).now
    except (ToolError, EditorError):
        if not back.came:
            with suppress(ToolError, EditorError):
                await files.put(root, found, there.version, there.data, label)
        raise


async def begun(
    store: ReviewStore, at: Standing, before: FileReview, decision: Decision, now: Now
) -> Back | None:
    """The move that a process was at when it died, if the file has arrived at its old path. `at` is
    the intent, `before` the review then. None: there is none, or it never began."""
    if decision.verb != "reject" or not before.moved_from or at.event is None:
        return None
    text = before.text
    seen = Found(before.path, text.version, text.data, text.text)
    then = await store.shown(at.seq, before, at.event, seen)
    which = Which(ids=decision.hunks)
    chosen = choose(then, which)
    if chosen.missing or "rename" not in chosen.kinds:
        return None
    back = await _back(store, then, decide(then, Wish("reject", which), chosen))
    still = now.live.version in (NO_FILE, text.version) and now.found.disk is None
    return replace(back, found=now.found) if back.came and still else None
