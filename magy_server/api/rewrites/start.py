"""A rewrite begins here: a selection and an instruction become a session of their own.

Its agent, `rewrite`, has one tool, `replace_selection`, and the run of that tool ends the turn.
That the answer is the argument of a call, and not the text of a reply, gives a rewrite all that an
agent's edits have, with nothing built for it: words beside the text do no harm, the call is judged,
`Started` and `Finished` are in the log (so a process that takes over goes on, or finds out that it
was done), the review names who did it, and a checkpoint takes it back. What has streamed of the
argument is the text so far, which front doors can show.

The prompt names the place (`Selected`). The person asked for it there, so the path is granted; what
the rules deny stays denied, and is not sent to a model either.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from os.path import relpath

from magy_server.api.rewrites.left_open import AGENT
from magy_server.api.service import Service
from magy_server.core import permit
from magy_server.core.agents.tree import stream_of
from magy_server.core.errors import InvalidRequest
from magy_server.core.events import Configured, Granted
from magy_server.core.permit import Ruleset
from magy_server.core.ports import Found
from magy_server.core.state.state import State
from magy_server.core.text.sanitizing import one_line
from magy_server.core.values import Content, Effect, Embedded, Facts, Grant, Selected, Text
from magy_server.dataclass import dataclass
from magy_server.edits.lines import line_after, line_start
from magy_server.edits.selection import Span
from magy_server.edits.text import plain
from magy_server.engine.log import Write
from magy_server.regex import regex
from magy_server.tools.files.paths import resource

TOOL = "replace_selection"
MESSAGE = "rewrite"
"""Id of the prompt, and of the turn."""
MOST = 100_000
"""Characters of a selection; a model would not get through more in one reply."""
BEFORE, AFTER = 12_000, 6_000
"""Characters around it that the model is shown, at most, in whole lines."""
TITLE = 60
"""Characters of the instruction that the session's title has."""
_MARK = regex(r"<\s*/?\s*(?:before|selection|after)(?:-(\d{1,9}))?\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Place:
    """Characters `span` of the plain text of `found`, a file below `root` (canonical)."""

    root: str
    cwd: str
    uri: str
    found: Found
    span: Span


def session_of(root: str, key: str) -> str:
    """The id of the session that answers this request: the same again finds it."""
    asked = f"{root}\0{key}".encode("utf-8", "surrogateescape")
    return f"rewrite-{hashlib.sha256(asked).hexdigest()[:24]}"


class Rewriting:
    def __init__(self, service: Service) -> None:
        self._service = service

    async def known(self, session_id: str) -> bool:
        """Whether this was asked for already."""
        stream = stream_of(session_id)
        if not await self._service.world.store.head(stream):
            return False
        session = await self._service.loaded.session(stream)
        return MESSAGE in session.state.queue.seqs

    async def start(self, session_id: str, place: Place, instruction: str, model: str) -> None:
        """Raises InvalidRequest: it cannot be rewritten, or must not be; NotFound, ProviderError:
        there is no such model."""
        world, found = self._service.world, place.found
        self._check(place, instruction)
        if model:
            world.models(place.root).named(model)
        session = await self._service.open(session_id, place.root, place.cwd, AGENT, model)
        title = Configured(option="title", value=f"Rewrite: {_line(instruction)}")
        granted = Granted(grant=_grant(found.path))

        def prepare(now: State) -> Write | None:
            return None if now.grants else Write([title, granted])

        await session.append(prepare)
        content: list[Content] = [Text(text=instruction), _shown(place)]
        blobs = {found.version.hash: found.data} if found.version.hash else {}
        await self._service.prompt(session_id, MESSAGE, content, "queue", blobs)

    def _check(self, place: Place, instruction: str) -> None:
        found, (start, end) = place.found, place.span
        name = one_line(relpath(found.path, place.root))
        if not instruction.strip():
            raise InvalidRequest("The instruction is empty: say how to change the selection.")
        if found.version.hash is None:
            raise InvalidRequest(f"{name} does not exist, so Magy cannot rewrite any of it.")
        if found.text is None or found.version.kind == "link":
            raise InvalidRequest(f"{name} is not text, so Magy cannot rewrite it.")
        if end - start > MOST:
            size = f"{end - start:,} characters, but Magy rewrites at most {MOST:,} at once"
            raise InvalidRequest(f"The selection has {size}.")
        world = self._service.world
        sources = [world.agent(AGENT, place.root).rules, *world.rules(place.root)]
        _permitted(place, "read", "read", sources)
        _permitted(place, "edit", "write", sources)


def _permitted(place: Place, key: str, effect: Effect, sources: Sequence[Ruleset]) -> None:
    path = place.found.path
    found = resource(place.root, path, effect)
    decision = permit.decide(Facts(resources=(found,)), key, effect, sources)
    if decision.action == "deny":
        name = one_line(relpath(path, place.root))
        text = f"{name} was not rewritten, because that is not allowed: {decision.rule}."
        raise InvalidRequest(text, reason="denied")


def _grant(path: str) -> Grant:
    """Under `write`, which is leave to edit as well: of a file that was never saved, all is new."""
    id = hashlib.sha256(f"write\0{path}".encode("utf-8", "replace")).hexdigest()[:16]
    return Grant(id=id, key="write", pattern=path, scope="session")


def _line(instruction: str) -> str:
    line = instruction.strip().split("\n", 1)[0].strip()
    return line if len(line) <= TITLE else line[: TITLE - 1] + "…"


def _shown(place: Place) -> Embedded:
    """The place as the model is shown it, with what is around it."""
    found, (start, end) = place.found, place.span
    text = plain(found.text or "")
    first = max(0, start - BEFORE)
    first = first if first == 0 else min(line_after(text, first), start)
    last = min(len(text), end + AFTER)
    last = last if last == len(text) else max(line_start(text, last), end)
    name = one_line(relpath(found.path, place.root))
    whole = text[first:last]
    before, selection, after, said = _marks(whole)
    more = ("[earlier lines are not shown]\n" if first else "",
            "\n[later lines are not shown]" if last < len(text) else "")  # fmt: skip
    shown = (
        f"From the file {name}{said}:\n"
        f"{more[0]}<{before}>{text[first:start]}</{before}>\n"
        f"<{selection}>{text[start:end]}</{selection}>\n"
        f"<{after}>{text[end:last]}</{after}>{more[1]}"
    )
    assert found.version.hash is not None
    about = Selected(path=found.path, base=found.version.hash, start=start, end=end)
    return Embedded(uri=place.uri, text=shown, selected=about)


def _marks(text: str) -> tuple[str, str, str, str]:
    """Names for what is shown, such as `selection`, of which the text has none: what looks like a
    mark in a file must not make the model rewrite another place."""
    numbers = {int(found[1] or 0) for found in _MARK.finditer(text)}
    if not numbers:
        return "before", "selection", "after", ""
    free = min(set(range(1, len(numbers) + 2)) - numbers)
    before, selection, after = (f"{name}-{free}" for name in ("before", "selection", "after"))
    said = f", where only the tags <{before}>, <{selection}> and <{after}> were added by me"
    return before, selection, after, said
