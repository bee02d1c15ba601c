"""Records what the server sends of a session, for the tests of every client's renderer.

    python -m tests.clients.record [NAME...]

Each NAME.jsonl in `tests/clients/pictures` is one session with a scripted model at the real server:
the first line is the result of `magy/session/resume`, each further one a notification that came
after it. What differs from run to run (paths, times) is made the same; how a text is cut into
deltas is not. Clients draw these streams; what they show is compared with NAME.<client>.txt.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.harness import Person, person
from tests.guard import SESSION

PICTURES = Path(__file__).parent / "pictures"
ROOT = "/home/me/shop"
START = "def greet(name):\n    return 'hello'\n\n\ndef total(items):\n    return sum(items)\n"
SHOWN = ("magy/session/update", "magy/interaction/changed", "magy/child/changed")


@dataclass(frozen=True)
class Stream:
    """`late`: the client attaches when all is over, and gets a page of the log. `bypass`: questions
    are answered with yes."""

    script: str
    play: Callable[[Person], Awaitable[None]]
    late: bool = False
    bypass: bool = True


# --- what people do -----------------------------------------------------------------------------


async def one_turn(one: Person) -> None:
    await one.turn("Please do it")


async def cancelled(one: Person) -> None:
    await one.turn("Please do it")
    await one.ask("wait for the build", "p2")
    await one.update("tool_call_content_chunk", lambda u: "building" in str(u["content"]))
    await one.request("session/cancel")
    await one.update("state_update", lambda u: u.get("stopReason") == "cancelled")


async def answers(one: Person) -> None:
    await one.ask("Please do it")
    await one.answer(scope="session")
    await one.answer(False, reason="the tests need it")
    await one.end()


async def waits(one: Person) -> None:
    await one.ask("count slowly")
    await one.update("agent_message_chunk")
    await one.ask("Count to six only", "p2")
    await one.ask("Then say thanks", "p3", delivery="queue")
    await one.ask("Then say goodbye", "p4", delivery="queue")
    await one.ask("Never mind", "p5", delivery="queue")
    await one.request("queue/drop", messageIds=["p5"])
    await one.request("queue/reorder", order=["p4", "p3"])


async def delegates(one: Person) -> None:
    await one.turn("Please do it")
    await one.update("_magy_mail", lambda u: u["mail"]["name"] == "Tests")
    await one.update("agent_message", lambda u: "the tests" in str(u["content"]))
    await one.end()


async def goes_back(one: Person) -> None:
    await one.turn("Please do it")
    await one.turn("Now greet in Bavarian", "p2")
    await one.turn("Thank you", "p3")
    await one.request("session/compact")
    await one.update("notice", lambda u: u["title"] in ("Compacted", "Not compacted"))
    await one.ask("Say it shorter", "p4")
    await one.update("state_update", lambda u: u["_meta"]["magy"].get("turnId") == "p4"
                     and u["state"] == "idle")  # fmt: skip
    await one.request("checkpoint/restore", turnId="p4", requestKey="r1")
    await one.update("_magy_restored")


# --- the streams --------------------------------------------------------------------------------

MARKDOWN = """
prompt:
text: |
  # Greetings

  The function `greet` is **wrong**, and *why* is ~~unknown~~ in
  [app.py](app.py#L2), see https://example.org/why.

  1. It ignores the name.
  2. It says _hello_.

  - first
    - below

  > A quote with `code`.

  | Name | Value | Unit |
  |---|:-:|---|
  | a | 1 | kg |
  | a longer name | `22` | **m** |

  ```python
  def greet(name: str) -> str:
      return f"hello {name}"  # *not* markup
  ```

  ![a picture](missing.png)

  ---
  The end.
"""

TOOLS = """
prompt:
text: I look first.
call: read_file {"path": "app.py"}
call: grep {"pattern": "return"}
---
text: Now the change.
call: edit_file {"path": "app.py", "old_text": "'hello'", "new_text": "f'hello {name}'"}
call: write_file {"path": "notes/todo.md", "content": "- greet everybody\\n"}
---
call: bash {"command": "printf 'one\\ntwo\\nthree\\n'"}
---
text: Done: the tests pass.
"""

FAILURES = """
prompt: wait for the build
text: I wait.
call: bash {"command": "echo building; sleep 60"}
---
text: never said

prompt:
text: Three things go wrong.
call: read_file {"path": "missing.py"}
call: edit_file {"path": "app.py", "old_text": "not there", "new_text": "x"}
call: bash {"command": "echo oops; exit 3"}
call: no_such_tool {}
---
error: refused
"""

QUESTION = """
prompt:
text: I clean up.
call: bash {"command": "rm -f old.log"}
---
call: bash {"command": "rm -rf build"}
---
text: The build stays.
"""

QUEUE = """
prompt: count slowly
speed: 12
text: one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
"""

PLAN = """
prompt:
text: A plan.
call: update_plan {"tasks": [{"content": "Read the code", "status": "in_progress"},
  {"content": "Mend greet", "status": "pending"}, {"content": "Ask no one", "status": "pending"}]}
---
call: read_file {"path": "app.py"}
call: update_plan {"tasks": [{"content": "Read the code", "status": "completed"},
  {"content": "Mend greet", "status": "in_progress"},
  {"content": "Ask no one", "status": "cancelled"}]}
---
text: It goes on.
"""

THINKING = """
prompt:
think: |
  The name is ignored.
  I could use an f-string.
text: It needs an f-string.
call: read_file {"path": "app.py"}
---
think: Yes.
text: As I said.
"""

RESTORE = """
prompt: shorter
text: Shorter.

prompt: Bavarian
text: Servus.
call: edit_file {"path": "app.py", "old_text": "hello", "new_text": "servus"}
---
text: It greets in Bavarian now.

prompt: Thank you
text: You are welcome.

prompt: too long
text: The person wants greetings in Bavarian.

prompt:
text: Hello.
"""

AGENTS = """
prompt: please do it
text: Two agents look round.
call: spawn_agent {"agent": "explore", "task_name": "Greetings",
  "prompt": "Where is a greeting made?"}
call: spawn_agent {"agent": "general", "task_name": "Tests",
  "prompt": "Write a test.\\nAnd say which."}
---
call: wait_agent {"job_ids": ["5.0"]}
---
text: In one place. I close the first.
call: close_agent {"job_id": "5.0"}
---
text: Now the other.
---
text: Now I know the tests, too.

prompt: where is a greeting made
call: grep {"pattern": "hello"}
---
text: In `app.py`, line 2.

prompt: write a test
delay: 1.5
call: write_file {"path": "test_app.py", "content": "import app\\n"}
---
text: It is `test_app.py`.
"""

GRAPH = """
prompt: Please do it
text: Two look, and one writes.
call: run_graph {"tasks": [{"id": "north", "agent": "explore", "prompt": "look north"},
  {"id": "south", "agent": "explore", "prompt": "look south"},
  {"id": "draft", "prompt": "write it", "needs": ["north", "south"]}]}
---
text: It is written.

prompt: look north
text: A ton costs 30.

prompt: look south
error: refused times=9

prompt: write it
delay: 0.5
text: Only the north is known.
"""

# Each node waits for the one before it, so that the votes always come in one order.
MAGI = """
prompt: Please do it
call: deliberate {"question": "Should the store move to Postgres?", "kind": "decision",
  "high_stakes": true}
---
text: The votes say yes, but not all of them.

prompt: question as MELCHIOR
text: {"verdict": "APPROVE", "confidence": 90, "summary": "It ran for a week at three times the
  peak. Nothing was lost.", "evidence": ["It ran for a week."], "low": 80, "high": 95}

prompt: question as BALTHASAR
delay: 0.7
text: {"verdict": "CAVEATED", "confidence": 60, "summary": "It can be done if a copy is kept.",
  "risks": ["Rows are lost."], "caveats": {"preconditions": ["A backup exists."]}}

prompt: question as CASPER
delay: 1.4
text: {"verdict": "REJECT", "confidence": 55, "summary": "The people are tired.",
  "feeling": "foggy", "stakes": "The trust of the night shift.", "last_words": "Let them sleep."}

prompt: As MELCHIOR you have voted
text: {"verdict": "APPROVE", "confidence": 85, "summary": "It ran for a week at three times the
  peak.", "counter_arguments": ["The night shift had the training in June."]}

prompt: As BALTHASAR you have voted
delay: 0.7
text: {"verdict": "CAVEATED", "confidence": 70, "summary": "It can be done if a copy is kept.",
  "risks": ["Rows are lost."], "protection": "Keep a copy for 30 days.",
  "caveats": {"preconditions": ["A backup exists."]}, "new_evidence": ["It ran for a week."]}

prompt: As CASPER you have voted
delay: 1.4
text: {"verdict": "REJECT", "confidence": 50, "summary": "The people are tired.",
  "feeling": "foggy", "stakes": "The trust of the night shift.", "last_words": "Let them sleep.",
  "counter_arguments": ["A week without people is no test."]}
"""

STREAMS = {
    "agents": Stream(AGENTS, delegates),
    "graph": Stream(GRAPH, one_turn),
    "magi": Stream(MAGI, one_turn),
    "markdown": Stream(MARKDOWN, one_turn),
    "tools": Stream(TOOLS, one_turn),
    "failures": Stream(FAILURES, cancelled),
    "question": Stream(QUESTION, answers, bypass=False),
    "queue": Stream(QUEUE, waits),
    "plan": Stream(PLAN, one_turn),
    "thinking": Stream(THINKING, one_turn),
    "restore": Stream(RESTORE, goes_back, late=True),
}


# --- recording ----------------------------------------------------------------------------------


async def recorded(stream: Stream) -> list[dict[str, Any]]:
    """The lines of one recording."""
    with tempfile.TemporaryDirectory(prefix="magy-record-") as directory:
        root = Path(directory).resolve() / "shop"
        root.mkdir()
        (root / "app.py").write_text(START)
        state = Path(directory) / "state"
        async with person(root, state, stream.script.lstrip()) as one:
            await one.request("session/new", cwd=str(root), sessionId=SESSION)
            if stream.bypass:
                await one.request("session/set_config_option", configId="bypass", value="on")
            if stream.late:
                await one.request("session/subscribe")
                await stream.play(one)
                lines = [{"result": await one.request("session/resume", **{"from": {"tail": 20}})}]
            else:
                result = await one.request("session/resume", **{"from": {"tail": 20}})
                seen = len(one.client.received)
                await stream.play(one)
                lines = [{"result": result}, *_shown(one, seen)]
        return [_same(line, str(root)) for line in lines]


def _shown(one: Person, since: int) -> list[dict[str, Any]]:
    return [
        {"method": message["method"], "params": message["params"]}
        for message in one.client.received[since:]
        if message.get("method") in SHOWN
    ]


def _same(value: Any, root: str) -> Any:
    """`value` without what differs from run to run."""
    fixed = {"at": 0.0, "duration": 0.1, "seconds": 0.1, "createdAt": STAMP, "updatedAt": STAMP}
    match value:
        case dict():
            return {k: fixed[k] if k in fixed else _same(v, root) for k, v in value.items()}
        case list():
            return [_same(item, root) for item in value]
        case str():
            return _TOOK.sub(", 0.1 s", value.replace(root, ROOT).replace(SESSION, "s-1"))
    return value


_TOOK = re.compile(r", \d+\.\d s\b")
STAMP = "2026-01-02T03:04:05.000+00:00"


def main(names: list[str]) -> int:
    if unknown := set(names) - set(STREAMS):
        print(f"No stream is called {', '.join(sorted(unknown))}; there are {', '.join(STREAMS)}.")
        return 2
    for name in names or STREAMS:
        lines = asyncio.run(recorded(STREAMS[name]))
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        (PICTURES / f"{name}.jsonl").write_text(text, encoding="utf-8")
        print(f"{name}: {len(lines)} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
