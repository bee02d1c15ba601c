"""The ids of sessions say who is whose child: `root`, `root/3.0`, `root/3.0/review`.

The last part is the call that spawned the child, or the key of the request that did; where one call
or request spawns several, for tasks of a graph, the task and the attempt follow it. Pure.
"""

from __future__ import annotations

from typing import NewType

from magy_server.regex import regex

Stream = NewType("Stream", str)
"""The name of a stream in the store: what it is of, a slash, and the id of that."""
SESSIONS = "session/"
"""The streams of sessions begin with it."""
SEPARATOR = "/"
_CALL = regex(r"(\d+\.\d+)(?:\.[A-Za-z0-9_-]+\.\d+)?")


def stream_of(session: str) -> Stream:
    return Stream(SESSIONS + session)


def id_of(stream: Stream) -> str:
    return stream.removeprefix(SESSIONS)


def parent(session: str) -> str | None:
    """Returns the id of the parent; None for the root of a tree."""
    head, separator, _ = session.rpartition(SEPARATOR)
    return head if separator else None


def root(session: str) -> str:
    """Returns the session at the top of the tree. One process at a time runs a tree."""
    return session.partition(SEPARATOR)[0]


def depth(session: str) -> int:
    """Returns the number of sessions above it: 0 for a root."""
    return session.count(SEPARATOR)


def ancestors(session: str) -> list[str]:
    """Returns the parent, its parent, and so on to the root."""
    parts = session.split(SEPARATOR)
    return [SEPARATOR.join(parts[:end]) for end in range(len(parts) - 1, 0, -1)]


def is_below(session: str, ancestor: str) -> bool:
    return session.startswith(ancestor + SEPARATOR)


def child(parent: str, key: str) -> str:
    return f"{parent}{SEPARATOR}{key}"


def asked_at(session: str) -> int:
    """Returns the seq of the parent's log at which a model there asked for this child; 0 when a
    person did."""
    key = session.rpartition(SEPARATOR)[2]
    return int(key.partition(".")[0]) if is_call(key) else 0


def attempt(graph: str, task: str, number: int) -> str:
    """Returns the key of the child that makes the `number`th attempt, from 1, at a task of a graph,
    which the call or request `graph` began."""
    return f"{graph}.{task}.{number}"


def attempted(graph: str, session: str) -> tuple[str, int] | None:
    """Returns which task of the graph a child is for, and the number of the attempt; None: for
    none."""
    key = session.rpartition(SEPARATOR)[2]
    if not key.startswith(f"{graph}."):
        return None
    task, _, number = key.removeprefix(f"{graph}.").rpartition(".")
    return (task, int(number)) if task and number.isdigit() else None


def call_of(key: str) -> str:
    """Returns the id of the call of the parent's model that spawned a child of that name; "" when a
    person did."""
    found = _CALL.fullmatch(key)
    return found[1] if found else ""


def is_call(key: str) -> bool:
    """Returns whether a call of the parent's model spawned a child of that name."""
    return _CALL.fullmatch(key) is not None
