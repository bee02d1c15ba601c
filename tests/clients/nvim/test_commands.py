"""Commands, maps and options that no other test of this folder uses, in a real Neovim with the real
server; and that there is none without a test."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.clients.nvim.conftest import Start
from tests.clients.nvim.embedded import Neovim
from tests.clients.nvim.test_plugin import HELP, NAMES, ask
from tests.clients.shop import edit

SOURCES = "\n".join(one.read_text("utf-8") for one in sorted(Path(__file__).parent.glob("*.py")))
LONG = "\n".join(f"echo {number}" for number in range(20)) + "\nrm -rf build"
SCRIPT = f"""\
prompt: first
text: The first answer.
call: read_file {{"path": "prices.py"}}
---
text: Seen.

prompt: second
text: The second answer.

prompt: third
text: The third answer.

prompt: remove
call: bash {json.dumps({"command": LONG})}
---
text: So be it.

prompt: change
{edit("return name", "return name.strip()")}
{edit("sum(prices)", "sum(prices, 0)")}
---
text: Changed.

prompt: find
text: Found.
"""


def said(nvim: Neovim) -> str:
    return str(nvim.request("nvim_exec2", "messages", {"output": True})["output"])


def hears(nvim: Neovim, words: str) -> None:
    nvim.until(words, lambda: words in said(nvim))


def row(nvim: Neovim) -> str:
    return str(nvim.request("nvim_get_current_line"))


def test_the_commands_maps_and_options_have_tests() -> None:
    names = ask(NAMES)
    assert not [name for name in names if not re.search(rf"Magy!? {name}\b", SOURCES)]
    plugs = set(re.findall(r"<Plug>\(magy-([\w-]+)\)", HELP)) - {"NAME"} - set(names)
    assert not [plug for plug in plugs if f"(magy-{plug})" not in SOURCES]
    options = re.findall(r"\*magy-option-([\w.]+)\*", HELP)
    assert not [one for one in options if not re.search(rf"\b{one.split('.')[-1]}\W+=", SOURCES)]


GONE = """
[[provider]]
name = "gone"
kind = "openai-chat"
base_url = "http://127.0.0.1:1/v1"
"""


def test_the_session_takes_what_is_chosen_for_it(start: Start) -> None:
    with start(SCRIPT, "prices.py", settings=GONE) as nvim:
        nvim.lua("vim.g.magy = { fold = false, settings = { edits = { review = 'propose' } } }")
        nvim.command("Magy")
        nvim.keys("first<C-s>")
        nvim.until_seen("14 of 14 lines", "○ idle")
        nvim.keys("<Esc>")
        nvim.lua("vim.ui.select = function(items, options)"
                 " _G.modes = vim.tbl_map(options.format_item, items) end")  # fmt: skip
        nvim.command("Magy mode")
        assert "propose  (now)" in nvim.until_lua("return _G.modes")
        nvim.lua("_G.modes = nil")
        nvim.command("Magy model")
        assert "scripted/script  (now)" in nvim.until_lua("return _G.modes")
        hears(nvim, "gone is not running: nothing listens at 127.0.0.1:1.")
        nvim.command("Magy agent plan")
        hears(nvim, "Agent: plan")
        nvim.command("Magy agent build")
        nvim.command("Magy model scripted/script")
        hears(nvim, "Model: scripted/script")
        nvim.command("Magy mode review")
        hears(nvim, "Edits: review")
        nvim.command("Magy bypass")
        nvim.until_seen("build · scripted/script · asks nothing")
        nvim.command("Magy bypass off")
        nvim.until("asks again", lambda: "asks nothing" not in nvim.seen())
        nvim.command("Magy spawn general find it")
        hears(nvim, "general begins.")
        nvim.until_seen("result ✓ general")
        nvim.command("Magy spawn general --worktree find it")  # the project is no repository
        hears(nvim, "No worktree can be made")
        nvim.command("Magy log")
        assert nvim.lua("return vim.fn.bufname()").endswith("lsp.log")
        nvim.command("quit")
        nvim.command("Magy shutdown")
        hears(nvim, "The server has ended.")


def test_a_transcript_is_walked_through_and_folded(start: Start) -> None:
    with start(SCRIPT, "prices.py") as nvim:
        nvim.lua("vim.g.magy = { auto_context = false, prompt_height = 4, turns = 1 }")
        nvim.command("Magy")
        nvim.until_seen("-1 prices.py:1-2")
        nvim.command("Magy context 1")
        nvim.until_seen("+1 prices.py:1-2")
        nvim.keys("a<CR>b<CR>c<CR>d<CR>e<CR>f<Esc>")
        nvim.until_lua("return vim.fn.line('$') == 6 and vim.api.nvim_win_get_height(0) <= 5")
        nvim.keys("ggcG")
        nvim.keys("first<Esc>")
        nvim.command("Magy send")
        nvim.until_seen("[prices.py#L1-L2]", "Seen.", "○ idle")
        nvim.keys("isecond<C-s>")
        nvim.until_seen("The second answer.", "○ idle")
        nvim.keys('<C-o>:call feedkeys("\\<lt>Plug>(magy-history-previous)")<CR>')
        nvim.until("the prompt before", lambda: nvim.text() == "second")
        nvim.keys('<C-o>:call feedkeys("\\<lt>Plug>(magy-history-next)")<CR>')
        nvim.until("the draft", lambda: nvim.text() == "")
        nvim.keys("third")
        nvim.command('call feedkeys("\\<Plug>(magy-send-queue)")')
        nvim.until_seen("The third answer.", "○ idle")
        nvim.keys("third<Esc>")
        nvim.command('call feedkeys("\\<Plug>(magy-send-interrupt)")')
        nvim.until("it again", lambda: nvim.seen().count("The third answer.") == 2)
        nvim.command("wincmd k | normal! G")
        nvim.keys("[[")  # <Plug>(magy-prompt-previous)
        nvim.until("the last prompt", lambda: row(nvim) == "❯ third")
        nvim.keys("[[[[[[")
        nvim.until("the first prompt", lambda: row(nvim) == "❯ first")
        nvim.keys("]]")  # <Plug>(magy-prompt-next)
        nvim.until("the second prompt", lambda: row(nvim) == "❯ second")
        folds(nvim)
        nvim.keys("<CR>")  # <Plug>(magy-visit)
        nvim.until_lua("return vim.fn.bufname() == 'prices.py'")
        nvim.command("Magy close")
        assert nvim.lua("return #vim.api.nvim_list_wins()") == 1
        nvim.command("Magy new")
        nvim.command("Magy resume last")
        nvim.until("the last turn", lambda: nvim.text().count("❯ ") == 1)
        assert "❯ third" in nvim.text()


def folds(nvim: Neovim) -> None:
    """A call is unfolded and folded: alone, and with all others."""
    call = "return vim.fn.search('✓ Read prices.py', 'w')"
    assert nvim.lua(call)
    for open, close in (
        ("zo", "zc"),  # <Plug>(magy-fold-open), <Plug>(magy-fold-close)
        ("zR", "zM"),  # <Plug>(magy-fold-open-all), <Plug>(magy-fold-close-all)
        ("<Tab>", "za"),  # <Plug>(magy-fold)
    ):
        nvim.keys(open)
        nvim.until(open, lambda: "14 of 14 lines" in nvim.text())
        nvim.keys(close)
        nvim.until(close, lambda: "14 of 14 lines" not in nvim.text())
    nvim.command("Magy older")
    assert nvim.lua(call)


def test_a_question_waits_and_changes_are_decided_as_the_options_say(start: Start) -> None:
    with start(SCRIPT, "prices.py") as nvim:
        nvim.lua("""
        require("magy").setup({
          panel_height = 7,
          review = { signs = false, hint = false, go_on = false, ask_reason = true },
          window = { position = "right", size = 0.6 },
        })
        """)
        nvim.command("Magy ask remove")
        nvim.until_seen("Magy asks", "more lines; :Magy answer shows them")
        nvim.command("Magy later")
        nvim.until("no panel", lambda: "Magy asks" not in nvim.seen())
        nvim.command("Magy refuse not today")
        nvim.until_lua("return require('magy').status().state == 'idle'")
        nvim.command("Magy ask change")
        nvim.until_lua("return require('magy').status().review == 2")
        nvim.until_seen("-     return name", "-     return sum(prices)")
        nvim.command("normal! G")
        seen = nvim.seen()
        assert "~     return" not in seen and ":Magy accept" not in seen, "no signs, no hint"
        nvim.command("Magy previous")
        nvim.until_lua("return vim.fn.line('.') == 10")
        nvim.command("Magy accept")
        nvim.until_lua("return require('magy').status().review == 1")
        assert nvim.lua("return vim.fn.line('.')") == 10, "it does not go on"
        nvim.command("Magy next")
        nvim.lua("vim.ui.input = function(_, done) done('zero is plain') end")
        nvim.command("Magy reject")
        nvim.until("rejected", lambda: "sum(prices, 0)" not in nvim.text())
        nvim.chooses("change")
        nvim.command("Magy checkpoints")
        nvim.until_seen("# Undo 1 turn")
        nvim.keys("q")
        nvim.command("Magy open")
        nvim.until_seen("— Told the agent:", "…4")
        assert nvim.lua("return vim.fn.win_screenpos(0)[2] == 33 and vim.fn.winwidth(0) == 48")
        transcript = nvim.text(nvim.lua("return vim.fn.bufnr('magy://shop$')"))
        assert "refused: not today" in transcript and "Changed." in transcript
