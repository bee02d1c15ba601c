"""This module defines the command line of `magy plugins`. It imports next to nothing."""

from __future__ import annotations

from magy_server.cli.parser_parts import Commands, Parser, flag, root_option, silent


def plugin_options(commands: Commands) -> None:
    plugins = silent(commands, "plugins", "switch plugins of installed packages on and off")
    verbs = plugins.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser)
    listed = silent(verbs, "list", "list the plugins, and what is wrong with any (the default)")
    enable = silent(verbs, "enable", "switch a plugin on, as its package is now")
    disable = silent(verbs, "disable", "switch a plugin off")
    run = silent(verbs, "run", "open a door that a plugin has; Ctrl-C closes it")
    for parser in (plugins, listed):
        flag(parser, "--json", help="print one JSON object")
    for parser in (enable, disable):
        parser.add_argument("name", metavar="NAME", help="the plugin's name")
    flag(enable, "-y", "--yes", default=False, help="do not ask for confirmation")
    run.add_argument("door", metavar="DOOR", help="the door's name")
    run.add_argument("words", nargs="*", default=[], metavar="WORD", help="after --: for the door")
    root_option(run)
