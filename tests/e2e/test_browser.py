"""The tool `browser`: a real Chromium, pages on loopback, a person who is asked."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import shutil
from pathlib import Path
from typing import Any

import psutil
import pytest

from magy_server.tools.web import browsing
from tests.clients.test_emacs import missing
from tests.clients.vscode import driven
from tests.loopback import text
from tests.loopback.http import Exchange, Request
from tests.loopback.web import WebServer

from .test_api_tools import answered, at_work, made
from .test_seldom_tools import results

SHOP = """<!doctype html><title>The shop</title>
<main><h1>Prices</h1><p id=said>loading</p>
<label>Name <input id=name></label>
<label>Size <select id=size><option>small<option>large</select></label>
<button onclick="order()">Order</button> <a href="{away}">Elsewhere</a></main>
<script>
said.textContent = "made by a script";
function order() {{
  const name = document.getElementById("name").value;
  fetch("/order", {{method: "POST", body: name + " " + size.value}})
    .then(answer => answer.text()).then(text => said.textContent = text);
}}
</script>"""
ROOTLESS = {"tools": {"browser_sandbox": False}}
"""Tests run as root, too."""


@pytest.fixture(autouse=True)
def needs_a_browser() -> None:
    if driven.lacking_browser():
        missing(driven.lacking_browser())


@pytest.fixture
def windowed(tmp_path: Path) -> dict[str, str]:
    """The environment in which there is only the Chromium that can show windows, which takes more
    than twice the time for the same. One of these tests has it."""
    program = shutil.which("chromium")
    if program is None:
        return {}
    first = tmp_path / "bin"
    first.mkdir()
    shell = first / "chromium-headless-shell"
    shell.write_text(f'#!/bin/sh\nexec {shlex.quote(program)} "$@"\n')
    shell.chmod(0o755)
    return {"PATH": f"{first}{os.pathsep}{os.environ['PATH']}"}


def shop(web: WebServer, ordered: list[bytes], away: str = "/other") -> None:
    async def order(request: Request, exchange: Exchange) -> None:
        ordered.append(request.raw)
        await exchange.send(200, b"Ordered for " + request.raw, "text/plain")

    web.page("/", SHOP.format(away=away))
    web.answer("/order", order)
    web.page("/other", "<title>Other</title><p>Another page</p>")


@pytest.mark.req("A097")
async def test_a_page_is_used_after_one_question(root: Path, state: Path) -> None:
    steps = [
        {"do": "fill", "target": "Name", "text": "Ada"},
        {"do": "choose", "target": "#size", "text": "large"},
        {"do": "click", "target": "Order"},
        {"do": "wait_for", "target": "Ordered for"},
    ]
    ordered: list[bytes] = []
    async with WebServer() as web, at_work(root, state, **ROOTLESS) as (one, server):
        shop(web, ordered)
        url = web.url("/")
        server.reply(made("browser", 1, url=url, steps=steps))
        server.reply(made("browser", 2, url=url, show="elements"))
        server.reply(made("browser", 3, url=url, show="picture"))
        server.reply(text("Over."))
        await one.ask("Go")
        question = await one.question()
        assert question["title"] == f"Use {url} in a browser"
        assert "1. fill Name 'Ada'" in json.dumps(question)
        await one.respond(question["interactionId"])
        for _ in range(2):
            await one.respond((await one.question())["interactionId"])
        await one.end()
        said = results(server)
        assert ordered == [b"Ada large"], said["c1"]
        assert "Ordered for Ada large" in said["c1"] and 'title="The shop"' in said["c1"]
        assert 'button "Order"' in said["c2"] and 'textbox "Name"' in said["c2"]
        assert "made by a script" in said["c2"], "each call begins anew"
        assert "image_url" in json.dumps(server.asked[-1].body)
    left = [p for p in psutil.Process().children(recursive=True) if "chrom" in p.name()]
    assert not left, "the browser ended with the call"


@pytest.mark.long
async def test_a_page_reaches_neither_this_machine_nor_another_page_unasked(
    root: Path, state: Path
) -> None:
    """The page of a name that is public is one that may be hostile."""
    allowed: dict[str, Any] = {"permission": {"browser": "allow"}, **ROOTLESS}
    async with (
        WebServer() as secret,
        WebServer() as web,
        at_work(root, state, **allowed) as (one, server),
    ):
        secret.page("/", "secret")
        reads = (
            f"<title>Bad</title><p id=said>nothing</p><script>fetch('{secret.url('/')}', "
            "{mode: 'no-cors'}).then(() => said.textContent = 'REACHED', "
            "() => said.textContent = 'refused');</script>"
        )
        web.page("/bad", reads)
        shop(web, [], away=secret.url("/"))
        web.redirect("/led", secret.url("/"))
        web.page("/leaves", f"<script>location = '{secret.url('/')}'</script>")
        web.page("/gone", "<p>No such thing</p>", status=404)
        click = [{"do": "click", "target": "Elsewhere"}]
        server.reply(
            made(
                "browser", 1, url=web.url("/bad"), steps=[{"do": "wait_for", "target": "refused"}]
            ),
            made("browser", 2, url=web.url("/"), steps=click),
            made("browser", 3, url=web.url("/led")),
            made("browser", 4, url=web.url("/gone")),
            made("browser", 5, url=web.url("/"), steps=[{"do": "click", "target": "#not-there"}]),
            made("browser", 6, url="file:///etc/passwd"),
            made("browser", 7, url="http://127.0.0.1:1/"),
            made("browser", 8, url=web.url("/leaves")),
        )
        server.reply(text("Over."))
        await answered(one)
        said = results(server)
        assert "REACHED" not in said["c1"] and "refused" in said["c1"]
        assert f"the page wanted to go to {secret.url('/')}" in said["c2"]
        assert "Prices" in said["c2"] and "secret" not in said["c2"].replace(secret.url("/"), "")
        assert "Nothing of that is shown" in said["c3"] or "refused" in said["c3"]
        assert not secret.requests
        assert "the server answered 404" in said["c4"] and "No such thing" in said["c4"]
        assert "Step 1 (click #not-there) failed" in said["c5"]
        assert "cannot be fetched" in said["c6"]
        assert "127.0.0.1:1" in said["c7"] and "Traceback" not in said["c7"]
        assert f"the page wanted to go to {secret.url('/')}" in said["c8"]


@pytest.mark.req("A097")
async def test_a_page_goes_to_none_that_a_rule_denies(root: Path, state: Path) -> None:
    async with WebServer() as web:
        rules = {"*": "allow", web.url("/admin*"): "deny", f"use {web.url('/looked*')}": "deny"}
        allowed: dict[str, Any] = {"permission": {"browser": rules}, **ROOTLESS}
        async with at_work(root, state, **allowed) as (one, server):
            shop(web, [], away="/admin/users")
            web.page("/admin/users", "everybody")
            web.page("/looked", "looked at")
            web.redirect("/led", web.url("/admin/users"))
            web.page("/pushes", "<p>mine</p><script>history.pushState(0, '', '/admin')</script>")
            web.page("/on", "<script>location = '/other'</script>")
            click = [{"do": "click", "target": "Elsewhere"}]
            server.reply(
                made("browser", 1, url=web.url("/"), steps=click),
                made("browser", 2, url=web.url("/led")),
                made("browser", 3, url=web.url("/pushes")),
                made("browser", 4, url=web.url("/admin/users")),
                made("browser", 5, url=web.url("/on")),
            )
            server.reply(text("Over."))
            await answered(one)
            said = results(server)
        assert f"wanted to go to {web.url('/admin/users')}, which the rules deny" in said["c1"]
        assert "Prices" in said["c1"] and "everybody" not in "".join(said.values())
        for call in ("c2", "c3"):
            assert "which the rules deny. Nothing of that is shown" in said[call], said[call]
        assert "-> deny" in said["c4"]
        assert "Another page" in said["c5"]


async def test_what_a_page_loads_and_gives_is_bounded(root: Path, state: Path) -> None:
    """A browser takes many times of it."""

    async def much(request: Request, exchange: Exchange) -> None:
        with contextlib.suppress(OSError):
            await exchange.send(200, b"x" * (browsing.LOADED + (8 << 20)), "text/plain")

    loads = (
        "<p id=said></p><script>fetch('/much').then(answer => answer.text()).then("
        "text => said.textContent = 'ALL OF IT', () => said.textContent = 'cut')</script>"
    )
    long = "<p id=said></p><script>said.textContent = 'ab '.repeat(1e6)</script>"
    allowed: dict[str, Any] = {"permission": {"browser": "allow"}, **ROOTLESS}
    async with WebServer() as web, at_work(root, state, **allowed) as (one, server):
        web.answer("/much", much)
        web.page("/loads", loads)
        web.page("/long", long)
        wait = [{"do": "wait_for", "target": "cut"}]
        server.reply(made("browser", 1, url=web.url("/loads"), steps=wait))
        server.reply(made("browser", 2, url=web.url("/long")))
        server.reply(text("Over."))
        await answered(one)
        said = results(server)
    assert browsing.TOO_MUCH in said["c1"] and "ALL OF IT" not in said["c1"], said["c1"]
    assert "ab ab" in said["c2"] and "more characters" in said["c2"]
    assert len(said["c2"]) < 25_000


async def test_a_page_that_opens_windows_or_makes_a_long_address_of_its_own_is_shown(
    root: Path, state: Path
) -> None:
    allowed: dict[str, Any] = {"permission": {"browser": "allow"}, **ROOTLESS}
    async with WebServer() as web, at_work(root, state, **allowed) as (one, server):
        shop(web, [])
        other = web.url("/other")
        opens = f"<p>Here</p><script>window.open('{other}')</script>"
        web.page("/opens", f"{opens}<a href='{other}' target=_blank>More</a>")
        web.page("/long", "<p>Long</p><script>history.pushState(0, '', '/' + 'x'.repeat(1e6))"
                 "</script>")  # fmt: skip
        click = [{"do": "click", "target": "More"}]
        server.reply(
            made("browser", 1, url=web.url("/opens"), steps=click),
            made("browser", 2, url=web.url("/long")),
        )
        server.reply(text("Over."))
        await answered(one)
        said = results(server)
        assert "Here" in said["c1"] and said["c1"].count(f"wanted to go to {other}") == 2
        assert "Long" in said["c2"] and len(said["c2"]) < 10_000
        assert all(request.path != "/other" for request in web.requests)


async def test_where_there_is_no_browser_that_is_said(
    root: Path, state: Path, tmp_path: Path
) -> None:
    allowed: dict[str, Any] = {"permission": {"browser": "allow"}, **ROOTLESS}
    env = {"PATH": str(tmp_path), "PLAYWRIGHT_BROWSERS_PATH": str(tmp_path)}
    async with WebServer() as web, at_work(root, state, env=env, **allowed) as (one, server):
        shop(web, [])
        server.reply(made("browser", 1, url=web.url("/")))
        server.reply(text("Over."))
        await answered(one)
        assert "install Chromium or Chrome" in results(server)["c1"]
        assert not web.requests


async def test_root_has_to_say_that_there_is_no_sandbox(root: Path, state: Path) -> None:
    if psutil.Process().uids().real != 0:
        pytest.skip("only where tests run as root")
    async with WebServer() as web, at_work(root, state, permission={"browser": "allow"}) as (
        one, server,
    ):  # fmt: skip
        shop(web, [])
        server.reply(made("browser", 1, url=web.url("/")))
        server.reply(text("Over."))
        await answered(one)
        assert "tools.browser_sandbox = false" in results(server)["c1"]
        assert not web.requests


async def test_a_page_at_an_ipv6_address_is_opened(
    root: Path, state: Path, windowed: dict[str, str]
) -> None:
    allowed: dict[str, Any] = {"permission": {"browser": "allow"}, **ROOTLESS}

    async def hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n"
        writer.write(head + b"Hello")
        writer.close()

    try:
        six = await asyncio.start_server(hello, "::1", 0)
    except OSError:
        pytest.skip("this machine has no IPv6")
    async with six, at_work(root, state, windowed, **allowed) as (one, server):
        port = six.sockets[0].getsockname()[1]
        server.reply(made("browser", 1, url=f"http://[::1]:{port}/"))
        server.reply(text("Over."))
        await answered(one)
        assert "Hello" in results(server)["c1"]
