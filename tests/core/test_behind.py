"""A command that a rule denies, given to a program that is not known to run any."""

from __future__ import annotations

import pytest

from magy_server.core.permit import Rule, Ruleset, decide

from .rules import command

RULES = Ruleset(
    source="s",
    keys={
        "bash": (
            Rule(pattern="*", action="allow"),
            Rule(pattern="git push *", action="deny"),
            Rule(pattern="rm *", action="deny"),
            Rule(pattern="make *", action="ask"),
        )
    },
)


@pytest.mark.parametrize(
    ("line", "action", "firm"),
    [
        ("newrunner git push", "ask", True),
        ("newrunner -n 5 -- git push origin", "ask", True),
        ("newrunner -n 5 /usr/bin/git -C x push", "ask", True),
        ("newrunner -c 'git push origin'", "ask", True),
        ("newrunner --run='cd x && git push'", "ask", True),
        ("newrunner --program=rm", "ask", True),
        ("newrunner make test", "ask", False),
        ("go vet -x=rm", "ask", True),
        ("docker run --entrypoint rm x", "ask", True),
        ("newrunner git log", "allow", False),
        ("newrunner push git", "allow", False),
        ("echo git push", "allow", False),
        ("grep rm notes.txt", "allow", False),
        ("git add rm", "allow", False),
        ("docker rm x", "allow", False),
        ("npm run make", "allow", False),
        ("timeout 5 git push", "deny", False),
    ],
)
def test_what_is_forbidden_is_looked_for_behind_other_programs(
    line: str, action: str, firm: bool
) -> None:
    decision = decide(
        command(line), "bash", "exec", [RULES], (), bypass=not firm and action != "ask"
    )
    assert (decision.action, decision.firm) == (action, firm), decision.rule


def test_long_lines_are_looked_through_in_time() -> None:
    for line in (
        "new " + "rm " * 10_000,
        "new " + "'git push; '" * 2_000,
        "new " + "a=rm " * 6_000,
    ):
        decide(command(line), "bash", "exec", [RULES])
