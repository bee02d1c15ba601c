"""This `dataclass` is that of the standard library, but writes what a class needs when an instance
is first made.

The standard one compiles up to seven functions for each class when the class is defined: for all of
Magy's classes that was a sixth of what a short command costs. Most classes of a process never have
an instance. Type checkers see the standard decorator.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(kind=None, /, *, frozen=False, eq=True, slots=False, kw_only=False):
        def decorated(given):
            return _made(given, frozen=frozen, eq=eq, slots=slots, kw_only=kw_only)

        return decorated if kind is None else decorated(kind)


def _made(given: type, *, frozen: bool, eq: bool, slots: bool, kw_only: bool) -> type:
    own = {name for name, value in vars(given).items() if (name, value) != ("__hash__", None)}
    if not given.__doc__:
        given.__doc__ = given.__name__  # the standard one would work out a signature
    kind: type = dataclasses.dataclass(
        init=False, repr=False, eq=False, slots=slots, kw_only=kw_only
    )(given)
    methods: dict[str, Any] = {"__init__": _first_init(kind, frozen), "__repr__": _repr}
    if eq:
        methods |= _comparison(kind, frozen)
    if frozen:
        methods |= {"__setattr__": _refuse_change, "__delattr__": _refuse_change}
        if slots:
            methods |= {"__getstate__": _state, "__setstate__": _set_state}
    for name, method in methods.items():
        if name not in own:
            setattr(kind, name, method)
    return kind


def _first_init(kind: Any, frozen: bool) -> Callable[..., None]:
    """Takes the place of `__init__` until it is first called."""

    def __init__(self: Any, /, *args: Any, **given: Any) -> None:
        init = _init(kind, frozen)
        setattr(kind, "__init__", init)  # noqa: B010
        init(self, *args, **given)

    return __init__


def _init(kind: Any, frozen: bool) -> Any:
    """Returns the `__init__` that the standard decorator writes, taken from a class with the same
    fields."""
    fields = []
    for one in dataclasses.fields(kind):
        same: Any = dataclasses.field(
            default=one.default, default_factory=one.default_factory, init=one.init,
            kw_only=one.kw_only,
        )  # fmt: skip
        fields.append((one.name, Any, same))
    also = {"__post_init__": kind.__post_init__} if hasattr(kind, "__post_init__") else {}
    twin: Any = dataclasses.make_dataclass(
        kind.__name__, fields, frozen=frozen, repr=False, eq=False,
        namespace={**also, "__doc__": kind.__doc__},
    )  # fmt: skip
    twin.__init__.__qualname__ = f"{kind.__qualname__}.__init__"
    return twin.__init__


def _comparison(kind: type, frozen: bool) -> dict[str, Any]:
    """Two instances of one class are equal where all fields are; only a frozen one has a hash."""
    names = [one.name for one in dataclasses.fields(kind) if one.compare]
    if len(names) > 1:
        compared: Callable[[Any], tuple[Any, ...]] = attrgetter(*names)
    else:

        def compared(value: Any) -> tuple[Any, ...]:
            return tuple(getattr(value, name) for name in names)

    def __eq__(self: Any, other: Any) -> Any:
        return (
            compared(self) == compared(other)
            if other.__class__ is self.__class__
            else NotImplemented
        )

    def __hash__(self: Any) -> int:
        return hash(compared(self))

    return {"__eq__": __eq__, "__hash__": __hash__ if frozen else None}


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (one.name for one in dataclasses.fields(self) if one.repr)
    return f"{type(self).__qualname__}({', '.join(f'{n}={getattr(self, n)!r}' for n in shown)})"


def _refuse_change(self: Any, name: str, value: Any = None) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot change field {name!r}")


def _state(self: Any) -> list[Any]:
    """For copies and pickles, since a frozen instance cannot be changed attribute by attribute."""
    return [getattr(self, one.name) for one in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for one, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)
