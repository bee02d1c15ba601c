"""A person reviews, undoes and rewrites in a real Neovim, with the real server."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.clients.nvim.conftest import Start
from tests.clients.nvim.embedded import Neovim
from tests.clients.shop import PRICES, edit, script

REVIEW = "return require('magy').status().review"


def tidied(nvim: Neovim) -> None:
    """Has the three changes made, and waits until they are drawn."""
    nvim.command("Magy ask tidy the prices")
    nvim.until_lua("return require('magy').status().questions == 1")
    nvim.command("Magy allow")
    nvim.until_lua("return require('magy').status().state == 'idle'" + f" and ({REVIEW[7:]}) == 3")
    nvim.until_seen("-     return price * 1.19", "~     return round(price * 1.19, 2)")


@pytest.mark.req("G010", "G015")
def test_changes_are_accepted_rejected_amended_and_taken_back(start: Start, shop: Path) -> None:
    file = shop / "prices.py"
    with start(script(thinking=0), "prices.py") as nvim:
        tidied(nvim)
        there = nvim.lua("vim.api.nvim_feedkeys('gg]h]h[h', 'tx', false) return vim.fn.line('.')")
        assert there == 2, "at once, for macros"
        nvim.until_seen(":Magy accept  :Magy reject")
        nvim.lua("require('magy').setup({ prefix = '<Leader>m' })")
        nvim.keys("j")
        nvim.until("no hint there", lambda: ":Magy accept" not in nvim.seen())
        nvim.keys("k")
        nvim.until_seen(r"\m+ accept  \m- reject")
        nvim.command("new")
        nvim.until("no hint from afar", lambda: r"\m+ accept" not in nvim.seen())
        nvim.command("quit")
        nvim.until_seen(r"\m+ accept  \m- reject")
        nvim.command("Magy accept")
        nvim.until("on to the next", lambda: nvim.lua("return vim.fn.line('.')") == 6)
        nvim.until("two are left", lambda: nvim.lua(REVIEW) == 2)
        nvim.lua("vim.ui.input = function(_, done) done('the tax is exact') end")
        nvim.command("Magy reject!")
        nvim.until("the old line", lambda: "return price * 1.19" in nvim.text())
        nvim.until("on to the last", lambda: nvim.lua("return vim.fn.line('.')") == 10)
        nvim.command("Magy amend")
        nvim.until_seen(":w puts them there")
        nvim.command("quit")
        nvim.until("back in the file", lambda: nvim.lua("return vim.fn.bufname()") == "prices.py")
        nvim.command("Magy amend")
        nvim.keys("A.title()<Esc>")
        nvim.command("write")
        nvim.until("the person's line", lambda: "return name.strip().title()" in nvim.text())
        assert nvim.until("decided", lambda: nvim.lua(REVIEW) == 0)
        nvim.command("Magy unreview")
        nvim.until("taken back", lambda: nvim.lua(REVIEW) == 1)
        assert "return name.strip()\n" in nvim.text()
        assert "round(price, 2)" in nvim.text() and "price * 1.19" in file.read_text()


@pytest.mark.req("G010", "G011")
def test_lines_files_and_lists_are_decided(start: Start) -> None:
    with start(script(thinking=0), "prices.py") as nvim:
        tidied(nvim)
        nvim.keys("ggO# mine<Esc>")
        nvim.until_seen("# mine", "~     return round(price, 2)")
        nvim.command("Magy review")
        nvim.until_seen("change by build +1 -1  return round(price, 2)", "[Quickfix List]")
        nvim.command("cclose")
        nvim.keys("gg")
        nvim.command("Magy next")
        nvim.until("at the first change", lambda: nvim.lua("return vim.fn.line('.')") == 3)
        nvim.command("Magy comment Is that so?")
        nvim.until_seen("» Is that so?")
        nvim.command("Magy diff")
        nvim.until_seen("before/prices.py", "│  def net(price):")
        nvim.command("quit")
        nvim.until_lua("return #vim.api.nvim_list_tabpages() == 1")
        nvim.command("1,5Magy reject")
        nvim.until("its lines alone", lambda: nvim.lua(REVIEW) == 2)
        nvim.command("Magy accept file")
        nvim.until("all of them", lambda: nvim.lua(REVIEW) == 0)
        assert nvim.text().startswith("# mine\ndef net(price):\n    return price\n")


MOVED = """\
prompt: away
call: bash {"command": "mv prices.py costs.py"}
---
text: It is away.
"""


def test_a_file_that_was_moved_is_said_in_words_and_visited_beside_the_prompt(start: Start) -> None:
    with start(MOVED, "prices.py") as nvim:
        nvim.command("Magy ask put it away")
        nvim.until_lua("return require('magy').status().questions == 1")
        nvim.command("Magy allow")
        nvim.until("under review", lambda: nvim.lua(REVIEW) == 1)
        nvim.command("Magy")
        nvim.keys("<Esc>")
        nvim.command("Magy review")
        nvim.until_seen("build: the file was prices.py before", "[Quickfix List]")
        nvim.keys("<CR>")
        nvim.until("there", lambda: nvim.lua("return vim.fn.expand('%:t')") == "costs.py")
        nvim.until_seen("Magy: the file was prices.py before")
        assert nvim.lua("return #vim.fn.win_findbuf(vim.fn.bufnr('/prompt$'))") == 1
        nvim.command("Magy undo")
        nvim.until_seen("# is renamed: costs.py → prices.py  +0 -0", "rename from costs.py")
        nvim.keys("y")
        nvim.until_seen("Undone: 1 file")


@pytest.mark.req("G014")
def test_a_turn_is_undone_and_redone_after_a_look(start: Start, shop: Path) -> None:
    file = shop / "prices.py"
    with start(script(thinking=0), "prices.py") as nvim:
        tidied(nvim)
        new = file.read_text()
        nvim.command("Magy undo")
        nvim.until_seen("# Undo 1 turn", "# changes: prices.py  +3 -3")
        nvim.keys("y")
        nvim.until("undone", lambda: file.read_text() == PRICES)
        nvim.until_seen("Undone: 1 file", "The prompt is back.")
        assert nvim.lua("return {vim.fn.bufname(), #vim.api.nvim_list_wins()}") == ["prices.py", 1]
        nvim.command("Magy")
        nvim.until_seen("tidy the prices", "— Undone: 1 file and the conversation")
        nvim.keys("<Esc>")
        nvim.command("Magy redo")
        nvim.until_seen("# Redo 1 turn", " y do it ")
        nvim.keys("y")
        nvim.until("redone", lambda: file.read_text() == new)


@pytest.mark.req("G008")
def test_lines_are_rewritten_in_place(start: Start, shop: Path) -> None:
    with start(script(thinking=0), "prices.py") as nvim:
        nvim.command("13,14Magy rewrite in one line")
        nvim.until_seen("+     # the sum of all of them, in the order that they came")
        assert "return sum(prices)" in nvim.text(), "not yet"
        nvim.until("in place", lambda: "return round(sum(prices), 2)" in nvim.text())
        nvim.until("under review", lambda: nvim.lua(REVIEW) == 1)
        assert nvim.lua("return #vim.api.nvim_list_wins()") == 1, "no other window"


@pytest.mark.req("G010")
def test_what_is_proposed_is_shown_and_applied_when_it_is_accepted(
    start: Start, shop: Path
) -> None:
    words = f"prompt: propose\n{edit('return name', 'return name.strip()')}\n---\ntext: Proposed.\n"
    with start(words, "prices.py", settings='edits.review = "propose"\n') as nvim:
        nvim.command("Magy ask propose")
        nvim.until_seen("proposed", "+     return name.strip()")
        assert (shop / "prices.py").read_text() == PRICES
        nvim.command("new | wincmd p | resize 2")
        nvim.command("Magy next")
        nvim.until("there", lambda: nvim.lua("return vim.fn.line('.')") == 10)
        nvim.until_seen("+     return name.strip()")
        nvim.command("Magy accept")
        nvim.until("applied", lambda: "name.strip()" in (shop / "prices.py").read_text())


def test_a_buffer_that_is_wiped_while_it_is_reviewed_leaves_no_fault(start: Start) -> None:
    with start(script(thinking=0), "prices.py") as nvim:
        tidied(nvim)
        nvim.command("enew")
        nvim.command("bwipeout! prices.py")
        nvim.command("Magy ask shout")
        nvim.until_lua(
            "return require('magy').status().state == 'idle'" + f" and ({REVIEW[7:]}) == 4"
        )
        nvim.command("edit prices.py")
        nvim.until_seen("~     return sum(prices)  # TOTAL")
        said = nvim.request("nvim_exec2", "messages", {"output": True})["output"]
        assert "rror" not in said and "fault" not in said, said


def test_changes_that_were_left_waiting_are_drawn_and_said_when_the_server_starts(
    start: Start,
) -> None:
    with start(script(thinking=0), "prices.py") as nvim:
        tidied(nvim)
        nvim.command("silent write")
    shutil.rmtree(next(Path(os.environ["HOME"]).rglob("magy/left")))  # as if it was another editor
    with start("", "prices.py") as nvim:
        assert nvim.lua("return package.loaded['magy.connection']") is None
        nvim.lua("vim.lsp.enable('magy')")
        nvim.until_seen(
            "-     return price * 1.19", "In shop 3 changes wait for a decision: `:Magy review`."
        )
