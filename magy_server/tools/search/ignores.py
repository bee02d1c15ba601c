"""What is left out of a search, by the rules of ripgrep: .gitignore within a git repository,
.git/info/exclude, .ignore and .rgignore, and the stores of version control.

A file is judged by the rules of its directory and of those above it, up to the repository's (for
.gitignore) or the file system's root. The directory that is searched itself is never judged.
Paths are bytes, as ripgrep matches them.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from functools import lru_cache

from magy_server.tools.search.globs import BadGlob, expanded, regex

STORES = (".git", ".hg", ".svn", ".jj", ".bzr")
"""Of version control; hidden files else are searched."""
_STORES = frozenset(name.encode() for name in STORES)
_FILES = (b".rgignore", b".ignore", b".gitignore")
LARGEST = 1 << 18
"""Bytes of an ignore file that are read."""
LONGEST = 1_000
MOST = 5_000
"""Characters of a line, and lines; others are left out."""


class Rules:
    """The lines of one ignore file; the last that matches counts."""

    def __init__(self, data: bytes) -> None:
        self._negated: list[bool] = []
        files, folders = _Lines(), _Lines()
        for line in _lines(data):
            if (parsed := _parse(line)) is not None:
                negated, only_folders, globs = parsed
                for lines in (folders,) if only_folders else (folders, files):
                    lines.add(len(self._negated), globs)
                self._negated.append(negated)
        self._files, self._folders = files, folders
        files.build()
        folders.build()

    def __bool__(self) -> bool:
        return bool(self._negated)

    def verdict(self, path: bytes, name: bytes, folder: bool) -> bool | None:
        """Whether it is ignored; None when no line matches. `path` is from the file's directory."""
        at = (self._folders if folder else self._files).last(path, name)
        return None if at < 0 else not self._negated[at]


class _Lines:
    """Lines by number. Plain names and `*.ext`, which most are, are looked up; of the others one
    expression says which is the last that matches."""

    def __init__(self) -> None:
        self._known: dict[bytes, int] = {}
        self._names: list[tuple[int, str]] = []
        self._paths: list[tuple[int, str]] = []
        self._name, self._path = _Last([]), _Last([])

    def add(self, number: int, globs: list[str]) -> None:
        for glob in globs:
            if "/" not in glob.removeprefix("**/") and glob.startswith("**/"):
                name = glob[3:]
                if re.fullmatch(r"(?:\*\.)?[\w-]+|\.?[\w-]+(?:\.[\w-]+)*", name, re.ASCII):
                    self._known[name.encode()] = number
                else:
                    self._names.append((number, regex(name)))
            else:
                self._paths.append((number, regex(glob)))

    def build(self) -> None:
        self._name, self._path = _Last(self._names), _Last(self._paths)

    def last(self, path: bytes, name: bytes) -> int:
        dot = name.rfind(b".")
        return max(
            self._known.get(name, -1),
            self._known.get(b"*" + name[dot:], -1) if dot >= 0 else -1,
            self._name(name),
            self._path(path),
        )


class _Last:
    def __init__(self, numbered: list[tuple[int, str]]) -> None:
        numbered = numbered[::-1]
        self._numbers = [number for number, _ in numbered]
        joined = "|".join(f"({each})" for _, each in numbered)
        self._regex = re.compile(joined.encode("latin-1"), re.DOTALL) if numbered else None

    def __call__(self, text: bytes) -> int:
        found = self._regex.fullmatch(text) if self._regex else None
        return self._numbers[found.lastindex - 1] if found and found.lastindex else -1


def _lines(data: bytes) -> list[str]:
    """As bytes in the guise of characters: patterns match bytes. Nothing is read behind a line that
    is not UTF-8."""
    lines = []
    for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        try:
            text = line.decode()
        except UnicodeDecodeError:
            break
        text = text if text.endswith("\\ ") else text.rstrip()
        if text and len(text) <= LONGEST and not text.startswith("#"):
            lines.append(text.encode().decode("latin-1"))
    return lines[:MOST]


def _parse(line: str) -> tuple[bool, bool, list[str]] | None:
    """(negated, only for directories, patterns) of a line; None when it is no pattern."""
    anchored, negated = False, False
    if line.startswith(("\\!", "\\#")):
        line = line[1:]
    else:
        negated, line = line.startswith("!"), line.removeprefix("!")
        anchored, line = line.startswith("/"), line.removeprefix("/")
    only_folders = line.endswith("/")
    line = line.removesuffix("/")
    if not anchored and "/" not in line and line != "**":
        line = f"**/{line}"
    if line.endswith("/**"):
        line += "/*"
    try:
        globs = expanded(line)
        for glob in globs:
            re.compile(regex(glob))
    except (BadGlob, re.error):
        return None
    return negated, only_folders, globs


@lru_cache(maxsize=512)
def _rules(path: bytes, stamp: tuple[int, int, int, int]) -> Rules:
    """The rules of the file as it was at `stamp`."""
    return Rules(_read(path))


def _read(path: bytes) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return b""
        return file.read(LARGEST)


def _load(path: bytes) -> Rules | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    stamp = (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)
    return _rules(path, stamp) or None


@dataclass(frozen=True, slots=True)
class Level:
    """The rules for what lies in one directory. `kinds` are those of .rgignore, .ignore, .gitignore
    and exclude, with the length of the path they are for; of each kind the nearest come first."""

    kinds: tuple[tuple[tuple[int, Rules], ...], ...] = ((), (), (), ())
    in_git: bool = False
    rules: tuple[tuple[int, Rules], ...] = ()

    def below(self, folder: bytes, names: frozenset[bytes] | None = None) -> Level:
        """The level of `folder`, this being its parent's. `names`: what is known to lie in it."""

        def there(name: bytes) -> bool:
            return names is None or name in names

        prefix = folder.rstrip(b"/") + b"/"
        has_git = there(b".git") and os.path.exists(prefix + b".git")
        own = [_load(prefix + name) if there(name) else None for name in _FILES]
        own.append(_load(_exclude(prefix)) if has_git else None)
        if not has_git and not any(own):
            return self
        inherited = [*self.kinds[:2], *(((), ()) if has_git else self.kinds[2:])]
        kinds = tuple(
            (((len(prefix), rules), *above) if rules else above)
            for rules, above in zip(own, inherited, strict=True)
        )
        in_git = has_git or self.in_git
        active = kinds if in_git else kinds[:2]
        return Level(kinds, in_git, tuple(each for kind in active for each in kind))

    def ignores(self, path: bytes, name: bytes, folder: bool) -> bool:
        """`path` is absolute; `name` its last part."""
        if name in _STORES:
            return True
        for start, rules in self.rules:
            verdict = rules.verdict(path[start:], name, folder)
            if verdict is not None:
                return verdict
        return False


def level(folder: bytes) -> Level:
    """Whether an absolute path is ignored, by the rules of all directories above it."""
    found = Level().below(b"/")
    at = b""
    for part in folder.strip(b"/").split(b"/"):
        if part:
            at += b"/" + part
            found = found.below(at)
    return found


def visible(root: str, path: str) -> bool:
    """Whether a search in `root` would look into `path`, which lies below it. Both are absolute."""
    base, at = os.fsencode(root), os.fsencode(root).rstrip(b"/")
    here = level(base)
    *folders, name = os.fsencode(path)[len(at) + 1 :].split(b"/")
    for folder in folders:
        at += b"/" + folder
        if here.ignores(at, folder, True):
            return False
        here = here.below(at)
    return not here.ignores(at + b"/" + name, name, False)


def _exclude(prefix: bytes) -> bytes:
    """Where the repository keeps its own list. In a work tree beside the main one `.git` is a file
    that leads to it."""
    if not os.path.isfile(prefix + b".git"):
        return prefix + b".git/info/exclude"
    line = _read(prefix + b".git").split(b"\n")[0].rstrip(b"\r")
    store = line.removeprefix(b"gitdir: ")
    common = _read(os.path.join(store, b"commondir")).split(b"\n")[0].rstrip(b"\r")
    if store == line or not store.startswith(b"/") or not common:
        return prefix + b".git/info/exclude"
    return os.path.join(store, common, b"info/exclude")
