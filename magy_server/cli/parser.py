"""This module defines the command line. It imports next to nothing, so `magy --help` answers at
once."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence

from magy_server import __version__
from magy_server.cli.exit_codes import EDIT_CODES, EXIT_CODES
from magy_server.cli.extension_options import plugin_options, skill_options
from magy_server.cli.mcp_options import mcp_options
from magy_server.cli.parser_parts import (
    Commands,
    Parser,
    context,
    count,
    flag,
    positive,
    root_option,
    seconds,
    seq,
    silent,
    span,
)
from magy_server.cli.policy_options import audit_options, policy_options
from magy_server.cli.team_options import graph_options, magi_options

ACP = """\
Serve an editor that speaks the Agent Client Protocol, on standard input and output.
Where the editor wants the command of an agent, it is `magy acp`. In Zed's settings.json:

  "agent_servers": {"Magy": {"type": "custom", "command": "magy", "args": ["acp"]}}

docs/clients/acp.md says what to paste in other editors."""
SESSION = "id or title of a session, or enough of its beginning to be unique"


def build(chosen: str = "") -> argparse.ArgumentParser:
    """Returns the parser of the whole command line. With a command that is `chosen` already it
    knows only that one, for making the options of all takes longer than a start should."""
    parser = Parser(
        prog="magy", description="An agent backend for editors, and an agent in a terminal."
    )
    parser.add_argument("--version", action="version", version=f"magy {__version__}")
    parser.set_defaults(root=None)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    for name, add in COMMANDS.items():
        if name == chosen or chosen not in COMMANDS:
            add(commands)
    return parser


def _demo(commands: Commands) -> None:
    demo = commands.add_parser(
        "demo", help="watch an agent do a whole task, in a project made for it"
    )
    flag(demo, "--fast", help="do not pause for the reader")
    flag(demo, "--real", help="use the configured model")


def _replay(commands: Commands) -> None:
    replay = commands.add_parser(
        "replay", help="print every model request of a session, byte for byte"
    )
    replay.add_argument("session", metavar="ID", help="session id")
    replay.add_argument("--to", type=int, metavar="SEQ", help="up to this entry of the log")


def _path(commands: Commands) -> None:
    path = commands.add_parser(
        "path",
        help="print where the client for an editor is",
        description="Print the directory of the client for an editor, for its configuration.",
    )
    path.add_argument("editor", choices=("emacs", "nvim"), help="the editor")


def _completion(commands: Commands) -> None:
    completion = commands.add_parser("completion", help="print completions for a shell")
    completion.add_argument("shell", choices=("bash", "zsh", "fish"), help="which shell")


def _doctor(commands: Commands) -> None:
    doctor = commands.add_parser(
        "doctor", help="say what is wrong with this installation, and how to fix it"
    )
    flag(doctor, "--json", help="print the findings as one JSON object")


def _help(commands: Commands) -> None:
    helped = commands.add_parser("help", help="show the most useful commands in a few lines")
    helped.add_argument(
        "words", nargs="*", default=[], metavar="COMMAND", help="what this command does instead"
    )


def _lsp(commands: Commands) -> None:
    commands.add_parser("lsp", help="serve an editor on standard input and output (the default)")


def _acp(commands: Commands) -> None:
    acp = commands.add_parser(
        "acp",
        help="serve an editor that speaks the Agent Client Protocol",
        description=ACP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    flag(acp, "--acp-v2", help="speak the draft of version 2 with editors that ask for it")


def _showing(parser: argparse.ArgumentParser) -> None:
    flag(parser, "--thinking", help="show the model's thinking")
    form = parser.add_mutually_exclusive_group()
    flag(form, "--json", help="print JSON lines: each session update, then the result")
    flag(form, "-q", "--quiet", help="print only the final text")
    flag(
        parser, "--bypass", help="answer every permission question with yes; deny rules still hold"
    )


def _run(commands: Commands) -> None:
    run = commands.add_parser(
        "run",
        help="give an agent a task",
        description=(
            "Give an agent a task in the project around the current directory. What is piped in "
            "is attached to the prompt. On a terminal it asks for permission; elsewhere nobody "
            "can be asked, and what needs permission is refused."
        ),
        epilog=_codes(EXIT_CODES),
    )
    run.add_argument(
        "words", nargs="*", metavar="PROMPT",
        help="the task; - reads it from standard input; left out, it is asked for on the terminal",
    )  # fmt: skip
    which = run.add_mutually_exclusive_group()
    which.add_argument("-r", "--resume", metavar="ID", help="continue this session, by id or title")
    flag(
        which, "-c", "--continue", help="continue the newest session of this project", dest="newest"
    )
    which.add_argument("--fork", metavar="ID", help="start from a copy of this session")
    run.add_argument("--agent", metavar="NAME", help="the agent (default: the configured one)")
    run.add_argument("--model", metavar="PROVIDER/MODEL", help="the model (default: the agent's)")
    run.add_argument(
        "--cwd", metavar="DIR", help="work in this directory instead of the current one"
    )
    root_option(run)
    _showing(run)


def _codes(codes: Sequence[tuple[int, str]]) -> str:
    return "\n".join(["exit codes:", *(f"  {code:<4} {what}" for code, what in codes)])


def _sessions(commands: Commands) -> None:
    sessions = silent(commands, "sessions", "list, show, resume, export sessions")
    verbs = sessions.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser)
    listed = silent(verbs, "list", "list sessions, this project's first (the default)")
    for parser in (sessions, listed):
        _listing(parser)
    show = _verb(verbs, "show", "print the transcript")
    flag(show, "--thinking", help="show the model's thinking")
    flag(show, "--json", help="print JSON lines: each session update")
    resume = _verb(verbs, "resume", "continue a turn that was interrupted")
    _showing(resume)
    fork = _verb(verbs, "fork", "copy a session; prints the id of the copy")
    fork.add_argument("--at", type=int, metavar="SEQ", help="copy only up to this entry of its log")
    export = _verb(verbs, "export", "write a session to a file")
    export.add_argument(
        "--format", choices=("jsonl", "markdown"), default="markdown",
        help="jsonl: the whole log; markdown: for people to read (the default)",
    )  # fmt: skip
    export.add_argument(
        "-o", "--output", metavar="FILE", help="write to this file (default: standard output)"
    )
    delete = _verb(verbs, "delete", "delete a session permanently")
    flag(delete, "-y", "--yes", help="do not ask for confirmation")
    _pruning(verbs)
    compact = _verb(verbs, "compact", "summarize the conversation, to make room")
    compact.add_argument("focus", nargs="?", default="", help="what the summary must keep")
    _verb(verbs, "summary", "print a summary written by the model")
    title = _verb(verbs, "title", "give a session a title")
    title.add_argument("title", help="the title")
    undo = _verb(verbs, "undo", "undo the last turn, or everything since an earlier one")
    undo.add_argument(
        "--turn", metavar="T", help="undo this turn and all later ones (default: the last turn)"
    )
    flag(undo, "--list", help="only list the turns that can be undone, oldest first")
    redo = _verb(verbs, "redo", "redo what was undone last")
    for parser in (undo, redo):
        what = parser.add_mutually_exclusive_group()
        flag(what, "--files", help="only the files")
        flag(what, "--conversation", help="only the conversation")
        flag(parser, "-n", "--dry-run", help="only show what it would do")
        flag(parser, "--json", help="print one JSON object")


def _pruning(verbs: Commands) -> None:
    prune = verbs.add_parser(
        "prune",
        help="delete the sessions that nobody has used for long",
        description=(
            "Delete the sessions, with their children, in which nothing happened for so long, and "
            "the records of reviews that were settled as long ago. A session stays if a turn of "
            "it is open, if it waits for an answer, if one of its commands runs in the background, "
            "or if a change of it waits for your review. Then give the room that became free back "
            "to the file system, if no other Magy has the database open."
        ),
    )
    prune.add_argument(
        "--older-than", type=span, required=True, metavar="AGE",
        help="how long nothing happened: 12h, 30d or 8w (hours, days, weeks)",
    )  # fmt: skip
    prune.add_argument(
        "--keep", type=count, default=0, metavar="N",
        help="keep the N newest sessions of each project, however old they are",
    )  # fmt: skip
    prune.add_argument(
        "--project", metavar="DIR",
        help="only the sessions of this project, and the reviews of files below it (default: all)",
    )  # fmt: skip
    sure = prune.add_mutually_exclusive_group()
    flag(sure, "-n", "--dry-run", help="only say what would go")
    flag(sure, "-y", "--yes", help="do not ask for confirmation")
    flag(prune, "--json", help="print one JSON object")


def _agents(commands: Commands) -> None:
    agents = silent(commands, "agents", "list, spawn, message and close child agents")
    verbs = agents.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser)
    listed = silent(verbs, "list", "list this project's agents (the default)")
    for parser in (agents, listed):
        _listing_agents(parser)
    listed.add_argument(
        "session", nargs="?", metavar="ID", help="only the agents below this session"
    )
    ratings = silent(verbs, "ratings", "show how good agents have been, and at what")
    ratings.add_argument("agent", nargs="?", metavar="AGENT", help="only this agent")
    flag(ratings, "--json", help="print one JSON object")
    spawn, send = _spawning(verbs), _sending(verbs)
    for parser in (spawn, send):
        parser.add_argument("--key", metavar="KEY", help="sending the same key again has no effect")
        flag(
            parser,
            "-d",
            "--detach",
            help="do not watch it; print its id. An editor or a later command runs it",
        )
        _showing(parser)
    _waiting(verbs)
    close = _verb(verbs, "close", "close a child: it accepts nothing more, and its log stays")
    flag(close, "--cancel", help="also stop what it is doing")
    close.add_argument("--reason", default="", help="the reason, for people")
    flag(close, "--only", help="do not close the children below it")
    flag(close, "--json", help="print one JSON object")


def _models(commands: Commands) -> None:
    models = commands.add_parser(
        "models",
        help="list the models to choose from",
        description=(
            "List the models of each provider that can be used here: those that the configuration "
            "names or Magy knows, then the rest of the provider's own list. All are asked at once; "
            "one that does not answer within seconds is named."
        ),
    )
    models.set_defaults(verb=None)
    flag(models, "--json", help="print one JSON object")
    root_option(models)


def _permissions(commands: Commands) -> None:
    permissions = silent(
        commands, "permissions", "list and withdraw the answers that Magy remembers"
    )
    verbs = permissions.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser)
    listed = silent(verbs, "list", "list what is remembered for this project (the default)")
    withdraw = silent(verbs, "withdraw", "withdraw permissions: Magy asks again")
    for parser in (permissions, listed):
        flag(parser, "--json", help="print one JSON object")
    which = withdraw.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "ids", nargs="*", default=[], metavar="ID",
        help="its id, or enough of its beginning to be unique",
    )  # fmt: skip
    flag(which, "--all", default=False, help="withdraw all of them")
    for parser in (permissions, listed, withdraw):
        root_option(parser)
        parser.add_argument(
            "--session", metavar="ID", help="those that this session and its project remember"
        )


def _spawning(verbs: Commands) -> argparse.ArgumentParser:
    spawn = _verb(verbs, "spawn", "start a child agent of a session on a task")
    spawn.add_argument("prompt", metavar="PROMPT", help="the task; - reads it from standard input")
    spawn.add_argument("--agent", metavar="NAME", help="the agent (default: the parent's)")
    spawn.add_argument("--name", metavar="TITLE", help="a name for the task")
    spawn.add_argument(
        "--context", type=context, default=0, metavar="none|all|N",
        help="how much of the parent's conversation it sees: the latest N turns",
    )  # fmt: skip
    spawn.add_argument(
        "--model", metavar="PROVIDER/MODEL", help="the model (default: the parent's)"
    )
    spawn.add_argument(
        "--cwd", metavar="DIR", help="work in this directory (default: the parent's)"
    )
    flag(spawn, "--worktree", help="work on a git branch of its own, which is merged when done")
    spawn.add_argument(
        "--plugin", metavar="NAME", help="the only plugin that it has (default: as its agent)"
    )
    return spawn


def _sending(verbs: Commands) -> argparse.ArgumentParser:
    send = _verb(verbs, "send", "send a message to an agent")
    send.add_argument("message", nargs="?", metavar="TEXT", help="- reads it from standard input")
    send.add_argument(
        "--data", metavar="JSON", help="a JSON object for programs; no model reads it"
    )
    send.add_argument("--signal", choices=("ping", "cancel", "shutdown"), help="a signal")
    mode = send.add_mutually_exclusive_group()
    for name, help in (
        ("steer", "a running turn gets it at its next step (the default)"),
        ("queue", "it waits until the running turn is over"),
        ("interrupt", "it stops the running turn"),
    ):
        mode.add_argument(
            f"--{name}", dest="delivery", action="store_const", const=name, default="steer",
            help=help,
        )  # fmt: skip
    return send


def _waiting(verbs: Commands) -> None:
    wait = verbs.add_parser("wait", help="wait for children, and print their results")
    wait.add_argument(
        "session",
        nargs="+",
        metavar="ID",
        help="children to wait for; a parent stands for all of its children",
    )
    flag(wait, "--any", help="return when one of them is done (default: when all are)")
    wait.add_argument(
        "--after", type=seq, metavar="SEQ", help="count only turns that ended after this cursor"
    )
    wait.add_argument("--timeout", type=seconds, default=300.0, metavar="S", help="seconds (300)")
    flag(wait, "--json", help="print one JSON object")


def _listing_agents(parser: argparse.ArgumentParser) -> None:
    root_option(parser)
    flag(parser, "--everywhere", help="list the agents of all projects")
    flag(parser, "--all", help="include closed agents")
    form = parser.add_mutually_exclusive_group()
    flag(form, "--json", help="print one JSON object")
    flag(form, "--ids", help="print only the ids")


def _verb(verbs: Commands, name: str, help: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(name, help=help, description=sentence(help))
    parser.add_argument("session", metavar="ID", help=SESSION)
    return parser


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def _listing(parser: argparse.ArgumentParser) -> None:
    root_option(parser)
    flag(parser, "--here", help="only this project's sessions")
    parser.add_argument(
        "--limit", type=positive, metavar="N", help="how many to list (default: 30)"
    )
    parser.add_argument("--cursor", metavar="PLACE", help="continue where the previous page ended")
    flag(parser, "--all", help="list all of them")
    form = parser.add_mutually_exclusive_group()
    flag(form, "--json", help="print one JSON object")
    flag(form, "--ids", help="print only the ids")


EDIT_FORMATS = ("str_replace", "aider", "cline", "roo", "unified", "v4a", "whole")


def _edit(commands: Commands) -> None:
    edit = commands.add_parser(
        "edit",
        help="apply an edit, in any of the usual formats, to files",
        description=(
            "Apply an edit to files: a diff, a V4A patch, search/replace blocks, JSON or whole "
            "files. It is read from standard input; the files it names are below the current "
            "directory. Everything it asks for is done, or nothing."
        ),
        epilog=_codes(EDIT_CODES),
    )
    edit.add_argument(
        "files", nargs="*", metavar="FILE",
        help="only these files may change, wherever they are; with a single file, the edit's own "
            "file name is ignored",
    )  # fmt: skip
    edit.add_argument(
        "--format", choices=EDIT_FORMATS, help="the format of the edit (default: detected)"
    )
    edit.add_argument("--from", dest="source", metavar="EDIT", help="else standard input")
    edit.add_argument(
        "--seen", metavar="TEXT",
        help="a file with the text that the edit was made for; later changes are merged",
    )  # fmt: skip
    dry = edit.add_mutually_exclusive_group()
    flag(dry, "--check", help="change nothing; report what would be done")
    flag(dry, "--diff", help="change nothing; print the diff")
    flag(edit, "--json", help="print one JSON object: files and failures")


def _worktrees(commands: Commands) -> None:
    worktrees = silent(commands, "worktrees", "list and remove the git worktrees of agents")
    verbs = worktrees.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser)
    listed = silent(verbs, "list", "list them, with branch, state and size (the default)")
    prune = verbs.add_parser(
        "prune",
        help="remove those of which nothing would be lost",
        description=(
            "Remove the worktrees, and their branches, whose work is all in the base branch. A "
            "worktree stays if an agent is at work in it, or if something in it is not merged."
        ),
    )
    prune.add_argument("names", nargs="*", metavar="NAME", help="only these")
    flag(prune, "--force", help="remove these, with work that is not merged; it is lost")
    flag(prune, "-n", "--dry-run", help="only say what would go")
    for parser in (worktrees, listed, prune):
        flag(parser, "--json", help="print one JSON object")
        root_option(parser)


def _config(commands: Commands) -> None:
    config = commands.add_parser(
        "config",
        help="print the settings in effect here, and where each comes from",
    )
    root_option(config)
    form = config.add_mutually_exclusive_group()
    flag(form, "--json", help="print one JSON object")
    flag(form, "--schema", help="print the JSON Schema of magy.toml")
    verbs = config.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser)
    verbs.add_parser("path", help="print where configuration and sessions are kept")
    check = verbs.add_parser("check", help="check a magy.toml for mistakes")
    check.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="the file to check (default: the user's and the project's)",
    )
    verbs.add_parser("trust", help="trust this project's own configuration")
    verbs.add_parser(
        "untrust", help="take the trust back: the project's configuration can only restrict again"
    )


COMMANDS: Mapping[str, Callable[[Commands], None]] = {
    "run": _run, "sessions": _sessions, "agents": _agents, "graph": graph_options,
    "models": _models, "magi": magi_options, "permissions": _permissions, "policy": policy_options,
    "audit": audit_options, "mcp": mcp_options, "skills": skill_options, "plugins": plugin_options,
    "worktrees": _worktrees, "config": _config, "edit": _edit, "doctor": _doctor, "help": _help,
    "lsp": _lsp, "acp": _acp, "demo": _demo, "replay": _replay, "path": _path,
    "completion": _completion,
}  # fmt: skip
"""What adds each command to the parser, as `magy --help` orders them."""
