"""Takes the pictures of the Neovim page: part of `make screenshots`.

A real Neovim, a real server, the scripted model of the Emacs guide's pictures. Neovim says what it
draws, cell by cell, as it does to every terminal; a browser that nobody sees makes a picture of it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP))  # for `tests`, which is not installed

from scripts.screenshots import CODE, IMAGES, SCRIPT, fresh_home  # noqa: E402
from tests import guard  # noqa: E402
from tests.clients.nvim.conftest import environment  # noqa: E402
from tests.clients.nvim.embedded import Neovim, neovim  # noqa: E402
from tests.clients.vscode.driven import browser, chromium  # noqa: E402

LINES, COLUMNS = 34, 100
STYLE = """
body { margin: 0; width: max-content; font: 15px/20px "DejaVu Sans Mono", monospace; }
p { margin: 0; white-space: pre; height: 20px; font-size: 0; }
i { display: inline-block; width: 9px; height: 20px; font-size: 15px; font-style: normal; }
"""
"""Cells of whole points: between others one sees the page."""

TRANSCRIPT = """
vim.api.nvim_set_current_win(vim.fn.bufwinid("^magy://mailer$"))
vim.cmd("normal! gg")
"""
"""Goes to the beginning of the transcript."""


class Screen:
    """What a Neovim draws, with its colours."""

    def __init__(self, editor: Neovim) -> None:
        self._editor = editor
        self._cells = [[(" ", 0)] * COLUMNS for _ in range(LINES)]
        self._looks: dict[int, dict[str, Any]] = {0: {}}
        self._colours, self._cursor = (0, 0xFFFFFF), (0, 0)
        editor.told = self._told
        editor.request("nvim_ui_attach", COLUMNS, LINES, {"rgb": True, "ext_linegrid": True})

    def _told(self, method: str, params: list[Any]) -> None:
        for name, *calls in params if method == "redraw" else []:
            for call in calls:
                self._draw(name, call)

    def _draw(self, name: str, call: list[Any]) -> None:
        match name, call:
            case "default_colors_set", [foreground, background, *_]:
                self._colours = foreground, background
            case "hl_attr_define", [id, look, *_]:
                self._looks[id] = look
            case "grid_clear", _:
                self._cells = [[(" ", 0)] * COLUMNS for _ in range(LINES)]
            case "grid_cursor_goto", [_, row, column]:
                self._cursor = row, column
            case "grid_line", [_, row, column, cells, *_]:
                look = 0
                for text, *more in cells:
                    look = more[0] if more else look
                    for _ in range(more[1] if len(more) > 1 else 1):
                        self._cells[row][column] = (text, look)
                        column += 1
            case "grid_scroll", [_, top, bottom, left, right, rows, *_]:
                order = range(top, bottom) if rows > 0 else range(bottom - 1, top - 1, -1)
                for row in order:
                    if top <= row + rows < bottom:
                        self._cells[row][left:right] = self._cells[row + rows][left:right]

    def html(self) -> str:
        """The screen as a page."""
        for _ in range(2):  # what is drawn comes before the next answer
            self._editor.command("redraw")
        rows = (
            "".join(self._cell(row, column) for column in range(COLUMNS)) for row in range(LINES)
        )
        body = "".join(f"<p>{row}</p>" for row in rows)
        return f"<!doctype html><meta charset=utf-8><style>{STYLE}</style><body>{body}"

    def _cell(self, row: int, column: int) -> str:
        text, id = self._cells[row][column]
        look = self._looks[id]
        front = look.get("foreground", self._colours[0])
        back = look.get("background", self._colours[1])
        if look.get("reverse", False) != ((row, column) == self._cursor):
            front, back = back, front
        style = f"color:#{front:06x};background:#{back:06x}"
        style += ";font-weight:bold" if look.get("bold") else ""
        style += ";font-style:italic" if look.get("italic") else ""
        lines = [name for name in ("underline", "undercurl") if look.get(name)]
        style += ";text-decoration:underline" if lines else ""
        return f'<i style="{style}">{escape(text)}</i>'


def transcript(one: Neovim) -> None:
    """An answer, its edits, and a question that waits."""
    one.command("Magy")
    one.keys("a field is lost. Why?<C-s>")
    one.until_seen("? Run pytest", "A lasting yes", "? asks")
    one.keys("<Esc>")
    one.command("wincmd k")


def question(one: Neovim) -> None:
    """The same question while the transcript is closed: a panel that does not take the focus."""
    one.command("Magy close")
    one.command("normal! gg")
    one.until_seen("Magy asks", "asked because")


def review(one: Neovim) -> None:
    """Changes in the file, one of them at the cursor."""
    one.command("Magy refuse I run them myself")
    one.until_lua("return require('magy').status().state == 'idle'")
    one.command("normal! gg")
    one.command("Magy next")
    one.until_seen("accept", "return name, value")


def agents(one: Neovim) -> None:
    """The tree of agents, one of which asks, below the transcript of their parent."""
    one.command("Magy accept file")
    one.command("Magy new")
    one.until_lua("return require('magy').status().review == 0")
    one.command("Magy")
    one.keys("have two agents look at the parser<C-s>")
    one.until_seen("? Spawn general")
    one.command("Magy allow")
    one.until_seen("is at work still", "? Run python")
    one.keys("<Esc>")
    one.command("Magy children")
    one.until_seen("1 question", "completed · 1.1k tokens  Only")
    one.keys("j")


def graph(one: Neovim) -> None:
    """A graph of tasks as it runs: one is done, one asks, one waits for both."""
    one.command("Magy allow")
    one.until_lua("return require('magy').status().questions == 0")
    one.lua("vim.cmd.buffer(vim.fn.bufnr('header.py')); vim.cmd.only()")
    one.command("Magy new")
    one.command("Magy")
    one.keys("have the release notes written<C-s>")
    one.until_seen("Any yes would allow")
    one.command("Magy allow")
    one.until_seen("? Run python")
    one.keys("<Esc>")
    one.lua(TRANSCRIPT)
    one.until_seen("changes (explore): completed", "callers (general): asking")


def magi(one: Neovim) -> None:
    """Three votes, who disagrees with whom, and the ruling."""
    one.command("Magy allow")
    one.until_lua("return require('magy').status().state == 'idle'")
    one.command("Magy new")
    one.command("Magy magi Should fields be stripped of blanks?")
    one.until_seen("Any yes would allow")
    one.command("Magy allow")
    one.until_seen("and one disagrees")
    one.lua(TRANSCRIPT)


SCENES: dict[str, Callable[[Neovim], None]] = {
    "transcript": transcript,
    "question": question,
    "review": review,
    "agents": agents,
    "graph": graph,
    "magi": magi,
}


def take(background: str) -> Iterator[tuple[str, str]]:
    """Plays all scenes; gives the name of each and its screen as a page."""
    with tempfile.TemporaryDirectory() as place, fresh_home():
        root = Path(place) / "mailer"
        (root / ".git").mkdir(parents=True)
        (root / "header.py").write_text(CODE, "utf-8")
        env = environment(SCRIPT)
        look = f"set background={background} termguicolors shortmess+=I laststatus=2"
        words = ("--cmd", look, "header.py")
        with neovim(root, env, *words, lines=LINES, columns=COLUMNS) as one:
            screen = Screen(one)
            one.lua("require('magy').setup({ prefix = '<Leader>m', window = { size = 0.65 } })")
            for scene, play in SCENES.items():
                play(one)
                yield scene, screen.html()


def main() -> None:
    guard.find_cached_programs(os.environ)
    if browser() is None:
        sys.exit("No pictures of Neovim: chromium is not installed (.ci/programs installs it)")
    pages = {
        f"neovim-{scene}-{background}": html
        for background in ("light", "dark")
        for scene, html in take(background)
    }
    with chromium() as window:
        page = window.new_page(device_scale_factor=2)
        for name, html in pages.items():
            picture = IMAGES / f"{name}.png"
            page.set_content(html)
            page.locator("body").screenshot(path=picture)
            print(picture.relative_to(TOP), f"{picture.stat().st_size // 1024} KB", flush=True)


if __name__ == "__main__":
    main()
