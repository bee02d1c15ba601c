"""This module runs the command that was chosen, and turns what goes wrong into a sentence and an
exit code."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from magy_server.cli.plain_output import drop_output

if TYPE_CHECKING:
    from magy_server.cli.composition import Composition, Verb


def perform(
    chosen: argparse.Namespace,
    composition: Callable[[], Composition],
) -> int:
    """Runs the command, and returns the exit code, as `exit_codes.EXIT_CODES` describes it."""
    from magy_server.cli import exit_codes
    from magy_server.cli.screen.complaints import complain
    from magy_server.cli.screen.terminal import OutputError
    from magy_server.core.errors import (
        InvalidConfig,
        InvalidRequest,
        MagyError,
        NotFound,
        ProviderError,
    )

    try:
        return _perform(chosen, composition)
    except MagyError as error:
        if isinstance(error, OutputError) and error.quiet:
            drop_output()
            return exit_codes.PIPE
        complain(error.message)
        wrong = isinstance(error, InvalidConfig | InvalidRequest | NotFound)
        unset = isinstance(error, ProviderError) and error.fault in ("no_key", "not_found")
        return exit_codes.USAGE if wrong or unset else exit_codes.ERROR
    except KeyboardInterrupt:
        return exit_codes.CANCELLED


def _perform(
    chosen: argparse.Namespace,
    composition: Callable[[], Composition],
) -> int:
    match chosen.command:
        case "run":
            log_to_terminal()
            from magy_server.cli.commands.run import run

            return run(chosen, composition())
        case "magi":
            log_to_terminal()
            from magy_server.cli.commands.magi import magi

            return magi(chosen, composition())
        case (
            "sessions"
            | "agents"
            | "graph"
            | "models"
            | "permissions"
            | "policy"
            | "audit"
            | "mcp"
            | "skills"
            | "plugins"
            | "worktrees"
        ):
            import asyncio

            log_to_terminal()
            return asyncio.run(_verb(chosen.command, chosen.verb)(chosen, composition()))
        case "config":
            from magy_server.cli.commands.config import settings

            return settings(chosen, composition())
        case "edit":
            from magy_server.cli.commands.edit import edit

            return edit(chosen)
        case "path":
            from magy_server.cli.commands.client_path import client_path

            return _print(client_path(chosen.editor))
    from magy_server.cli.commands.completion import completion
    from magy_server.cli.parser import build

    return _print(completion(build(), chosen.shell))


def _print(text: str) -> int:
    from magy_server.cli.screen.terminal import standard_output, write_text

    write_text(standard_output(), text)
    return 0


def _verb(command: str, verb: str | None) -> Verb:
    """Returns what runs the verb of a command. Who only reads waits for no engine to be loaded."""
    match command, verb:
        case "sessions", None | "list":
            from magy_server.cli.commands.session_list import listed

            return listed
        case "agents", None | "list":
            from magy_server.cli.commands import agent_list

            return agent_list.listed
        case "agents", "ratings":
            from magy_server.cli.commands import agent_list

            return agent_list.ratings
        case "sessions", "show" | "export":
            from magy_server.cli.commands import transcripts

            return transcripts.show if verb == "show" else transcripts.export
        case "sessions", "prune":
            from magy_server.cli.commands.prune import prune

            return prune
        case (
            "models" | "permissions" | "policy" | "audit" | "skills" | "plugins" | "worktrees"
            | "graph", _
        ):  # fmt: skip
            from importlib import import_module

            found: Verb = import_module(f"magy_server.cli.commands.{command}").VERBS[verb]
            return found
        case "mcp", "login" | "logout":
            from magy_server.cli.commands import mcp_login

            return mcp_login.VERBS[verb]
        case "mcp", _:
            from magy_server.cli.commands import mcp

            return mcp.VERBS[verb]
        case "sessions", str():
            from magy_server.cli.commands import sessions

            return sessions.VERBS[verb]
    from magy_server.cli.commands import agents

    return agents.VERBS[verb or ""]


def log_to_terminal() -> None:
    """Writes one line for each record to standard error. With MAGY_DEBUG=1 it adds the traceback,
    for whoever mends Magy."""
    import logging

    from magy_server.core.text.sanitizing import one_line

    class Line(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            line = f"magy: {record.getMessage()}"
            if record.exc_info and record.exc_info[0]:
                line += f": {record.exc_info[0].__name__} (MAGY_DEBUG=1 shows where)"
            return one_line(line)

    handler = logging.StreamHandler()
    if not os.environ.get("MAGY_DEBUG"):
        handler.setFormatter(Line())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
