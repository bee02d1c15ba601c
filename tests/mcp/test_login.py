"""Logins to an MCP server, over real HTTP: the server asks for OAuth, `magy mcp login` gets it by a
browser, and what it got is kept, used, renewed, and forgotten."""

from __future__ import annotations

import asyncio
import json
import re
import stat
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from magy_server.core.errors import ToolError
from tests.cli.harness import Magy
from tests.mcp.test_http_servers import free_port, running
from tests.mcp.test_servers import house


@pytest.fixture
def magy(tmp_path: Path) -> Magy:
    (tmp_path / "project").mkdir()
    return Magy(tmp_path / "project", tmp_path / "state")


def kept_file(magy: Magy) -> Path:
    (path,) = (magy.state / "mcp" / "logins").iterdir()
    return path


async def visited(url: str) -> str:
    """What the browser shows at the end."""
    return await asyncio.to_thread(lambda: urllib.request.urlopen(url, timeout=60).read().decode())


@pytest.mark.req("G040")
async def test_a_login_is_kept_used_renewed_and_forgotten(magy: Magy) -> None:
    port = free_port()
    browser = f"{sys.executable} {Path(__file__).with_name('browser.py')} %s"
    async with running(port, "oauth_server.py") as server:
        magy("mcp", "add", "guarded", server.url)
        needs = "it needs a login: run `magy mcp login guarded` in a terminal"
        tried = await asyncio.to_thread(magy, "mcp", "test", env={"BROWSER": browser})
        assert needs in " ".join(tried.stdout.split()) and not (magy.state / "mcp/logins").exists()
        assert needs in " ".join(magy("mcp", "list").stdout.split())
        assert needs in " ".join(magy("doctor").stdout.split())
        done = await asyncio.to_thread(magy, "mcp", "login", "guarded", env={"BROWSER": browser})
        assert done.returncode == 0 and "logged in to guarded (guarded 1.0)" in done.stdout, done
        assert needs not in " ".join(magy("mcp", "list").stdout.split())
        path = kept_file(magy)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        async with house(magy.state, guarded=server) as one:
            assert (await one.call("guarded__whoami")).for_model == "You are let in."
        before = json.loads(path.read_text())
        path.write_text(json.dumps({**before, "ends": 1}))
        async with house(magy.state, guarded=server) as one:
            assert (await one.call("guarded__whoami")).for_model == "You are let in."
            after = json.loads(path.read_text())
            assert after["tokens"]["access_token"] != before["tokens"]["access_token"]
            path.write_text(json.dumps({**after, "tokens": {"access_token": "x"}, "ends": 1}))
        async with house(magy.state, guarded=server) as one:
            with pytest.raises(ToolError, match="is over: run `magy mcp login guarded`"):
                await one.call("guarded__whoami")
        assert "is forgotten" in magy("mcp", "logout", "guarded").stdout and not path.exists()


async def test_a_login_that_is_refused_or_forged_keeps_nothing(magy: Magy) -> None:
    async with running(free_port(), "oauth_server.py") as server:
        magy("mcp", "add", "guarded", server.url)
        for forged, said in (("error=access_denied", "access_denied"), ("code=1&state=2", "State")):
            started = magy.start("mcp", "login", "guarded")
            assert started.stdout
            await asyncio.to_thread(started.stdout.readline)
            url = await asyncio.to_thread(started.stdout.readline)
            back = re.search(r"redirect_uri=([^&\s]+)", url)
            assert back and "code_challenge_method=S256" in url
            callback = urllib.request.unquote(back[1])
            with pytest.raises(urllib.error.HTTPError):
                await visited(callback.replace("/callback", "/else"))
            await visited(f"{callback}?{forged}")
            out, _ = await asyncio.to_thread(started.communicate)
            assert started.returncode == 1 and said in out, out
        assert not (magy.state / "mcp/logins").exists()
