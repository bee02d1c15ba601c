"""This module defines the command lines of `magy magi` and `magy graph`. It imports next to
nothing."""

from __future__ import annotations

import argparse

from magy_server.cli.parser_parts import Commands, Parser, flag, root_option

LIST, REPLAY, ACCEPT, LOG = "list", "replay", "accept", "log"
FORMS = ("text", "box", "markdown", "json")
MODES = ("FAST", "FAST+", "DEEP")


def magi_options(commands: Commands) -> None:
    magi = commands.add_parser(
        "magi",
        help="have a question judged by three agents, and read what their votes come to",
        description=(
            "Put a question to three agents that judge it apart from each other, and read the "
            "ruling that their votes come to. What is piped in is attached as context. "
            "`magy magi list` has the rulings of all sessions of this project. "
            "`magy magi replay SESSION` works a ruling out again from the log, and says whether it "
            "is the same, byte for byte. `magy magi accept SESSION [RULING]` accepts a ruling that "
            "overturns an earlier one. `magy magi log` lists CASPER's emotional log of this "
            "project, with `show ID`, `delete ID ...`, `reviewed`, `clear`, and `forget`: that of "
            "all projects."
        ),
    )
    magi.add_argument(
        "words", nargs="+", metavar="QUESTION|list|replay SESSION|accept SESSION|log",
        help="what is to be decided; - reads it from standard input",
    )  # fmt: skip
    magi.add_argument("--mode", choices=MODES, help="how thorough (default: as the question calls "
                      "for)")  # fmt: skip
    magi.add_argument(
        "--format", choices=FORMS, help="print only the ruling, in this form (replay: text)"
    )
    magi.add_argument(
        "--unmet", type=_number, action="append", default=[], metavar="N",
        help="replay: as if condition N of the ruling were not met; may be given again",
    )  # fmt: skip
    magi.add_argument("-r", "--resume", metavar="ID", help="in this session, for a review say")
    magi.add_argument("--model", metavar="PROVIDER/MODEL", help="the model that puts the question")
    root_option(magi)
    flag(magi, "--bypass", help="answer every permission question with yes")


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 1000):
        raise argparse.ArgumentTypeError(f"{text!r} is not the number of a condition")
    return int(text)


FILE = (
    "Have several agents do tasks of which some need the results of others, in a session of this "
    "project. FILE is YAML or JSON: `tasks`, each with an `id`, a `prompt` and what it `needs`; "
    "docs/howto/graphs.md has an example. Ctrl-C stops all of it, and --resume goes on."
)


def graph_options(commands: Commands) -> None:
    graph = commands.add_parser("graph", help="have agents do tasks that build on each other")
    verbs = graph.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=Parser)
    run = verbs.add_parser(
        "run",
        help="have the tasks of a file done, each as soon as what it needs is done",
        description=FILE,
    )
    run.add_argument(
        "file", nargs="?", metavar="FILE", help="the tasks; - reads them from standard input"
    )
    which = run.add_mutually_exclusive_group()
    which.add_argument(
        "-r", "--resume", metavar="SESSION", help="go on with the latest graph of this session"
    )
    which.add_argument("--session", metavar="SESSION", help="in this session, not in a new one")
    run.add_argument(
        "--agent", metavar="NAME", help="whose rules hold (default: the configured one)"
    )
    run.add_argument(
        "--model", metavar="PROVIDER/MODEL", help="for tasks and agents that name none"
    )
    run.add_argument(
        "--cwd", metavar="DIR", help="work in this directory instead of the current one"
    )
    root_option(run)
    form = run.add_mutually_exclusive_group()
    flag(form, "--json", help="print JSON lines: each session update, then the result")
    flag(form, "-q", "--quiet", help="print only what all tasks come to")
    flag(run, "--bypass", help="answer every permission question with yes; deny rules still hold")
    run.set_defaults(thinking=False)
    show = verbs.add_parser(
        "show", help="show the tasks of a graph: who did what, how it went, what it took"
    )
    show.add_argument("session", metavar="SESSION", help="id or title of its session")
    show.add_argument("graph", nargs="?", metavar="GRAPH", help="its id (default: the latest)")
    form = show.add_mutually_exclusive_group()
    flag(form, "--json", help="print one JSON object")
    flag(form, "--dot", help="print a picture in the language of Graphviz")
    flag(form, "--mermaid", help="print a picture for Markdown")
