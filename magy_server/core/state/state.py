"""`State` is what a session is after all that its log says: these values, which `fold.py` makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from magy_server.core.agents.mail import Closed, Mailed
from magy_server.core.agents.tree import Stream, id_of
from magy_server.core.events import Asked, CompactAsked, Opened, Stop
from magy_server.core.skills.statement import joined
from magy_server.core.state.conversation import Conversation
from magy_server.core.state.queue import Queue
from magy_server.core.state.spending import Spending
from magy_server.core.state.turn import Turn
from magy_server.core.state.turn_starts import History
from magy_server.core.values import Grant, SkillUse
from magy_server.dataclass import dataclass


def question_id(session: str, call: str) -> str:
    """Returns the id of the question whether a call may run."""
    return f"{session}/{call}"


@dataclass(frozen=True, slots=True)
class Question:
    """An open question, as folded."""

    asked: Asked
    at: float


@dataclass(frozen=True, slots=True)
class Reported:
    """A child's result, and where it stands in the log of who got it: the cursor of a wait."""

    seq: int
    mail: Mailed


@dataclass(frozen=True, slots=True)
class State:
    stream: Stream
    seq: int = 0
    at: float = 0.0
    opened: Opened | None = None
    closed: Closed | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    conversation: Conversation = field(default_factory=Conversation)
    queue: Queue = field(default_factory=Queue)
    reports: Mapping[str, Reported] = field(default_factory=dict)
    """The latest result of each child, by its session id."""
    spending: Spending = field(default_factory=Spending)
    history: History = field(default_factory=History)
    turn: Turn | None = None
    """The one that runs."""
    turns: int = 0
    """How many there were, with this one."""
    last_stop: Stop | None = None
    questions: Mapping[str, Question] = field(default_factory=dict)
    """Those that are open, by id."""
    grants: tuple[Grant, ...] = ()
    background: Mapping[str, int] = field(default_factory=dict)
    """The process groups of the commands in the background, by call."""
    compact: CompactAsked | None = None
    """A compaction was asked for."""
    cancelling: bool = False
    """The compaction that runs between turns shall stop."""

    @property
    def id(self) -> str:
        """Returns the id of the session."""
        return id_of(self.stream)

    @property
    def root(self) -> str | None:
        """Returns the root of its workspace."""
        return self.opened.root if self.opened else None

    @property
    def place(self) -> str:
        """Returns the directory that is the workspace to its tools: the root, the same in a git
        worktree, or its own directory if it has no root."""
        opened = self.opened
        return (opened.place or opened.root or opened.cwd) if opened else ""

    @property
    def cwd(self) -> str:
        """Returns the directory where commands begin (canonical absolute path), which may be gone
        by now."""
        own = self.opened.cwd if self.opened and self.opened.parent else self.place
        return self.conversation.cwd or own

    @property
    def agent(self) -> str:
        return self.options.get("agent", "")

    @property
    def model(self) -> str:
        return self.options.get("model", "")

    @property
    def review(self) -> str:
        """review | propose | auto; "": as configured."""
        return self.options.get("review", "")

    @property
    def skills(self) -> tuple[SkillUse, ...]:
        """Returns those at work in it."""
        found = joined(self.opened.skills if self.opened else (), self.conversation.skills)
        return joined(found, self.turn.skills) if self.turn else found

    @property
    def bypass(self) -> bool:
        return self.options.get("bypass") == "on"
