"""The prompt gets project instructions from AGENTS.md, which is read as other agents read it.

The user's own file, then one for each directory from the workspace root down to where the session
works, the outer ones first; CLAUDE.md stands in where a directory has no AGENTS.md. Directories
elsewhere that have one are named, so that the model reads it before it changes files there.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

from magy_server.core.prompting.framing import escaped
from magy_server.core.state.state import State
from magy_server.core.text.sanitizing import one_line
from magy_server.dataclass import dataclass
from magy_server.tools.files.disk import beginning
from magy_server.tools.files.paths import below

ContextProvider = Callable[[State], Awaitable[Sequence[tuple[str, str]]]]
SECTION = "instructions"
MOST = 65_536
"""Bytes of all files together."""
NAMES = ("AGENTS.md", "CLAUDE.md")
DEPTH = 4
"""Directories below the workspace root, and below the session's, that are looked through."""
LOOKED = 2_000
"""Directories, at most."""
LISTED = 50
SESSIONS = 64
_SKIPPED = frozenset(
    ("node_modules", "bower_components", "vendor", "third_party", "site-packages", "__pycache__",
     "venv", "env", "target", "build", "dist", "out", "coverage", "tmp")
)  # fmt: skip
_INTRODUCTION = (
    "Instructions for your work here, written by people of this project and by the user. Follow "
    "them. The files stand from the outermost to the nearest: where they disagree, the later one "
    "takes precedence, and what the user says in the conversation takes precedence over "
    "all of them."
)
_ELSEWHERE = (
    "These directories have instructions of their own. Before you change files in one of them or "
    "below it, read its file; there it takes precedence over the others:"
)
_CUT = (
    f"[... cut here: {MOST:,} bytes are the limit for all of these; read the rest with read_file]"
)
_GONE = "There are no project instructions any more; the earlier ones no longer apply."


@dataclass(frozen=True, slots=True)
class Source:
    """An instructions file. `stamp` tells one state of it from another."""

    path: str
    heading: str
    stamp: tuple[int, ...]


def instructions(user_file: str) -> ContextProvider:
    """`user_file`: the user's own instructions, for all projects; it need not exist."""
    known: OrderedDict[tuple[str, str], _Session] = OrderedDict()

    async def context(state: State) -> Sequence[tuple[str, str]]:
        opened = state.opened
        if opened is None:
            return []
        root = state.place if opened.root else None
        key = (root or "", opened.cwd)
        session = known.setdefault(key, _Session(user_file, root, opened.cwd))
        known.move_to_end(key)
        while len(known) > SESSIONS:
            known.popitem(last=False)
        text = await asyncio.to_thread(session.text)
        if text:
            return [(SECTION, text)]
        told = state.conversation.briefing.sections if state.conversation.briefing else ()
        return [(SECTION, _GONE)] if any(s.name == SECTION for s in told) else []

    return context


class _Session:
    """What is read for one root and working directory, kept while nothing changes on disk."""

    def __init__(self, user_file: str, root: str | None, cwd: str) -> None:
        self._user_file = user_file
        self._root = os.path.realpath(root) if root else None
        self._cwd = os.path.realpath(cwd)
        self._folders = _Folders()
        self._state: object = None
        self._text = ""

    def text(self) -> str:
        """Blocks."""
        user = _source(self._user_file, f"{_home(self._user_file)} (the user's, for all projects)")
        chain, passed = self._chain(os.path.realpath(self._user_file))
        known = {*passed, *(source.heading for source in chain)}
        others = [path for path in self._elsewhere() if path not in known]
        state = (user, chain, passed, others)
        if state != self._state:
            self._text = _compose(user, chain, passed, others)
            self._state = state
        return self._text

    def _chain(self, user: str) -> tuple[list[Source], dict[str, str]]:
        """The files from the root down, each once, and the links among them that are not followed,
        with the reason."""
        sources: dict[str, Source] = {}
        passed = {}
        for folder in self._way():
            for name in NAMES:
                path = os.path.join(folder, name)
                real = os.path.realpath(path)
                if why := self._astray(real):
                    passed[self._relative(path)] = why
                elif source := _source(real, self._relative(path)):
                    if real != user:
                        sources.setdefault(real, source)
                    break
        return list(sources.values()), passed

    def _way(self) -> Iterator[str]:
        """Root, and each directory down to the one the session works in."""
        root = self._root
        if root is None:
            return
        yield root
        at = root
        for part in (below(root, self._cwd) or ".").split("/"):
            if part != ".":
                at = os.path.join(at, part)
                yield at

    def _elsewhere(self) -> list[str]:
        if self._root is None:
            return []
        starts = [self._root, self._cwd] if self._inside(self._cwd) else [self._root]
        found = self._folders.search(starts)
        return [self._relative(path) for path in found if not self._astray(os.path.realpath(path))]

    def _astray(self, real: str) -> str:
        """Why what an instructions file leads to is not read unasked; "" when it is. Rules speak
        about files by their own names: under the name of instructions any could be shown."""
        if not self._inside(real):
            return "leads out of the workspace and was not read"
        if os.path.basename(real) not in NAMES:
            name = "".join(c if c.isprintable() else "?" for c in self._relative(real)[:200])
            return f"is a link to {name} and was not read; if you need it, read_file asks for it"
        return ""

    def _inside(self, path: str) -> bool:
        return self._root is not None and below(self._root, path) is not None

    def _relative(self, path: str) -> str:
        return below(self._root or "/", path) or path


class _Folders:
    """Directories that were looked into: only what changed is read again."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[int, ...], tuple[str, ...], str]] = {}

    def search(self, starts: Sequence[str]) -> list[str]:
        """The nearest files, by path."""
        waiting = [(start, 0) for start in dict.fromkeys(starts)]
        seen: dict[str, tuple[tuple[int, ...], tuple[str, ...], str]] = {}
        for folder, depth in waiting:  # grows: broad before deep
            if len(seen) >= LOOKED:
                break
            if folder in seen or (look := self._look(folder)) is None:
                continue
            seen[folder] = look
            if depth < DEPTH:
                waiting.extend((os.path.join(folder, name), depth + 1) for name in look[1])
        self._known = seen
        return sorted(os.path.join(folder, name) for folder, (_, _, name) in seen.items() if name)

    def _look(self, folder: str) -> tuple[tuple[int, ...], tuple[str, ...], str] | None:
        """(stamp, directories to look into, the name of its instructions file or "")."""
        try:
            stamp = _stamp(os.stat(folder))
            known = self._known.get(folder)
            if known is not None and known[0] == stamp:
                return known
            with os.scandir(folder) as entries:
                folders, files = [], set()
                for entry in entries:
                    if entry.name in NAMES and entry.is_file():
                        files.add(entry.name)
                    elif _interesting(entry):
                        folders.append(entry.name)
        except OSError:
            return None  # not ours to read, or just removed
        name = next((name for name in NAMES if name in files), "")
        return stamp, tuple(sorted(folders)), name


def _interesting(entry: os.DirEntry[str]) -> bool:
    hidden = entry.name.startswith(".") or entry.name in _SKIPPED
    return not hidden and entry.name.isprintable() and entry.is_dir(follow_symlinks=False)


def _stamp(about: os.stat_result) -> tuple[int, ...]:
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns


def _source(path: str, heading: str) -> Source | None:
    try:
        about = os.stat(path)
    except (OSError, ValueError):
        return None
    return Source(path, heading, _stamp(about)) if stat.S_ISREG(about.st_mode) else None


def _home(path: str) -> str:
    home = os.path.expanduser("~").rstrip("/")
    return f"~{path[len(home) :]}" if home and path.startswith(f"{home}/") else path


# --- the text -------------------------------------------------------------------------------------


def _compose(
    user: Source | None, chain: Sequence[Source], passed: Mapping[str, str], others: Sequence[str]
) -> str:
    """ "" when there is nothing to say."""
    own = [user] if user else []
    texts = _read_all([*own, *reversed(chain)])
    parts = [
        f"# {one_line(one.heading)}\n\n{escaped(texts[one])}"
        for one in [*own, *chain]
        if texts[one]
    ]
    if parts:
        parts.insert(0, _INTRODUCTION)
    parts += [f"({one_line(path)} {why}.)" for path, why in passed.items()]
    if others:
        parts.append(_listed(others))
    return "\n\n".join(parts)


def _listed(others: Sequence[str]) -> str:
    lines = [f"- {path}" for path in others[:LISTED]]
    if len(others) > LISTED:
        lines.append(f"- and {len(others) - LISTED} more: look for AGENTS.md where you work")
    return "\n".join([_ELSEWHERE, *lines])


def _read_all(sources: Sequence[Source]) -> dict[Source, str]:
    """At most `MOST` bytes in all; those that come first have them first."""
    left, texts = MOST, {}
    for source in sources:
        try:
            data = beginning(source.path, left + 1)
        except OSError as error:
            texts[source] = f"(It cannot be read: {error.strerror}.)"
            continue
        text = data[:left].decode("utf-8", "replace").removeprefix("\ufeff")
        text = text.replace("\r\n", "\n").strip()
        if len(data) > left:
            text = f"{text.rstrip(chr(0xFFFD))}\n{_CUT}".lstrip()
        left = max(0, left - len(data))
        texts[source] = text
    return texts
