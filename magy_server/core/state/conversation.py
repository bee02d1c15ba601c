"""This part of the state is what the model sees of a session: the conversation, and what goes with
it when it is taken back or compacted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from magy_server.core.agents.mail import Mailed
from magy_server.core.events import Briefed, Compacted, Finished, Prompted, Replied
from magy_server.core.policy.strangers import described, joined
from magy_server.core.prompting.sizes import decisions, refusals, size, words
from magy_server.core.reviews.review_events import Noted
from magy_server.core.skills.statement import lasting, uses
from magy_server.core.state.queue import Arrival
from magy_server.core.state.replacing import replace
from magy_server.core.state.vector import Vector
from magy_server.core.values import Hash, SkillUse, Task
from magy_server.dataclass import dataclass

Item = Prompted | Mailed | Replied | Finished | Briefed | Compacted | Noted
"""The conversation is made of these, in the order in which the model sees them."""


@dataclass(frozen=True, slots=True)
class Conversation:
    items: Vector[Item] = field(default_factory=Vector)
    prefix: Briefed | None = None
    """The briefing the prompt's prefix is made of; a later one only adds after it."""
    briefing: Briefed | None = None
    plan: tuple[Task, ...] = ()
    context: int = 0
    """Tokens that the next request will have, roughly: those of the latest one, which the provider
    counted, and what came since."""
    told: tuple[str, ...] = ()
    """What the person said in the parts that were compacted."""
    refused: tuple[str, ...] = ()
    """What the person refused in those parts, as the model was told."""
    decided: tuple[str, ...] = ()
    """What the model was told there of the person's decisions about its changes."""
    seen: Mapping[str, Hash] = field(default_factory=dict)
    """The text of each file that the model knows, by path: as it was read or written last."""

    untrusted: tuple[str, ...] = ()
    """Where texts come from that nobody vouches for: it has some of them in it, or what somebody
    made of one."""
    skills: tuple[SkillUse, ...] = ()
    """The installed skills of which it has a text in it, or what somebody made of one."""
    cwd: str = ""
    """Where commands begin since the model has switched; "": it has not."""

    def briefed(self, event: Briefed) -> Conversation:
        now = self.heard(described(tool.name for tool in event.shown))
        if _prefix(self.prefix) != _prefix(event):
            return replace(now, prefix=event, briefing=event)
        return replace(now, briefing=event, items=self.items.append(event))

    def took(self, arrivals: Sequence[Arrival]) -> Conversation:
        now = self
        for arrival in arrivals:
            now = now._with(arrival)
            if isinstance(arrival, Prompted):
                now = now.heard(arrival.untrusted).taught(uses(arrival.content))
        return now

    def replied(self, event: Replied) -> Conversation:
        context = event.usage.total or self.context + size(event) // 4
        return replace(self, items=self.items.append(event), context=context)

    def finished(self, event: Finished) -> Conversation:
        return replace(self._with(event), seen=_known(self.seen, event))

    def heard(self, places: Sequence[str]) -> Conversation:
        """Returns the conversation with texts from these places, for which nobody vouches."""
        now = joined(self.untrusted, places)
        return self if now == self.untrusted else replace(self, untrusted=now)

    def taught(self, skills: Sequence[SkillUse]) -> Conversation:
        """Returns the conversation with texts of these skills."""
        now = lasting(self.skills, skills)
        return self if now == self.skills else replace(self, skills=now)

    def noted(self, event: Noted) -> Conversation:
        if any(isinstance(item, Noted) and item.id == event.id for item in self.items):
            return self
        return self._with(event)

    def moved(self, cwd: str) -> Conversation:
        return replace(self, cwd=cwd)

    def planned(self, tasks: tuple[Task, ...]) -> Conversation:
        return replace(self, plan=tasks)

    def compacted(self, event: Compacted) -> Conversation:
        """Returns the conversation after a compaction. The new prefix has what the items said of
        the briefing, so those items go."""
        kept = _left(self.items, event.dropped)
        shorter = self._without(self.items[: event.dropped], kept, self.briefing)
        return replace(shorter, items=Vector([event, *kept]))

    def shortened(self, event: Compacted, before: Conversation, now: Conversation) -> Conversation:
        """Returns this conversation, the beginning of `before`, after a compaction has turned
        `before` into `now`."""
        stays = _left(self.items, event.dropped)
        shorter = self._without(before.items[: event.dropped], stays, before.briefing)
        return replace(shorter, briefing=before.briefing, items=now.items.first(1 + len(stays)))

    def _without(
        self, gone: Sequence[Item], kept: Sequence[Item], prefix: Briefed | None
    ) -> Conversation:
        said = tuple(words(item) for item in gone if isinstance(item, Prompted))
        return replace(
            self,
            prefix=prefix,
            context=sum(map(size, kept)) // 4,
            told=self.told + said,
            refused=self.refused + refusals(gone),
            decided=self.decided + decisions(gone),
        )

    def _with(self, item: Item) -> Conversation:
        return replace(self, items=self.items.append(item), context=self.context + size(item) // 4)

    def going_on(self, noted: Sequence[Noted]) -> Conversation:
        """Returns this conversation when it comes back, with what was noted meanwhile."""
        context = self.context + sum(map(size, noted)) // 4
        return (
            replace(self, items=Vector([*self.items, *noted]), context=context) if noted else self
        )


def _left(items: Sequence[Item], dropped: int) -> list[Item]:
    """What a compaction leaves that drops so many items."""
    return [item for item in items[dropped:] if not isinstance(item, Briefed)]


def _prefix(briefing: Briefed | None) -> object:
    """What a prompt's prefix must be made anew for."""
    return briefing and (briefing.agent, briefing.model, briefing.shown)


def _known(seen: Mapping[str, Hash], event: Finished) -> Mapping[str, Hash]:
    """A call that did not complete may still have written; what it wrote is then not known."""
    for change in event.changes:
        if change.via == "command":
            continue  # the model did not see what a command wrote
        seen = {path: hash for path, hash in seen.items() if path != change.path}
        if change.after and change.now != "link":
            seen[change.path] = change.after
    return {**seen, **{shown.path: shown.hash for shown in event.seen}} if event.seen else seen
