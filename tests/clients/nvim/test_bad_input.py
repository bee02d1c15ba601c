"""What a server may do wrong, and what a person may do to the windows: nothing is lost, no fault is
shown. The server follows a script (`tests/clients/fake_server.py`)."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.clients.nvim.conftest import Start, environment
from tests.clients.nvim.embedded import Neovim, neovim
from tests.clients.shop import script
from tests.patience import PATIENCE

FAKE = Path(__file__).parents[1] / "fake_server.py"
WIRE = {"protocol": 1, "version": "test"}
HELLO = {"capabilities": {"positionEncoding": "utf-8", "experimental": {"magy": WIRE}}}
ABOUT = {"sessionId": "s", "cwd": "/", "title": None, "state": "idle", "turns": 0, "headSeq": 0}
PAGE = {"headSeq": 0, "floorSeq": 1, "more": False, "events": [],
        "summary": {"session": ABOUT, "configOptions": []}}  # fmt: skip
Steps = list[dict[str, Any]]


def update(**news: Any) -> dict[str, Any]:
    return {
        "notify": "magy/session/update",
        "params": {"sessionId": "$sessionId", "update": news},
    }


def chunk(text: str) -> dict[str, Any]:
    content = {"type": "text", "text": text}
    return update(sessionUpdate="agent_message_chunk", messageId="1", content=content)


@contextmanager
def faked(shop: Path, prompt: Steps, **more: list[Steps]) -> Iterator[Neovim]:
    """A Neovim whose server answers a prompt with these steps."""
    scenario = {
        "initialize": [[{"result": HELLO}]],
        "magy/session/resume": [[{"result": PAGE}]],
        "magy/context/get": [[{"result": {"items": []}}]],
        "magy/review/list": [[{"result": {"files": []}}]],
        "magy/child/list": [[{"result": {"children": []}}]],
        "magy/session/prompt": [[{"result": {"messageId": "m", "outcome": "started"}}, *prompt]],
        **more,
    }
    file = shop.parent / "scenario.json"
    file.write_text(json.dumps(scenario))
    command = [sys.executable, str(FAKE), str(file), str(shop.parent / "received")]
    with neovim(shop, environment(""), "prices.py") as nvim:
        nvim.lua("vim.lsp.config('magy', { cmd = ... })", command)
        nvim.command("Magy")
        nvim.until_lua("return require('magy').status().server == 'running'")
        nvim.keys("go on<C-s>")
        yield nvim


def messages(nvim: Neovim) -> str:
    return str(nvim.request("nvim_exec2", "messages", {"output": True})["output"])


@pytest.mark.req("F008")
def test_escapes_and_controls_of_a_model_are_shown_as_what_they_are(shop: Path) -> None:
    steps = [
        chunk("red \x1b[31mtext\x1b[0m \x1b]0;title\x07 bell \x07 \u202eback\x00 \x9b2J end"),
        update(sessionUpdate="tool_call_update", toolCallId="1.0", status="pending",
               title="Run \x1b[2Jrm\nall"),
    ]  # fmt: skip
    with faked(shop, steps) as nvim:
        seen = nvim.until_seen("red text", "bell <U+0007> <U+202E>back<U+0000> <U+009B>2J end")
        assert "· Run rm all" in seen and "title" not in seen and "\x1b" not in seen


def test_a_long_message_of_the_server_stays_on_one_line(shop: Path) -> None:
    """After more than one line Neovim would wait for ENTER, in the middle of a prompt."""
    said = f"{shop}/a.toml is wrong: " + "word " * 60 + "\nthe end"
    steps = [{"notify": "window/showMessage", "params": {"type": 3, "message": said}}]
    with faked(shop, [*steps, chunk("after")]) as nvim:
        nvim.until_seen("after")
        (line,) = [one for one in messages(nvim).splitlines() if one.startswith("Magy: a.toml is")]
        assert len(line) < 80 and line.endswith("word … (`:Magy log`)")
        assert "the end" not in messages(nvim)
        nvim.command("Magy log")
        assert "word the end" in nvim.text()


def test_unknown_updates_and_nonsense_change_nothing(shop: Path) -> None:
    steps = [
        chunk("before "),
        update(sessionUpdate="_from_the_future", content=7),
        update(sessionUpdate="plan_update"),
        update(sessionUpdate="tool_call_update"),
        {"notify": "magy/session/update", "params": {"sessionId": "$sessionId"}},
        {"notify": "magy/unknown", "params": {}},
        chunk("after"),
    ]
    with faked(shop, steps) as nvim:
        nvim.until_seen("before after")
        assert "fault" not in messages(nvim) and "rror" not in messages(nvim), messages(nvim)


def test_an_answer_that_comes_twice_is_taken_once(shop: Path) -> None:
    steps = [{"result": {"messageId": "m", "outcome": "started"}}, chunk("Here I am.")]
    with faked(shop, steps) as nvim:
        nvim.until_seen("Here I am.")
        nvim.keys("again<C-s>")
        nvim.until_seen("Here I am.Here I am.")


def test_100000_events_are_shown_and_the_editor_stays_usable(shop: Path) -> None:
    many = {**chunk("one line\n"), "times": 100_000}
    with faked(shop, [many, chunk("done")]) as nvim:
        nvim.keys("<Esc>ia prompt meanwhile<Esc>")
        nvim.until_seen("a prompt meanwhile")
        nvim.until("all of them", lambda: "done" in nvim.seen(), seconds=4 * PATIENCE)
        count = "return vim.api.nvim_buf_line_count(vim.fn.bufnr('magy://shop$'))"
        assert nvim.lua(count) > 100_000


@pytest.mark.req("G004")
def test_older_turns_are_read_when_one_goes_there(shop: Path) -> None:
    def said(seq: int, words: str) -> dict[str, Any]:
        content = [{"type": "text", "text": words}]
        news = {"sessionUpdate": "user_message", "messageId": f"m{seq}", "content": content}
        return {"seq": seq, "at": seq, "update": news}

    page = {**PAGE, "headSeq": 20, "floorSeq": 11, "events": [said(11, "a later prompt")]}
    before = {
        "events": [said(1, "the first prompt"), said(2, "another")],
        "headSeq": 20,
        "more": False,
    }
    more: dict[str, list[Steps]] = {
        "magy/session/resume": [[{"result": page}]],
        "magy/session/events": [[{"result": before}]],
    }
    with faked(shop, [], **more) as nvim:
        nvim.until_seen("❯ a later prompt")
        assert "the first prompt" not in nvim.seen()
        nvim.keys("<Esc>")
        nvim.command("wincmd k")
        nvim.keys("gg")
        seen = nvim.until_seen("❯ the first prompt", "❯ another")
        assert seen.index("the first prompt") < seen.index("another") < seen.index("a later prompt")


def test_other_versions_of_the_wire_are_said(shop: Path) -> None:
    other = {"capabilities": {"experimental": {"magy": {"protocol": 2, "version": "9.9"}}}}
    file = shop.parent / "scenario.json"
    file.write_text(json.dumps({"initialize": [[{"result": other}]]}))
    command = [sys.executable, str(FAKE), str(file), str(shop.parent / "received")]
    with neovim(shop, environment(""), "prices.py") as nvim:
        nvim.lua("vim.lsp.config('magy', { cmd = ... })", command)
        nvim.command("Magy")
        nvim.until("the sentence", lambda: "Update this plugin (" in messages(nvim))
        assert "the server (9.9) is newer." in messages(nvim)


def test_any_window_may_be_closed_at_any_time(start: Start) -> None:
    with start(script(thinking=0), "prices.py") as nvim:
        nvim.command("Magy")
        nvim.until_lua("return require('magy').status().server == 'running'")
        nvim.keys("tidy the prices<C-s>")
        nvim.until_seen("? Run rm -rf build")
        nvim.keys("<Esc>")
        nvim.command("quit")
        nvim.command("quit")
        nvim.until_seen("Magy asks")
        nvim.command("Magy answer")
        nvim.until_seen("q leave it open")
        nvim.command("quit")
        nvim.command("Magy answer")
        nvim.until("allowed", lambda: nvim.keys("y")
                   or nvim.lua("return require('magy').status().questions == 0"))  # fmt: skip
        nvim.until_lua("return require('magy').status().review == 3")
        nvim.command("1 wincmd w | Magy next")
        nvim.until("a change", lambda: nvim.lua("return vim.fn.line('.')") > 1)
        nvim.command("Magy amend")
        nvim.until_seen(":w puts them there")
        nvim.command("quit!")
        nvim.command("Magy undo")
        nvim.until_seen("# Undo 1 turn")
        nvim.command("quit!")
        nvim.command("Magy children")
        nvim.command("quit")
        nvim.command("Magy")
        nvim.until_seen("The prices are tidy.")
        nvim.keys("<Esc>")
        for name in ("magy://shop/prompt", "magy://shop/agents", "magy://shop"):
            nvim.lua(
                "vim.api.nvim_buf_delete(vim.fn.bufnr('^' .. ... .. '$'), { force = true })", name
            )
        nvim.command("Magy")
        nvim.until_seen("The prices are tidy.", "magy://shop/prompt")
        assert "fault" not in messages(nvim) and "failed" not in messages(nvim), messages(nvim)
