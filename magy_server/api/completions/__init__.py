"""Inline completion (`textDocument/inlineCompletion`) suggests how a text goes on at the cursor."""
