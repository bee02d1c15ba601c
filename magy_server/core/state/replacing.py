"""`replace` gives a changed copy of a part of the state, as `dataclasses.replace` does.

A fold spends most of its time copying. This copies the fields themselves and calls no `__init__`,
which takes a fifth of the time. The parts of the state have slots and nothing that `__init__` works
out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # so that types are checked
    from dataclasses import replace as replace
else:

    def replace(value, **changes):
        copied, writers = _copier(value.__class__)
        copy = copied(value)
        for name, field in changes.items():
            writers[name](copy, field)
        return copy


@cache
def _copier(kind: type) -> tuple[Callable[[Any], Any], Mapping[str, Callable[..., None]]]:
    """(what copies all fields, what writes each field)

    The copy is filled as an instance of a twin, a class with the same slots that does not refuse
    to be changed: Python writes an attribute five times as fast as it calls a slot's `__set__`."""
    own = {"__slots__": kind.__dict__["__slots__"], "__setattr__": object.__setattr__}
    twin = type(f"_{kind.__name__}", kind.__bases__, own)
    names = [field.name for field in fields(kind)]
    lines = ["copy = new(twin)", *(f"copy.{name} = value.{name}" for name in names)]
    lines += ["copy.__class__ = kind", "return copy"]
    found: dict[str, Any] = {"new": object.__new__, "twin": twin, "kind": kind}
    exec("def copied(value):\n " + "\n ".join(lines), found)
    return found["copied"], {name: getattr(kind, name).__set__ for name in names}
