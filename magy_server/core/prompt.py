"""State -> what the model sees. Pure, so a session replays exactly from its log.

The prefix (system text, tool schemas) comes from the first briefing and stays as it is while agent,
model and tools stay; a section that changes later is said in the conversation, where it happened,
so that what the provider has cached goes on being a prefix of every request.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from magy_server.core.events import (
    Briefed,
    Call,
    Content,
    Embedded,
    Entry,
    Finished,
    Hash,
    Link,
    Part,
    Prompted,
    Replied,
    Text,
)
from magy_server.core.ports import Message, ModelRequest, ToolOutput, ToolSchema
from magy_server.core.state import Item, State, apply

MISSING = "(no result: the session was interrupted before this call ran)"


def build(state: State, texts: Mapping[Hash, str]) -> ModelRequest:
    """The request that answers the log as it stands. `texts` has the blobs the briefings name."""
    prefix, briefing = state.prefix, state.briefing
    if prefix is None or briefing is None:
        raise ValueError(f"{state.stream}: a request needs a briefing first")
    return ModelRequest(
        id=str(state.seq),
        session=state.stream,
        model=briefing.model,
        system=tuple(texts[section.hash] for section in prefix.sections),
        tools=tuple(_schema(texts[section.hash]) for section in prefix.tools),
        messages=tuple(_messages(state.conversation, prefix, texts)),
        max_tokens=briefing.max_tokens,
        thinking_tokens=briefing.thinking_tokens,
        temperature=briefing.temperature,
    )


def needed(state: State) -> set[Hash]:
    """The blobs `build` will look up."""
    briefings = [item for item in state.conversation if isinstance(item, Briefed)]
    if state.prefix:
        briefings.append(state.prefix)
    return {section.hash for b in briefings for section in b.sections + b.tools}


def requests(
    entries: Iterable[Entry], start: State, texts: Mapping[Hash, str]
) -> Iterator[tuple[ModelRequest, Replied]]:
    """Every request that got a reply, exactly as it was sent, with that reply (G025)."""
    asked: dict[str, State] = {}
    state = start
    for entry in entries:
        if isinstance(entry.event, Replied):
            yield build(asked[entry.event.request], texts), entry.event
            asked.clear()
        state = apply(state, entry)
        asked[str(state.seq)] = state


def _schema(text: str) -> ToolSchema:
    body = json.loads(text)
    return ToolSchema(body["name"], body["description"], body["parameters"])


def _messages(
    conversation: Sequence[Item], prefix: Briefed, texts: Mapping[Hash, str]
) -> Iterator[Message]:
    user: list[Text | ToolOutput] = []
    pending: list[Call] = []
    outputs: dict[str, ToolOutput] = {}
    told = {section.name: section.hash for section in prefix.sections}
    for item in conversation:
        match item:
            case Replied():
                user = [*_results(pending, outputs), *user]
                if user:
                    yield Message("user", tuple(user))
                user, outputs = [], {}
                pending = [part for part in item.content if isinstance(part, Call)]
                if parts := _spoken(item.content):
                    yield Message("assistant", parts)
            case Finished():
                outputs[item.call] = _output(pending, item)
            case Prompted():
                user.extend(Text(text=text) for text in map(_said, item.content) if text)
            case Briefed() if _continues(prefix, item):
                user.extend(_news(item, told, texts))
    user = [*_results(pending, outputs), *user]
    if user:
        yield Message("user", tuple(user))


def _continues(prefix: Briefed, later: Briefed) -> bool:
    """False for a briefing of another agent or model: what it said does not hold any more."""
    return (prefix.agent, prefix.model, prefix.tools) == (later.agent, later.model, later.tools)


def _spoken(content: Sequence[Part]) -> tuple[Part, ...]:
    return tuple(part for part in content if not (isinstance(part, Text) and not part.text.strip()))


def _results(calls: Sequence[Call], outputs: Mapping[str, ToolOutput]) -> list[ToolOutput]:
    """One output for each call, in the order of the calls: providers insist on both."""
    return [
        outputs.get(call.id) or ToolOutput(call.id, call.provider_id, MISSING, error=True)
        for call in calls
    ]


def _output(calls: Sequence[Call], finished: Finished) -> ToolOutput:
    provider_id = next((c.provider_id for c in calls if c.id == finished.call), "")
    text = finished.for_model or "(no output)"
    return ToolOutput(finished.call, provider_id, text, error=finished.status != "completed")


def _said(content: Content) -> str:
    match content:
        case Text():
            return content.text
        case Link():
            return f"[The user mentions the file {content.name} ({content.uri})]"
        case Embedded():
            return f"<context from={json.dumps(content.uri)}>\n{content.text}\n</context>"


def _news(briefed: Briefed, told: dict[str, Hash], texts: Mapping[Hash, str]) -> Iterator[Text]:
    """The sections that changed since they were last told."""
    for section in briefed.sections:
        if told.get(section.name) != section.hash:
            told[section.name] = section.hash
            name = json.dumps(section.name)
            yield Text(text=f"<updated section={name}>\n{texts[section.hash]}\n</updated>")
