"""Which optional parts of LSP a client supports, of those that Magy uses."""

from __future__ import annotations

from lsprotocol import types


class ClientCapabilities:
    """`resolve`: it asks what a code action does when that is chosen; `texts`: it takes documents
    from the server; `show_document`: it opens documents when it is asked to."""

    def __init__(self, client: types.ClientCapabilities) -> None:
        window, workspace, document = client.window, client.workspace, client.text_document
        shown = window.show_document if window else None
        self.show_document = bool(shown and shown.support)
        lens = workspace.code_lens if workspace else None
        self.refresh_lenses = bool(lens and lens.refresh_support)
        texts = workspace.text_document_content if workspace else None
        self.texts = bool(texts and texts.dynamic_registration)
        action = document.code_action if document else None
        tags = action.tag_support if action else None
        resolve = action.resolve_support if action else None
        can_resolve = bool(resolve and "command" in resolve.properties)
        self.resolve = bool(action and action.data_support and can_resolve)
        self.tags = bool(tags and types.CodeActionTag.LlmGenerated in tags.value_set)
