"""What is heard of a file while an editor writes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from magy_server.core.ports import Seen
from magy_server.core.values import Version
from magy_server.tools.files.versions import look
from magy_server.tools.tracking.attribution import told_of, without_command
from magy_server.tools.tracking.known_changes import Found, Saved, Shown, Told, Watch, watching


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


class Beside:
    """An editor and a command beside each other, at one file."""

    def __init__(self, path: Path, watch: Watch) -> None:
        self._path, self._watch = path, watch

    def shows(self, text: str) -> None:
        self._watch.see(Seen(str(self._path), text))

    def says_saved(self) -> None:
        self._watch.see(Seen(str(self._path), saved=True))

    def writes(self, text: str) -> None:
        """As another file: its stamp is another one."""
        spare = self._path.with_suffix(".new")
        spare.write_text(text)
        spare.replace(self._path)


def saved_twice_and_said_late(one: Beside) -> None:
    one.shows("one\ntyped\n")
    one.writes("one\ntyped\nmore\n")
    one.shows("one\ntyped\nmore\n")
    one.writes("one\ntyped\nmore\n")
    one.says_saved()
    one.says_saved()


def saved_again_before_the_first_was_heard_of(one: Beside) -> None:
    one.shows("one\ntyped\n")
    one.writes("one\ntyped\nmore\nand more\n")
    one.says_saved()
    one.shows("one\ntyped\nmore\n")
    one.shows("one\ntyped\nmore\nand more\n")
    one.writes("one\ntyped\nmore\nand more\n")
    one.says_saved()


def saved_and_at_once_saved_again(one: Beside) -> None:
    one.writes("one\ntyped\n")
    one.shows("one\ntyped\n")
    one.writes("one\ntyped\nmore\n")
    one.says_saved()
    one.shows("one\ntyped\nmore\n")
    one.says_saved()


def saved_twice_before_either_was_heard_of(one: Beside) -> None:
    one.shows("key\none\n")
    one.writes("one\ntyped\n")
    one.shows("one\ntyped\n")
    one.shows("one\ntyped on\n")
    one.writes("one\ntyped\nmore\n")
    one.shows("one\ntyped\n")
    one.says_saved()
    one.shows("one\ntyped\nmore\n")
    one.says_saved()


def being_written_when_it_is_looked_at(one: Beside) -> None:
    one.shows("one\ntyped\n")
    one.writes("one\ntyped\nmore\n")
    one.says_saved()
    one.writes("")
    one.shows("one\ntyped\nmore\n")
    one.says_saved()
    one.writes("one\ntyped\nmore\n")


@pytest.mark.parametrize(
    "story",
    [
        saved_twice_and_said_late,
        saved_again_before_the_first_was_heard_of,
        saved_and_at_once_saved_again,
        saved_twice_before_either_was_heard_of,
        being_written_when_it_is_looked_at,
    ],
)
async def test_what_was_saved_before_it_was_heard_of_is_the_persons(
    tmp_path: Path, story: Callable[[Beside], None]
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    first = Told(*look(str(tmp_path), str(path)))
    with watching(str(tmp_path), look) as watch:
        one = Beside(path, watch)
        one.shows("one\n")
        story(one)
        heard = watch.heard(str(path))
    last = Told(*look(str(tmp_path), str(path)))
    assert without_command(first, heard, last) == last


async def test_what_is_loaded_over_typed_text_is_the_commands(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n")
    first = Told(*look(str(tmp_path), str(path)))
    with watching(str(tmp_path), look) as watch:
        one = Beside(path, watch)
        one.shows("one\ntwo\n")
        one.shows("typed\none\ntwo\n")
        one.writes("one\ntwo\nby the command\n")
        one.shows("one\ntwo\nby the command\n")
        one.writes("one\ntwo\nby the command\n")
        one.says_saved()
        heard = watch.heard(str(path))
    last = Told(*look(str(tmp_path), str(path)))
    assert without_command(first, heard, last) == first


async def test_only_what_the_editor_says_it_saved_is_told_of(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    first = Told(*look(str(tmp_path), str(path)))
    with watching(str(tmp_path), look) as watch:
        one = Beside(path, watch)
        one.shows("one\ntyped\n")
        one.writes("one\ntyped\nmore\n")  # of which it has only told the first
        one.says_saved()
        last = Told(*look(str(tmp_path), str(path)))
        assert not told_of(first, watch.heard(str(path)), last)
        one.shows("one\ntyped\nmore\n")
        one.says_saved()
        assert told_of(first, watch.heard(str(path)), last)
        one.writes("")
        one.shows("one\ntyped\nmore\n4\n")
        empty = Told(*look(str(tmp_path), str(path)))
        assert not told_of(first, watch.heard(str(path)), empty)
