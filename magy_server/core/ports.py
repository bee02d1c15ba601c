"""The ports are Protocols that say what the engine needs from the world. Adapters implement them;
the middle packages meet only here and in `app.py`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import astuple, field
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from magy_server.core.agents.tree import Stream, id_of
from magy_server.core.events import Entry, Event, Replied
from magy_server.core.knowledge import Question
from magy_server.core.prompting.prefix_cache import SoFar
from magy_server.core.values import NO_FILE, Hash, Usage, Version
from magy_server.dataclass import dataclass
from magy_server.edits.model import TextChange

A = TypeVar("A")

# --- store --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to append turn events to a session tree. `epoch` grows with every holder."""

    root: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Events for one stream, to be placed right after seq `after` (0: the stream is new). Without
    anything to be stored it only says where the stream must stand.

    `blobs` are stored in the same transaction; a blob already stored may be left out. `summary`
    replaces the stream's summary (a JSON object the store does not look into); None keeps it.
    """

    stream: Stream
    after: int
    events: Sequence[Event]
    blobs: Mapping[Hash, bytes] = field(default_factory=dict)
    summary: Mapping[str, Any] | None = None


def same(first: Sequence[Batch], second: Sequence[Batch]) -> bool:
    """Whether both lead on from the same entries."""
    return [(b.stream, b.after) for b in first] == [(b.stream, b.after) for b in second]


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """A row of `Store.streams`. `root` is the workspace root from its `Opened` (None: global)."""

    stream: Stream
    root: str | None
    head: int
    created: float
    updated: float
    summary: Mapping[str, Any]

    @property
    def id(self) -> str:
        """Returns the id of the session whose stream this is."""
        return id_of(self.stream)


@dataclass(frozen=True, slots=True)
class Page:
    items: list[StreamInfo]
    cursor: str | None


class Head(NamedTuple):
    """How far a stream has come. One that was removed and made anew has another `created`."""

    stream: Stream
    seq: int
    created: float


class Snapshot(NamedTuple):
    """What was made of a stream's first `seq` entries. `code` names what made it; the store does
    not look into `body`."""

    seq: int
    code: str
    body: bytes


class Store(Protocol):
    """Append-only streams with their blobs and snapshots, and leases. All raise `StoreError`s with
    sentences."""

    async def append(self, batches: Sequence[Batch], lease: Lease | None = None) -> list[Entry]:
        """All batches or none. Raises `Conflict` unless every stream stands exactly at its
        `after` and, with a lease, the lease's epoch is the current one. Durable on return."""

    async def read(
        self, stream: Stream, *, after: int = 0, before: int | None = None, limit: int | None = None
    ) -> list[Entry]:
        """Entries with after < seq < before in order; with `limit` the first ones, or the last
        ones when only `before` is given. An unknown stream is empty."""

    async def turn_starts(self, stream: Stream, last: int, before: int | None = None) -> list[int]:
        """Seqs of the last `last` turn-opening entries below `before`, ascending."""

    async def head(self, stream: Stream) -> int:
        """The last seq, 0 for an unknown stream."""

    async def info(self, stream: Stream) -> StreamInfo | None: ...

    async def streams(
        self,
        prefix: str,
        *,
        first_root: str | None = None,
        root: str | None = None,
        flat: bool = False,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page:
        """Streams whose name begins with `prefix`, those of `first_root` first, then by `updated`,
        newest first. With `root`, only that root's; `flat`: only those with no further `/` in what
        follows the prefix. `cursor` is from the page before; what is appended to between two pages
        may be on neither."""

    async def below(self, stream: Stream) -> list[StreamInfo]:
        """All whose name is this one's, a `/` and more, as they are at one moment; by name."""

    async def heads(self, prefix: str) -> Sequence[Head]:
        """All streams whose names begin with `prefix`, the newest first: cheap, for who knows how
        most of them stand and asks which have come further."""

    async def blob(self, hash: Hash) -> bytes:
        """Raises NotFound."""

    async def blobs(self, hashes: Sequence[Hash]) -> dict[Hash, bytes]: ...

    async def keep(self, stream: Stream, snapshot: Snapshot) -> None:
        """Keeps it in place of the stream's earlier one; not, when the stream has no such entry
        (any more)."""

    async def snapshot(self, stream: Stream) -> Snapshot | None:
        """The one that was kept last; it goes with the stream."""

    async def delete(self, stream: Stream, *, before: float | None = None) -> bool:
        """Removes the stream, all below it, and every blob that no other stream refers to, at
        once. False: there was nothing, or one of these streams was appended to at `before` or
        later, and nothing was removed."""

    async def weigh(self, streams: Sequence[Stream]) -> int:
        """The bytes that go with exactly these streams: of their entries and snapshots, and of the
        blobs that no other stream refers to."""

    async def lease(self, root: str) -> Lease | None:
        """Takes the lease if no living process holds it; None when one does. A holder's death
        (SIGKILL included) frees it at once."""

    async def release(self, lease: Lease) -> None: ...

    async def changed(self) -> bool:
        """True when another process has committed since the last call. Cheap."""

    async def close(self) -> None: ...


# --- bus ----------------------------------------------------------------------------------------


LEFT = "peer/left"
"""Where a bus says that another process has left, or died: {"peer": its id}."""


class Bus(Protocol):
    """May drop, never blocks. Topics are stream names; messages are small JSON objects."""

    def publish(self, topic: str, message: Mapping[str, Any]) -> None: ...

    def subscribe(
        self, topic: str, receive: Callable[[Mapping[str, Any]], None]
    ) -> Callable[[], None]:
        """Calls `receive` on the loop, for messages of this process and of others. Returns a
        function that ends the subscription."""

    async def start(self) -> None: ...

    async def close(self) -> None: ...


# --- models -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the conversation as providers see it. Tool results are user parts."""

    role: Literal["user", "assistant"]
    parts: tuple[Any, ...]
    """For the user: Text, Picture and ToolOutput. For the assistant: Text, Thinking, Call. Thinking
    is there only if the model that is asked now has thought it."""


@dataclass(frozen=True, slots=True)
class Picture:
    """`mime` is as in `values.Image`."""

    mime: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ToolOutput:
    call: str
    provider_id: str
    text: str
    error: bool = False
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolSchema:
    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A whole request; a function of the log alone. `id` is `Replied.request`."""

    id: str
    session: str
    model: str
    """The provider's own model name, without the `provider/` prefix."""
    system: tuple[str, ...]
    tools: tuple[ToolSchema, ...]
    messages: tuple[Message, ...]
    max_tokens: int
    """0: not limited here."""
    thinking_tokens: int = 0
    temperature: float | None = None
    single: bool = False
    """No later request begins with this one, so that no provider need keep it, which may cost."""
    so_far: SoFar = field(default_factory=SoFar, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Delta:
    """Something streamed. `kind` text | thinking: more of the reply; call: tool `name` is being
    called, `text` is more of its argument JSON, and `done` says that this was the last of it."""

    kind: Literal["text", "thinking", "call"]
    text: str
    index: int = 0
    """For `call`: which tool call of this reply, from 0."""
    name: str = ""
    done: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """How far the model has read the prompt, in tokens: `done` of `total`, of which `cached` were
    known to it. `seconds`: what it took so far."""

    done: int
    total: int
    cached: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens. Where `long` is given, it holds for the whole of a request
    whose prompt, cached parts included, has more than `long_above` tokens."""

    input: float
    output: float
    cache_read: float
    cache_write: float
    long_above: int = 0
    long: Price | None = None

    def of(self, usage: Usage) -> float:
        """US dollars for one request."""
        if self.long is not None and usage.total - usage.output > self.long_above:
            return self.long.of(usage)
        return (
            usage.input * self.input
            + usage.output * self.output
            + usage.cache_read * self.cache_read
            + usage.cache_write * self.cache_write
        ) / 1_000_000


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What is known of a model beforehand. `window`: tokens of prompt and reply together, 0 when
    not known; `max_tokens`: the most that one reply can have, 0 when not known; `local`: it runs on
    this machine."""

    window: int = 0
    max_tokens: int = 0
    price: Price | None = None
    local: bool = False

    def cost(self, usage: Usage) -> float | None:
        """US dollars for one request; None: nobody knows its price, or what it took."""
        price = self.price
        if price is None or (usage.total == 0 and any(astuple(price))):
            return None
        return price.of(usage)


@dataclass(frozen=True, slots=True)
class ModelList:
    """The models of a provider, named `provider/model`, those known beforehand first. `problem`:
    why its own list is not among them, as a sentence; "" when it is."""

    provider: str
    models: Sequence[str]
    problem: str = ""


class Provider(Protocol):
    """Streams one reply: how far the prompt is read (if the server says it), deltas, and at the end
    exactly one `Replied`. Raises ProviderError; never retries by itself. Closing the iterator ends
    the request."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[Delta | Reading | Replied, None]: ...

    async def models(self) -> list[str]:
        """The provider's own names of the models that this key may use; also the cheapest proof
        that endpoint and key are good. Raises ProviderError."""

    async def window(self, model: str) -> int:
        """Tokens that the server gives this model for prompt and reply together; 0 when it does not
        say. Never raises."""

    def warm(self) -> None:
        """Imports what is slow to import; called in a thread."""

    async def close(self) -> None: ...


# --- editor -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Buffer:
    """An open document. `text` is what the editor shows, unsaved changes included, with the line
    ends the editor sends."""

    path: str
    uri: str
    version: int
    text: str


@dataclass(frozen=True, slots=True)
class Seen:
    """What an editor said of an open document: the text that it then shows. `opened`: it shows it
    from now on; `saved`: it has just been saved. `on_disk`: instead, the person has just made,
    moved or removed this file or folder in the editor."""

    path: str
    text: str = ""
    opened: bool = False
    saved: bool = False
    on_disk: bool = False


class Editor(Protocol):
    """The live buffers of the editor behind one connection."""

    @property
    def tells(self) -> bool:
        """Whether it tells by itself what is open and what changes there. Of one that does not,
        `buffer` is what it said when it was last asked, in the same task (`look`)."""

    async def look(self, path: str) -> None:
        """Asks for the text of a file, where the editor tells nothing by itself. Raises Unseen:
        it does not answer, so that nobody knows what it shows."""

    def buffer(self, path: str) -> Buffer | None:
        """Returns the buffer of a canonical path; None when the file is not open."""

    def open_paths(self) -> Sequence[str]: ...

    async def apply(self, buffer: Buffer, changes: Sequence[TextChange], label: str) -> Buffer:
        """Applies changes computed on exactly `buffer`, and returns the buffer as the editor then
        has it: with the changes, and with what the person typed meanwhile. Raises EditRefused
        (nothing changed) or EditUnverified."""

    async def late(self, path: str) -> bool:
        """Whether an edit of the file is made after all that was cancelled while the editor had not
        answered it (it may have asked the person): waits until that is known."""

    async def save(self, buffer: Buffer) -> Buffer | None:
        """Asks the editor to save exactly this: what it then showed, with what a formatter made of
        it. None when it cannot, or the person has typed since, whose text is theirs to save."""

    def follow(self, see: Callable[[Seen], None]) -> Callable[[], None]:
        """Calls `see` at once, and in their order, for each document opened, changed or saved, and
        each file made, moved or removed, from now on. Returns a function that ends this. `see` must
        be quick: it runs at every keystroke."""

    async def caught_up(self) -> bool:
        """Waits until all that the editor has said until now has been heard. False: it cannot be
        asked for that, or did not answer in a few seconds."""

    @property
    def knows(self) -> frozenset[str]:
        """What it can be asked for, as `knowledge.Knowledge` names it."""

    async def ask(self, question: Question[A]) -> A:
        """Raises EditorError: it cannot be asked that, did not answer in time, or its answer cannot
        be understood."""


# --- files --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Found:
    """What is at a path now. An open buffer is the file: `data` is then its text as bytes for the
    disk. `text` is raw; None: there is none (nothing there, a link, binary data)."""

    path: str
    version: Version = NO_FILE
    data: bytes = b""
    text: str | None = None
    buffer: Buffer | None = None
    disk: Version | None = None
    """What is on disk, where the open buffer holds something else: that is not saved. None: the
    same. A buffer that only shows what was removed from the disk does not count as a file."""


@dataclass(frozen=True, slots=True)
class Put:
    """What a change of a file led from and to. What the person typed is in both or in neither: to
    take the change back does not take that back."""

    was: Found
    now: Found


class Files(Protocol):
    """Files below a workspace root, as the person sees them. Paths are canonical but for a last
    part that may be a link."""

    def text(self, data: bytes) -> str | None:
        """Returns the raw text; None for binary or damaged data."""

    def encode(self, text: str, like: bytes) -> bytes:
        """Encodes a text as `like` is encoded, byte order mark included. Raises ToolError when that
        encoding cannot hold it."""

    async def look(self, root: str, path: str, without: Collection[str] | None = None) -> Found:
        """With `without`, a directory that holds no files but these is nothing: once they are gone
        there is room for a file. Raises ToolError: it cannot be read, or is no file."""

    async def put(self, root: str, was: Found, now: Version, data: bytes, label: str) -> Put:
        """Makes the file so, through the editor where it is open: an editor may format it when it
        saves. What the person has typed into the open buffer since `was` stays, and the change is
        made beside it. A new file takes the place of a directory without files. Raises EditRefused
        when the file is not `was` any more, or the person has changed the same lines or types too
        fast (look again), ToolError or EditorError when it cannot be done."""

    async def marks(self, places: Sequence[tuple[str, str]]) -> Sequence[Hashable | None]:
        """Of each (root, path) a value that is another one as soon as anything is that `look` and
        `head` tell of it, but for what is written through a shared mapping of the file. None where
        that cannot be promised: look. Opens none of the files."""

    async def head(self, root: str, path: str) -> str | None:
        """Returns the commit checked out in the git work tree around the file; None if there is
        none."""

    async def committed(self, root: str, path: str, commit: str) -> Found:
        """Returns what a commit has of the file. Raises ToolError when that is not known (any
        more)."""


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch, UTC."""
