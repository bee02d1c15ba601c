"""Pictures of graphs: whatever names and prompts say, it stays inside its label."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from magy_server.core.graphs.pictures import dot, mermaid
from magy_server.core.text.markdown import fenced
from tests.thorough import examples

HOSTILE = st.one_of(
    st.text(max_size=40),
    st.sampled_from([
        '"]; evil -> t0; t9 ["', "]]--><script>alert(1)</script>", "`**bold**`", "end",
        "%%{init}%%", "#quot;#35;", "a\nb\r\nc", "```\n\n# Heading", "\\", '\\"', "\\N\\G",
        "<b>x</b>", "\u202e",
    ]),
)  # fmt: skip


def task(id: str, agent: str, about: str, *needs: str) -> dict[str, Any]:
    return {"id": id, "agent": agent, "model": agent, "state": "completed", "needs": list(needs),
            "depth": 0, "sessionId": None, "attempts": 2, "seconds": 1.5, "tokens": 7,
            "cost": {"amount": 0.5, "unpriced": 0}, "line": about, "about": about}  # fmt: skip


@given(HOSTILE, HOSTILE)
def test_mermaid_has_one_line_for_each_task_and_each_need(agent: str, about: str) -> None:
    graph = {"tasks": [task("a", agent, about), task("b", agent, about, "a")]}
    lines = mermaid(graph).split("\n")
    nodes = [line for line in lines if re.fullmatch(r'  t\d\["[\w .,:/()+#;<>-]*"\]:::\w+', line)]
    assert len(nodes) == 2 and lines.count("  t0 --> t1") == 1 and len(lines) == 5
    inside = [line[6 : line.rindex('"')].replace("<br/>", "") for line in nodes]
    assert not any(set('<>"`[]&') & set(text) for text in inside)
    assert fenced(mermaid(graph), "mermaid").startswith("```mermaid\n")


@given(HOSTILE, HOSTILE)
def test_dot_has_one_statement_for_each_task_and_each_need(agent: str, about: str) -> None:
    graph = {"tasks": [task("a", agent, about), task("b", agent, about, "a")]}
    lines = dot(graph).split("\n")
    assert len(lines) == 6 and lines[-2:] == ["  t0 -> t1;", "}"]
    quoted = r'"(?:[^"\\]|\\.)*"'
    for line in lines[2:4]:
        assert re.fullmatch(rf"  t\d \[(?:\w+={quoted}(?:, )?){{3}}\];", line)


@settings(max_examples=examples(20), deadline=None)
@given(HOSTILE, HOSTILE)
def test_graphviz_reads_it(agent: str, about: str) -> None:
    if program := shutil.which("dot"):
        graph = {"tasks": [task("a", agent, about), task("b", agent, about, "a")]}
        drawn = subprocess.run([program, "-Tplain"], input=dot(graph).encode(), check=True,
                               capture_output=True).stdout  # fmt: skip
        assert drawn.count(b"\nnode ") == 2 and drawn.count(b"\nedge ") == 1
