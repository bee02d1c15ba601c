"""Agents below a session, actions and sessions in a real Neovim, with the real server."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from magy_server.core.magi.emotional_log import Log, entry, written
from magy_server.core.magi.vote import Memory
from tests.clients.nvim.conftest import Start
from tests.clients.record import MAGI

ASKS = "return require('magy').status().questions > 0"
SCRIPT = """\
prompt: look into the prices
text: An agent looks into it.
call: spawn_agent {"agent": "general", "task_name": "Taxes", "prompt": "Find where taxes are."}
---
text: It is on its way.
---
text: It has told me.

prompt: Find where taxes are
text: I look for the taxes.
call: bash {"command": "touch taxes"}
---
text: In gross.

prompt: look again
text: I look again.

prompt: Explain
text: It computes **prices**.
"""


@pytest.mark.req("F012", "G022")
def test_a_child_is_watched_answered_spoken_to_and_closed(start: Start) -> None:
    with start(SCRIPT, "prices.py", lines=36) as nvim:
        nvim.command("Magy children")
        nvim.command("wincmd p | Magy")
        nvim.keys("look into the prices<C-s>")
        nvim.until_seen("? Spawn general: Taxes", "? shop")
        nvim.command("Magy answer")
        nvim.until_seen("│q leave it open", "p this project ")
        nvim.keys("q")
        nvim.command("Magy allow")
        nvim.until_seen("asked by general “Taxes”, a child of build")
        nvim.keys("<Esc>")
        nvim.command("Magy children")
        nvim.until_seen("? general  Taxes  1 question")
        nvim.keys("j<CR>")
        nvim.until_seen("I look for the taxes.", "asked by")
        nvim.command("Magy allow")
        nvim.until_seen("In gross.", "○ idle")
        nvim.keys("ilook again<C-s>")
        nvim.until_seen("I look again.")
        nvim.keys("<Esc>")
        nvim.command("wincmd k")
        nvim.keys("-")  # <Plug>(magy-parent)
        nvim.until_seen(
            "It has told me.", "result ✓ general  Taxes  completed", "magy://shop/prompt"
        )
        nvim.command("Magy children")
        nvim.keys("2Gx")
        nvim.until_lua("return vim.fn.bufname():find('agents') ~= nil and vim.fn.line('$') == 2")
        nvim.until_seen("There are no agents")
        nvim.keys(".")
        nvim.until_seen("▪ general  Taxes")


GRAPH = """\
prompt: look into the prices
call: run_graph {"tasks": [{"id": "north", "prompt": "Look north."},
  {"id": "draft", "prompt": "Write it.", "needs": ["north"]}]}
---
text: All is written.

prompt: Look north
text: The north is cold.

prompt: Write it
text: I write it.
"""


@pytest.mark.req("F012")
def test_a_graph_shows_its_tasks_and_leads_to_their_agents(start: Start) -> None:
    with start(GRAPH, "prices.py", lines=90) as nvim:
        nvim.command("Magy")
        nvim.keys("look into the prices<C-s>")
        nvim.until_seen("Run 2 tasks: north, draft", "Any yes would allow")
        nvim.command("Magy allow")
        nvim.until_seen("✓ north (general): completed", "  ✓ draft (general): completed",
                        "All is written.", "○ idle")  # fmt: skip
        assert "result ✓" not in nvim.seen(), "the graph shows it"
        nvim.keys("<Esc>")
        nvim.command("wincmd k")
        nvim.lua("vim.fn.search('draft (general)', 'bw')")
        nvim.keys("<CR>")
        nvim.until_seen("I write it.")


COLD = """\
prompt: look into the prices
call: run_graph {"tasks": [{"id": "north", "prompt": "Look north."},
  {"id": "south", "prompt": "Look south."}]}
---
text: All is written.

prompt: Look north
text: The north is cold.

prompt: Look south
call: bash {"command": "touch south"}
---
text: The south is warm.
"""


def test_a_result_that_a_cancelled_graph_did_not_take_is_shown(start: Start) -> None:
    with start(COLD, "prices.py", lines=90) as nvim:
        nvim.command("Magy")
        nvim.keys("look into the prices<C-s>")
        nvim.until_seen("Run 2 tasks: north, south", "Any yes would allow")
        nvim.command("Magy allow")
        nvim.until_seen("✓ north (general): completed", "? Run touch south")
        nvim.command("Magy stop")
        seen = nvim.until_seen("⊘ Run 2 tasks", "result ⊘ general  south", "○ idle")
        assert "result ✓" not in seen, "the graph shows what it took"


RATES = """\
prompt: judge the work
call: spawn_agent {"agent": "explore", "task_name": "Docs", "prompt": "Read the docs."}
---
call: wait_agent {}
---
call: rate_agent {"job_id": "4.0", "capability": "reading", "score": 0.75, "reason": "Whole."}
---
text: Judged.

prompt: Read the docs
text: Read.
"""


@pytest.mark.req("A030")
def test_a_rating_is_a_line_that_says_whose_work_and_how_good(start: Start) -> None:
    with start(RATES, "prices.py", lines=24) as nvim:
        nvim.command("Magy")
        nvim.keys("judge the work<C-s>")
        nvim.until_seen("? Spawn explore: Docs")
        nvim.command("Magy allow")
        nvim.until_seen("Judged.", "rate explore “Docs” for reading: 0.75")


@pytest.mark.req("F012")
def test_three_deliberate_and_their_ruling_is_read_again(start: Start) -> None:
    script = MAGI.replace("prompt: Please do it", "prompt: @magi Should")
    script = re.sub(r"delay: [\d.]+", "delay: 0.1", script)
    with start(script, "prices.py", lines=60) as nvim:
        nvim.command("Magy magi Should the store move to Postgres?")
        nvim.command("Magy open")
        nvim.until_seen("Any yes would allow")
        nvim.command("Magy allow")
        nvim.until_seen("MELCHIOR", "CASPER", "The votes say yes")
        nvim.command("Magy rulings")
        nvim.until_seen("byte for byte")


@pytest.mark.req("D087")
def test_what_casper_remembers_is_read_and_taken_out(start: Start, shop: Path) -> None:
    felt = [
        entry(f"Ship {n}?", Memory(valence=-0.8, primary_emotion="fear", lesson=f"Wait {n}."),
              time.time() - n)
        for n in range(4)
    ]  # fmt: skip
    (shop / "memory").mkdir()
    file = shop / "memory" / "casper-emotional-log.json"
    file.write_bytes(written(Log(entries=tuple(felt))))
    with start(SCRIPT, "prices.py") as nvim:
        nvim.command("Magy feelings")
        nvim.until_seen("Many strong feelings within a week", "-0.8 counts 80 % fear: Wait 0.")
        nvim.lua("vim.fn.confirm = function() return 1 end")
        nvim.keys("5Gx")
        nvim.until("it is gone", lambda: "Wait 1." not in nvim.seen())
        assert "Wait 1." not in file.read_text() and "Wait 2." in file.read_text()
        nvim.keys("r")
        nvim.until("reviewed", lambda: '"reviewed": "2' in file.read_text())


@pytest.mark.req("F010", "F011", "G005")
def test_actions_explain_beside_another_language_server(start: Start) -> None:
    with start(SCRIPT, "prices.py") as nvim:
        nvim.lua(
            "vim.lsp.start({ name = 'pylsp', cmd = { 'pylsp' }, root_dir = vim.fn.getcwd() },"
            " { bufnr = 0 })"
        )
        nvim.until_lua("local c = vim.lsp.get_clients({ name = 'pylsp' })[1]"
                       " return c ~= nil and c.initialized")  # fmt: skip
        nvim.chooses("Magy: Explain this code")
        nvim.command("Magy actions")
        nvim.until_seen("It computes prices.", "○ idle")
        assert nvim.lua("return vim.fn.bufname()") == "prices.py", "the focus stays"
        names = nvim.lua("return vim.tbl_map(function(c) return c.name end,"
                         " vim.lsp.get_clients({ bufnr = 0 }))")  # fmt: skip
        assert sorted(names) == ["magy", "pylsp"]


@pytest.mark.req("F013")
def test_sessions_are_resumed_named_copied_and_written(start: Start, shop: Path) -> None:
    with start(SCRIPT, "prices.py") as nvim:
        nvim.command("Magy ask look again")
        nvim.command("Magy open")
        nvim.until_seen("I look again.", "○ idle")
        nvim.command("Magy rename The taxes")
        nvim.until_seen("· The taxes ·"[2:-2])
        nvim.command("Magy new")
        nvim.until("nothing", lambda: "I look again." not in nvim.seen())
        nvim.chooses("The taxes")
        nvim.command("Magy resume")
        nvim.until_seen("I look again.", "The taxes")
        assert nvim.lua("return {vim.fn.bufname(), vim.fn.mode()}") == ["magy://shop", "n"]
        before = nvim.lua("return require('magy').status().session")
        nvim.command("Magy fork")
        nvim.until("a copy", lambda: nvim.lua("return require('magy').status().session") != before)
        nvim.until_seen("I look again.")
        nvim.command("Magy export out.md")
        nvim.until("the file", (shop / "out.md").exists)
        nvim.until("its text", lambda: "I look again." in (shop / "out.md").read_text())
