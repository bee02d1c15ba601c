"""A vector is an append-only sequence and a value: `append` gives a new one and shares the storage.

A fold appends thousands of items to one growing history; copying a tuple each time would make it
quadratic. Two versions grown from the same one do not see each other's items.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Generic, TypeVar, overload

T = TypeVar("T")


class Vector(Sequence[T], Generic[T]):
    __slots__ = ("_items", "_size")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._items = list(items)
        self._size = len(self._items)

    @classmethod
    def of(cls, items: list[T], size: int) -> Vector[T]:
        """Returns the first `size` of these items, in this very list: what shares it shares the
        storage."""
        vector: Vector[T] = cls.__new__(cls)
        vector._items = items
        vector._size = size
        return vector

    @property
    def shared(self) -> tuple[list[T], int]:
        """Returns what `of` takes."""
        return self._items, self._size

    def append(self, item: T) -> Vector[T]:
        # Only the newest version may extend the shared list. An older one branches off by copying,
        # unless it appends what the newer one did: what is appended to a log was folded before, for
        # its summary.
        items, size = self._items, self._size
        if size < len(items) and items[size] != item:
            items = items[:size]
        if size == len(items):
            items.append(item)
        return Vector.of(items, size + 1)

    def first(self, count: int) -> Vector[T]:
        """Shares the storage, too."""
        return Vector.of(self._items, min(count, self._size))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[T]:
        return islice(self._items, self._size)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            return self._items[: self._size][index]
        return self._items[range(self._size)[index]]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vector) or self._size != other._size:
            return False
        return self._items is other._items or list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Vector({list(self)!r})"
