"""This package is the adapter of `core.sandbox`: bubblewrap puts a program into a world of its own.

Most of it is imported when the first program runs in a sandbox."""

from __future__ import annotations

from collections.abc import Sequence

from magy_server.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class World:
    """`private`: what Magy keeps (its state, its sockets): never seen. `protected`: its files in a
    root, by name. `read_only`: what is never written, even where a root or `writable` holds it."""

    home: str
    private: Sequence[str] = ()
    protected: Sequence[str] = ()
    read_only: Sequence[str] = ()
