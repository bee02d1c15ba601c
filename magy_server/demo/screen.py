"""The demo shows session updates on a terminal: text streams, tool calls are one line each."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from typing import Any

BOLD, DIM, RED, GREEN, YELLOW, BLUE, CYAN = "1", "2", "31", "32", "33", "34", "36"

TAIL = 10
"""Lines of a command's output."""


class Screen:
    """Colours only on a terminal, and not with NO_COLOR. `pause` is for the reader, in seconds.
    `margin` stands before each line, and `who` before what the agent says."""

    def __init__(self, pause: float, margin: str = "", who: str = "magy") -> None:
        self.pause = pause
        self._margin = margin
        self._who = f"  {who}  "
        self._fresh = True
        """A line begins."""
        self._colours = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        self._width = min(100, shutil.get_terminal_size((88, 24)).columns) - len(margin)
        self._streaming: str | None = None
        self._held = ""
        self._titles: dict[str, str] = {}
        self._kinds: dict[str, str] = {}
        self._shown: dict[str, str] = {}
        """What was streamed so far, by message or call."""

    def say(self, text: str, *codes: str, end: str = "\n") -> None:
        if self._margin:
            begins = self._margin if self._fresh and text + end else ""
            text = begins + text.replace("\n", f"\n{self._margin}")
        if text + end:
            self._fresh = (text + end).endswith("\n")
        if codes and self._colours:
            text = f"\033[{';'.join(codes)}m{text}\033[0m"
        print(text, end=end, flush=True)

    def scene(self, title: str) -> None:
        self._break()
        self.say(f"\n── {title} " + "─" * max(0, self._width - len(title) - 4), BLUE, BOLD)

    def aside(self, text: str) -> None:
        self._break()
        for n, line in enumerate(f"({text})".split("\n")):
            first = "   " if n else "  "
            hang = "     " if line.startswith("- ") else "   "
            self.say(textwrap.fill(line, self._width, initial_indent=first, subsequent_indent=hang,
                                   break_on_hyphens=False), DIM)  # fmt: skip

    def good(self, text: str) -> None:
        self.say(textwrap.fill(text, self._width), GREEN)

    def asked(self, title: str) -> None:
        self._break()
        self.say(f"  ? {title}", YELLOW, BOLD)

    def answered(self, allow: bool, reason: str, scope: str = "once") -> None:
        word = f"allowed {scope}" if allow else "refused"
        self.say(f"    Ada: {word}{f' — {reason}' if reason and not allow else ''}",
                 GREEN if allow else RED)  # fmt: skip

    def decided(self, good: bool, text: str) -> None:
        self.say(textwrap.fill(f"    {text}", self._width, subsequent_indent="    "),
                 GREEN if good else RED)  # fmt: skip

    def diff(self, text: str) -> None:
        for line in text.splitlines():
            colour = {"+": GREEN, "-": RED, "@": CYAN}.get(line[:1])
            self.say(f"    {line}", *([colour] if colour else [DIM]))

    def usage(self, usage: dict[str, int]) -> None:
        read = usage["cachedReadTokens"]
        prompt = usage["inputTokens"] + read + usage["cachedWriteTokens"]
        share = f"{100 * read // prompt} % of the prompt from cache" if prompt else "no prompt"
        self.say(f"\n  {usage['totalTokens']} tokens, {usage['outputTokens']} of them written; "
                 f"{share}", DIM)  # fmt: skip

    def update(self, update: dict[str, Any]) -> None:
        match update["sessionUpdate"]:
            case "agent_message_chunk":
                self._stream(update["messageId"], update["content"]["text"], self._who)
            case "agent_thought_chunk":
                self._stream(update["messageId"], update["content"]["text"], "  thinks  ", DIM)
            case "tool_call_content_chunk":
                text = update["content"]["content"]["text"]
                self._stream(update["toolCallId"], text, "    │ ", DIM)
            case "user_message":
                self._break()
                whose = "task  " if update["messageId"].endswith(":task") else "Ada   "
                self.say(f"  {whose}{update['content'][0]['text']}", BOLD)
            case "agent_message":
                self._rest(update["messageId"], _texts(update["content"]), self._who)
            case "agent_thought":
                self._rest(update["messageId"], _texts(update["content"]), "  thinks  ", DIM)
            case "tool_call_update":
                self._tool(update)
            case "plan_update":
                self._plan(update["plan"]["entries"])
            case "notice":
                self.aside(f"{update['title']}: {update['description']}")

    def _stream(self, id: str, text: str, label: str, *codes: str) -> None:
        if self._streaming != id:
            self._break()
            self.say(label, *codes, end="")
            self._streaming, self._held = id, ""
        self._shown[id] = self._shown.get(id, "") + text
        indent = " " * len(label) if not label.endswith("│ ") else label
        text = self._held + text
        said = text.rstrip("\n")  # a line that nothing may follow is not begun
        self._held = text[len(said) :]
        self.say(said.replace("\n", f"\n{indent}"), *codes, end="")

    def _rest(self, id: str, whole: str, label: str, *codes: str) -> None:
        """The whole text, of which the beginning may have streamed."""
        shown = self._shown.pop(id, "")
        rest = whole.removeprefix(shown).rstrip("\n")
        if rest:
            self._stream(id, rest, label, *codes)
        self._shown.pop(id, None)
        self._break()

    def _break(self) -> None:
        if self._streaming is not None:
            self.say("")
            self._streaming = None

    def _tool(self, update: dict[str, Any]) -> None:
        call = update["toolCallId"]
        about = update.get("_meta", {}).get("magy", {})
        if title := update.get("title"):
            self._titles[call] = title
        self._kinds[call] = update.get("kind", self._kinds.get(call, ""))
        if decision := about.get("decision"):
            self._break()
            self.say(f"  → {self._titles[call]}", CYAN, end="")
            self.say(f"   [{decision['action']}: {decision['rule']}]", DIM)
        status = about.get("status")
        if status and update.get("status") in ("completed", "failed", "cancelled"):
            self._said(call, update.get("content", []))
            colour = GREEN if status == "completed" else RED
            self.say(f"    {status}", colour)

    def _said(self, call: str, content: list[dict[str, Any]]) -> None:
        """A change in full; of a command's output the end, unless it streamed."""
        if self._kinds[call] == "execute":
            texts = [block["content"] for block in content if block["type"] == "content"]
            shown = self._shown.pop(call, "").strip("\n")
            status, _, body = _texts(texts).partition("\n")
            rest = body.strip("\n").removeprefix(shown) if status.startswith("[") else status
            self._break()
            for line in rest.strip("\n").splitlines()[-TAIL:]:
                self.say(f"    │ {line}", DIM)
        self._break()
        for block in content:
            if block["type"] == "diff":
                self.diff(block["patch"]["text"])

    def _plan(self, entries: list[dict[str, str]]) -> None:
        self._break()
        marks = {"completed": "✓", "in_progress": "▸", "pending": "·", "cancelled": "✗"}
        for entry in entries:
            self.say(f"    {marks[entry['status']]} {entry['content']}")


def _texts(blocks: list[dict[str, Any]]) -> str:
    return "".join(block["text"] for block in blocks if block["type"] == "text")
