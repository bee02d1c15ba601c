"""These shapes carry what an editor shows and knows: context for a prompt, completion, the doctor,
and the questions that the server may ask an editor which announced that it answers them.

Magy does not trust what an editor says: unknown keys are ignored, long lists are cut, small slips
mended, an item that makes no sense is left out of its list and counted, and an answer of a wrong
shape becomes a sentence for the model."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from magy_server.api.wire.shapes import Block, Id, Place, Position, Prose, Span, Wire

MOST = 1_000
"""Diagnostics, locations, symbols and open files of one message that are looked at."""


def those(model: type[BaseModel], most: int = MOST) -> BeforeValidator:
    """Validates a list: keeps the first items and drops those that make no sense; null is empty."""

    def check(value: Any) -> Any:
        if type(value) is not list:
            return [] if value is None else value
        return [one for given in value[:most] if (one := _made(model, given)) is not None]

    return BeforeValidator(check)


def _made(model: type[BaseModel], given: Any) -> BaseModel | None:
    try:
        return model.model_validate(given)
    except ValidationError:
        return None


def unclear(given: Any, found: Sequence[Any]) -> int:
    """How many `those` left out."""
    return min(len(given), MOST) - len(found) if type(given) is list else 0


def _uris(value: Any) -> Any:
    if type(value) is not list:
        return [] if value is None else value
    return [one for one in value[:MOST] if type(one) is str and 0 < len(one) <= LONGEST_URI]


def _bounded(size: int) -> AfterValidator:
    return AfterValidator(lambda text: text if len(text) <= size else f"{text[:size]}…")


def _words(value: Any) -> Any:
    return value if type(value) is str else ""


def _severity(value: Any) -> Any:
    return int(value) if type(value) in (int, float) and value in (1, 2, 3, 4) else None


def _message(value: Any) -> Any:
    """It may be marked up, as the protocol's next version has it."""
    return value.get("value") if type(value) is dict else value


def _code(value: Any) -> Any:
    match value:
        case bool():
            return None
        case int() | str():
            return value
        case float():
            return str(value)
        case {"value": inner} if type(inner) is not dict:
            return _code(inner)
    return None


LONGEST_URI = 8000
Uri = Annotated[Prose, Field(min_length=1, max_length=LONGEST_URI)]
Line = Annotated[Prose, _bounded(500), BeforeValidator(_words)]
Short = Annotated[Prose, _bounded(200)]
Words = Annotated[Short, BeforeValidator(_words)]


class Loose(Wire):
    """An answer of an editor: fields that are not known here are ignored."""

    model_config = ConfigDict(extra="ignore")


class Diagnostic(Loose):
    """As the Language Server Protocol has it, and the file it belongs to."""

    uri: Annotated[Uri | None, BeforeValidator(lambda uri: _words(uri)[:LONGEST_URI] or None)] = (
        Field(default=None, description="In `magy/context/get`: the document of the request")
    )
    range: Span
    severity: Annotated[int | None, BeforeValidator(_severity)] = Field(
        default=None, description="1 error, 2 warning, 3 information, 4 hint; null: error"
    )
    message: Annotated[Prose, _bounded(2_000), BeforeValidator(_message)]
    source: Words | None = None
    code: Annotated[Short | int | None, BeforeValidator(_code)] = None


# --- context ------------------------------------------------------------------------------------


class ContextParams(Wire):
    uri: Uri
    position: Place
    selection: Span | None = None
    visible: Span | None = Field(default=None, description="The part of the text on the screen")
    diagnostics: Annotated[list[Diagnostic], those(Diagnostic)] = Field(default=[])
    open_uris: Annotated[list[Uri], BeforeValidator(_uris)] = Field(
        default=[], description="Other open files, the latest first"
    )
    _unclear: int = PrivateAttr(default=0)

    @property
    def unclear(self) -> int:
        """How many diagnostics were left out because they made no sense."""
        return self._unclear

    @model_validator(mode="wrap")
    @classmethod
    def _counted(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        made = handler(data)
        if type(data) is dict:
            made._unclear = unclear(data.get("diagnostics"), made.diagnostics)
        return made


class ContextItem(Wire):
    kind: Literal["selection", "definition", "point", "diagnostics", "visible", "open"]
    label: str = Field(description='For people: "app.py:10-24", "3 diagnostics"')
    default: bool = Field(description="Whether it is sent unless the person removes it")
    block: Block = Field(description="Content for `prompt` of magy/session/prompt, unchanged")


class ContextResult(Wire):
    items: list[ContextItem]


# --- completion ---------------------------------------------------------------------------------


class CompleteParams(Wire):
    cwd: str | None = Field(
        default=None,
        description="The directory whose project's files to offer; null: the first project",
    )
    session_id: Id | None = Field(
        default=None, description="The session whose project to use; overrides `cwd`"
    )
    before: Prose = Field(max_length=1_000_000, description="The prompt up to the cursor")


class Completion(Wire):
    label: str
    text: str = Field(description="The text that replaces `prefix`")
    kind: Literal["file", "directory", "symbol", "skill", "action", "agent", "command"] = Field(
        description="`command`: the client itself carries it out"
    )
    detail: str = ""


class CompleteResult(Wire):
    prefix: str = Field(description='The end of `before` that an item replaces; "": nothing')
    items: list[Completion] = Field(description="The best first, 50 at most")
    incomplete: bool = Field(
        default=False, description="There are more, or a later request replaced this one"
    )


# --- doctor -------------------------------------------------------------------------------------


class DoctorParams(Wire):
    cwd: str | None = Field(default=None, description="The project to examine")
    editor: dict[str, Any] | None = Field(
        default=None, description="What the client reports about itself; any shape"
    )


class DoctorCheck(Wire):
    name: str = Field(description="The topic, such as `models`")
    status: Literal["ok", "warn", "fail", "info"]
    summary: str
    detail: str = ""
    fix: str = Field(default="", description="What to do; empty if nothing is wrong")


class DoctorResult(Wire):
    checks: list[DoctorCheck]
    report: str = Field(
        description="The whole report as text for an issue, without keys and the name of the home "
        "directory"
    )


# --- what an editor knows -----------------------------------------------------------------------


class Limited(Loose):
    truncated: Annotated[bool, BeforeValidator(bool)] = Field(
        default=False, description="There are more"
    )


class DiagnosticsParams(Wire):
    uri: str | None = Field(description="One file; null: all open files")


class DiagnosticsAnswer(Limited):
    diagnostics: Annotated[list[Diagnostic], those(Diagnostic)]


class PlaceParams(Wire):
    uri: str
    position: Position
    name: str = Field(description="The word at that place")


class Location(Loose):
    uri: Uri
    range: Span
    text: Line = Field(default="", description="The line where it starts")


class LocationsAnswer(Limited):
    locations: Annotated[list[Location], those(Location)]


class SymbolsParams(Wire):
    uri: str | None = Field(description="The outline of one file; null: of the workspace")
    query: str = Field(description="Part of the name; empty: all of the file's")


class Symbol(Loose):
    name: Short
    kind: Words = Field(default="", description='A word such as "function", "class"')
    uri: Uri
    range: Span = Field(description="The range of the whole definition, or of its name")
    container: Words | None = None


class SymbolsAnswer(Limited):
    symbols: Annotated[list[Symbol], those(Symbol)]


Long = Annotated[Prose, _bounded(1_000_000), BeforeValidator(_words)]


class EvalParams(Wire):
    code: str = Field(description="Code in the language that the client announced: elisp")
    timeout_ms: int = Field(description="Milliseconds after which the client gives up and answers")


class EvalAnswer(Loose):
    value: Long = Field(default="", description="Printed")
    output: Long = Field(
        default="", description="What the code wrote to the echo area or standard output"
    )
    error: Annotated[Prose, _bounded(10_000)] | None = None
