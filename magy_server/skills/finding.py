"""Skills lie in folders, each as `NAME/SKILL.md` or as `NAME.yaml`; the last folder counts most.

First those that Magy ships, then those of plugins, then the person's, then those of the project, if
it is trusted. A file that is wrong takes no other down, but no skill of the same name stands in for
it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

from magy_server import regular_files
from magy_server.core.errors import InvalidConfig
from magy_server.core.skills.skill import Skill, Skills, Source, parse_skill
from magy_server.skills import pins

PROJECT = (
    "magent-skills", ".agents/skills", ".claude/skills", ".magent/skills", ".magy/skills",
)  # fmt: skip
"""Below a workspace root."""
MOST = 200
"""Skills of one folder that are read; the first by name."""
LARGEST = 256 << 10
"""Bytes of the text of one."""
_ADVICE = (
    "keep what an agent always needs in it, and put the rest into files beside it, which it reads "
    "when it needs them"
)
FILE = "SKILL.md"
_STEPS = (".yaml", ".yml")


class Folder(NamedTuple):
    path: str
    source: Source
    plugin: str = ""


class _Found(NamedTuple):
    """`within`: what a link may not lead out of, "" for a person's own folders. `beside`: a file
    that has the same name and is not read."""

    name: str
    path: str
    folder: Folder
    within: str
    beside: str = ""


def own_folder(config: str) -> str:
    """The person's folder for Magy; `config` is the directory with their `magy.toml`."""
    return os.path.join(config, "skills")


def user_folders(config: str, home: str) -> list[Folder]:
    paths = (
        os.path.join(home, ".agents", "skills"),
        os.path.join(home, ".claude", "skills"),
        os.path.join(config, "magent-skills"),
        own_folder(config),
    )
    return [Folder(path, "user") for path in paths]


def project_folders(root: str) -> list[Folder]:
    return [Folder(os.path.join(root, *name.split("/")), "project") for name in PROJECT]


def find_skills(
    bundled: Mapping[str, Skill],
    config: str,
    home: str,
    root: str | None,
    *,
    trusted: bool,
    brought: Mapping[str, str] = MappingProxyType({}),
) -> Skills:
    """The skills of a workspace root. `brought`: by plugin, the folder of those that it brings."""
    reading = _Reading(bundled, own_folder(config))
    for plugin, place in brought.items():
        reading.folder(Folder(place, "installed", plugin), place)
    for folder in user_folders(config, home):
        reading.folder(folder, "")
    untrusted: dict[str, str] = {}
    for folder in project_folders(root) if root else ():
        if trusted:
            reading.folder(folder, root or "")
        else:
            untrusted |= {one.name: one.path for one in _listed(folder, root or "")}
    return Skills(reading.skills, reading.broken, untrusted, tuple(reading.problems))


def user_files(config: str, home: str) -> Iterator[str]:
    """What is read of the person's folders, for finding out whether it changed."""
    for folder in user_folders(config, home):
        for one in _listed(folder, ""):
            pin = os.path.join(os.path.dirname(one.path), pins.FILE)
            if folder.path == own_folder(config) and os.path.lexists(pin):
                yield pin
                yield from pins.files_of(os.path.dirname(one.path))
            else:
                yield one.path


def looked_through(config: str, home: str) -> Iterator[str]:
    """The folders in which a file of the person's skills could be added, whether they are there or
    not."""
    for folder in user_folders(config, home):
        yield folder.path
        for path in _within(folder.path):
            yield path
            if os.path.lexists(os.path.join(path, pins.FILE)):
                for place, names, _ in islice(os.walk(path), pins.MOST_FILES):
                    yield from (os.path.join(place, name) for name in names)


def _within(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in islice(entries, 20 * MOST) if entry.is_dir()]
    except OSError:
        return []


class _Reading:
    def __init__(self, bundled: Mapping[str, Skill], own: str) -> None:
        self.skills = dict(bundled)
        self.broken: dict[str, str] = {}
        self.problems: list[str] = []
        self._own = own

    def folder(self, folder: Folder, within: str) -> None:
        found = _listed(folder, within)
        if len(found) > MOST:
            self.problems.append(
                f"{folder.path} has more than {MOST} skills; Magy ignores those after "
                f"{found[MOST - 1].name}."
            )
        for one in found[:MOST]:
            if one.beside:
                self.problems.append(
                    f"{one.beside} is not read: {one.path} is a skill of the same name."
                )
            try:
                skill = self._skill(one)
            except InvalidConfig as error:
                self.skills.pop(one.name, None)
                self.broken[one.name] = error.message
                self.problems.append(error.message)
            else:
                self.broken.pop(one.name, None)
                self.skills.pop(one.name, None)
                self.skills[one.name] = skill

    def _skill(self, one: _Found) -> Skill:
        source = one.folder.source
        folder = os.path.join(one.folder.path, one.name)
        if one.folder.path == self._own and (pin := pins.read(folder)):
            source = "installed"
            pins.check(pin, folder)
        found = parse_skill(one.name, _text(one.path, one.within), one.path, source)
        plugin = one.folder.plugin
        return found.model_copy(update={"plugin": plugin}) if plugin else found


def _listed(folder: Folder, within: str) -> list[_Found]:
    """The files of its skills by name, one more than are read at most. A folder that is not there
    has none."""
    try:
        with os.scandir(folder.path) as entries:
            named = sorted(filter(None, map(_file_of, islice(entries, 20 * MOST))))
    except OSError:
        return []
    found: dict[str, _Found] = {}
    for name, path in named:
        beside = found[name].path if name in found else ""
        found[name] = _Found(name, path, folder, within, beside)
    return list(found.values())[: MOST + 1]


def _file_of(entry: os.DirEntry[str]) -> tuple[str, str] | None:
    """(name, path) of a skill."""
    if entry.name.startswith("."):
        return None
    name, ending = os.path.splitext(entry.name)
    if ending in _STEPS:
        return name, entry.path
    path = os.path.join(entry.path, FILE)
    return (entry.name, path) if os.path.lexists(path) else None


def below(path: str) -> Sequence[str]:
    """Returns the skills that a folder holds, if it is none itself and holds some, else itself."""
    if os.path.lexists(os.path.join(path, FILE)):
        return [path]
    return [one.path for one in _listed(Folder(path, "user"), "")] or [path]


def read_one(path: str, source: Source = "user") -> Skill:
    """The skill of a folder, or of a file of YAML, wherever that lies. Raises InvalidConfig."""
    path = os.path.abspath(path)
    if os.path.isdir(path):
        return parse_skill(
            os.path.basename(path), _text(os.path.join(path, FILE), ""),
            os.path.join(path, FILE), source,
        )  # fmt: skip
    name, ending = os.path.splitext(os.path.basename(path))
    if os.path.basename(path) == FILE:
        name = os.path.basename(os.path.dirname(path))
    elif ending not in _STEPS:
        raise InvalidConfig(f"{path} is no skill; name a folder with a {FILE}, or a YAML file.")
    return parse_skill(name, _text(path, ""), path, source)


def _text(path: str, within: str) -> str:
    """Raises InvalidConfig."""
    return regular_files.text(path, LARGEST, _ADVICE, within)
