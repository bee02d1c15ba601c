"""Logins to an MCP server, over real HTTP: the server asks for OAuth, `magy mcp login` gets it by a
browser, and what it got is kept, used, renewed, and forgotten."""

from __future__ import annotations

import asyncio
import json
import re
import stat
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from magy_server.core.errors import ToolError
from magy_server.mcp.kept_logins import kept
from tests.cli.harness import Magy
from tests.mcp.test_http_servers import free_port, running
from tests.mcp.test_servers import house


@pytest.fixture
def magy(tmp_path: Path) -> Magy:
    (tmp_path / "project").mkdir()
    return Magy(tmp_path / "project", tmp_path / "state")


def kept_file(magy: Magy) -> Path:
    (path,) = (magy.state / "mcp" / "logins").glob("*.json")
    return path


async def visited(url: str) -> str:
    """What the browser shows at the end."""
    return await asyncio.to_thread(lambda: urllib.request.urlopen(url, timeout=60).read().decode())


@pytest.mark.req("G040")
async def test_a_login_is_kept_used_renewed_and_forgotten(magy: Magy) -> None:
    port = free_port()
    browser = f"{sys.executable} {Path(__file__).with_name('browser.py')} %s"
    async with running(port, "oauth_server") as server:
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


async def begun(magy: Magy) -> tuple[subprocess.Popen[str], str, str]:
    """A login under way: (the command, the address for the browser, where that comes back to)."""
    started = magy.start("mcp", "login", "guarded")
    assert started.stdout
    await asyncio.to_thread(started.stdout.readline)
    url = (await asyncio.to_thread(started.stdout.readline)).strip()
    back = re.search(r"redirect_uri=([^&\s]+)", url)
    assert back and "code_challenge_method=S256" in url
    return started, url, urllib.parse.unquote(back[1])


async def test_a_login_that_is_refused_keeps_nothing(magy: Magy) -> None:
    async with running(free_port(), "oauth_server") as server:
        magy("mcp", "add", "guarded", server.url)
        for wrong, shown in (("error=access_denied", "access_denied"), ("code=1", "guarded: ")):
            started, url, callback = await begun(magy)
            state = urllib.parse.parse_qs(urllib.parse.urlsplit(url).query)["state"][0]
            said = await visited(f"{callback}?{wrong}&state={state}")
            assert said == "The login did not work. The terminal says why."
            out, _ = await asyncio.to_thread(started.communicate)
            assert started.returncode == 1 and shown in out, out
        assert not (magy.state / "mcp/logins").exists()


async def test_no_other_program_of_this_machine_decides_a_login(magy: Magy) -> None:
    async with running(free_port(), "oauth_server") as server:
        magy("mcp", "add", "guarded", server.url)
        started, url, callback = await begun(magy)
        for forged in ("/else", "?error=access_denied", "?code=1&state=2", "?code=1", ""):
            with pytest.raises(urllib.error.HTTPError):
                await visited(callback + forged)
        assert await visited(url) == "You are logged in, and can close this page."
        out, _ = await asyncio.to_thread(started.communicate)
        assert started.returncode == 0 and kept_file(magy), out


async def test_two_that_renew_a_login_at_once_renew_it_once(magy: Magy) -> None:
    async with running(free_port(), "oauth_server") as server:
        magy("mcp", "add", "guarded", server.url)
        started, url, _ = await begun(magy)
        await visited(url)
        await asyncio.to_thread(started.communicate)
        path = kept_file(magy)
        path.write_text(json.dumps({**json.loads(path.read_text()), "ends": 1}))
        made = partial(house, magy.state, guarded=server)
        async with made() as one, made() as two:
            for _ in range(2):
                calls = [each.call("guarded__whoami") for each in (one, two)]
                for answer in await asyncio.gather(*calls):
                    assert answer.for_model == "You are let in."


def test_a_login_is_never_read_half_written(tmp_path: Path) -> None:
    place = kept(tmp_path, "guarded", "http://here")
    texts = ["a" * 200_000, "b" * 50]

    def write(text: str) -> None:
        for _ in range(200):
            place.write(text)

    with ThreadPoolExecutor() as threads:
        writers = [threads.submit(write, text) for text in texts]
        while not all(one.done() for one in writers):
            assert place.read() in ("", *texts)
        for one in writers:
            one.result()
    assert len(list((tmp_path / "mcp" / "logins").iterdir())) == 1
