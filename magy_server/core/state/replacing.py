"""`replace` gives a changed copy of a part of the state, as `dataclasses.replace` does.

A fold spends most of its time copying. This copies the fields themselves and calls no `__init__`,
which takes half the time. The parts of the state have slots and nothing that `__init__` works out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # so that types are checked
    from dataclasses import replace as replace
else:

    def replace(value, **changes):
        kind = value.__class__
        read, writers = _slots(kind)
        copy = object.__new__(kind)
        for write, field in zip(writers.values(), read(value), strict=True):
            write(copy, field)
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
