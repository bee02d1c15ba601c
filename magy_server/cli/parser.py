"""The words of the command line. Imports nothing but argparse: `magy --help` answers at once."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from magy_server import __version__

EXIT_CODES = (
    (0, "done"),
    (1, "an error: the model, the log or the output failed, or the model refused"),
    (2, "the command line or the configuration is wrong"),
    (3, "done, but a permission question was refused because there was nobody to ask"),
    (4, "stopped at a limit (requests, tokens, time, length of a reply) or in a loop"),
    (6, "the model wrote a tool call as text that could not be made"),
    (130, "cancelled, or left, with Ctrl-C"),
    (141, "who read the output went away"),
)

SESSION = "id or title of a session, or a beginning that no other has"


class Parser(argparse.ArgumentParser):
    """Subcommands in full only: an abbreviation would change its meaning with the next version.
    Options may stand anywhere, and what is wrong is said with the usage of the subcommand."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("allow_abbrev", False)
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(**options)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        if self._subparsers is None and args is not None:
            args = self._options_first(args)
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def _options_first(self, words: Sequence[str]) -> list[str]:
        """argparse gives up on an optional argument at the first option before it."""
        options: list[str] = []
        others: list[str] = []
        rest = iter(words)
        for word in rest:
            if word == "--":
                others += rest
            elif word == "-" or " " in word or not word.startswith("-"):
                others.append(word)
            else:
                options.append(word)
                action = self._option_string_actions.get(word)
                if action and action.nargs is None:  # the next word is its value
                    options += [value for value in [next(rest, None)] if value is not None]
        return [*options, "--", *others] if others else options


def build() -> argparse.ArgumentParser:
    parser = Parser(
        prog="magy", description="An agent backend for editors, and an agent in a terminal."
    )
    parser.add_argument("--version", action="version", version=f"magy {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    _run(commands)
    _sessions(commands)
    _agents(commands)
    _config(commands)
    _edit(commands)
    doctor = commands.add_parser(
        "doctor", help="say what is wrong with this installation, and how to mend it"
    )
    doctor.add_argument("--json", action="store_true", help="the findings as one JSON object")
    commands.add_parser("help", help="say in a few lines what one can do")
    commands.add_parser("lsp", help="serve an editor on standard input and output (the default)")
    demo = commands.add_parser("demo", help="watch a whole task, in a project made for it")
    demo.add_argument("--fast", action="store_true", help="do not pause for the reader")
    demo.add_argument("--real", action="store_true", help="use the configured model")
    replay = commands.add_parser("replay", help="print every model request of a session, exactly")
    replay.add_argument("session", metavar="ID", help="session id")
    replay.add_argument("--to", type=int, metavar="SEQ", help="up to this entry of the log")
    completion = commands.add_parser("completion", help="print completions for a shell")
    completion.add_argument("shell", choices=("bash", "zsh", "fish"), help="which shell")
    return parser


Commands = Any
"""What `add_subparsers` gives; argparse keeps the name of its class to itself."""


def _session(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="ID", help=SESSION)


def _json(parser: argparse._ActionsContainer, help: str) -> None:
    parser.add_argument("--json", action="store_true", help=help)


def _root(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--root", metavar="DIR", help="the project; else the git work tree around here"
    )


def _showing(parser: argparse.ArgumentParser) -> None:
    """How a turn is shown."""
    parser.add_argument("--thinking", action="store_true", help="show what the model thinks")
    form = parser.add_mutually_exclusive_group()
    _json(form, "JSON lines: each session update, and at the end the result")
    form.add_argument("-q", "--quiet", action="store_true", help="print only the final text")
    parser.add_argument(
        "--bypass", action="store_true",
        help="answer permission questions with yes; what the rules deny stays denied",
    )  # fmt: skip


def _run(commands: Commands) -> None:
    run = commands.add_parser(
        "run",
        help="give an agent a task, here and now",
        description=(
            "Give an agent a task in the project around the current directory. What is piped in\n"
            "is attached to the prompt. On a terminal it asks for permission; elsewhere nobody\n"
            "can be asked, and what needs permission is refused."
        ),
        epilog="exit codes:\n" + "\n".join(f"  {code:<4} {what}" for code, what in EXIT_CODES),
    )
    run.add_argument(
        "prompt", nargs="?", metavar="PROMPT",
        help="the task; - reads it from standard input; left out, it is asked for on the terminal",
    )  # fmt: skip
    which = run.add_mutually_exclusive_group()
    which.add_argument(
        "-r", "--resume", metavar="ID", help="go on with this session, by id or title"
    )
    which.add_argument(
        "-c", "--continue", dest="newest", action="store_true",
        help="go on with the newest session of this project",
    )  # fmt: skip
    which.add_argument("--fork", metavar="ID", help="begin with a copy of this session")
    run.add_argument("--agent", metavar="NAME", help="the agent; else the configured one")
    run.add_argument("--model", metavar="PROVIDER/MODEL", help="the model; else the agent's")
    run.add_argument("--cwd", metavar="DIR", help="work there instead of here")
    _root(run)
    _showing(run)


def _sessions(commands: Commands) -> None:
    sessions = commands.add_parser("sessions", help="list, show, resume, export sessions")
    verbs = sessions.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser)
    listed = verbs.add_parser("list", help="this project's first (what is done without a verb)")
    for parser in (sessions, listed):
        _listing(parser)
    show = _verb(verbs, "show", "print the transcript")
    show.add_argument("--thinking", action="store_true", help="show what the model thought")
    _json(show, "JSON lines: each session update")
    resume = _verb(verbs, "resume", "go on with a turn that was left open")
    _showing(resume)
    fork = _verb(verbs, "fork", "copy a session; prints the id of the copy")
    fork.add_argument("--at", type=int, metavar="SEQ", help="only up to this entry of its log")
    export = _verb(verbs, "export", "write a session to a file")
    export.add_argument(
        "--format", choices=("jsonl", "markdown"), default="markdown",
        help="jsonl: the whole log, nothing lost; markdown: to be read (the default)",
    )  # fmt: skip
    export.add_argument("-o", "--output", metavar="FILE", help="else standard output")
    delete = _verb(verbs, "delete", "remove a session for good")
    delete.add_argument("-y", "--yes", action="store_true", help="do not ask")
    compact = _verb(verbs, "compact", "sum the conversation up, to make room")
    compact.add_argument("focus", nargs="?", default="", help="what matters most")
    _verb(verbs, "summary", "print a summary, made by the model")
    title = _verb(verbs, "title", "give a session a title")
    title.add_argument("title", help="the title")
    undo = _verb(verbs, "undo", "take back what its last turn did, or go back to before another")
    undo.add_argument("--turn", metavar="T", help="to before this turn; else the last one's")
    undo.add_argument("--list", action="store_true", help="only list the turns, oldest first")
    redo = _verb(verbs, "redo", "take the last undo back")
    for parser in (undo, redo):
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--files", action="store_true", help="only the files")
        what.add_argument("--conversation", action="store_true", help="only the conversation")
        parser.add_argument(
            "-n", "--dry-run", action="store_true", help="only show what it would do"
        )
        _json(parser, "one JSON object")


def _agents(commands: Commands) -> None:
    agents = commands.add_parser("agents", help="list, spawn, speak to and close child agents")
    verbs = agents.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser)
    listed = verbs.add_parser("list", help="this project's (what is done without a verb)")
    for parser in (agents, listed):
        _listing_agents(parser)
    listed.add_argument("session", nargs="?", metavar="ID", help="only those below this session")
    spawn = _verb(verbs, "spawn", "start a child of a session on a task")
    spawn.add_argument("prompt", metavar="PROMPT", help="the task; - reads it from standard input")
    spawn.add_argument("--agent", metavar="NAME", help="the agent; else the parent's")
    spawn.add_argument("--name", metavar="TITLE", help="what the task is called")
    spawn.add_argument(
        "--context", type=_context, default=0, metavar="none|all|N",
        help="what it knows of the parent's conversation: its latest N turns",
    )  # fmt: skip
    spawn.add_argument("--model", metavar="PROVIDER/MODEL", help="the model; else the parent's")
    spawn.add_argument("--cwd", metavar="DIR", help="work there; else where the parent does")
    send = _verb(verbs, "send", "say something to an agent")
    send.add_argument("message", nargs="?", metavar="TEXT", help="- reads it from standard input")
    send.add_argument("--data", metavar="JSON", help="an object for machines; no model reads it")
    send.add_argument("--signal", choices=("ping", "cancel", "shutdown"), help="or a signal")
    mode = send.add_mutually_exclusive_group()
    for name, help in (
        ("steer", "it reaches a running turn at its next step (the default)"),
        ("queue", "it waits until the turn is over"),
        ("interrupt", "it stops the turn"),
    ):
        mode.add_argument(
            f"--{name}", dest="delivery", action="store_const", const=name, default="steer",
            help=help,
        )  # fmt: skip
    for parser in (spawn, send):
        parser.add_argument("--key", metavar="KEY", help="the same key again changes nothing")
        parser.add_argument(
            "-d", "--detach", action="store_true",
            help="do not watch; print the id. Somebody else runs it: an editor, or a later command",
        )  # fmt: skip
        _showing(parser)
    wait = verbs.add_parser("wait", help="wait for children, and print their results")
    wait.add_argument("session", nargs="+", metavar="ID", help="children, or their parent: all")
    wait.add_argument("--any", action="store_true", help="until one of them rests; else all")
    wait.add_argument("--after", type=_seq, metavar="SEQ", help="only for what ended after this")
    wait.add_argument("--timeout", type=_seconds, default=300.0, metavar="S", help="seconds (300)")
    _json(wait, "one JSON object")
    close = _verb(verbs, "close", "let a child take nothing more; its log stays")
    close.add_argument("--cancel", action="store_true", help="stop what it does, too")
    close.add_argument("--reason", default="", help="why, for people")
    close.add_argument("--only", action="store_true", help="not those below it")
    _json(close, "one JSON object")


def _listing_agents(parser: argparse.ArgumentParser) -> None:
    silent = argparse.SUPPRESS
    _root(parser)
    parser.add_argument("--everywhere", action="store_true", default=silent, help="of all projects")
    parser.add_argument("--all", action="store_true", default=silent, help="the closed ones, too")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", default=silent, help="one JSON object")
    form.add_argument("--ids", action="store_true", default=silent, help="only the ids")


def _context(text: str) -> int:
    """So many turns, -1 all."""
    if text in ("none", "all"):
        return -1 if text == "all" else 0
    if not (text.isdigit() and 1 <= int(text) <= 1000):
        raise argparse.ArgumentTypeError(f"{text!r} is neither none, all nor a number from 1 on")
    return int(text)


def _seq(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not the number of an entry")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds, 86400 at most")
    return seconds


def _verb(verbs: Commands, name: str, help: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(name, help=help, description=sentence(help))
    _session(parser)
    return parser


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def _listing(parser: argparse.ArgumentParser) -> None:
    """Both on `sessions` and on `sessions list`; what is not given leaves the other's alone."""
    silent = argparse.SUPPRESS
    _root(parser)
    parser.add_argument(
        "--here", action="store_true", default=silent, help="only this project's sessions"
    )
    parser.add_argument("--limit", type=_positive, metavar="N", default=silent, help="so many (30)")
    parser.add_argument(
        "--cursor", metavar="PLACE", default=silent, help="go on where a page before ended"
    )
    parser.add_argument("--all", action="store_true", default=silent, help="all of them, in one go")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", default=silent, help="one JSON object")
    form.add_argument("--ids", action="store_true", default=silent, help="only the ids")


def _positive(text: str) -> int:
    number = int(text) if text.isdigit() else 0
    if not 1 <= number <= 500:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 500")
    return number


EDIT_FORMATS = ("str_replace", "aider", "cline", "roo", "unified", "v4a", "whole")
EDIT_CODES = (
    (0, "done; with --check: it would be"),
    (1, "refused, or an error; nothing was written"),
    (2, "the command line is wrong"),
    (5, "done, but the output could not be written"),
    (141, "done (or refused), and who read the output went away"),
)


def _edit(commands: Commands) -> None:
    edit = commands.add_parser(
        "edit",
        help="apply an edit, in any of the usual formats, to files",
        description=(
            "Apply an edit to files: a diff, a V4A patch, search/replace blocks, JSON or whole\n"
            "files. It is read from standard input; the files it names are below the current\n"
            "directory. Everything it asks for is done, or nothing."
        ),
        epilog="exit codes:\n" + "\n".join(f"  {code:<4} {what}" for code, what in EDIT_CODES),
    )
    edit.add_argument(
        "files", nargs="*", metavar="FILE",
        help="only these may change, wherever they are; a single one is meant whatever the edit "
        "calls it",
    )  # fmt: skip
    edit.add_argument("--format", choices=EDIT_FORMATS, help="else it is found out")
    edit.add_argument("--from", dest="source", metavar="EDIT", help="else standard input")
    edit.add_argument(
        "--seen", metavar="TEXT",
        help="a file with the text that the edit was made for; what changed since is merged",
    )  # fmt: skip
    dry = edit.add_mutually_exclusive_group()
    dry.add_argument("--check", action="store_true", help="change nothing; say what would be done")
    dry.add_argument("--diff", action="store_true", help="change nothing; print what would change")
    _json(edit, "one JSON object: files and failures")


def _config(commands: Commands) -> None:
    config = commands.add_parser(
        "config",
        help="print the settings that hold here, and where each comes from",
    )
    _root(config)
    form = config.add_mutually_exclusive_group()
    _json(form, "one JSON object")
    form.add_argument("--schema", action="store_true", help="the JSON Schema of magy.toml")
    verbs = config.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser)
    verbs.add_parser("path", help="print where configuration and sessions are kept")
    check = verbs.add_parser("check", help="say what is wrong in a magy.toml")
    check.add_argument("file", nargs="?", metavar="FILE", help="else the user's and the project's")
    verbs.add_parser("trust", help="let this project's own configuration count")
    verbs.add_parser("untrust", help="let it only narrow, as before it was trusted")
