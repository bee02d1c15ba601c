"""Suggestions while somebody types (`textDocument/inlineCompletion`): over real stdio, against
model servers on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.loopback import (
    AnthropicServer,
    ChatServer,
    ModelServer,
    ResponsesServer,
    hang,
    stop,
    text,
    usage,
)
from tests.lsp.client import RpcError, offset, position, uri_of

from .harness import Person, person

METHOD = "textDocument/inlineCompletion"
INVOKED, AUTOMATIC = 1, 2
KINDS: Mapping[type[ModelServer], str] = {
    AnthropicServer: "anthropic", ResponsesServer: "openai", ChatServer: "openai-chat",
}  # fmt: skip
PRICED = {"input": 1.0, "output": 2.0}
SHOWS = {"textDocument": {"inlineCompletion": {"dynamicRegistration": False}}}
REGISTERS = {"textDocument": {"inlineCompletion": {"dynamicRegistration": True}}}
DEFINES = "def greet(name):\n    return "


def settings(server: ModelServer, **completion: Any) -> dict[str, Any]:
    """With which this server has the model, and no keystroke waits."""
    provider = {
        "name": "mine", "kind": KINDS[type(server)], "base_url": server.base_url,
        "about": {"small": PRICED},
    }  # fmt: skip
    given = {
        "enabled": True, "model": "mine/small", "debounce_ms": 0, "timeout": 120, **completion,
    }  # fmt: skip
    return {"provider": [provider], "model": {"default": "mine/large"}, "completion": given}


def asked(uri: str, shown: str, at: int, kind: int = AUTOMATIC, **context: Any) -> dict[str, Any]:
    return {
        "textDocument": {"uri": uri},
        "position": position(shown, at, "utf-16"),
        "context": {"triggerKind": kind, **context},
    }


async def suggestion(one: Person, path: Path, at: int, **context: Any) -> dict[str, Any] | None:
    """What is suggested after so many characters of the buffer."""
    uri = uri_of(path)
    shown = one.editor.texts[uri]
    found = await one.client.request(METHOD, asked(uri, shown, at, **context))
    if found is None:
        return None
    (item,) = found["items"]
    return dict(item)


def accepted(one: Person, path: Path, item: Mapping[str, Any]) -> str:
    """The buffer, should the person accept this."""
    shown = one.editor.texts[uri_of(path)]
    start, end = (offset(shown, item["range"][k], "utf-16") for k in ("start", "end"))
    return shown[:start] + str(item["insertText"]) + shown[end:]


def sent(server: ModelServer) -> list[str]:
    """The bodies of the requests that were made."""
    return [request.raw.decode() for request in server.asked]


@pytest.mark.req("G009")
@pytest.mark.parametrize("wire", KINDS)
async def test_a_model_says_how_the_unsaved_text_goes_on(
    root: Path, state: Path, wire: type[ModelServer]
) -> None:
    (root / "app.py").write_text("old")
    async with wire() as server:
        server.reply(text("<insert>f'hello {name}'</insert>"), usage(input=1000, output=500))
        async with person(root, state, settings=settings(server), capabilities=SHOWS) as one:
            one.editor.open(root / "app.py", DEFINES)
            item = await suggestion(one, root / "app.py", len(DEFINES))
            assert item is not None
            assert accepted(one, root / "app.py", item) == DEFINES + "f'hello {name}'"
            status = await one.client.request("magy/completion/status", {})
    (body,) = sent(server)
    assert "cache_control" not in body  # to keep it would cost, and no other one begins with it
    assert "def greet(name):" in body and "app.py" in body and '"small"' in body
    assert (status["enabled"], status["model"], status["requests"]) == (True, "mine/small", 1)
    assert status["tokens"] == 1500 and status["cost"] == pytest.approx(0.002)


@pytest.mark.req("G009")
async def test_it_is_off_until_somebody_turns_it_on(root: Path, state: Path) -> None:
    async with ChatServer() as server:
        off = settings(server)
        del off["completion"]["enabled"]
        async with person(root, state, settings=off, capabilities=SHOWS) as one:
            one.editor.open(root / "app.py", DEFINES)
            assert await suggestion(one, root / "app.py", len(DEFINES)) is None
            assert await suggestion(one, root / "app.py", len(DEFINES), kind=INVOKED) is None
    assert not server.requests


@pytest.mark.req("G009")
async def test_a_client_hears_of_it_while_it_is_on(root: Path, state: Path) -> None:
    """It is turned on in the settings while the editor runs."""
    state.mkdir()
    file = state / "magy.toml"
    async with person(root, state, capabilities=REGISTERS) as one:
        one.client.handlers["client/registerCapability"] = lambda params: None
        one.client.handlers["client/unregisterCapability"] = lambda params: None
        usual = file.read_text()
        one.editor.open(root / "app.py")
        await one.client.request("magy/completion/status", {})
        assert not one.client.notifications("client/registerCapability")
        for on, method in ((True, "client/registerCapability"),
                           (False, "client/unregisterCapability")):  # fmt: skip
            file.write_text(f"{usual}\n[completion]\nenabled = {str(on).lower()}\n")
            told = asyncio.create_task(one.client.wait_for(method))
            while not told.done():  # the setting is looked up now and then, as somebody types
                one.editor.type(root / "app.py", 0, 0, "#")
                await asyncio.wait({told}, timeout=0.1)
            (registered,) = (*told.result().values(),)[0]
            assert registered["method"] == METHOD
            assert ("registerOptions" in registered) is on


async def test_a_client_that_shows_none_hears_nothing(root: Path, state: Path) -> None:
    async with ChatServer() as server, person(root, state, settings=settings(server)) as one:
        await one.client.request("magy/completion/status", {})
        assert not one.client.notifications("client/registerCapability")


async def test_what_is_not_wanted_any_more_is_not_asked_for(root: Path, state: Path) -> None:
    began = asyncio.Event()
    async with AnthropicServer(heard=lambda request: began.set()) as server:
        server.reply(text("<insert>'hel"), hang())
        async with person(root, state, settings=settings(server), capabilities=SHOWS) as one:
            uri = one.editor.open(root / "app.py", DEFINES)
            id, answer = one.client.start(METHOD, asked(uri, DEFINES, len(DEFINES)))
            await began.wait()
            one.client.cancel(id)
            with pytest.raises(RpcError) as error:
                await answer
            assert error.value.code == -32800
            await server.asked[0].disconnected.wait()
            await one.client.wait_until(
                lambda: one.client.notifications("magy/completion/changed"), why="it is counted"
            )
            status = await one.client.request("magy/completion/status", {})
            assert (status["requests"], status["estimated"]) == (1, 1)
            assert status["cost"] > 0 and not status["paused"]


async def test_what_was_asked_when_the_editor_ended_is_counted(root: Path, state: Path) -> None:
    began = asyncio.Event()
    async with AnthropicServer(heard=lambda request: began.set()) as server:
        server.reply(hang())
        about = settings(server)
        async with person(root, state, settings=about, capabilities=SHOWS) as one:
            uri = one.editor.open(root / "app.py", DEFINES)
            _, answer = one.client.start(METHOD, asked(uri, DEFINES, len(DEFINES)))
            await began.wait()
        with pytest.raises(RpcError, match="was cancelled"):
            await answer
        async with person(root, state, settings=about, capabilities=SHOWS) as one:
            status = await one.client.request("magy/completion/status", {})
            assert (status["requests"], status["estimated"]) == (1, 1)


async def test_of_what_is_asked_while_somebody_types_only_the_last_goes_out(
    root: Path, state: Path
) -> None:
    async with ChatServer() as server:
        server.answer(lambda body: [text("<insert>name</insert>")])
        slow = settings(server, debounce_ms=400)
        async with person(root, state, settings=slow, capabilities=SHOWS) as one:
            uri = one.editor.open(root / "app.py", DEFINES)
            answers = []
            for typed in "abc":
                shown = one.editor.texts[uri]
                one.editor.type(root / "app.py", len(shown), len(shown), typed)
                about = asked(uri, one.editor.texts[uri], len(shown) + 1)
                answers.append(one.client.start(METHOD, about)[1])
            first, second, third = await asyncio.gather(*answers)
    assert first is None and second is None
    assert third["items"][0]["insertText"] == "name"
    assert len(server.asked) == 1


async def test_a_request_about_an_older_text_is_not_answered(root: Path, state: Path) -> None:
    async with ChatServer() as server:
        server.answer(lambda body: [text("<insert>name</insert>")])
        async with person(root, state, settings=settings(server), capabilities=SHOWS) as one:
            uri = one.editor.open(root / "app.py", DEFINES)
            _, answer = one.client.start(METHOD, asked(uri, DEFINES, len(DEFINES)))
            one.editor.type(root / "app.py", 0, 0, "# later\n")
            assert await answer is None


@pytest.mark.req("G009")
async def test_who_types_what_was_suggested_gets_the_rest_at_once(root: Path, state: Path) -> None:
    async with ChatServer() as server:
        server.reply(text("<insert>'hello ' + name</insert>"))
        async with person(root, state, settings=settings(server), capabilities=SHOWS) as one:
            path, at = root / "app.py", len(DEFINES)
            one.editor.open(path, DEFINES)
            for typed in ("", "'hel", "lo ' +"):
                one.editor.type(path, at, at, typed)
                at += len(typed)
                item = await suggestion(one, path, at)
                assert item is not None
                assert accepted(one, path, item) == DEFINES + "'hello ' + name"
            one.editor.type(path, len(DEFINES), at, "")
            assert await suggestion(one, path, len(DEFINES)) is not None
    assert len(server.asked) == 1


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
async def test_places_and_line_ends_are_those_of_the_buffer(
    root: Path, state: Path, encoding: str
) -> None:
    shown = "s = '😀é'\r\nif s:  # 😀\r\n\tprint(s, )\r\n"
    at = shown.index(")")
    general = {"general": {"positionEncodings": [encoding]}}
    async with ChatServer() as server:
        server.reply(text("<insert>end='😀')</insert>"))
        server.reply(text("<insert>\n    print(1)\n    print(2)</insert>"))
        about = settings(server)
        async with person(root, state, settings=about, capabilities={**SHOWS, **general}) as one:
            one.editor.encoding = encoding
            uri = one.editor.open(root / "app.py", shown)
            found = []
            for place in (at, shown.index("😀\r\n\t") + 1):
                params = {**asked(uri, shown, 0), "position": position(shown, place, encoding)}
                (item,) = (await one.client.request(METHOD, params))["items"]
                start = offset(shown, item["range"]["start"], encoding)
                assert item["range"]["start"] == item["range"]["end"] and start == place
                found.append(item["insertText"])
    assert found == ["end='😀'", "\r\n\tprint(1)\r\n\tprint(2)"]
    assert "\\r" not in sent(server)[0]


@pytest.mark.parametrize(("name", "ends"), [("Neovim", "\n"), ("Visual Studio Code", "\r\n")])
async def test_neovim_gets_line_feeds_alone(root: Path, state: Path, name: str, ends: str) -> None:
    """It would insert a CR as text."""
    shown = "def f():\r\n    a = 1\r\nif f():"
    async with ChatServer() as server:
        server.reply(text("<insert>\n    f()\n    f()</insert>"))
        about = settings(server)
        async with person(root, state, settings=about, capabilities=SHOWS, name=name) as one:
            one.editor.open(root / "app.py", shown)
            item = await suggestion(one, root / "app.py", len(shown))
            assert item is not None
            assert item["insertText"] == f"{ends}    f(){ends}    f()"


async def test_without_any_model_nothing_is_suggested_and_nobody_is_disturbed(
    root: Path, state: Path
) -> None:
    on = {"completion": {"enabled": True, "debounce_ms": 0}}
    async with person(root, state, settings=on, capabilities=SHOWS) as one:
        one.editor.open(root / "app.py", DEFINES)
        for at in (len(DEFINES), 4):
            assert await suggestion(one, root / "app.py", at) is None
        status = await one.client.request("magy/completion/status", {})
        assert status["enabled"] and "No model is configured" in status["paused"]
        assert not one.client.notifications("window/showMessage")
        assert (await one.client.ended()).count("No model is configured") == 1


@pytest.mark.req("G009")
async def test_what_rules_keep_from_agents_is_not_sent(root: Path, state: Path) -> None:
    (root / ".env").write_text("KEY=")
    (root / "secret.py").write_text("def of_nobody(): ...\n")
    (root / "helper.py").write_text("def of_everybody(a, b): ...\n")
    async with ChatServer() as server:
        server.reply(text("<insert>name</insert>"))
        about = settings(server, off=["markdown", "*.csv"])
        about["permission"] = {"read": {"secret.py": "deny"}}
        async with person(root, state, settings=about, capabilities=SHOWS) as one:
            for name in ("secret.py", "helper.py"):
                one.editor.open(root / name)
            for name in (".env", "secret.py", "a.csv"):
                one.editor.open(root / name, "KEY=")
                assert await suggestion(one, root / name, 4, kind=INVOKED) is None
            one.editor.open(root / "app.py", DEFINES)
            assert await suggestion(one, root / "app.py", len(DEFINES)) is not None
    (body,) = sent(server)
    assert "of_everybody(a, b)" in body and "helper.py" in body
    assert "of_nobody" not in body and "KEY=" not in body


@pytest.mark.req("G009")
async def test_a_project_that_is_not_trusted_turns_it_off_and_never_on(
    root: Path, state: Path
) -> None:
    other = (
        '[[provider]]\nname = "mine"\nkind = "openai-chat"\nbase_url = "http://127.0.0.1:1/v1"\n'
    )
    asks = '[completion]\nenabled = true\nmodel = "mine/theirs"\nday_cost = 0\n'
    (root / "magy.toml").write_text(asks + other)
    async with person(root, state, capabilities=REGISTERS) as one:
        status = await one.client.request("magy/completion/status", {})
        assert status["enabled"] is False
        assert not one.client.notifications("client/registerCapability")
        said = str(one.client.notifications("window/showMessage"))
        assert "completion.enabled" in said and "completion.model" in said
    async with ChatServer() as server:
        server.reply(text("<insert>name</insert>"))
        async with person(root, state, settings=settings(server), capabilities=SHOWS) as one:
            one.editor.open(root / "app.py", DEFINES)
            assert await suggestion(one, root / "app.py", len(DEFINES)) is not None
        assert '"small"' in sent(server)[0]
    (root / "magy.toml").write_text("[completion]\nenabled = false\n")
    async with person(root, state, capabilities=SHOWS) as one:
        (state / "magy.toml").write_text("[completion]\nenabled = true\n")
        status = await one.client.request("magy/completion/status", {})
        assert status["enabled"] is False


@pytest.mark.req("G009")
async def test_a_model_that_fails_is_left_alone_and_nobody_is_disturbed(
    root: Path, state: Path
) -> None:
    async with ChatServer() as server:
        server.fault("401", message="wrong key")
        async with person(root, state, settings=settings(server), capabilities=SHOWS) as one:
            path = root / "app.py"
            one.editor.open(path, DEFINES)
            for at in (len(DEFINES), 4):
                assert await suggestion(one, path, at) is None
                one.editor.type(path, 0, 0, "\n")
            assert len(server.asked) == 1
            status = await one.client.request("magy/completion/status", {})
            assert "wrong key" in status["paused"]
            server.reply(text("<insert>name</insert>"))  # asked for, it is tried again
            shown = one.editor.texts[uri_of(path)]
            assert await suggestion(one, path, len(shown), kind=INVOKED) is not None
            status = await one.client.request("magy/completion/status", {})
            assert not status["paused"] and status["requests"] == 2
            assert not one.client.notifications("window/showMessage")
            assert (await one.client.ended()).count("wrong key") == 1


async def test_a_model_that_is_too_slow_is_given_up(root: Path, state: Path) -> None:
    async with ChatServer() as server:
        server.reply(hang())
        about = settings(server, timeout=3.5)  # within which a busy machine asks it at all
        async with person(root, state, settings=about, capabilities=SHOWS) as one:
            one.editor.open(root / "app.py", DEFINES)
            assert await suggestion(one, root / "app.py", len(DEFINES)) is None
            await server.asked[0].disconnected.wait()
            status = await one.client.request("magy/completion/status", {})
            assert "did not answer within 3.5 s" in status["paused"]


async def test_there_is_a_limit_to_what_a_day_may_cost(root: Path, state: Path) -> None:
    """It holds for all processes on one store together."""
    async with ChatServer() as server:
        # The next request may cost 30 tokens of reply at most, and its prompt.
        server.answer(lambda body: [text("<insert>name</insert>"), usage(input=10, output=450_000)])
        about = settings(server, day_cost=0.9, max_tokens=30)
        for number in (1, 2):
            async with person(root, state, settings=about, capabilities=SHOWS) as one:
                one.editor.open(root / "app.py", DEFINES)
                found = await suggestion(one, root / "app.py", len(DEFINES), kind=INVOKED)
                assert (found is not None) is (number == 1)
        status_of = settings(server, day_cost=0)
        async with person(root, state, settings=status_of, capabilities=SHOWS) as one:
            status = await one.client.request("magy/completion/status", {})
            assert status["requests"] == 1 and status["cost"] > 0.9
            one.editor.open(root / "app.py", DEFINES)
            assert await suggestion(one, root / "app.py", len(DEFINES)) is not None


async def test_what_the_editors_own_list_has_selected_is_the_beginning(
    root: Path, state: Path
) -> None:
    shown = "import os\nos.pa"
    async with ChatServer() as server:
        server.reply(text("<insert>.join(a, b)</insert>"))
        async with person(root, state, settings=settings(server), capabilities=SHOWS) as one:
            one.editor.open(root / "app.py", shown)
            ends = {"start": position(shown, len(shown) - 2, "utf-16"),
                    "end": position(shown, len(shown), "utf-16")}  # fmt: skip
            about = {"range": ends, "text": "path"}
            item = await suggestion(one, root / "app.py", len(shown), selectedCompletionInfo=about)
            assert item is not None and item["range"] == ends
            assert accepted(one, root / "app.py", item) == "import os\nos.path.join(a, b)"


async def test_half_a_line_at_the_limit_of_tokens_is_left_out(root: Path, state: Path) -> None:
    shown = "def f():\n    "
    async with AnthropicServer() as server:
        server.reply(text("<insert>a = 1\n    b = 2\n    return a +"), stop("max_tokens"))
        async with person(root, state, settings=settings(server), capabilities=SHOWS) as one:
            one.editor.open(root / "app.py", shown)
            item = await suggestion(one, root / "app.py", len(shown))
            assert item is not None and item["insertText"] == "a = 1\n    b = 2"


async def test_a_request_that_makes_no_sense_is_refused(root: Path, state: Path) -> None:
    async with person(root, state, capabilities=SHOWS) as one:
        uri = one.editor.open(root / "app.py")
        for params in ({}, {"textDocument": {"uri": uri}}):
            with pytest.raises(RpcError, match="needs a"):
                await one.client.request(METHOD, params)
