"""Texts and edits with everything in them that a format could take for its own."""

from __future__ import annotations

from hypothesis import strategies as st

from magy_server.edits.formats import FORMATS
from magy_server.edits.model import FileEdit

from .writing import edit_of, write

LINES = (
    "", " ", "a", "b", "  a", "\ta", "def greet():", "    return 'hello'", "-- a", "++ b", "- a",
    "-", "+", "--- a/x.py", "+++ b/x.py", "@@", "@@ -1 +1 @@", "@@ def greet():", "--", "-- ",
    "diff --git a/x b/x", "index 0123456..89abcde 100644", "*** Begin Patch", "*** End Patch",
    "*** Update File: a.py", "*** End of File", "***", "<<<<<<< SEARCH", "=======", "======= ",
    ">>>>>>> REPLACE", "------- SEARCH", "-------", "+++++++ REPLACE", "=====", "===",
    "===========", "\\=======", "\\\\=======", ":start_line:3", ":end_line:3",
    "\\:start_line:3", "<<<<<<< HEAD",
    "\\<<<<<<< HEAD", "```", "```python", "~~~", "EOF", "\\ No newline at end of file",
    "\\\\ No newline at end of file", "...", '"', "\\", "\\\"", "{", "}", "[", "]", "é",
    "\U0001f600", "\u2028", "\x0b", "\x00", "日本語",
)  # fmt: skip
"""Lines of a file that look like parts of an edit, and awkward ones."""
LINE = st.one_of(
    st.sampled_from(LINES),
    st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), max_size=8),
)
TEXT = st.tuples(st.lists(LINE, max_size=14), st.booleans()).map(
    lambda made: "\n".join(made[0]) + ("\n" if made[0] and made[1] else "")
)
CHANGED = ("aider", "cline", "roo", "unified", "v4a", "str_replace")
"""Formats of changes; `whole` has only whole files."""


@st.composite
def pairs(draw: st.DrawFn) -> tuple[str, str]:
    """Two different versions of a text."""
    before = draw(TEXT)
    lines = before.splitlines(keepends=True) if draw(st.booleans()) else [before]
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(lines)))
        to = draw(st.integers(at, min(len(lines), at + 2)))
        lines[at:to] = [line + "\n" for line in draw(st.lists(LINE, max_size=3))]
    after = "".join(lines)
    if draw(st.booleans()):
        after = after.removesuffix("\n")
    return before, after if after != before else before + "more\n"


@st.composite
def written(draw: st.DrawFn) -> tuple[str, str]:
    """(format, an edit in it), often damaged."""
    format = draw(st.sampled_from(FORMATS))
    edits: list[FileEdit] = []
    for path in draw(st.lists(st.sampled_from(["a.py", "b/c.py"]), min_size=1, max_size=3)):
        before, after = draw(pairs())
        whole = FileEdit(path, "write", content=after + ("" if after.endswith("\n") else "\n"))
        edits.append(whole if format == "whole" else edit_of(before, after, path))
    try:
        text = write(format, edits)
    except ValueError:
        text = ""
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text)))
        to = draw(st.integers(at, min(len(text), at + 9)))
        text = text[:at] + draw(st.one_of(LINE, LINE.map(lambda line: f"\n{line}\n"))) + text[to:]
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return format, draw(st.sampled_from(["", "\ufeff"])) + text
