"""This `dataclass` is that of the standard library, but works out what a class needs when somebody
first asks for it.

The standard one looks through all fields and compiles up to seven functions for each class when the
class is defined: for all of Magy's classes that was a sixth of what a short command costs. Most
classes of a process never have an instance. Type checkers see the standard decorator.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import get_annotations
from itertools import chain
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, ClassVar, get_origin

Field = dataclasses.Field[Any]
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
    said = vars(given)
    own = {name for name, value in said.items() if (name, value) != ("__hash__", None)}
    names = [name for name, about in get_annotations(given).items() if _is_field(about)]
    fields = _Fields(given, {name: said[name] for name in names if name in said}, kw_only)
    methods: dict[str, Any] = {
        "__dataclass_fields__": fields,
        "__match_args__": _Places(),
        "__init__": _first_init,
        "__repr__": _repr,
    }
    if eq:
        methods |= {"__eq__": _first_eq, "__hash__": _first_hash if frozen else None}
    if frozen:
        methods |= {"__setattr__": _refuse_change, "__delattr__": _refuse_change}
        if slots:
            methods |= {"__getstate__": _first_state, "__setstate__": _first_set_state}
    methods = {name: method for name, method in methods.items() if name not in own}
    if not given.__doc__:
        methods["__doc__"] = given.__name__
    kind = _slotted(given, names, methods) if slots else _changed(given, fields.defaults, methods)
    fields.kind = kind
    return kind


def _is_field(about: Any) -> bool:
    if isinstance(about, str):
        return not about.startswith(("ClassVar", "KW_ONLY"))
    return about is not dataclasses.KW_ONLY and ClassVar not in (about, get_origin(about))


def _slotted(given: type, names: list[str], methods: Mapping[str, Any]) -> type:
    """Returns the class again, with places for its fields."""
    left_out = {*names, "__dict__", "__weakref__"}
    body = {name: value for name, value in vars(given).items() if name not in left_out}
    there = {name for above in given.__mro__ for name in vars(above).get("__slots__", ())}
    body["__slots__"] = tuple(name for name in names if name not in there)
    kind = type(given)(given.__name__, given.__bases__, {**body, **methods})
    kind.__qualname__ = given.__qualname__
    return kind


def _changed(given: type, defaults: Mapping[str, Any], methods: Mapping[str, Any]) -> type:
    for name, default in defaults.items():
        if isinstance(default, dataclasses.Field):
            if default.default is dataclasses.MISSING:
                delattr(given, name)
            else:
                setattr(given, name, default.default)
    for name, method in methods.items():
        setattr(given, name, method)
    return given


class _Fields:
    """Has the place of `__dataclass_fields__`. What the standard library has there is worked out
    when somebody asks for it; the methods below need less."""

    __slots__ = ("defaults", "found", "kind", "kw_only")

    def __init__(self, kind: type, defaults: Mapping[str, Any], kw_only: bool) -> None:
        self.kind, self.defaults, self.kw_only = kind, defaults, kw_only
        self.found: Mapping[str, Field] | None = None

    def __get__(self, instance: object, kind: type) -> Mapping[str, Field]:
        if self.found is None:
            body = {
                "__module__": self.kind.__module__,
                "__doc__": "Has what the class itself adds.",
                "__annotations__": get_annotations(self.kind),
                **self.defaults,
            }
            standard = dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=self.kw_only)
            own: Any = standard(type(self.kind.__name__, (), body))
            above = [getattr(one, "__dataclass_fields__", {}) for one in self.kind.__mro__[1:]]
            self.found = dict(chain(*(one.items() for one in reversed(above))))
            self.found |= own.__dataclass_fields__
        return self.found

    def own(self) -> Iterator[Field]:
        """Those that the class itself adds."""
        kw_only = self.kw_only
        for name, about in get_annotations(self.kind).items():
            if _is_field(about):
                default = self.defaults.get(name, dataclasses.MISSING)
                given = isinstance(default, dataclasses.Field)
                one: Field = default if given else dataclasses.field(default=default)
                one.name = name
                if one.kw_only is dataclasses.MISSING:
                    one.kw_only = kw_only
                yield one
            elif about in ("KW_ONLY", dataclasses.KW_ONLY):
                kw_only = True


def _fields(kind: type) -> Iterable[Field]:
    """Returns the fields of a class, those of the classes above it first."""
    found: dict[str, Field] = {}
    for one in reversed(kind.__mro__):
        fields = vars(one).get("__dataclass_fields__")
        if isinstance(fields, _Fields):
            found |= {field.name: field for field in fields.own()}
        elif fields is not None:
            found |= fields
    return found.values()


class _Places:
    """Has the place of `__match_args__`."""

    def __get__(self, instance: object, kind: Any) -> tuple[str, ...]:
        return tuple(one.name for one in _fields(kind) if one.init and not one.kw_only)


def _first_init(self: Any, /, *args: Any, **given: Any) -> None:
    """Is the `__init__` of every class until that is first called; so are the next ones."""
    _write(self, "__init__", _first_init, _init)
    type(self).__init__(self, *args, **given)


def _first_eq(self: Any, other: Any) -> Any:
    _write(self, "__eq__", _first_eq, _eq)
    kind: Any = type(self)
    return kind.__eq__(self, other)


def _first_hash(self: Any) -> int:
    _write(self, "__hash__", _first_hash, _hash)
    return hash(self)


def _first_state(self: Any) -> list[Any]:
    _write(self, "__getstate__", _first_state, _state)
    state: list[Any] = self.__getstate__()
    return state


def _first_set_state(self: Any, state: list[Any]) -> None:
    _write(self, "__setstate__", _first_set_state, _set_state)
    self.__setstate__(state)


def _write(value: object, name: str, first: object, made: Callable[[type], Any]) -> None:
    """Gives the class from which `value` has the method what takes the place of `first`; another
    thread may just have done so."""
    for kind in type(value).__mro__:
        if vars(kind).get(name) is first:
            setattr(kind, name, made(kind))


def _init(kind: Any) -> Any:
    """Returns the `__init__` that the standard decorator would write."""
    frozen = kind.__setattr__ is _refuse_change
    names: dict[str, Any] = {"_set": object.__setattr__, "_NONE": _NONE}
    given: dict[bool, list[str]] = {False: [], True: []}
    lines: list[str] = []
    for one in _fields(kind):
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


def _eq(kind: type) -> Any:
    """Two instances of one class are equal where all fields are."""
    compared = _compared(kind)

    def __eq__(self: Any, other: Any) -> Any:
        return (
            compared(self) == compared(other)
            if other.__class__ is self.__class__
            else NotImplemented
        )

    return __eq__


def _hash(kind: type) -> Any:
    compared = _compared(kind)

    def __hash__(self: Any) -> int:
        return hash(compared(self))

    return __hash__


def _compared(kind: Any) -> Callable[[Any], Any]:
    """Returns what gives the values that count when two are compared."""
    names = [one.name for one in _fields(kind) if one.compare]
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)


def _state(kind: Any) -> Any:
    """For copies and pickles, since a frozen instance cannot be changed attribute by attribute."""
    names = [one.name for one in _fields(kind)]

    def __getstate__(self: Any) -> list[Any]:
        return [getattr(self, name) for name in names]

    return __getstate__


def _set_state(kind: Any) -> Any:
    names = [one.name for one in _fields(kind)]

    def __setstate__(self: Any, state: list[Any]) -> None:
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    return __setstate__


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (one.name for one in dataclasses.fields(self) if one.repr)
    return f"{type(self).__qualname__}({', '.join(f'{n}={getattr(self, n)!r}' for n in shown)})"


def _refuse_change(self: Any, name: str, value: Any = None) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot change field {name!r}")
