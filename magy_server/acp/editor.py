"""`AskedEditor` is the port to the live buffers of an ACP client (`core.ports.Editor`).

Such a client does not say what is open, so that it is asked for each file: what it answers holds in
the task that asked, and no longer. Whether an edit has arrived says only the text that it gives
afterwards. A file is what is on disk without `fs/*`, and where the client says that it has no such
file. Any other error may hide what nobody has saved: then the file is left alone, and who reads it
is told. A client that lets a request time out is not asked again for a while: nobody should wait
for it once a file.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from magy_server.acp import v1
from magy_server.acp.connection import RESOURCE_NOT_FOUND
from magy_server.acp.options import Json
from magy_server.acp.shapes import read
from magy_server.api.places import uri_of
from magy_server.api.wire.codes import METHOD_NOT_FOUND
from magy_server.core.errors import (
    EditorError,
    EditRefused,
    EditUnverified,
    InvalidRequest,
    Unseen,
)
from magy_server.core.no_editor import NoEditor
from magy_server.core.ports import Buffer
from magy_server.edits.model import TextChange
from magy_server.edits.rebasing.diff import apply
from magy_server.edits.text import plain
from magy_server.jsonrpc.peer import ClientError, NotAnswered, Peer
from magy_server.tools.files.encodings import text_of

READ, WRITE = "fs/read_text_file", "fs/write_text_file"
LOST = "\ufffd"
"""Stands for what was not text to the editor that read it."""
READS, WRITES = 10.0, 30.0
"""Seconds in which a client reads and writes a file; writing may run a formatter."""
QUIET, AGAIN = 60.0, 2.0
"""Seconds in which a client is not asked that let a request time out, and in which it then has to
answer."""
HAS_NONE = frozenset((METHOD_NOT_FOUND, RESOURCE_NOT_FOUND))
"""The errors with which a client says that it does not have a file."""
Owner = Callable[[str], str | None]
"""(path) -> the session to name when the client is asked for a file there; None: its files are not
the client's. Raises EditorError: the client does not have the session that works there."""


class AskedEditor(NoEditor):
    """`writes`: the client can be asked to write. One that cannot keeps its unsaved text: edits of
    such a file are refused. `hangs`: (session, sentence), when the client stops answering."""

    def __init__(
        self, peer: Peer, owner: Owner, hangs: Callable[[str, str], None], *, writes: bool
    ) -> None:
        self._peer = peer
        self._owner = owner
        self._hangs = hangs
        self._quiet: float | None = None
        """Until when (of the loop's clock) a client that does not answer is not asked."""
        self._writes = writes
        self._seen: WeakKeyDictionary[asyncio.Task[object], dict[str, Buffer]] = WeakKeyDictionary()

    tells = False

    def buffer(self, path: str) -> Buffer | None:
        return self._known().get(path)

    async def look(self, path: str) -> None:
        known = self._known()
        known.pop(path, None)
        try:
            now = await self._text(path)
        except EditorError as error:
            raise Unseen(f"{error.message} {path} may have unsaved changes there.") from error
        if now is not None:
            known[path] = Buffer(path, uri_of(path), 0, now)

    async def apply(self, buffer: Buffer, changes: Sequence[TextChange], label: str) -> Buffer:
        """Raises EditRefused (nothing changed) or EditUnverified."""
        path, known = buffer.path, self._known()
        try:
            now = await self._text(path)
        except EditorError as error:
            raise EditRefused(f"{error.message} {path} may have other text there.") from error
        if now != buffer.text:
            known.pop(path, None)
            raise EditRefused(
                f"{path} was changed in the editor. Read it again and make the edit on the new "
                "text.",
                reason="stale",
            )
        wanted = apply(buffer.text, sorted(changes, key=lambda change: (change.start, change.end)))
        await self._write(path, wanted)
        shown = await self._text(path)
        if shown is not None:
            known[path] = Buffer(path, buffer.uri, 0, shown)
        if shown is None or _alike(shown) != _alike(wanted):
            raise EditUnverified(
                f"The editor said it wrote {path}, but then gave another text. Someone may have "
                "typed there, or a hook may have reformatted it. Read the file again before "
                "editing it."
            )
        known[path] = Buffer(path, buffer.uri, 0, wanted)
        return known[path]

    async def save(self, buffer: Buffer) -> Buffer | None:
        """An editor that wrote the file has usually saved it. None: it has not."""
        on_disk = await asyncio.to_thread(_on_disk, buffer.path)
        saved = on_disk is not None and _alike(on_disk) == _alike(buffer.text)
        return buffer if saved else None

    # --- inside ---------------------------------------------------------------------------------

    def _known(self) -> dict[str, Buffer]:
        task = asyncio.current_task()
        return self._seen.setdefault(task, {}) if task else {}

    async def _text(self, path: str) -> str | None:
        """What the client shows of the file; None where it has none. A text that only lacks the
        last line end is that on disk: editors count lines, not their ends. Raises EditorError: the
        client gives no text, and may have what nobody has saved."""
        params = self._named(path)
        if params is None:
            return None
        missing, on_disk = await asyncio.to_thread(_looked, path)
        if on_disk is None:
            return None
        try:
            answer = await self._asked(READ, params, READS)
            content = read(v1.ReadTextFileResponse, answer if answer else {}, READ).content
        except ClientError as error:
            if missing or error.code in HAS_NONE:
                return None
            raise
        except InvalidRequest as error:
            raise EditorError(f"The editor gave no text: {error.message}") from error
        if LOST in content and LOST not in on_disk:
            raise EditorError("The editor cannot read the encoding of this file.")
        if f"{content}\n" == plain(on_disk):
            content = on_disk
        if missing and not content:  # an editor may show what is not there as empty
            return None
        closed = not self._writes and content == on_disk
        return None if closed else content

    async def _write(self, path: str, content: str) -> None:
        params = self._named(path)
        if params is None:
            raise EditRefused(f"{path} is no longer open in the editor.", reason="closed")
        if not self._writes:
            raise EditRefused(
                f"{path} has unsaved changes in the editor, which lets nobody else write. Ask the "
                "user to save it."
            )
        try:
            await self._asked(WRITE, {**params, "content": content}, WRITES)
        except ClientError as error:
            raise EditRefused(f"The editor refused the edit to {path}: {error.message}") from error
        except EditorError as error:
            raise EditUnverified(
                f"{error.message} It is unknown whether {path} was edited; read it again."
            ) from error

    async def _asked(self, method: str, params: Json, patience: float) -> Any:
        """Raises ClientError or NotAnswered."""
        now = asyncio.get_running_loop().time
        if self._quiet is not None and now() < self._quiet:
            raise NotAnswered("The editor has stopped answering what Magy asks it for files.")
        again = self._quiet is not None
        try:
            answer = await self._peer.request(method, params, AGAIN if again else patience)
        except ClientError:
            self._quiet = None
            raise
        except NotAnswered as error:
            if error.reason == "timeout":
                self._quiet = now() + QUIET
                if not again:
                    self._hangs(params["sessionId"], error.message)
            raise
        self._quiet = None
        return answer

    def _named(self, path: str) -> Json | None:
        session = self._owner(path)
        return None if session is None else {"sessionId": session, "path": path}


def _alike(text: str) -> str:
    return plain(text).removesuffix("\n")


def _on_disk(path: str) -> str | None:
    """The text; None for what is none, or is not there."""
    missing, text = _looked(path)
    return None if missing else text


def _looked(path: str) -> tuple[bool, str | None]:
    """Whether there is nothing at this path, and the text there: None of a directory, of binary
    data, and of what cannot be read."""
    if not os.path.lexists(path):
        return True, ""
    try:
        with open(path, "rb", opener=_plain) as file:
            return False, text_of(file.read())
    except OSError:
        return False, None


def _plain(path: str, flags: int) -> int:
    """Opens a pipe without waiting for who writes to it."""
    return os.open(path, flags | os.O_NONBLOCK)
