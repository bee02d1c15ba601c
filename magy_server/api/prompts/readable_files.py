"""This module tells which files may be shown to a model: those that no rule keeps from agents."""

from __future__ import annotations

import os
from collections.abc import Sequence

from magy_server.api.connected import Connected
from magy_server.api.places import canonical, innermost
from magy_server.core import permit
from magy_server.core.text.sanitizing import printable
from magy_server.core.values import Facts, Resource
from magy_server.tools.editor.uris import named
from magy_server.tools.files.paths import below, resource

LONGEST = 500
"""Characters of a name that is no path's."""


class Reach:
    def __init__(self, at: Connected) -> None:
        self._world = at.service.world
        self.roots = at.roots

    def root_of(self, path: str) -> str:
        """The innermost workspace folder around a file (canonical path), else its directory."""
        return innermost(self.roots, path) or os.path.dirname(path)

    def name(self, path: str) -> str:
        """Returns the name that models and people read: relative to its workspace folder, if it is
        in one, and on one line."""
        root = innermost(self.roots, path)
        return printable((below(root, path) if root else None) or path)

    def called(self, uri: str) -> str:
        """The name of a document, be it a file or not."""
        path = canonical(uri)
        return self.name(path) if path else printable(uri[:LONGEST])

    def denied(self, path: str) -> bool:
        """Whether agents may not even ask to read it. Raises InvalidConfig: the rules are not
        known."""
        root = self.root_of(path)
        return self._denied(root, (resource(root, path, "read"),))

    def hidden(self, uri: str) -> bool:
        """Returns whether Magy may show nothing of a document: it is a file that agents may not
        read, or may be about one (an old version of it, say). Raises InvalidConfig."""
        path = canonical(uri)
        if path is not None:
            return self.denied(path)
        return any(self._denied(root, named(root, uri)) for root in self.roots or ("/",))

    def _denied(self, root: str, found: Sequence[Resource]) -> bool:
        facts = Facts(resources=tuple(found))
        rules = self._world.rules(root)
        return bool(found) and permit.decide(facts, "read", "read", rules).action == "deny"
