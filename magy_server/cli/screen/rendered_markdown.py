"""Rich renders Markdown for a terminal as it streams. What is whole is written for good; the
block under way is a draft, which the caller draws below that and wipes again.

Nothing is hidden: HTML is text, a link shows where it leads, line ends stay, and long words and
lines of code are left to the terminal, so that they can be copied.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich import markdown as rich_markdown
from rich.cells import cell_len
from rich.color import ColorSystem
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.syntax import Syntax
from rich.text import Text
from rich.theme import Theme

from magy_server.cli.screen.text import Span
from magy_server.core.text.columns import breaks, shortened, width_of

WIDTH, HEIGHT = 80, 24
"""The size of a screen that does not say it."""
NARROW = 10
"""A text has at least so many columns."""
NO_BACKGROUND = "49"
BULLET = " • "
QUOTE = "▌ "
STYLES = {
    "markdown.code": "cyan", "markdown.h1": "bold blue", "markdown.h2": "bold blue",
    "markdown.h3": "bold blue", "markdown.h4": "bold blue", "markdown.h5": "bold blue",
    "markdown.h6": "bold blue", "markdown.block_quote": "dim", "markdown.item.bullet": "none",
    "markdown.item.number": "none", "markdown.link": "none", "markdown.link_url": "blue",
    "markdown.table.border": "dim", "markdown.table.header": "bold", "markdown.hr": "dim",
}  # fmt: skip


class Block(NamedTuple):
    """A block of a text: its lines [start, end), and whether it is fenced code."""

    start: int
    end: int
    fenced: bool


class Rendered:
    """`feed` gives what can be written for good; `close` the rest; `draft` what is under way."""

    def __init__(self) -> None:
        self._pending = ""
        self._begun = False
        """Something was written, from which blank lines set off what follows."""

    def feed(self, text: str, width: int | None) -> list[Span]:
        self._pending += text
        return self._whole(width or WIDTH, last=False) if "\n" in text else []

    def close(self, width: int | None) -> list[Span]:
        return self._whole(width or WIDTH, last=True)

    @property
    def under_way(self) -> bool:
        return bool(self._pending.strip())

    def draft(self, width: int | None, height: int | None) -> list[Span]:
        """What is under way, as it is rendered now: its last lines, if it is higher than a screen
        of `height` lines."""
        if not self.under_way:
            return []
        width, height = width or WIDTH, max(1, (height or HEIGHT) - 2)
        lines = self._pending.strip("\n").split("\n")
        tail = lines[-height:]
        if len(tail) < len(lines) and (found := _blocks(self._pending)) and found[-1].fenced:
            tail.insert(0, self._pending.split("\n")[found[-1].start])
        rows = [_cropped(row, width) for row in _lines(_rendered("\n".join(tail), width))]
        blank = [[("", "")]] if self._begun and self._pending.startswith("\n") else []
        return _joined([*blank, *rows][-height:])[:-1]

    def _whole(self, width: int, *, last: bool) -> list[Span]:
        lines = self._pending.split("\n")
        found = _blocks(self._pending)
        done = found if last else found[:-1]
        spans: list[Span] = []
        before = 0
        for block in done:
            if self._begun and any(not line.strip() for line in lines[before : block.start]):
                spans.append(("\n", ""))
            text = "\n".join(lines[block.start : block.end])
            spans += _joined(_lines(_rendered(text, width)))
            self._begun, before = True, _ended(lines, block)
        if done:
            self._pending = "" if last else "\n".join(lines[before:])
        return spans


def _ended(lines: Sequence[str], block: Block) -> int:
    """Returns the line after the last that is not blank."""
    end = block.end
    while end > block.start and not lines[end - 1].strip():
        end -= 1
    return end


@cache
def _parser() -> MarkdownIt:
    """A definition of a link would not be shown."""
    made = MarkdownIt("commonmark", {"html": False})
    return made.enable(["strikethrough", "table"]).disable(["reference", "html_block"])


def _blocks(text: str) -> list[Block]:
    return [
        Block(token.map[0], token.map[1], token.type == "fence")
        for token in _parser().parse(text)
        if token.level == 0 and token.map and token.nesting >= 0
    ]


# --- to spans -----------------------------------------------------------------------------------


def _rendered(text: str, width: int) -> Iterable[Segment]:
    console = Console(
        file=io.StringIO(), width=width, theme=Theme(STYLES), color_system="standard",
        legacy_windows=False, force_terminal=True,
    )  # fmt: skip
    return console.render(_Markdown(text))


def _lines(segments: Iterable[Segment]) -> list[list[Span]]:
    """Without the blanks to the end of the line that Rich fills up with, and those of blank lines
    before and after all."""
    lines = []
    for line in Segment.split_lines(Segment.simplify(segments)):
        spans = [(part.text, _code(part.style)) for part in line if not part.control]
        while spans and not spans[-1][0].strip():
            spans.pop()
        if spans:
            spans[-1] = (spans[-1][0].rstrip(), spans[-1][1])
        lines.append(spans)
    while lines and not lines[-1]:
        lines.pop()
    while lines and not lines[0]:
        del lines[0]
    return lines


def _cropped(line: list[Span], width: int) -> list[Span]:
    """Returns the beginning of a draft: the terminal could not wipe one that took more rows than it
    has."""
    spans = []
    for text, style in line:
        spans.append((shortened(text, width, ""), style))
        width -= width_of(spans[-1][0])
    return spans


def _joined(lines: Iterable[list[Span]]) -> list[Span]:
    return [span for line in lines for span in [*line, ("\n", "")]]


@cache
def _code(style: Style | None) -> str:
    """The parameters of the sequence that sets it."""
    if style is None:
        return ""
    before, begins, _ = style.render("x", color_system=ColorSystem.STANDARD).partition("m")
    codes = before.removeprefix("\x1b[").split(";") if begins else ()
    return ";".join(code for code in codes if code != NO_BACKGROUND)


# --- elements -----------------------------------------------------------------------------------


class _Markdown(rich_markdown.Markdown):
    def __init__(self, text: str) -> None:
        super().__init__("", code_theme="ansi_dark", hyperlinks=False)
        self.parsed = _parser().parse(text)
        for token in self.parsed:
            token.children = [*_shown(token.children)] if token.children else token.children


def _shown(tokens: Sequence[Token]) -> Iterable[Token]:
    """A line end stays one; a picture is what it is called, and where it is; an address stands for
    itself."""
    auto = False
    for token in tokens:
        if token.type == "softbreak":
            yield Token("hardbreak", "br", 0)
        elif token.type == "image":
            yield Token("text", "", 0, content=f"{token.content} ({token.attrs.get('src', '')})")
        elif token.type in ("link_open", "link_close") and token.info == "auto":
            auto = not auto
        else:
            yield token


class _Flowing:
    """Text that is wrapped only between words."""

    text: Text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self.text.split("\n", allow_blank=True):
            for part in line.divide(breaks(line.plain, options.max_width)):
                part.rstrip()
                yield from _unwrapped(console, part, options)


class _Paragraph(_Flowing, rich_markdown.Paragraph): ...


class _Heading(_Flowing, rich_markdown.Heading): ...


class _Code(rich_markdown.CodeBlock):
    """Code as it is, without blanks around it."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        syntax = Syntax(code, self.lexer_name, theme=self.theme, background_color="default")
        for line in syntax.highlight(code).split("\n"):
            yield from _unwrapped(console, line, options)


class _Item(rich_markdown.ListItem):
    def render_bullet(self, console: Console, options: ConsoleOptions) -> RenderResult:
        return _behind(console, options, self.elements, BULLET)

    def render_number(
        self, console: Console, options: ConsoleOptions, number: int, last_number: int
    ) -> RenderResult:
        columns = len(str(last_number)) + 2
        return _behind(console, options, self.elements, f"{number}.".rjust(columns - 1) + " ")


class _Quote(rich_markdown.BlockQuote):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        return _behind(console, options, self.elements, QUOTE, QUOTE, self.style)


_Markdown.elements = {
    **rich_markdown.Markdown.elements,
    "paragraph_open": _Paragraph, "heading_open": _Heading, "fence": _Code, "code_block": _Code,
    "list_item_open": _Item, "blockquote_open": _Quote,
}  # fmt: skip


def _behind(
    console: Console,
    options: ConsoleOptions,
    inner: RenderableType,
    first: str,
    other: str = "",
    style: Style | None = None,
) -> RenderResult:
    """Returns `inner` with `first` before its first line, and `other` or blanks before the
    others."""
    width = max(NARROW, options.max_width - cell_len(first))
    lines = Segment.split_lines(console.render(inner, options.update(width=width)))
    for number, line in enumerate(lines):
        yield Segment(first if number == 0 else other or " " * cell_len(first), style)
        yield from Segment.apply_style(line, style)
        yield Segment.line()


def _unwrapped(console: Console, line: Text, options: ConsoleOptions) -> RenderResult:
    return console.render(line, options.update(no_wrap=True, overflow="ignore"))
