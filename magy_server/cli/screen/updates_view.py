"""A view turns session updates into what a terminal shows of them. It holds what was shown so far,
and does no I/O.

Text streams word by word; each tool call is one line when it has ended, with what it did below.
What is under way is one passing line (`live`), which the caller draws and wipes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from magy_server.cli.screen import tool_calls
from magy_server.cli.screen.text import (
    Marks,
    Span,
    Stream,
    counted,
    filled,
    first_words,
)
from magy_server.cli.screen.tool_calls import Call
from magy_server.cli.screen.written_markdown import Written
from magy_server.core.text.columns import shortened
from magy_server.core.text.sanitizing import harmless, one_line

if TYPE_CHECKING:
    from magy_server.cli.screen.rendered_markdown import Rendered

SEVERITY = {"error": "red", "warning": "yellow"}
TASKS = {"completed": "green", "in_progress": "bold", "cancelled": "dim"}


class View:
    """`thinking`: show it. `whole`: the transcript of a session, with what people said and nothing
    left out. `rendered`: Markdown is shown as what it means; else as it was written, and `wraps`
    says that its lines may wait until they are whole."""

    def __init__(
        self,
        marks: Marks,
        *,
        thinking: bool = False,
        whole: bool = False,
        rendered: bool = False,
        wraps: bool = True,
    ) -> None:
        self._marks = marks
        self._rendered = rendered
        self._wraps = wraps
        self._thinking = thinking
        self._whole = whole
        self._unsaid = () if whole else ("Stopped",)
        self.height: int | None = None
        """Rows of the screen; None: there is no end to it."""
        self._calls: dict[str, Call] = {}
        self._asked: dict[str, tuple[Mapping[str, Any], Call]] = {}
        """What is asked about which call, by the id of the question."""
        self._noticed: list[Span] = []
        """The notice that was written last, while nothing else is."""
        self._streamed: dict[str, str] = {}
        self._block = ""
        """Id of the message or kind of the lines that were written last."""
        self._prose: Written | Rendered | None = None
        self._stream = Stream()
        self._style = ""
        self._mid_line = False
        self._doing = ""
        self._prompts: dict[str, str] = {}
        """The first line of each, by its id: that of its turn, if it began one."""
        self._redid: dict[str, bool] = {}
        """Of each restore, by its id: whether it did again what was undone."""

    # --- in -------------------------------------------------------------------------------------

    def update(self, update: Mapping[str, Any], width: int | None) -> list[Span]:
        """Returns what to write now. `width` is in columns; with None it wraps and cuts nothing."""
        match update["sessionUpdate"]:
            case "agent_message_chunk" | "agent_thought_chunk" as kind:
                text = update["content"]["text"]
                return self._message(
                    update["messageId"], text, kind == "agent_thought_chunk", width
                )
            case "agent_message" | "agent_thought" as kind:
                return self._replace(update, kind == "agent_thought", width)
            case "tool_call_update":
                return self._call(update, width)
            case "tool_call_content_chunk":
                call = self._of(update["toolCallId"])
                call.stream(update["content"]["content"]["text"])
            case "plan_update":
                return self._lines("plan", self._plan(update["plan"]["entries"]), width)
            case "notice" if update["title"] in ("Restored", *self._unsaid):
                return []
            case "notice":
                notice = self._notice(update, width)
                again = self._block == "notice" and self._noticed == notice
                self._noticed = notice
                return [] if again else self._lines("notice", notice, width)
            case "_magy_restored":
                return self._lines("notice", self._restored(update), width)
            case "_magy_progress":
                self._doing = update["text"]
            case "user_message":
                return self._said(update, width)
            case "_magy_interaction":
                return self._interaction(update, width)
            case "state_update":
                return self._state(update, width)
        return []

    def close(self, width: int | None) -> list[Span]:
        """Ends what is being written; the next thing begins on a line of its own."""
        spans: list[Span] = []
        if self._prose:
            rest = self._prose.feed(self._stream.close(), width) + self._prose.close(width)
            spans = self._dress(rest)
            self._prose = None
        self._mid_line = _ends_mid_line(spans, self._mid_line)
        if self._mid_line:
            spans.append(("\n", ""))
            self._mid_line = False
        return spans

    def live(self, width: int | None) -> str:
        """Returns on one line what is under way; "" while text streams, which shows for itself."""
        if self.mid_line:
            return ""
        open_calls = [call for call in self._calls.values() if not call.status]
        if not open_calls:
            return self._doing
        call = open_calls[-1]
        headline = call.headline
        if call.last:  # the output is the news, and needs the room
            headline = shortened(headline, max(24, (width or 80) // 3), self._marks.cut)
        if len(open_calls) > 1:
            headline += f" (and {len(open_calls) - 1} more)"
        if not call.last:
            return headline
        count = f"{counted(call.lines, 'line')}: " if call.lines > 1 else ""
        return f"{headline} {self._marks.bar} {count}{one_line(call.last)}"

    @property
    def mid_line(self) -> bool:
        """Returns whether text streams, and has not come to the end of its line."""
        return self._mid_line or bool(self._prose and self._prose.under_way)

    def draft(self, width: int | None, height: int | None) -> list[Span]:
        """What is written and not final, to be shown for now."""
        if self._prose:
            return self._dress(self._prose.draft(width, height))
        cards = [call.card for call in self._calls.values() if call.card]
        if not cards or width is None:
            return []
        shown: list[Span] = []
        room = (height or 24) - 2  # from the very top tmux would keep what is wiped
        for span in tool_calls.card(cards[-1], width):
            shown.append(span)
            room -= span[0].count("\n")
            if room == 0:
                break
        return shown

    def _question(self, asked: Mapping[str, Any], width: int | None) -> list[Span]:
        """Begins on a line of its own. That of a child names its session; a form is about something
        else than the call."""
        apart = "sessionId" in asked or asked.get("form")
        own = None if apart else self._calls.get(asked["toolCallId"])
        call = own or Call(asked["toolCallId"])
        self._asked[asked["interactionId"]] = (asked, call)
        spans = self._begin("calls", width)
        return spans + tool_calls.question(asked, call, self._marks, width, self.height)

    def folded(self, question: str) -> bool:
        """Whether this question has shown only the beginning of what it is about."""
        return question in self._asked and self._asked[question][1].folded

    def unfold(self, question: str, width: int | None) -> list[Span]:
        return tool_calls.unfolded(*self._asked[question], self._marks, width)

    # --- text -----------------------------------------------------------------------------------

    def _message(self, id: str, text: str, thought: bool, width: int | None) -> list[Span]:
        self._streamed[id] = self._streamed.get(id, "") + text
        self._doing = "thinking" if thought else "waiting for the model"
        if thought and not self._thinking:
            return []
        spans: list[Span] = []
        if self._block != id or self._prose is None:
            text = text.lstrip("\n")
            if not text:
                return []
            spans = self._begin(id, width)
            self._prose, self._stream = self._writer(), Stream()
            self._style = "dim" if thought else ""
        assert self._prose
        new = self._dress(self._prose.feed(self._stream.feed(text), width))
        self._mid_line = _ends_mid_line(new, self._mid_line)
        return spans + new

    def _writer(self) -> Written | Rendered:
        if not self._rendered:
            return Written(wraps=self._wraps)
        # It takes longer to import than all else here.
        from magy_server.cli.screen.rendered_markdown import Rendered

        return Rendered()

    def _replace(self, update: Mapping[str, Any], thought: bool, width: int | None) -> list[Span]:
        """Takes the whole message, and returns what of it has not streamed yet."""
        id = update["messageId"]
        parts = [block["text"] for block in update["content"]]
        before = self._streamed.pop(id, "")
        if not parts:  # the reply is tried again, from its beginning
            hidden = thought and not self._thinking
            return self.close(width) if hidden or not before else self._lines(
                "notice", [("(cut off; started again)\n", "dim")], width)  # fmt: skip
        whole = "".join(parts)
        spans: list[Span] = []
        if not before:
            spans = self._message(id, "\n\n".join(parts), thought, width)
        elif whole.startswith(before):
            rest = whole[len(before) :]
            spans = self._message(id, rest, thought, width) if rest else []
        else:
            spans = self.close(width)
            self._block = ""
            spans += self._message(id, whole, thought, width)
        self._streamed.pop(id, None)
        return spans + self.close(width)

    def _dress(self, spans: list[Span]) -> list[Span]:
        return [(text, self._style or style) for text, style in spans]

    def _begin(self, block: str, width: int | None) -> list[Span]:
        """A blank line between things of different kinds."""
        spans = self.close(width)
        if self._block and self._block != block:
            spans.append(("\n", ""))
        self._block = block
        return spans

    def _lines(self, block: str, lines: list[Span], width: int | None) -> list[Span]:
        return [*self._begin(block, width), *lines] if lines else []

    # --- everything else ------------------------------------------------------------------------

    def _of(self, id: str) -> Call:
        return self._calls.setdefault(id, Call(id))

    def _call(self, update: Mapping[str, Any], width: int | None) -> list[Span]:
        call = self._of(update["toolCallId"])
        call.merge(update)
        if not call.status:
            return self.close(width)
        del self._calls[call.id]
        self._doing = "waiting for the model"
        if call.kind == "think" and call.status == "completed":
            return []  # the plan shows for itself
        lines = tool_calls.outcome(call, self._marks, width, whole=self._whole)
        return self._lines("calls", lines, width)

    def _plan(self, entries: list[dict[str, str]]) -> list[Span]:
        marks = {"completed": self._marks.done, "in_progress": self._marks.current,
                 "cancelled": self._marks.skipped}  # fmt: skip
        return [
            (f"  {marks.get(entry['status'], self._marks.pending)} {one_line(entry['content'])}\n",
             TASKS.get(entry["status"], ""))
            for entry in entries
        ]  # fmt: skip

    def _notice(self, update: Mapping[str, Any], width: int | None) -> list[Span]:
        """With its own lines, as a list has them."""
        title = "" if update["title"] == "Model" else f"{one_line(update['title'])}: "
        said = harmless(title + update["description"])
        style = SEVERITY.get(update["severity"], "dim")
        return [(filled(said, width, f"{self._marks.notice} "), style)]

    def _restored(self, update: Mapping[str, Any]) -> list[Span]:
        """Says that somebody went back, or forth again."""
        undoes = update["undoes"]
        redid = self._redid[update["restoreId"]] = bool(undoes) and not self._redid.get(undoes)
        what = [counted(len(update["changes"]), "file")] if update["files"] else []
        what += ["the conversation"] if update["conversation"] else []
        said = f"{'redone' if redid else 'undone'}: {' and '.join(what)}"
        if not redid and (prompt := self._prompts.get(update["turnId"])):
            said += f', back to before "{prompt}"'
        if left := len(update["conflicts"]):
            said += f"; {counted(left, 'file')} left alone"
        return [(f"{self._marks.notice} {said}\n", "dim")]

    def _said(self, update: Mapping[str, Any], width: int | None) -> list[Span]:
        texts = (block["text"] for block in update["content"] if block["type"] == "text")
        self._prompts[update["messageId"]] = first_words("\n".join(texts), self._marks.cut)
        if not self._whole:
            return []
        return self._lines(update["messageId"], self._person(update["content"]), width)

    def _person(self, content: list[dict[str, Any]]) -> list[Span]:
        spans: list[Span] = []
        for block in content:
            if block["type"] == "text":
                lines = harmless(block["text"]).strip("\n").split("\n")
                spans += [(f"> {line}\n", "bold") for line in lines]
            elif block["type"] == "resource":
                about = block["resource"]
                size = counted(about["text"].count("\n") + 1, "line")
                spans.append((f"> [{one_line(about['uri'])}, {size}]\n", "dim"))
            else:
                name = block.get("name") or block.get("uri", "")
                spans.append((f"> [{one_line(name)}]\n", "dim"))
        return spans

    def _interaction(self, update: Mapping[str, Any], width: int | None) -> list[Span]:
        if opened := update.get("open"):
            return self._question(opened, width)
        resolved = update.get("resolved", {})
        allowed = resolved.get("outcome") == "allowed"
        scope = {"session": " for this session", "project": " for this project"}
        said = "allowed" + scope.get(resolved.get("scope", ""), "") if allowed else "refused"
        if reason := one_line(resolved.get("reason", "")):
            said += f": {reason}"
        line = (f"{tool_calls.INDENT}{said}\n", "green" if allowed else "red")
        return self._lines("calls", [line], width)

    def _state(self, update: Mapping[str, Any], width: int | None) -> list[Span]:
        if update["state"] != "idle":
            self._doing = self._doing or "waiting for the model"
            return []
        self._doing = ""
        about = update.get("_meta", {}).get("magy", {})
        spans = self.close(width)
        if not (message := harmless(about.get("message", "")).strip("\n")):
            return spans
        style = "red" if about.get("stop") == "error" else "yellow"
        mark = f"{self._marks.failed if style == 'red' else self._marks.notice} "
        first, more, rest = message.partition("\n")
        lines: list[Span] = [(filled(first, width, mark), style)]
        lines += [(filled(rest, width), "")] if more else []
        return spans + self._lines("ended", lines, width)


def _ends_mid_line(spans: list[Span], before: bool) -> bool:
    text = next((text for text, _ in reversed(spans) if text), None)
    return before if text is None else not text.endswith("\n")
