"""What came of a trial, seen from outside of Magy."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator

from tests.patience import PATIENCE

from .cast import edited, result, steer, task
from .model import Model
from .stage import Stage


def verdict(stage: Stage, model: Model) -> list[str]:
    """Sentences; none: all is as it must be. Ends what processes are left of the trial."""
    trees = _worktrees(stage) if stage.play.repository else ()
    return [*_asked(stage, model), *_left(stage), *trees, *_processes(stage)]


def _asked(stage: Stage, model: Model) -> Iterator[str]:
    """By the conversations that the model was sent."""
    play = stage.play
    for role in set(play.roles) - model.ended:
        yield f"{role} never came to its end"
    once = [(parent, result(child, stage.tag)) for child, parent in play.parents.items()]
    once += [(role, steer(role, stage.tag)) for role in play.steered]
    once += [(role, task(role)) for role in play.roles]
    for role, sign in once:
        heard = model.last[role].heard if role in model.last else ""
        if (times := heard.count(sign)) != 1:
            yield f"{role} heard {sign} {times} times: {heard}"


def _left(stage: Stage) -> Iterator[str]:
    """By what commands and edits have left."""
    log = stage.log()
    if twice := [line for line in log if line[0] == "TWICE"]:
        yield f"run by two at once: {twice}"
    begun = Counter(tuple(line[1:]) for line in log if line[0] == "start")
    for command, times in begun.items():
        if times > 1:
            yield f"one call ran {times} times: {command}"
    ended = {tuple(line[1:3]) for line in log if line[0] == "end"}
    for role, steps in stage.play.works.items():
        for step in steps:
            if (role, step) not in ended:
                yield f"{role} did not do {step}"
    for role in stage.play.parents:
        if (text := (stage.root / f"{role}.txt").read_text()) != edited(role):
            yield f"the file of {role} is {text!r}"


def _worktrees(stage: Stage) -> Iterator[str]:
    """By what git shows: all has landed, each once, and nothing is left of where it was made."""
    trees = stage.git("worktree", "list", "--porcelain").count("worktree ")
    if trees != 1:
        yield f"worktrees are left: {stage.git('worktree', 'list')}"
    if (branches := stage.git("branch", "--format=%(refname:short)").split()) != ["main"]:
        yield f"branches are left: {branches}"
    if status := stage.git("status", "--porcelain"):
        yield f"the work tree is not as it was committed: {status}"
    for role in stage.play.parents:
        commits = stage.git("log", "--no-merges", "--format=%h", "--", f"{role}.txt").split()
        if len(commits) != 2:  # with the one that all began with
            yield f"the work of {role} landed {len(commits) - 1} times"


def _processes(stage: Stage) -> Iterator[str]:
    """By the process table."""
    until = time.monotonic() + PATIENCE
    while (found := stage.processes()) and time.monotonic() < until:
        time.sleep(0.1)
    if found:
        yield f"processes are left: {found}"
    for process in found:
        os.kill(process, signal.SIGKILL)
