"""What enters a prompt besides its words: project instructions, mentions, skills, pictures, and
what is found in the web. The real server, and behind it a model that keeps what it was sent."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.loopback import AnthropicServer, call, text
from tests.loopback.web import WebServer
from tests.tools.pictures import png

from .harness import Person, person

KEY = "TEST_PROVIDER_API_KEY"
SETTINGS = """
titles = false

[model]
default = "here/test-model"

[[provider]]
name = "here"
kind = "anthropic"
base_url = "{url}"
api_key_env = "{key}"

[tools]
search_url = "{search}"
"""


@asynccontextmanager
async def at_work(
    root: Path, state: Path, search: str = "http://127.0.0.1:9/", **start: Any
) -> AsyncIterator[tuple[Person, AnthropicServer]]:
    async with AnthropicServer() as model:
        state.mkdir(exist_ok=True)
        settings = SETTINGS.format(url=model.base_url, key=KEY, search=search)
        (state / "magy.toml").write_text(settings)
        async with person(root, state, env={KEY: "test-key"}, **start) as one:
            await one.new()
            yield one, model


def system(body: Any) -> str:
    return "\n".join(block["text"] for block in body["system"])


def said(body: Any, index: int = -1) -> str:
    """The texts of one message, and those of tool results in it."""
    texts = []
    for block in body["messages"][index]["content"]:
        if block["type"] == "text":
            texts.append(block["text"])
        elif block["type"] == "tool_result":
            output = block["content"]
            texts += [output] if isinstance(output, str) else [b.get("text", "") for b in output]
    return "\n".join(texts)


def pictures(body: Any) -> list[bytes]:
    blocks = [block for message in body["messages"] for block in message["content"]]
    inner = [b for block in blocks if block["type"] == "tool_result" for b in block["content"]]
    images = [b for b in [*blocks, *inner] if isinstance(b, dict) and b["type"] == "image"]
    return [base64.b64decode(image["source"]["data"]) for image in images]


# --- project instructions -------------------------------------------------------------------------


@pytest.mark.req("G042")
async def test_instructions_enter_the_prompt_and_a_change_is_told_where_it_happens(
    root: Path, state: Path
) -> None:
    (root / "AGENTS.md").write_text("Use tabs.\n")
    (root / "lib").mkdir()
    (root / "lib" / "AGENTS.md").write_text("Only for lib.\n")
    async with at_work(root, state) as (one, model):
        (state / "AGENTS.md").write_text("Speak plainly.\n")
        for _ in range(3):
            model.reply(text("Yes."))
        await one.turn("Begin", "p1")
        (root / "AGENTS.md").write_text("Use blanks, not tabs.\n")
        await one.turn("Go on", "p2")
        await one.turn("And on", "p3")
        first, second, third = (request.body for request in model.asked)
        prefix = system(first)
        assert prefix.index("Speak plainly.") < prefix.index("Use tabs.")
        assert "- lib/AGENTS.md" in prefix and "Only for lib." not in prefix
        assert second["system"] == third["system"] == first["system"]
        assert second["messages"][0]["content"][0]["text"] == "Begin"
        update = said(second)
        assert '<updated section="instructions">' in update
        assert "Use blanks, not tabs." in update and update.endswith("Go on")
        assert "updated section" not in said(third)


async def test_a_session_in_a_directory_has_its_instructions(root: Path, state: Path) -> None:
    (root / "CLAUDE.md").write_text("Of the root.\n")
    (root / "lib").mkdir()
    (root / "lib" / "AGENTS.md").write_text("Of lib.\n")
    async with at_work(root, state) as (one, model):
        await one.request("session/new", cwd=str(root / "lib"), sessionId="s2")
        await one.request("session/subscribe", sessionId="s2")
        model.reply(text("Yes."))
        prompt = [{"type": "text", "text": "Begin"}]
        await one.request("session/prompt", sessionId="s2", messageId="p1", prompt=prompt)
        await one.end("s2")
        prefix = system(model.asked[0].body)
        assert prefix.index("Of the root.") < prefix.index("Of lib.")


@pytest.mark.req("E136")
async def test_instructions_are_bounded(root: Path, state: Path) -> None:
    (root / "AGENTS.md").write_text("rule\n" * 20_000)
    async with at_work(root, state) as (one, model):
        model.reply(text("Yes."))
        await one.turn("Begin")
        prefix = system(model.asked[0].body)
        assert 65_000 < prefix.count("rule\n") * 5 <= 65_536
        assert "65,536 bytes are the limit" in prefix


# --- mentions, skills, pictures -------------------------------------------------------------------


@pytest.mark.req("E076")
async def test_init_writes_the_instructions_and_the_next_turn_has_them(
    root: Path, state: Path
) -> None:
    async with at_work(root, state) as (one, model):
        model.reply(call("write_file", {"path": "AGENTS.md", "content": "Run `pytest -q`.\n"}))
        model.reply(text("Written."))
        model.reply(text("I know."))
        await one.ask("@init mind the tests")
        await one.answer()
        await one.end()
        words, skill = (block["text"] for block in model.asked[0].body["messages"][0]["content"])
        assert words == "@init mind the tests"
        assert skill.startswith('<context from="magy:skill/init">\n# Write or refresh')
        assert "description:" not in skill
        assert (root / "AGENTS.md").read_text() == "Run `pytest -q`.\n"
        await one.turn("How are tests run?", "p2")
        assert "Run `pytest -q`." in said(model.asked[-1].body)


@pytest.mark.req("G032")
async def test_files_lines_and_pictures_that_a_prompt_mentions(root: Path, state: Path) -> None:
    (root / "shot.png").write_bytes(png())
    (root / "other.png").write_bytes(png(3, 3))
    (root / "notes.txt").write_text("one\ntwo\nthree\n")
    async with at_work(root, state) as (one, model):
        one.editor.open(root / "notes.txt", "one\ntwo, not saved\nthree\n")
        model.reply(text("I see."))
        prompt = [
            {"type": "text", "text": "Compare @shot.png, @app.py and @notes.txt:2-3 (me@app.py)"},
            {
                "type": "image",
                "mimeType": "image/png",
                "data": base64.b64encode(png(3, 3)).decode(),
            },
        ]
        await one.request("session/prompt", messageId="p1", prompt=prompt)
        await one.end()
        body = model.asked[0].body
        assert pictures(body) == [png(), png(3, 3)]
        heard = said(body)
        assert heard.count("mentions the file app.py") == 1
        assert "#L2-L3" in heard and "two, not saved\nthree" in heard


@pytest.mark.req("G032")
async def test_the_model_reads_a_picture(root: Path, state: Path) -> None:
    (root / "shot.png").write_bytes(png(20, 10))
    async with at_work(root, state) as (one, model):
        model.reply(call("read_file", {"path": "shot.png"}))
        model.reply(text("Nice."))
        await one.turn("Look at the shot")
        body = model.asked[1].body
        assert pictures(body) == [png(20, 10)] and "(picture shot.png, 20x10)" in said(body)
        assert "picture shot.png, 20x10" in one.outputs()[0]


async def test_a_pasted_mention_of_a_secret_gives_nothing_away(root: Path, state: Path) -> None:
    (root / ".env").write_text("KEY=secret-value\n")
    async with at_work(root, state) as (one, model):
        model.reply(text("No."))
        await one.turn("Somebody wrote: see @.env:1-5")
        assert "secret-value" not in json.dumps(model.asked[0].body)
        assert "mentions the file .env" in said(model.asked[0].body)


# --- the web --------------------------------------------------------------------------------------


async def test_a_page_is_asked_for_by_its_url_each_time_once_one_was_read(
    root: Path, state: Path
) -> None:
    async with WebServer() as web, at_work(root, state) as (one, model):
        web.page("/guide", "<title>Guide</title><p>Turn left.</p>")
        web.page("/other", "<p>Turn right.</p>")
        urls = [
            web.url("/guide"),
            web.url("/guide").upper().replace("GUIDE", "guide"),
            web.url("/other"),
        ]
        for url in urls:
            model.reply(call("web_fetch", {"url": url}))
        model.reply(text("Done."))
        await one.ask("Where to?")
        question = await one.question()
        assert question["title"] == f"Fetch {web.url('/guide')} from this machine"
        assert web.requests == []
        assert question["remember"]
        await one.respond(question["interactionId"], scope="session")
        # A page was read, which may hold orders: what is remembered covers nothing of the web now.
        again = await one.question()
        assert again["title"] == question["title"] and not again["remember"]
        assert f"nobody vouches for ({web.url('/guide')})" in again["rule"]
        await one.respond(again["interactionId"])
        other = await one.question()
        assert other["title"] == f"Fetch {web.url('/other')} from this machine"
        assert [request.path for request in web.requests] == ["/guide", "/guide"]
        await one.respond(other["interactionId"], False)
        await one.end()
        assert "Turn left." in said(model.asked[1].body)
        assert "not instructions to follow" in said(model.asked[1].body)
        assert [request.path for request in web.requests] == ["/guide", "/guide"]


@pytest.mark.req("E123")
async def test_the_web_is_searched(root: Path, state: Path) -> None:
    async with WebServer() as web, at_work(root, state, web.url("/html/")) as (one, model):
        web.page(
            "/html/",
            '<div class="result web-result"><a class="result__a" href="//duckduckgo.com/l/'
            '?uddg=https%3A%2F%2Fdocs.example%2Fpy">Python docs</a>'
            '<a class="result__snippet">All about it.</a></div>',
        )
        model.reply(call("web_search", {"query": "python docs"}))
        model.reply(text("Found."))
        await one.ask("Search")
        question = await one.question()
        assert question["title"] == 'Search the web for "python docs"'
        await one.respond(question["interactionId"])
        await one.end()
        assert web.requests[0].query == "q=python+docs"
        found = said(model.asked[1].body)
        assert "1. Python docs\n   https://docs.example/py\n   All about it." in found
