"""This module finds the plugins that installed packages offer, without importing any of them.

A package offers one by an entry point of the group `magy.plugins`: the plugin's name, and where its
`Plugin` is. All files that were installed with the package are hashed, so that what a person has
switched on is what runs.
"""

from __future__ import annotations

import csv
import hashlib
import importlib.util
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from importlib.machinery import PathFinder
from pathlib import PurePosixPath

from magy_server.core.errors import InvalidConfig
from magy_server.core.text.surrogates import whole
from magy_server.dataclass import dataclass
from magy_server.regex import regex
from magy_server.regular_files import beginning

GROUP = "magy.plugins"
NAME = regex(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
LONGEST = 32
"""Characters of a name."""
_VALUE = regex(r"\w+(?:\.\w+)*(?::\w+(?:\.\w+)*)?")
LARGEST = 64 << 20
"""Bytes of all files of one package."""
_UNSTABLE = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")
"""What the installer writes beside the package, for itself."""


@dataclass(frozen=True, slots=True)
class Installed:
    """`value` is `module:attribute`, where the `Plugin` is. `editable`: the package is installed
    for development, so that its files lie elsewhere and change. `skills`: the folder with the
    skills that the package brings, "" if it brings none."""

    name: str
    package: str
    version: str
    value: str
    about: str
    editable: bool
    skills: str

    @property
    def title(self) -> str:
        """Returns it as people are told of it."""
        return f"The plugin {self.name} ({self.package} {self.version})"

    @property
    def advice(self) -> str:
        """Returns what to do when it is wrong."""
        do = "Mend it" if self.editable else "Tell its author"
        return f"{do}; `magy plugins disable {self.name}` switches it off."


def installed() -> tuple[Mapping[str, Installed], tuple[str, ...]]:
    """The plugins by name, and what is wrong with others, in sentences."""
    found: dict[str, Installed] = {}
    problems, seen = [], set[str]()
    for distribution in metadata.distributions():
        try:
            offered = _offered(distribution, seen)
        except Exception as error:
            where = getattr(distribution, "_path", "a package")
            problems.append(
                f"{where} is installed in a way that cannot be read, so no plugin of it is used: "
                f"{type(error).__name__}: {error!s:.500}. Its author must change entry_points.txt "
                "or METADATA; uninstall it, or install it again."
            )
            continue
        for one in offered:
            if len(one.name) > LONGEST or not NAME.fullmatch(one.name):
                problems.append(
                    f"{one.title}: a plugin's name has small letters, digits and single "
                    f"underscores, at most {LONGEST}. Its author must change the entry point."
                )
            elif one.name in found:
                problems.append(
                    f"{one.title} is not used: {found[one.name].package} has a plugin of that "
                    "name. Uninstall one of the two."
                )
            else:
                found[one.name] = one
    return dict(sorted(found.items())), tuple(map(whole, problems))


def _offered(distribution: metadata.Distribution, seen: set[str]) -> list[Installed]:
    """The plugins of a package. Of one that is installed twice, the one that Python would import:
    `seen` are the packages before. May raise anything, if files are not as they must be."""
    text = distribution.read_text("entry_points.txt")
    if not text or GROUP not in text:
        return []
    package = distribution.metadata["Name"]
    if not package:
        raise ValueError("METADATA has no Name")
    name = package.lower().replace("_", "-")
    if name in seen:
        return []
    seen.add(name)
    return [_read(distribution, one) for one in distribution.entry_points if one.group == GROUP]


def _read(distribution: metadata.Distribution, point: metadata.EntryPoint) -> Installed:
    if not _VALUE.fullmatch(point.value):
        raise ValueError(f"the entry point {point.name!r} is {point.value!r}, not module:attribute")
    about = distribution.metadata
    return Installed(
        name=point.name,
        package=about["Name"],
        version=str(about["Version"] or "?"),
        value=point.value,
        about=about["Summary"] or "",
        editable=_is_editable(distribution),
        skills=_skills(point.value.partition(":")[0]),
    )


def _is_editable(distribution: metadata.Distribution) -> bool:
    try:
        origin = json.loads(distribution.read_text("direct_url.json") or "{}")
        return bool(origin.get("dir_info", {}).get("editable"))
    except (ValueError, AttributeError):
        return False


def _skills(module: str) -> str:
    """The folder `skills` of the package that the module is in. Nothing of it is imported."""
    try:
        spec = importlib.util.find_spec(module.partition(".")[0])
    except (ImportError, ValueError):
        return ""
    for place in (spec.submodule_search_locations or ()) if spec else ():
        folder = os.path.join(place, "skills")
        if os.path.isdir(folder):
            return folder
    return ""


def files_hash(plugin: Installed) -> str:
    """SHA-256 over names and contents of all files that were installed with the plugin's package,
    and of all others that lie in its directories. Raises InvalidConfig."""
    files = _files(plugin)
    _check_origin(plugin, files.values())
    total, left = hashlib.sha256(plugin.value.encode()), LARGEST
    for file, place in sorted(files.items()):
        try:
            data = beginning(place, left)
        except (OSError, ValueError) as error:
            raise InvalidConfig(
                f"{plugin.title}: {file} cannot be read ({error}). Install {plugin.package} again."
            ) from None
        if data is None:
            raise InvalidConfig(f"{plugin.title}: {file} is no regular file. Remove it.")
        left -= len(data)
        if left < 0:
            raise InvalidConfig(f"{plugin.title} has more than {LARGEST >> 20} MB of files.")
        name = os.fsencode(file)
        total.update(len(name).to_bytes(4, "big") + name + len(data).to_bytes(8, "big") + data)
    return total.hexdigest()


def _check_origin(plugin: Installed, files: Iterable[str]) -> None:
    """What Python would import must be what is hashed. Raises InvalidConfig."""
    top = plugin.value.partition(":")[0].partition(".")[0]
    spec = PathFinder.find_spec(top)
    if not spec or not spec.origin:  # a namespace, which has no code
        return
    if os.path.realpath(spec.origin) not in map(os.path.realpath, files):
        raise InvalidConfig(
            f"{plugin.title} cannot be used: its module {top} is {spec.origin}, which is no file "
            f"of {plugin.package}. Remove what does not belong there."
        )


def _files(plugin: Installed) -> dict[PurePosixPath, str]:
    """What is hashed, by the path below where packages are installed: absolute paths. Raises
    InvalidConfig."""
    try:
        distribution = metadata.distribution(plugin.package)
        listed = distribution.files
    except (OSError, ValueError, csv.Error, metadata.PackageNotFoundError) as error:
        raise InvalidConfig(
            f"{plugin.title} cannot be pinned: the list of its files (RECORD) cannot be read "
            f"({error}). Install {plugin.package} again."
        ) from None
    if listed is None:
        raise InvalidConfig(
            f"{plugin.title} cannot be pinned: it has no list of its files (RECORD). Install "
            f"{plugin.package} with pip, or a program like it."
        )
    base = str(distribution.locate_file(""))
    names = {PurePosixPath(file) for file in listed if file.name not in _UNSTABLE}
    names = {name for name in names if not _is_cached(name)}
    for folder in {name.parent for name in names}:
        if folder.parts and not _is_shared(folder):
            names.update(_below(plugin, base, folder))
    return {name: os.path.join(base, name) for name in names}


def _is_shared(folder: PurePosixPath) -> bool:
    """Whether others write there, too: outside of where packages are, or in what is known of
    one."""
    return folder.is_absolute() or ".." in folder.parts or folder.parts[0].endswith(".dist-info")


def _below(plugin: Installed, base: str, folder: PurePosixPath) -> Iterator[PurePosixPath]:
    """The files of a directory, and of those in it: Python would import them, too."""
    for place, folders, files in os.walk(os.path.join(base, folder)):
        here = PurePosixPath(os.path.relpath(place, base))
        for name in folders:
            if os.path.islink(os.path.join(place, name)):
                raise InvalidConfig(
                    f"{plugin.title} cannot be pinned: {here / name} is a link to a directory. "
                    f"Install {plugin.package} again."
                )
        yield from (here / name for name in files if not _is_cached(here / name))


def _is_cached(name: PurePosixPath) -> bool:
    """Whether it is what Python keeps of compiled sources, which is not used here."""
    return name.suffix == ".pyc" and name.parent.name == "__pycache__"
