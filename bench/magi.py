"""What a deliberation takes: the requests of all that is done for it, against three calls."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

from bench.measure import TOP, Failed, Row, Run
from bench.peer import environment

MAGY = (sys.executable, "-m", "magy_server")
QUESTION = "Should the store move to Postgres this year?"
VOTE = '{"verdict": "APPROVE", "confidence": 80, "summary": "It ran.", "evidence": ["A week"]}'
SCRIPT = f"""
prompt: and vote
text: {VOTE}

prompt: you have voted
text: {VOTE}

prompt:
call: deliberate {{"question": "{QUESTION}", "kind": "decision"}}
---
text: Decided.
"""
CALLS = 3
FIRST = re.compile(r'"session": "[^"]*\.(?:melchior|balthasar|casper)\.1"')


def requests(run: Run) -> Row:
    """The agent that puts the question asks its model twice, and so does each node."""
    name = "ruling of mode DEEP against three bare calls, requests"
    return Row(name, "count", len(_sent(run)), CALLS, None)


def sent(run: Run) -> Row:
    """What the three first votes alone would take is what three calls would."""
    bare = [one for one in _sent(run) if FIRST.search(one)]
    if len(bare) != CALLS:
        raise Failed(f"{len(bare)} first votes instead of {CALLS}.")
    ours, floor = sum(map(len, _sent(run))), sum(map(len, bare))
    return Row("ruling of mode DEEP against three bare calls, sent", "bytes", ours, floor, None)


ROWS = (requests, sent)


@cache
def _sent(run: Run) -> list[str]:
    """The requests of one deliberation, as `magy replay` prints them."""
    place = run.fresh("magi")
    (place / "model.script").write_text(SCRIPT, encoding="utf-8")
    _magy(place, "magi", QUESTION, "--format", "json")
    session = _magy(place, "sessions", "list", "--ids").split()[0]
    below = _magy(place, "agents", "list", session, "--all", "--ids").split()
    return [line for one in (session, *below) for line in _magy(place, "replay", one).splitlines()]


def _magy(place: Path, *words: str) -> str:
    env = environment(place) | {"MAGY_SCRIPT": str(place / "model.script"), "PYTHONPATH": str(TOP)}
    done = subprocess.run([*MAGY, *words], cwd=place, env=env, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, check=False)  # fmt: skip
    if done.returncode:
        raise Failed(f"magy {words[0]}: {done.stderr}")
    return done.stdout
