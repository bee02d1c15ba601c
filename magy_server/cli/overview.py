"""`magy help` shows the most useful commands in a few lines, for a terminal of any width."""

from __future__ import annotations

import textwrap

TITLE = "Magy runs coding agents: in your editor, and here in the terminal."
COMMANDS = (
    ('magy run "Why do the tests fail?"', "give an agent a task in this directory"),
    ('magy run -c "Now fix it."', "continue the newest session here"),
    ("magy sessions", "the sessions of this project; show, undo or continue one"),
    ("magy agents", "the agents at work here, as a tree"),
    ("magy models", "the models to choose from: magy run --model NAME"),
    ('magy magi "Should we ship it?"', "three agents judge it, and a ruling follows from that"),
    ("magy permissions", "what you allowed for good; withdraw it"),
    ("magy skills", "texts that tell agents how a kind of work is done; write and install them"),
    ("magy plugins", "what installed packages add to Magy; switch them on and off"),
    ("magy mcp", "the MCP servers that give agents tools; add, test, import them"),
    ("magy demo", "watch an agent do a whole task; no key needed"),
    ("magy doctor", "what is missing, and how to fix it"),
    ("magy --help", "every command; `magy COMMAND --help` says more"),
)
EDITOR = "Your editor starts `magy lsp` by itself: docs/start in Magy's source says how."
COLUMN = 39
"""Where the words about a command begin, where they stand beside it."""
NARROW = COLUMN + 36
"""Columns from which they do."""


def overview(width: int) -> str:
    """Returns the page, with no row longer than `width` columns."""
    rows = [row for command, what in COMMANDS for row in _rows(command, what, width)]
    return "\n".join([*_filled(TITLE, width), "", *rows, "", *_filled(EDITOR, width)])


def _rows(command: str, what: str, width: int) -> list[str]:
    if width < NARROW:
        return [f"  {command}", *_filled(what, width, "      ")]
    first, *rest = _filled(what, width, " " * COLUMN)
    return [f"  {command}".ljust(COLUMN) + first[COLUMN:], *rest]


def _filled(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent,
                         break_long_words=False, break_on_hyphens=False)  # fmt: skip
