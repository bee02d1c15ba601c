"""Where a selection is by now, in a file so large that comparing it takes a while."""

from __future__ import annotations

import asyncio
from pathlib import Path

from magy_server.api.rewrites.live_preview import LivePlace
from magy_server.core.values import Selected
from magy_server.lsp.documents import LiveWorkspace
from tests.lsp.client import uri_of

SAME = "    x = 1\n    y = 2\n\n" * 4_000
"""Lines that no diff can tell apart."""
LINES = SAME.count("\n")
MIDDLE = LINES // 2
HASH = "0" * 64


class Typing:
    def __init__(self, path: Path, text: str) -> None:
        self.uri = uri_of(path)
        self.workspace = LiveWorkspace()
        self.workspace.opened(self.uri, text, 1)
        lines = text.splitlines(keepends=True)
        start = len("".join(lines[:MIDDLE]))
        selected = Selected(path=str(path), base=HASH, start=start, end=start + len(lines[MIDDLE]))
        self.place = LivePlace(self.uri, selected, text, self.workspace)

    def type(self, line: int, text: str, last: int | None = None, column: int = 0) -> None:
        """In the place of all from the beginning of a line to a column of the last."""
        end = line if last is None else last, column
        self.workspace.changed(self.uri, 1, [((line, 0), end, text)])

    @property
    def line(self) -> int:
        found: int = self.place.range["start"]["line"]
        return found


async def test_it_is_carried_from_change_to_change(tmp_path: Path) -> None:
    """From the beginning to the end there are many, between which such lines are lost."""
    one = Typing(tmp_path / "a.py", SAME)
    one.type(5, "# one\n")
    await one.place.look()
    one.type(LINES - 5, "    x = 1\n    y = 2\n")
    await one.place.look()
    one.type(9, "    x = 1\n", 30)
    await one.place.look()
    assert one.line == MIDDLE + 1 - 20


async def test_it_is_found_again_when_what_was_typed_into_it_is_gone(tmp_path: Path) -> None:
    one = Typing(tmp_path / "a.py", SAME)
    one.type(5, "# one\n")
    await one.place.look()
    one.type(MIDDLE + 1, "oh", MIDDLE + 2)
    await one.place.look()
    assert one.line == MIDDLE + 1
    one.type(5, "# two\n")
    await one.place.look()
    assert one.line == MIDDLE + 1  # where it was last
    one.type(5, "", 6)
    one.type(MIDDLE + 1, SAME.splitlines(keepends=True)[MIDDLE] + "oh")
    one.type(MIDDLE + 2, "", MIDDLE + 2, 2)
    await one.place.look()
    assert one.line == MIDDLE + 1 and not one.place.stale


async def test_others_have_their_turn_while_it_is_looked_for(tmp_path: Path) -> None:
    text = "".join(f"line_{n} = {n * 7919 % 1_000_003}\n" for n in range(LINES))
    one = Typing(tmp_path / "a.py", text)
    one.type(5, "# one\n")
    one.type(LINES - 5, "# two\n")
    looking = asyncio.ensure_future(one.place.look())
    await asyncio.sleep(0)
    assert not looking.done() and one.line == MIDDLE and one.place.stale
    one.type(6, "# three\n")
    await looking
    assert one.line == MIDDLE + 1 and one.place.stale  # there is something new already
    await one.place.look()
    assert one.line == MIDDLE + 2 and not one.place.stale
