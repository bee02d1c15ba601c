"""What a judgement costs: a command against 1,000 rules and guardrails, beside spawning `true`."""

from __future__ import annotations

import asyncio

from bench.measure import Row, Run, in_turn, stopwatch
from magy_server.core.permit import Rule, Ruleset, decide
from magy_server.core.policy.guardrails import Guardrail, said
from magy_server.core.values import Facts, Resource

RULES, RAILS = 900, 100
CALLS = 100


def decided(run: Run) -> Row:
    """A pipeline of three commands, none of which a rule settles before the last is read."""
    rules = tuple(Rule(pattern=f"tool{n} sub{n} *", action="allow") for n in range(RULES))
    rails = tuple(
        Guardrail(tool="bash", action="block", pattern=rf"\bdrop{n}\s+table") for n in range(RAILS)
    )
    source = Ruleset(source="bench", keys={"bash": rules}, guardrails=rails)
    line = "git log --oneline | grep -c fix | tee count.txt"
    parts = tuple(
        Resource(kind="exec", subject=part, argv=tuple(part.split())) for part in line.split(" | ")
    )
    facts, call = Facts(resources=parts), said("bash", {"command": line})

    def judged() -> None:
        for _ in range(CALLS):
            decide(facts, "bash", "exec", [source], call=call)

    with asyncio.Runner() as loop:
        ours, floor = in_turn(
            run.choose(5, 20),
            lambda: stopwatch(judged) / CALLS,
            lambda: stopwatch(lambda: loop.run(_spawned())),
        )
    return Row("a command judged by 1,000 rules", "seconds", ours, floor, 3)


async def _spawned() -> None:
    process = await asyncio.create_subprocess_exec("true")
    await process.wait()


ROWS = (decided,)
