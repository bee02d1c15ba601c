"""This module defines the command line of `magy magi`. It imports next to nothing."""

from __future__ import annotations

import argparse

from magy_server.cli.parser_parts import Commands, flag, root_option

REPLAY = "replay"
FORMS = ("text", "box", "markdown", "json")
MODES = ("FAST", "FAST+", "DEEP")


def magi_options(commands: Commands) -> None:
    magi = commands.add_parser(
        "magi",
        help="have a question judged by three agents, and read what their votes come to",
        description=(
            "Put a question to three agents that judge it apart from each other, and read the "
            "ruling that their votes come to. What is piped in is attached as context. "
            "`magy magi replay SESSION` works a ruling out again from the log, and says whether it "
            "is the same, byte for byte."
        ),
    )
    magi.add_argument(
        "words", nargs="+", metavar="QUESTION|replay SESSION",
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
