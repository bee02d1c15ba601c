"""What is heard of a file while an editor writes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from magy_server.core.ports import Seen
from magy_server.core.values import Version
from magy_server.tools.versions import look
from magy_server.tools.witness import Found, Saved, Shown, watching


@pytest.mark.parametrize("begun", ["", "one\n", "one\ntw"])
async def test_a_file_that_is_written_while_it_is_read_is_the_editors(
    tmp_path: Path, begun: str
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    rest = ["one\ntwo\n"]

    def slowly(root: str, name: str) -> tuple[Version, bytes]:
        """The editor goes on between the look at the file and the reading of it."""
        if rest:
            path.write_text(rest.pop())
        return look(root, name)

    with watching(str(tmp_path), slowly) as watch:
        path.write_text(begun)
        watch.see(Seen(str(path), "one\ntwo\n"))
        watch.see(Seen(str(path), saved=True))
        heard = watch.heard(str(path))
    assert [type(one) for one in heard] == [Shown, Saved]
    assert not any(isinstance(one, Found) or getattr(one, "loaded", False) for one in heard)
