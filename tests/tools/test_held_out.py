"""Command lines that were written before anybody looked at what judges them: `held_out.txt`.

The table says in each of its sections what is asked of a line, and what must come of it. (The last
lines of `stranger` came later.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from magy_server.core.permit import Rule, Ruleset, decide, proposals
from magy_server.core.policy.strangers import found, places, verdict
from magy_server.core.values import Decision, Facts
from tests.core.test_builtin_agents import BUILT_IN, COMMON

from .test_bypass import Sandbox, judged

TABLE = Path(__file__).with_name("held_out.txt")
READ = ("node_modules/left-pad/README.md",)
FORBIDS = Ruleset(
    source="person",
    keys={
        "bash": (
            Rule(pattern="rm *", action="deny"),
            Rule(pattern="git push *", action="deny"),
            Rule(pattern="*", action="allow"),
        ),
        "edit": (Rule(pattern="*", action="allow"),),
    },
)
ASKS = Ruleset(
    source="person",
    keys={
        "bash": (Rule(pattern="*", action="ask", bare=True),),
        "edit": (Rule(pattern="*", action="allow"),),
    },
)


@dataclass(frozen=True)
class Case:
    section: str
    wanted: str
    line: str

    def __str__(self) -> str:
        return f"[{self.section}] {self.wanted}: {self.line}"


def cases() -> Iterator[Case]:
    section = ""
    for row in TABLE.read_text().splitlines():
        if row.startswith("["):
            section = row.strip("[]")
        elif row and not row.startswith("# "):
            wanted, line = row.split(maxsplit=1)
            yield Case(section, wanted, line.replace("⏎", "\n"))


CASES = list(cases())


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    made = Sandbox(tmp_path_factory.mktemp("held").resolve())
    for name in ("src/app.py", "README.md", "package.json", "node_modules/left-pad/README.md"):
        file = made.work / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("pad: TODO\n")
    for folder in ("docs", "other", "sub", "web", "tests"):
        (made.work / folder).mkdir()
    (made.work / "link-to-env").symlink_to(".env")
    (made.folder / "elsewhere.txt").write_text("pad\n")
    made.shell("git init -q; git add src; git -c user.name=a -c user.email=a@b commit -qm a")
    made.shell("git init -q cloned; echo pad > cloned/README.md")
    made.shell("mkdir -p module .venv/bin; echo pad > module/README.md; touch .venv/bin/activate")
    made.shell("echo gitdir: ../.git/modules/module > module/.git")
    return made


def _build(facts: Facts) -> Decision:
    return decide(facts, "bash", "exec", [BUILT_IN["build"].rules, COMMON])


async def outcome(sandbox: Sandbox, case: Case) -> tuple[str, str]:
    """What comes of it, in the words of the table, and by which rule."""
    match case.section:
        case "build":
            said = _build(await judged(sandbox, case.line))
            right = (
                said.action != "allow" if case.wanted == "-allow" else said.action == case.wanted
            )
            return case.wanted if right else said.action, said.rule
        case "forbid":
            said = decide(await judged(sandbox, case.line), "bash", "exec", [FORBIDS, COMMON])
            stopped = said.action == "deny" or (said.action == "ask" and said.firm)
            return "stop" if stopped else said.action, said.rule
        case "remember":
            first, second = case.line.split("  ->  ")
            grants = proposals(await judged(sandbox, first), "bash")
            said = decide(await judged(sandbox, second), "bash", "exec", [ASKS, COMMON], grants)
            return "yes" if said.action == "allow" else "no", said.rule
        case "wants":
            asked = verdict(await judged(sandbox, case.line), "bash", READ, bypass=False)
            return "yes" if asked else "no", asked.rule if asked else ""
        case _:
            facts = await judged(sandbox, case.line)
            there = places(facts, "bash", str(sandbox.work), vouched=True)
            if not there and case.line.startswith(("grep", "rg", "find", "cd", "cat", "x=", "py")):
                there = found(facts, sandbox.shell(case.line))
            return "yes" if there else "no", ", ".join(there)


@pytest.mark.parametrize("section", sorted({case.section for case in CASES}))
async def test_each_line_comes_to_what_the_table_says(sandbox: Sandbox, section: str) -> None:
    wrong = []
    for case in CASES:
        if case.section == section:
            came, rule = await outcome(sandbox, case)
            if came != case.wanted:
                wrong.append(f"{case}  came to {came} ({rule})")
    assert not wrong, f"{len(wrong)} lines:\n" + "\n".join(wrong)
