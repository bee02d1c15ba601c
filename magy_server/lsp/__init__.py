"""The language server serves one editor: its connection, its documents, edits in its buffers."""
