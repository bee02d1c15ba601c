"""This module finds the plugins that installed packages offer, without importing any of them.

A package offers one by an entry point of the group `magy.plugins`: the plugin's name, and where its
`Plugin` is. All files that were installed with the package are hashed, so that what a person has
switched on is what runs.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
from collections.abc import Iterator, Mapping
from importlib import metadata

from magy_server.core.errors import InvalidConfig
from magy_server.dataclass import dataclass
from magy_server.regex import regex

GROUP = "magy.plugins"
NAME = regex(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
LONGEST = 32
"""Characters of a name."""
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


def installed() -> tuple[Mapping[str, Installed], tuple[str, ...]]:
    """The plugins by name, and what is wrong with others, in sentences."""
    found: dict[str, Installed] = {}
    problems = []
    for distribution in _offering():
        for point in distribution.entry_points:
            if point.group != GROUP:
                continue
            one = _read(distribution, point)
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
    return dict(sorted(found.items())), tuple(problems)


def _offering() -> Iterator[metadata.Distribution]:
    """The packages that offer a plugin. Of one that is installed twice, the one that Python would
    import."""
    seen = set()
    for distribution in metadata.distributions():
        text = distribution.read_text("entry_points.txt")
        if not text or GROUP not in text:
            continue
        name = str(distribution.metadata["Name"]).lower().replace("_", "-")
        if name not in seen:
            seen.add(name)
            yield distribution


def _read(distribution: metadata.Distribution, point: metadata.EntryPoint) -> Installed:
    about = distribution.metadata
    return Installed(
        name=point.name,
        package=about["Name"],
        version=distribution.version,
        value=point.value,
        about=about["Summary"] or "",
        editable=_is_editable(distribution),
        skills=_skills(point.module),
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
    """SHA-256 over names and contents of all files that were installed with the plugin's package.
    Raises InvalidConfig."""
    files = metadata.distribution(plugin.package).files
    if files is None:
        raise InvalidConfig(
            f"{plugin.title} cannot be pinned: it has no list of its files (RECORD). Install "
            f"{plugin.package} with pip, or a program like it."
        )
    total, left = hashlib.sha256(plugin.value.encode()), LARGEST
    for file in sorted(files):
        if file.name in _UNSTABLE or file.suffix == ".pyc":
            continue
        try:
            with open(str(file.locate()), "rb") as opened:
                data = opened.read(left + 1)
        except OSError as error:
            raise InvalidConfig(
                f"{plugin.title}: {file} cannot be read ({error.strerror}). Install "
                f"{plugin.package} again."
            ) from None
        left -= len(data)
        if left < 0:
            raise InvalidConfig(f"{plugin.title} has more than {LARGEST >> 20} MB of files.")
        name = str(file).encode()
        total.update(len(name).to_bytes(4, "big") + name + len(data).to_bytes(8, "big") + data)
    return total.hexdigest()
