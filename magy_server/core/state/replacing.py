"""`replace` gives a changed copy of a part of the state, as `dataclasses.replace` does.

A fold spends most of its time copying. This copies the fields themselves and calls no `__init__`,
which takes half the time. The parts of the state have slots and nothing that `__init__` works out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from itertools import repeat
from operator import attrgetter, call
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # so that types are checked
    from dataclasses import replace as replace
else:

    def replace(value, **changes):
        kind = value.__class__
        read, writers = _slots(kind)
        copy = object.__new__(kind)
        # As a loop over both, without a step of the interpreter for each field.
        deque(map(call, writers.values(), repeat(copy), read(value)), maxlen=0)
        for name, field in changes.items():
            writers[name](copy, field)
        return copy


@cache
def _slots(
    kind: type,
) -> tuple[Callable[[Any], tuple[Any, ...]], Mapping[str, Callable[..., None]]]:
    """(what reads all fields, what writes each field)"""
    names = [field.name for field in fields(kind)]
    return attrgetter(*names), {name: getattr(kind, name).__set__ for name in names}
