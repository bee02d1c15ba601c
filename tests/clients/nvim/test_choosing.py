"""What is chosen from lists in a real Neovim, with the real server: skills, what a prompt names,
trust, what was allowed, sessions that are deleted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.nvim.conftest import Start
from tests.clients.nvim.embedded import Neovim
from tests.tools.pictures import png

SKILL = """\
---
name: greet
description: How we greet people here
---
Say **Ahoy** and nothing else.
"""
SCRIPT = """\
prompt: the sailor
call: read_file {"path": "prices.py"}
---
text: Ahoy.

prompt: picture
text: It is grey.

prompt: mend
text: There is one problem.

prompt: clear away
call: bash {"command": "rm -rf build"}
---
text: It is gone.
call: bash {"command": "rm -rf build"}
---
text: It is gone again.
"""
IDLE = "return require('magy').status().state == 'idle'"


@pytest.fixture
def project(shop: Path) -> Path:
    (shop / ".magy" / "skills" / "greet").mkdir(parents=True)
    (shop / ".magy" / "skills" / "greet" / "SKILL.md").write_text(SKILL)
    (shop / "shot.png").write_bytes(png())
    return shop


def said(nvim: Neovim) -> str:
    return str(nvim.request("nvim_exec2", "messages", {"output": True})["output"])


def chooser(nvim: Neovim) -> Callable[..., None]:
    """Runs a command; of each list that it shows, what has the first of these words is chosen."""

    def choose(command: str, *words: str) -> None:
        nvim.chooses(*words)
        nvim.command(command)

    return choose


@pytest.mark.req("G032")
def test_what_a_prompt_names_is_chosen_and_comes_along(start: Start, project: Path) -> None:
    with start(SCRIPT, "prices.py", lines=30) as nvim:
        choose = chooser(nvim)
        choose("Magy trust", "Trust it")
        nvim.until("trusted", lambda: "shop is trusted." in said(nvim))
        choose("Magy skills", "@greet", "Read it")
        nvim.until_seen("How we greet people here", "Say **Ahoy** and nothing else.")
        assert any("@init" in one for one in nvim.lua("return _G.offered.Skills"))
        nvim.keys("q")
        nvim.command("Magy")
        nvim.keys("@gre<C-x><C-o>")
        nvim.until_lua("return vim.fn.pumvisible() == 1")
        nvim.keys("<C-n>")
        nvim.until("the skill before files of its name", lambda: nvim.text() == "@greet")
        nvim.keys("<C-y><Esc>cc<Esc>")
        choose("Magy skills", "@greet", "Use it")
        nvim.until("the name", lambda: nvim.text() == "@greet ")
        nvim.keys("the sailor<C-s>")
        nvim.until_seen("❯ @greet the sailor", "Ahoy.", "○ idle")
        nvim.keys("which picture? ")
        choose("Magy mention shot", "shot.png")
        nvim.until("the file", lambda: nvim.text() == "which picture? @shot.png ")
        nvim.keys("<C-s>")
        nvim.until_seen("It is grey.", "[image: shot.png]", "○ idle")
        nvim.lua("""
        vim.diagnostic.set(vim.api.nvim_create_namespace("test"), vim.fn.bufnr("prices.py"), {
          { lnum = 1, col = 4, message = "price is no number", severity = 1, source = "test" },
        })
        """)
        nvim.keys("mend @prob<C-x><C-o>")
        nvim.until_lua("return vim.fn.pumvisible() == 1")
        nvim.keys("<C-n><C-y><C-s>")
        nvim.until_seen("❯ mend @problems", "There is one problem.", "○ idle")
        session = nvim.lua("return require('magy').status().session")
        exported = project / "all.md"
        nvim.command(f"Magy export {exported}")
        nvim.until("the file", exported.exists)
        assert "price is no number" in exported.read_text(), session


@pytest.mark.req("F013", "G022")
def test_what_was_allowed_is_withdrawn_and_sessions_are_summed_up_and_deleted(
    start: Start, project: Path
) -> None:
    with start(SCRIPT, "prices.py") as nvim:
        choose = chooser(nvim)
        nvim.command("Magy ask clear away")
        nvim.until_lua("return require('magy').status().questions == 1")
        nvim.command("Magy allow session")
        nvim.command("Magy open")
        nvim.until_seen("It is gone again.", "○ idle")
        for count, what in enumerate(("bash `rm -rf build`", "write `"), 1):
            choose("Magy permissions", what)
            nvim.until(what, lambda n=count: said(nvim).count("Withdrawn: Magy asks again.") == n)
        nvim.command("Magy permissions")
        nvim.until("none is left", lambda: "Nothing was allowed" in said(nvim))
        nvim.command("Magy compact what was removed")
        nvim.until_seen("Compacted")
        choose("Magy delete", "Delete it", "1 turn")
        nvim.until("deleted", lambda: "Magy: Deleted." in said(nvim))
        nvim.until("nothing is shown", lambda: "It is gone" not in nvim.seen())
        nvim.command("Magy delete")
        nvim.until("no session", lambda: "There are no sessions yet." in said(nvim))
