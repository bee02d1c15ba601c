"""This module writes a question of Magy's in the shape of `session/request_permission`;
`questions.py` asks it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

from magy_server.acp.content import locations, of_call
from magy_server.acp.options import Json
from magy_server.core.agents import tree

if TYPE_CHECKING:
    from magy_server.api.wire import sessions as wire

Asking = Callable[[str, "wire.Interaction"], Json]
"""(workspace root, question) -> the parameters of the request."""
ONCE, PROJECT, SESSION, REFUSE = "allow_once", "allow", "allow_always", "reject_once"
"""The ids of what can be chosen. Some editors do not go by the kind: avante takes every other id
for a refusal, and where two are of one kind, CodeCompanion and avante give the last, which here is
the narrower one."""
SCOPES: Mapping[str, Literal["once", "session", "project"]] = {
    ONCE: "once", PROJECT: "project", SESSION: "session", REFUSE: "once",
}  # fmt: skip
"""By option, how long an answer holds."""


def asking(root: str, question: wire.Interaction) -> Json:
    """The parameters of the request in version 1."""
    content = of_call(question.content, root)
    call = {**call_of(question), "content": content, **locations(content)}
    return {**common(question), "toolCall": call}


def common(question: wire.Interaction) -> Json:
    """What both versions ask alike."""
    return {
        "sessionId": tree.root(question.session_id),
        "options": _choices(question),
        "_meta": {"magy": {"interactionId": question.interaction_id, "rule": question.rule}},
    }


def call_of(question: wire.Interaction) -> Json:
    """The call that is asked about: that of a child is none of the session's own."""
    child = question.session_id != tree.root(question.session_id)
    asker = ""
    if child:
        from magy_server.api.children.open_questions import who

        asker = f"{who(question.path)}: "
    call = question.interaction_id if child else question.tool_call_id
    return {
        "toolCallId": call,
        "title": f"{asker}{question.title}",
        "status": "pending",
        "content": question.content,
    }


def _choices(question: wire.Interaction) -> list[Json]:
    name = "Agree" if question.form else "Allow once"
    found = [{"optionId": ONCE, "name": name, "kind": "allow_once"}]
    if covers := ", ".join(question.covers):
        found += [
            {"optionId": PROJECT, "name": f"Allow {covers} in this project",
             "kind": "allow_always"},
            {"optionId": SESSION, "name": f"Allow {covers} in this session",
             "kind": "allow_always"},
        ]  # fmt: skip
    return [*found, {"optionId": REFUSE, "name": "Refuse", "kind": "reject_once"}]
