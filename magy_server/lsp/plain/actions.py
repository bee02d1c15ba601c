"""This module offers an editor the actions of a workspace root as code actions at the cursor.

They are asked for at every movement of the cursor, so that no file is read for an answer; what a
choice comes to is made when it is chosen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY
from typing import Any

from magy_server.api.connected import Beside
from magy_server.api.wire import names
from magy_server.api.wire.shapes import Range
from magy_server.core.actions import ActionSpec, filled
from magy_server.core.errors import InvalidRequest, MagyError, NotFound
from magy_server.core.text.sanitizing import LINE, shortened
from magy_server.dataclass import dataclass
from magy_server.lsp.plain import lenses
from magy_server.lsp.plain.lenses import Json, command
from magy_server.lsp.plain.targets import empty

FRESH = 2.0
"""Seconds for which the actions of a root are not looked for again."""
AUTOMATIC = 2
"""`CodeActionTriggerKind.Automatic`: the editor asks by itself, for a light bulb."""
MOST = 50
"""Diagnostics of one request that are looked at."""
OFFERED = 50
"""Actions in one answer."""
ROOTS = 32
"""Whose actions are kept."""

Specs = Mapping[str, ActionSpec]


class Known:
    """The actions of each root, from memory. `look` finds them; it reads files, in a thread."""

    def __init__(self, look: Callable[[str | None], Specs], spawn: Beside) -> None:
        self._look = look
        self._spawn = spawn
        self._found: dict[str | None, Specs] = {}
        self._looked: dict[str | None, float] = {}
        self._looking = asyncio.Lock()

    def of(self, root: str | None) -> Specs:
        """Returns the known actions. If the last look is not fresh, another one follows, and the
        next request has its result."""
        now = asyncio.get_running_loop().time()
        if now - self._looked.get(root, -FRESH) >= FRESH:
            self._looked[root] = now
            self._spawn(self.learn(root))
        return self._found.get(root, {})

    async def first(self, root: str | None) -> None:
        """Looks where nobody has looked yet, or waits for the look under way, so that the first
        answer is complete."""
        if root not in self._looked:
            self._looked[root] = asyncio.get_running_loop().time()
            await self.learn(root)
        elif root not in self._found:
            async with self._looking:
                return

    async def learn(self, root: str | None) -> None:
        async with self._looking:  # so that what is found later is never older
            try:
                found = await asyncio.to_thread(self._look, root)
            except MagyError:
                return  # what is wrong with the files is said elsewhere; what was known holds
        self._found.pop(root, None)
        self._found[root] = found
        for kept in (self._found, self._looked):
            while len(kept) > ROOTS:
                kept.pop(next(iter(kept)))

    async def named(self, root: str | None, id: str) -> ActionSpec:
        """Raises NotFound."""
        await self.learn(root)
        found = self._found.get(root, {})
        if id not in found:
            some = [*list(found)[:OFFERED], *(["..."] if len(found) > OFFERED else [])]
            known = ", ".join(some) or "none"
            raise NotFound(f"There is no action {id!r} here. Actions are: {known}.")
        return found[id]


@dataclass(frozen=True, slots=True)
class Asked:
    """`textDocument/codeAction`. `only`: the kinds that the editor wants; None: all."""

    uri: str
    range: Range
    context: Mapping[str, Any]
    only: Sequence[str] | None


@dataclass(frozen=True, slots=True)
class CodeActions:
    """`root_of`: URI -> workspace root; `symbol`: (URI, range) -> the word there; `resolves`: the
    client asks for what an action does when it is chosen; `tags`: it knows tags. `running` says
    whether a turn runs, `talks` whether there is a session to look at: for editors that show
    neither (`bare`)."""

    known: Known
    root_of: Callable[[str], str | None]
    symbol: Callable[[str, Range], str]
    _: KW_ONLY
    resolves: bool
    tags: bool
    bare: Callable[[], tuple[bool, bool]] | None

    async def offered(self, asked: Asked) -> list[Json]:
        """The answer to `textDocument/codeAction`."""
        root = self.root_of(asked.uri)
        await self.known.first(root)
        uri, range, only = asked.uri, asked.range, asked.only
        diagnostics = _diagnostics(asked.context)
        by_itself = asked.context.get("triggerKind") == AUTOMATIC
        found: list[Json] = []
        symbol = self.symbol(uri, range)
        for spec in self.known.of(root).values():  # those that come with Magy first
            if len(found) == OFFERED:
                break
            if not lenses.asked_for(spec.kind, only) or not _due(
                spec, range, diagnostics, by_itself
            ):
                continue
            if spec.when != "symbol" or symbol:
                found.append(self._action(spec, uri, range, symbol, diagnostics))
        if self.bare and not by_itself:
            found += [a for a in _bare(*self.bare()) if lenses.asked_for(a["kind"], only)]
        return found

    def _action(
        self, spec: ActionSpec, uri: str, range: Range, symbol: str, diagnostics: list[Json]
    ) -> Json:
        place = range.model_dump(mode="json", by_alias=True)
        holes = {"symbol": symbol, "place": f"line {range.start.line + 1}"}
        title = f"Magy: {shortened(filled(spec.title, holes), LINE)}"
        argument: Json = {"action": spec.id, "uri": uri, "range": place}
        action: Json = {"title": title, "kind": spec.kind}
        if spec.when == "diagnostics":
            argument["diagnostics"] = action["diagnostics"] = diagnostics
        if self.resolves:
            action["data"] = {"magy": argument}
        else:
            action["command"] = command(title, names.RUN, argument)
        return action | {"tags": [lenses.LLM_GENERATED]} if self.tags else action

    def resolve(self, action: Mapping[str, Any]) -> Json:
        """The answer to `codeAction/resolve`. One that is whole already stays as it is."""
        data = action.get("data")
        argument = data.get("magy") if type(data) is dict else None
        if type(argument) is not dict or "command" in action:
            return dict(action)
        return {**action, "command": command(str(action.get("title")), names.RUN, argument)}


def _bare(running: bool, talks: bool) -> Sequence[Json]:
    found = []
    if running:
        stop = command("Magy: Stop", names.CANCEL, {})
        found.append({"title": stop["title"], "kind": names.CANCEL_KIND, "command": stop})
    if talks:
        show = command("Magy: Show the transcript", names.SHOW, {})
        found.append({"title": show["title"], "kind": names.SHOW_KIND, "command": show})
    return found


def _due(spec: ActionSpec, range: Range, diagnostics: Sequence[Json], by_itself: bool) -> bool:
    """Whether there is what the action is about. Who did not ask for actions gets no more than
    those that there is a special occasion for."""
    match spec.when:
        case "diagnostics":
            return bool(diagnostics)
        case "selection":
            return not empty(range)
        case "named":
            return False
        case _:
            return not by_itself


def asked(params: Mapping[str, Any]) -> Asked:
    """Raises InvalidRequest."""
    document, context = params.get("textDocument"), params.get("context")
    uri = document.get("uri") if type(document) is dict else None
    range = lenses.parse_range(params.get("range"))
    if type(uri) is not str or range is None:
        raise InvalidRequest(
            f"{names.CODE_ACTION}: `textDocument.uri` or `range` is missing or malformed."
        )
    context = context if type(context) is dict else {}
    only = context.get("only")
    return Asked(uri, range, context, only if type(only) is list else None)


def _diagnostics(context: Mapping[str, Any]) -> list[Json]:
    """As sent, but for what is none."""
    given = context.get("diagnostics")
    some = given[:MOST] if type(given) is list else []
    return [
        one
        for one in some
        if type(one) is dict
        and type(one.get("message")) is str
        and lenses.parse_range(one.get("range"))
    ]
