"""The Emacs client: a fast stream, a long session, and how long Emacs does not listen."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pty
import shutil
import statistics
import struct
import subprocess
import sys
import termios
import threading
from functools import partial
from pathlib import Path
from typing import Any

from bench.measure import TOP, Failed, Row, Run, in_turn
from bench.peer import environment
from magy_server.core.events import Admitted, Ended, Event, Opened, Prompted, Replied
from magy_server.core.ports import Batch
from magy_server.core.values import Text

CLIENT = TOP / "clients" / "emacs"
DRIVER = TOP / "bench" / "emacs.el"
FAKE = TOP / "tests" / "clients" / "fake_server.py"
DELTAS = 5_000


def deltas(run: Run) -> Row:
    """5,000 deltas, each a line of Markdown, until the transcript has them. The floor is the same
    messages, received by the same library, whose text is put into a buffer."""
    ours = partial(_seconds, run, "bench-deltas", server=_stream(run))
    floor = partial(_seconds, run, "bench-plain", server=_stream(run))
    one, other = in_turn(run.choose(3, 7), ours, floor, warm=0)
    return Row("5,000 deltas into Emacs vs inserted, CPU", "seconds", one, other, 2.5)


def open_long(run: Run) -> Row:
    """Until the last turns of a session of 500 turns are shown, beside one of 10."""
    state = run.fresh("state")
    asyncio.run(_sessions(state))
    server = [sys.executable, "-m", "magy_server", "lsp"]
    found = _emacs(run, "bench-open", server=server, state=state,
                   BENCH_TIMES=str(run.choose(5, 15)))  # fmt: skip
    long, short = (statistics.median(found[name]) for name in ("long", "short"))
    return Row("Emacs opens 500 turns vs 10", "seconds", long, short, 1.2)


def longest_block(run: Run) -> Row:
    """The longest time that Emacs is busy with one batch of a stream, redisplay on a terminal
    included, after 2,000 turns and after 20."""
    ours = partial(_seconds, run, "bench-block", terminal=True, BENCH_TURNS="2000")
    floor = partial(_seconds, run, "bench-block", terminal=True, BENCH_TURNS="20")
    one, other = in_turn(run.choose(3, 7), ours, floor, warm=0)
    return Row("longest block of Emacs, 2,000 turns vs 20", "seconds", one, other, 1.5)


ROWS = (deltas, open_long, longest_block)


def _seconds(run: Run, function: str, **more: Any) -> float:
    return float(_emacs(run, function, **more)[0])


def _emacs(
    run: Run,
    function: str,
    *,
    server: list[str] | None = None,
    state: Path | None = None,
    terminal: bool = False,
    **variables: str,
) -> Any:
    """What a function of `emacs.el` measured, the client being compiled."""
    if shutil.which("emacs") is None:
        raise Failed("emacs is not installed.")
    place = run.fresh("project")
    result = place / "result.json"
    env = environment(state or run.fresh("state"), {
        "BENCH_RESULT": str(result), "TERM": "xterm", "PYTHONPATH": str(TOP),
        "BENCH_SERVER": "(" + " ".join(json.dumps(word) for word in server or ()) + ")",
        **variables,
    })  # fmt: skip
    command = ["emacs", "-Q", "-nw" if terminal else "--batch", "-L", str(_compiled(run)),
               "-l", str(DRIVER), "-f", function]  # fmt: skip
    said = _on_terminal(command, place, env) if terminal else _in_batch(command, place, env)
    if not result.exists():
        raise Failed(f"Emacs measured nothing with {function}. It said: {said[-600:]}")
    return json.loads(result.read_text("utf-8"))


def _in_batch(command: list[str], place: Path, env: dict[str, str]) -> str:
    done = subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=180, restore_signals=False)  # fmt: skip
    return done.stderr


def _on_terminal(command: list[str], place: Path, env: dict[str, str]) -> str:
    ours, theirs = pty.openpty()
    said = bytearray()

    def read() -> None:
        try:
            while data := os.read(ours, 1 << 16):
                said.extend(data)
        except OSError:
            pass  # the other end was closed: on Linux, that is an error

    reader = threading.Thread(target=read)

    def own() -> None:
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 110, 0, 0))

    with subprocess.Popen(command, cwd=place, env=env, stdin=theirs, stdout=theirs, stderr=theirs,
                          start_new_session=True, preexec_fn=own) as process:  # fmt: skip
        os.close(theirs)
        reader.start()
        try:
            process.wait(180)
        finally:
            process.kill()
            process.wait()
            reader.join()
            os.close(ours)
    return said.decode(errors="replace")


def _compiled(run: Run) -> Path:
    """The client as a package manager would install it, once a run."""
    place = run.directory / "emacs"
    if not place.exists():
        place.mkdir()
        for source in CLIENT.glob("*.el"):
            shutil.copy(source, place)
        subprocess.run(["emacs", "-Q", "--batch", "-L", str(place), "-f", "batch-byte-compile",
                        *map(str, sorted(place.glob("*.el")))],
                       check=True, capture_output=True, stdin=subprocess.DEVNULL)  # fmt: skip
    return place


def _stream(run: Run) -> list[str]:
    """A server that answers a prompt with a stream."""
    place = run.fresh("stream")
    about = {"sessionId": "s", "cwd": "/", "title": None, "state": "idle", "turns": 0, "headSeq": 0}
    page = {"headSeq": 0, "floorSeq": 1, "more": False, "events": [],
            "summary": {"session": about, "configOptions": []}}  # fmt: skip
    text = {"type": "text", "text": "a line of **naïve** `text` → with markup\n"}
    chunk = {"sessionUpdate": "agent_message_chunk", "messageId": "1", "content": text}
    end = {"sessionUpdate": "state_update", "state": "idle", "_meta": {"magy": {"seq": 2}}}
    update = "magy/session/update"
    scenario = {
        "initialize": [[{"result": {"capabilities": {"positionEncoding": "utf-32"}}}]],
        "magy/session/resume": [[{"result": page}]],
        "magy/session/prompt": [[
            {"result": {"messageId": "m", "outcome": "started"}},
            {"notify": update, "params": {"sessionId": "s", "update": chunk}, "times": DELTAS},
            {"notify": update, "params": {"sessionId": "s", "update": end}},
        ]],
    }  # fmt: skip
    (place / "scenario.json").write_text(json.dumps(scenario), encoding="utf-8")
    return [sys.executable, str(FAKE), str(place / "scenario.json"), str(place / "received")]


async def _sessions(state: Path) -> None:
    """A store with a long session and a short one."""
    from magy_server.store.sqlite import SqliteStore

    store = await SqliteStore.open(state)
    try:
        for name, turns in (("short", 10), ("long", 500)):
            events: list[Event] = [Opened(root=None, cwd="/", agent="build", model="bench/bench")]
            for _ in range(turns):
                seq = len(events)
                turn = f"p{seq}"
                said = Text(text=f"Turn {seq}:\n\n- **one**\n- `two`\n\n" + "word " * 60)
                events += [
                    Prompted(id=turn, content=(Text(text="And now?"),)),
                    Admitted(turn=turn, prompts=(turn,), first=seq + 1),
                    Replied(request=str(seq + 2), model="bench/bench", content=(said,),
                            stop="end_turn"),
                    Ended(turn=turn, stop="end_turn"),
                ]  # fmt: skip
            summary = {"options": {"agent": "build"}, "state": "idle"}
            await store.append([Batch(f"session/{name}", 0, events, {}, summary)])
    finally:
        await store.close()
