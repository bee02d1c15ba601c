"""The sessions that a process has in memory, by the tree that they are in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from magy_server.core.steps import Rest, Step, next_step
from magy_server.engine.session import Session, deleted
from magy_server.engine.trees import root_of


class Kept:
    """A session in memory."""

    __slots__ = ("read", "rests", "session")

    def __init__(self, session: Session, read: int) -> None:
        self.session = session
        self.rests = -1
        """The seq at which it is known to rest."""
        self.read = read
        """Which change by others it was last read after."""

    def step(self) -> Step:
        """What is next; costs nothing while a session rests: there may be thousands."""
        seq = self.session.state.seq
        if self.rests == seq:
            return Rest()
        step = next_step(self.session.state)
        self.rests = seq if isinstance(step, Rest) else -1
        return step

    @property
    def quiet(self) -> bool:
        """It rests, and nobody watches it."""
        return not self.session.watched and isinstance(self.step(), Rest)


class Sessions:
    """`make` gives the session of a stream, blank yet."""

    def __init__(self, make: Callable[[str], Session]) -> None:
        self._make = make
        self._trees: dict[str, dict[str, Kept]] = {}
        self._changes = 0
        self._barred: list[str] = []

    def __iter__(self) -> Iterator[Kept]:
        """Those that are there now."""
        return iter([kept for tree in self._trees.values() for kept in tree.values()])

    def get(self, stream: str) -> Kept | None:
        return self._trees.get(root_of(stream), {}).get(stream)

    def keep(self, stream: str) -> Session:
        """The one that is there, or a new one. Raises NotFound while it is barred."""
        if any(_within(stream, top) for top in self._barred):
            raise deleted(stream)
        tree = self._trees.setdefault(root_of(stream), {})
        if stream not in tree:
            tree[stream] = Kept(self._make(stream), self._changes)
        return tree[stream].session

    def drop(self, stream: str) -> Session | None:
        root = root_of(stream)
        tree = self._trees.get(root, {})
        kept = tree.pop(stream, None)
        if not tree:
            self._trees.pop(root, None)
        return kept.session if kept else None

    @contextmanager
    def barred(self, stream: str) -> Iterator[None]:
        """None of this session and those below it comes into memory meanwhile: it is deleted."""
        self._barred.append(stream)
        try:
            yield
        finally:
            self._barred.remove(stream)

    def within(self, stream: str) -> Sequence[str]:
        """The streams of this session and those below it, as far as they are here."""
        return [name for name in self._trees.get(root_of(stream), {}) if _within(name, stream)]

    def tree(self, stream: str) -> Sequence[Session]:
        """The folded sessions of the tree that this session is in."""
        tree = self._trees.get(root_of(stream), {})
        return [kept.session for kept in tree.values() if kept.session.loaded]

    def at_work(self, roots: Iterable[str]) -> Sequence[Kept]:
        """All of these trees, and of the others those that are not quiet."""
        trees = [self._trees[root] for root in roots if root in self._trees]
        found = {id(kept): kept for tree in trees for kept in tree.values()}
        found.update((id(kept), kept) for kept in self if not kept.quiet)
        return list(found.values())

    def changed(self) -> None:
        """Others have appended to any of them, or to none."""
        self._changes += 1

    def missed(self, stream: str) -> bool:
        """Whether others may have appended to it since it was last read; who asks reads it then."""
        kept = self.get(stream)
        if kept is None or kept.read == self._changes:
            return False
        kept.read = self._changes
        return True


def _within(stream: str, top: str) -> bool:
    return stream == top or stream.startswith(f"{top}/")
