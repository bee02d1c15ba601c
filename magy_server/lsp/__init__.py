"""The language server: the connection to one editor, its documents and edits in its buffers."""
