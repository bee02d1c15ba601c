"""A command complains on standard error, one sentence at a time."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from magy_server.cli.screen.text import filled
from magy_server.core.text.sanitizing import harmless


def complain(sentence: str) -> None:
    """Writes a sentence to standard error, if there is one."""
    with suppress(OSError, AttributeError, ValueError):
        descriptor = sys.stderr.fileno()
        width = os.get_terminal_size(descriptor).columns if os.isatty(descriptor) else 0
        sentence = harmless(sentence)
        said = filled(sentence, width, "magy: ") if width else f"magy: {sentence}\n"
        print(said, end="", file=sys.stderr, flush=True)
