"""`code_action`: a model writes a program, the person sees it, and it runs as commands do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loopback import call, text

from .test_api_tools import at_work, made
from .test_seldom_tools import results

COUNT = """
import pathlib
for path in sorted(pathlib.Path().glob("*.py")):
    print(path, len(path.read_text().splitlines()), 'it\\'s "quoted" $HOME')
pathlib.Path("made.txt").write_text("made")
"""


@pytest.mark.req("A098")
async def test_a_script_in_python_is_shown_asked_about_and_run(root: Path, state: Path) -> None:
    async with at_work(root, state) as (one, server):
        server.reply(call("find_tools", {"query": "code_action"}, id="c0"))
        server.reply(made("code_action", 1, language="python", code=COUNT))
        server.reply(made("code_action", 2, language="python", code="import sys; sys.exit('no')"))
        server.reply(text("Two lines."))
        await one.ask("Count")
        question = await one.question()
        assert "python3 -c" in question["title"]
        await one.respond(question["interactionId"])
        refused = await one.update(
            "_magy_interaction", lambda u: "sys.exit" in u.get("open", {}).get("title", "")
        )
        await one.respond(refused["open"]["interactionId"])
        await one.end()
        said = results(server)
        assert said["c0"].startswith("code_action: Run a script")
        assert """app.py 2 it's "quoted" $HOME""" in said["c1"]
        assert "exit code 1" in said["c2"] and "no" in said["c2"]
    assert (root / "made.txt").read_text() == "made"


@pytest.mark.req("A098")
async def test_a_script_in_bash_is_judged_command_by_command(root: Path, state: Path) -> None:
    rules = {"permission": {"bash": {"rm *": "deny"}}}
    async with at_work(root, state, **rules) as (one, server):
        server.reply(
            made("code_action", 1, language="bash", code="echo one\nwc -l app.py"),
            made("code_action", 2, language="bash", code="echo two\nrm app.py"),
            made("code_action", 3, language="perl", code="print 1"),
        )
        server.reply(text("Over."))
        await one.turn("Go")
        said = results(server)
        assert "one\n2 app.py" in said["c1"]
        assert "rm *" in said["c2"] and "two" not in said["c2"].splitlines()
        assert "language: " in said["c3"]
    assert (root / "app.py").exists()


async def test_what_is_said_of_a_slow_script_names_its_own_tool(root: Path, state: Path) -> None:
    async with at_work(root, state, permission={"bash": "allow"}) as (one, server):
        server.reply(made("code_action", 1, language="bash", code="sleep 60", timeout=0.3))
        server.reply(made("code_action", 2, language="bash", code="sleep 60 & echo on"))
        server.reply(text("Over."))
        await one.turn("Go")
        said = results(server)
        assert "call code_action with a longer timeout" in said["c1"]
        assert "or use bash with background=true" in said["c1"]
        assert "Use bash with background=true for" in said["c2"]
