"""What goes wrong outside of Magy is said, and everything else goes on."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.client import frame

from .harness import MAGY, SESSION, RpcError, person

HELLO = "text: Hello.\n"


async def failure(root: Path, state: Path, **start: Any) -> RpcError:
    """The error every `magy/*` request gets; the server itself must stay alive."""
    async with person(root, state, HELLO, **start) as one:
        with pytest.raises(RpcError) as raised:
            await one.new()
        shown = await one.client.wait_for("window/showMessage")
        assert raised.value.message in shown["message"]
        assert one.client.process.returncode is None
        return raised.value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[modle]\n", "did you mean 'model'"),
        ("[model]\nretires = 1\n", "did you mean 'retries'"),
        ("[limits]\nrequests = -1\n", "limits.requests"),
        ("[permission]\nbash = 'alow'\n", "permission.bash"),
        ("this is no toml", "not valid TOML"),
        ("[[provider]]\nname = 'x'\nkind = 'anthropic'\napi_key = 'sk'\n", "api_key_env"),
    ],
)
async def test_a_wrong_setting_is_named_with_file_and_key(
    root: Path, state: Path, text: str, said: str
) -> None:
    state.mkdir()
    (state / "magy.toml").write_text(text)
    error = await failure(root, state)
    assert error.reason == "invalid_config"
    assert said in error.message and str(state / "magy.toml") in error.message


async def test_a_corrupt_database_is_said_and_left_alone(root: Path, state: Path) -> None:
    state.mkdir()
    (state / "magy.db").write_bytes(b"not a database at all " * 400)
    error = await failure(root, state)
    assert error.reason == "store_corrupt" and "magy.db" in error.message
    assert (state / "magy.db").read_bytes().startswith(b"not a database")


async def test_a_database_of_a_newer_magy_is_refused(root: Path, state: Path) -> None:
    async with person(root, state, HELLO) as one:
        await one.new()
    with sqlite3.connect(state / "magy.db") as database:
        database.execute("pragma user_version = 9999")
    database.close()
    error = await failure(root, state)
    assert error.reason == "store_newer" and "newer" in error.message


async def test_one_damaged_session_does_not_touch_the_others(root: Path, state: Path) -> None:
    async with person(root, state, HELLO) as one:
        await one.new()
        await one.turn("Hi")
        await one.new("s2")
    with sqlite3.connect(state / "magy.db") as database:
        change = "update entries set body = '{' where stream = ? and seq = 3"
        database.execute(change, (f"session/{SESSION}",))
    database.close()
    async with person(root, state, HELLO) as one:
        with pytest.raises(RpcError, match="entry 3"):
            await one.ask("again", "p2")
        await one.request("session/subscribe", sessionId="s2")
        await one.ask("Hi", sessionId="s2")
        assert (await one.end("s2"))["stopReason"] == "end_turn"


async def test_a_state_directory_that_cannot_be_made_is_said(root: Path, state: Path) -> None:
    """Not even root may write there."""
    error = await failure(root, state, env={"MAGY_STATE_DIR": "/proc/magy"})
    assert "/proc/magy" in error.message


async def test_a_missing_script_and_a_wrong_one_are_said(root: Path, state: Path) -> None:
    async with person(root, state, env={"MAGY_SCRIPT": str(state / "none.script")}) as one:
        await one.new()
        end = await one.turn("Hi")
        assert "none.script" in end["_meta"]["magy"]["message"]


@pytest.mark.parametrize("model", ["nobody/x", "noslash", ""])
async def test_an_unknown_model_is_said(root: Path, state: Path, model: str) -> None:
    async with person(root, state, HELLO) as one:
        await one.new()
        with pytest.raises(RpcError, match="provider"):
            await one.request("session/set_config_option", configId="model", value=model)
        await one.turn("Hi")
        assert one.said() == "Hello."


async def test_huge_binary_and_undecodable_files(root: Path, state: Path) -> None:
    with (root / "huge.txt").open("wb") as huge:
        huge.write(b"first line\n")
        huge.truncate(200 * 1024 * 1024)
    (root / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(100))
    (root / "odd.txt").write_bytes(b"\xff\xfe\xfd\xfc\x81\x8d" * 10)
    calls = "".join(f'call: read_file {{"path": "{name}"}}\n'
                    for name in ("huge.txt", "image.png", "odd.txt", "."))  # fmt: skip
    async with person(root, state, f"{calls}---\ntext: ok\n") as one:
        await one.new()
        assert (await one.turn("Read"))["stopReason"] == "end_turn"
        outputs = one.outputs()
        assert len(outputs) == 4 and all(len(text) < 60_000 for text in outputs)
        assert any("image.png" in text for text in outputs), outputs


async def test_a_client_that_does_not_read_costs_bounded_memory_and_misses_no_event(
    root: Path, state: Path
) -> None:
    words = " ".join(["word"] * 30_000)  # several times what pipes and readers hold
    async with person(root, state, f"text: {words}\n") as one:
        await one.new()
        one.client.pause()
        await one.client.process.stdin.drain()  # type: ignore[union-attr]
        waiting = asyncio.create_task(one.ask("Talk"))
        await asyncio.sleep(3)
        one.client.resume()
        await waiting
        end = await one.end()
        assert end["stopReason"] == "end_turn", end
        assert one.said() == words
        seqs = [u["_meta"]["magy"]["seq"] for u in (
            p["update"] for p in one.client.notifications("magy/session/update")
        ) if "_meta" in u]  # fmt: skip
        assert seqs == sorted(seqs) and set(seqs) == set(range(2, max(seqs) + 1))


async def test_stdout_carries_nothing_but_lsp(root: Path, state: Path) -> None:
    """The client asserts on every byte; the command writes to what would be standard output."""
    script = (
        'call: bash {"command": "touch a; echo to stdout; echo to stderr >&2"}\n---\ntext: ok\n'
    )
    async with person(root, state, script) as one:
        await one.new()
        await one.ask("Go")
        await one.answer()
        assert (await one.end())["stopReason"] == "end_turn"
        assert "to stdout" in one.outputs()[0] and "to stderr" in one.outputs()[0]


async def test_keys_do_not_reach_what_tools_start(root: Path, state: Path) -> None:
    script = 'call: bash {"command": "touch a; env"}\n---\ntext: {{last}}\n'
    env = {"ANTHROPIC_API_KEY": "sk-secret-1", "MY_OWN_TOKEN": "sk-secret-2"}
    async with person(root, state, script, env=env) as one:
        await one.new()
        await one.ask("Go")
        await one.answer()
        await one.end()
        assert "HOME=" in one.said() and "sk-secret" not in one.said()


async def test_half_a_surrogate_pair_in_a_prompt_is_made_whole(root: Path, state: Path) -> None:
    async with person(root, state, HELLO) as one:
        await one.new()
        prompt = [{"type": "text", "text": "odd \ud800 text"}]
        params = {"sessionId": SESSION, "messageId": "p1", "prompt": prompt}
        asked = {"jsonrpc": "2.0", "id": "x", "method": "magy/session/prompt", "params": params}
        one.client.send_raw(frame(json.dumps(asked).encode()))  # as an escape, `\ud800`
        message = await one.update("user_message")
        assert message["content"][0]["text"] == "odd \ufffd text"
        assert (await one.end())["stopReason"] == "end_turn"


async def test_a_full_disk_is_said_and_nothing_is_half_written(root: Path, state: Path) -> None:
    """The limit on file sizes stands for the disk: what does not fit is refused whole."""
    command = ("/bin/bash", "-c", 'ulimit -f 700; exec "$@"', "magy", *MAGY)
    async with person(root, state, HELLO, command=command) as one:
        await one.new()
        await one.turn("Hi", "p1")
        with pytest.raises(RpcError) as full:
            await one.ask("x" * 2_000_000, "p2")
        assert full.value.reason == "store_unavailable" and "magy.db" in full.value.message
        assert one.client.process.returncode is None
    async with person(root, state, HELLO) as one:
        attached = await one.request("session/subscribe")
        assert attached["summary"]["session"]["turns"] == 1
        await one.turn("Hi again", "p3")
        assert one.said() == "Hello."
