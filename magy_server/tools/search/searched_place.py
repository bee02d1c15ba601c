"""This module gives the place that a tool searches: as facts to be judged, and checked again before
the search."""

from __future__ import annotations

import os

from magy_server.core.errors import ToolError
from magy_server.core.text.sanitizing import printable
from magy_server.core.tool import FactContext
from magy_server.core.values import Facts
from magy_server.tools.files.paths import LINKED, Place, missing, resolve, resource


def facts(ctx: FactContext, path: str, title: str) -> Facts:
    """Returns the fact that a tool reads below `path`, whose name follows `title`. Raises
    ToolError."""
    place = resolve(ctx.root, path)
    found = resource(ctx.root, place.path, "read")
    return Facts(resources=(found,), title=f"{title} {called(place)}")


def check_folder(place: Place) -> None:
    """Raises ToolError unless it is a directory, still the one that was judged."""
    if os.path.isfile(place.path):
        raise ToolError(f"{place.name} is a file, not a directory; read it with read_file.")
    check_there(place)


def check_there(place: Place) -> None:
    """Raises ToolError unless it exists, and no link was put into its path meanwhile."""
    if not os.path.lexists(place.path):
        raise ToolError(missing(place))
    if os.path.realpath(place.path) != place.path:
        raise ToolError(f"{place.name}: {LINKED}")


def called(place: Place) -> str:
    """Returns the name of the place for a sentence."""
    return "the workspace" if place.name == "." else printable(place.name)
