"""Magy speaks JSON-RPC 2.0 on standard input and output, framed as the Language Server Protocol
frames it: a header `Content-Length: N`, an empty line (each line end is CR LF), and N bytes of JSON
in UTF-8. Magy sends no other header, and ignores others. What it writes to standard error is a log.

`magy lsp` is a language server. Beside the standard methods it has its own, `magy/...`, which this
page describes: first a conversation, then the rules, then every update, method and type.
[Write a client](howto/write-a-client.md) has a small client that can be run.

Where the Agent Client Protocol has a method, name and shapes are its own: `session/prompt` is
`magy/session/prompt`.
"""
