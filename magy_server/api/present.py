"""This module turns sessions, questions and options into values of the wire, and prompts back."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any

from magy_server.api.wire import sessions as wire
from magy_server.api.wire import shapes
from magy_server.core import updates
from magy_server.core.agents import tree
from magy_server.core.errors import InvalidRequest
from magy_server.core.ports import StreamInfo
from magy_server.core.values import Content, Embedded, Form, Hash, Link, Text
from magy_server.core.wire_values import cost, stamp
from magy_server.tools.files.pictures import picture

_ASKED = frozenset(
    ("interactionId", "kind", "toolCallId", "title", "rule", "remember", "covers", "agent", "form")
)
"""What a session's summary has of a question for the wire."""


def session_info(info: StreamInfo) -> wire.SessionInfo:
    about = info.summary
    session_id = info.id
    return wire.SessionInfo(
        session_id=session_id,
        parent_session_id=tree.parent(session_id),
        cwd=about.get("cwd", ""),
        root=info.root,
        title=about.get("title") or None,
        agent=about.get("options", {}).get("agent", ""),
        updated_at=stamp(info.updated),
        state=about.get("state", "idle"),
        turns=about.get("turns", 0),
        head_seq=info.head,
    )


def summary(
    infos: Sequence[StreamInfo],
    options: Sequence[wire.ConfigOption],
    asked: Sequence[wire.Interaction],
) -> wire.Summary:
    """`infos`: the session's own and those of all below it; `asked`: their open questions."""
    own, every = infos[0].summary, [info.summary for info in infos]
    kinds = sorted({kind for one in every for kind in one.get("usage", {})})
    costs = [one.get("cost", {}) for one in every]
    return wire.Summary(
        session=session_info(infos[0]),
        config_options=list(options),
        waiting=waiting(own.get("waiting", [])),
        interactions=list(asked),
        plan=own.get("plan", []),
        usage=own.get("usage", {}),
        cost=own.get("cost", {}),
        tree_usage={
            kind: sum(one.get("usage", {}).get(kind, 0) for one in every) for kind in kinds
        },
        tree_cost=cost(
            sum(one.get("amount", 0.0) for one in costs),
            sum(one.get("unpriced", 0) for one in costs),
        ),
        context=own.get("context", {}),
    )


def waiting(items: Sequence[Mapping[str, Any]]) -> list[wire.Waiting]:
    return [wire.Waiting.model_validate(item) for item in items]


def interaction(
    session_id: str,
    question: Mapping[str, Any],
    texts: Mapping[Hash, str],
    path: Sequence[wire.PathStep],
) -> wire.Interaction:
    """`question` as of a session's summary; `texts` has its preview; `path`: the sessions from the
    root of the tree to that one."""
    fields = {key: value for key, value in question.items() if key in _ASKED}
    form = question.get("form")
    about = (
        updates.asking(Form.model_validate(form))
        if form
        else {"content": updates.ahead(question.get("preview"), question.get("code", False), texts)}
    )
    return wire.Interaction.model_validate(fields | about | {
        "sessionId": session_id,
        "parentSessionId": tree.parent(session_id),
        "path": list(path),
        "createdAt": stamp(question["at"]),
    })  # fmt: skip


def config_options(
    options: Mapping[str, str], choices: Mapping[str, Sequence[str]]
) -> list[wire.ConfigOption]:
    return [
        wire.ConfigOption(
            config_id=id,
            name=id.capitalize(),
            current_value=options.get(id, ""),
            options=list(choices.get(id, ())),
        )
        for id in ("agent", "model", "review", "bypass")
    ]


def content(blocks: Sequence[shapes.Block]) -> tuple[list[Content], dict[Hash, bytes]]:
    """Returns the content of a prompt, and the pictures in it by hash. Raises InvalidRequest for an
    empty prompt, and for what is not a picture."""
    found: list[Content] = []
    blobs: dict[Hash, bytes] = {}
    for block in blocks:
        match block:
            case shapes.TextBlock():
                found.append(Text(text=block.text))
            case shapes.LinkBlock():
                found.append(Link(uri=block.uri, name=block.name))
            case shapes.ResourceBlock():
                found.append(Embedded(uri=block.resource.uri, text=block.resource.text))
            case shapes.ImageBlock():
                data = _decoded(block.data)
                image = picture(data, (block.uri or "").rpartition("/")[2])
                found.append(image)
                blobs[image.hash] = data
    if not any(not isinstance(block, Text) or block.text.strip() for block in found):
        raise InvalidRequest("The prompt is empty: write something, or mention a file.")
    return found, blobs


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError as error:
        raise InvalidRequest(f"The picture's data is not base64: {error}.") from None
