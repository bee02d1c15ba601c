"""What the loop asks before it acts, and about what it did: ports of features, none of which it
knows.

Each has a form that does nothing, which holds where the feature is not there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol

from magy_server.core.agents.child import SpawnLimits
from magy_server.core.agents.tree import Stream
from magy_server.core.errors import ToolError
from magy_server.core.events import Noted, Replied
from magy_server.core.ports import ModelFacts, ModelRequest
from magy_server.core.state.state import State
from magy_server.core.tool import Proposal, Team
from magy_server.engine.session import Session


class Ancestors(Protocol):
    """Those whose rules hold for a child, too."""

    async def above(self, id: str) -> Sequence[State]:
        """The states of this session (its id), its parent and so on to the root. Raises
        NotFound."""
        ...


class Slot(Protocol):
    """The place of a session's turn among those that work. `async with` gives it back at the end;
    it costs nothing until it is taken."""

    taken: bool

    async def take(self) -> None:
        """Waits in line for it. Cancelled, it has taken none."""
        ...

    def give_back(self) -> None: ...

    async def __aenter__(self) -> None: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None, /,
    ) -> None: ...  # fmt: skip


class Slots(Protocol):
    """How much goes on at once in a process."""

    @property
    def limits(self) -> SpawnLimits:
        """How many children there may be."""
        ...

    def begin(self, stream: Stream) -> None:
        """A session is at work here, be it that it waits."""
        ...

    def end(self, stream: Stream) -> None: ...

    def queued(self, stream: Stream) -> bool:
        """Whether this session waits for a slot."""
        ...

    def slot(self, stream: Stream) -> Slot:
        """The slot of a session that is about to run."""
        ...

    def requests(self, provider: str) -> AbstractAsyncContextManager[None]:
        """Held while one request to this provider is under way."""
        ...


class Slip(Protocol):
    """What is put aside for one request."""

    def took(self, reply: Replied) -> None:
        """It is answered, and `reply` will be in the log."""
        ...


class Purse(Protocol):
    """What a run may take, in all its sessions together."""

    def reserved(
        self, session: Session, request: ModelRequest, facts: ModelFacts
    ) -> AbstractAsyncContextManager[Slip]:
        """Held around one request. Waits while others hold what is needed. Raises OverBudget."""
        ...


class Changes(Protocol):
    """What becomes of the files that agents change. Paths are canonical. All may raise
    StoreError."""

    def changing(self, paths: Collection[str]) -> AbstractAsyncContextManager[None]:
        """Around a change of these files and the append that says so."""
        ...

    async def proposal(self, path: str) -> Proposal | None:
        """Made for what the file is now; None: nothing is proposed."""
        ...

    async def notes(self, state: State) -> Noted | None:
        """What the model is told of undecided changes when a turn begins; None: it knows."""
        ...

    async def settle(self, root: str, paths: Sequence[str] = ()) -> None:
        """The end of a turn: keeps what the person changed in files of this workspace root (all of
        them, or `paths`). Errors are only logged."""
        ...


class Restores(Protocol):
    """Going back to where a turn began."""

    async def finish(self, session: Session) -> None:
        """Finishes the restore that a process began which died. For who holds the tree's lease."""
        ...


class Supervisor(Protocol):
    """Starting again what failed."""

    def restarts(self, session: Session, error: Exception) -> bool:
        """Its task died of an error that nobody foresaw. True: it shall be begun anew, from its
        log."""
        ...

    def tries(self, session: Session) -> int:
        """How often in a row it has failed and was begun anew."""
        ...


class NoAncestors:
    """Each session stands alone."""

    async def above(self, id: str) -> Sequence[State]:
        return ()


class FreeSlots:
    """Whoever wants to work does."""

    limits = SpawnLimits(depth=0)

    def begin(self, stream: Stream) -> None:
        pass

    def end(self, stream: Stream) -> None:
        pass

    def queued(self, stream: Stream) -> bool:
        return False

    def slot(self, stream: Stream) -> Slot:
        return _FreeSlot()

    @asynccontextmanager
    async def requests(self, provider: str) -> AsyncIterator[None]:
        yield


class _FreeSlot:
    taken = True

    async def take(self) -> None:
        pass

    def give_back(self) -> None:
        pass

    async def __aenter__(self) -> None:
        pass

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        pass


class NoPurse:
    """Nothing is limited."""

    @asynccontextmanager
    async def reserved(
        self, session: Session, request: ModelRequest, facts: ModelFacts
    ) -> AsyncIterator[Slip]:
        yield _NoSlip()


class _NoSlip:
    def took(self, reply: Replied) -> None:
        pass


class NoChanges:
    """Nothing is under review."""

    @asynccontextmanager
    async def changing(self, paths: Collection[str]) -> AsyncIterator[None]:
        yield

    async def proposal(self, path: str) -> Proposal | None:
        return None

    async def notes(self, state: State) -> Noted | None:
        return None

    async def settle(self, root: str, paths: Sequence[str] = ()) -> None:
        pass


class NoRestores:
    """There are none."""

    async def finish(self, session: Session) -> None:
        pass


class NoSupervisor:
    """What fails has failed."""

    def restarts(self, session: Session, error: Exception) -> bool:
        return False

    def tries(self, session: Session) -> int:
        return 0


def no_team(session: Session) -> Team:
    raise ToolError("There are no other agents here.")


@dataclass(frozen=True, slots=True)
class Features:
    changes: Changes = field(default_factory=NoChanges)
    restores: Restores = field(default_factory=NoRestores)
    purse: Purse = field(default_factory=NoPurse)
    supervisor: Supervisor = field(default_factory=NoSupervisor)
    team: Callable[[Session], Team] = no_team
    """What a session's agent may do with the other agents of its tree."""
