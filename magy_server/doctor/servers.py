"""This check looks at the MCP servers that are configured here; `magy mcp test` starts them."""

from __future__ import annotations

import shutil

from magy_server.core.text.sanitizing import one_line
from magy_server.doctor import project
from magy_server.doctor.finding import Around, Finding, note, ok, warning

_MEND = "Correct it where it stands; docs/howto/mcp.md says what a server needs."


def check(around: Around) -> list[Finding]:
    from magy_server.config import layers
    from magy_server.core.errors import InvalidConfig
    from magy_server.mcp.server_log import last_failure, log_path
    from magy_server.projects import mcp_servers

    try:
        loaded = layers.load(around.root, trusted=project.trusted(around), options={})
    except InvalidConfig:
        return []  # the check of the configuration says what is wrong
    servers, unusable = mcp_servers(loaded, around.environ)
    findings = [warning(said, _MEND) for said in (*loaded.problems, *unusable)]
    for name, server in servers.items():
        program = server.command
        if program and "/" not in program and not shutil.which(program):
            what = f"The MCP server {name!r} runs {program!r}, which is not in the PATH."
            findings.append(note(what, "Install it, or give its whole path."))
        if why := one_line(last_failure(log_path(layers.state_dir(), name))):
            what = f"The MCP server {name!r} could not be connected to the last time: {why}."
            findings.append(note(what, f"`magy mcp test {name}` tries again and says more."))
    if servers:
        names = ", ".join(servers)
        findings.append(ok(f"MCP servers: {names}. `magy mcp test` tries them."))
    return findings
