"""Events are made of these values: content, usage, facts, decisions. All are immutable."""

# No `from __future__ import annotations`, here and in all modules with many models: annotations
# would be texts, and pydantic compiles each by itself when the class is made.

import hashlib
from typing import Annotated, Any, Literal, Self, cast

from pydantic import BaseModel, ConfigDict, Field

Hash = str
"""SHA-256 of a blob's bytes, lower-case hex."""
CallId = str
"""`<request>.<n>`: the n-th tool call (from 0) of the reply to that request."""
Effect = Literal["read", "write", "exec", "net", "agent"]
Action = Literal["allow", "ask", "deny"]
Latest = Literal["graph", "deliberation"]
"""What a call may run, of which each update shows all."""
SandboxLevel = Literal["off", "standard", "strict", "isolated"]


def digest(data: bytes) -> Hash:
    """The name of a blob."""
    return hashlib.sha256(data).hexdigest()


_FIELDS_GIVEN: set[str] = set()


class Value(BaseModel):
    """An immutable value that Magy owns; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    def model_post_init(self, context: Any) -> None:
        # Nobody asks which fields were given, and a set of their names for each value would take a
        # third of the memory of a folded log.
        object.__setattr__(self, "__pydantic_fields_set__", _FIELDS_GIVEN)

    @classmethod
    def usual(cls) -> Self:
        """Returns the one in which everything is as it is by default. Pydantic makes the validator
        of a class with the first value that it checks: as there is nothing to check, it makes
        none for the defaults of fields, which are there from the start."""
        return cast(Self, cls.model_construct())


# --- what people and models say ---------------------------------------------------------------


class Text(Value):
    type: Literal["text"] = "text"
    text: str


class Link(Value):
    """A file mentioned by the user; the model is told its name, and may read it."""

    type: Literal["link"] = "link"
    uri: str
    name: str


class Selected(Value):
    """A place in a file that is to be rewritten: characters [start, end) of the plain text of
    `base`, which is what the file (canonical path) held then, unsaved changes included."""

    path: str
    base: Hash
    start: int
    end: int


class SkillUse(Value):
    """A skill that is at work in a turn: the text with this hash, from `source` (bundled | user |
    installed | project). `tools`: those that it states; None: it is not limited. `why` it was
    attached, if nobody named it."""

    name: str
    hash: Hash
    source: str
    tools: tuple[str, ...] | None = None
    why: str = ""


class Embedded(Value):
    """Text that the user attached (a selection, a buffer), with where it came from. `selected`: the
    text is about this place, which the agent is to rewrite. `skill`: it is the text of this one."""

    type: Literal["embedded"] = "embedded"
    uri: str
    text: str
    selected: Selected | None = None
    skill: SkillUse | None = None


class Image(Value):
    """A picture, in a prompt or in what a tool found; `hash` names its bytes. `mime`, found
    in the bytes themselves: image/png, image/jpeg, image/gif or image/webp, as all providers take
    these. `name` is for people."""

    type: Literal["image"] = "image"
    hash: Hash
    mime: str
    name: str = ""


Content = Annotated[Text | Link | Embedded | Image, Field(discriminator="type")]


class Thinking(Value):
    """A thinking block. `signature` (or, for a redacted block, `data`) is the provider's proof and
    must be echoed byte for byte while the tool round lasts. Both hold for one provider only."""

    type: Literal["thinking"] = "thinking"
    text: str = ""
    signature: str = ""
    data: str = ""


class Call(Value):
    """A tool call as the model made it. `id` is ours; `provider_id` is the provider's own.
    `invalid` holds the raw argument text when it is not a JSON object. `wrapped`: the model made it
    with `call_tool`, see `prompting/seldom_tools.py`."""

    type: Literal["call"] = "call"
    id: CallId
    name: str
    arguments: dict[str, Any]
    provider_id: str = ""
    invalid: str | None = None
    wrapped: bool = False


class GivenCall(Value):
    """A tool call that a person makes themself."""

    name: str
    arguments: dict[str, Any]


Part = Annotated[Text | Thinking | Call, Field(discriminator="type")]


class Usage(Value):
    """Tokens. `input` excludes what was read from or written to the prompt cache. `unreported`: so
    many requests are not counted, because their provider did not say what they took."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    unreported: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output + self.cache_read + self.cache_write

    def __add__(self, other: "Usage") -> "Usage":
        if not (self.total or self.unreported):
            return other
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
            unreported=self.unreported + other.unreported,
        )


NO_USAGE = Usage.usual()


class Task(Value):
    """One entry of the agent's plan, in ACP's plan shape."""

    content: str
    status: Literal["pending", "in_progress", "completed", "cancelled"] = "pending"
    priority: Literal["high", "medium", "low"] = "medium"


# --- permission ---------------------------------------------------------------------------------


class Resource(Value):
    """One thing a call would touch, as found by I/O; what the rules are matched against.

    For files `subject` is the canonical absolute path and `relative` the path below the workspace
    root (None outside). For commands `subject` is the simple command on one line and `argv` its
    words. `opaque` marks a command part that could not be understood: no allow pattern matches it.
    `globbed` are the indexes of words that the shell replaces by names of files. `written` are the
    words that the command line has for a command that they stand for (an alias of git): what denies
    or asks knows both. `place` is the directory that a command runs in, below the workspace root if
    it is there; "" for the root itself. `repository` is the clone inside the workspace, below its
    root, that a file which is read lies in; "" where it is part of the workspace's own, or of a
    submodule.
    """

    kind: Effect
    subject: str
    relative: str | None = None
    argv: tuple[str, ...] = ()
    opaque: bool = False
    globbed: tuple[int, ...] = ()
    written: tuple[str, ...] = ()
    place: str = ""
    repository: str = ""
    exists: bool = True


class HookSaid(Value):
    """What a hook says of a call before it runs. `hook` is its name for people."""

    hook: str
    action: Action
    reason: str


class Confinement(Value):
    """The sandbox that a command will run in. `network`: all of it, the listed hosts, or none.
    `missing`: why there is none, though one is wanted. `answers`: the person wants no question
    about what is confined like this."""

    level: SandboxLevel
    network: Literal["all", "listed", "none"] = "all"
    missing: str = ""
    answers: bool = False


class Facts(Value):
    """What I/O found out about a call before it was judged; the tool runs from these same facts."""

    resources: tuple[Resource, ...] = ()
    cwd: str = ""
    kind: str = "other"
    """The tool's ACP kind."""
    title: str = ""
    """One line for a person: "Edit src/app.py", "Run pytest -q"."""
    preview: Hash | None = None
    """What would change, as a unified diff, where that is known beforehand; or, if `code`, what
    would run, where the title does not say all of it."""
    code: bool = False
    confined: Confinement | None = None
    untrusted: tuple[str, ...] = ()
    """Where the text of its result comes from, as far as nobody vouches for it
    (`core/policy/strangers.py`)."""
    problem: str | None = None
    """Why the call cannot run at all (bad arguments, outside the workspace, unknown tool)."""
    hooks: tuple[HookSaid, ...] = ()


class Decision(Value):
    """`rule` names what decided, for people: "agent build: bash `git status*` is allow".
    A `firm` ask is answered only by a person, never by a remembered answer or by bypass.
    `proposed`: allowed as long as the changes are only proposed."""

    action: Action
    rule: str
    firm: bool = False
    proposed: bool = False


class Grant(Value):
    """A remembered answer: allows what matches `pattern` under permission key `key`. `run`: until
    the person prompts again."""

    id: str
    key: str
    pattern: str
    scope: Literal["run", "session", "project"]


# --- what an MCP server asks the person for ------------------------------------------------------

FormValue = bool | int | float | str | tuple[str, ...]


class FormChoice(Value):
    """`name` is what a person reads instead of the value; "": the value."""

    value: str
    name: str = ""


class FormField(Value):
    """`name` is that of its value in the answer. With `choices` the value is one of them; with
    `many`, too, it is a list of some. `low` and `high` bound a number, the characters of a text, or
    how many are chosen."""

    name: str
    type: Literal["string", "number", "integer", "boolean"] = "string"
    title: str = ""
    about: str = ""
    required: bool = False
    default: FormValue | None = None
    choices: tuple[FormChoice, ...] = ()
    many: bool = False
    low: float | None = None
    high: float | None = None
    format: Literal["", "email", "uri", "date", "date-time"] = ""


class Form(Value):
    """What an MCP server asks for in the middle of a call: that the person fills in `fields`, or
    opens the address `url`."""

    server: str
    message: str
    fields: tuple[FormField, ...] = ()
    url: str = ""


Kind = Literal["file", "executable", "link"]
"""What git tells apart, too. The bytes of a link are its target."""


class Version(Value):
    """What is at a path at one moment. Hash None: nothing.

    `mode`: the permission bits, where they are known, so that a file that comes back can have them
    again. They make no other version of it.
    """

    hash: Hash | None = None
    kind: Kind = "file"
    mode: int | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and (self.hash, self.kind) == (other.hash, other.kind)

    def __hash__(self) -> int:
        return hash((self.hash, self.kind))


NO_FILE = Version.usual()
"""Nothing is at the path."""


class FileChange(Value):
    """A file that a tool changed. Hash None: the file did not exist. The blobs hold the bytes.

    `via` says how: through the editor's buffer, on disk, by a command that ran meanwhile, or not
    at all: it was only `proposed`, and the person decides.
    """

    path: str
    before: Hash | None
    after: Hash | None
    via: Literal["editor", "disk", "command", "proposed"] = "disk"
    was: Kind = "file"
    now: Kind = "file"
    moved_from: str = ""
    """Path that the file had before; that one is a change of its own."""
    mode: int | None = None
    """Permission bits, where they are known: of what was there; where nothing was, of what is."""


class Seen(Value):
    """A text that the model was shown: the bytes of the file, unsaved changes included."""

    path: str
    hash: Hash


class Origin(Value):
    """Who changed something: a call of an agent's turn. `command`: it happened while this command
    ran, which may or may not have done it. `commit`: the one that was checked out; "": none."""

    session: str
    agent: str
    turn: str
    call: CallId
    command: str = ""
    commit: str = ""


class Mark(Value):
    """Lines [start, end) of a text, from 0, come from `origin` (an index; -1: the person, within a
    hunk of an agent's), in the place of `removed` lines of the base. Marks that touch share what
    they removed."""

    start: int
    end: int
    origin: int
    removed: int = 0


class Limits(Value):
    """Caps on one turn; 0 is no cap. At a cap the turn ends and hands back what was done. A turn
    that a child's result opens has what is left of requests, tokens and cost. The caps on a run
    hold for it and all that its children do in it, together."""

    requests: int = 25
    tokens: int = 0
    cost: float = 0
    """US dollars."""
    seconds: float = 0
    run_tokens: int = 0
    run_cost: float = 0
    """US dollars."""
    repeats: int = 5
    """So many times the same call with the same outcome (or the same short cycle) is a loop."""

    def within(self, other: "Limits | None") -> "Limits":
        """Returns the lower of each two caps."""
        if other is None:
            return self
        names = type(self).model_fields
        pairs = {name: (getattr(self, name), getattr(other, name)) for name in names}
        return Limits(**{name: min(filter(None, pair), default=0) for name, pair in pairs.items()})


class Section(Value):
    """A named text that enters the prompt, by content hash."""

    name: str
    hash: Hash


class Evidence(Value):
    """What `Recover` will need to find out whether an effect happened."""

    group: int | None = None
    """Process group of a command. Its processes carry `MAGY_CALL=<session>:<call>`."""
    deadline: float | None = None
    """When a wait gives up, seconds since the epoch."""
    reminded: tuple[str, ...] = ()
    """What a deliberation takes from CASPER's emotional log."""
    changes: tuple[FileChange, ...] = ()


# --- worktrees ------------------------------------------------------------------------------------

OnSuccess = Literal["auto_merge", "create_pr", "branch_only"]
OnFailure = Literal["keep", "cleanup"]
MAIN = "main"
"""The base branch where nobody names another. A repository without it has its checked-out branch in
this place."""


class WorktreeSettings(Value):
    """The worktrees of an agent's children, as its file has them under `worktree`."""

    enabled: bool = Field(
        False, description="Each task that the agent is given has a worktree and branch of its own."
    )
    on_success: OnSuccess = Field(
        "auto_merge",
        description="auto_merge: the branch is merged into the base branch, always with a merge "
        "commit. create_pr: it is pushed, and a pull request opened. branch_only: it stays.",
    )
    on_failure: OnFailure = Field(
        "keep",
        description="keep: worktree and branch stay. cleanup: both are removed, with what is in "
        "them.",
    )
    base_branch: str = Field(
        MAIN,
        description="Where the work begins, and where it goes. Without a branch `main`, that is "
        "the one that is checked out.",
    )
    worktree_dir: str = Field(
        ".worktrees",
        description="The directory for worktrees, below the workspace root. Git does not show it.",
    )


class Worktree(Value):
    """The worktree of one child. `path`: its directory, canonical. `branch` and `base` are local
    branches. `directory`: what `path` lies in."""

    path: str
    branch: str
    base: str
    directory: str
    on_success: OnSuccess = "auto_merge"
    on_failure: OnFailure = "keep"

    @property
    def ends(self) -> str:
        """Returns what becomes of the work, for a person who is asked about it."""
        ends = {
            "auto_merge": f"merged into {self.base}",
            "create_pr": f"pushed, with a pull request for {self.base}",
            "branch_only": "kept as a branch",
        }
        return f"a branch of its own from {self.base}, {ends[self.on_success]} when it is done"
