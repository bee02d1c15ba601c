"""A client describes itself in `initialize`, in `initializationOptions.magy`. All of it may be left
out, and Magy ignores what it does not know. A client that announces nothing is treated as [any LSP
client](start/lsp.md): questions become `window/showMessageRequest`, and reviews code lenses.

```json options
{"magy": {
  "client": {"name": "mine", "version": "1.0"},
  "capabilities": {"interactions": true, "review": true, "editor": {"save": true, "diagnostics": true}},
  "settings": {"default_agent": "plan", "permission": {"bash": {"make test": "allow"}}}
}}
```

Magy uses these capabilities of the standard protocol: `general.positionEncodings` (it takes the
first that it knows of `utf-8`, `utf-16` and `utf-32`, and says which in
`capabilities.positionEncoding`), `workspace.applyEdit`, `workspace.workspaceEdit.documentChanges`
(edits then carry versions; announce it), `workspace.configuration`, `window.workDoneProgress`,
`window.showDocument`, `workspace.textDocumentContent`, and those of code actions and code lenses.
Workspace folders are the projects; settings, sessions and reviews belong to one of them.

Of the standard protocol the client sends `textDocument/didOpen`, `didChange`, `didSave` and
`didClose`; and, if it can, `workspace/didCreateFiles`, `didRenameFiles` and `didDeleteFiles` for
what the person does. Magy sends `window/showMessage`, which the client should show, and these
requests: `workspace/applyEdit`; and, where the client announced that it can,
`workspace/configuration`, `window/workDoneProgress/create`, `window/showDocument`,
`client/registerCapability`, and `refresh` of code lenses and documents. A client answers a request
that it does not know with the error -32601.

The answer has `capabilities.experimental.magy`: `version` is the version of Magy, and `protocol`
the version of this wire, 1.
"""  # noqa: E501

from typing import Any, Literal

from pydantic import Field

from magy_server.api.wire.shapes import Wire


class ClientInfo(Wire):
    name: str = Field(
        default="editor", description="Names the client in the log, such as who answered a question"
    )


class EditorOffers(Wire):
    """What Magy may ask the editor, each by the request `magy/editor/NAME`."""

    save: bool = Field(
        default=False, description="Save a document. Without it, edits of open files stay unsaved"
    )
    diagnostics: bool = False
    definition: bool = False
    references: bool = False
    symbols: bool = False
    eval: Literal["elisp"] | None = Field(
        default=None, description="The language of code that the editor can evaluate"
    )


class Capabilities(Wire):
    interactions: bool = Field(
        default=False,
        description="The client shows questions itself and answers them with "
        "`magy/interaction/respond`. It then gets `magy/interaction/changed` and "
        "`magy/session/listChanged`, and no `window/showMessageRequest` for questions",
    )
    review: bool = Field(
        default=False,
        description="The client shows hunks itself. It then gets `magy/review/changed`, and no "
        "code lenses",
    )
    lenses: bool | None = Field(
        default=None,
        description="Code lenses above hunks; left out: unless `review` is announced",
    )
    answers: Literal["document", "message", "none"] | None = Field(
        default=None,
        description="How the result of a command such as `magy.prompt` is shown: a document, a "
        "message, or not at all; left out: `none` with `interactions`, else `document`",
    )
    editor: EditorOffers = EditorOffers()


class Announcement(Wire):
    client: ClientInfo = ClientInfo()
    capabilities: Capabilities = Capabilities()
    settings: dict[str, Any] = Field(
        default={},
        description="Settings of this connection, in the shape of `magy.toml`. They override "
        "those in files; the environment overrides them",
    )
    restricted: bool = Field(
        default=False,
        description="The person has not trusted these folders in the editor. No project is trusted "
        "on this connection then, whatever was said before",
    )
    keys: dict[str, str] = Field(
        default={},
        description="Keys that the editor keeps for the person, by the name of the provider. Each "
        "counts where neither the environment nor the configuration has one; Magy keeps them in "
        "its memory alone: it writes them nowhere, and no command sees them",
    )


PARTS = (Announcement, ClientInfo, Capabilities, EditorOffers)
