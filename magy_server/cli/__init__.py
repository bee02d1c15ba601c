"""Magy serves a terminal: `magy run`, `magy sessions`, `magy agents`, `magy config`, `magy edit`.

A front door like `lsp`, over `api`: `dispatch` finds the command, `commands/` has a module for
each, `turn/` shows a turn until it is over, and `screen/` turns updates into lines. What is shown
is a pure function of the updates; only `screen/terminal`, `screen/keyboard` and `turn/watching`
write, read keys and keep time.
"""
