"""This module builds a model request from the state. Pure: a session replays exactly from its log.

The prefix (system text, tool schemas) comes from the first briefing and stays as it is while agent,
model and tools stay; a section that changes later is said in the conversation, where it happened,
so that what the provider has cached goes on being a prefix of every request.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from magy_server.core.agents.mail import Mailed
from magy_server.core.events import Briefed, Compacted, Entry, Finished, Prompted, Replied
from magy_server.core.ports import Message, ModelRequest, Picture, ToolOutput, ToolSchema
from magy_server.core.prompting.framing import framed, named, result
from magy_server.core.reviews.review_events import Noted
from magy_server.core.state.conversation import Item
from magy_server.core.state.fold import apply
from magy_server.core.state.state import State
from magy_server.core.values import Call, Content, Embedded, Hash, Image, Link, Part, Text, Thinking

MISSING = "(no result: the session was interrupted before this call ran)"


GONE = "(a picture that cannot be shown any more)"
NO_PICTURES: Mapping[Hash, bytes] = {}


def build(
    state: State, texts: Mapping[Hash, str], pictures: Mapping[Hash, bytes] = NO_PICTURES
) -> ModelRequest:
    """Returns the request that answers the log as it stands. `texts` has the blobs that `needed`
    names, `pictures` those that `pictured` does."""
    prefix, briefing = state.conversation.prefix, state.conversation.briefing
    if prefix is None or briefing is None:
        raise ValueError(f"{state.stream}: a request needs a briefing first")
    return ModelRequest(
        id=str(state.seq),
        session=state.stream,
        model=briefing.model,
        system=tuple(texts[section.hash] for section in prefix.sections),
        tools=tuple(_schema(texts[section.hash]) for section in prefix.tools),
        messages=tuple(_Conversation(prefix, texts, pictures).messages(state.conversation.items)),
        max_tokens=briefing.max_tokens,
        thinking_tokens=briefing.thinking_tokens,
        temperature=briefing.temperature,
    )


def needed(state: State) -> set[Hash]:
    """Returns the texts that `build` will look up."""
    briefings = [item for item in state.conversation.items if isinstance(item, Briefed)]
    if state.conversation.prefix:
        briefings.append(state.conversation.prefix)
    items = state.conversation.items
    summaries = {i.summary for i in items if isinstance(i, Compacted) and i.summary}
    return summaries | {section.hash for b in briefings for section in b.sections + b.tools}


def pictured(state: State) -> set[Hash]:
    """Returns the pictures that `build` will look up."""
    found: set[Hash] = set()
    for item in state.conversation.items:
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
        if isinstance(entry.event, Replied):
            yield build(asked[entry.event.request], texts, pictures), entry.event
            asked.clear()
        state = apply(state, entry)
        asked[str(state.seq)] = state


def _schema(text: str) -> ToolSchema:
    body = json.loads(text)
    return ToolSchema(body["name"], body["description"], body["parameters"])


@dataclass(frozen=True)
class _Conversation:
    """The conversation as messages, for the prefix that a briefing gives."""

    prefix: Briefed
    texts: Mapping[Hash, str]
    pictures: Mapping[Hash, bytes]

    def messages(self, conversation: Sequence[Item]) -> Iterator[Message]:
        user: list[Text | Picture | ToolOutput] = []
        pending: list[Call] = []
        outputs: dict[str, ToolOutput] = {}
        told = {section.name: section.hash for section in self.prefix.sections}
        for item in conversation:
            match item:
                case Replied() if not self._spoken(item):
                    pass  # it was stopped before it said anything
                case Replied():
                    user = [*_results(pending, outputs), *user]
                    if user:
                        yield Message("user", tuple(user))
                    user, outputs = [], {}
                    pending = [part for part in item.content if isinstance(part, Call)]
                    yield Message("assistant", self._spoken(item))
                case Finished():
                    outputs[item.call] = self._output(pending, item)
                case Prompted():
                    user.extend(part for content in item.content for part in self._said(content))
                case Mailed():
                    user.append(_mail(item))
                case Noted():
                    user.append(Text(text=framed("note", item.text)))
                case Compacted(summary=str(summary)):
                    user.append(Text(text=self.texts[summary]))
                case Briefed() if _continues(self.prefix, item):
                    user.extend(_news(item, told, self.texts))
        user = [*_results(pending, outputs), *user]
        if user:
            yield Message("user", tuple(user))

    def _spoken(self, reply: Replied) -> tuple[Part, ...]:
        """Returns the reply as this model may see it. Another model's thinking means nothing to
        this one, and its proof is not valid here."""

        def kept(part: Part) -> bool:
            if isinstance(part, Thinking):
                return reply.model == self.prefix.model
            return not isinstance(part, Text) or bool(part.text.strip())

        return tuple(filter(kept, reply.content))

    def _output(self, calls: Sequence[Call], finished: Finished) -> ToolOutput:
        provider_id = next((c.provider_id for c in calls if c.id == finished.call), "")
        found = [self._picture(image) for image in finished.images]
        text = result(finished.for_model) or "(no output)"
        return ToolOutput(
            finished.call,
            provider_id,
            "\n".join([text, *(part.text for part in found if isinstance(part, Text))]),
            error=finished.status != "completed",
            pictures=tuple(part for part in found if isinstance(part, Picture)),
        )

    def _picture(self, image: Image) -> Picture | Text:
        data = self.pictures.get(image.hash)
        return Text(text=GONE) if data is None else Picture(image.mime, data)

    def _said(self, content: Content) -> Iterator[Text | Picture]:
        text = ""
        match content:
            case Text():
                text = content.text
            case Link():
                text = f"[The user mentions the file {named(content.name)} ({named(content.uri)})]"
            case Embedded():
                text = framed("context", content.text, **{"from": content.uri})
            case Image():
                name = content.name and named(content.name)
                text = f"[The user shows the picture {name}]" if name else ""
                yield self._picture(content)
        if text:
            yield Text(text=text)


def _mail(mail: Mailed) -> Text:
    """Returns what agents say to each other. `content` refuses what is not for a model."""
    about = {"from": mail.sender, "agent": mail.agent, "task": mail.name}
    about["status"] = mail.report.status if mail.report else ""
    said = "\n".join(part.text for part in mail.content)
    return Text(text=framed("message", said, **about))


def _continues(prefix: Briefed, later: Briefed) -> bool:
    """Returns whether a briefing continues the prefix: not that of another agent or model, for
    which it does not hold."""
    return (prefix.agent, prefix.model, prefix.tools) == (later.agent, later.model, later.tools)


def _results(calls: Sequence[Call], outputs: Mapping[str, ToolOutput]) -> list[ToolOutput]:
    """Returns one output for each call, in the order of the calls: providers insist on both."""
    return [
        outputs.get(call.id) or ToolOutput(call.id, call.provider_id, MISSING, error=True)
        for call in calls
    ]


def _news(briefed: Briefed, told: dict[str, Hash], texts: Mapping[Hash, str]) -> Iterator[Text]:
    """Returns the sections that changed since the model was last told."""
    for section in briefed.sections:
        if told.get(section.name) != section.hash:
            told[section.name] = section.hash
            yield Text(text=framed("updated", texts[section.hash], section=section.name))
