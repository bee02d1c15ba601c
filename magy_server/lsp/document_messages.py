"""What an editor says of its documents, files and folders is read here if it is plainly
well-formed; the rest is left to pygls (`lsp.pygls_reader`).

With the types of LSP pygls takes 19 MB, and a third of the time in which Magy starts. A test
compares what comes of each message here and there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain, zip_longest
from typing import Any, TypeGuard

from magy_server.lsp.documents import Change, LiveWorkspace, Place

LARGEST = (1 << 31) - 1
"""Of LSP's integers."""
Reader = Callable[[LiveWorkspace, Mapping[str, Any]], Callable[[], object] | None]
"""(where documents are kept, the message's params) -> what is to be done; None: not well-formed."""


def reading(workspace: LiveWorkspace, message: Mapping[str, Any]) -> Callable[[], object] | None:
    """Returns what does as the notification says; None if pygls is to read it."""
    reader, params = _READERS.get(message["method"]), message.get("params")
    return reader(workspace, params) if reader and type(params) is dict else None


def _opened(workspace: LiveWorkspace, params: Mapping[str, Any]) -> Callable[[], object] | None:
    one = params.get("textDocument")
    if not _has_texts(one, "uri", "languageId", "text") or not _is_integer(one.get("version")):
        return None
    return partial(workspace.opened, one["uri"], one["text"], one["version"], one["languageId"])


def _changed(workspace: LiveWorkspace, params: Mapping[str, Any]) -> Callable[[], object] | None:
    one, given = params.get("textDocument"), params.get("contentChanges")
    if not _has_texts(one, "uri") or not _is_integer(one.get("version")) or type(given) is not list:
        return None
    changes = [change for each in given if (change := _change(each)) is not None]
    if len(changes) < len(given) or workspace.open_document(one["uri"]) is None:
        return None
    return partial(workspace.changed, one["uri"], one["version"], changes)


def _change(given: Any) -> Change | None:
    if not _has_texts(given, "text") or not _is_count(given.get("rangeLength", 0)):
        return None
    if "range" not in given:
        return str(given["text"])
    first, last = (_place(given["range"], end) for end in ("start", "end"))
    return None if first is None or last is None else (first, last, given["text"])


def _place(range: Any, end: str) -> Place | None:
    place = range.get(end) if type(range) is dict else None
    if type(place) is not dict:
        return None
    line, character = place.get("line"), place.get("character")
    return (line, character) if _is_count(line) and _is_count(character) else None


def _saved(workspace: LiveWorkspace, params: Mapping[str, Any]) -> Callable[[], object] | None:
    one, text = params.get("textDocument"), params.get("text", "")
    return partial(workspace.saved, one["uri"]) if _has_texts(one, "uri") and _is(text) else None


def _closed(workspace: LiveWorkspace, params: Mapping[str, Any]) -> Callable[[], object] | None:
    one = params.get("textDocument")
    return partial(workspace.closed, one["uri"]) if _has_texts(one, "uri") else None


def _folders(workspace: LiveWorkspace, params: Mapping[str, Any]) -> Callable[[], object] | None:
    event = params.get("event")
    sides = [event.get(side) for side in ("added", "removed")] if type(event) is dict else [None]
    if not all(_are(side, "uri", "name") for side in sides):
        return None

    def change() -> None:
        for added, removed in zip_longest(*sides):
            if added:
                workspace.add_folder(added["uri"])
            if removed:
                workspace.remove_folder(removed["uri"])

    return change


def _files(
    workspace: LiveWorkspace, params: Mapping[str, Any], *, names: Sequence[str]
) -> Callable[[], object] | None:
    """`names`: the keys under which a file has its URIs."""
    files = params.get("files")
    if not _are(files, *names):
        return None
    uris = chain.from_iterable((file[name] for name in names) for file in files)
    return partial(workspace.files_changed, tuple(uris))


_READERS: Mapping[str, Reader] = {
    "textDocument/didOpen": _opened,
    "textDocument/didChange": _changed,
    "textDocument/didSave": _saved,
    "textDocument/didClose": _closed,
    "workspace/didChangeWorkspaceFolders": _folders,
    "workspace/didCreateFiles": partial(_files, names=("uri",)),
    "workspace/didDeleteFiles": partial(_files, names=("uri",)),
    "workspace/didRenameFiles": partial(_files, names=("oldUri", "newUri")),
}


def _are(given: Any, *names: str) -> TypeGuard[list[dict[str, str]]]:
    return type(given) is list and all(_has_texts(one, *names) for one in given)


def _has_texts(given: Any, *names: str) -> TypeGuard[dict[str, Any]]:
    """Whether it is an object that has a text under each of the names."""
    return type(given) is dict and all(_is(given.get(name)) for name in names)


def _is(value: Any) -> bool:
    return type(value) is str


def _is_integer(value: Any) -> bool:
    return type(value) is int and -LARGEST - 1 <= value <= LARGEST


def _is_count(value: Any) -> TypeGuard[int]:
    return type(value) is int and 0 <= value <= LARGEST
