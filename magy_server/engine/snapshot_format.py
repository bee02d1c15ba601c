"""This module turns a session's state into bytes and back, for `snapshots.py`, so that a long log
need not be folded from its start.

Only the very same code reads it again; whoever keeps it sees to that.
"""

from __future__ import annotations

import io
import pickle
import zlib
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any

from pydantic import BaseModel

from magy_server.core.state.state import State
from magy_server.core.state.vector import Vector

_OWN = "magy_server.core."


def dump(state: State) -> bytes:
    """Returns the state as bytes. Another thread may do it while the session goes on."""
    buffer = io.BytesIO()
    _Pickler(buffer, protocol=5).dump(state)
    return zlib.compress(buffer.getbuffer(), 1)


def load(body: bytes) -> State:
    """Returns the state of which these are the bytes. Raises ValueError for anything else. Bytes
    that were made for it may take as long and as much memory as they like: who can write the
    database can write the logs as well, so only what they could name is bounded here."""
    try:
        state = _Unpickler(io.BytesIO(zlib.decompress(body))).load()
    except Exception as error:  # bytes that are damaged can make pickle raise anything
        # Not `repr`: that of a text which is none holds the bytes, which are of the conversation.
        raise ValueError(f"This is no snapshot: {type(error).__name__}: {error}") from error
    if not isinstance(state, State):
        raise ValueError(f"This is the snapshot of a {type(state).__name__}, not of a state.")
    return state


def _vector(items: list[Any], size: int) -> Vector[Any]:
    return Vector.of(items, size)


class _Pickler(pickle.Pickler):
    """Vectors that share their storage share it again when they are read."""

    def __init__(self, file: io.BytesIO, protocol: int) -> None:
        super().__init__(file, protocol)
        self._copies: dict[int, tuple[list[Any], list[Any]]] = {}

    def reducer_override(self, value: Any) -> Any:
        if type(value) is not Vector:
            return NotImplemented
        items, size = value.shared
        # A copy: the storage may grow while it is written. The original is kept along, so that its
        # id stays its own.
        copy, _ = self._copies.setdefault(id(items), (list(items), items))
        return _vector, (copy, size)


class _Unpickler(pickle.Unpickler):
    """Makes nothing but values of the core: what else bytes could name is refused."""

    def find_class(self, module: str, name: str) -> Callable[..., Any]:
        if (module, name) == (__name__, _vector.__name__):
            return _vector
        found: Any = super().find_class(module, name) if module.startswith(_OWN) else None
        if isinstance(found, type) and (is_dataclass(found) or issubclass(found, BaseModel)):
            return found
        raise pickle.UnpicklingError(f"{module}.{name} is no value of the core")
