"""This module reads whole files: a line with the name, then the content in a fence. When the tool
names the file, the text is its content, and the readers take off a name and a fence around it."""

from __future__ import annotations

from collections.abc import Sequence

from magy_server.edits.formats.heading_names import path_before, path_on
from magy_server.edits.formats.stream import Fence, LineReader
from magy_server.edits.model import FileEdit

VALID = (
    "Write each file as: its name alone on a line, an opening fence (```), its content, a closing "
    "fence."
)
_COMMANDS = {"bash", "console", "fish", "output", "powershell", "sh", "shell", "terminal", "zsh"}
"""Languages of blocks that show commands rather than files."""
_MARKDOWN = (".md", ".markdown", ".mdx", ".mdown", ".qmd", ".rmd")


class Nesting:
    """Fenced blocks inside a fenced block; one with a language opens, one without closes."""

    def __init__(self, outer: Fence) -> None:
        self._open = [outer]

    def ends(self, line: str) -> bool:
        """Whether the outermost block ends with this line, the next one of it."""
        fence, outer = Fence.of(line), self._open[0]
        if fence is None or not fence.marks.startswith(outer.marks):
            return False  # as in Markdown: a shorter fence is content
        if fence.language:
            if line[0] == fence.marks[0]:
                self._open.append(fence)
            return False
        if self._open[-1].closes(line):
            self._open.pop()
        return not self._open


class NamedWholeReader(LineReader):
    """The content of one file, known only at its end."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._lines: list[str] = []
        self._unended = False

    def finish(self) -> None:
        self._unended = any(self._parts)
        super().finish()

    def line(self, line: str) -> None:
        self._lines.append(line)

    def end(self) -> None:
        lines = unwrapped(self._lines, self.path)
        content = "".join(line + "\n" for line in (self._lines if lines is None else lines))
        if lines is None and self._unended:
            content = content.removesuffix("\n")
        self.found.add(FileEdit(self.path, "write", content=content))


def unwrapped(lines: Sequence[str], path: str) -> Sequence[str] | None:
    """What is inside the fence when all of it is in one, else None."""
    full = [at for at, line in enumerate(lines) if line.strip()]
    if len(full) < 2:
        return None
    first, last = full[0], full[-1]
    name = path_on(lines[first])
    named = bool(name) and (path == name or path.endswith("/" + name) or name.endswith("/" + path))
    if named:
        first = full[1]
    fence = Fence.of(lines[first])
    if fence is None or first == last:
        return None
    if path.lower().endswith(_MARKDOWN) and not (named or fence.language in ("md", "markdown")):
        return None  # a page may well be one block of code
    nesting = Nesting(fence)
    end = next((at for at in range(first + 1, last + 1) if nesting.ends(lines[at])), None)
    return lines[first + 1 : last] if end == last else None


class WholeReader(LineReader):
    def __init__(self, path: str = "") -> None:
        super().__init__(path)
        self._before: list[str] = []
        self._name = ""
        self._opened = 0
        self._nesting: Nesting | None = None
        self._content: list[str] = []

    def line(self, line: str) -> None:
        if self._nesting is None:
            self._outside(line)
        elif self._nesting.ends(line):
            if self._name:
                content = "".join(self._content)
                self.found.add(FileEdit(self._name, "write", content=content))
            self._nesting, self._content = None, []
        elif self._name:
            self._content.append(line + "\n")

    def _outside(self, line: str) -> None:
        self._before = [*self._before[-2:], line]
        fence = Fence.of(line)
        if fence is None:
            return
        self._name = path_before(self._before) or _beside(line, fence)
        if not self._name and fence.language.lower() not in _COMMANDS:
            raise self.refuse(f"no file is named before this block. {VALID}", shown=line)
        self._opened, self._nesting, self._before = self.number, Nesting(fence), []

    def end(self) -> None:
        if self._nesting:
            raise self.refuse(
                f"the block that begins here does not end. {VALID}", line=self._opened
            )
        if not self.found.known():
            raise self.refuse(f"there is no file in it. {VALID}", line=self.number or 1)


def _beside(line: str, fence: Fence) -> str:
    """The name after the language: `python greet.py`, `python:greet.py`, `js title="greet.js"`."""
    rest = line.strip().lstrip("`~").strip()
    for mark in ("=", " ", ":"):
        name = rest.rpartition(mark)[2].strip("\"'{}() ") if mark in rest else ""
        if "." in name.strip("."):
            return name
    return ""
