"""This module runs a command of the terminal. Whatever goes wrong becomes a sentence and an exit
code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from magy_server.cli.door import Composition


def perform(
    parser: argparse.ArgumentParser,
    chosen: argparse.Namespace,
    composition: Callable[[], Composition],
) -> int:
    """Runs the command, and returns the exit code, as `parser.EXIT_CODES` describes it."""
    from magy_server.cli import ending
    from magy_server.cli.run import complain
    from magy_server.cli.screen.terminal import OutputError
    from magy_server.core.errors import (
        InvalidConfig,
        InvalidRequest,
        MagyError,
        NotFound,
        ProviderError,
    )

    try:
        return _perform(parser, chosen, composition)
    except OutputError as error:
        if error.quiet:
            _drop_output()
            return ending.PIPE
        complain(error.message)
        return ending.ERROR
    except (InvalidConfig, InvalidRequest, NotFound) as error:
        complain(error.message)
        return ending.USAGE
    except MagyError as error:
        complain(error.message)
        unset = isinstance(error, ProviderError) and error.fault in ("no_key", "not_found")
        return ending.USAGE if unset else ending.ERROR
    except KeyboardInterrupt:
        return ending.CANCELLED


def _perform(
    parser: argparse.ArgumentParser,
    chosen: argparse.Namespace,
    composition: Callable[[], Composition],
) -> int:
    match chosen.command:
        case "run":
            log_to_terminal()
            from magy_server.cli.run import run

            return run(chosen, composition())
        case "sessions":
            log_to_terminal()
            from magy_server.cli.sessions import sessions

            return sessions(chosen, composition())
        case "agents":
            log_to_terminal()
            from magy_server.cli.agents import agents

            return agents(chosen, composition())
        case "config":
            from magy_server.cli.settings import settings

            return settings(chosen, composition())
        case "edit":
            from magy_server.cli.edit import edit

            return edit(chosen)
    from magy_server.cli.completion import completion
    from magy_server.cli.screen.terminal import standard_output, write_text

    write_text(standard_output(), completion(parser, chosen.shell))
    return 0


def log_to_terminal() -> None:
    """Writes one line for each record to standard error. With MAGY_DEBUG=1 it adds the traceback,
    for whoever mends Magy."""
    import logging

    class Line(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            line = f"magy: {record.getMessage()}"
            if record.exc_info and record.exc_info[0]:
                line += f": {record.exc_info[0].__name__} (MAGY_DEBUG=1 shows where)"
            return " ".join(line.split())

    handler = logging.StreamHandler()
    if not os.environ.get("MAGY_DEBUG"):
        handler.setFormatter(Line())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


def _drop_output() -> None:
    """Drops what is left of the output. Python would complain about the broken pipe when it flushes
    at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
