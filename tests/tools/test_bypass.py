"""Nothing that does harm runs unasked: each line of `bypasses` is judged, and most are run, in a
directory where it can do no more than leave a trace, to show that they do what they are there for.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from magy_server.core.permit import Rule, Ruleset, decide
from magy_server.core.values import Confinement, Decision, Facts
from magy_server.tools.shell import facts as shell_facts
from tests.core.test_builtin_agents import BUILD_ALLOWS, BUILT_IN, COMMON

from . import bypasses
from .conftest import Context

SECRET = "s3cr3t-value"
EVERYTHING = Ruleset(
    source="careless",
    keys={
        "bash": (
            Rule(pattern="*", action="allow"),
            Rule(pattern="canary *", action="deny"),
            Rule(pattern="git push *", action="deny"),
        )
    },
)
"""All commands are allowed but two. (Writing files, nobody allows.)"""
RULES = {
    "build": (BUILT_IN["build"].rules, COMMON),
    "careless": (EVERYTHING, COMMON),
}


@dataclass(frozen=True)
class Case:
    prepared: str
    command: str
    folder: str

    def __str__(self) -> str:
        return f"{self.folder}: {self.command}"


def cases() -> Iterator[Case]:
    for names, command in bypasses.NAMES:
        quoted = " ".join(shlex.quote(f"./{name}") for name in names if name not in CONTENT)
        first = "".join(f"{CONTENT[name]}; " for name in names if name in CONTENT)
        made = "; ".join(f"echo > {shlex.quote('./' + name)}" for name in names)
        base = first + IN_MK
        yield Case(f"{base} touch -- {quoted}" if quoted else base, command, "names")
        if quoted and not any("/" in name for name in names):
            made = "; ".join(
                f"echo > {shlex.quote('./' + name)}" for name in names if name not in CONTENT
            )
            yield Case(base, f"{made}; {command}", "names in turn")
    for prepared, command in bypasses.SHOWN:
        yield Case(prepared, command, "shown")
    for prepared, command in bypasses.FOUND:
        yield Case(prepared, command, "found")
    for command in bypasses.RUN_BY:
        yield Case(bypasses.FILES + IN_MK, command, "run by")
    for command in bypasses.GIT:
        yield Case(bypasses.REPOSITORY, command, "git")
    for command in bypasses.PUSHED:
        yield Case(bypasses.PUSHES + "echo > push", command, "pushed")


CONTENT = {
    "in.txt": "echo x > in.txt",
    "kept.txt": "echo kept > kept.txt",
    "x.sh": "echo canary > x.sh",
    "t.py": "echo 'import os; os.system(\"canary\")' > t.py",
}
IN_MK = "printf 'all:\\n\\t@echo $(X)\\n' > ../in.mk; "
CONFINED = Confinement(level="standard", network="none", answers=True)
"""The sandbox in which what is only asked needs no question: what a rule forbids, or may forbid,
stays."""
CASES = list(dict.fromkeys(cases()))


class Sandbox:
    """`work`, with a secret in `.env`, beside `bin`, whose `canary` leaves a mark."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir(parents=True)
        (folder / "bin").mkdir()
        canary = folder / "bin/canary"
        canary.write_text(f"#!/bin/sh\n: > {shlex.quote(str(folder / 'ran'))}\n")
        canary.chmod(0o755)
        (self.work / ".env").write_text(f"SECRET={SECRET}\n")
        self.env = {
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "HOME": str(folder),
            "LC_ALL": "C", "SECRETS": SECRET,
            "GIT_CONFIG_NOSYSTEM": "1", "PAGER": "cat", "GIT_TERMINAL_PROMPT": "0",
        }  # fmt: skip

    def shell(self, command: str) -> str:
        """What it says; the end of its time is no fault."""
        run = subprocess.Popen(
            ["bash", "--norc", "--noprofile", "-c", "--", command], cwd=self.work, env=self.env,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        try:
            return run.communicate(timeout=4)[0].decode("utf-8", "replace")
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, 9)
            return run.communicate()[0].decode("utf-8", "replace")

    def harmed(self, command: str) -> bool:
        kept = self.work / "kept.txt"
        before = kept.read_bytes() if kept.exists() else b""
        said = self.shell(command)
        after = kept.read_bytes() if kept.exists() else b""
        return SECRET in said or before != after or (self.folder / "ran").exists()


async def judged(sandbox: Sandbox, command: str) -> Facts:
    context = Context(root=str(sandbox.work))
    facts, _ = await shell_facts.facts(context, command, sandbox.env)
    return facts


def decision(facts: Facts, who: str) -> Decision:
    return decide(facts, "bash", "exec", RULES[who])


@pytest.mark.parametrize("folder", sorted({case.folder for case in CASES}))
async def test_what_does_harm_is_never_run_unasked(folder: str, tmp_path: Path) -> None:
    unasked = []
    for number, case in enumerate(case for case in CASES if case.folder == folder):
        sandbox = Sandbox(tmp_path.resolve() / str(number))
        sandbox.shell(case.prepared)
        facts = await judged(sandbox, case.command)
        held = ["build"] if folder == "found" else list(RULES)
        unasked += [(who, str(case)) for who in held if decision(facts, who).action == "allow"]
        inside = facts.model_copy(update={"confined": CONFINED})
        for who in held:
            before, now = decision(facts, who), decision(inside, who).action
            if now != before.action and (before.firm or before.action == "deny" or now != "allow"):
                unasked.append((f"{who}, in a sandbox", str(case)))
    assert not unasked


def test_they_are_many_and_most_are_seen_to_do_harm_here(tmp_path: Path) -> None:
    """Every third is run. Some need a program, or a right, that is not everywhere."""
    some = CASES[::3]

    def harmful(case: Case) -> bool:
        sandbox = Sandbox(tmp_path.resolve() / str(CASES.index(case)))
        sandbox.shell(case.prepared)
        return sandbox.harmed(case.command)

    with ThreadPoolExecutor(4) as pool:
        done = dict(zip(some, pool.map(harmful, some), strict=True))
    seen = sum(done.values())
    harmless = "\n".join(str(case) for case, harm in done.items() if not harm)
    assert len(CASES) >= 600
    assert seen >= len(some) / 2, f"{seen} of {len(some)}; without harm:\n{harmless}"


async def test_what_only_looks_is_not_asked_about(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path.resolve() / "looks")
    sandbox.shell(
        "for f in a b c a.py b.py c.py a.txt b.txt a.json b.json package.json; do echo x > $f; done"
    )
    sandbox.shell("mkdir src; cp *.py src; git init -q; ln -s a.txt link; ln -s . loop")
    asked = []
    for command in (*BUILD_ALLOWS["bash"], *bypasses.LOOKS):
        facts = await judged(sandbox, command)
        if decision(facts, "build").action != "allow":
            asked.append((command, decision(facts, "build").rule))
    assert not asked
