"""This module defines the command line of `magy mcp`. It imports next to nothing."""

from __future__ import annotations

from magy_server.cli.parser_parts import Commands, Parser, flag, root_option, silent


def mcp_options(commands: Commands) -> None:
    servers = silent(commands, "mcp", "list, add, test the MCP servers that give agents tools")
    verbs = servers.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser)
    listed = silent(verbs, "list", "list the servers of this project (the default)")
    add = silent(verbs, "add", "add a server to your settings, or to the project's")
    remove = silent(verbs, "remove", "remove a server from your settings, or from the project's")
    test = silent(verbs, "test", "start servers, and say what tools they have or what is wrong")
    logs = silent(verbs, "logs", "print what a server said, and how its connections went")
    login = silent(verbs, "login", "log in to a server in your browser")
    logout = silent(verbs, "logout", "forget the login to a server")
    serve = silent(verbs, "serve", "offer sessions and edits to other agents, as an MCP server")
    imported = silent(verbs, "import", "take the servers that Claude Code, Codex and VS Code have")
    for parser in (servers, listed):
        flag(parser, "--json", help="print one JSON object")
    for parser in (add, remove, logs, login, logout):
        parser.add_argument("name", metavar="NAME", help="the server's name")
    add.add_argument("starts", metavar="COMMAND|URL", help="the program, or the address")
    add.add_argument("arguments", nargs="*", default=[], metavar="ARG", help="after --: arguments")
    add.add_argument(
        "--env", action="append", default=[], metavar="NAME=VALUE", help="a variable for it"
    )
    add.add_argument(
        "--header", action="append", default=[], metavar="NAME=VALUE", help="a header for it"
    )
    test.add_argument("names", nargs="*", default=[], metavar="NAME", help="default: all of them")
    flag(imported, "-y", "--yes", default=False, help="do not ask for confirmation")
    for parser in (add, remove):
        flag(parser, "--project", default=False, help="in the magy.toml of this project")
    for parser in (servers, listed, add, remove, test, login, logout, serve, imported):
        root_option(parser)
