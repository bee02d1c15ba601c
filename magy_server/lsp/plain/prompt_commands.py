"""The commands by which any editor asks something of an agent (G001). They answer at once: what
comes of them shows as progress, as questions, as edits, and at the end as a text to read."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256

from magy_server.api.wire import commands as wire
from magy_server.api.wire import names
from magy_server.api.wire.shapes import Wire
from magy_server.core.actions import ActionSpec, filled
from magy_server.core.errors import InvalidRequest, NotFound
from magy_server.core.events import Content, Text
from magy_server.core.summary import task_id
from magy_server.lsp.plain.actions import Known
from magy_server.lsp.plain.answers import Answers
from magy_server.lsp.plain.prompt_sessions import Asking
from magy_server.lsp.plain.targets import Pointed, Pointing, empty
from magy_server.lsp.plain.typed_command import Command, command
from magy_server.tools.prompts.openings import spawned

_MENTION = re.compile(r"(?<![\w.@/\\+-])@")
"""What begins a mention where it stands."""


Spawn = Callable[[wire.SpawnRun], Awaitable[wire.Spawned]]


class PlainCommands:
    """`rewrite`: the command `magy.rewrite`; `spawn` starts a child."""

    def __init__(
        self,
        asking: Asking,
        known: Known,
        pointing: Pointing,
        answers: Answers,
        rewrite: Command,
        spawn: Spawn,
    ) -> None:
        self._asking = asking
        self._known = known
        self._pointing = pointing
        self._answers = answers
        self._rewrite_command = rewrite
        self._spawn = spawn

    def commands(self) -> Mapping[str, Command]:
        return {
            names.RUN: command(names.RUN, wire.ActionRun, self._run),
            names.PROMPT: command(names.PROMPT, wire.PromptRun, self._prompt),
            names.REWRITE: self._rewrite_command,
            names.CANCEL: command(names.CANCEL, wire.CancelRun, self._cancel),
            names.NEW: command(names.NEW, wire.NewRun, self._new),
            names.SHOW: command(names.SHOW, wire.ShowRun, self._show),
        }

    async def _run(self, asked: wire.ActionRun) -> Wire:
        where = self._asking.where(asked.uri)
        spec = await self._known.named(where.root, asked.action)
        pointed = await self._pointing.at(asked.uri, asked.range, asked.diagnostics)
        _check(spec, asked, pointed)
        words = filled(
            spec.prompt, {"symbol": pointed.symbol, "place": _unmentioned(pointed.place)}
        )
        if asked.text.strip():
            words = f"{words}\n\n{asked.text.strip()}"
        if spec.rewrite:
            return await self._rewrite(asked, words)
        content = [Text(text=words), *pointed.content]
        return await self._asking.prompt(asked, where, content, spec.agent)

    async def _rewrite(self, asked: wire.ActionRun, instruction: str) -> wire.Prompted:
        place = asked.range.model_dump(mode="json", by_alias=True)
        argument = {"uri": asked.uri, "range": place, "instruction": instruction}
        if asked.message_id:
            argument["requestKey"] = _key("action", f"{asked.action}\n{asked.message_id}")
        return wire.Prompted.model_validate(await self._rewrite_command([argument]))

    async def _prompt(self, asked: wire.PromptRun) -> Wire:
        if not asked.text.strip():
            raise InvalidRequest(f"{names.PROMPT}: `text` is empty: write a prompt.")
        if given := spawned(asked.text):
            return await self._task(asked, *given)
        where = self._asking.where(asked.uri)
        content: list[Content] = [Text(text=asked.text)]
        if asked.uri and asked.range:
            content.extend((await self._pointing.at(asked.uri, asked.range)).content)
        return await self._asking.prompt(asked, where, content)

    async def _task(self, asked: wire.PromptRun, agent: str, task: str) -> wire.Prompted:
        """`@spawn AGENT TASK`."""
        key = _key("prompt", asked.message_id) if asked.message_id else None
        child = await self._spawn(
            wire.SpawnRun(
                text=task, agent=agent, session_id=asked.session_id, request_key=key,
                uri=asked.uri, range=asked.range,
            )
        )  # fmt: skip
        return wire.Prompted(session_id=child.session_id, message_id=task_id(child.session_id))

    async def _cancel(self, asked: wire.CancelRun) -> Wire:
        session_id = await self._asking.cancel(asked.session_id)
        return wire.Cancelled(cancelled=session_id is not None, session_id=session_id)

    async def _new(self, asked: wire.NewRun) -> Wire:
        where = self._asking.where(asked.uri)
        return wire.NewMade(session_id=await self._asking.new(where, asked.agent or ""))

    async def _show(self, asked: wire.ShowRun) -> Wire:
        session_id = asked.session_id or self._asking.last
        if session_id is None:
            raise NotFound("There is no transcript yet: this editor has sent no prompt.")
        return await self._answers.show(session_id)


def _key(kind: str, about: str) -> str:
    """For a request that a prompt's id makes harmless when it comes again."""
    return f"{kind}-{sha256(about.encode()).hexdigest()[:32]}"


def _unmentioned(name: str) -> str:
    """A file's name with no `@` in it that is a mention: only people mention."""
    return _MENTION.sub(lambda found: r"\@" if found.start() else "./@", name)


def _check(spec: ActionSpec, asked: wire.ActionRun, pointed: Pointed) -> None:
    """Raises InvalidRequest: the action makes no sense there."""
    if spec.when == "selection" and empty(asked.range):
        raise InvalidRequest(f"{spec.title!r} needs a selection: select lines first.")
    if spec.when == "symbol" and not pointed.symbol:
        raise InvalidRequest(
            f"There is no word at {pointed.place} that {spec.id!r} could be about."
        )
