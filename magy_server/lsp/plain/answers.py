"""This module shows what came of a command to a person who has no transcript before them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from magy_server.api.places import uri_of as file_uri
from magy_server.api.sessions.transcripts import Transcripts, uri_of
from magy_server.core.errors import MagyError
from magy_server.core.text.sanitizing import harmless
from magy_server.lsp.client_options import Way
from magy_server.lsp.plain.prompt_sessions import Answer
from magy_server.lsp.server import Server

if TYPE_CHECKING:  # clients of Magy's own use no commands
    from magy_server.api.wire.commands import Shown

LONGEST = 1_500
"""Characters of a message in a window."""
MOST_LINES = 25


class Answers:
    """`way`: how a turn's end is shown. A document is shown beside the work, never before it."""

    def __init__(self, transcripts: Transcripts, server: Server, way: Way) -> None:
        self._transcripts = transcripts
        self._server = server
        self._can = server.can
        documents = self._can.show_document
        self._way: Way = "message" if way == "document" and not documents else way

    async def tell(self, answer: Answer) -> None:
        if answer.stop == "cancelled":
            self._server.show("Magy: cancelled.")
            return
        if answer.stop != "end_turn":
            from magy_server.core.text.markdown import STOPS

            why = answer.message or "There are no further details."
            self._server.show(
                f"Magy: the turn ended ({STOPS[answer.stop]}). {_short(why)[0]}",
                "Error" if answer.stop == "error" else "Warning",
            )
        elif self._way == "document" and await self._shown(answer.session_id):
            return
        if answer.text and answer.stop != "error" and self._way != "none":
            await self._say(answer)

    async def _shown(self, session_id: str) -> bool:
        try:
            return (await self._reveal(session_id, False)).uri is not None
        except MagyError:  # there is another way
            return False

    async def _say(self, answer: Answer) -> None:
        text, cut = _short(answer.text)
        try:
            path = await self._transcripts.file(answer.session_id)
            rest = f"\n\n[{'Cut here; all of it' if cut else 'With what it did'}: {path}]"
        except MagyError as error:
            rest = f"\n\n[{error.message}]"
        self._server.show(f"Magy: {text}{rest}")

    async def show(self, session_id: str) -> Shown:
        """Because the person asked for it. Raises NotFound, MagyError."""
        shown = await self._reveal(session_id, True)
        if shown.uri is None:
            self._server.show(f"Magy: the transcript is in {shown.path}")
        return shown

    async def _reveal(self, session_id: str, focus: bool) -> Shown:
        """Raises NotFound, MagyError. Where the editor takes no texts from the server it is shown
        a file."""
        path = None
        uri = uri_of(session_id)
        if not (self._can.show_document and self._can.texts):
            file = await self._transcripts.file(session_id)
            path, uri = str(file), file_uri(str(file))
        else:
            await self._transcripts.text(session_id)
        at = {"line": self._transcripts.end(session_id), "character": 0}
        here = {"start": at, "end": at}
        shown = await self._server.show_document(uri, here, focus)
        from magy_server.api.wire.commands import Shown

        return Shown(uri=uri if shown else None, path=path)


def _short(text: str) -> tuple[str, bool]:
    """What a window holds of it, and whether that is not all."""
    plain = harmless(text).strip()
    some = "\n".join(plain[:LONGEST].split("\n")[:MOST_LINES]).rstrip()
    return (f"{some} …", True) if len(some) < len(plain) else (plain, False)
