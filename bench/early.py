"""What it gains that reads run while the reply still streams: a turn that looks round in a project,
played at the pace of a hosted model, with prefetch and without."""

from __future__ import annotations

import itertools
from pathlib import Path

from bench.measure import Failed, Row, Run, in_turn, stopwatch
from bench.peer import MAGY, Peer
from bench.prompts import SETTINGS, loopback
from bench.search import tree

TRACE = Path(__file__).parent / "traces" / "look.script"
CALLS = 9
LATE = (
    "-c",
    "import sys\n"
    "from magy_server.__main__ import main\n"
    "from magy_server.engine.prefetch import Early\n"
    "Early.take = lambda *_: None\n"
    "sys.exit(main(['lsp']))",
)
"""The real server, but for the one method that begins a call early."""


def prefetch(run: Run) -> Row:
    """Each side has a server of its own; every turn is in a new session, and nothing is cached from
    one to the next."""
    root, _ = tree(run)
    with (
        loopback("anthropic", run.fresh("model"), TRACE.read_text()) as url,
        _server(run, url, root, *MAGY) as early,
        _server(run, url, root, *LATE) as late,
    ):
        numbers = itertools.count(1)
        ours, floor = in_turn(
            run.choose(3, 7),
            lambda: stopwatch(lambda: _turn(early, root, next(numbers))),
            lambda: stopwatch(lambda: _turn(late, root, next(numbers))),
        )
    return Row("turn that looks round, reads run early or not", "seconds", ours, floor, 1)


ROWS = (prefetch,)


def _server(run: Run, url: str, root: Path, *command: str) -> Peer:
    state = run.fresh("state")
    (state / "magy.toml").write_text(SETTINGS.format(kind="anthropic", url=url))
    peer = Peer(run, *command, state=state)
    peer.initialize(root)
    return peer


def _turn(peer: Peer, root: Path, number: int) -> None:
    session = f"s{number}"
    peer.request("magy/session/new", sessionId=session, cwd=str(root))
    peer.request("magy/session/subscribe", sessionId=session)
    peer.messages.clear()
    prompt = [{"type": "text", "text": "Where is the needle used?"}]
    peer.request("magy/session/prompt", sessionId=session, messageId="p1", prompt=prompt)
    calls = 0
    while True:
        message = peer.wait(lambda m: m.get("method") == "magy/session/update")
        update = message["params"]["update"]
        if update.get("sessionUpdate") == "tool_call_update" and "status" in update:
            calls += update["status"] == "completed"
        if update.get("state") == "idle":
            break
    if update.get("stopReason") != "end_turn" or calls != CALLS:
        raise Failed(f"{calls} of {CALLS} calls were completed; the turn ended with {update}")
