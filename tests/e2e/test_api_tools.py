"""The tools for APIs, `http_request` and `github`: a real server, a scripted model, APIs on
loopback. After each answer of an API the person is asked again, since nobody vouches for it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.loopback import ChatServer, call, text
from tests.loopback.http import Exchange, Request
from tests.loopback.web import WebServer

from .harness import Person, person, served
from .test_seldom_tools import results

TOKEN = "ghp_0123456789abcdefghij0123456789abcdef"


class Api(WebServer):
    """Answers with JSON, and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Request] = []

    def json(
        self, path: str, answer: Any, status: int = 200, posted: Any = None, **headers: str
    ) -> None:
        """`posted`: the answer to a POST, if it is another."""

        async def send(request: Request, exchange: Exchange) -> None:
            self.seen.append(request)
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            found = posted if posted is not None and request.method == "POST" else answer
            await exchange.send(status, json.dumps(found).encode(), "application/json", named)

        self.answer(path, send)


@asynccontextmanager
async def at_work(
    root: Path, state: Path, env: Mapping[str, str] | None = None, **settings: Any
) -> AsyncIterator[tuple[Person, ChatServer]]:
    async with ChatServer() as server:
        whole = {**served(server), **settings}
        async with person(root, state, settings=whole, env=env) as one:
            await one.new()
            yield one, server


def made(tool: str, nth: int, **arguments: Any) -> Any:
    """A call as the model writes it, of a tool that it is not shown."""
    return call("call_tool", {"name": tool, "arguments": arguments}, id=f"c{nth}")


async def answered(one: Person) -> list[str]:
    """A turn in which the person says yes to all questions; their titles."""
    await one.ask("Go")
    titles = list[str]()
    while True:
        found = await one.client.wait_for(
            "magy/session/update",
            lambda said: "open" in said["update"] or said["update"].get("state") == "idle",
        )
        if "open" not in found["update"]:
            return titles
        titles.append(found["update"]["open"]["title"])
        await one.respond(found["update"]["open"]["interactionId"])


@pytest.mark.req("A096")
async def test_a_request_is_shown_asked_about_and_sent(root: Path, state: Path) -> None:
    async with Api() as api, at_work(root, state) as (one, server):
        api.json("/things", {"made": 1}, 201, x_next="2")
        url = api.url("/things")
        sent = {"headers": {"X-Key": "k"}, "body": '{"a": 1}'}
        server.reply(call("find_tools", {"query": "http_request"}, id="c0"))
        server.reply(made("http_request", 1, method="POST", url=url, **sent))
        server.reply(made("http_request", 3, method="DELETE", url=url))
        server.reply(text("Made."))
        await one.ask("Go")
        question = await one.question()
        assert question["title"] == f"POST {url}"
        assert "X-Key: k" in json.dumps(question)
        await one.respond(question["interactionId"])
        delete = await one.update(
            "_magy_interaction", lambda u: "DELETE" in u.get("open", {}).get("title", "")
        )
        await one.respond(delete["open"]["interactionId"], allow=False)
        await one.end()
        (first,) = api.seen
        assert (first.method, first.raw, first.headers["x-key"]) == ("POST", b'{"a": 1}', "k")
        said = results(server)
        assert said["c0"].startswith("http_request: Send an HTTP request")
        assert "201 " in said["c1"] and "x-next: 2" in said["c1"] and '{"made": 1}' in said["c1"]
        assert "refused" in said["c3"]


@pytest.mark.req("A096")
async def test_what_cannot_be_sent_and_what_an_api_refuses_is_said(root: Path, state: Path) -> None:
    rules = {"*": "allow", "http://*/new": "deny"}
    settings = {"permission": {"http": rules}, "tools": {"http_hosts": ["127.0.0.1"]}}
    async with Api() as api, at_work(root, state, **settings) as (one, server):
        api.json("/gone", {"error": "no such thing"}, 404)
        api.json("/new", {"new": True})
        api.redirect("/old", "/new", 307)
        url = api.url("/old")
        server.reply(
            made("http_request", 1, method="DELETE", url=api.url("/gone")),
            made("http_request", 2, method="PUT", url=url, body="x"),
            made("http_request", 3, method="GET", url=url),
            made("http_request", 4, method="GET", url=url, headers={"Host": "x"}),
            made("http_request", 5, method="GET", url=url, headers={"A": "b\r\nC: d"}),
            made("http_request", 6, method="GET", url=url, body="x"),
            made("http_request", 7, method="GET", url="http://localhost:1/"),
            made("http_request", 8, method="GET", url="http://169.254.169.254/latest"),
            made("http_request", 9, method="BREW", url=url),
            made("http_request", 10, method="GET", url=api.url("/NEW")),
            made("http_request", 11, method="GET", url=url, headers={"A": " k3y"}),
            made("http_request", 12, method="GET", url=url, headers={"A": "k3y\x0b"}),
        )
        server.reply(text("Over."))
        await answered(one)
        said = results(server)
        assert "404 " in said["c1"] and "no such thing" in said["c1"]
        for call in ("c2", "c3"):
            assert "307 " in said[call] and "location: /new" in said[call]
            assert "[the redirect was not followed" in said[call] and "true" not in said[call]
        assert "Not allowed" in said["c10"]
        for call in ("c11", "c12"):
            assert "The header 'A' cannot be sent" in said[call] and "k3y" not in said[call]
        assert "Magy sets the header Host itself" in said["c4"]
        assert "one line" in said["c5"] and "A GET request has no body" in said["c6"]
        assert "localhost is none of the hosts" in said["c7"]
        assert "never fetches" in said["c8"] and "method: " in said["c9"]
        assert [request.method for request in api.seen] == ["DELETE"]


ISSUE = {"number": 7, "title": "It breaks", "state": "open", "user": {"login": "ann"},
         "body": "Always.", "comments": 1}  # fmt: skip
PULL = {**ISSUE, "number": 8, "head": {"ref": "mend"}, "base": {"ref": "main"}}
COMMENT = {"user": {"login": "bob"}, "created_at": "2026-01-01T00:00:00Z", "body": "Here, too."}
REPO = "/repos/ann/shop"
NONE = {"GH_TOKEN": "", "GITHUB_TOKEN": "", "PATH": "/nowhere"}


@pytest.mark.req("A095")
async def test_issues_and_pull_requests_are_read_and_written_with_a_token(
    root: Path, state: Path
) -> None:
    async with Api() as api:
        settings = {"tools": {"github_url": api.url("")}, "permission": {"github": "allow"}}
        for path, answer in (
            ("issues", [ISSUE, {**PULL, "pull_request": {}}]), ("issues/7", ISSUE),
            ("pulls/8", {**PULL, "changed_files": 3}),
            ("issues/8/comments", []), ("pulls/8/reviews", {"html_url": "https://x/review"}),
        ):  # fmt: skip
            api.json(f"{REPO}/{path}", answer)
        posted = {"html_url": "https://x/c"}
        api.json(f"{REPO}/issues/7/comments", [COMMENT], posted=posted)
        api.json(f"{REPO}/pulls", {"html_url": f"https://x/9?{TOKEN}"}, 201)
        pull = {"title": "Mend", "body": "Mends #7", "head": "mend", "base": "main"}
        async with at_work(root, state, {"GH_TOKEN": TOKEN}, **settings) as (one, server):
            for number, arguments in enumerate((
                {"action": "list_issues"}, {"action": "read_issue", "number": 7},
                {"action": "read_pull", "number": 8}, {"action": "create_pull", **pull},
                {"action": "review", "number": 8, "body": "Good.", "verdict": "approve"},
                {"action": "comment", "number": 7, "body": "Mended."}, {"action": "comment"},
            )):  # fmt: skip
                repo = "shop" if number == 6 else "ann/shop"
                server.reply(made("github", number, repo=repo, **arguments))
            server.reply(text("Over."))
            await answered(one)
            said = results(server)
    assert "#7 It breaks (open, ann, 1 comments)" in said["c0"] and "#8" not in said["c0"]
    assert "Always." in said["c1"] and "--- bob, 2026-01-01T00:00:00Z\nHere, too." in said["c1"]
    assert "mend -> main, 3 files changed" in said["c2"]
    assert "Done: https://x/9?[redacted]" in said["c3"] and "Done: https://x/review" in said["c4"]
    assert "Done: https://x/c" in said["c5"]
    assert "'shop' is not OWNER/NAME" in said["c6"]
    assert all(one.headers["authorization"] == f"Bearer {TOKEN}" for one in api.seen)
    by_path = {(one.method, one.path): one for one in api.seen}
    assert by_path["POST", f"{REPO}/pulls"].body == pull
    assert by_path["POST", f"{REPO}/pulls/8/reviews"].body == {"body": "Good.", "event": "APPROVE"}
    assert by_path["POST", f"{REPO}/issues/7/comments"].body == {"body": "Mended."}


@pytest.mark.req("A095")
async def test_a_token_without_the_right_is_said_and_so_is_none(root: Path, state: Path) -> None:
    async with Api() as api:
        settings = {"tools": {"github_url": api.url("")}, "permission": {"github": "allow"}}
        refused = {"message": "Resource not accessible by personal access token"}
        right = {"x_accepted_github_permissions": "issues=write"}
        api.json(f"{REPO}/issues/7/comments", refused, 403, **right)
        api.json(f"{REPO}/issues", {"message": "Bad credentials"}, 401)
        api.json(f"{REPO}/pulls", {"message": "Slow"}, 403, x_ratelimit_remaining="0")
        api.page(f"{REPO}/issues/1", "<h1>Not an API</h1>")
        comment = {"repo": "ann/shop", "action": "comment", "number": 7, "body": "Yes."}
        async with at_work(root, state, {"GITHUB_TOKEN": TOKEN}, **settings) as (one, server):
            server.reply(
                made("github", 1, **comment),
                made("github", 2, repo="ann/shop", action="list_issues"),
                made("github", 3, repo="ann/shop", action="list_pulls"),
                made("github", 4, repo="ann/shop", action="read_issue", number=1),
                made("github", 5, repo="ann/shop", action="create_pull", title="x"),
            )
            server.reply(text("Over."))
            await answered(one)
            said = results(server)
        assert "the token of GITHUB_TOKEN may not do that" in said["c1"]
        assert "It needs the right issues=write. Tell the user" in said["c1"]
        assert "does not know the token of GITHUB_TOKEN: tell the user to renew it" in said["c2"]
        assert "limit of requests" in said["c3"] and "not with JSON" in said["c4"]
        assert "create_pull needs head and base" in said["c5"]
        assert TOKEN not in str(said)
    async with Api() as api:
        settings = {"tools": {"github_url": api.url("")}, "permission": {"github": "allow"}}
        async with at_work(root, state / "2", NONE, **settings) as (one, server):
            server.reply(made("github", 1, **comment))
            server.reply(text("Over."))
            await answered(one)
            assert "there is none. Tell the user to set GH_TOKEN" in results(server)["c1"]
        assert not api.seen


@pytest.mark.req("A095")
async def test_what_is_written_to_github_is_asked_about_each_time_unless_it_is_allowed(
    root: Path, state: Path
) -> None:
    async with Api() as api:
        api.json(f"{REPO}/issues/7/comments", {"html_url": "https://x/c"}, 201)
        settings = {"tools": {"github_url": api.url("")}}
        async with at_work(root, state, {"GH_TOKEN": TOKEN}, **settings) as (one, server):
            comment = {"repo": "ann/shop", "action": "comment", "number": 7, "body": "Yes."}
            server.reply(made("github", 1, **comment))
            server.reply(text("Over."))
            await one.ask("Go")
            question = await one.question()
            assert question["title"] == "GitHub: comment #7 in ann/shop"
            await one.respond(question["interactionId"], allow=False)
            await one.end()
            assert "refused" in results(server)["c1"] and not api.seen


async def test_a_header_that_cannot_be_sent_is_not_asked_about(root: Path, state: Path) -> None:
    async with Api() as api, at_work(root, state) as (one, server):
        headers = {"Authorization": "Bearer k3y "}
        server.reply(made("http_request", 1, method="GET", url=api.url("/x"), headers=headers))
        server.reply(text("Over."))
        assert await answered(one) == []
        assert "The header 'Authorization' cannot be sent" in results(server)["c1"]
        assert not api.seen


@asynccontextmanager
async def reading_github(
    root: Path, state: Path, api: Api, env: Mapping[str, str], *issues: int
) -> AsyncIterator[tuple[Person, dict[str, str]]]:
    """A model reads these issues (0: their list); what it is told of issue 7 is at `c7`."""
    settings = {"tools": {"github_url": api.url("")}, "permission": {"github": "allow"}}
    async with at_work(root, state, env, **settings) as (one, server):
        reads = [
            made("github", nr, repo="ann/shop", action="read_issue" if nr else "list_issues",
                 number=nr) for nr in issues
        ]  # fmt: skip
        server.reply(*reads)
        server.reply(text("Over."))
        await answered(one)
        yield one, results(server)


async def test_a_token_that_the_api_repeats_reaches_nobody(root: Path, state: Path) -> None:
    """Nor one that Magy did not know before: the program gh gives it."""

    async def repeats(request: Request, exchange: Exchange) -> None:
        said = f"I do not like {request.headers['authorization']}"
        answer = json.dumps({"message": said, "errors": [said]}).encode()
        await exchange.send(422, answer, "application/json")

    gh = state / "bin" / "gh"
    gh.parent.mkdir(parents=True)
    gh.write_text(f"#!/bin/sh\necho {TOKEN}\n")
    gh.chmod(0o755)
    env = {**NONE, "PATH": f"{gh.parent}:/usr/bin:/bin"}
    async with Api() as api:
        api.answer(f"{REPO}/issues/7", repeats)
        async with reading_github(root, state, api, env, 7) as (one, said):
            assert "GitHub answered 422: I do not like Bearer [redacted]" in said["c7"]
            assert TOKEN not in json.dumps([said, one.client.received])


@pytest.mark.parametrize("between", ["\n", " ", "\u2013"])
async def test_a_token_that_cannot_be_one_is_not_sent_and_not_repeated(
    root: Path, state: Path, between: str
) -> None:
    async with Api() as api:
        api.json(f"{REPO}/issues/7", ISSUE)
        env = {**NONE, "GH_TOKEN": f"{TOKEN}{between}{TOKEN}"}
        async with reading_github(root, state, api, env, 7) as (one, said):
            assert "The token of GH_TOKEN has blanks, line breaks or other" in said["c7"]
            assert TOKEN not in json.dumps([said, one.client.received])
        assert not api.seen


async def test_the_token_is_a_secret_wherever_it_stands(root: Path, state: Path) -> None:
    other = TOKEN[::-1]
    hosts = state / "gh" / "hosts.yml"
    hosts.parent.mkdir(parents=True)
    hosts.write_text(f"github.com:\n    user: Ann-Lee-1\n    oauth_token: {other}\n")
    (root / "notes.txt").write_text(f"{TOKEN} and {other} are of Ann-Lee-1.\n")
    env = {**NONE, "GITHUB_TOKEN": TOKEN, "GH_CONFIG_DIR": str(hosts.parent)}
    async with at_work(root, state, env) as (one, server):
        server.reply(call("read_file", {"path": "notes.txt"}, id="c1"))
        server.reply(text("Over."))
        await one.turn("Go")
        assert "[redacted] and [redacted] are of Ann-Lee-1." in results(server)["c1"]


async def test_what_does_not_answer_as_github_does_is_said(root: Path, state: Path) -> None:
    async def deep(request: Request, exchange: Exchange) -> None:
        await exchange.send(200, b"[" * 100_000, "application/json")

    async with Api() as api:
        odd = ([1, 2], {**ISSUE, "user": "ann"}, {**ISSUE, "title": None}, [ISSUE])
        for number, answer in enumerate(odd, 1):
            api.json(f"{REPO}/issues/{number}", answer)
            api.json(f"{REPO}/issues/{number}/comments", [])
        api.json(f"{REPO}/issues", ISSUE)
        api.answer(f"{REPO}/issues/5", deep)
        api.json(f"{REPO}/issues/6", ISSUE)
        api.json(f"{REPO}/issues/6/comments", {"message": "no list"})
        async with reading_github(root, state, api, NONE, *range(7)) as (_, said):
            for number in (0, 1, 2, 3, 4, 6):
                assert "did not answer as GitHub's API does" in said[f"c{number}"], number
            assert "answered 200, and not with JSON" in said["c5"]
            assert "inside Magy" not in str(said)


async def test_a_repository_that_moved_is_not_followed(root: Path, state: Path) -> None:
    """The rules were asked about the name that it had."""
    async with Api() as api:
        moved = {"message": "Moved Permanently"}
        api.json(f"{REPO}/issues/7", moved, 301, location="/repositories/9/issues/7")
        api.json("/repositories/9/issues/7", ISSUE)
        async with reading_github(root, state, api, NONE, 7) as (_, said):
            assert "renamed or moved" in said["c7"] and "Always." not in said["c7"]
        assert [one.path for one in api.seen] == [f"{REPO}/issues/7"]


async def test_nobody_is_shown_what_a_title_tells_the_terminal(root: Path, state: Path) -> None:
    async with Api() as api:
        title = "It \x1b]0;pwned\x07\x1b[2Jbreaks\u202e evil"
        api.json(f"{REPO}/issues/7", {**ISSUE, "title": title, "body": "One\r\ntwo\x1b[2J"})
        api.json(f"{REPO}/issues/7/comments", [])
        async with reading_github(root, state, api, NONE, 7) as (one, said):
            assert "#7 It breaks<U+202E> evil (open" in said["c7"] and "One\ntwo\n" in said["c7"]
            shown = json.dumps(one.client.received, ensure_ascii=False)
            assert "\u202e" not in shown and "\\u001b" not in shown


async def test_rules_know_a_repository_in_any_case(root: Path, state: Path) -> None:
    """GitHub does not tell ACME/Secret from acme/secret."""
    async with Api() as api:
        for path in ("ACME/Secret/issues", "Acme/Shop/issues"):
            api.json(f"/repos/{path}", [])
        rules = {
            f"{api.url('')}/repos/acme/secret": "deny",
            "comment Acme/shop": "deny",
        }
        settings = {"tools": {"github_url": api.url("")}, "permission": {"github": rules}}
        async with at_work(root, state, {"GH_TOKEN": TOKEN}, **settings) as (one, server):
            server.reply(
                made("github", 1, repo="Acme/Shop", action="list_issues"),
                made("github", 2, repo="ACME/Secret", action="list_issues"),
                made("github", 3, repo="aCme/SHOP", action="comment", number=1, body="Yes."),
                made("github", 4, repo="ACME/Secret.git", action="list_issues"),
            )
            server.reply(text("Over."))
            assert await answered(one) == ["GitHub: list issues in Acme/Shop"]
            said = results(server)
        assert "There are no such issues" in said["c1"]
        assert "Not allowed" in said["c2"] and "Not allowed" in said["c3"]
        assert "without .git" in said["c4"]
        assert [one.path for one in api.seen] == ["/repos/Acme/Shop/issues"]
