"""This package reads edits as models write them, in any of the usual formats, into `FileEdit`s.

    parse(format, text, path) -> [FileEdit]          Parser(format, path): the same while it streams
    detect(text) -> format

| format | |
|---|---|
| `str_replace` | JSON: `old_text`, `new_text`, or `insert`; one, a list, or with `edits` |
| `aider` | a file's name, then `<<<<<<< SEARCH`, `=======`, `>>>>>>> REPLACE` |
| `cline` | `------- SEARCH`, `=======`, `+++++++ REPLACE` |
| `roo` | as `aider`, with `:start_line:N` and `-------` after the first marker |
| `unified` | a diff; its numbers are hints and may be missing |
| `v4a` | `*** Begin Patch` ... `*** End Patch` |
| `whole` | a file's name, then its whole content in a fence |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from magy_server.edits.formats.blocks import BlockReader
from magy_server.edits.formats.detect import detect
from magy_server.edits.formats.str_replace import StrReplaceReader
from magy_server.edits.formats.stream import Reader
from magy_server.edits.formats.unified import UnifiedReader
from magy_server.edits.formats.v4a import V4AReader
from magy_server.edits.formats.whole import NamedWholeReader, WholeReader
from magy_server.edits.model import EditError, FileEdit

__all__ = ["FORMATS", "Parser", "detect", "parse"]

_READERS: Mapping[str, Callable[[str], Reader]] = {
    "str_replace": StrReplaceReader,
    "aider": lambda path: BlockReader("aider", path),
    "cline": lambda path: BlockReader("cline", path),
    "roo": lambda path: BlockReader("roo", path),
    "unified": UnifiedReader,
    "v4a": V4AReader,
    "whole": lambda path: NamedWholeReader(path) if path else WholeReader(),
}
FORMATS = tuple(_READERS)


class Parser:
    """Reads an edit while it streams, cut anywhere: the result depends on the text alone.

    Each answer begins with what the one before had; only the last file may have got more hunks.
    A file that is created, or written whole, is given when all of its content is there. Only
    complete lines (of JSON: complete objects) count. Time is linear in the text.
    """

    def __init__(self, format: str, path: str = "") -> None:
        """`path`: whose edit it is where the text names no file. Raises ValueError for a format
        that does not exist."""
        if format not in _READERS:
            raise ValueError(f"there is no format {format!r}; known are {', '.join(FORMATS)}")
        self._reader = _READERS[format](path)
        self._error: EditError | None = None
        self._finished = False

    def feed(self, chunk: str) -> list[FileEdit]:
        """Returns all edits that are known by now. `finish` reports what is wrong."""
        if self._finished:
            raise ValueError("the edit is finished")
        if self._error is None:
            self._attempt(lambda: self._reader.feed(chunk))
        return self._reader.edits()

    def finish(self) -> list[FileEdit]:
        """Returns all edits. Raises EditError, with code `parse`, when any part of the text is
        wrong."""
        if not self._finished and self._error is None:
            self._attempt(self._reader.finish)
        self._finished = True
        if self._error:
            raise self._error
        return self._reader.edits()

    def _attempt(self, step: Callable[[], None]) -> None:
        try:
            step()
        except EditError as error:
            self._error = error


def parse(format: str, text: str, path: str = "") -> list[FileEdit]:
    """The edits in `text`, in order; more than one may be of the same file. `path`: whose edit it
    is where the text names no file. Raises EditError (code `parse`), and ValueError for a format
    that does not exist."""
    parser = Parser(format, path)
    parser.feed(text)
    return parser.finish()
