"""All shapes of the wire are made of these: the base class, ids, and content."""

import math
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from magy_server.api.wire.refusals import NAME, sentences
from magy_server.core.errors import InvalidRequest
from magy_server.core.text.surrogates import whole

Prose = Annotated[str, AfterValidator(whole)]


class Wire(BaseModel):
    """`_meta` may stand anywhere and is ignored; other unknown keys are errors."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", defer_build=True
    )


P = TypeVar("P", bound=Wire)


def parsed(model: type[P], params: dict[str, Any], method: str) -> P:
    """Returns the parameters, checked strictly: `true` is not a number. Raises InvalidRequest that
    says which parameter is wrong."""
    given = {key: value for key, value in params.items() if key != "_meta"}
    try:
        return model.model_validate(given, strict=True)
    except ValidationError as error:
        wrong = sentences(error, given)
        raise InvalidRequest(f"{method}: {wrong}. See docs/protocol.md.") from None


LONGEST_ID = 400
Id = Annotated[str, Field(min_length=1, max_length=LONGEST_ID, pattern=NAME)]


def _no_child(id: str) -> str:
    if "/" in id:
        raise ValueError("a `/` is for children (magy/child/spawn); leave it out")
    return id


RootId = Annotated[
    str, Field(min_length=1, max_length=200, pattern=NAME), AfterValidator(_no_child)
]


RequestKey = Annotated[
    Id, Field(description="Made by the client; sending the same key again has no effect")
]
Uri = Annotated[str, Field(min_length=1, max_length=8000)]
Count = Annotated[int, Field(ge=0)]


class SessionParams(Wire):
    session_id: Id


class Empty(Wire):
    pass


class Position(Wire):
    line: Count
    character: Count


class Range(Wire):
    start: Position
    end: Position


FARTHEST = 2**31 - 1
"""The largest line or column that the Language Server Protocol allows."""


def _number(value: Any) -> Any:
    if type(value) not in (int, float) or not math.isfinite(value):
        return value
    return int(max(0, min(value, FARTHEST)))


def _place(value: Any) -> Any:
    """The place, or the nearest one that a text can have."""
    if type(value) is not dict:
        return value
    return {key: _number(value.get(key)) for key in ("line", "character")}


def _span(value: Any) -> Any:
    if type(value) is not dict:
        return value
    return {key: _place(value.get(key)) for key in ("start", "end")}


Place = Annotated[Position, BeforeValidator(_place)]
Span = Annotated[Range, BeforeValidator(_span)]


# --- content ------------------------------------------------------------------------------------


class TextBlock(Wire):
    type: Literal["text"]
    text: Prose


class LinkBlock(Wire):
    type: Literal["resource_link"]
    uri: Prose
    name: Prose


class TextResource(Wire):
    uri: Prose
    text: Prose


class ResourceBlock(Wire):
    type: Literal["resource"]
    resource: TextResource


class ImageBlock(Wire):
    type: Literal["image"]
    mime_type: str = ""
    data: str = Field(description="Base64 of a PNG, JPEG, GIF or WebP picture, 3.75 MB at most")
    uri: Prose | None = Field(default=None, description="Its origin, for people")


Block = Annotated[TextBlock | LinkBlock | ResourceBlock | ImageBlock, Field(discriminator="type")]

LARGEST_PROMPT = 10 * 2**20


def _bounded(blocks: list[Block]) -> list[Block]:
    size = sum(map(_size, blocks))
    if size > LARGEST_PROMPT:
        raise ValueError(
            f"it has {size / 2**20:.1f} MB, and a prompt may have at most {LARGEST_PROMPT >> 20}; "
            "name the place where the agent can read the rest"
        )
    return blocks


def _size(block: Block) -> int:
    match block:
        case TextBlock(text=text):
            return len(text.encode())
        case LinkBlock(uri=uri, name=name):
            return len(uri.encode()) + len(name.encode())
        case ResourceBlock(resource=resource):
            return len(resource.uri.encode()) + len(resource.text.encode())
        case ImageBlock(data=data):
            return len(data)


Prompt = Annotated[
    list[Block],
    Field(min_length=1, description=f"{LARGEST_PROMPT >> 20} MB in all at most"),
    AfterValidator(_bounded),
]
