"""The options of all commands are made of these parts: a parser, flags, and the types of values."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from magy_server.cli.plain_output import tell

HANG = 7
"""Where the words about an exit code stand."""


class Help(argparse.HelpFormatter):
    """Fills each line of a description or an epilog for itself, between words."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        import textwrap

        def filled(line: str) -> str:
            hang = " " * HANG if line.startswith("  ") else ""
            return textwrap.fill(line, width, subsequent_indent=indent + hang,
                                 break_long_words=False, break_on_hyphens=False)  # fmt: skip

        return "\n".join(filled(indent + line) for line in text.split("\n"))


class Parser(argparse.ArgumentParser):
    """Takes subcommands only in full: an abbreviation could change its meaning with the next
    version. Options may stand anywhere; errors come with the usage of the subcommand."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("allow_abbrev", False)
        options.setdefault("formatter_class", Help)
        super().__init__(**options)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        if self._subparsers is None and args is not None:
            args = self._options_first(args)
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def _print_message(self, message: str, file: Any = None) -> None:
        if file is not sys.stdout:
            super()._print_message(message, file)
        elif message:
            tell(message)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Names the choice that was perhaps meant, instead of all."""
        if action.choices is not None and value not in action.choices:
            import difflib

            if near := difflib.get_close_matches(str(value), map(str, action.choices), 1):
                said = f"invalid choice: {value!r}; did you mean {near[0]!r}?"
                raise argparse.ArgumentError(action, said)
        super()._check_value(action, value)

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


Commands = Any
"""What `add_subparsers` gives; argparse keeps the name of its class to itself."""


def silent(commands: Commands, name: str, help: str) -> argparse.ArgumentParser:
    """For options both on `sessions` and on `sessions list`: those of one that are not given leave
    the other's alone."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=help, argument_default=argparse.SUPPRESS
    )
    return parser


def flag(parser: argparse._ActionsContainer, *names: str, help: str, **more: Any) -> None:
    parser.add_argument(*names, action="store_true", help=help, **more)


def root_option(parser: argparse.ArgumentParser) -> None:
    """An option of its parser that may be an option of a verb, too: whose is given counts."""
    parser.add_argument(
        "--root", default=argparse.SUPPRESS, metavar="DIR",
        help="the project directory; else the git work tree around the current directory",
    )  # fmt: skip


_HOURS = {"h": 1, "d": 24, "w": 7 * 24}


def span(text: str) -> float:
    """Returns seconds."""
    number, unit = text[:-1], text[-1:]
    if not (number.isascii() and number.isdigit() and len(number) < 6 and int(number)):
        unit = ""
    if unit not in _HOURS:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not an age: write a number and h, d or w, as in 30d"
        )
    return int(number) * _HOURS[unit] * 3600.0


def count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of sessions")
    return int(text)


def context(text: str) -> int:
    """Returns a number of turns, -1 for all."""
    if text in ("none", "all"):
        return -1 if text == "all" else 0
    if not (text.isdigit() and 1 <= int(text) <= 1000):
        raise argparse.ArgumentTypeError(f"{text!r} is not none, all, or a number from 1 upwards")
    return int(text)


def seq(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not the number of an entry")
    return int(text)


def seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds up to 86400")
    return seconds


def positive(text: str) -> int:
    number = int(text) if text.isdigit() else 0
    if not 1 <= number <= 500:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 500")
    return number
