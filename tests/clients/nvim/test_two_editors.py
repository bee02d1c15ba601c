"""One session in Neovim and Emacs at once: both show the same, and the first answer wins."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.clients.driven import emacs, installed, lisp
from tests.clients.nvim.embedded import neovim
from tests.clients.shop import script


@pytest.mark.req("G003", "G015")
@pytest.mark.needs("emacs", "emacsclient", "tmux")
def test_neovim_and_emacs_share_a_session(shop: Path, born: dict[str, str]) -> None:
    home = Path(os.environ["HOME"])
    init = installed(home, script(thinking=0))
    assert shutil.which("tmux")
    with (
        neovim(shop, {**os.environ, **born}, "prices.py") as nvim,
        emacs("terminal", init, shop) as other,
    ):
        nvim.command("Magy ask tell me a long story")
        nvim.until_lua("return require('magy').status().questions == 1")
        other.ask(f"(find-file {lisp(str(shop / 'prices.py'))}) t")
        other.keys("C-c m R")
        other.until("(> (minibuffer-depth) 0)")
        other.keys("RET")
        other.until("(magy-permission--all)")
        other.keys("C-c m y")
        other.keys("y")
        nvim.command("Magy open")
        nvim.until_seen("That was the story.", "○ idle")
        other.until('(string-search "That was the story." (magy-driven-transcript))')
        assert (shop / "told").exists() and nvim.lua(
            "return require('magy').status().questions"
        ) == 0
        nvim.keys("shout<C-s>")
        nvim.until_seen("It shouts.", "○ idle")
        other.until('(string-search "It shouts." (magy-driven-transcript))')
        nvim.until_lua("return require('magy').status().review == 2")
        nvim.keys("<Esc>")
        nvim.command("1 wincmd w | Magy next")
        nvim.until("the change", lambda: nvim.lua("return vim.fn.line('.')") == 14)
        nvim.command("Magy reject")
        nvim.until("as it was", lambda: "TOTAL" not in nvim.text())
        other.until(
            '(null (string-search "TOTAL" (with-current-buffer "prices.py" (buffer-string))))'
        )
