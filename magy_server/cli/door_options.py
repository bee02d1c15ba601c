"""This module defines the command lines of `magy lsp` and `magy acp`. It imports next to
nothing."""

from __future__ import annotations

import argparse

from magy_server.cli.parser_parts import Commands, flag

ACP = """\
Serve an editor that speaks the Agent Client Protocol, on standard input and output.
Where the editor wants the command of an agent, it is `magy acp`. In Zed's settings.json:

  "agent_servers": {"Magy": {"type": "custom", "command": "magy", "args": ["acp"]}}

docs/clients/acp.md says what to paste in other editors."""


def lsp_options(commands: Commands) -> None:
    commands.add_parser("lsp", help="serve an editor on standard input and output (the default)")


def acp_options(commands: Commands) -> None:
    acp = commands.add_parser(
        "acp",
        help="serve an editor that speaks the Agent Client Protocol",
        description=ACP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    flag(acp, "--acp-v2", help="speak the draft of version 2 with editors that ask for it")
