"""A person asks in a real Neovim, with the real server: keys are typed, the screen is read back."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.clients.nvim.conftest import Start
from tests.clients.shop import PRICES, TYPED, edit, script
from tests.mcp.test_servers import HERE

STATUS = "return require('magy').status()"
COMMAND = "printf one\nprintf two\nprintf three\nprintf four\nprintf five\nrm -rf build"
PADDED = "echo ok" + " " * 300 + "\n" * 40 + "; rm -rf build"
LONG = f"prompt: long\ncall: bash {json.dumps({'command': COMMAND})}"


@pytest.mark.req("F007", "F008", "G006")
def test_a_prompt_streams_asks_and_edits_the_live_buffer(start: Start, shop: Path) -> None:
    with start(script(thinking=0), "prices.py") as nvim:
        nvim.keys("Go# not saved yet<Esc>")
        nvim.command("Magy")
        nvim.until_lua(f"return ({STATUS[7:]}).server == 'running'")
        nvim.keys("tidy the prices<C-s>")
        nvim.until_seen("? Run rm -rf build", "A lasting yes would allow", "? asks")
        assert nvim.lua("return vim.fn.bufname()").endswith("/prompt"), "the focus stays"
        nvim.keys("<Esc>")
        nvim.command("wincmd k | normal! gg")
        nvim.until_seen("┌ Magy asks ─", "rm -rf build")
        nvim.command("normal! G")
        nvim.until("the transcript shows it", lambda: "┌ Magy asks" not in nvim.seen())
        nvim.command("wincmd j")
        nvim.command("Magy allow")
        nvim.until_seen("The prices are tidy.", "○ idle")
        text = nvim.lua(
            "return vim.api.nvim_buf_get_lines(vim.fn.bufnr('prices.py'), 0, -1, false)"
        )
        assert "    return round(price * 1.19, 2)" in text and text[-1] == "# not saved yet"
        assert (shop / "prices.py").read_text() == PRICES, "unsaved text stays unsaved"
        nvim.keys("<Esc>")
        nvim.command("wincmd k | wincmd k")
        nvim.keys("u")
        nvim.until(
            "one undo for the turn",
            lambda: nvim.text() == PRICES.rstrip("\n") + "\n# not saved yet",
        )


def test_white_space_leads_nothing_of_a_command_out_of_sight(start: Start) -> None:
    with start(f"prompt: go\ncall: bash {json.dumps({'command': PADDED})}", "prices.py") as nvim:
        nvim.command("Magy ask go")
        nvim.until_seen("⟨300 spaces⟩", "⟨39 empty lines⟩", "; rm -rf build")


def test_an_empty_prompt_and_a_question_say_their_keys(start: Start) -> None:
    with start(LONG, "prices.py") as nvim:
        nvim.lua("require('magy').setup({ prefix = '<Leader>m' })")
        nvim.command("Magy")
        nvim.until_seen("(<C-s> sends, @ names files and skills")
        nvim.keys("long")
        nvim.until("what is written", lambda: "(<C-s> sends" not in nvim.seen())
        nvim.keys("<C-s>")
        nvim.until_seen("(<C-s> sends", "\\my answer  refuses or allows")


@pytest.mark.req("G006", "G011")
def test_what_is_typed_while_edits_land_stays(start: Start, shop: Path) -> None:
    with start(script(thinking=1), "prices.py") as nvim:
        nvim.command("Magy ask tidy the prices")
        nvim.until_seen("Magy asks")
        nvim.command("Magy allow")
        nvim.keys("Go")
        typed = ""

        def landed() -> bool:
            nonlocal typed
            if "name.strip()" in nvim.text():
                return True
            if len(typed) < len(TYPED):
                nvim.keys(TYPED[len(typed)])
                typed += TYPED[len(typed)]
            return False

        nvim.until("the edits", landed)
        nvim.keys(TYPED[len(typed) :] + "<Esc>")
        expected = PRICES.replace("return price\n", "return round(price, 2)\n", 1)
        expected = expected.replace("price * 1.19", "round(price * 1.19, 2)")
        expected = expected.replace("name\n", "name.strip()\n") + TYPED
        nvim.until("both texts", lambda: nvim.text() == expected)


def test_events_and_the_statusline_tell_what_goes_on(start: Start) -> None:
    with start(script(thinking=0), "prices.py") as nvim:
        assert nvim.lua("return require('magy').statusline()") == ""
        nvim.lua("""
        _G.seen = {}
        vim.api.nvim_create_autocmd("User", { pattern = "Magy*", callback = function(event)
          _G.seen[event.match] = event.data.title or true
        end })
        """)
        nvim.command("Magy ask tidy the prices")
        nvim.until_lua("return require('magy').statusline() == 'Magy asks 1'")
        nvim.command("Magy allow")
        nvim.until_lua("return require('magy').statusline() == 'Magy ○ idle · 3 to review'")
        seen = nvim.until_lua("return _G.seen.MagyTurnEnded and _G.seen")
        assert seen["MagyQuestion"] == "Run rm -rf build"
        assert {"MagySessionUpdate", "MagyQuestionsDone", "MagyReviewChanged"} <= set(seen)


@pytest.mark.req("F009", "G022")
def test_a_question_is_a_panel_that_takes_no_focus_until_it_is_answered(start: Start) -> None:
    with start(LONG + "\n---\ntext: I see.\n", "prices.py") as nvim:
        nvim.command("Magy ask long")
        seen = nvim.until_seen("Magy asks", "asked by build", "asked because:")
        assert "printf three" in seen and "rm -rf build" in seen, "the whole command"
        nvim.keys("ix<Esc>")
        nvim.until("typing goes to the file", lambda: nvim.text().startswith("xdef net"))
        nvim.command("Magy answer")
        nvim.until_seen("n refuse", "y allow once", "q leave it open")
        nvim.keys("q")
        nvim.until_lua("return vim.fn.bufname() == 'prices.py'")
        assert nvim.lua(STATUS)["questions"] == 1, "left open"
        nvim.lua("vim.ui.input = function(_, done) done('the tests need it') end")
        nvim.command("Magy answer")
        nvim.until("refused", lambda: nvim.keys("n") or nvim.lua(STATUS)["questions"] == 0)
        nvim.command("Magy open")
        seen = nvim.until_seen("✗ Run", "refused: the tests need it", "I see.")
        assert seen.count("refused") == 1 and "denied" not in seen, "the call says it"


@pytest.mark.req("G021")
def test_prompts_steer_wait_and_are_stopped(start: Start) -> None:
    words = (
        "prompt: wait long\ntext: Let me see.\ndelay: 600\n\nprompt: and then\ntext: Then that.\n"
    )
    with start(words, "prices.py") as nvim:
        nvim.command("Magy")
        nvim.keys("wait long<C-s>")
        nvim.until_seen("▸ working", "Let me see.")
        nvim.keys("and then<M-CR>")
        nvim.until_seen("· waits: and then")
        nvim.keys("never mind<M-CR>")
        nvim.until_seen("· waits: never mind")
        nvim.lua("vim.ui.select = function(items, options, done)"
                 " for _, item in ipairs(items) do"
                 "   local text = (options.format_item or tostring)(item)"
                 "   if text == 'never mind' or text == 'Take it back' then return done(item) end"
                 " end end")  # fmt: skip
        nvim.command("Magy queue")
        seen = nvim.until_seen("❯ never mind", "(dropped)", "· waits: and then")
        assert "· waits: never mind" not in seen
        nvim.command("Magy stop")
        nvim.until_seen("Then that.", "○ idle")


@pytest.mark.req("G032")
def test_the_prompt_completes_files_and_actions_and_remembers(start: Start) -> None:
    with start("prompt: look\ntext: Seen.\n", "prices.py") as nvim:
        nvim.command("Magy")
        nvim.until_lua(f"return ({STATUS[7:]}).server == 'running'")
        nvim.keys("look @pri<C-x><C-o>")
        nvim.until_lua("return vim.fn.pumvisible() == 1")
        assert not nvim.lua("return vim.bo.modified"), "no [+]"
        assert "look @pri" in nvim.text() and "look @prices" not in nvim.text(), "only offered"
        nvim.keys("<C-n>")
        nvim.until("the file", lambda: "look @prices.py" in nvim.text())
        nvim.keys("<C-y><C-s>")
        nvim.until_seen("Seen.")
        nvim.keys("<Up>")
        nvim.until("the prompt before", lambda: nvim.text().startswith("look @prices.py"))
        nvim.keys("<Esc>ccsee @pri<C-x><C-o>")
        nvim.until_lua("return vim.fn.pumvisible() == 1")
        nvim.keys("<C-s>")
        nvim.until("no menu", lambda: nvim.lua("return vim.fn.pumvisible()") == 0)
        assert nvim.text() == ""


# What Magy sees of nvim-cmp: a module, with settings that the buffer's come into.
CMP = """
package.loaded["cmp"] = {
  get_config = function()
    return { enabled = true, sources = { { name = ... } } }
  end,
}
"""


@pytest.mark.parametrize("source", ["nvim_lsp", "buffer"])
def test_one_menu_comes_up_beside_a_completion_plugin(start: Start, source: str) -> None:
    with start("", "prices.py") as nvim:
        nvim.lua(CMP.replace("...", f'"{source}"'))
        nvim.command("Magy")
        nvim.until_lua(f"return ({STATUS[7:]}).server == 'running'")
        nvim.keys("look @pri")
        if source == "buffer":
            nvim.until_lua("return vim.fn.pumvisible() == 1")
        else:
            typed = 'return #vim.api.nvim_get_autocmds({ event = "InsertCharPre", buffer = 0 })'
            assert nvim.lua(typed) == 0, "Neovim's own menu keeps away"
            nvim.keys("<C-x><C-o>")
            nvim.until_lua("return vim.fn.pumvisible() == 1")


def test_the_last_session_is_offered_in_the_next_neovim(start: Start) -> None:
    words = "prompt: look\ntext: I see **all** of `it`, as [here](http://x.test).\n"
    with start(words, "prices.py") as nvim:
        nvim.command("Magy ask look")
        nvim.command("Magy open")
        seen = nvim.until_seen("I see all of it, as", "○ idle")
        assert "http://x.test" in seen, "where a link goes to stays"
        assert "tokens" in next(row for row in nvim.screen() if row.startswith("❯ look"))
    with start(words, "prices.py") as nvim:
        nvim.command("Magy resume last")
        said = nvim.request("nvim_exec2", "messages", {"output": True})["output"]
        assert "Magy starts in shop; it goes on then." in said
        nvim.until_seen("I see all of it", "○ idle")
        nvim.lua("""
        vim.ui.select = function(items, options)
          local preview = options.preview_item(items[1])
          _G.offered = {
            options.format_item(items[1]),
            table.concat(vim.api.nvim_buf_get_lines(preview.buf, 0, preview.pos[1], false), "\\n"),
          }
        end
        """)
        nvim.command("Magy resume")
        offered, preview = nvim.until_lua("return _G.offered")
        assert "1 turn" in offered
        assert "❯ look" in preview and "I see **all** of `it`" in preview
    with start(words, "prices.py") as nvim:
        nvim.command("Magy")
        nvim.until_seen(
            "The session before: “look”, 1 turn.", "`:Magy resume last` goes on with it."
        )
        nvim.keys("look<C-s>")
        nvim.until_seen("I see all of it")
        assert "The session before" not in nvim.seen()


def test_a_turn_that_runs_says_for_how_long(start: Start) -> None:
    with start("prompt: wait\ntext: A moment.\ndelay: 600\n", "prices.py") as nvim:
        nvim.command("Magy")
        nvim.keys("wait<C-s>")
        nvim.until_seen("▸ working 2 s")
        nvim.command("Magy stop")
        nvim.until_seen("○ idle")


def test_what_was_not_sent_is_there_again_in_the_next_neovim(start: Start) -> None:
    with start("", "prices.py") as nvim:
        nvim.command("Magy")
        nvim.keys("half a thought<Esc>")
        nvim.until_seen("half a thought")
    with start("", "prices.py") as nvim:
        nvim.until_seen("In shop a prompt was not sent; `:Magy` shows it.")
        nvim.command("Magy")
        nvim.until_seen("half a thought")


def test_a_missing_server_is_said_and_what_was_written_stays(start: Start) -> None:
    with start("", "prices.py") as nvim:
        nvim.lua("vim.lsp.config('magy', { cmd = { 'no-such-magy', 'lsp' } })")
        nvim.command("Magy")
        nvim.keys("hello there<C-s>")
        nvim.until_seen("hello there", "✗ the server ended")
        said = nvim.request("nvim_exec2", "messages", {"output": True})["output"]
        assert "There is no program `no-such-magy`. Install Magy" in said
        nvim.keys("<Esc>")
        nvim.command("checkhealth magy")
        report = nvim.text()
        assert "ERROR There is no program `no-such-magy`." in report
        assert "OK All options are known." in report and "vim.lsp.config" in report


def test_a_server_that_dies_is_said_and_the_next_command_goes_on(start: Start, shop: Path) -> None:
    words = f"""\
prompt: one
text: First.

prompt: two
text: Second.
{edit("return name", "return 1")}
---
text: Done.
"""
    with start(words, "prices.py", fresh=True) as nvim:
        nvim.command("Magy ask one")
        nvim.command("Magy open")
        nvim.until_seen("First.", "○ idle")
        nvim.server().kill()
        nvim.until_seen("Interrupted", "✗ the server ended")
        nvim.keys("two<C-s>")
        nvim.until_seen("Second.", "Done.", "○ idle")
        nvim.until("the edit", lambda: "return 1" in (shop / "prices.py").read_text())


def test_a_server_that_hangs_is_said_and_answers_late_or_is_restarted(start: Start) -> None:
    words = "".join(f"prompt: {one}\ntext: {one.title()}.\n\n" for one in ("once", "late", "again"))
    with start(words, "prices.py", fresh=True) as nvim:
        nvim.lua("vim.g.magy = { patience = 1 }")
        nvim.command("Magy ask once")
        nvim.command("Magy open")
        nvim.until_seen("Once.", "○ idle")
        server = nvim.server()
        server.suspend()
        nvim.keys("late<C-s>")
        nvim.until_seen("the server does not answer")
        server.resume()
        nvim.until_seen("Late.", "○ idle")
        server.suspend()
        nvim.keys("again<C-s>")
        nvim.until_seen("the server does not answer")
        nvim.command("Magy restart")
        nvim.until_seen("Again.", "○ idle")


FORM = 'call: call_tool {"name": "mcp__rude__form"}\n---\ntext: Over.\n'
COUNTED = """
_G.ended = 0
vim.api.nvim_create_autocmd("User", { pattern = "MagyTurnEnded", callback = function()
  _G.ended = _G.ended + 1
end })
"""
ASKED = """
_G.prompts = {}
vim.ui.input = function(options, done) table.insert(_G.prompts, options.prompt); done('main') end
vim.ui.select = function(list, options, done)
  table.insert(_G.prompts, options.prompt)
  done(list[1])
end
"""


@pytest.mark.req("F009", "G022")
def test_a_form_of_an_mcp_server_is_filled_in_field_by_field(start: Start) -> None:
    server = json.dumps(str(HERE / "rude_server.py"))
    rude = f"[mcp.rude]\ncommand = {json.dumps(sys.executable)}\nargs = [{server}]\n"
    settings = f'[permission]\nmcp__rude = "allow"\n{rude}'
    turns = "\n".join(f"prompt: go{n}.\n{FORM}" for n in range(40))
    with start(turns, "prices.py", settings=settings) as nvim:
        nvim.lua(COUNTED)
        for turn in range(40):  # a slow machine may not have connected in the first ones
            nvim.command(f"Magy ask go{turn}.")
            nvim.until_lua(f"return require('magy').status().questions > 0 or _G.ended > {turn}")
            if nvim.lua(STATUS)["questions"]:
                break
        nvim.until_seen("The MCP server rude asks: Which branch?", "size (one of these")
        nvim.lua(ASKED)
        nvim.command("Magy allow")
        nvim.until_lua("return require('magy').status().questions == 0")
        assert nvim.lua("return _G.prompts") == [
            "branch (text): ",
            "push (yes or no, may be left out): ",
            "size (one of these, may be left out): ",
        ]
