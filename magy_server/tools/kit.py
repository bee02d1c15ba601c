"""All built-in tools that need no more than files and processes."""

from __future__ import annotations

from magy_server.core.tool import Tool
from magy_server.tools.files import edit_file, read_file, write_file
from magy_server.tools.plan import update_plan
from magy_server.tools.process import Processes
from magy_server.tools.shell import shell_tools


def make_tools(processes: Processes) -> list[Tool]:
    """`processes` belongs to the server, which closes it at its end."""
    return [read_file, edit_file, write_file, *shell_tools(processes), update_plan]
