"""The modules of plugins are made from the sources that were hashed: what Python keeps of compiled
sources, which nobody has hashed, is neither used nor written."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any, NoReturn

from magy_server.plugins.installed import Installed


class _Sources(SourceFileLoader):
    """Python compares what it keeps with the time and the size of the source. Here it has neither,
    so that it compiles the source itself."""

    def path_stats(self, path: Any) -> NoReturn:
        raise OSError(f"{path} is always compiled")


class _Finder:
    """Finds the modules of plugins, before others do: an entry of `sys.meta_path`. How those that
    are installed for development are found is up to those who installed them."""

    def __init__(self) -> None:
        self.tops: set[str] = set()
        self.editable: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        top = name.partition(".")[0]
        if top in self.tops:
            spec = PathFinder.find_spec(name, path, target)
        elif top in self.editable:
            others = (one for one in sys.meta_path if one is not self)
            found = (one.find_spec(name, path, target) for one in others)
            spec = next(filter(None, found), None)
        else:
            return None
        if spec and spec.origin and type(spec.loader) is SourceFileLoader:
            spec.loader, spec.cached = _Sources(name, spec.origin), None
        return spec


_finder = _Finder()


def import_module(plugin: Installed, name: str) -> ModuleType:
    """Imports a module of a plugin; all that its package imports of itself, now and later, comes
    from sources, too. May raise anything."""
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    (_finder.editable if plugin.editable else _finder.tops).add(name.partition(".")[0])
    return importlib.import_module(name)


def forget(top: str) -> dict[str, ModuleType]:
    """The next import of this package, or of what is in it, makes its modules anew. Returns those
    that there were."""
    names = [name for name in sys.modules if name == top or name.startswith(f"{top}.")]
    importlib.invalidate_caches()
    return {name: sys.modules.pop(name) for name in names}
