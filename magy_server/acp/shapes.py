"""The messages of the Agent Client Protocol are made of these. Clients are newer and older than
Magy: what it does not know is ignored, and what the protocol lets go wrong counts as left out."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic.alias_generators import to_camel

from magy_server.api.wire.refusals import sentences
from magy_server.core.errors import InvalidRequest

T = TypeVar("T")
S = TypeVar("S", bound="Sent")


def _name(name: str) -> str:
    return "_meta" if name == "meta" else to_camel(name)


class Sent(BaseModel):
    """What a client sends."""

    model_config = ConfigDict(
        alias_generator=_name, populate_by_name=True, extra="ignore", defer_build=True
    )


def _or_nothing(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    try:
        return read(value)
    except ValidationError:
        return None


Lax = Annotated[T, WrapValidator(_or_nothing), Field()]
"""A field that may be wrong."""


def read(model: type[S], params: dict[str, Any], method: str) -> S:
    """Returns the parameters. Raises InvalidRequest that says which one is wrong."""
    try:
        return model.model_validate(params, strict=True)
    except ValidationError as error:
        raise InvalidRequest(f"{method}: {sentences(error, params)}.") from None
