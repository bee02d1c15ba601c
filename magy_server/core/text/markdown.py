"""Sessions become Markdown here, for exports and for editors that show no transcript. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from magy_server.core.agents.mail import Closed, Mailed
from magy_server.core.events import (
    Answered,
    Asked,
    Compacted,
    Ended,
    Entry,
    Event,
    Finished,
    Judged,
    Opened,
    Planned,
    Prompted,
    Replied,
)
from magy_server.core.mcp.forms import told
from magy_server.core.reviews.review_events import Noted, Restored
from magy_server.core.text.sanitizing import harmless, one_line, visible
from magy_server.core.values import Call, Embedded, Facts, Hash, Image, Link, Text, Thinking

BOXES = {"completed": "[x]", "in_progress": "[ ] **now:**", "cancelled": "[-]"}
STOPS = {
    "end_turn": "done", "cancelled": "cancelled", "error": "failed",
    "refusal": "the model refused", "max_tokens": "stopped: the reply became too long",
    "max_requests": "stopped: too many requests", "max_turn_tokens": "stopped: too many tokens",
    "max_cost": "stopped: too expensive", "max_run": "stopped: the whole run reached its limit",
    "max_time": "stopped: out of time", "loop": "stopped: a loop",
    "stray_call": "stopped: a tool call came as text, and was not run",
}  # fmt: skip
"""Says for people why a turn ended."""


def fenced(text: str, language: str = "") -> str:
    """Returns a code block around any text: its fence is longer than all fences inside."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip(chr(10))}\n{fence}"


def shown_blobs(event: Event) -> tuple[Hash, ...]:
    """Returns the blobs that the Markdown shows."""
    match event:
        case Finished():
            return tuple(hash for hash in (event.diff, event.graph) if hash)
        case Judged(facts=facts) if facts.preview:
            return (facts.preview,)
        case Compacted(summary=str(summary)):
            return (summary,)
    return ()


class Markdown:
    """Entries -> paragraphs. Needs the calls that came before, so give it all entries in order."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._calls: dict[str, Call] = {}
        self._facts: dict[str, Facts] = {}
        self._asked: set[str] = set()
        """The diffs that a question has shown."""

    def paragraphs(self, entries: Sequence[Entry], texts: Mapping[Hash, str]) -> Iterator[str]:
        for entry in entries:
            yield from self._event(entry, texts)

    def _event(self, entry: Entry, texts: Mapping[Hash, str]) -> Iterable[str]:
        match entry.event:
            case Opened() as opened:
                yield f"# {escaped(self._title or 'A session')}"
                where = opened.root or "no project"
                yield f"{_when(entry.at)} · {escaped(where)} · agent {escaped(opened.agent)}"
            case Mailed() | Closed():
                yield from _mail(entry.event, entry.at)
            case Prompted() as prompted:
                yield f"## Prompt\n\n*{_when(entry.at)}*"
                yield from (_part(part) for part in prompted.content)
            case Replied() as replied:
                yield from self._reply(replied)
            case Judged() as judged:
                self._facts[judged.call] = judged.facts
            case Asked() as asked:
                yield f"> **Asked:** {escaped(asked.title)} ({escaped(asked.rule)})"
                facts = self._facts.get(asked.call)
                if asked.form:
                    yield fenced(told(asked.form))
                elif facts and facts.preview and facts.preview in texts:
                    self._asked.add(facts.preview)
                    language = "" if facts.code else "diff"
                    yield fenced(visible(texts[facts.preview]), language)
            case Answered() as answered:
                reason = f": {escaped(answered.reason)}" if answered.reason else ""
                named = ", ".join(answered.content or ())
                filled = f" (filled in: {escaped(named)})" if named else ""
                yield f"> **{'Allowed' if answered.allow else 'Refused'}**{filled}{reason}"
            case Finished() as finished:
                yield from self._finished(finished, texts)
            case Planned() as planned:
                yield "\n".join(
                    f"- {BOXES.get(task.status, '[ ]')} {escaped(task.content)}"
                    for task in planned.tasks
                )
            case Noted() as noted:
                yield f"### Note to the model\n\n{fenced(harmless(noted.text))}"
            case Restored() as restored:
                yield _restored(restored)
            case Compacted(summary=str(hash)):
                summary = texts.get(hash, "")
                yield f"### Compacted\n\n{fenced(summary)}"
            case Ended() as ended if ended.stop != "end_turn":
                said = f"\n\n{fenced(ended.message)}" if ended.message else ""
                yield f"**The turn ended: {STOPS[ended.stop]}.**{said}"

    def _reply(self, replied: Replied) -> Iterator[str]:
        for part in replied.content:
            match part:
                case Text(text=text) if text.strip():
                    yield harmless(text).strip("\n")
                case Thinking(text=text) if text.strip():
                    thought = fenced(harmless(text))
                    yield f"<details><summary>Thinking</summary>\n\n{thought}\n\n</details>"
                case Call() as call:
                    self._calls[call.id] = call

    def _finished(self, finished: Finished, texts: Mapping[Hash, str]) -> Iterator[str]:
        call = self._calls.get(finished.call)
        name = call.name if call else finished.call
        facts = self._facts.get(finished.call)
        title = (facts and facts.title) or name
        yield f"### {escaped(title)}\n\n`{name}`: {finished.status}"
        if command := call and call.arguments.get("command"):
            yield fenced(harmless(str(command)), "sh")
        if finished.diff and finished.diff in texts and finished.diff not in self._asked:
            yield fenced(harmless(texts[finished.diff]), "diff")
        text = finished.for_user or finished.for_model
        if finished.graph and finished.graph in texts:
            yield from _graph(texts[finished.graph])
            text = finished.for_user
        if text.strip():
            yield fenced(harmless(text))


def _graph(text: str) -> Iterator[str]:
    """Draws a graph of tasks, and says who did what."""
    from magy_server.core.graphs.pictures import mermaid  # few sessions have one

    graph = json.loads(text)
    yield fenced(mermaid(graph), "mermaid")
    yield fenced("\n".join(harmless(task["line"]) for task in graph["tasks"]))


def _restored(event: Restored) -> str:
    """Says that a person went back, or forth again."""
    what = "Brought back" if event.undoes else "Taken back"
    named = [escaped(change.path) for change in event.changes]
    named += ["the conversation"] if event.conversation else []
    left = ", ".join(escaped(path) for path in event.conflicts)
    text = f"> **{what}:** {', '.join(named) or 'nothing'}"
    return f"{text}\\\n> **Left as it was:** {left}" if left else text


def _mail(event: Mailed | Closed, at: float) -> Iterator[str]:
    """Says what other agents wrote, and how this one ended."""
    if isinstance(event, Closed):
        reason = f": {escaped(event.reason)}" if event.reason else ""
        yield f"> **Closed** ({event.mode}){reason}"
        return
    if event.payload.kind != "text":
        return
    who = escaped(f"{event.agent} ({event.name})" if event.name else event.agent)
    if report := event.report:
        yield f"## Result of {who}\n\n*{_when(at)} · {report.status}*"
    else:
        yield f"## Message from {who}\n\n*{_when(at)}*"
    yield from (harmless(part.text).strip("\n") for part in event.content)


def _part(part: Any) -> str:
    match part:
        case Text(text=text):
            return harmless(text).strip("\n")
        case Embedded(uri=uri, text=text):
            return f"Attached: {_code(uri)}\n\n{fenced(harmless(text))}"
        case Link(uri=uri, name=name) | Image(hash=uri, name=name):
            return f"Attached: {_code(name or uri)}"
    return ""


def _when(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"


def _code(text: str) -> str:
    """Returns a code span, in which nothing needs to be escaped."""
    inside = one_line(text).replace("`", "'")
    return f"`{inside}`"


def escaped(text: str) -> str:
    """Returns the text on one line, such that Markdown shows it as it stands."""
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", one_line(text))
