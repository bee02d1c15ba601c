"""`magy permissions`: what is remembered can be seen, and taken away again."""

from __future__ import annotations

import json

import pytest

from tests.cli.harness import Magy, Terminal, terminal

TOUCH = """
prompt: touch
call: bash {"command": "touch new.txt"}
---
text: Touched.

prompt: unclear
call: bash {"command": "bash -c ls"}
---
text: Over.
"""


def remembered(one: Terminal, key: str) -> None:
    one.run("run", "touch")
    one.see("[p] for this project")
    one.press(key)
    one.see("Touched.", "[0]")


@pytest.mark.needs("tmux")
@pytest.mark.req("G023")
def test_what_a_project_remembers_is_listed_and_withdrawn(magy: Magy) -> None:
    magy.script(TOUCH)
    with terminal(magy) as one:
        remembered(one, "p")
        one.run("permissions")
        screen = one.see("[0]")
        assert f"{magy.root}\n" in screen
        assert "  bash   touch new.txt\n" in screen
        assert f"  write  {magy.root}/new.txt\n" in magy("permissions").stdout
        listed = json.loads(magy("permissions", "list", "--json").stdout)["permissions"]
        assert {grant["scope"] for grant in listed} == {"project"}
        bash = next(grant["grantId"] for grant in listed if grant["key"] == "bash")
        done = magy("permissions", "withdraw", bash[:6])
        assert done.stdout == "withdrawn: bash touch new.txt\n"
        assert "touch new.txt" not in magy("permissions").stdout
        one.run("run", "touch")
        one.see("? Run touch new.txt", "[n] no")
        one.press("y")
        one.see("[0]")
        assert magy("permissions", "withdraw", "--all").stdout.startswith("withdrawn: write ")
        assert "Magy remembers no permission here." in magy("permissions").stdout


@pytest.mark.needs("tmux")
def test_what_a_session_remembers_is_listed_and_withdrawn(magy: Magy) -> None:
    magy.script(TOUCH)
    with terminal(magy) as one:
        remembered(one, "s")
    (session,) = (one["sessionId"] for one in magy.sessions())
    assert "Magy remembers no permission here." in magy("permissions").stdout
    shown = magy("permissions", "--session", session).stdout
    assert "bash   touch new.txt\n" in shown and "in this session\n" in shown
    done = magy("permissions", "withdraw", "--session", session, "--all")
    assert done.stdout.count("withdrawn: ") == 2
    assert "no permission" in magy("permissions", "--session", session).stdout


def test_what_is_not_remembered_cannot_be_withdrawn(magy: Magy) -> None:
    done = magy("permissions", "withdraw", "1234")
    assert done.returncode == 2
    assert "no permission '1234' here" in done.stderr
    assert magy("permissions", "withdraw").returncode == 2
    assert magy("permissions", "withdraw", "--all").stdout == "There was nothing to withdraw.\n"


@pytest.mark.needs("tmux")
def test_a_question_says_why_it_offers_no_lasting_yes(magy: Magy) -> None:
    magy.script(TOUCH)
    with terminal(magy) as one:
        one.run("run", "unclear")
        screen = one.see("[n] no  [y] once  [?] help")
        assert "    no lasting yes: Magy cannot tell what it would allow\n" in screen
        one.press("n")
        one.see("why not?")
        one.press("Enter")
        one.see("[0]")
