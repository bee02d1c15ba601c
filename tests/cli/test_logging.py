"""What is logged while a command of the terminal runs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.patience import PATIENCE

FAILURE = """
import logging
from magy_server.cli.dispatch import log_to_terminal
log_to_terminal()
try:
    1 / 0
except ZeroDivisionError:
    logging.getLogger("magy").exception("%s failed", "session/s1")
logging.getLogger("magy").warning("two\\nlines")
logging.getLogger("magy").info("not said")
"""


@pytest.mark.parametrize("debug", ["", "1"])
def test_a_traceback_is_only_for_who_asks(debug: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FAILURE], env={**os.environ, "MAGY_DEBUG": debug},
        capture_output=True, text=True, timeout=PATIENCE, check=True,
    )  # fmt: skip
    assert done.stdout == ""
    assert ("Traceback" in done.stderr) == bool(debug)
    if not debug:
        assert done.stderr == (
            "magy: session/s1 failed: ZeroDivisionError (MAGY_DEBUG=1 shows where)\n"
            "magy: two lines\n"
        )
