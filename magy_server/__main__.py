"""The `magy` command. Each subcommand imports only what it needs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from magy_server import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="magy", description="An agent backend for editors.")
    parser.add_argument("--version", action="version", version=f"magy {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("lsp", help="serve an editor on standard input and output (the default)")
    demo = commands.add_parser("demo", help="watch a whole task, in a project made for it")
    demo.add_argument("--fast", action="store_true", help="do not pause for the reader")
    demo.add_argument("--real", action="store_true", help="use the configured model")
    replay = commands.add_parser("replay", help="print every model request of a session, exactly")
    replay.add_argument("session", help="session id")
    replay.add_argument("--to", type=int, metavar="SEQ", help="up to this entry of the log")
    chosen = parser.parse_args(arguments)
    if sys.platform == "win32":
        print("Magy runs on Linux and macOS; on Windows use WSL.", file=sys.stderr)
        return 2
    match chosen.command:
        case "demo":
            from magy_server.demo import demo as show

            return show(fast=chosen.fast, real=chosen.real)
        case "replay":
            from magy_server.replay import replay as print_requests

            return print_requests(chosen.session, chosen.to)
    return _lsp()


def _lsp() -> int:
    from magy_server.lsp.front import Compose, Front
    from magy_server.lsp.server import run

    def composition() -> Compose:
        from magy_server.app import compose

        return compose

    def scratch() -> str:
        from magy_server.app import scratch

        return scratch()

    return run(Front(composition, scratch))


if __name__ == "__main__":
    sys.exit(main())
