"""The configuration that holds for each workspace root, with its trust."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from magy_server import config
from magy_server.core.errors import NotTrusted
from magy_server.core.permit import Rule, Ruleset
from magy_server.engine.engine import Engine
from magy_server.engine.trust import files_hash
from magy_server.engine.world import read_project


@dataclass(frozen=True, slots=True)
class Project:
    loaded: config.Loaded
    rules: tuple[Ruleset, ...]
    trusted: bool


class Projects:
    """`options` are the editor's settings. Implements `engine.trust.Trust`."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.engine: Engine | None = None
        self._options = options
        self._known: dict[str | None, Project] = {None: self._read(None, trusted=False)}

    def add(self, root: str, trusted_hash: str | None) -> None:
        """Reads a root's configuration. Raises InvalidConfig naming file and key."""
        trusted = trusted_hash is not None and trusted_hash == _hash(root)
        self._known[root] = self._read(root, trusted=trusted)

    def _read(self, root: str | None, *, trusted: bool) -> Project:
        loaded = config.load(root, trusted=trusted, options=self._options)
        rules = tuple(ruleset(source, table) for source, table in loaded.rules)
        return Project(loaded, rules, trusted)

    def of(self, root: str | None) -> Project:
        if root not in self._known:
            assert root is not None
            self.add(root, None)
        return self._known[root]

    def rules(self, root: str | None) -> Sequence[Ruleset]:
        return self.of(root).rules

    def settings(self, root: str | None) -> config.Settings:
        return self.of(root).loaded.settings

    def trusted(self, root: str) -> bool:
        return self.of(root).trusted

    def ignored(self, root: str) -> Sequence[str]:
        return self.of(root).loaded.ignored

    async def set(self, root: str, trusted: bool) -> None:
        """Remembers the person's word, for the root's Magy files as they are now."""
        assert self.engine is not None
        await self.engine.trust(root, files_hash(root) if trusted else "", trusted)
        known = await read_project(self.engine.world.store, root)
        self.add(root, known.trusted)


def _hash(root: str) -> str | None:
    """None: nothing that a person can have trusted."""
    try:
        return files_hash(root)
    except NotTrusted:
        return None


def ruleset(source: str, table: config.Permission) -> Ruleset:
    """A `permission` table of a configuration file as rules."""
    keys = {key: tuple(_rules(rules)) for key, rules in table.items()}
    return Ruleset(source=source, keys=keys).at_home(os.path.expanduser("~"))


def _rules(rules: config.Action | config.Patterns | list[config.Patterns]) -> Iterator[Rule]:
    if isinstance(rules, str):
        yield Rule(pattern="*", action=rules, bare=True)
        return
    for patterns in rules if isinstance(rules, list) else [rules]:
        for pattern, action in patterns.items():
            yield Rule(pattern=pattern, action=action)
