"""Values of the engine as values of the wire."""

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
from magy_server.core.values import Content, Embedded, Hash, Link, Text
from magy_server.core.wire_values import stamp
from magy_server.tools.files.pictures import picture

_ASKED = frozenset(
    ("interactionId", "kind", "toolCallId", "title", "rule", "remember", "covers", "agent")
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


def summary(info: StreamInfo, choices: Mapping[str, Sequence[str]]) -> wire.Summary:
    about = info.summary
    return wire.Summary(
        session=session_info(info),
        config_options=config_options(about.get("options", {}), choices),
        waiting=waiting(about.get("waiting", [])),
        plan=about.get("plan", []),
        usage=about.get("usage", {}),
        cost=about.get("cost", {}),
        context=about.get("context", {}),
    )


def waiting(items: Sequence[Mapping[str, Any]]) -> list[wire.Waiting]:
    return [wire.Waiting.model_validate(item) for item in items]


def interaction(
    session_id: str, question: Mapping[str, Any], texts: Mapping[Hash, str]
) -> wire.Interaction:
    """`question` as of a session's summary; `texts` has its preview."""
    content = updates.ahead(question.get("preview"), question.get("code", False), texts)
    fields = {key: value for key, value in question.items() if key in _ASKED}
    about = {"sessionId": session_id, "createdAt": stamp(question["at"]), "content": content}
    return wire.Interaction.model_validate(fields | about)


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
    """And the pictures in it. Raises InvalidRequest when there is nothing to say, or a picture is
    none."""
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
