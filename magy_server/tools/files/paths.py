"""Paths that models name become canonical paths inside the workspace, and are opened safely.

A path is resolved once, when the facts of a call are gathered; permission is decided on that
canonical path, and the tool opens that same path without following any link: directory by
directory from the root. A link put there in between makes the tool fail, not escape.
"""

from __future__ import annotations

import difflib
import errno
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from magy_server.core.errors import ToolError
from magy_server.core.text.surrogates import whole
from magy_server.core.values import Effect, Facts, Resource
from magy_server.dataclass import dataclass
from magy_server.regex import regex

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_UNMEANT = regex(r"[\x00-\x1f\x7f\ud800-\udfff]")
_MISSING = (errno.ENOENT, errno.ENOTDIR)
LINKED = (
    "a symbolic link was put in this path after it was checked; nothing was done. Call again if "
    "you mean the new target."
)


@dataclass(frozen=True, slots=True)
class Place:
    """A file inside the workspace: `root` and `path` are canonical, `name` is `path` below `root`
    (as models and people read it; "." for the root itself)."""

    root: str
    path: str
    name: str


def canonical(root: str, path: str) -> str:
    """The absolute path with every link followed, also when its last parts do not exist yet.

    `path` is taken from `root` (canonical). Raises ToolError for a path that cannot be meant.
    """
    if not path:
        raise ToolError("path is empty; name a file relative to the workspace root.")
    if not path.isprintable() and _UNMEANT.search(path):
        raise ToolError(f"path {path!a} has control characters in it; use the plain file name.")
    if path == "~" or path.startswith("~/"):
        raise ToolError(
            f"{path}: `~` is not expanded here; use a path relative to the workspace root."
        )
    with suppress(OSError, ValueError):  # nearly always all of it exists
        return os.path.realpath(os.path.join(root, path), strict=True)
    try:
        found = os.path.realpath(os.path.join(root, path))
        parts = (found, *map(str, Path(found).parents))
        loop = next(filter(os.path.islink, parts), None)
    except (OSError, ValueError) as error:
        raise ToolError(f"{path}: {_reason(error)}; use another path.") from None
    if loop is not None:
        raise ToolError(f"{path}: {loop} is a symbolic link that leads back to itself.")
    return found


def below(root: str, path: str) -> str | None:
    """`path` relative to `root`, both canonical; "." for the root itself, None when outside."""
    if path == root:
        return "."
    prefix = root if root.endswith("/") else root + "/"
    return path[len(prefix) :] if path.startswith(prefix) else None


def resolve(root: str, path: str) -> Place:
    """Raises ToolError also for a path that leads out of the workspace or to no regular file or
    directory (device, fifo, socket)."""
    found = canonical(root, path)
    if whole(found) != found:
        raise ToolError(f"{path} leads to {found!a}, whose name is not UTF-8; only a command can "
                        "use it.")  # fmt: skip
    name = below(root, found)
    if name is None:
        leads = f" (it leads to {found})" if found != os.path.normpath(path) else ""
        raise ToolError(
            f"outside the workspace: {path}{leads}. File tools only touch files below {root}."
        )
    try:
        mode = os.lstat(found).st_mode
    except OSError:
        return Place(root, found, name)
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise ToolError(f"{name} is {_kind(mode)}, not a file; only a command can use it.")
    return Place(root, found, name)


def resource(root: str, path: str, kind: Effect) -> Resource:
    """`path` must be canonical. What of its name is not UTF-8 becomes U+FFFD: facts are text."""
    said = whole(path)
    relative = below(root, said)
    return Resource(
        kind=kind, subject=said, relative=relative, exists=os.path.lexists(path),
        repository=_clone(root, relative) if relative and kind == "read" else "",
    )  # fmt: skip


def _clone(root: str, relative: str) -> str:
    """Returns the repository that somebody has cloned into that of the workspace, around a path:
    one with a directory `.git`, as submodules and work trees have a file. A folder that is no
    repository itself may hold the person's own."""
    parts = [] if relative == "." else relative.split("/")
    for count in range(len(parts), 0, -1):
        folder = "/".join(parts[:count])
        if parts[count - 1] != ".git" and os.path.isdir(os.path.join(root, folder, ".git")):
            return folder if os.path.lexists(os.path.join(root, ".git")) else ""
    return ""


def judged(root: str, facts: Facts) -> list[Place]:
    """Returns the places that were judged; tools never resolve them again from the arguments.
    Raises ToolError for a place outside the workspace."""
    for found in facts.resources:
        if found.relative is None:
            raise ToolError(f"{found.subject} is outside the workspace.")
    return [Place(root, found.subject, found.relative or "") for found in facts.resources]


@contextmanager
def directory(place: Place, *, create: bool = False) -> Iterator[tuple[int, str]]:
    """A descriptor of the file's directory, reached without following links, and the file's name
    in it. With `create`, missing directories are made, and removed again when the body fails."""
    if place.name == ".":
        raise ToolError(f"{place.root} is the workspace root, a directory; name a file in it.")
    *folders, name = place.name.split("/")
    fds: list[int] = []
    made: list[tuple[int, str]] = []
    try:
        fds.append(os.open(place.root, _DIRECTORY))
        for folder in folders:
            if create:
                made.extend(_make(fds[-1], folder))
            fds.append(os.open(folder, _DIRECTORY, dir_fd=fds[-1]))
        yield fds[-1], name
    except BaseException as error:
        for fd, folder in reversed(made):
            with suppress(OSError):  # someone else put something there
                os.rmdir(folder, dir_fd=fd)
        if isinstance(error, OSError):
            raise ToolError(explain(error, place)) from None
        raise
    finally:
        for fd in fds:
            os.close(fd)


def _make(fd: int, folder: str) -> list[tuple[int, str]]:
    try:
        os.mkdir(folder, dir_fd=fd)
    except FileExistsError:
        return []
    os.fsync(fd)
    return [(fd, folder)]


def explain(error: OSError, place: Place) -> str:
    """Returns what failed and what to do, for the model."""
    name = place.name
    if error.errno == errno.ELOOP or os.path.realpath(place.path) != place.path:
        return f"{name}: {LINKED}"
    if error.errno in _MISSING:
        return missing(place)
    if error.errno in (errno.EACCES, errno.EPERM):
        return (
            f"{name}: Magy has no permission for it, or for its directory; the owner can grant it."
        )
    if error.errno == errno.EROFS:
        return f"{name} is on a read-only file system; write to another place."
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return (
            f"{name} was not written, and is unchanged: {_reason(error)}. The person must free "
            "some space first."
        )
    return f"{name}: {_reason(error)}; nothing was changed."


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFCHR: "a character device",
        stat.S_IFBLK: "a block device",
        stat.S_IFIFO: "a fifo (named pipe)",
        stat.S_IFSOCK: "a socket",
    }
    return kinds.get(stat.S_IFMT(mode), "a special file")


# --- helping a model that guessed a name --------------------------------------------------------


def missing(place: Place) -> str:
    """Returns the sentence that there is no such file, with names that the model may have meant."""
    at = place.path
    while not os.path.isdir(at) and at != place.root:
        if os.path.isfile(at):
            return f"{place.name} does not exist: {below(place.root, at)} is a file."
        at = os.path.dirname(at)
    if not os.path.isdir(at):
        return f"{place.name} does not exist: the workspace {at} is gone. Tell the user."
    wanted = place.path[len(at) :].strip("/").split("/")[0]
    names = _entries(at)
    near = [os.path.join(at, n) for n in difflib.get_close_matches(wanted, names, 3, 0.6)]
    near += [path for path in _same_name(place) if path not in near]
    if near:
        guess = ", ".join(str(below(place.root, path)) for path in near[:5])
        return f"{place.name} does not exist. Did you mean: {guess}?"
    folder = str(below(place.root, at))
    if folder == ".":
        beside = at == os.path.dirname(place.path)
        folder = "Its directory" if beside else f"There is no {wanted} either; its directory"
    return f"{place.name} does not exist. {folder} has: {listing(at)}"


def listing(path: str, limit: int = 20) -> str:
    """A few entries of a directory, on one line; directories end in `/`."""
    names = _entries(path)
    shown = [n + "/" if os.path.isdir(os.path.join(path, n)) else n for n in names[:limit]]
    more = f", and {len(names) - limit} more" if len(names) > limit else ""
    return (", ".join(shown) + more) or "(nothing)"


def _entries(path: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(path) if name.isprintable())[:2000]
    except OSError:
        return []


def _same_name(place: Place, seconds: float = 0.2) -> list[str]:
    """Files of the same name elsewhere in the workspace, found in bounded time."""
    wanted, found = os.path.basename(place.path), []
    until = time.monotonic() + seconds
    for folder, folders, files in os.walk(place.root):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f != "node_modules")
        if wanted in files:
            found.append(os.path.join(folder, wanted))
        if len(found) >= 5 or time.monotonic() > until:
            break
    return found
