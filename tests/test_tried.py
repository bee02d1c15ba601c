"""No tool, agent or skill comes with Magy that no test tries: a model calls each tool in some test,
or the test does; each agent is at work; and each skill names tools that there are."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from magy_server.config.shipped import shipped
from magy_server.tools.kit import make_tools
from magy_server.tools.shell.processes import Processes

TESTS = Path(__file__).parent


@cache
def told() -> str:
    """All that tests have the server do."""
    files = sorted(path for path in TESTS.rglob("*.py") if path != Path(__file__))
    return "\n".join(path.read_text("utf-8") for path in files)


def is_called(tool: str) -> bool:
    """Whether a script, a server of models or a test calls it somewhere."""
    forms = (
        rf"call: {tool}\b", rf'"{tool} \{{', rf'"{tool}", ?\{{', rf'"name": "{tool}"',
        rf'\b(?:call|made|use|act|run|look)\([^()]*"{tool}"', rf'\btools\["{tool}"\]',
    )  # fmt: skip
    return any(re.search(form, told()) for form in forms)


@pytest.mark.parametrize("tool", [tool.name for tool in make_tools(Processes())])
def test_a_model_calls_each_tool_in_a_test(tool: str) -> None:
    assert is_called(tool), f"no test has a model call {tool}: write a conversation that does"


def test_a_tool_that_nobody_tries_is_found() -> None:
    assert not is_called("a_tool_" + "of_nobody")


@pytest.mark.parametrize("agent", shipped().agents)
def test_each_agent_is_at_work_in_a_test(agent: str) -> None:
    """An agent that works for Magy itself is named where its work is asked for."""
    named = rf'agent="{agent}"|"agent": "{agent}"|agent: {agent}\b|"{agent}"'
    assert re.search(named, told()), f"no test has the agent {agent} at work"


@pytest.mark.parametrize("skill", shipped().skills)
def test_each_skill_names_tools_that_there_are(skill: str) -> None:
    known = {tool.name for tool in make_tools(Processes())}
    stated = shipped().skills[skill].tools or ()
    assert set(stated) <= known, f"{skill} states {sorted(set(stated) - known)}"
