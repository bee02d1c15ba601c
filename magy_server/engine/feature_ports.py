"""The loop knows no feature: it asks through these ports before it acts, and tells them what it
did.

The bodies here are the form that does nothing, which holds where the feature is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import field
from typing import Protocol

from magy_server.core.agents.tree import Stream
from magy_server.core.errors import ToolError
from magy_server.core.events import Replied, Stop
from magy_server.core.ports import ModelFacts, ModelRequest
from magy_server.core.reviews.review_events import Noted
from magy_server.core.spawn_settings import SpawnSettings
from magy_server.core.state.state import State
from magy_server.core.tool import Proposal, Team, Tool
from magy_server.core.values import Call, FileChange, Hash, HookSaid
from magy_server.dataclass import dataclass
from magy_server.engine.session import Session


class Ancestors(Protocol):
    """The sessions above a child, whose rules hold for it, too."""

    async def above(self, id: str) -> Sequence[State]:
        """The states of this session (its id), its parent and so on to the root. Raises
        NotFound."""
        return ()


class NoAncestors(Ancestors):
    """Each session stands alone."""


class Slot(Protocol):
    """The place of a session's turn among those that work. `async with` gives it back at the end;
    it costs nothing until it is taken."""

    taken: bool = True

    async def take(self) -> None:
        """Waits in line for it. Cancelled, it has taken none."""
        return

    def give_back(self) -> None:
        return

    async def __aenter__(self) -> None:
        return

    async def __aexit__(self, *exc: object) -> None:
        self.give_back()


class FreeSlot(Slot):
    """A slot that is always free."""


class Slots(Protocol):
    """How much goes on at once in a process."""

    @property
    def limits(self) -> SpawnSettings:
        """How many children there may be."""
        return SpawnSettings(max_depth=0)

    def begin(self, stream: Stream) -> None:
        """A session is at work here, be it that it waits: it has a turn that goes on, or one that
        is about to begin."""
        return

    def end(self, stream: Stream) -> None:
        return

    def queued(self, stream: Stream) -> bool:
        """Whether this session waits for a slot."""
        return False

    def slot(self, stream: Stream) -> Slot:
        """The slot of a session that is about to run."""
        return FreeSlot()

    def requests(self, provider: str) -> AbstractAsyncContextManager[None]:
        """Held while one request to this provider is under way."""
        return nullcontext()


class FreeSlots(Slots):
    """No slot is limited."""


class Slip(Protocol):
    """What is put aside for one request."""

    def took(self, reply: Replied) -> None:
        """Notes that the request is answered, and that `reply` will be in the log."""
        return


class NoSlip(Slip):
    """Nothing is put aside."""


class Purse(Protocol):
    """What a run may take, in all its sessions together."""

    def reserved(
        self, session: Session, request: ModelRequest, facts: ModelFacts
    ) -> AbstractAsyncContextManager[Slip]:
        """Held around one request. Waits while others hold what is needed. Raises OverBudget."""
        return nullcontext(NoSlip())


class NoPurse(Purse):
    """Nothing is limited."""


class Changes(Protocol):
    """What becomes of the files that agents change. Paths are canonical. All may raise
    StoreError."""

    def changing(self, paths: Collection[str]) -> AbstractAsyncContextManager[None]:
        """Around a change of these files and the append that says so."""
        return nullcontext()

    async def proposal(self, path: str) -> Proposal | None:
        """Made for what the file is now; None: nothing is proposed."""
        return None

    async def notes(self, state: State) -> Noted | None:
        """What the model is told of undecided changes when a turn begins; None: it knows."""
        return None

    async def all_decided(self, root: str | None, session: str) -> bool:
        """Whether a person has decided all that the last turn of this session only proposed, and
        whatever it proposed before. False if that turn proposed nothing."""
        return False

    async def settle(self, root: str, paths: Sequence[str] = ()) -> None:
        """The end of a turn: keeps what the person changed in files of this workspace root (all of
        them, or `paths`). Errors are only logged."""
        return


class NoChanges(Changes):
    """Nothing is under review."""


class Restores(Protocol):
    """Going back to where a turn began."""

    async def finish(self, session: Session) -> None:
        """Finishes the restore that a process began which died. For who holds the tree's lease."""
        return


class NoRestores(Restores):
    """Nothing was begun, so nothing is to be finished."""


@dataclass(frozen=True, slots=True)
class Landed:
    """How a turn ends, with what became of its worktree: `message` and `changes` of `Ended`, and a
    note that the agent, its parent and people read; `unproposed` is that note where the changes
    cannot be proposed."""

    message: str
    note: str = ""
    unproposed: str = ""
    changes: tuple[FileChange, ...] = ()
    blobs: Mapping[Hash, bytes] = field(default_factory=dict)


class Worktrees(Protocol):
    """The git worktrees that children work in."""

    async def ready(self, state: State) -> None:
        """Makes the worktree of a session whose turn is about to begin, if it is to have one.
        Raises ToolError: why it cannot be made."""
        return

    async def landed(self, state: State, stop: Stop, message: str) -> Landed:
        """What becomes of the work of the turn that is about to end. Done again after a crash, it
        finds what was done."""
        return Landed(message)


class NoWorktrees(Worktrees):
    """Sessions work where the person does."""


class Hooks(Protocol):
    """Commands of the user's that have a say before a call runs."""

    async def before(self, state: State, tool: Tool, call: Call) -> Sequence[HookSaid]:
        return ()


class NoHooks(Hooks):
    """Nobody else has a say."""


class Supervisor(Protocol):
    """Starting again what failed."""

    def restarts(self, session: Session, error: Exception) -> bool:
        """Returns whether to begin the session anew from its log, after its task died of an
        unforeseen error."""
        return False

    def tries(self, session: Session) -> int:
        """Returns how often in a row the session has failed and was begun anew."""
        return 0


class NoSupervisor(Supervisor):
    """What fails has failed."""


def no_team(session: Session) -> Team:
    raise ToolError("There are no other agents here.")


@dataclass(frozen=True, slots=True)
class Features:
    changes: Changes = field(default_factory=NoChanges)
    restores: Restores = field(default_factory=NoRestores)
    purse: Purse = field(default_factory=NoPurse)
    supervisor: Supervisor = field(default_factory=NoSupervisor)
    hooks: Hooks = field(default_factory=NoHooks)
    worktrees: Worktrees = field(default_factory=NoWorktrees)
    team: Callable[[Session], Team] = no_team
    """What a session's agent may do with the other agents of its tree."""
