"""Magy in a terminal: `magy run`, `magy sessions`, `magy config`, `magy completion`.

A front door like `lsp`: it turns words and keys into the engine's verbs and its updates into lines.
What is shown is a pure function of the updates (`text`, `prose`, `view`, `ending`); around it lies
a thin shell that writes, reads keys and keeps time (`terminal`, `keyboard`, `watch`).
"""
