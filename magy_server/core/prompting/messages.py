"""This module turns the conversation of a state into messages: the events that the model is told
of, in its order, and in Magy's words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from magy_server.core.agents.mail import Mailed
from magy_server.core.events import Briefed, Compacted, Finished, Prompted, Replied
from magy_server.core.ports import Message, Picture, ToolOutput, ToolSchema
from magy_server.core.prompting.framing import framed, named, result
from magy_server.core.prompting.prefix_cache import SoFar
from magy_server.core.prompting.seldom_tools import rewrapped
from magy_server.core.reviews.review_events import Noted
from magy_server.core.state.conversation import Conversation, Item
from magy_server.core.state.vector import Vector
from magy_server.core.values import Call, Content, Embedded, Hash, Image, Link, Part, Text, Thinking
from magy_server.dataclass import dataclass

MISSING = "(no result: the session was interrupted before this call ran)"
GONE = "(a picture that cannot be shown any more)"


@dataclass(frozen=True, slots=True)
class Head:
    """What comes before the messages."""

    system: tuple[str, ...]
    tools: tuple[ToolSchema, ...]


@dataclass(frozen=True, slots=True)
class Built:
    """The messages of a conversation up to the last reply: no later event changes them, except that
    a conversation is taken back or compacted. `items`: what they are made of; `pending`: the calls
    of that reply; `told`: the sections that the model knows by then. `head`: what the prefix comes
    to, once a request was built."""

    prefix: Briefed
    items: Vector[Item]
    messages: tuple[Message, ...]
    pending: tuple[Call, ...]
    told: Mapping[str, Hash]
    so_far: SoFar
    head: Head | None = None

    def begins(self, conversation: Conversation) -> bool:
        count = len(self.items)
        if count > len(conversation.items) or self.prefix != conversation.prefix:
            return False
        return self.items == conversation.items.first(count)


def nothing(prefix: Briefed) -> Built:
    told = {section.name: section.hash for section in prefix.sections}
    return Built(prefix, Vector(), (), (), told, SoFar())


@dataclass
class Building:
    """The way from `Built` to a longer one, item by item. `texts` and `pictures` are the blobs that
    the items name."""

    built: Built
    texts: Mapping[Hash, str]
    pictures: Mapping[Hash, bytes]
    _user: list[Text | Picture | ToolOutput] = field(default_factory=list)
    _outputs: dict[str, ToolOutput] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._messages = list(self.built.messages)
        self._pending: Sequence[Call] = self.built.pending
        self._told = dict(self.built.told)

    def all(self, items: Vector[Item]) -> tuple[Built, tuple[Message, ...]]:
        """Returns what is built up to the last reply, and the messages of the whole
        conversation."""
        begun = self.built
        settled = (len(begun.items), len(begun.messages), begun.told)
        for place, item in enumerate(items[len(begun.items) :], len(begun.items) + 1):
            if not isinstance(item, Replied):
                self._take(item)
            elif spoken := self._spoken(item):  # else it was stopped before it said anything
                self._reply(item, spoken)
                settled = (place, len(self._messages), dict(self._told))
        place, count, told = settled
        if user := self._waiting():
            self._messages.append(Message("user", user))
        messages = tuple(self._messages)
        so_far = SoFar(count, begun.so_far.kept)
        pending = tuple(self._pending)
        items, kept = items.first(place), messages[:count]
        built = Built(begun.prefix, items, kept, pending, told, so_far, begun.head)
        return built, messages

    def _reply(self, item: Replied, spoken: tuple[Part, ...]) -> None:
        if user := self._waiting():
            self._messages.append(Message("user", user))
        self._user, self._outputs = [], {}
        self._pending = [part for part in item.content if isinstance(part, Call)]
        self._messages.append(Message("assistant", spoken))

    def _waiting(self) -> tuple[Text | Picture | ToolOutput, ...]:
        return (*_results(self._pending, self._outputs), *self._user)

    def _take(self, item: Item) -> None:
        match item:
            case Finished():
                self._outputs[item.call] = self._output(self._pending, item)
            case Prompted():
                self._user.extend(part for content in item.content for part in self._said(content))
            case Mailed():
                self._user.append(_mail(item))
            case Noted():
                self._user.append(Text(text=framed("note", item.text)))
            case Compacted(summary=str(summary)):
                self._user.append(Text(text=self.texts[summary]))
            case Briefed() if _continues(self.built.prefix, item):
                self._user.extend(_news(item, self._told, self.texts))

    def _spoken(self, reply: Replied) -> tuple[Part, ...]:
        """Returns the reply as this model may see it. Another model's thinking means nothing to
        this one, and its proof is not valid here."""

        def kept(part: Part) -> bool:
            if isinstance(part, Thinking):
                return reply.model == self.built.prefix.model
            return not isinstance(part, Text) or bool(part.text.strip())

        return tuple(rewrapped(part) for part in reply.content if kept(part))

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
    return (prefix.agent, prefix.model, prefix.shown) == (later.agent, later.model, later.shown)


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
