"""With these commands any editor prompts an agent, and looks after its children. They answer
at once: what comes of them shows as progress, as questions, as edits, and at the end as a text to
read."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, TypeVar

from magy_server.api.verbs import Magy
from magy_server.api.wire import children as child_wire
from magy_server.api.wire import commands as wire
from magy_server.api.wire import names
from magy_server.api.wire.rewriting import RewriteCommand
from magy_server.api.wire.shapes import TextBlock, Wire, parsed
from magy_server.core.actions import ActionSpec, filled
from magy_server.core.errors import InvalidRequest, NotFound
from magy_server.core.summary import task_id
from magy_server.core.text.sanitizing import one_line
from magy_server.core.values import Content, Text
from magy_server.dataclass import dataclass
from magy_server.lsp.plain.actions import Known
from magy_server.lsp.plain.answers import Answers
from magy_server.lsp.plain.prompt_sessions import Asking
from magy_server.lsp.plain.targets import Pointed, Pointing, empty
from magy_server.lsp.server import Command, Server
from magy_server.regex import regex
from magy_server.tools.prompts.openings import Task, spawned

P = TypeVar("P", bound=Wire)
_MENTION = regex(r"(?<![\w.@/\\+-])@")
"""What begins a mention where it stands."""


def command(name: str, model: type[P], verb: Callable[[P], Awaitable[Wire]]) -> Command:
    """One of `workspace/executeCommand`. `verb` gets the one argument, checked."""

    async def run(given: list[Any]) -> Any:
        argument = given[0] if given else {}
        if len(given) > 1 or type(argument) is not dict:
            raise InvalidRequest(f"{name} takes one argument, an object. See docs/protocol.md.")
        found = await verb(parsed(model, argument, name))
        return found.model_dump(mode="json", by_alias=True)

    return run


@dataclass(frozen=True, slots=True)
class PlainCommands:
    server: Server
    magy: Magy
    asking: Asking
    known: Known
    pointing: Pointing
    answers: Answers

    def commands(self) -> Mapping[str, Command]:
        return {
            names.RUN: command(names.RUN, wire.ActionRun, self._run),
            names.PROMPT: command(names.PROMPT, wire.PromptRun, self._prompt),
            names.REWRITE: command(names.REWRITE, RewriteCommand, self.magy.rewrites.command),
            names.CANCEL: command(names.CANCEL, wire.CancelRun, self._cancel),
            names.NEW: command(names.NEW, wire.NewRun, self._new),
            names.SHOW: command(names.SHOW, wire.LastUsed, self._show),
            names.SPAWN: command(names.SPAWN, wire.SpawnRun, self._spawn),
            names.CHILDREN: command(names.CHILDREN, wire.LastUsed, self._list),
            names.CLOSE: command(names.CLOSE, wire.CloseRun, self._close),
        }

    async def _run(self, asked: wire.ActionRun) -> Wire:
        where = self.asking.where(asked.uri)
        spec = await self.known.named(where.root, asked.action)
        pointed = await self.pointing.at(asked.uri, asked.range, asked.diagnostics)
        _check(spec, asked, pointed)
        words = filled(
            spec.prompt, {"symbol": pointed.symbol, "place": _unmentioned(pointed.place)}
        )
        if asked.text.strip():
            words = f"{words}\n\n{asked.text.strip()}"
        if spec.rewrite:
            return await self._rewrite(asked, words)
        content = [Text(text=words), *pointed.content]
        return await self.asking.prompt(asked, where, content, spec.agent)

    async def _rewrite(self, asked: wire.ActionRun, instruction: str) -> Wire:
        place = asked.range.model_dump(mode="json", by_alias=True)
        argument = {"uri": asked.uri, "range": place, "instruction": instruction}
        if asked.message_id:
            argument["requestKey"] = _key("action", f"{asked.action}\n{asked.message_id}")
        return await self.magy.rewrites.command(parsed(RewriteCommand, argument, names.REWRITE))

    async def _prompt(self, asked: wire.PromptRun) -> Wire:
        if not asked.text.strip():
            raise InvalidRequest(f"{names.PROMPT}: `text` is empty: write a prompt.")
        if given := spawned(asked.text):
            return await self._task(asked, given)
        where = self.asking.where(asked.uri)
        content: list[Content] = [Text(text=asked.text)]
        if asked.uri and asked.range:
            content.extend((await self.pointing.at(asked.uri, asked.range)).content)
        return await self.asking.prompt(asked, where, content)

    async def _task(self, asked: wire.PromptRun, task: Task) -> wire.Prompted:
        """`@spawn AGENT TASK`."""
        key = _key("prompt", asked.message_id) if asked.message_id else None
        child = await self._spawn(
            wire.SpawnRun(
                text=task.text, agent=task.agent, session_id=asked.session_id, request_key=key,
                uri=asked.uri, range=asked.range, worktree=task.worktree,
            )
        )  # fmt: skip
        return wire.Prompted(session_id=child.session_id, message_id=task_id(child.session_id))

    async def _cancel(self, asked: wire.CancelRun) -> Wire:
        session_id = await self.asking.cancel(asked.session_id)
        return wire.Cancelled(cancelled=session_id is not None, session_id=session_id)

    async def _new(self, asked: wire.NewRun) -> Wire:
        where = self.asking.where(asked.uri)
        return wire.NewMade(session_id=await self.asking.new(where, asked.agent or ""))

    async def _show(self, asked: wire.LastUsed) -> Wire:
        return await self.answers.show(self._meant(asked, "is no transcript"))

    # --- children -------------------------------------------------------------------------------

    async def _spawn(self, asked: wire.SpawnRun) -> wire.Spawned:
        if not asked.text.strip():
            raise InvalidRequest(f"{names.SPAWN}: `text` is empty: describe the task.")
        if asked.range and not asked.uri:
            raise InvalidRequest(f"{names.SPAWN}: `range` needs a file: name it as `uri`.")
        if asked.uri and self.asking.foreign(asked.uri):
            raise InvalidRequest(
                f"{names.SPAWN}: {asked.uri} is not in an open project: open its folder, or leave "
                "`uri` out."
            )
        parent = asked.session_id
        parent = parent or await self.asking.session(self.asking.where(asked.uri))
        lines: Sequence[Content] = ()
        if asked.uri and asked.range:
            lines = (await self.pointing.at(asked.uri, asked.range)).content
        params = child_wire.ChildSpawnParams(
            parent_session_id=parent,
            request_key=asked.request_key or f"c-{secrets.token_hex(6)}",
            prompt=[TextBlock(type="text", text=asked.text)],
            agent=asked.agent,
            name=asked.name,
            worktree=asked.worktree,
        )
        spawned = await self.magy.children.spawn(params, lines)
        child = spawned.child.session_id
        if not spawned.known:
            self.asking.follow(child, task_id(child))
        return wire.Spawned(session_id=child, parent_session_id=parent)

    async def _list(self, asked: wire.LastUsed) -> child_wire.ChildListResult:
        session_id = self._meant(asked, "are no children")
        params = child_wire.ChildListParams(parent_session_id=session_id, include_closed=True)
        found = await self.magy.children.list(params)
        lines = "\n".join(_lines(found.children))
        self.server.show(f"Magy: {lines or f'Session {session_id} has no children.'}")
        return found

    async def _close(self, asked: wire.CloseRun) -> child_wire.ChildClosed:
        params = child_wire.ChildCloseParams(session_id=asked.session_id, mode=asked.mode)
        return await self.magy.children.close(params)

    def _meant(self, asked: wire.LastUsed, nothing: str) -> str:
        if session_id := asked.session_id or self.asking.last:
            return session_id
        raise NotFound(f"There {nothing} yet: this editor has sent no prompt.")


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


def _lines(children: Sequence[child_wire.Child]) -> list[str]:
    top = min((child.depth for child in children), default=0)
    return [f"{'  ' * (child.depth - top)}{_line(child)}" for child in children]


def _line(child: child_wire.Child) -> str:
    asks = ", asks" if child.questions else ""
    return one_line(f"{child.agent} ({child.name}): {child.state}{asks} [{child.session_id}]")
