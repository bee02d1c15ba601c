"""This module builds a model request from the state. Pure: a session replays exactly from its log.

The prefix (system text, tool schemas) comes from the first briefing and stays as it is while agent,
model and tools stay; a section that changes later is said in the conversation, where it happened,
so that what the provider has cached goes on being a prefix of every request. What was built up to
the last reply stays built.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

from magy_server.core.events import Briefed, Compacted, Entry, Finished, Prompted, Replied
from magy_server.core.ports import ModelRequest, ToolSchema
from magy_server.core.prompting.messages import Building, Built, Head, nothing
from magy_server.core.state.fold import apply
from magy_server.core.state.state import State
from magy_server.core.values import Hash, Image

NO_PICTURES: Mapping[Hash, bytes] = {}


def begun(state: State, built: Built | None) -> Built:
    """Returns what was built of the conversation before, if that is still its beginning."""
    prefix = state.conversation.prefix
    if prefix is None:
        raise ValueError(f"{state.stream}: a request needs a briefing first")
    return built if built and built.begins(state.conversation) else nothing(prefix)


def build(
    state: State, texts: Mapping[Hash, str], pictures: Mapping[Hash, bytes] = NO_PICTURES
) -> ModelRequest:
    """Returns the request that answers the log as it stands. `texts` has the blobs that `needed`
    names, `pictures` those that `pictured` does."""
    return build_on(begun(state, None), state, texts, pictures)[0]


def build_on(
    built: Built, state: State, texts: Mapping[Hash, str], pictures: Mapping[Hash, bytes]
) -> tuple[ModelRequest, Built]:
    """Returns the same request, made of what was built before, and what the next one can be made
    of."""
    briefing = state.conversation.briefing
    if briefing is None:
        raise ValueError(f"{state.stream}: a request needs a briefing first")
    head = built.head or _head(built.prefix, texts)
    built, messages = Building(replace(built, head=head), texts, pictures).all(
        state.conversation.items
    )
    request = ModelRequest(
        id=str(state.seq),
        session=state.stream,
        model=briefing.model,
        system=head.system,
        tools=head.tools,
        messages=messages,
        max_tokens=briefing.max_tokens,
        thinking_tokens=briefing.thinking_tokens,
        temperature=briefing.temperature,
        so_far=built.so_far,
    )
    return request, built


def _head(prefix: Briefed, texts: Mapping[Hash, str]) -> Head:
    system = tuple(texts[section.hash] for section in prefix.sections)
    return Head(system, tuple(schema(texts[section.hash]) for section in prefix.shown))


def needed(built: Built, state: State) -> set[Hash]:
    """Returns the texts that `build_on` will look up."""
    items = state.conversation.items[len(built.items) :]
    briefings = [item for item in items if isinstance(item, Briefed)]
    if built.head is None:
        briefings.append(built.prefix)
    summaries = {i.summary for i in items if isinstance(i, Compacted) and i.summary}
    return summaries | {section.hash for b in briefings for section in b.sections + b.shown}


def pictured(built: Built, state: State) -> set[Hash]:
    """Returns the pictures that `build_on` will look up."""
    found: set[Hash] = set()
    for item in state.conversation.items[len(built.items) :]:
        if isinstance(item, Finished):
            found.update(image.hash for image in item.images)
        elif isinstance(item, Prompted):
            found.update(part.hash for part in item.content if isinstance(part, Image))
    return found


def requests(
    entries: Iterable[Entry],
    start: State,
    texts: Mapping[Hash, str],
    pictures: Mapping[Hash, bytes] = NO_PICTURES,
) -> Iterator[tuple[ModelRequest, Replied]]:
    """Returns every request that got a reply, exactly as it was sent, with that reply (G025)."""
    asked: dict[str, State] = {}
    state = start
    for entry in entries:
        if isinstance(entry.event, Replied) and entry.event.model:
            yield build(asked[entry.event.request], texts, pictures), entry.event
            asked.clear()
        state = apply(state, entry)
        asked[str(state.seq)] = state


@lru_cache(maxsize=512)
def schema(text: str) -> ToolSchema:
    """Returns the tool's schema as a briefing holds it."""
    body = json.loads(text)
    return ToolSchema(body["name"], body["description"], body["parameters"])
