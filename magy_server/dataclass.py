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

_NONE = object()
"""Stands for an argument that was not given."""

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
            methods |= _pickling(kind)
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
    """Returns the `__init__` that the standard decorator would write."""
    names: dict[str, Any] = {"_set": object.__setattr__, "_NONE": _NONE}
    given: dict[bool, list[str]] = {False: [], True: []}
    lines: list[str] = []
    for one in dataclasses.fields(kind):
        name, default, made = one.name, f"_default_{one.name}", f"_make_{one.name}"
        value, usual = name, ""
        if one.default_factory is not dataclasses.MISSING:
            names[made] = one.default_factory
            value = f"{made}() if {name} is _NONE else {name}" if one.init else f"{made}()"
            usual = "=_NONE"
        elif one.default is not dataclasses.MISSING:
            names[default] = one.default
            usual = f"={default}"
        elif not one.init:
            continue
        if one.init:
            given[one.kw_only is True].append(name + usual)
        elif value == name:
            value = default
        lines.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(kind, "__post_init__"):
        lines.append("self.__post_init__()")
    by_name = ["*", *given[True]] if given[True] else []
    head = ", ".join(["self", *given[False], *by_name])
    exec(f"def __init__({head}):\n " + "\n ".join(lines or ["pass"]), names)
    names["__init__"].__qualname__ = f"{kind.__qualname__}.__init__"
    return names["__init__"]


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


def _pickling(kind: type) -> dict[str, Any]:
    """For copies and pickles, since a frozen instance cannot be changed attribute by attribute."""
    names = [one.name for one in dataclasses.fields(kind)]

    def __getstate__(self: Any) -> list[Any]:
        return [getattr(self, name) for name in names]

    def __setstate__(self: Any, state: list[Any]) -> None:
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    return {"__getstate__": __getstate__, "__setstate__": __setstate__}
