"""`magy mcp login` logs in to an MCP server in a browser; `magy mcp logout` forgets that."""

from __future__ import annotations

import argparse
import os
import sys
import threading
import webbrowser
from collections.abc import Mapping

from magy_server.cli import exit_codes
from magy_server.cli.commands.mcp import loaded
from magy_server.cli.composition import Composition, Verb
from magy_server.cli.screen.terminal import Screen, standard_output
from magy_server.config import layers
from magy_server.core.errors import InvalidConfig, InvalidRequest, NotFound
from magy_server.core.mcp.server_settings import McpServer, usable
from magy_server.core.text.sanitizing import one_line
from magy_server.mcp.kept_logins import kept
from magy_server.mcp.server_log import CONNECTED, ServerLog, log_path

_DISPLAYS = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
"""Where none is set, a browser would be one that takes the terminal."""


async def login(options: argparse.Namespace, app: Composition) -> int:
    server = await _server(options, app)
    from magy_server.mcp.http_streams import has_header
    from magy_server.mcp.login import log_in
    from magy_server.mcp.offers import LinkError, Reach

    if has_header(server.headers):
        raise InvalidRequest(
            f"The settings of {options.name} have an Authorization header, which goes before a "
            "login; take it out first."
        )
    screen = Screen(standard_output())
    where = kept(layers.state_dir(), options.name, server.url)
    reach = Reach(url=server.url, headers=server.headers, login=where)
    try:
        about = await log_in(options.name, reach, _shown)
    except LinkError as error:
        text = f"{options.name}: {one_line(error.message)}\n"
        await screen.write([(f"{screen.marks.failed} ", "red"), (text, "")])
        return exit_codes.ERROR
    # What was wrong the last time is so no more.
    ServerLog(log_path(layers.state_dir(), options.name))(f"{CONNECTED}{about}: logged in")
    text = f"You are logged in to {options.name} ({one_line(about)}).\n"
    await screen.write([(f"{screen.marks.done} ", "green"), (text, "")])
    return exit_codes.DONE


def _shown(url: str) -> None:
    print(f"Log in here, in a browser on this machine:\n{one_line(url)}", flush=True)
    if sys.platform == "darwin" or any(os.environ.get(name) for name in _DISPLAYS):
        # A browser may run for as long as its window is open.
        threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()


async def logout(options: argparse.Namespace, app: Composition) -> int:
    server = await _server(options, app)
    where = kept(layers.state_dir(), options.name, server.url)
    async with where.alone():
        there = where.remove()
    said = "is forgotten" if there else "there is none"
    await Screen(standard_output()).write([(f"The login to {options.name}: {said}.\n", "")])
    return exit_codes.DONE


async def _server(options: argparse.Namespace, app: Composition) -> McpServer:
    """Raises MagyError: there is none of this name here that logs anybody in."""
    root, settings = await loaded(options, app)
    known = settings.settings.mcp
    if options.name not in known:
        names = ", ".join(known) or "none"
        raise NotFound(
            f"There is no MCP server {options.name!r} in {root}. These are there: {names}."
        )
    try:
        server = usable(options.name, known[options.name], os.environ)
    except InvalidConfig as error:
        raise InvalidConfig(f"MCP server {options.name!r}: {error.message}") from None
    if not server.url:
        raise InvalidRequest(
            f"{options.name} is a program on this machine; only servers with a url have a login."
        )
    return server


VERBS: Mapping[str, Verb] = {"login": login, "logout": logout}
