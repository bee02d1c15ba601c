"""`python -m bench peers`: what a whole task costs, Magy beside other agents.

The task is the same for all: 20 rounds in which 50 lines of a file are read, then an answer of 200
deltas, from a model on loopback that answers at once (`bench/recording_model.py`). All take turns,
and each figure is a median. Other agents are optional: whatever npm has brought takes part.
"""

from __future__ import annotations

import os
import platform
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path

import orjson

from bench.measure import TOP, Failed, Run
from bench.peer import MAGY, Peer, environment
from bench.recording_model import DELTAS, LINES, ROUNDS, Requests, serving
from bench.turns import Magy

PATIENCE = 120.0
"""Seconds after which a program that has not ended is given up."""
BETWEEN = 0.02
"""Seconds between two looks at a program's memory."""
SETTINGS = """
titles = false
[model]
default = "bench/bench"
[[provider]]
name = "bench"
kind = "{kind}"
base_url = "{url}"
api_key_env = "BENCH_API_KEY"
[limits]
requests = 0
repeats = 0
"""
ANTHROPIC, CHAT = ("anthropic", ""), ("openai-chat", "/v1")
"""The kind of a provider in Magy's configuration, and what follows the server's address."""
CODEX = """
model = "bench"
model_provider = "bench"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[model_providers.bench]
name = "bench"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "BENCH_API_KEY"
"""
PI_PACKAGE, CODEX_PACKAGE = "@mariozechner/pi-coding-agent", "@openai/codex"
HEADS = ("", "wall s", "CPU s", "peak MB", "ms a round", "first request s", "KB sent", "(first)")


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds, and bytes. `memory` is 0 where the system does not tell it. `first`: seconds until
    the model has the first request."""

    wall: float
    cpu: float
    memory: float
    round: float
    first: float
    sent: float
    first_sent: float


Measure = Callable[[], Cost]


def report(run: Run) -> str:
    """Measures, and returns the table with a few words on how it was made."""
    times = run.choose(3, 7)
    root = run.fresh("project")
    notes = root / "notes.txt"
    notes.write_text("".join(f"line {n} of some notes\n" for n in range(1, 1001)))
    with ExitStack() as stack:
        requests = stack.enter_context(serving(str(notes)))
        measures: dict[str, Measure] = {
            "magy run, OpenAI chat": _magy_run(run, root, requests, CHAT),
            "magy run, Anthropic": _magy_run(run, root, requests, ANTHROPIC),
            "magy lsp, already started, Anthropic": _magy_lsp(run, root, requests, stack),
        }
        others, missing = _others(run, root, requests)
        costs = _costs(measures | others, times)
    said = [
        f"{ROUNDS} rounds that read {LINES} lines and {DELTAS} deltas against a model on loopback "
        f"without latency; medians of {times}, all in turn. "
        f"{platform.machine()} {platform.system()}, "
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, Python "
        f"{platform.python_version()}. CPU: of the process and of all that it started. Peak: the "
        "resident memory of all these processes at its highest, shared pages counted in each.",
        *missing,
    ]
    return "\n".join([_table(costs), "", *said])


def _costs(measures: Mapping[str, Measure], times: int) -> dict[str, Cost]:
    """Who begins changes from round to round; the first round does not count."""
    found: dict[str, list[Cost]] = {name: [] for name in measures}
    for turn in range(times + 1):
        order = list(measures.items())
        for name, measure in order if turn % 2 else reversed(order):
            print(f"{turn or 'warm'} {name} ...", file=sys.stderr, flush=True)
            cost = measure()
            if turn:
                found[name].append(cost)
    return {
        name: Cost(*map(statistics.median, zip(*map(astuple, costs), strict=True)))
        for name, costs in found.items()
    }


def _table(costs: Mapping[str, Cost]) -> str:
    """Returns it in Markdown, for `docs/benchmarks.md`."""
    lines = ["| " + " | ".join(HEADS) + " |", "|---" * len(HEADS) + "|"]
    for name, cost in costs.items():
        cells = [
            name, f"{cost.wall:.2f}", f"{cost.cpu:.2f}",
            f"{cost.memory / 1e6:.0f}" if cost.memory else "-", f"{cost.round * 1e3:.1f}",
            f"{cost.first:.2f}", f"{cost.sent / 1e3:.0f}", f"{cost.first_sent / 1e3:.1f}",
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


# --- Magy ----------------------------------------------------------------------------------------


def _settings(run: Run, requests: Requests, wire: tuple[str, str]) -> Path:
    state = run.fresh("state")
    text = SETTINGS.format(kind=wire[0], url=requests.url + wire[1])
    (state / "magy.toml").write_text(text)
    return state


def _magy_run(run: Run, root: Path, requests: Requests, wire: tuple[str, str]) -> Measure:
    env = environment(_settings(run, requests, wire), {"BENCH_API_KEY": "none"})
    command = (sys.executable, "-m", "magy_server", "run", "--cwd", str(root), "--root", str(root))
    env["PYTHONPATH"] = str(TOP)
    return partial(_program, (*command, "--quiet", "Read."), env, root, requests)


def _magy_lsp(run: Run, root: Path, requests: Requests, stack: ExitStack) -> Measure:
    state = _settings(run, requests, ANTHROPIC)
    peer = stack.enter_context(Peer(run, *MAGY, state=state, env={"BENCH_API_KEY": "none"}))
    magy = Magy(peer, root)

    def turn() -> Cost:
        requests.clear()
        began = time.perf_counter()
        told = magy.turn("Read.")
        memory = sum(_peaks(peer.process.pid).values())
        return _cost(requests, began, told["wall"], told["cpu"], memory)

    return turn


# --- other agents --------------------------------------------------------------------------------


def _others(run: Run, root: Path, requests: Requests) -> tuple[dict[str, Measure], Sequence[str]]:
    """Those that are installed, and a sentence about each that is not."""
    found: dict[str, Measure] = {}
    missing = []
    if pi := _program_of("pi"):
        found["pi, OpenAI chat"] = _pi(pi, run, root, requests)
    else:
        missing.append(f"pi was not found on PATH; `npm install -g {PI_PACKAGE}` brings it.")
    if codex := _program_of("codex"):
        found["Codex, Responses"] = _codex(codex, run, root, requests)
    else:
        missing.append(f"codex was not found on PATH; `npm install -g {CODEX_PACKAGE}` brings it.")
    return found, missing


def _program_of(name: str) -> str | None:
    """Codex comes as a binary with a script of Node's before it: the binary is the agent."""
    found = shutil.which(name)
    if found is None:
        return None
    scope = Path(found).resolve().parents[2]
    binaries = sorted(scope.glob(f"{name}-*/vendor/*/bin/{name}"))
    return str(binaries[0]) if binaries else found


def _pi(program: str, run: Run, root: Path, requests: Requests) -> Measure:
    home = run.fresh("pi")
    provider = {
        "baseUrl": f"{requests.url}/v1", "api": "openai-completions", "apiKey": "none",
        "models": [{"id": "bench"}],
    }  # fmt: skip
    (home / "models.json").write_bytes(orjson.dumps({"providers": {"bench": provider}}))
    env = environment(home, {"PI_CODING_AGENT_DIR": str(home), "PI_OFFLINE": "1"})
    command = (program, "--print", "--provider", "bench", "--model", "bench", "Read.")
    return partial(_program, command, env, root, requests)


def _codex(program: str, run: Run, root: Path, requests: Requests) -> Measure:
    home = run.fresh("codex")
    (home / "config.toml").write_text(CODEX.format(url=requests.url))
    env = environment(home, {"CODEX_HOME": str(home), "BENCH_API_KEY": "none"})
    command = (program, "exec", "--skip-git-repo-check", "-C", str(root), "Read.")
    return partial(_program, command, env, root, requests)


# --- a program from its start to its end ---------------------------------------------------------


def _program(
    command: Sequence[str], env: Mapping[str, str], root: Path, requests: Requests
) -> Cost:
    requests.clear()
    began = time.perf_counter()
    with subprocess.Popen(
        command, cwd=root, env=env, start_new_session=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        assert process.stdout
        memory = Memory(process.pid)
        alarm = threading.Timer(PATIENCE, process.kill)
        alarm.start()
        said = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        alarm.cancel()
        memory.stop()
    if process.returncode:
        raise Failed(f"{command[0]} ended with {process.returncode}: {said[-600:].decode()}")
    return _cost(requests, began, wall, used.ru_utime + used.ru_stime, memory.peak)


def _cost(requests: Requests, began: float, wall: float, cpu: float, memory: float) -> Cost:
    times, sizes = requests.times, requests.sizes
    if len(times) != ROUNDS + 1:
        raise Failed(f"{len(times)} requests came instead of {ROUNDS + 1}.")
    rounds = (times[-1] - times[0]) / ROUNDS
    return Cost(wall, cpu, memory, rounds, times[0] - began, sum(sizes), sizes[0])


class Memory:
    """The highest resident memory of a process and of all below it, while they run."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._peaks: dict[int, int] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    @property
    def peak(self) -> float:
        return float(sum(self._peaks.values()))

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(BETWEEN):
            self._peaks |= _peaks(self._pid)


def _peaks(pid: int) -> dict[int, int]:
    """The high-water mark of the memory of a process and of all below it, in bytes; none where
    the kernel does not tell it."""
    found: dict[int, int] = {}
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        for line in status.splitlines():
            if line.startswith("VmHWM:"):
                found[pid] = int(line.split()[1]) * 1024
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in children.read_text().split():
                found |= _peaks(int(child))
    except OSError:
        pass  # it has ended
    return found
