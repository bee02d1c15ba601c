"""The demo shows session updates on a terminal: text streams, tool calls are one line each."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any

from magy_server.cli.plain_output import tell
from magy_server.regex import regex

BOLD, DIM, RED, GREEN, YELLOW, BLUE, CYAN = "1", "2", "31", "32", "33", "34", "36"

TAIL = 10
"""Lines of a command's output."""
INDENT = "    "
PART = regex(r"\n|[^\S\n]+|\S+")
BEGUN = regex(r"\S*\n*\Z")
"""The word that may go on with what streams next, and line ends that nothing may follow."""


class Screen:
    """Colours only on a terminal, and not with NO_COLOR. `pause` is for the reader, in seconds.
    `margin` stands before each line, and `who` before what the agent says."""

    def __init__(self, pause: float, margin: str = "", who: str = "magy") -> None:
        self.pause = pause
        self._margin = margin
        self._who = f"  {who}  "
        self._column = 0
        self._gap = ""
        """Blanks that stand before the next word, if that is on the same line."""
        self._colours = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        self._width = min(100, shutil.get_terminal_size((88, 24)).columns) - len(margin)
        self._streaming: str | None = None
        self._styled: tuple[str, tuple[str, ...]] = "", ()
        """What hangs before the rows of what streams, and its colours."""
        self._held = ""
        self._titles: dict[str, str] = {}
        self._kinds: dict[str, str] = {}
        self._shown: dict[str, str] = {}
        """What was streamed so far, by message or call."""

    def say(self, text: str, *codes: str, end: str = "\n", hang: str = INDENT) -> None:
        """`hang` stands before the further rows of a line that is longer than the screen is
        wide."""
        text = self._fitted(text, hang)
        end = self._fitted(end, hang)
        if codes and self._colours:
            text = f"\033[{';'.join(codes)}m{text}\033[0m"
        tell(text + end)

    def _fitted(self, text: str, hang: str) -> str:
        """Returns the text as it goes on after what was said, divided between words."""
        out: list[str] = []
        for part in PART.findall(text):
            if part == "\n":
                out.append("\n" if self._column or not self._margin else f"{self._margin}\n")
                self._column, self._gap = 0, ""
            elif part.isspace():
                self._gap += part
            else:
                out.append(self._placed(part, hang))
        return "".join(out)

    def _placed(self, word: str, hang: str) -> str:
        """Returns the word behind what stands before it. One that fits in no row is divided, a
        rule cut off."""
        before = self._gap if self._column else self._margin + self._gap
        room = self._width - self._column - len(self._gap)
        if self._column and len(word) > room and (room < 1 or len(word) <= self._width - len(hang)):
            before = f"\n{self._margin}{hang}"
            self._column, self._gap = len(hang), ""
            room = self._width - len(hang)
        self._column += len(self._gap) + len(word[:room])
        self._gap = ""
        rest = word[max(1, room) :] if len(set(word)) > 1 else ""
        return before + word[: max(1, room)] + (self._placed(rest, hang) if rest else "")

    def scene(self, title: str) -> None:
        self._break()
        self.say(f"\n── {title} " + "─" * max(0, self._width - len(title) - 4), BLUE, BOLD, hang="")

    def aside(self, text: str) -> None:
        self._break()
        for n, line in enumerate(f"({text})".split("\n")):
            first = "   " if n else "  "
            hang = "     " if line.startswith("- ") else "   "
            self.say(first + line, DIM, hang=hang)

    def good(self, text: str) -> None:
        self.say(text, GREEN, hang="")

    def asked(self, title: str) -> None:
        self._break()
        self.say(f"  ? {title}", YELLOW, BOLD)

    def answered(self, allow: bool, reason: str, scope: str = "once") -> None:
        word = f"allowed {scope}" if allow else "refused"
        self.say(f"    Ada: {word}{f' — {reason}' if reason and not allow else ''}",
                 GREEN if allow else RED)  # fmt: skip

    def decided(self, good: bool, text: str) -> None:
        self.say(f"    {text}", GREEN if good else RED)

    def diff(self, text: str) -> None:
        for line in text.splitlines():
            colour = {"+": GREEN, "-": RED, "@": CYAN}.get(line[:1])
            self.say(f"    {line}", *([colour] if colour else [DIM]))

    def usage(self, usage: dict[str, int]) -> None:
        read = usage["cachedReadTokens"]
        prompt = usage["inputTokens"] + read + usage["cachedWriteTokens"]
        share = f"{100 * read // prompt} % of the prompt from cache" if prompt else "no prompt"
        self.say(f"\n  {usage['totalTokens']} tokens, {usage['outputTokens']} of them written; "
                 f"{share}", DIM, hang="  ")  # fmt: skip

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
                hang = " " * len(f"  {whose}")
                self.say(f"  {whose}{update['content'][0]['text']}", BOLD, hang=hang)
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
        said = BEGUN.sub("", text)
        self._held = text[len(said) :]
        self.say(said.replace("\n", f"\n{indent}"), *codes, end="", hang=indent)
        self._styled = indent, codes

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
            indent, codes = self._styled
            self.say(self._held.strip(), *codes, hang=indent)
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
            self._said(call, update.get("content", []), graph="graph" in about)
            colour = GREEN if status == "completed" else RED
            self.say(f"    {status}", colour)

    def _said(self, call: str, content: list[dict[str, Any]], *, graph: bool) -> None:
        """A change in full; of a command's output the end, unless it streamed; of a graph of tasks
        what was found in bringing it together."""
        if self._kinds[call] == "execute":
            texts = [block["content"] for block in content if block["type"] == "content"]
            shown = self._shown.pop(call, "").strip("\n")
            status, _, body = _texts(texts).partition("\n")
            rest = body.strip("\n").removeprefix(shown) if status.startswith("[") else status
            self._break()
            for line in rest.strip("\n").splitlines()[-TAIL:]:
                self.say(f"    │ {line}", DIM, hang="    │ ")
        self._break()
        for block in content[1:] if graph else ():  # first stand the tasks, which streamed
            self.say(f"    {block['content']['text']}", YELLOW)
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
