"""An installed skill is pinned: a hash of all its files is kept, and one that changed is not used.

The pins lie in `installed.json` beside the skills.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, field
from typing import Any

from magy_server.core.errors import InvalidConfig
from magy_server.dataclass import dataclass
from magy_server.regular_files import beginning

FILE = "installed.json"
MOST_FILES = 1_000
LARGEST = 16 << 20
"""Bytes of all files of one skill."""
_MOST_PINS = 1 << 20
"""Bytes of the file of pins."""


@dataclass(frozen=True, slots=True)
class Pin:
    """`hash`: SHA-256 over names and contents of the skill's files. `origin`: where it came from,
    as it was given; `part`: the folder in there. `at`: when, in UTC (ISO 8601)."""

    hash: str
    origin: str
    part: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class Pins:
    path: str
    by_name: Mapping[str, Pin] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    file_is_there: bool = False


def read(folder: str) -> Pins:
    """The pins of the skills in a folder; problems are sentences for people."""
    path = os.path.join(folder, FILE)
    try:
        data = beginning(path, _MOST_PINS)
    except FileNotFoundError:
        return Pins(path)
    except OSError as error:
        return Pins(path, problems=(f"{path} cannot be read: {error.strerror}.",))
    try:
        found = {name: Pin(**one) for name, one in json.loads(data or b"").items()}
    except (ValueError, TypeError, AttributeError):
        said = f"{path} is not as Magy wrote it; install the skills in {folder} again."
        return Pins(path, problems=(said,), file_is_there=True)
    return Pins(path, found, file_is_there=True)


def write(pins: Pins, by_name: Mapping[str, Pin]) -> None:
    """Replaces the file, whole or not at all. Raises OSError."""
    whole: dict[str, Any] = {name: asdict(pin) for name, pin in sorted(by_name.items())}
    folder = os.path.dirname(pins.path)
    with tempfile.NamedTemporaryFile("w", dir=folder, delete=False) as file:
        json.dump(whole, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    os.replace(file.name, pins.path)


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
    """The paths of its files and links, in no order, one more than may be installed at most."""
    count = 0
    for directory, folders, names in os.walk(folder):
        links = [one for one in folders if os.path.islink(os.path.join(directory, one))]
        for name in (*names, *links):
            yield os.path.join(directory, name)
            count += 1
            if count > MOST_FILES:
                return
