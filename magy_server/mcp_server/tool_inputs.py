"""These models say what arguments the tools of `magy mcp serve` take. Names are as models expect
them."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from magy_server.api.wire.children import Action
from magy_server.api.wire.shapes import LARGEST_PROMPT, Id, Prose

LONGEST_WAIT = 3600
"""Seconds."""

Text = Annotated[Prose, Field(min_length=1, max_length=LARGEST_PROMPT)]
Wait = Annotated[
    float,
    Field(
        ge=0,
        le=LONGEST_WAIT,
        description="Seconds to wait for the answer. When they are over, nothing is cancelled: "
        "wait again",
    ),
]
Path = Annotated[str, Field(min_length=1, description="Relative to the project, or absolute")]


class Input(BaseModel):
    model_config = ConfigDict(extra="forbid", defer_build=True)


class Session(Input):
    session: Id


class StartSession(Input):
    prompt: Text
    agent: str = Field(default="", description='"": the configured default')
    model: str = Field(default="", description='`provider/model`; "": the agent\'s')
    directory: str = Field(
        default="", description='Where it works: a directory of the project; "": its top'
    )
    wait_seconds: Wait = 50


class PromptSession(Session):
    prompt: Text
    delivery: Literal["steer", "queue", "interrupt"] = Field(
        default="steer", description="What the prompt does to a turn that runs"
    )
    wait_seconds: Wait = 50


class WaitForSession(Session):
    wait_seconds: Wait = 50


class ListSessions(Input):
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    cursor: str | None = Field(default=None, description="`next_cursor` of the page before")


class ReadSession(Session):
    characters: Annotated[int, Field(ge=1, le=200_000)] = Field(
        default=20_000, description="So much of the transcript, from its end"
    )


class SpawnChild(Session):
    """`session` is the parent."""

    prompt: Text = Field(description="Its task")
    agent: str = Field(default="", description='"": the parent\'s')
    name: Annotated[Prose, Field(max_length=80)] = Field(
        default="", description="A name for the task, for people"
    )
    model: str = Field(default="", description='`provider/model`; "": the parent\'s')
    context: Literal["none", "all"] = Field(
        default="none", description="How much of the parent's conversation it sees"
    )
    permissions: dict[str, Action | dict[str, Action]] = Field(
        default={}, description="{key: action} or {key: {pattern: action}}; they only restrict"
    )
    worktree: bool = Field(default=False, description="It works on a git branch of its own")


class SendChild(Input):
    child: Id
    prompt: Text


class WaitForChildren(Input):
    session: Id | None = Field(default=None, description="The parent: any of its children")
    children: Annotated[list[Id], Field(min_length=1, max_length=256)] | None = None
    until: Literal["any", "all"] = "any"
    after: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="`seq` of the answer before: only newer results count"
    )
    wait_seconds: Wait = 50


class CloseChild(Input):
    child: Id
    mode: Literal["finish", "cancel"] = Field(
        default="finish", description="Whether it still does what it has begun"
    )


class ListReview(Input):
    session: Id | None = Field(default=None, description="Only what this session changed")


class GetReview(Input):
    path: Path
    proposed: bool = Field(default=False, description="What is only proposed, and not in the file")


class ResolveReview(GetReview):
    decision: Literal["accept", "reject"]
    hunks: Annotated[list[str], Field(min_length=1, max_length=1000)] | None = Field(
        default=None, description="Their ids, as review_get gives them; left out: all of the file"
    )
    reason: Annotated[Prose, Field(max_length=10_000)] = Field(
        default="", description="The agent that made the change reads it"
    )


class ApplyEdit(Input):
    """The edit is either `text` or `edits`."""

    text: Prose | None = Field(
        default=None, description="A unified diff, an apply_patch envelope, search/replace "
        "blocks, or the whole file"
    )  # fmt: skip
    edits: Annotated[list[dict[str, Any]], Field(max_length=1000)] | None = Field(
        default=None, description="Objects {path, old_text, new_text}, of the format str_replace"
    )
    format: str | None = Field(
        default=None,
        description="str_replace | aider | cline | roo | unified | v4a | whole; left out: found "
        "out",
    )
    path: Path | None = Field(default=None, description="The file, where the edit names none")
    seen: Prose | None = Field(
        default=None, description="The text that the edit was made for, if the file may have "
        "changed since"
    )  # fmt: skip
    check: bool = Field(default=False, description="Only tell what it would do")
