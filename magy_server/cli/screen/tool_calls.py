"""This module shows a tool call as lines: its title, what came of it, and the question about it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from magy_server.cli.screen.text import Marks, Span, counted, filled
from magy_server.core.text import sanitizing
from magy_server.core.text.columns import shortened, width_of, wrapped
from magy_server.core.text.sanitizing import harmless, one_line, unpadded, visible
from magy_server.dataclass import dataclass
from magy_server.regex import regex

TAIL = 10
"""Lines of a command's output that stay on the screen."""
DIFF = 120
"""Lines of a diff that are shown; `magy sessions show` has all of them."""
AROUND = 5
"""Rows of the screen that a question needs beside its own lines and what it would do."""
COVERS = 3
"""Lines of what a remembered answer would cover that are shown at once."""
TITLE = 100
"""Characters of a title."""
SAID = 6
"""Lines of what a failed call said."""
INDENT = "    "
ONCE = "no lasting yes: Magy cannot tell what it would allow"

_STATUS_LINE = regex(r"\A\[((?:exit code|ended by|timed out|stopped)[^\n]*)\](?:\n|\Z)")
WORDS = {
    "failed": "failed", "denied": "not allowed", "cancelled": "cancelled",
    "unknown": "outcome unknown", "not_run": "not run",
}  # fmt: skip


@dataclass(slots=True)
class Call:
    """What the updates have said of a call so far."""

    id: str
    name: str = ""
    title: str = ""
    kind: str = ""
    raw: Any = None
    patch: str = ""
    text: str = ""
    status: str = ""
    """How it ended, in the log's words; "" while it goes on."""
    duration: float = 0.0
    graph: bool = False
    """It runs a graph of tasks."""
    card: Mapping[str, Any] | None = None
    """The deliberation that it is, as it is by now."""
    asked: bool = False
    """A question has shown what it would do."""
    folded: bool = False
    """The question has not shown all of that."""
    last: str = ""
    """The newest line of its output that is not blank."""
    lines: int = 0
    _rest: str = field(default="", repr=False)

    def merge(self, update: Mapping[str, Any]) -> None:
        self.name = update.get("name", self.name)
        if update.get("title") and update.get("title") != self.name:
            self.title = update["title"]
        self.kind = update.get("kind", self.kind)
        self.raw = update.get("rawInput", self.raw)
        about = update.get("_meta", {}).get("magy", {})
        self.status = about.get("status", self.status)
        self.duration = about.get("duration", self.duration)
        self.graph = self.graph or "graph" in about
        self.card = about.get("deliberation", None if self.status else self.card)
        texts = []
        for block in update.get("content", ()):
            if block["type"] == "diff":
                self.patch = block["patch"]["text"]
            elif block["type"] == "content" and block["content"]["type"] == "text":
                texts.append(block["content"]["text"])
        self.text = "\n\n".join(texts) or self.text

    def stream(self, text: str) -> None:
        *whole, self._rest = (self._rest + harmless(text)).split("\n")
        self._rest = self._rest[-4096:]
        self.lines += len(whole)
        for line in (*whole, self._rest):
            self.last = line.strip() or self.last

    @property
    def headline(self) -> str:
        if self.title:
            return one_line(self.title)
        given = self.raw if isinstance(self.raw, str) else json.dumps(self.raw, ensure_ascii=False)
        built = f"{self.name} {given[: 4 * TITLE]}" if self.raw else self.name
        return shortened(one_line(built), TITLE, "...")

    @property
    def command(self) -> str:
        given = self.raw.get("command") if isinstance(self.raw, dict) else None
        return unpadded(given) if isinstance(given, str) else ""


def outcome(call: Call, marks: Marks, width: int | None, *, whole: bool = False) -> list[Span]:
    """Returns a finished call: one line, and below it its diff, the end of its output or why it
    failed. `whole`: it leaves nothing out."""
    body = harmless(call.text)
    said: list[str] = []
    good = call.status == "completed"
    if call.kind == "execute" and (ending := _STATUS_LINE.match(body)):
        said.append(ending.group(1))
        body = body[ending.end() :]
    elif not good:
        said.append(WORDS.get(call.status, call.status))
    if call.patch:
        said.append(counts(call.patch))
    if call.duration >= 1 and not any(" s" in word for word in said):
        said.append(f"{call.duration:.1f} s")
    mark, style = (marks.done, "green") if good else (marks.failed, "red")
    if call.status in ("cancelled", "not_run"):
        mark, style = marks.skipped, "yellow"
    headline = call.headline if whole else shortened(call.headline, TITLE, marks.cut)
    spans = _line(mark, style, headline, f" {marks.dot} ".join(said), marks, width)
    if call.asked and call.status == "denied":
        return spans  # question and answer stand right above
    if call.card and width is not None:
        return spans + card(call.card, width)
    if call.patch and not (call.asked and good):
        spans += diff(call.patch, marks, None if whole else DIFF)
    if call.kind == "execute":
        spans += _tail(body, marks, width, whole)
    elif call.status not in ("completed", "not_run") or whole or call.graph:
        spans += _said(body, marks, width, whole or call.graph)
    return spans


def card(shown: Mapping[str, Any], width: int) -> list[Span]:
    """Returns a deliberation as a box, or as rows on a screen that is too narrow for it."""
    box = shown["box"] if width_of(shown["box"][0]) <= width else None
    rows = box or [row for line in shown["rows"] for row in wrapped(line, width, long=True)]
    spans: list[Span] = []
    for row in rows:
        at = 0
        for found in _VERDICT.finditer(row):
            spans += [(row[at : found.start()], ""), (found[0], _VOTES[found[0]])]
            at = found.end()
        spans.append((f"{row[at:]}\n", ""))
    return spans


_VOTES = {
    "APPROVE": "green", "APPROVED": "green", "CAVEATED": "yellow", "DEADLOCK": "yellow",
    "REJECT": "red", "REJECTED": "red", "DISSENTS": "red", "AGAINST": "red",
}  # fmt: skip
_VERDICT = regex(rf"\b(?:{'|'.join(_VOTES)})\b")


def _line(
    mark: str, style: str, headline: str, detail: str, marks: Marks, width: int | None
) -> list[Span]:
    detail = f"  {detail}" if detail else ""
    if width is not None:
        room = max(12, width - width_of(mark) - 1 - width_of(detail))
        headline = shortened(headline, room, marks.cut)
    return [(mark, style), (f" {headline}", ""), (detail, "dim"), ("\n", "")]


def counts(patch: str) -> str:
    lines = [line for line in patch.split("\n") if not line.startswith(("+++", "---"))]
    added = sum(line.startswith("+") for line in lines)
    return f"+{added} -{sum(line.startswith('-') for line in lines)}"


def diff(patch: str, marks: Marks, limit: int | None = DIFF) -> list[Span]:
    """Returns a unified diff in colours, with at most `limit` lines."""
    lines = _coloured(patch)
    spans = lines[:limit]
    if left := len(lines) - len(spans):
        spans.append(_left(left, marks, "the diff"))
    return spans


def _coloured(patch: str) -> list[Span]:
    spans: list[Span] = []
    for line in harmless(patch).rstrip("\n").split("\n"):
        head = line.startswith(("+++", "---"))
        style = "dim" if head else {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
        spans.append((f"{INDENT}{line}\n", style))
    return spans


def _left(lines: int, marks: Marks, of: str) -> Span:
    return (f"{INDENT}{marks.cut} {counted(lines, 'more line')} of {of}\n", "dim")


def _tail(body: str, marks: Marks, width: int | None, whole: bool) -> list[Span]:
    if body.strip() in ("", "(no output)"):
        return []
    lines = body.rstrip("\n").split("\n")
    shown = lines if whole else lines[-TAIL:]
    bar = f"{INDENT}{marks.bar} "
    spans: list[Span] = []
    if left := len(lines) - len(shown):
        spans.append((f"{bar}{marks.cut} {counted(left, 'earlier line')}\n", "dim"))
    rows = [row for line in shown for row in _wrapped(line, width, width_of(bar))]
    return spans + [(f"{bar}{row}\n", "dim") for row in rows]


def _said(body: str, marks: Marks, width: int | None, whole: bool) -> list[Span]:
    lines = body.strip("\n").split("\n") if body.strip() else []
    shown = lines[: None if whole else SAID]
    spans: list[Span] = [(filled(line, width, INDENT), "dim") for line in shown]
    if not whole and len(lines) > SAID:
        more = counted(len(lines) - SAID, "more line")
        spans.append((f"{INDENT}{marks.cut} {more}\n", "dim"))
    return spans


def question(
    asked: Mapping[str, Any],
    call: Call,
    marks: Marks,
    width: int | None = None,
    height: int | None = None,
) -> list[Span]:
    """Returns the question: what is asked, what the call would do, and why Magy asks. It has no
    more lines than a screen of so many columns and rows shows at once."""
    title = visible(asked["title"])
    headline = _fitted(title, width, height)
    head: list[Span] = [(f"{marks.asked} {headline}\n", "question")]
    covers = _covers(asked)
    tail: list[Span] = [(f"{INDENT}asked because: {visible(asked['rule'])}\n", "dim")]
    tail += covers[:COVERS]
    if left := len(covers[COVERS:]):
        tail.append((f"{INDENT}{marks.cut} and {left:,} more\n", "dim"))
    call.asked = True
    if not (call.patch or call.text):
        call.merge({"content": asked.get("content", ())})
    lines = _ahead(call, title, marks, width)
    shown = lines[: _fitting(lines, [*head, *tail], width, height)]
    call.folded = len(shown) < len(lines) or bool(left) or headline != title
    if left := len(lines) - len(shown):
        shown += [
            _left(left, marks, "the diff" if call.patch else "it"),
            _again(headline, call, marks),
        ]
    return head + shown + tail


def _fitted(title: str, width: int | None, height: int | None) -> str:
    """Of a title that would fill the screen, both ends: what it begins with says what is asked."""
    if height is None:
        return title
    room = max(5, height - AROUND - COVERS) * (width or 80)
    return title if width_of(title) <= room else sanitizing.shortened(title, room // 3)


def is_about_agents(asked: Mapping[str, Any]) -> bool:
    """Whether a yes, even one that does not last, holds for other agents, too."""
    return any(grant["key"] == "agent" for grant in asked["remember"])


def _covers(asked: Mapping[str, Any]) -> list[Span]:
    """Returns what a yes may allow besides, or why the question offers no lasting one."""
    if asked.get("form"):
        return []
    if not asked["remember"]:
        return [(f"{INDENT}{ONCE}\n", "dim")]
    which = "any yes" if is_about_agents(asked) else "a lasting yes"
    return [(f"{INDENT}{which} would allow: {visible(one)}\n", "dim") for one in asked["covers"]]


def _ahead(call: Call, title: str, marks: Marks, width: int | None) -> list[Span]:
    """Returns a span for each line of what the call would do, as far as the title does not say
    it."""
    if call.patch:
        return _coloured(call.patch)
    text = (unpadded(call.text) or call.command).strip("\n")
    if not _untold(text, title):
        return []
    bar = f"{INDENT}{marks.bar} "  # nothing in it passes for a line of the question
    return [(f"{bar}{line}\n", "") for line in _wrapped(text, width, width_of(bar))]


def _untold(text: str, title: str) -> bool:
    return "\n" in text.strip() or text.strip().replace("\t", " ") not in title


def _wrapped(text: str, width: int | None, indent: int) -> list[str]:
    """Returns the rows of a text, none longer than the screen is wide."""
    lines = text.split("\n")
    if width is None:
        return lines
    room = max(20, width - indent)
    return [row for line in lines for row in wrapped(line.expandtabs(4), room, long=True)]


def _fitting(lines: list[Span], around: list[Span], width: int | None, height: int | None) -> int:
    """Returns how many lines leave room for the question around them."""
    if height is None:
        return DIFF
    columns = max(1, width or 80)
    room = rows = max(5, height - AROUND - sum(_rows(line, columns) for line, _ in around))
    for count, (line, _) in enumerate(lines[:room]):
        rows -= _rows(line, columns)
        if rows < 0:
            return max(1, count)
    return room


def _rows(line: str, columns: int) -> int:
    return max(1, -(-width_of(line.rstrip("\n")) // columns))


def unfolded(
    asked: Mapping[str, Any], call: Call, marks: Marks, width: int | None = None
) -> list[Span]:
    """Returns all that a question is about, and below it the question."""
    title = visible(asked["title"])
    return [*_covers(asked), *_ahead(call, title, marks, width), _again(title, call, marks)]


def _again(title: str, call: Call, marks: Marks) -> Span:
    return (f"{marks.asked} {title}{f'  {counts(call.patch)}' if call.patch else ''}\n", "question")
