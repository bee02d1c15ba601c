"""An editor without Magy code asks for permission by a message with buttons.

It shows all of what would run, or both its ends and a button that shows the rest. The first button,
which some editors take for RET, refuses; what is dismissed stays open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from magy_server.api.places import uri_of
from magy_server.api.sessions.transcripts import file_name, write
from magy_server.core.errors import MagyError
from magy_server.core.text.sanitizing import LINE, shortened
from magy_server.dataclass import dataclass
from magy_server.lsp.server import Server

if TYPE_CHECKING:
    from magy_server.api.wire import sessions as wire

ALL = "Show all of it"
COVERS = 600
"""Characters of what an answer for the session covers."""
LONGEST = 8_000
"""Characters of a message that takes the place of a document."""


@dataclass(frozen=True, slots=True)
class Answer:
    allow: bool
    scope: Literal["once", "session"] = "once"


REFUSE, ONCE, SESSION = "Refuse", "Allow once", "Allow for this session"
AGREE = "Agree"
ANSWERS = {
    REFUSE: Answer(False),
    ONCE: Answer(True),
    SESSION: Answer(True, "session"),
    AGREE: Answer(True),
}
NO_FORMS = "This editor cannot fill in forms: refuse, or answer in another client of Magy."


class PlainQuestions:
    """`folder` is where documents of questions are written."""

    def __init__(self, server: Server, folder: Path) -> None:
        self._server = server
        self._folder = folder

    async def ask(self, question: wire.Interaction, who: str) -> Answer | None:
        """`who` asks, where that is not plain. None: it was dismissed."""
        message, cut = _message(question, who)
        actions = [REFUSE, ONCE]
        if question.form:
            actions = [REFUSE] if question.form.fields else [REFUSE, AGREE]
        if question.covers:
            actions.append(SESSION)
        if cut:
            actions.append(ALL)
        while (choice := await self._server.choose(message, actions)) == ALL:
            await self._show(question)
        return ANSWERS[choice] if choice else None

    async def _show(self, question: wire.Interaction) -> None:
        text = _whole(question)
        name = file_name(f"{question.session_id}/{question.tool_call_id}")
        try:
            path = await asyncio.to_thread(write, self._folder, name, text)
        except MagyError as error:
            return self._server.show(f"{text[:LONGEST]}\n\n[{error.message}]")
        if not await self._server.show_document(uri_of(str(path)), None, False):
            cut = len(text) > LONGEST
            rest = f"\n\n[Cut here; all of it: {path}]" if cut else ""
            self._server.show(f"{text[:LONGEST]}{rest}")
        return None


def _message(question: wire.Interaction, who: str) -> tuple[str, bool]:
    """And whether that is not all of it."""
    lines = [f"{who} asks:"] if who else []
    lines.append(question.title)
    cut = False
    for part in question.content:
        text = _text(part)
        shown = shortened(text, LINE)
        if part["type"] == "content" and shown not in question.title:
            lines.append(shown)
        cut = cut or part["type"] == "diff" or len(text.strip()) > LINE
    lines.append(f"({question.rule})")
    if question.form and question.form.fields:
        lines.append(NO_FORMS)
    if question.covers:
        covers = ", ".join(question.covers)
        cut = cut or len(covers) > COVERS
        lines.append(f"“{SESSION}” covers: {shortened(covers, COVERS)}")
    return "\n".join(lines), cut


def _whole(question: wire.Interaction) -> str:
    from magy_server.core.text.markdown import fenced

    parts = [
        fenced(_text(part), "diff" if part["type"] == "diff" else "") for part in question.content
    ]
    covers = "\n".join(f"- {one}" for one in question.covers)
    parts += [f"“{SESSION}” covers:\n\n{covers}"] if covers else []
    return "\n\n".join([question.title, *parts, ""])


def _text(part: Mapping[str, Any]) -> str:
    found = part["patch"] if part["type"] == "diff" else part["content"]
    return str(found["text"])
