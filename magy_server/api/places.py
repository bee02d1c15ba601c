"""This module finds which place a client means: the canonical path of a file or directory, and the
workspace around a directory. It makes the URIs of files and of texts that are only shown.

`magy://base/PATH` is what a person has accepted of a file, `magy://proposed/PATH` what it is
proposed to be. The path of such a URI is the file's own: an editor finds the language by its
extension, and does not take a file beside its base for a renamed one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Literal
from urllib.parse import SplitResult, quote_from_bytes, unquote_to_bytes, urlsplit

from magy_server.core.errors import InvalidRequest, NotText
from magy_server.core.text.surrogates import whole
from magy_server.tools.files.paths import below

SCHEME = "magy"
Side = Literal["base", "proposed"]
_SIDES: tuple[Side, ...] = ("base", "proposed")


def canonical(uri: str) -> str | None:
    """The canonical absolute path of a local file's URI; None for any other."""
    parts = split(uri)
    path = os.fsdecode(unquote_to_bytes(parts.path))
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or "\0" in path:
        return None
    return os.path.realpath(path) if path.startswith("/") else None


def split(uri: str) -> SplitResult:
    """Splits a URI; all parts are empty for a text that is no URI."""
    try:
        return urlsplit(uri)
    except ValueError:
        return urlsplit("")


def uri_of(path: str) -> str:
    return PurePath(path).as_uri()


def paths_of(uri: str) -> tuple[str, ...]:
    """Returns the canonical path of a file; if the URI names it by a link, the path of the link
    comes before it, for a link can be under review, too. Raises InvalidRequest."""
    path = canonical(uri)
    if path is None:
        raise InvalidRequest(f"{uri!r} is not the URI of a file on this machine.")
    named = os.path.normpath(os.fsdecode(unquote_to_bytes(urlsplit(uri).path)))
    if not os.path.islink(named):
        return (path,)
    parent, name = os.path.split(named)
    return (os.path.join(os.path.realpath(parent), name), path)


def virtual_uri(side: Side, path: str) -> str:
    return f"{SCHEME}://{side}{quote_from_bytes(os.fsencode(path))}"


def of_virtual(uri: str) -> tuple[Side, str]:
    """Raises InvalidRequest."""
    parts = split(uri)
    path = os.fsdecode(unquote_to_bytes(parts.path))
    for side in _SIDES:
        if parts[:2] == (SCHEME, side) and path.startswith("/") and "\0" not in path:
            return side, path
    raise InvalidRequest(f"{uri!r} is not a text of Magy's; there are magy://base/... and "
                         "magy://proposed/...")  # fmt: skip


def workspace_of(cwd: str, roots: Sequence[str]) -> tuple[str, str]:
    """(workspace root, working directory), canonical. The root is the innermost workspace folder
    around `cwd`, else `cwd` itself. Raises InvalidRequest."""
    path = directory(cwd)
    return innermost(roots, path) or path, path


def innermost(roots: Iterable[str], path: str) -> str | None:
    """The root that a canonical path is, or is below; of several the nearest."""
    return max((root for root in roots if below(root, path)), key=len, default=None)


def named_paths(uri: str) -> tuple[str, ...]:
    """Does what `paths_of` does; returns () for what is not a file."""
    try:
        return paths_of(uri)
    except InvalidRequest:
        return ()


def directory(path: str) -> str:
    """Canonical. Raises InvalidRequest."""
    if not os.path.isabs(path) or "\0" in path:
        raise InvalidRequest(f"{path!r} is not an absolute path.")
    real = os.path.realpath(path)
    if not os.path.isdir(real):
        raise InvalidRequest(f"{path!r} is not a directory.")
    if whole(real) != real:
        raise NotText(real)
    return real
