"""This module runs the `magy` command. Each subcommand imports only what it needs."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn

from magy_server import garbage, privacy
from magy_server.cli.exit_codes import CANCELLED, PIPE

SWITCHING = 0.001
"""Seconds after which a thread that works lets another go on, as `sys.setswitchinterval` has it.
An answer to an editor may wait for that at each of several steps, while another thread reads a long
log, say: with Python's usual five milliseconds the longest wait was three times as long."""

if TYPE_CHECKING:
    import argparse

    from magy_server.api.doctor import Examine
    from magy_server.cli.composition import Composition
    from magy_server.store.shrinking import Shrunk


def command() -> NoReturn:
    """Runs the command and ends the process. Where nothing is left to do, Python does not first
    take itself apart, which lasts as long as a short command does."""
    code = main()
    if "threading" in sys.modules and _other_threads():
        sys.exit(code)
    atexit._run_exitfuncs()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        sys.exit(code)  # Python complains, and has an exit code for it
    os._exit(code)


def _other_threads() -> bool:
    """Whether a thread runs that Python waits for."""
    import threading

    main = threading.main_thread()
    return any(one is not main and not one.daemon for one in threading.enumerate())


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code. Ctrl-C may come at any moment, also while modules are loaded; and so may the
    end of who reads the output, such as `head`."""
    try:
        try:
            return _main(arguments)
        finally:
            _flush()
    except BrokenPipeError:
        from magy_server.cli.plain_output import drop_output

        drop_output()
        return PIPE
    except (KeyboardInterrupt, RuntimeError) as error:
        if not _is_interrupt(error):
            raise
        return CANCELLED


def _flush() -> None:
    """Raises BrokenPipeError when nobody reads the output any more; of other failures Python tells
    at its end."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        raise
    except (OSError, ValueError):
        pass


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind an error. Python 3.11 raises RuntimeError for whatever is raised
    while the attributes of a new class are told their names."""
    return isinstance(error, KeyboardInterrupt) or (
        error is not None and _is_interrupt(error.__cause__)
    )


def _main(arguments: Sequence[str] | None) -> int:
    garbage.begin()
    sys.setswitchinterval(SWITCHING)
    _open_standard_streams()
    privacy.begin()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words in ([], ["lsp"]):  # an editor waits: nothing has to be parsed
        return _windows() or (_lsp() if words else _alone())
    from magy_server.cli.parser import build

    parser = build(words[0])
    chosen = parser.parse_args(words)
    return _windows() or _perform(parser, chosen)


def _windows() -> int:
    """The exit code there; 0 elsewhere."""
    if sys.platform == "win32":
        print("Magy runs on Linux and macOS; on Windows use WSL.", file=sys.stderr)
        return 2
    return 0


def _perform(parser: argparse.ArgumentParser, chosen: argparse.Namespace) -> int:
    match chosen.command:
        case "run" if not chosen.words and not _can_type(chosen):
            parser.error(
                "say what the agent should do: `magy run PROMPT`, or `magy run -` to read it"
            )
        case "mcp" if chosen.verb == "serve":
            return _mcp(chosen.root)
        case (
            "run" | "sessions" | "agents" | "permissions" | "policy" | "audit" | "config" | "edit"
            | "path" | "completion" | "graph" | "mcp" | "skills" | "plugins" | "models" | "magi"
            | "worktrees"
        ):  # fmt: skip
            return _terminal(chosen)
        case "doctor":
            from magy_server.doctor import main as examine

            return examine(as_json=chosen.json)
        case "acp":
            return _acp(draft=chosen.acp_v2)
        case "demo":
            from magy_server.demo import demo as show

            return show(fast=chosen.fast, real=chosen.real)
        case "replay":
            from magy_server.replay import replay as print_requests

            return print_requests(chosen.session, chosen.to)
        case "help" if chosen.words:
            from magy_server.cli.parser import build

            build().parse_args([*chosen.words, "--help"])  # ends the process
        case "help":
            return _help()
        case None:
            return _alone()
    return _lsp()


def _alone() -> int:
    """Editors may leave `lsp` out. Somebody else, who piped something in perhaps, is told what this
    was; and on a terminal, what there is."""
    if os.isatty(0):
        return _help()
    if code := _lsp():
        said = (
            "magy: Without a command this is the server of an editor, and standard input ended. "
            "`magy help` says what else there is; `magy run -` reads a task from standard input."
        )
        print(said, file=sys.stderr)
    return code


def _help() -> int:
    import shutil

    from magy_server.cli.overview import overview
    from magy_server.cli.plain_output import tell

    tell(overview(shutil.get_terminal_size((100, 24)).columns) + "\n")
    return 0


def _can_type(chosen: argparse.Namespace) -> bool:
    """Somebody sits at this terminal, and no program reads what is written."""
    return os.isatty(0) and os.isatty(1) and not chosen.json


def _open_standard_streams() -> None:
    """A descriptor that is closed would be given to the next file that is opened, the database
    perhaps, and a child that prints would write into it."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _terminal(chosen: argparse.Namespace) -> int:
    from magy_server.cli.dispatch import perform

    return perform(chosen, _composition)


def _mcp(root: str | None) -> int:
    from magy_server.cli.dispatch import log_to_terminal
    from magy_server.cli.exit_codes import ERROR
    from magy_server.cli.project_directory import project
    from magy_server.cli.screen.complaints import complain
    from magy_server.core.errors import MagyError
    from magy_server.jsonrpc.descriptors import claim
    from magy_server.mcp_server.door import serve

    stdin, stdout = claim()
    log_to_terminal()
    try:
        return serve(project(root, None)[0], _composition().composing, stdin, stdout)
    except MagyError as error:
        complain(error.message)
        return ERROR


def _composition() -> Composition:
    from magy_server.cli.composition import Compose, Composition
    from magy_server.config import layers
    from magy_server.store.sqlite import SqliteStore

    def composing() -> Compose:
        from magy_server.app import compose

        return garbage.once_running(compose)

    def shrink(stopped: Callable[[], bool]) -> Shrunk:
        from magy_server.store.shrinking import shrink

        return shrink(str(layers.state_dir() / "magy.db"), stopped)

    return Composition(composing, lambda: SqliteStore.open(str(layers.state_dir())), shrink)


def _lsp() -> int:
    """The editor has its answer to `initialize` before the rest is imported."""
    from magy_server.jsonrpc.descriptors import claim
    from magy_server.lsp.greeting import greet

    stdin, stdout = claim()
    greeting = greet(stdin, stdout)

    from magy_server.lsp.front_door import Compose, EditorFrontDoor
    from magy_server.lsp.server import run

    def composition() -> Compose:
        from magy_server.app import compose

        return garbage.once_running(compose)

    return run(EditorFrontDoor(composition, _scratch, _examine), stdin, stdout, greeting)


def _scratch() -> str:
    from magy_server.app import scratch

    return scratch()


def _examine() -> Examine:
    from magy_server.doctor.issue import examination

    return examination


def _acp(*, draft: bool) -> int:
    """The client has its answer to `initialize` before the rest is imported."""
    from magy_server.acp.greeting import greet
    from magy_server.jsonrpc.descriptors import claim

    stdin, stdout = claim()
    greeting = greet(stdin, stdout, draft=draft)

    from magy_server.acp.serving import Compose, run

    def composition() -> Compose:
        from magy_server.app import compose

        return garbage.once_running(compose)

    return run(composition, _scratch, _examine, stdin, stdout, greeting, draft=draft)


if __name__ == "__main__":
    command()
