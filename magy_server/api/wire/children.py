"""A child is a session below another: its id is that of its parent, a `/`, and the key that it was
spawned under (of one that a model spawned: the call). What `magy/session/*` does with a session it
does with a child: subscribe to it, prompt it, cancel its turn; a fork of a child is a session of
its own. Lists of sessions leave children out; `magy/child/list` has them. The task of the child
`one/tests` is the message `one/tests:task`, which also names its first turn. To close a child
(`magy/child/close`) is for good, other than to close a session.

The result of each of its turns is a message (`_magy_mail`) in its parent's log. A child that a
model spawned wakes its parent by that; one that a person spawned is read with the parent's next
prompt. `magy/child/wait` changes nothing: pass `seq` of one answer on as `afterSeq` of the next,
over a restart too, and no result is missed or told twice.

Questions of children are questions of the session that asks: answer them with its `sessionId`. They
are also among those of all sessions above, each with its `path`. Another process may run the tree:
then `magy/child/changed` tells that a child asks (`questions`), and `magy/interaction/list` what.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from magy_server.api.wire.refusals import KEY
from magy_server.api.wire.shapes import Id, Prompt, Prose, SessionParams, Wire
from magy_server.core.agents import tree
from magy_server.core.agents.mail import Status
from magy_server.core.spawn_settings import RANGES

LONGEST_KEY = 60
LONGEST_WAIT = 24 * 3600 * 1000
MOST = 1_000_000_000


def _no_call(key: str) -> str:
    if tree.is_call(key):
        raise ValueError("a number, a dot and a number name the children of calls; add a letter")
    if key in (".", ".."):
        raise ValueError("dots alone are not a name; add a letter")
    return key


SpawnKey = Annotated[
    str,
    Field(
        min_length=1,
        max_length=LONGEST_KEY,
        pattern=KEY,
        description="Chosen by the client: the last part of the child's id. Repeating a request "
        "gives the same child; another task under the same key is refused. Keys like "
        "`12.0` are reserved for the children of calls",
    ),
    AfterValidator(_no_call),
]
Dollars = Annotated[float, Field(ge=0, le=MOST, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=MOST)]
Action = Literal["allow", "ask", "deny"]


class LatestTurns(Wire):
    turns: Annotated[int, Field(ge=1, le=1000)]


class ChildCaps(Wire):
    """Caps of the child's turns; the configured ones hold beside them, the lower of each two. 0 or
    left out: only those."""

    requests: Count = 0
    tokens: Count = 0
    cost: Dollars = Field(default=0, description="US dollars")
    seconds: Dollars = 0
    run_tokens: Count = Field(
        default=0, description="For one run, with all that the child's own children do for it"
    )
    run_cost: Dollars = 0


class ChildSpawnParams(Wire):
    parent_session_id: Id
    request_key: SpawnKey
    agent: str = Field(default="", description='"": the parent\'s')
    prompt: Prompt
    name: Annotated[Prose, Field(max_length=80)] = Field(
        default="", description="A name for the task, for people"
    )
    context: Literal["none", "all"] | LatestTurns = Field(
        default="none", description="How much of the parent's conversation it sees: {turns: n}, "
            "the latest n"
    )  # fmt: skip
    model: str = Field(default="", description='`provider/model`; "": the parent\'s')
    permissions: dict[str, Action | dict[str, Action]] = Field(
        default={},
        description="{key: action} or {key: {pattern: action}}. They can only restrict what the "
        "child's agent and its parents may do; a key that no tool has, and a key that only "
        "allows, is refused",
    )
    limits: ChildCaps = ChildCaps()
    cwd: str | None = Field(
        default=None, description="Absolute path in the parent's workspace; null: the parent's"
    )
    worktree: bool = Field(
        default=False,
        description="It works on a git branch of its own, in a worktree; what becomes of that, its "
        "agent's file says",
    )
    plugin: str = Field(
        default="",
        description='The only plugin of which it has tools, skills and words; "": as its agent',
    )


class Child(Wire):
    """A child at a glance."""

    session_id: str
    parent_session_id: str
    name: str
    agent: str
    model: str
    state: Status = Field(
        description="queued: it waits to start; running; waiting: for a person's answer; "
        "completed | failed | cancelled: how its latest turn ended; closed: it accepts "
        "nothing more"
    )
    depth: int = Field(description="1: the child of a root")
    turns: int = 0
    waiting: int = Field(default=0, description="Prompts and messages that wait")
    questions: int = Field(
        default=0, description="Open questions, its own and those of all below it"
    )
    usage: dict[str, int] = Field(default={})
    cost: dict[str, Any] = Field(default={})
    tree_usage: dict[str, int] = Field(default={}, description="Including all below it")
    tree_cost: dict[str, Any] = Field(default={})
    said: str = Field(default="", description="The beginning of its latest result, or of its task")
    stop_reason: str | None = Field(default=None, description="For its latest turn")
    created_at: str
    updated_at: str


class ChildSpawned(Wire):
    child: Child
    known: bool = Field(description="It existed already: nothing was done")


class ChildSendParams(SessionParams):
    """One of `prompt`, `data` and `signal`. `sessionId` may be any session, not only a child."""

    request_key: Id = Field(
        description="Chosen by the client for this one message of the session: repeating it has "
        "no effect, and another message under the same key is refused. `messageId` of "
        "`magy/session/prompt` is such a key, too"
    )
    prompt: Prompt | None = None
    data: dict[str, Any] | None = Field(default=None, description="For programs: no model reads it")
    signal: Literal["ping", "cancel", "shutdown"] | None = Field(
        default=None,
        description="ping: the child answers with a heartbeat; cancel: stops its running turn; "
        "shutdown: closes it",
    )
    delivery: Literal["queue", "steer", "interrupt"] = Field(
        default="steer", description="What the prompt does to a running turn"
    )


class ChildSent(Wire):
    message_id: str
    outcome: Literal["started", "steered", "queued", "known", "delivered"]


class ChildWaitParams(Wire):
    """For the children of `parentSessionId`, or those named; both: those, which must be its."""

    parent_session_id: Id | None = None
    session_ids: Annotated[list[Id], Field(min_length=1, max_length=256)] | None = None
    until: Literal["any", "all"] = "any"
    after_seq: Count | None = Field(
        default=None,
        description="`seq` of the last answer: only newer results count. A child that is idle "
        "without a result in the parent's log (it never started, or is further below) "
        "counts as done. Left out: every idle child is done",
    )
    timeout_ms: Annotated[int, Field(ge=0, le=LONGEST_WAIT)] | None = Field(
        default=None, description="Default: spawn.wait_timeout"
    )


class ChildReport(Wire):
    """How a turn ended, and what it took."""

    turn_id: str
    status: str
    stop_reason: str
    requests: int
    usage: dict[str, int]
    cost: dict[str, Any]
    seconds: float


class ChildResult(Wire):
    child: Child
    text: str = Field(description="Its latest result")
    report: ChildReport | None = None
    seq: int = Field(description="Where the result stands in the parent's log; 0: there is none")


class ChildWaited(Wire):
    results: list[ChildResult]
    timed_out: bool = Field(description="Nothing was cancelled; ask again with `seq`")
    seq: int = Field(description="Pass it as `afterSeq` next time, so that nothing is missed")


class ChildListParams(Wire):
    parent_session_id: Id | None = Field(
        default=None, description="null: the children of all sessions"
    )
    recursive: bool = True
    include_closed: bool = False
    cursor: str | None = Field(default=None, description="`nextCursor` of the page before")
    limit: Annotated[int, Field(ge=1, le=200)] = 100


class ChildListResult(Wire):
    children: list[Child]
    next_cursor: str | None = Field(default=None, description="null: this is the last page")


class ChildCloseParams(SessionParams):
    mode: Literal["finish", "cancel"] = Field(
        default="finish",
        description="finish: it still does what runs and waits there; cancel: it does not",
    )
    reason: Annotated[Prose, Field(max_length=10_000)] = Field(default="", description="For people")
    recursive: bool = Field(default=True, description="Including all below it")


class ChildClosed(Wire):
    previous_state: Status
    closed: list[str] = Field(description="Session ids, without those that were closed before")


class ChildLimitsParams(Wire):
    """Holds at once and until the process ends. No field: only asks. What is out of range is
    clamped, and said."""

    max_depth: int | None = Field(default=None, description="{} to {}".format(*RANGES["max_depth"]))
    max_children: int | None = Field(
        default=None,
        description="Open children of one session: {} to {}".format(*RANGES["max_children"]),
    )
    max_total: int | None = Field(
        default=None,
        description="Working children in the process: {} to {}".format(*RANGES["max_total"]),
    )
    max_concurrent: int | None = Field(
        default=None,
        description="Turns that run at once: {} to {}".format(*RANGES["max_concurrent"]),
    )
    max_queue: int | None = Field(
        default=None,
        description="Children that wait for a turn: {} to {}".format(*RANGES["max_queue"]),
    )


class ChildLimits(Wire):
    max_depth: int
    max_children: int
    max_total: int
    max_concurrent: int
    max_queue: int
    working: int = Field(description="Working children in this process")
    queued: int = Field(description="How many of them wait for a slot")
    clamped: list[str] = Field(default=[], description="How values out of range were changed")


class ChildChanged(Wire):
    parent_session_id: str
    child: Child
    deleted: bool = Field(
        default=False, description="It was deleted; `child`, closed, is its last state"
    )


class AgentHealth(Wire):
    """An agent that this process runs, or held lately."""

    session_id: str
    state: str
    queue_depth: int = Field(description="Prompts and messages that wait")
    errors: int = Field(description="In a row")
    error_rate: float = Field(description="Share of failures among its latest outcomes, 0 to 1")
    restarts: int
    memory: int = Field(description="Approximate bytes of memory that it uses in this process")
    last_progress: str | None = Field(default=None, description="ISO 8601, UTC")


class AgentHealthResult(Wire):
    agents: list[AgentHealth]
