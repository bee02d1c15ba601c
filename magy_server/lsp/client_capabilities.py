"""This module reads leniently what a client says of itself in `initialize`: what has not the form
that LSP gives it counts as left out. This module imports next to nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ENCODINGS = ("utf-8", "utf-16", "utf-32")
USUAL = "utf-16"
"""The encoding that every client has."""
LLM_GENERATED = 1
"""LSP's CodeActionTag.LLMGenerated."""


class Can:
    """Which optional parts of LSP a client supports, of those that Magy uses. `resolve`: it asks
    what a code action does when that is chosen; `tags`: it marks actions that a model wrote;
    `texts`: it takes documents from the server; `show_document`: it opens documents when it is
    asked to; `progress`: it shows progress that the server begins; `inline`: it shows inline
    completions, and with `register_inline` may be told later that there are any; `versioned`:
    edits may carry versions of documents; `configurable`: it answers `workspace/configuration`."""

    def __init__(self, client: Mapping[str, Any]) -> None:
        window, workspace = _part(client, "window"), _part(client, "workspace")
        document = _part(client, "textDocument")
        action = _part(document, "codeAction")
        self.show_document = _on(_part(window, "showDocument"), "support")
        self.progress = _on(window, "workDoneProgress")
        self.configurable = _on(workspace, "configuration")
        self.versioned = _on(_part(workspace, "workspaceEdit"), "documentChanges")
        self.refresh_lenses = _on(_part(workspace, "codeLens"), "refreshSupport")
        self.texts = _on(_part(workspace, "textDocumentContent"), "dynamicRegistration")
        resolved = _part(action, "resolveSupport").get("properties")
        self.resolve = _on(action, "dataSupport") and _has(resolved, "command")
        self.tags = _has(_part(action, "tagSupport").get("valueSet"), LLM_GENERATED)
        self.inline = type(document.get("inlineCompletion")) is dict
        inline = _part(document, "inlineCompletion")
        self.register_inline = _on(inline, "dynamicRegistration")


class Client:
    """`name`: what the editor calls itself; `options`: `initializationOptions`, as sent; `folders`
    and `root`: their URIs, "" for no root; `encoding`: in which its positions count characters."""

    def __init__(self, params: Mapping[str, Any]) -> None:
        capabilities = _part(params, "capabilities")
        name = _part(params, "clientInfo").get("name")
        self.name = name if type(name) is str else ""
        self.options = params.get("initializationOptions")
        self.can = Can(capabilities)
        self.encoding = encoding_of(_part(capabilities, "general").get("positionEncodings"))
        self.folders = _folders(params)
        self.root = _root(params)


def encoding_of(encodings: Any) -> str:
    """The first that both sides know, of those that a client prefers in this order."""
    known = [one for one in encodings if one in ENCODINGS] if type(encodings) is list else []
    return known[0] if known else USUAL


def _folders(params: Mapping[str, Any]) -> list[str]:
    folders = params.get("workspaceFolders")
    found = [one for one in folders if type(one) is dict] if type(folders) is list else []
    return [one["uri"] for one in found if type(one.get("uri")) is str]


def _root(params: Mapping[str, Any]) -> str:
    uri, path = params.get("rootUri"), params.get("rootPath")
    if type(uri) is str:
        return uri
    if type(path) is not str or not path.startswith("/"):
        return ""
    from urllib.parse import quote

    return "file://" + quote(path)


def _part(whole: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = whole.get(name)
    return part if type(part) is dict else {}


def _on(whole: Mapping[str, Any], name: str) -> bool:
    return whole.get(name) is True


def _has(values: Any, value: Any) -> bool:
    return type(values) is list and value in values
