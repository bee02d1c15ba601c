"""This module writes the command line as Markdown, from the parser."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator

from magy_server.cli.exit_codes import EXIT_CODES
from magy_server.cli.parser import sentence


def reference(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Returns the page's paragraphs."""
    yield (
        "# The command line\n\n`magy` without a command prints help in a terminal, and is\n"
        "`magy lsp` elsewhere. Every command has `--help`. For a first look:\n"
        "[Magy in a terminal](../howto/terminal.md).\n"
    )
    yield from _command(parser, "")
    yield "## Exit codes of `magy run`, `magy sessions` and `magy agents`\n"
    rows = "\n".join(f"| {code} | {what} |" for code, what in EXIT_CODES)
    yield f"| code | meaning |\n|---|---|\n{rows}\n"


def _command(parser: argparse.ArgumentParser, about: str) -> Iterator[str]:
    inner: dict[str, argparse.ArgumentParser] = {}
    helps: dict[str, str] = {}
    rows: list[str] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            inner = dict(action.choices)
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            rows += (_row(name, help) for name, help in helps.items())
        elif not isinstance(action, argparse._HelpAction):
            rows.append(_row(_words(action), action.help))
    if about:
        yield f"## `{parser.prog}`\n\n{textwrap.fill(parser.description or sentence(about), 88)}\n"
    if rows:
        yield "\n".join(["| | |", "|---|---|", *rows]) + "\n"
    for name, one in inner.items():
        yield from _command(one, helps[name])


def _words(action: argparse.Action) -> str:
    value = action.metavar or ("|".join(action.choices) if action.choices else action.dest)
    if not action.option_strings:
        return f"[{value}]" if action.nargs == "?" else str(value)
    names = ", ".join(action.option_strings)
    return names if action.nargs == 0 else f"{names} {value}"


def _row(words: str, about: str | None) -> str:
    cell = words.replace("|", "\\|")
    return f"| `{cell}` | {(about or '').replace('|', '&#124;')} |"
