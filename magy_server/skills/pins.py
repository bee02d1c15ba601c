"""An installed skill is pinned: a hash of all its files is kept, and one that changed is not used.

The pin lies in the skill's own folder, so that both come and go by one rename.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict

from magy_server.core.errors import InvalidConfig
from magy_server.dataclass import dataclass
from magy_server.regular_files import beginning

FILE = ".magy-pin"
MOST_FILES = 1_000
LARGEST = 16 << 20
"""Bytes of all files of one skill."""
_LARGEST_PIN = 64 << 10
"""Bytes."""
_NO_PART = (".git", FILE)
"""What may lie in a skill's folder and is no part of it."""


@dataclass(frozen=True, slots=True)
class Pin:
    """`hash`: SHA-256 over names and contents of the skill's files. `origin`: where it came from,
    as it was given; `part`: the folder in there. `at`: when, in UTC (ISO 8601)."""

    hash: str
    origin: str
    part: str = ""
    at: str = ""


def read(folder: str) -> Pin | None:
    """Returns the pin of a skill; None: it was not installed. Raises InvalidConfig."""
    path = os.path.join(folder, FILE)
    try:
        data = beginning(path, _LARGEST_PIN, linked=False)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InvalidConfig(f"{path} cannot be read: {error.strerror}.") from None
    try:
        return Pin(**json.loads(data or b""))
    except (ValueError, TypeError, RecursionError):
        raise InvalidConfig(
            f"{path} is not as Magy wrote it; look at the skill, then run `magy skills install "
            f"{folder}`."
        ) from None


def write(pin: Pin, folder: str) -> None:
    """Raises OSError."""
    import tempfile

    path = os.path.join(folder, FILE)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(folder), prefix=".pin-") as beside:
        fresh = os.path.join(beside, FILE)
        with open(fresh, "x", encoding="utf-8") as file:
            json.dump(asdict(pin), file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)


def check(pin: Pin, folder: str) -> None:
    """Raises InvalidConfig unless the skill is as it was installed."""
    if tree_hash(folder) != pin.hash:
        name = os.path.basename(folder)
        raise InvalidConfig(
            f"{folder} has changed since you installed it from {pin.origin}. Look at it; then run "
            f"`magy skills install {folder}` to take it as it is, or `magy skills remove {name}`."
        )


def tree_hash(folder: str) -> str:
    """SHA-256 over names and contents of all files. Raises InvalidConfig for what cannot be
    vouched for: a link, what is no regular file, or too much."""
    total = hashlib.sha256()
    left = LARGEST
    paths = sorted(files_of(folder))
    if len(paths) > MOST_FILES:
        raise InvalidConfig(f"{folder} has more than {MOST_FILES} files; it cannot be installed.")
    for path in paths:
        name = os.path.relpath(path, folder).encode("utf-8", "surrogateescape")
        if os.path.islink(path):
            raise InvalidConfig(f"{path} is a symbolic link; a skill must hold the file itself.")
        try:
            data = beginning(path, left, linked=False)
        except OSError as error:
            raise InvalidConfig(f"{path} cannot be read: {error.strerror}.") from None
        if data is None:
            raise InvalidConfig(f"{path} is not a regular file; it cannot be installed.")
        left -= len(data)
        if left < 0:
            raise InvalidConfig(f"{folder} has more than {LARGEST >> 20} MB of files.")
        total.update(len(name).to_bytes(4, "big") + name + len(data).to_bytes(8, "big") + data)
    return total.hexdigest()


def files_of(folder: str) -> Iterator[str]:
    """The paths of what belongs to a skill, its files and links, in no order, one more than may be
    installed at most."""
    count = 0
    for directory, folders, names in os.walk(folder):
        if directory == folder:
            folders[:] = [one for one in folders if one not in _NO_PART]
            names = [one for one in names if one not in _NO_PART]
        links = [one for one in folders if os.path.islink(os.path.join(directory, one))]
        for name in (*names, *links):
            yield os.path.join(directory, name)
            count += 1
            if count > MOST_FILES:
                return


def copy(folder: str, target: str) -> None:
    """Copies what belongs to a skill. Raises OSError."""
    import shutil

    for path in files_of(folder):
        to = os.path.join(target, os.path.relpath(path, folder))
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy2(path, to, follow_symlinks=False)
