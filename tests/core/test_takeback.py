"""Taking changes back: exactly where nobody else changed the file, by merge where somebody did, and
not at all where both meet."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from magy_server.core.reviews.undo_merge import (
    Contents,
    Taken,
    There,
    net,
    paths,
    take_back,
    version,
)
from magy_server.core.values import FileChange, Kind, Version


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def text(data: bytes) -> str | None:
    return None if b"\0" in data else data.decode()


class Disk:
    """Files, and all that they ever held. None: no such file."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.files: dict[str, There] = {}
        self.changes: list[FileChange] = []

    def there(self, content: str | bytes | None, kind: Kind = "file") -> There:
        if content is None:
            return There()
        data = content.encode() if isinstance(content, str) else content
        self.blobs[digest(data)] = data
        return There(Version(hash=digest(data), kind=kind), data)

    def user(self, path: str, content: str | bytes | None, kind: Kind = "file") -> None:
        self.files[path] = self.there(content, kind)

    def agent(
        self, path: str, content: str | bytes | None, kind: Kind = "file", moved_from: str = ""
    ) -> None:
        was, now = self.files.get(path, There()), self.there(content, kind)
        self.files[path] = now
        self.changes.append(change(path, was.version, now.version, moved_from=moved_from))

    def move(self, old: str, new: str, content: str) -> None:
        self.agent(new, content, moved_from=old)
        self.agent(old, None)

    def back(self, changes: Sequence[FileChange] | None = None) -> dict[str, Taken]:
        todo = self.changes if changes is None else changes
        live = {path: self.files.get(path, There()) for path in paths([todo])}
        contents = Contents(text, lambda text, like: text.encode(), self.blobs)
        return {taken.path: taken for taken in take_back([todo], live, contents)}

    def undo(self) -> list[FileChange]:
        """Takes all back; what that changed, so that it can be taken back itself."""
        made = []
        for taken in self.back().values():
            was, self.files[taken.path] = self.files.get(taken.path, There()), taken.now
            if taken.now.version.hash:
                self.blobs[taken.now.version.hash] = taken.now.data
            if was.version != taken.now.version:
                made.append(change(taken.path, was.version, taken.now.version,
                                   moved_from=taken.moved_from))  # fmt: skip
        return made

    def read(self, path: str) -> str | None:
        there = self.files.get(path, There())
        return there.data.decode() if there.version.hash else None


def change(path: str, was: Version, now: Version, **fields: Any) -> FileChange:
    return FileChange(
        path=path, before=was.hash, after=now.hash, was=was.kind, now=now.kind, **fields
    )


def texts(files: Mapping[str, There]) -> dict[str, str]:
    return {path: there.data.decode() for path, there in files.items() if there.version.hash}


def test_each_kind_of_change_is_taken_back() -> None:
    disk = Disk()
    disk.user("changed", "one\n")
    disk.user("deleted", "old\n")
    disk.user("script", "#!/bin/sh\n")
    disk.user("link", "target", "link")
    disk.user("picture", b"\0before")
    before = dict(disk.files)
    disk.agent("changed", "two\n")
    disk.agent("created", "new\n")
    disk.agent("deleted", None)
    disk.agent("script", "#!/bin/sh\n", "executable")
    disk.agent("link", "no link any more")
    disk.agent("picture", b"\0after")
    after = dict(disk.files)
    undone = disk.undo()
    assert {path: there for path, there in disk.files.items() if there.version.hash} == before
    disk.changes = undone
    disk.undo()
    assert disk.files == after


def test_later_edits_of_others_stay() -> None:
    disk = Disk()
    disk.user("a", "1\n2\n3\n4\n5\n")
    disk.agent("a", "1\ntwo\n3\n4\n5\n")
    disk.user("a", "1\ntwo\n3\n4\nmine\n")
    disk.agent("a", "1\ntwo\n3\nfour\nmine\n")
    disk.user("a", "0\n1\ntwo\n3\nfour\nmine\n")
    undone = disk.undo()
    assert disk.read("a") == "0\n1\n2\n3\n4\nmine\n"
    disk.changes = undone
    disk.undo()
    assert disk.read("a") == "0\n1\ntwo\n3\nfour\nmine\n"


def test_what_was_changed_again_and_again_counts_as_one_change() -> None:
    """The person has put back by hand what two edits had made of a line: nothing is left to do."""
    disk = Disk()
    disk.user("a", "1\n2\n3\n")
    disk.agent("a", "1\nB\n3\n")
    disk.agent("a", "1\nC\n3\n")
    disk.user("a", "1\n2\n3\nmore\n")
    (taken,) = disk.back().values()
    assert taken.problem == "" and taken.now == disk.files["a"]


def test_overlapping_lines_are_a_conflict_and_the_file_is_left_alone() -> None:
    disk = Disk()
    disk.user("a", "1\n2\n3\n4\n5\n")
    disk.user("b", "b\n")
    disk.agent("a", "one\n2\n3\n4\nfive\n")
    disk.agent("b", "B\n")
    disk.user("a", "one\n2\n3\n4\nFIVE\n")
    found = disk.back()
    assert "at 5" in found["a"].problem and found["a"].now == disk.files["a"]
    assert found["b"].problem == "" and found["b"].now.data == b"b\n"


def test_files_that_others_made_removed_or_replaced() -> None:
    disk = Disk()
    disk.user("removed", "x\n")
    disk.user("replaced", "x\n")
    disk.user("binary", b"\0a")
    disk.user("link", "a", "link")
    disk.agent("created", "new\n")
    disk.agent("removed", "y\n")
    disk.agent("replaced", None)
    disk.agent("binary", b"\0b")
    disk.agent("link", "b", "link")
    disk.user("created", "new\nand mine\n")
    disk.user("removed", None)
    disk.user("replaced", "another\n")
    disk.user("binary", b"\0c")
    disk.user("link", "c", "link")
    now = dict(disk.files)
    words = {path: taken.problem for path, taken in disk.back().items()}
    assert words == {
        "created": "That turn created it, and somebody else changed it later.",
        "removed": "It no longer exists: somebody else removed it later.",
        "replaced": "That turn deleted it, and there is another file in its place now.",
        "binary": "It is not text, and somebody changed it later.",
        "link": "It is (or was) a symbolic link, and somebody changed it later.",
    }
    assert disk.undo() == [] and disk.files == now


def test_what_is_as_it_was_already_is_no_conflict() -> None:
    disk = Disk()
    disk.user("gone", "x\n")
    disk.agent("made", "new\n")
    disk.agent("gone", None)
    disk.user("made", None)
    disk.user("gone", "x\n")
    assert not any(taken.problem for taken in disk.back().values())
    assert disk.undo() == []


def test_an_executable_bit_and_a_text_are_merged_apart() -> None:
    disk = Disk()
    disk.user("run", "1\n2\n3\n")
    disk.agent("run", "1\n2\nthree\n", "executable")
    disk.user("run", "one\n2\nthree\n", "executable")
    disk.undo()
    assert disk.read("run") == "one\n2\n3\n" and disk.files["run"].version.kind == "file"


def test_an_executable_bit_that_the_person_set_stays() -> None:
    disk = Disk()
    disk.user("run", "1\n2\n3\n")
    disk.agent("run", "1\n2\nthree\n")
    disk.user("run", "1\n2\nthree\n", "executable")
    disk.undo()
    assert disk.read("run") == "1\n2\n3\n" and disk.files["run"].version.kind == "executable"


def test_a_moved_file_goes_back_with_what_was_edited_in_it() -> None:
    disk = Disk()
    disk.user("old", "1\n2\n3\n4\n")
    disk.agent("old", "1\n2\n3\nfour\n")
    disk.move("old", "mid", "1\n2\n3\nfour\n")
    disk.move("mid", "new", "1\n2\n3\nfour\n")
    disk.user("new", "mine\n1\n2\n3\nfour\n")
    undone = disk.undo()
    assert texts(disk.files) == {"old": "mine\n1\n2\n3\n4\n"}
    disk.changes = undone
    disk.undo()
    assert texts(disk.files) == {"new": "mine\n1\n2\n3\nfour\n"}


def test_the_two_ends_of_a_move_are_a_conflict_together() -> None:
    disk = Disk()
    disk.user("old", "1\n2\n3\n")
    disk.move("old", "new", "1\n2\nthree\n")
    disk.user("new", "1\n2\nTHREE\n")
    now = dict(disk.files)
    assert all(taken.problem for taken in disk.back().values())
    disk.user("new", "1\n2\nthree\n")
    disk.user("old", "somebody else's\n")
    assert all(taken.problem for taken in disk.back().values())
    assert disk.undo() == [] and disk.files.keys() == now.keys()


def test_a_move_whose_other_end_cannot_be_looked_at_stays() -> None:
    disk = Disk()
    disk.user("old", "1\n")
    disk.move("old", "new", "1\n")
    contents = Contents(text, lambda text, like: text.encode(), disk.blobs)
    for path in ("old", "new"):
        (taken,) = take_back([disk.changes], {path: disk.files[path]}, contents)
        assert "other end" in taken.problem and taken.now == disk.files[path]


def test_a_file_that_came_and_went_is_nobodys_business() -> None:
    disk = Disk()
    disk.agent("temporary", "x\n")
    disk.agent("temporary", None)
    disk.user("temporary", "the person's\n")
    assert disk.back() == {} and net([disk.changes]) == []


def test_contents_that_are_lost_are_said() -> None:
    disk = Disk()
    disk.user("a", "1\n")
    disk.agent("a", "2\n")
    disk.blobs.clear()
    assert "no longer known" in disk.back()["a"].problem


def test_a_change_that_perhaps_never_happened() -> None:
    disk = Disk()
    disk.user("a", "1\n2\n3\n")
    was, never = disk.files["a"], disk.there("1\nnever\n3\n")
    disk.changes.append(change("a", was.version, never.version))
    disk.agent("a", "1\n2\nthree\n")
    disk.user("a", "one\n2\nthree\n")
    disk.undo()
    assert disk.read("a") == "one\n2\n3\n"


def test_line_ends_of_others_stay() -> None:
    disk = Disk()
    disk.user("a", "1\r\n2\r\n3\r\n4")
    disk.agent("a", "1\r\ntwo\r\n3\r\n4")
    disk.user("a", "1\r\ntwo\r\n3\r\n4\n")
    disk.undo()
    assert disk.read("a") == "1\r\n2\r\n3\r\n4\n"


NAMES = st.sampled_from(["a", "b", "c"])
LINES = st.lists(st.sampled_from(["x\n", "y\n", "z\n", "\n"]), max_size=6)


@st.composite
def sequences(draw: st.DrawFn) -> Disk:
    disk = Disk()
    for name in ("a", "b"):
        disk.user(name, "".join(draw(LINES)))
    for number in range(draw(st.integers(1, 8))):
        name = draw(NAMES)
        now = disk.read(name)
        if draw(st.booleans()):
            kept = (now or "").splitlines(keepends=True)
            at = draw(st.integers(0, len(kept)))
            disk.user(name, "".join([*kept[:at], f"user {number}\n", *kept[at:]]))
        elif now is None or draw(st.booleans()):
            kept = (now or "").splitlines(keepends=True)
            at = draw(st.integers(0, len(kept)))
            cut = draw(st.integers(0, 2))
            mine = [line for line in kept[at : at + cut] if line.startswith("user")]
            disk.agent(name, "".join([*kept[:at], f"agent {number}\n", *mine, *kept[at + cut :]]))
        elif "user" not in now:
            disk.agent(name, None)
    return disk


def user_lines(files: Mapping[str, There]) -> list[str]:
    found = "".join(texts(files).values()).splitlines()
    return sorted(line for line in found if line.startswith("user"))


@given(sequences())
def test_no_line_of_the_person_is_lost_and_redo_gives_it_all_back(disk: Disk) -> None:
    before = dict(disk.files)
    stuck = {path for path, taken in disk.back().items() if taken.problem}
    undone = disk.undo()
    assert user_lines(disk.files) == user_lines(before)
    assert all(disk.files[path] == before.get(path, There()) for path in stuck)
    touched = {c.path for c in disk.changes} - stuck
    assert not any("agent" in (disk.read(path) or "") for path in touched)
    disk.changes = undone
    disk.undo()
    assert texts(disk.files) == texts(before)


@given(sequences())
def test_taking_back_what_is_taken_back_changes_nothing(disk: Disk) -> None:
    """A restore that died in the middle is begun anew from its plan."""
    live = dict(disk.files)
    planned = disk.undo()
    reversed_ = [
        FileChange(path=c.path, before=c.after, after=c.before, was=c.now, now=c.was)
        for c in planned
    ]
    for again in disk.back(reversed_).values():
        assert again.problem == "" and again.now.version == disk.files[again.path].version
    disk.files = live
    for wanted in disk.back(reversed_).values():
        (made,) = [c for c in planned if c.path == wanted.path]
        assert wanted.now.version == version(made.after, made.now)
