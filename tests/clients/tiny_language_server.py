"""A real language server (pygls) that can do two things: find the definition of a Python name in
its file, and say what text it has of a document. Stands beside Magy in coexistence tests."""

from __future__ import annotations

import re

from lsprotocol import types
from pygls.lsp.server import LanguageServer

server = LanguageServer("tiny", "1")


@server.feature(types.TEXT_DOCUMENT_DEFINITION)
def definition(params: types.DefinitionParams) -> types.Location | None:
    document = server.workspace.get_text_document(params.text_document.uri)
    word = document.word_at_position(params.position)
    for number, line in enumerate(document.lines):
        if match := re.match(rf"def ({re.escape(word)})\b", line):
            start = types.Position(number, match.start(1))
            end = types.Position(number, match.end(1))
            return types.Location(document.uri, types.Range(start, end))
    return None


@server.command("tiny.text")
def text(uri: str) -> str:
    return server.workspace.get_text_document(uri).source


if __name__ == "__main__":
    server.start_io()
