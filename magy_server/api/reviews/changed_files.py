"""This module tells what a client hears of files whose review has changed."""

from __future__ import annotations

from collections.abc import Mapping

from magy_server.api.reviews import present
from magy_server.api.reviews.view import View
from magy_server.api.wire import reviews as wire
from magy_server.core.errors import MagyError


async def changed_files(view: View, roots: Mapping[str, str]) -> wire.ReviewChanged:
    """`roots`: the workspace root of each file, by its path."""
    files = [entry for path in roots for entry in await _entries(view, path, roots[path])]
    return wire.ReviewChanged(files=files)


async def _entries(view: View, path: str, root: str) -> list[wire.ReviewEntry]:
    found = []
    for proposed in (False, True):
        try:
            file = await view.file(path, proposed)
        except MagyError:
            continue  # `magy/review/get` says why
        if file is not None:
            found.append(present.entry(file, view.uri))
    return found or [present.gone(root, path, view.uri)]
