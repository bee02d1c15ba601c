"""A workspace on disk, a context that keeps what a tool reports, and an editor with live buffers.

`FakeEditor` keeps the Editor port's contract: it applies changes only to exactly the buffer they
were computed on. What it can be told to do wrong is what real editors were seen to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from magy_server.core.errors import EditRefused, EditUnverified, NotFound, ToolError
from magy_server.core.knowledge import Question
from magy_server.core.no_editor import NO_EDITOR
from magy_server.core.ports import Buffer, Editor, Seen
from magy_server.core.tool import Proposal, Result, Tool
from magy_server.core.values import Evidence, Facts
from magy_server.edits.model import TextChange
from tests.guard import SESSION

NOTHING = Evidence()


class FakeEditor:
    tells = True

    def __init__(self) -> None:
        self.buffers: dict[str, Buffer] = {}
        self.applied: list[list[TextChange]] = []
        self.saves: list[str] = []
        self.can_save = True
        self.encoding = "utf-8"
        self.before_apply: Callable[[str], None] | None = None
        """Runs once, right before the next `apply`: the user types just then."""
        self.refuse = ""
        self.lie: Callable[[str], str] | None = None
        """What the buffer really holds after an apply that was said to be done."""
        self.typing: Callable[[str], str] | None = None
        """What the person makes of the buffer right after an apply."""
        self.answers: dict[str, Any] = {}
        """What it knows: an answer, an error, or what gives the answer to a question."""
        self.asked: list[Question[Any]] = []
        self.on_save: Callable[[str], str] | None = None
        """A formatter that runs on saving."""

        self.ends: dict[str, str] = {}
        """Line ends that it hides, by path."""
        self.followers: list[Callable[[Seen], None]] = []
        self.configurable = True

    def open(self, path: Path, text: str | None = None) -> None:
        text = path.read_bytes().decode() if text is None else text
        self.buffers[str(path)] = Buffer(str(path), path.as_uri(), 1, text)
        self.tell(str(path), opened=True)

    def type(self, path: str, text: str) -> None:
        old = self.buffers[path]
        self.buffers[path] = replace(old, version=old.version + 1, text=text)
        self.tell(path)

    def follow(self, see: Callable[[Seen], None]) -> Callable[[], None]:
        self.followers.append(see)
        return lambda: self.followers.remove(see)

    def tell(self, path: str, **what: bool) -> None:
        for see in tuple(self.followers):
            see(Seen(path, self.buffers[path].text, **what))

    async def look(self, path: str) -> None:
        return

    def buffer(self, path: str) -> Buffer | None:
        return self.buffers.get(path)

    def open_paths(self) -> Sequence[str]:
        return list(self.buffers)

    async def apply(self, buffer: Buffer, changes: Sequence[TextChange], label: str) -> Buffer:
        hook, self.before_apply = self.before_apply, None
        if hook:
            hook(buffer.path)
        await asyncio.sleep(0)
        if self.refuse:
            raise EditRefused(self.refuse)
        if self.buffers.get(buffer.path) != buffer:
            raise EditRefused("the buffer has another version now")
        text, at = "", 0
        for change in changes:
            assert at <= change.start <= change.end, "changes overlap or are out of order"
            text += buffer.text[at : change.start] + change.text
            at = change.end
        text += buffer.text[at:]
        if self.lie:
            self.type(buffer.path, self.lie(text))
            raise EditUnverified("its text is not the one that was sent")
        self.type(buffer.path, self.typing(text) if self.typing else text)
        self.applied.append(list(changes))
        return self.buffers[buffer.path]

    async def caught_up(self) -> bool:
        return self.configurable

    async def late(self, path: str) -> bool:
        return False

    @property
    def knows(self) -> frozenset[str]:
        return frozenset(self.answers)

    async def ask(self, question: Question[Any]) -> Any:
        self.asked.append(question)
        name = type(question).__name__.lower()
        answer = self.answers[{"evaluation": "eval"}.get(name, name)]
        await asyncio.sleep(0)
        if isinstance(answer, Exception):
            raise answer
        return answer(question) if callable(answer) else answer

    async def save(self, buffer: Buffer) -> Buffer | None:
        path = buffer.path
        if not self.can_save or self.buffers[path] != buffer:
            return None
        text = buffer.text
        if self.on_save:
            text = self.on_save(text)
            self.type(path, text)
        data = text.replace("\n", self.ends.get(path, "\n")).encode(self.encoding)
        Path(path).write_bytes(data)
        self.saves.append(path)
        self.tell(path, saved=True)
        return self.buffers[path]


@dataclass
class Context:
    """A ToolContext (and FactContext) that writes down what it is told."""

    root: str
    session: str = SESSION
    call: str = "1.0"
    facts: Facts = field(default_factory=Facts)
    editor: Editor = NO_EDITOR
    review: str = "review"
    known: dict[str, bytes] = field(default_factory=dict)
    proposals: dict[str, bytes] = field(default_factory=dict)
    emitted: list[str] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)
    blobs: dict[str, bytes] = field(default_factory=dict)
    outputs: dict[str, bytes] = field(default_factory=dict)
    ended: dict[str, tuple[int | None, bytes]] = field(default_factory=dict)
    on_started: Callable[[], Any] | None = None

    @property
    def cwd(self) -> str:
        return self.root

    async def seen(self, path: str) -> bytes | None:
        return self.known.get(path)

    async def proposal(self, path: str) -> Proposal | None:
        data = self.proposals.get(path)
        return None if data is None else Proposal(data)

    async def proposer(self, path: str) -> str:
        return ""

    def emit(self, text: str) -> None:
        self.emitted.append(text)

    async def changing(self, paths: Collection[str]) -> None:
        pass

    async def started(
        self, evidence: Evidence = NOTHING, blobs: Mapping[str, bytes] | None = None
    ) -> None:
        self.evidence.append(evidence)
        self.blobs.update(blobs or {})
        if self.on_started:
            self.on_started()

    async def blob(self, hash: str) -> bytes:
        if hash not in self.blobs:
            raise NotFound(f"no blob {hash}")
        return self.blobs[hash]

    async def output_of(self, call: str) -> bytes | None:
        return self.outputs.get(call)

    async def exited(self, call: str, code: int | None, output: bytes) -> None:
        self.ended[call] = (code, output)
        self.outputs[call] = output


class Workspace:
    """Runs tools as the engine does: check the arguments, gather facts, run from these."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.editor: Any = NO_EDITOR
        self.review = "review"
        self.known: dict[str, bytes] = {}
        self.proposals: dict[str, bytes] = {}
        self.last = self.context()

    def context(self, call: str = "1.0") -> Context:
        return Context(
            root=str(self.root),
            call=call,
            editor=self.editor,
            review=self.review,
            known=self.known,
            proposals=self.proposals,
        )

    async def judge(self, tool: Tool, **arguments: Any) -> Facts:
        try:
            facts, blobs = await tool.facts(self.context(), **tool.arguments(arguments))
        except ToolError as error:
            return Facts(problem=error.message)
        assert facts.preview is None or facts.preview in blobs
        return facts

    async def prepare(self, tool: Tool, call: str = "1.0", **arguments: Any) -> Context:
        self.last = self.context(call)
        self.last.facts = await self.judge(tool, **arguments)
        if self.last.facts.problem:
            raise ToolError(self.last.facts.problem)
        return self.last

    async def run(self, tool: Tool, call: str = "1.0", **arguments: Any) -> Result:
        context = await self.prepare(tool, call, **arguments)
        result = await tool.run(context, **tool.arguments(arguments))
        self.learn(result)
        return result

    def learn(self, result: Result) -> None:
        """What the engine keeps of a result: which texts the model knows, what is proposed."""
        for change in result.changes:
            data = result.blobs[change.after] if change.after else b""
            self.known[change.path] = data
            if change.via == "proposed":
                self.proposals[change.path] = data
        for seen in result.seen:
            self.known[seen.path] = result.blobs[seen.hash]

    def file(self, name: str, data: bytes | str = b"") -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    root = tmp_path.resolve() / "work"
    root.mkdir()
    return Workspace(root)


@pytest.fixture
def editor(workspace: Workspace) -> FakeEditor:
    workspace.editor = FakeEditor()
    return workspace.editor
