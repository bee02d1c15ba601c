"""Magy's `dataclass` behaves as that of the standard library does, instance for instance."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import KW_ONLY, field
from typing import Any, ClassVar

import pytest

from magy_server.dataclass import dataclass

Decorator = Callable[..., Any]


def classes(dataclass: Decorator) -> dict[str, Any]:
    """The same classes, made by this decorator."""
    return usual(dataclass) | special(dataclass)


def usual(dataclass: Decorator) -> dict[str, Any]:
    @dataclass(frozen=True, slots=True)
    class Point:
        x: int
        y: int = 2
        names: tuple[str, ...] = field(default_factory=tuple, compare=False)
        limit: ClassVar[int] = 7

        @property
        def sum(self) -> int:
            return self.x + self.y

    @dataclass(slots=True)
    class Counted:
        """Has a docstring."""

        made: int
        _: KW_ONLY
        seen: list[int] = field(default_factory=list)
        hidden: int = field(default=3, repr=False)
        worked_out: int = field(init=False)

        def __post_init__(self) -> None:
            self.worked_out = self.made * 2

    @dataclass(slots=True)
    class Longer(Counted):
        """One more field."""

        more: int = field(default=9, kw_only=True)

    return {name: kind for name, kind in locals().items() if isinstance(kind, type)}


def special(dataclass: Decorator) -> dict[str, Any]:
    @dataclass(frozen=True, slots=True)
    class Single:
        only: Any

    @dataclass(frozen=True)
    class Nothing:
        pass

    @dataclass(eq=False)
    class Same:
        value: int = 1

        def __repr__(self) -> str:
            return "mine"

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Named:
        first: int
        second: str = "b"

    @dataclass
    class Own:
        value: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own)

        def __hash__(self) -> int:
            return 5

    return {name: kind for name, kind in locals().items() if isinstance(kind, type)}


OURS, THEIRS = classes(dataclass), classes(dataclasses.dataclass)
MADE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "all given": lambda k: k["Point"](1, 3, ("a",)),
    "defaults": lambda k: k["Point"](1),
    "by name": lambda k: k["Point"](y=5, x=1),
    "too few": lambda k: k["Point"](),
    "too many": lambda k: k["Point"](1, 2, (), 4),
    "unknown name": lambda k: k["Point"](1, z=4),
    "property": lambda k: k["Point"](1).sum,
    "post init": lambda k: k["Counted"](4, seen=[1]),
    "not by place": lambda k: k["Counted"](4, [1]),
    "not to be given": lambda k: k["Counted"](4, worked_out=1),
    "own list each": lambda k: (k["Counted"](1).seen is k["Counted"](1).seen),
    "inherited": lambda k: k["Longer"](4, more=2),
    "single": lambda k: k["Single"](float("nan")),
    "nothing": lambda k: k["Nothing"](),
    "own repr": lambda k: k["Same"](),
    "only by name": lambda k: k["Named"](first=1),
    "only by name, by place": lambda k: k["Named"](1),
    "replaced": lambda k: dataclasses.replace(k["Point"](1), y=8),
    "as a dict": lambda k: dataclasses.asdict(k["Longer"](4, seen=[2])),
    "deep copy": lambda k: copy.deepcopy(k["Point"](1, 3, ("a",))),
    "copy": lambda k: copy.copy(k["Counted"](3, seen=[2])),
    "changed": lambda k: setattr(k["Counted"](3), "made", 4),
    "frozen": lambda k: setattr(k["Point"](3), "x", 4),
    "frozen, new name": lambda k: setattr(k["Nothing"](), "new", 4),
    "frozen, deleted": lambda k: delattr(k["Point"](3), "x"),
    "no such place": lambda k: setattr(k["Counted"](3), "new", 4),
    "class variable": lambda k: k["Point"].limit,
    "equal": lambda k: k["Point"](1, 2, ("a",)) == k["Point"](1, 2, ("b",)),
    "not equal": lambda k: k["Point"](1, 2) == k["Point"](1, 3),
    "another class": lambda k: k["Counted"](1) == k["Longer"](1),
    "another type": lambda k: k["Point"](1) == (1, 2, ()),
    "equal nothings": lambda k: (k["Nothing"]() == k["Nothing"](), hash(k["Nothing"]())),
    "same by identity": lambda k: k["Same"]() == k["Same"](),
    "hash": lambda k: hash(k["Point"](1, 2)) == hash(k["Point"](1, 2, ("b",))),
    "hash of one": lambda k: hash(k["Single"]("a")) == hash(k["Single"]("a")),
    "no hash": lambda k: hash(k["Counted"](1)),
    "own hash": lambda k: (hash(k["Own"](1)), k["Own"](1) == k["Own"](2)),
    "hash of a list": lambda k: hash(k["Single"]([])),
    "places": lambda k: k["Longer"].__match_args__,
    "fields": lambda k: [one.name for one in dataclasses.fields(k["Longer"])],
    "slots": lambda k: (k["Point"].__slots__, hasattr(k["Point"](1), "__dict__")),
    "docstring": lambda k: k["Counted"].__doc__,
}  # fmt: skip


def outcome(make: Callable[[dict[str, Any]], Any], kinds: dict[str, Any]) -> object:
    try:
        return repr(make(kinds))
    except (TypeError, AttributeError) as error:
        kind = type(error).__name__
        return kind if "frozen" in kind.lower() else (kind, str(error))


@pytest.mark.parametrize("case", MADE)
def test_as_in_the_standard_library(case: str) -> None:
    assert outcome(MADE[case], OURS) == outcome(MADE[case], THEIRS)


@dataclass(frozen=True, slots=True)
class Kept:
    left: Kept | None
    value: int


def test_frozen_ones_are_pickled_and_matched() -> None:
    kept = Kept(Kept(None, 1), 2)
    assert pickle.loads(pickle.dumps(kept)) == kept
    match kept:
        case Kept(Kept(None, inner), outer):
            assert (inner, outer) == (1, 2)
        case _:
            pytest.fail("did not match")


def test_nothing_is_written_before_the_first_instance() -> None:
    @dataclass
    class Fresh:
        value: int

    stub = vars(Fresh)["__init__"]
    Fresh(1)
    assert vars(Fresh)["__init__"] is not stub


def test_who_was_about_to_write_a_method_takes_what_another_thread_wrote() -> None:
    @dataclass(frozen=True, slots=True)
    class Fresh:
        value: int

    first = {name: vars(Fresh)[name] for name in ("__init__", "__eq__", "__hash__")}
    one, other = Fresh(1), Fresh(2)
    assert one != other and hash(one) != hash(other)
    first["__init__"](one, 2)
    assert first["__eq__"](one, other) and first["__hash__"](one) == hash(other)


def test_the_places_of_all_classes_are_their_fields() -> None:
    code = (
        "import sys, dataclasses, magy_server.app, magy_server.tools.kit\n"
        "kinds = {value for name, module in sys.modules.items() if name.startswith('magy_server')\n"
        "         for value in vars(module).values() if isinstance(value, type)}\n"
        "kinds = [kind for kind in kinds if '__dataclass_fields__' in vars(kind)]\n"
        "for kind in kinds:\n"
        "    there = {x for base in kind.__mro__ for x in vars(base).get('__slots__', ())}\n"
        "    wrong = {one.name for one in dataclasses.fields(kind)} ^ there\n"
        "    assert not wrong or '__slots__' not in vars(kind), (kind, wrong)\n"
        "print(len(kinds))\n"
    )
    told = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert int(told) > 200
