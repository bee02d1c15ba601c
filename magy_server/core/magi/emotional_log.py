"""CASPER's emotional log says how earlier rulings felt, with a line that was learned from each. It
is off unless the person turns it on.

An entry fades: after `HALF_LIFE` days it counts half, after `RETENTION` days it is gone. Two at
most reach a deliberation, and only CASPER; none where much is at stake. Pure.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationError

from magy_server.core.magi.vote import Memory
from magy_server.core.text.sanitizing import one_line
from magy_server.core.values import Value
from magy_server.dataclass import dataclass

FILE = "casper-emotional-log.json"
FOLDER = "memory"
"""Where it is, below the workspace root."""
RETENTION, HALF_LIFE = 90.0, 60.0
"""Days."""
SURFACED = 2
"""Entries that one deliberation is told of, at the most."""
CHARGED = 0.6
"""Who felt at least this much, for or against, felt strongly..."""
MANY, WITHIN = 3, 7.0
"""...and when more such entries than this come within so many days, a person reads them first."""
MOST = 500
"""Entries; the oldest go."""
LARGEST = 1 << 20
"""Bytes of the file."""
_DAY = 86_400.0


def _date(text: str) -> str:
    seconds(text)
    return text


def seconds(date: str) -> float:
    """Returns an ISO 8601 date as seconds since the epoch; without a zone it is UTC. Raises
    ValueError."""
    found = datetime.fromisoformat(date)
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


Date = Annotated[str, Field(max_length=40), AfterValidator(_date)]


class Entry(Value):
    """`topic_hash`: of the question, which is not kept. `valence`: from -1, how bad it felt, to 1,
    how good."""

    date: Date
    topic_hash: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    valence: Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)]
    primary_emotion: Annotated[str, Field(min_length=1, max_length=40)]
    lesson_1_line: Annotated[str, Field(min_length=1, max_length=200)]

    @property
    def id(self) -> str:
        return hashlib.sha256(self.model_dump_json().encode("utf-8", "replace")).hexdigest()[:10]

    @property
    def charged(self) -> bool:
        return abs(self.valence) >= CHARGED


class Log(Value):
    """`reviewed`: when a person has read it last; "": nobody has."""

    reviewed: Annotated[str, AfterValidator(lambda text: text and _date(text))] = ""
    entries: Annotated[tuple[Entry, ...], Field(max_length=MOST * 2)] = ()


class Unreadable(Exception):
    """Says what is wrong with the file, from the line on: `3: ...`."""


def parsed(data: bytes) -> Log:
    """Raises Unreadable."""
    if len(data) > LARGEST:
        raise Unreadable(f" is larger than {LARGEST >> 20} MiB")
    try:
        return Log.model_validate(json.loads(data.decode("utf-8")))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Unreadable(f":{line} is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise Unreadable(f":{error.lineno} is not JSON: {error.msg}") from None
    except (RecursionError, ValueError) as error:
        raise Unreadable(_said(error)) from None


def _said(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return " is nested too deeply, or has too long a number"
    first = error.errors(include_url=False, include_input=False)[0]
    where = [f"entry {part + 1}" if isinstance(part, int) else str(part) for part in first["loc"]]
    return f" is not such a log: {', '.join(where)}: {first['msg']}"


def written(log: Log) -> bytes:
    """Returns the bytes of the file: an entry a line."""
    lines = ",\n".join(f"  {one.model_dump_json()}" for one in log.entries)
    about = json.dumps(log.reviewed)
    return f'{{"reviewed": {about}, "entries": [\n{lines}\n]}}\n'.encode("utf-8", "replace")


def topic(question: str) -> str:
    """Returns what stands for a question, however it is spaced and capitalised."""
    plain = unicodedata.normalize("NFKC", question).casefold()
    words = "".join(char if char.isalnum() else " " for char in plain).split()
    return hashlib.sha256(" ".join(words).encode("utf-8", "replace")).hexdigest()[:16]


def entry(question: str, memory: Memory, now: float) -> Entry:
    """Returns the entry for what CASPER wants kept. `now`: seconds since the epoch."""
    return Entry(
        date=datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds"),
        topic_hash=topic(question),
        valence=memory.valence,
        primary_emotion=memory.primary_emotion,
        lesson_1_line=memory.lesson,
    )


def kept(log: Log, now: float) -> Log:
    """Returns the log without what is too old, or dated later than tomorrow."""
    young = [one for one in log.entries if -_DAY < now - seconds(one.date) < RETENTION * _DAY]
    young.sort(key=lambda one: seconds(one.date))
    return log.model_copy(update={"entries": tuple(young[-MOST:])})


def added(log: Log, new: Entry, now: float) -> Log:
    """Returns the log with an entry more. The same again, but for its date, takes the place of what
    was there: who goes on after a crash adds it twice."""
    others = tuple(one for one in log.entries if _but_date(one) != _but_date(new))
    return kept(log.model_copy(update={"entries": (*others, new)}), now)


def without(log: Log, ids: Sequence[str]) -> Log:
    """Returns the log without these entries."""
    left = tuple(one for one in log.entries if one.id not in ids)
    return log.model_copy(update={"entries": left})


def strength(one: Entry, now: float) -> float:
    """Returns how much the entry counts by now, from 0 to 1."""
    days = max(0.0, now - seconds(one.date)) / _DAY
    return float(abs(one.valence) * 0.5 ** (days / HALF_LIFE))


def review_due(log: Log, now: float) -> bool:
    """Returns whether a person has to read it first: too many strong feelings within a week, none
    of which a person has seen."""
    since = seconds(log.reviewed) if log.reviewed else float("-inf")
    times = sorted(
        at for one in kept(log, now).entries if one.charged and (at := seconds(one.date)) > since
    )
    return any(
        late - early < WITHIN * _DAY for early, late in zip(times, times[MANY:], strict=False)
    )


def surfaced(log: Log, question: str, now: float) -> Sequence[Entry]:
    """Returns the entries that a deliberation of this question is told of: those of the same
    question before others, the strongest first. None while a person has to read the log."""
    if review_due(log, now):
        return ()
    same = topic(question)
    young = kept(log, now).entries
    best = sorted(young, key=lambda one: (one.topic_hash != same, -strength(one, now), one.id))
    return best[:SURFACED]


@dataclass(frozen=True, slots=True)
class Memories:
    """What a deliberation has of the log. `on`: CASPER may add to it. `lines`: what CASPER is told.
    `notes`: what people are told, sentences."""

    on: bool = False
    lines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def line(one: Entry) -> str:
    """Returns what CASPER reads of an entry."""
    said = f"{one.date[:10]}, {one.primary_emotion} ({one.valence:+.1f}): {one.lesson_1_line}"
    return one_line(said)


def _but_date(one: Entry) -> dict[str, Any]:
    return one.model_dump(exclude={"date"})
