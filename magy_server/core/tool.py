"""Tools are typed async functions: the signature gives the JSON schema, the docstring gives the
words.

    @tool(effect="read", facts=path_facts)
    async def read_file(ctx: ToolContext, path: Annotated[str, "The file"]) -> Result:
        \"\"\"Read a text file. ...\"\"\"

A tool raises `ToolError("for the model")` and never asks permission: its `facts` function says what
it would touch, `core/permit.py` decides. It awaits `ctx.started(evidence)` right before its effect.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from types import MappingProxyType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    Protocol,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import ConfigDict, Field, ValidationError, create_model

from magy_server.core.agents.child import ChildInfo, Spawn, Waited
from magy_server.core.agents.mail import Status
from magy_server.core.errors import ToolError
from magy_server.core.events import Answered, Event
from magy_server.core.graphs.graph import GraphTask
from magy_server.core.graphs.progress import GraphProgress
from magy_server.core.knowledge import Knowledge
from magy_server.core.ports import Editor, ToolSchema
from magy_server.core.values import (
    Action,
    Effect,
    Evidence,
    Facts,
    FileChange,
    Form,
    Hash,
    Image,
    Latest,
    Seen,
    digest,
)
from magy_server.dataclass import dataclass

if TYPE_CHECKING:
    from magy_server.core.magi.case import Case, Review
    from magy_server.core.magi.deliberation import Deliberation
    from magy_server.core.magi.emotional_log import Memories
    from magy_server.core.magi.panel import Panel


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool did. `for_model` should be bounded by the tool; the whole goes into `output`.
    `ok` False: it did what it was asked, and that failed (a command's exit code, say)."""

    for_model: str
    for_user: str = ""
    diff: str = ""
    output: bytes | None = None
    changes: Sequence[FileChange] = ()
    blobs: Mapping[Hash, bytes] = field(default_factory=dict)
    seen: Sequence[Seen] = ()
    """Whole texts of files, of which `for_model` shows something; their bytes are in `blobs`."""
    images: Sequence[Image] = ()
    """Pictures for the model; their bytes are in `blobs`."""
    background: int | None = None
    events: Sequence[Event] = ()
    """Appended together with `Finished`."""
    ok: bool = True
    graph: str = ""
    deliberation: str = ""
    """How that is which it ran, as JSON for clients."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a file is proposed to be; `data` None: that it goes. `sessions`: who proposes it."""

    data: bytes | None
    sessions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Selection:
    """What the person wants rewritten: characters [start, end) of the plain text of `seen`, which
    is what the file (canonical path) held when they asked."""

    path: str
    start: int
    end: int
    seen: bytes


Delivery = Literal["queue", "steer", "interrupt"]


class Team(Protocol):
    """The agents that this session's own may deal with: those below it, and its parent. `job` is a
    session id, or the last part of one if no other below ends in it. Whatever cannot be done raises
    ToolError."""

    timeout: float
    """Seconds that a wait lasts if nobody says how long."""
    keys: Collection[str]
    """The permission keys of the tools that there are."""

    def now(self) -> float:
        """Seconds since the epoch."""

    async def spawn(self, wanted: Spawn) -> tuple[ChildInfo, bool]:
        """Returns the child, and whether it was there already."""

    async def spawned(self, key: str) -> ChildInfo | None: ...

    async def check(self, agent: str, model: str, directory: str, plugin: str = "", /) -> str:
        """Returns the absolute path of the directory, if such a child can be spawned."""

    def plugins(self) -> Mapping[str, str]:
        """Returns the plugins that a child may have, and what each is for."""

    def offered(self) -> Mapping[str, str]:
        """Returns the agents that may be spawned, and what each is for."""

    async def worktree(self, agent: str, *, wanted: bool) -> str:
        """Returns what a person is told of the git worktree that such a child would have; "": it
        works where its parent does."""

    async def best(self, capability: str) -> str:
        """Returns the agent that may be spawned and is best at something, as far as is known."""

    async def rate(self, job: str, capability: str, score: float, reason: str) -> str:
        """Rates the work of an agent that is below the session, or whose result it was given; 0 bad
        to 1 good. Returns which agent that is."""

    async def named(self, job: str) -> ChildInfo: ...

    async def list(self, *, closed: bool) -> Sequence[ChildInfo]:
        """Returns all agents below, each after its parent."""

    async def close(
        self, job: str, mode: Literal["finish", "cancel"], reason: str
    ) -> tuple[Status, Sequence[str]]:
        """How it was before, and the ids of what is closed now and was not: it, and all below."""

    async def addressee(self, job: str) -> tuple[str, str]:
        """Returns session id and agent of whom a message may go to; "parent" is the parent."""

    async def send(self, to: str, text: str, delivery: Delivery, key: str) -> str:
        """Sends a message, and returns started | steered | queued | known. The same `key` again is
        the same message."""

    async def wait(self, jobs: Sequence[str], until: Literal["any", "all"], deadline: float
                   ) -> Waited:  # fmt: skip
        """Waits for these session ids, until `deadline` (seconds since the epoch)."""

    async def began_graph(self, call: str) -> Mapping[str, Any]:
        """Returns the arguments of the call with which the graph began that `call` ran."""

    async def run_graph(
        self, call: str, tasks: Sequence[GraphTask], moved: Callable[[GraphProgress], None]
    ) -> GraphProgress:
        """Has these tasks, which are in order, done by agents below the session's own; `call`: the
        call that does so, be it the one that began them or not. `moved` is called with how it is,
        each time that changes. Returns when all is settled, nothing more can begin, or somebody has
        something to say to the session."""

    async def panel(self, case: Case) -> Panel:
        """Returns the models that would judge this case, and what that may cost. A session whose
        own model is a small one cannot lead."""

    async def may_review(self, review: Review) -> None:
        """Raises ToolError for a review that may not begin."""

    async def memories(self, case: Case, call: str = "") -> Memories:
        """Returns what this case has of CASPER's emotional log. `call`: what began it; what that
        was told once, it is told again."""

    async def deliberate(
        self, call: str, case: Case, memories: Memories, moved: Callable[[Deliberation], None]
    ) -> Deliberation:
        """Has the case judged by three agents below the session's own; `call` began that. `moved`
        is called with how it is, each time that changes."""

    async def remember(self, done: Deliberation, memories: Memories) -> Sequence[str]:
        """Adds to CASPER's emotional log what CASPER wants kept, if the person has it on. Returns
        what people are to be told of the log, sentences."""

    async def awaited(self) -> Sequence[str]:
        """Returns its own children that are not closed, or of whom something is still to come."""


class FactContext(Protocol):
    """What a `facts` function may use: it looks, it changes nothing. `root` is the workspace root
    (canonical absolute path)."""

    session: str
    root: str
    editor: Editor
    review: str
    """review | propose | auto: in `propose` files are not changed, changes are only proposed."""

    @property
    def cwd(self) -> str:
        """Returns the directory where commands begin (canonical absolute path). Raises ToolError if
        it is gone."""

    @property
    def plugin(self) -> str:
        """Returns the only plugin of which the session has anything; "": it has all."""

    @property
    def team(self) -> Team: ...

    async def seen(self, path: str) -> bytes | None:
        """The file (canonical absolute path) as the model knows it, from reading or writing it."""

    async def selection(self) -> Selection | None:
        """Returns the selection of the latest prompt that has one."""

    async def proposal(self, path: str) -> Proposal | None:
        """None: this session proposes nothing for this file."""


class ToolContext(FactContext, Protocol):
    """What a running tool may use besides."""

    call: str
    facts: Facts
    given: bool
    """The person made the call themself: no model will tell what came of it."""

    async def proposer(self, path: str) -> str:
        """Another session that proposes something for this file; "": none does."""

    def may_read(self, path: str, within: str = "") -> Action:
        """What the rules say to reading this file (canonical absolute path): for tools that look
        into files which their arguments do not name. What is not `allow` is left out, and said.
        `within`: the folder that it lies in, if that is not the workspace."""

    def may_open(self, url: str) -> Action:
        """What the rules say to opening this page in a browser: for a page that goes on to another
        by itself. Nobody can be asked then."""

    def emit(self, text: str) -> None:
        """Shows output so far to the person watching; the client may drop it."""

    def show(self, what: Latest, latest: str) -> None:
        """Shows how that is by now which the call runs, as JSON on one line."""

    async def ask(self, form: Form) -> Answered | None:
        """Has the person asked, and waits for the answer. None: the call was over before it."""

    async def changing(self, paths: Collection[str]) -> None:
        """Until the end of the call is in the log, nobody decides about these files (canonical
        absolute paths), nor changes them for the person: what is in them by then has an owner."""

    async def started(
        self, evidence: Evidence = ..., blobs: Mapping[Hash, bytes] | None = None
    ) -> None:
        """Commits `Started`. Await it right before the effect."""

    async def blob(self, hash: Hash) -> bytes: ...

    async def seldom(self) -> Sequence[ToolSchema]:
        """Returns the tools that the session has and the model is not shown."""

    async def output_of(self, call: str) -> bytes | None:
        """Returns the stored whole output of an earlier call of this session."""

    async def exited(self, call: str, code: int | None, output: bytes) -> None:
        """Reports the end of a background command, even after the call itself finished."""


PLUGIN = "plugin_"
"""The permission key of a plugin's tools begins so, and its name follows."""
EditStyle = Literal["", "str_replace", "patch"]
Gathered = tuple[Facts, Mapping[Hash, bytes]]
"""Facts, and the blobs that they name."""
FactsFunction = Callable[..., Awaitable[Gathered]]
"""async (ctx: FactContext, **arguments). Raises ToolError: why the call cannot run at all."""
RecoverFunction = Callable[[ToolContext, Evidence, Mapping[str, Any]], Awaitable["Result | None"]]
"""async (ctx, evidence, arguments) -> the result if the effect can be proved done; None when it is
proved not done (the call runs again). Raises ToolError when it cannot be known."""


@dataclass(frozen=True, slots=True)
class Tool:
    """`key` is the permission key its rules are found under. `fresh` is how long, in seconds, a
    result may be given again for the same call while nothing is known to have changed; 0: never.
    `style`: it edits in this style, and only one such tool is offered: what the model does best.
    `needs`: what the editor must have announced (`knowledge.Knowledge`) for it to be offered.
    `final`: once it has run, the turn is over; only agents that list it have it.
    `waits`: while it runs nothing is worked at, so that others may go on in its place.
    `parental`: it is for agents that may have children.
    `seldom`: it is not shown to the model, which can find it, unless the agent lists its tools.
    """

    name: str
    description: str
    effect: Effect
    key: str
    kind: str
    """ACP tool kind: read, edit, execute, think, ..."""
    run: Callable[..., Awaitable[Result]]
    facts: FactsFunction
    recover: RecoverFunction | None
    fresh: float
    style: EditStyle
    needs: Knowledge | None
    final: bool
    waits: bool
    parental: bool
    seldom: bool
    shape: Shape

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Returns the JSON Schema of its parameters."""
        return self.shape.schema

    @property
    def schema(self) -> ToolSchema:
        return ToolSchema(self.name, self.description, self.parameters)

    def arguments(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Checks and converts the model's arguments. Raises ToolError that says what to mend."""
        try:
            return self.shape.arguments(raw)
        except ValidationError as error:
            from magy_server.core.prompting.parameters import wrong

            raise ToolError(f"{self.name}: {wrong(error, self.parameters)}") from None


async def no_facts(ctx: FactContext, **arguments: Any) -> Gathered:
    return Facts(), {}


def previewed(facts: Facts, text: str, *, code: bool = False) -> Gathered:
    """Returns the facts with a preview, if `text` has any: a diff, or `code`, which a person sees
    before they answer."""
    if not text:
        return facts, {}
    data = text.encode("utf-8", "replace")
    hash = digest(data)
    return facts.model_copy(update={"preview": hash, "code": code}), {hash: data}


async def run_again(
    ctx: ToolContext, evidence: Evidence, arguments: Mapping[str, Any]
) -> Result | None:
    """Recovers a call that does no harm when it is made twice."""
    return None


def tool(
    *,
    effect: Effect,
    key: str,
    kind: str = "other",
    facts: FactsFunction = no_facts,
    recover: RecoverFunction | None = None,
    fresh: float = 0.0,
    style: EditStyle = "",
    needs: Knowledge | None = None,
    final: bool = False,
    waits: bool = False,
    parental: bool = False,
    seldom: bool = False,
    schemas: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> Callable[[Callable[..., Awaitable[Result]]], Tool]:
    """Makes a Tool of a typed async function whose first parameter is the context. `schemas`: those
    that are known already, by the function's name."""

    def make(function: Callable[..., Awaitable[Result]]) -> Tool:
        return Tool(
            name=function.__name__,
            description=inspect.cleandoc(function.__doc__ or ""),
            effect=effect,
            key=key,
            kind=kind,
            run=function,
            facts=facts,
            recover=recover,
            fresh=fresh,
            style=style,
            needs=needs,
            final=final,
            waits=waits,
            parental=parental,
            seldom=seldom,
            shape=_shape_of(function, schemas.get(function.__name__)),
        )

    return make


class Shape(Protocol):
    """The parameters of a tool."""

    @property
    def schema(self) -> Mapping[str, Any]:
        """Returns the JSON Schema that models are shown."""

    def arguments(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Returns what the tool's functions are called with. Raises ValidationError."""


class GivenShape:
    """Parameters that somebody else has described, and will check: the functions get all of them as
    one mapping, `given`."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = schema

    def arguments(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        return {"given": dict(raw)}


class FunctionShape:
    """What the parameters of a tool function are; each form is made when it is first asked for."""

    def __init__(self, function: Callable[..., Any], schema: Mapping[str, Any] | None) -> None:
        self._function = function
        self._known = schema

    def arguments(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        model = self.model.model_validate(raw)
        return {name: getattr(model, name) for name in type(model).model_fields}

    @cached_property
    def model(self) -> type[Any]:
        """A pydantic model that checks and converts arguments."""
        return _arguments(self._function)

    @cached_property
    def schema(self) -> Mapping[str, Any]:
        """The JSON Schema that models are shown."""
        return self.worked_out() if self._known is None else self._known

    def worked_out(self) -> Mapping[str, Any]:
        """Returns that schema, made of the function itself."""
        from magy_server.core.prompting.parameters import schema_of  # shipped tools know theirs

        return schema_of(self.model)


def _shape_of(function: Callable[..., Any], schema: Mapping[str, Any] | None) -> FunctionShape:
    """Another server's tools are the same functions with other settings: they share shapes."""
    hints, defaults = function.__annotations__, (function.__defaults__, function.__kwdefaults__)
    key = (function.__module__, function.__code__, repr(hints), repr(defaults))
    if key not in _shapes:
        _shapes[key] = FunctionShape(function, schema)
    return _shapes[key]


_shapes: dict[tuple[object, ...], FunctionShape] = {}


def _arguments(function: Callable[..., Any]) -> type[Any]:
    """The pydantic model of a tool function's parameters, the context left out."""
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    for name, parameter in list(inspect.signature(function).parameters.items())[1:]:
        hint = hints[name]
        default = ... if parameter.default is parameter.empty else parameter.default
        described = next(
            (arg for arg in get_args(hint)[1:] if isinstance(arg, str)), None
        ) if get_origin(hint) is Annotated else None  # fmt: skip
        fields[name] = (hint, Field(default=default, description=described))
    config = ConfigDict(extra="forbid")
    model: type[Any] = create_model(function.__name__, __config__=config, **fields)
    return model
