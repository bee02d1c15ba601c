"""The Neovim client: a fast stream after a long session, and what its files cost at the start."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from bench.measure import TOP, Failed, Row, Run, in_turn

CLIENT = TOP / "clients" / "nvim"
DRIVER = TOP / "bench" / "neovim.lua"
DELTAS = 5_000
LONG, SHORT = 2_000, 20
STARTS = 10


def deltas(run: Run) -> Row:
    """How long Neovim works on 5,000 deltas of one answer: after 2,000 turns and after 20."""
    one, other = in_turn(
        run.choose(3, 7), lambda: _streamed(run, LONG), lambda: _streamed(run, SHORT), warm=0
    )
    return Row("Neovim streams 5,000 deltas, 2,000 turns vs 20", "seconds", one, other, 1.5)


def start(run: Run) -> Row:
    """Starting Neovim with the plugin on its runtimepath, and without."""
    place = run.fresh("project")
    one, other = in_turn(
        run.choose(3, 7),
        lambda: _started(place, "--cmd", f"set runtimepath^={CLIENT}"),
        lambda: _started(place),
    )
    return Row("Neovim starts with the plugin vs without, CPU", "seconds", one, other, 1.15)


ROWS = (deltas, start)


def _program() -> str:
    found = shutil.which("nvim", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if found is None:
        raise Failed("nvim is not installed.")
    return found


def _streamed(run: Run, turns: int) -> float:
    place = run.fresh("project")
    result = place / "result"
    env = {**os.environ, "BENCH_TURNS": str(turns), "BENCH_DELTAS": str(DELTAS),
           "BENCH_RESULT": str(result)}  # fmt: skip
    done = subprocess.run(
        [_program(), "--clean", "--headless", "--cmd", f"set runtimepath^={CLIENT}",
         "-c", f"luafile {DRIVER}", "-c", "qall!"],
        cwd=place, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        timeout=180,
    )  # fmt: skip
    if not result.exists():
        raise Failed(f"Neovim measured nothing. It said: {done.stderr[-600:]}")
    return float(result.read_text())


def _started(place: Path, *words: str) -> float:
    """Processor time of one start, of several in a row."""
    before = os.times()
    for _ in range(STARTS):
        subprocess.run([_program(), "--clean", "--headless", *words, "-c", "qall!"], cwd=place,
                       stdin=subprocess.DEVNULL, check=True, timeout=60)  # fmt: skip
    after = os.times()
    used = after.children_user + after.children_system
    return (used - before.children_user - before.children_system) / STARTS
