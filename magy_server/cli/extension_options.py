"""This module defines the command lines of `magy skills` and `magy plugins`, which add to Magy. It
imports next to nothing."""

from __future__ import annotations

from magy_server.cli.parser_parts import Commands, Parser, flag, root_option, silent


def skill_options(commands: Commands) -> None:
    skills = silent(commands, "skills", "list, write, check and install skills for agents")
    verbs = skills.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser)
    listed = silent(verbs, "list", "list the skills of this project (the default)")
    show = silent(verbs, "show", "print a skill as agents get it, and what it may touch")
    check = silent(verbs, "check", "say what is wrong with skills, each with its line")
    explain = silent(verbs, "explain", "say which skills a prompt would bring along, and why")
    new = silent(verbs, "new", "write the beginnings of a skill, to be filled in")
    install = silent(verbs, "install", "take a skill from a folder or a git repository")
    remove = silent(verbs, "remove", "remove a skill that was installed")
    for parser in (skills, listed):
        flag(parser, "--json", help="print one JSON object")
    for parser in (show, new, remove):
        parser.add_argument("name", metavar="NAME", help="the skill's name")
    check.add_argument(
        "paths", nargs="*", default=[], metavar="PATH",
        help="folders of skills, or their files (default: all skills of this project)",
    )  # fmt: skip
    explain.add_argument("prompt", metavar="PROMPT", help="what you would ask")
    flag(new, "--project", default=False, help="in this project's .magy/skills, not in yours")
    install.add_argument("origin", metavar="FOLDER|URL", help="where it is")
    install.add_argument("--part", default="", metavar="PATH", help="the folder within it")
    flag(
        install, "--replace", default=False,
        help="delete a skill of this name that you put into your folder yourself",
    )  # fmt: skip
    for parser in (install, remove):
        flag(parser, "-y", "--yes", default=False, help="do not ask for confirmation")
    for parser in (skills, listed, show, check, explain, new):
        root_option(parser)


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
