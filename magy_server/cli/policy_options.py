"""This module declares the options of `magy policy` and `magy audit`."""

from __future__ import annotations

from magy_server.cli.parser_parts import Commands, Parser, flag, root_option, silent


def policy_options(commands: Commands) -> None:
    policy = silent(commands, "policy", "list the rules that hold here, and try a call by them")
    verbs = policy.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser)
    listed = silent(verbs, "list", "list all rules and guardrails, by their source (the default)")
    test = silent(verbs, "test", "say what would be decided about a call, and why; run nothing")
    for parser in (policy, listed, test):
        flag(parser, "--json", help="print one JSON object")
        root_option(parser)
        parser.add_argument("--agent", metavar="NAME", help="the agent (default: the configured)")
    test.add_argument(
        "tool", metavar="TOOL", help="a tool (bash), or a permission key that has one (read, edit)"
    )
    test.add_argument(
        "words", nargs="*", metavar="WORD",
        help="its first parameter: a command, a path, an address",
    )  # fmt: skip
    test.add_argument(
        "--arguments", metavar="JSON", help="all its parameters, as a model gives them"
    )


def audit_options(commands: Commands) -> None:
    audit = commands.add_parser("audit", help="verify the audit of what was asked and decided")
    verbs = audit.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=Parser)
    verify = verbs.add_parser(
        "verify", help="say whether the audit is as Magy wrote it, or where it first is not"
    )
    flag(verify, "--json", help="print one JSON object")
    root_option(verify)
    verify.add_argument("--directory", metavar="DIR", help="another directory of audit files")
    verify.add_argument(
        "--expect", metavar="HASH", help="fail also if no line has this hash, printed before"
    )
