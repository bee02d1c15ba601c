"""These are the shapes of the forms that MCP servers have people fill in."""

from typing import Literal

from pydantic import Field

from magy_server.api.wire.shapes import Wire


class FormChoice(Wire):
    value: str
    name: str = Field(default="", description="What a person reads instead; empty: the value")


class FormField(Wire):
    name: str
    label: str = Field(description="Its name and its title, to be shown")
    hint: str = Field(description="What it takes, in words: `a whole number, 1 to 10`")
    type: Literal["string", "number", "integer", "boolean"]
    title: str = ""
    about: str = ""
    required: bool = False
    default: bool | int | float | str | list[str] | None = Field(
        default=None, description="What to begin with"
    )
    choices: list[FormChoice] = Field(default=[], description="If any: its value is one of these")
    many: bool = Field(default=False, description="Its value is a list of some of the choices")
    low: float | None = Field(
        default=None, description="The least number, characters of a text, or choices"
    )
    high: float | None = None
    format: Literal["", "email", "uri", "date", "date-time"] = ""


class Form(Wire):
    server: str = Field(description="The MCP server that asks")
    message: str
    fields: list[FormField] = Field(default=[])
    url: str = Field(
        default="",
        description="An address that the person is to open, if they want to; no client opens it",
    )
