"""This module prints what a command says without an engine."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from magy_server.cli.exit_codes import ERROR


def tell(text: str) -> None:
    """Prints text to standard output, at once. Where it cannot be written, standard error says why
    and the process ends. Raises BrokenPipeError: who reads it went away."""
    require_output()
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        drop_output()
        said = f"magy: The output cannot be written: {error.strerror}."
        print(said, file=sys.stderr)
        sys.exit(ERROR)


def require_output() -> None:
    """Where standard output is closed, standard error says so and the process ends."""
    if sys.stdout is None:
        print("magy: Standard output is closed; Magy cannot write its output.", file=sys.stderr)
        sys.exit(ERROR)


def drop_output() -> None:
    """Drops what is left of the output. Python would complain about the broken pipe when it flushes
    at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
