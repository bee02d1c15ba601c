"""This module tells from a turn's entries what it came to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from magy_server.core.events import Compacted, Consulted, Ended, Entry, Finished, Replied, Stop
from magy_server.core.state.spending import NO_SPENDING, Spent
from magy_server.core.values import FileChange, Text
from magy_server.dataclass import dataclass


@dataclass(slots=True)
class Totals:
    stop: Stop | None = None
    message: str = ""
    text: str = ""
    """The agent's latest reply that says something; or what came of a call that the person made."""
    spent: Spent = NO_SPENDING
    changes: dict[str, FileChange] = field(default_factory=dict)
    """By path, from before the first change to after the last."""

    @property
    def cached(self) -> int | None:
        """Per cent of the prompts that came from the provider's cache."""
        usage = self.spent.usage
        prompt = usage.total - usage.output
        return 100 * usage.cache_read // prompt if prompt else None


def totals(entries: Iterable[Entry]) -> Totals:
    found = Totals()
    given: set[str] = set()
    for entry in entries:
        match entry.event:
            case Replied() | Consulted() | Compacted() as event:
                if event.model:
                    found.spent += Spent.on(event)
                if isinstance(event, Replied):
                    said = (part.text for part in event.content if isinstance(part, Text))
                    found.text = "\n\n".join(said) or found.text
                    given = set() if event.model else {part.id for part in event.calls}
            case Finished() as event:
                for change in event.changes:
                    _change(found.changes, change)
                if event.call in given:
                    found.text = event.for_user or event.for_model
            case Ended(stop=stop, message=message):
                found.stop, found.message = stop, message
    return found


def _change(changes: dict[str, FileChange], new: FileChange) -> None:
    if first := changes.get(new.path):
        new = new.model_copy(update={"before": first.before})
    if new.before == new.after:
        changes.pop(new.path, None)
    else:
        changes[new.path] = new
