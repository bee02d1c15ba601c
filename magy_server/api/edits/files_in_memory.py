"""This module makes edits in memory first, of files on disk or of files as an editor shows them.

An edit sees what the ones before it made of its file. Encodings, byte order marks, line ends and
modes stay; where a path is a link inside the directory, the file it leads to is meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, field

from magy_server.core.errors import ToolError
from magy_server.core.values import Version
from magy_server.dataclass import dataclass
from magy_server.edits.formats.diff_names import quoted
from magy_server.edits.model import Failure, FileEdit, Hunk, Placed, Resolved
from magy_server.edits.plan import plan, plan_text
from magy_server.edits.rebasing.diff import apply, changes, unified
from magy_server.edits.text import plain
from magy_server.tools.files.encodings import Encoding, decode, encode
from magy_server.tools.files.paths import Place, missing

WHOLE = 1 << 62
"""Characters of a diff: none is left out."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an edit was refused. `hunk` counts from 0; None: all of the file's edit."""

    path: str
    code: str
    message: str
    hunk: int | None = None
    lines: tuple[int, ...] = ()


def faults(failures: Iterable[Failure], path: str = "") -> list[Fault]:
    return [Fault(path, one.code, one.message, one.hunk, one.lines) for one in failures]


class Refused(Exception):
    """An edit that cannot be made, for one reason or several."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__()
        self.faults = faults


@dataclass(slots=True)
class File:
    """A file as it is (`was`, `data`, `before`) and as it will be (`after`); None means that there
    is no file."""

    place: Place
    was: Version
    data: bytes
    mode: int
    encoding: Encoding = field(default_factory=Encoding)
    before: str | None = None
    after: str | None = None
    readable: bool = True
    """It is text. A file that is not can only be removed or renamed."""
    moved_from: File | None = None
    moved_to: File | None = None
    whole: bool = False
    """Its whole text is replaced."""
    placed: list[Placed] = field(default_factory=list)

    @property
    def op(self) -> str:
        if self.moved_from:
            return "rename"
        if self.was.hash is None or self.moved_to:
            return "create"
        return "delete" if self.after is None else "update"

    @property
    def concerned(self) -> bool:
        """Whether anything happens to it that is not told of another file."""
        if self.moved_to and self.after is None:
            return False
        return self.moved_from is not None or self.after != self.before

    @property
    def content(self) -> bytes:
        """Returns what the file will hold. Raises ToolError when its encoding cannot hold that."""
        if self.after == self.before and not self.moved_to:
            return self.data
        return encode(self.after or "", self.encoding, self.place.name)

    def diff(self) -> str:
        """Returns the whole diff, as git would show it."""
        origin = self.moved_from or self
        before = None if self.moved_to else origin.before
        name, old = self.place.name, origin.place.name
        head = f"diff --git {quoted(f'a/{old}')} {quoted(f'b/{name}')}\n"
        if self.op == "rename":
            head += f"rename from {quoted(old)}\nrename to {quoted(name)}\n"
        elif self.op == "create":
            head += "new file mode 100644\n"
        elif self.op == "delete":
            head += "deleted file mode 100644\n"
        body = unified(before, self.after, "\0", WHOLE) if self.readable else ""
        left, right = f"--- {quoted(f'a/{old}')}\n", f"+++ {quoted(f'b/{name}')}\n"
        body = body.replace("--- a/\0\n", left, 1).replace("+++ b/\0\n", right, 1)
        return head + body


@dataclass(frozen=True, slots=True)
class Tree:
    """The files that the edits touch.

    `resolve` finds the place of a path, `load` what is there; ToolError refuses it. `linked`:
    whether a path names the place through a link. `seen`: the text that the edits were made for.
    With `creates`, a file that an edit only adds to may be new.
    """

    resolve: Callable[[str], Place]
    load: Callable[[Place], File]
    linked: Callable[[str, Place], bool]
    seen: str | None
    _: KW_ONLY
    creates: bool
    _files: dict[str, File] = field(default_factory=dict, init=False)

    def changed(self) -> list[File]:
        return [file for file in self._files.values() if file.concerned]

    def apply(self, edits: Iterable[FileEdit]) -> list[Fault]:
        """Makes edits in memory, and returns why some cannot be made. Those leave their files
        unchanged."""
        found: list[Fault] = []
        for edit in edits:
            try:
                self._apply(edit)
            except Refused as refused:
                found += refused.faults
            except ToolError as error:
                found.append(Fault(edit.path, "refused", error.message))
        return found

    def _apply(self, edit: FileEdit) -> None:
        """Raises Refused, ToolError."""
        file = self._file(edit.path)
        match edit.op:
            case "create":
                self._create(file, edit.content)
            case "write":
                self._write(file, edit.content)
            case "delete":
                self._delete(file, edit)
            case "update":
                self._update(file, edit)
        if file.after is not None:
            file.content  # noqa: B018 - an encoding that cannot hold it is said now

    def _file(self, path: str) -> File:
        place = self.resolve(path)
        if place.path not in self._files:
            self._files[place.path] = self.load(place)
        return self._files[place.path]

    def _create(self, file: File, content: str) -> None:
        if file.after is None:
            _begin(file, content)
        elif plain(file.after) != content:
            text = (
                f"{file.place.name} already exists with a different text; it was not overwritten. "
                "Change that file instead, or delete it first."
            )
            raise Refused(Fault(file.place.name, "exists", text))

    def _write(self, file: File, content: str) -> None:
        if file.after is None:
            _begin(file, content)
            return
        file.whole = True
        self._take(file, plan_text(_text(file), content, self.seen))

    def _delete(self, file: File, edit: FileEdit) -> None:
        self._check_real(edit.path, file)
        if edit.hunks:
            self._hunks(file, edit.hunks)
            if (file.after or "").strip():
                file.after = file.before
                text = (
                    f"{file.place.name} contains more than the diff removes, so it was not "
                    "deleted. Read what it contains now."
                )
                raise Refused(Fault(file.place.name, "conflict", text))
        file.after = None

    def _update(self, file: File, edit: FileEdit) -> None:
        if file.after is None and self.creates and not edit.to and _only_adds(edit.hunks):
            _begin(file, "".join(hunk.new for hunk in edit.hunks))
            return
        if edit.to:
            self._check_real(edit.path, file)
        elif file.after is None:
            raise _unknown(file)
        target = self._file(edit.to) if edit.to else file
        if target is not file:
            self._check_free(target, file)
        if edit.hunks:
            self._hunks(file, edit.hunks)
        if target is not file:
            _move(file, target)

    def _hunks(self, file: File, hunks: Sequence[Hunk]) -> None:
        self._take(file, plan(_text(file), hunks, self.seen))

    def _take(self, file: File, resolved: Resolved) -> None:
        if resolved.failures:
            raise Refused(*faults(resolved.failures, file.place.name))
        file.after = apply(_text(file), resolved.changes)
        file.placed += resolved.placed

    def _check_real(self, path: str, file: File) -> None:
        """Raises ToolError for a link: it cannot stand for a file that an edit removes or
        renames."""
        if file.after is None:
            raise _unknown(file)
        if self.linked(path, file.place):
            raise ToolError(
                f"{path} is a symbolic link to {file.place.name}; this command does not remove or "
                "rename links. Name the file itself, or use rm or mv."
            )

    def _check_free(self, target: File, file: File) -> None:
        name = target.place.name
        if target.was.hash is not None or target.after is not None:
            text = (
                f"{name} already exists; {file.place.name} was not renamed to it. Choose another "
                "name, or delete that file first."
            )
            raise Refused(Fault(file.place.name, "exists", text))
        if file.moved_from or file.was.hash is None:
            raise ToolError(
                f"{file.place.name} does not exist yet; use the name that it will have after the "
                "edit."
            )


def _text(file: File) -> str:
    """Returns the text that the edits before have left. Raises Refused, and ToolError for what is
    not text."""
    if not file.readable:
        decode(file.data, file.place.name)
    if file.after is None:
        raise _unknown(file)
    return file.after


def _only_adds(hunks: Sequence[Hunk]) -> bool:
    return bool(hunks) and all(not h.old and not h.anchors and h.line in (None, 1) for h in hunks)


def _begin(file: File, content: str) -> None:
    """Begins a file that is not there, or that an edit before has removed: Magy writes it anew,
    with its old line ends."""
    if not file.readable:
        file.readable, file.before = True, None
    old = "" if file.moved_to else file.before or ""
    file.after = apply(old, changes(old, content, 0, len(old)))


def _unknown(file: File) -> Refused:
    if file.was.hash is not None:
        message = f"{file.place.name} was already removed or renamed earlier in this edit."
    else:
        message = missing(file.place)
    return Refused(Fault(file.place.name, "unknown_file", message))


def _move(file: File, target: File) -> None:
    target.after, target.encoding, target.readable = file.after, file.encoding, file.readable
    target.data, target.mode, target.before = file.data, file.mode, file.before
    target.placed, file.placed = file.placed, []
    target.moved_from, file.moved_to, file.after = file, target, None
