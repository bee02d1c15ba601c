"""A question shows what runs, whole, in whatever client it is asked: on the wire, and in the
standard message that an editor without Magy code gets."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from tests.e2e.harness import SESSION, Person, person
from tests.patience import PATIENCE

TWO = "ls -la\nrm -rf precious"
LONG = "\n".join(["echo begin", *(f"echo {n} {'x' * 30}" for n in range(60)), "rm -rf precious"])
SPACES = "echo ok" + " " * 200 + "; rm -rf precious"
LINES = "echo ok" + "\n" * 40 + "rm -rf precious"
HIDDEN = "ls \x1b]0;; rm -rf precious;\x07 \u202e\u200b"
ASKS = {"permission": {"*": "ask"}}


def calling(*commands: str) -> str:
    calls = (f"call: bash {json.dumps({'command': command})}\n---\n" for command in commands)
    return "".join(calls) + "text: Done.\n"


def whole(question: dict[str, Any]) -> str:
    """All that a client that shows title and content shows."""
    parts = (
        part["patch"]["text"] if part["type"] == "diff" else part["content"]["text"]
        for part in question["content"]
    )
    return "\n".join([question["title"], *parts])


async def opened(one: Person) -> dict[str, Any]:
    """As a client hears of it that has not subscribed to the session."""
    told = await one.client.wait_for("magy/interaction/changed", lambda p: p["opened"])
    (question,) = told["opened"]
    return dict(question)


# --- the wire -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "title"),
    [
        ("rm -rf precious", "Run rm -rf precious"),
        (TWO, "Run ls -la ⏎ rm -rf precious"),
        (HIDDEN, "Run ls <U+001B>]0;; rm -rf precious;<U+0007> <U+202E><U+200B>"),
        (SPACES, "Run echo ok ⟨200 spaces⟩ ; rm -rf precious"),
        (LINES, "Run echo ok ⏎ ⟨39 empty lines⟩ ⏎ rm -rf precious"),
        ("# " + "y" * 295 + "\n" * 4 + "rm -rf precious",
         "Run # " + "y" * 178 + " … (+16 characters) … " + "y" * 101
         + " ⏎ " * 4 + "rm -rf precious"),
    ],
)  # fmt: skip
@pytest.mark.req("G022")
async def test_the_wire_has_all_that_runs(
    root: Path, state: Path, command: str, title: str
) -> None:
    async with person(root, state, calling(command)) as one:
        await one.new()
        await one.ask("Go")
        update, told = await one.question(), await opened(one)
        (listed,) = (await one.request("interaction/list"))["interactions"]
        summary = await one.request("session/resume")
        (attached,) = summary["summary"]["interactions"]
        for question in (update, told, listed, attached):
            assert question["title"] == title
            shown = whole(question)
            assert "rm -rf precious" in shown and "\x1b" not in shown and "\u202e" not in shown
            if "\n" in command:
                assert question["content"][0]["content"]["text"] == command.replace(
                    "\n" * 40, "\n⟨39 empty lines⟩\n"
                )


async def test_both_ends_and_what_is_left_out_between_them(root: Path, state: Path) -> None:
    async with person(root, state, calling(LONG)) as one:
        await one.new()
        await one.ask("Go")
        question = await one.question()
        assert question["title"].startswith("Run echo begin ⏎ echo 0 xxx")
        assert question["title"].endswith("x ⏎ rm -rf precious")
        hidden = len(LONG) - 300
        assert f" … (+{hidden:,} characters, " in question["title"]
        assert question["content"][0]["content"]["text"] == LONG


async def test_what_a_remembered_answer_covers_is_said_as_it_is(root: Path, state: Path) -> None:
    command = "python3 'a\u202e\nb.py' && git commit -m x"
    async with person(root, state, calling(command)) as one:
        await one.new()
        await one.ask("Go")
        question = await one.question()
        if question["remember"]:
            assert len(question["covers"]) == len(question["remember"])
            assert not any("\n" in one or "\u202e" in one for one in question["covers"])


@pytest.mark.parametrize(
    ("call", "title", "content"),
    [
        ('write_file {"path": "a\\u202eb.txt", "content": "x\\u202ey\\n"}', "Write a<U+202E>b.txt",
         "+x<U+202E>y"),
        ('web_search {"query": "one\\ntwo\\u202e"}', 'Search the web for "one ⏎ two<U+202E>"', ""),
        ('spawn_agent {"agent": "explore", "prompt": "look\\nthen do worse", '
         '"task_name": "be\\u202e nice"}', "Spawn explore: be<U+202E> nice",
         "look\nthen do worse"),
    ],
)  # fmt: skip
async def test_other_tools_show_their_arguments_too(
    root: Path, state: Path, call: str, title: str, content: str
) -> None:
    script = f"call: {call}\n---\ntext: Done.\n"
    async with person(root, state, script, settings=ASKS) as one:
        await one.new()
        await one.ask("Go")
        question = await one.question()
        assert question["title"] == title
        assert content in whole(question)


# --- a plain client -------------------------------------------------------------------------------


class Window:
    """Messages with buttons; a person presses those of `presses`, then dismisses."""

    def __init__(self, one: Person, *presses: str, documents: bool = False) -> None:
        self.messages: list[Any] = []
        self.shown: list[str] = []
        self._presses = list(presses)
        handlers = one.client.handlers
        handlers["window/showMessageRequest"] = self._message
        handlers["window/showDocument"] = self._document
        handlers["workspace/applyEdit"] = lambda params: {"applied": True}

    def _message(self, params: Any) -> Any:
        self.messages.append(params)
        return {"title": self._presses.pop(0)} if self._presses else None

    def _document(self, params: Any) -> Any:
        self.shown.append(Path(unquote(urlsplit(params["uri"]).path)).read_text("utf-8"))
        return {"success": True}

    def titles(self) -> list[str]:
        return [action["title"] for action in self.messages[-1]["actions"]]


@pytest.mark.req("G001")
async def test_a_plain_client_is_shown_all_that_runs(root: Path, state: Path) -> None:
    (root / "precious").write_text("mine")
    async with person(root, state, calling(TWO), knows_magy=False) as one:
        window = Window(one)
        await one.new()
        await one.ask("Go")
        await one.client.wait_until(lambda: window.messages, why="a question")
        assert window.messages[0]["message"].startswith("Run ls -la ⏎ rm -rf precious\n(")
        assert window.titles()[:2] == ["Refuse", "Allow once"], "what comes first never allows"
        # Dismissed: it stays open, and nothing runs.
        (question,) = (await one.request("interaction/list"))["interactions"]
        assert question["title"] == "Run ls -la ⏎ rm -rf precious"
        assert (root / "precious").exists()


@pytest.mark.parametrize(
    ("command", "counted"),
    [
        (SPACES.replace(" " * 200, " " * 300), "echo ok ⟨300 spaces⟩ ; rm"),
        (LINES, "echo ok ⏎ ⟨39 empty lines⟩ ⏎ rm"),
    ],
)
async def test_white_space_leads_nothing_out_of_sight_in_a_plain_client(
    root: Path, state: Path, command: str, counted: str
) -> None:
    async with person(root, state, calling(command), knows_magy=False) as one:
        window = Window(one, "Refuse")
        await one.new()
        await one.turn("Go")
        assert window.messages[0]["message"].startswith(f"Run {counted} -rf precious\n(")
        assert "Show all of it" not in window.titles()


@pytest.mark.parametrize("documents", [True, False])
async def test_a_plain_client_shows_the_rest_by_a_button(
    root: Path, state: Path, documents: bool
) -> None:
    (root / "precious").write_text("mine")
    capabilities = {"window": {"showDocument": {"support": documents}}}
    async with person(
        root, state, calling(LONG), knows_magy=False, capabilities=capabilities
    ) as one:
        window = Window(one, "Show all of it", "Refuse")
        await one.new()
        end = await one.turn("Go")
        assert end["stopReason"] == "end_turn" and (root / "precious").exists()
        first, again = window.messages
        assert first == again and "Show all of it" in window.titles()
        assert "Run echo begin ⏎ " in first["message"] and " lines) … " in first["message"]
        assert "⏎ rm -rf precious\n(" in first["message"]
        said = [p["message"] for p in one.client.notifications("window/showMessage")]
        (text,) = window.shown if documents else [t for t in said if "echo 30" in t]
        assert LONG in text


async def test_a_plain_client_says_what_the_session_would_allow(root: Path, state: Path) -> None:
    async with person(root, state, calling("git commit -m x"), knows_magy=False) as one:
        window = Window(one, "Refuse")
        await one.new()
        await one.turn("Go")
        assert window.titles() == ["Refuse", "Allow once", "Allow for this session"]
        covers = "“Allow for this session” covers: bash `git commit *`"
        assert covers in window.messages[0]["message"].split("\n")


async def test_a_button_that_is_none_allows_nothing(root: Path, state: Path) -> None:
    async with person(root, state, calling("touch made"), knows_magy=False) as one:
        window = Window(one, "OK")
        await one.new()
        await one.ask("Go")
        await one.client.wait_until(lambda: window.messages, why="a question")
        await asyncio.wait_for(one.request("interaction/list"), PATIENCE)
        assert not (root / "made").exists()


async def test_progress_names_all_of_a_command(root: Path, state: Path) -> None:
    async with person(root, state, calling(TWO), knows_magy=False) as one:
        Window(one, "Refuse")
        await one.new()
        await one.ask("Go")
        report = await one.client.wait_for(
            "$/progress", lambda p: "Run" in p["value"].get("message", "")
        )
        assert report["value"]["message"] == "Run ls -la ⏎ rm -rf precious"


@pytest.mark.req("A113")
@pytest.mark.parametrize(
    "command", ["git push", "git -C . push --force origin main", "true && git push", "git status"]
)
async def test_a_push_is_asked_about_however_it_is_written(
    root: Path, state: Path, command: str
) -> None:
    """By the rules that come with Magy. What only looks is not."""
    async with person(root, state, calling(command)) as one:
        await one.new()
        await one.ask("Go")
        if "push" not in command:
            await one.end()
            return
        question = await one.question()
        assert question["rule"].startswith("agent build: bash ") and "-> ask" in question["rule"]
        assert "push" in whole(question)
        await one.respond(question["interactionId"], False)
        await one.end()


# --- two editors ----------------------------------------------------------------------------------


async def test_a_question_is_told_in_each_editor_of_the_project(
    root: Path, tmp_path: Path, state: Path
) -> None:
    """Whichever process runs the session; any of them may answer, and the others hear of it."""
    other = tmp_path / "other"
    other.mkdir()
    async with (
        person(root, state, calling("touch made")) as one,
        person(root, state, calling("touch made")) as two,
        person(other, state, calling("touch made")) as stranger,
    ):
        await two.client.request("magy/interaction/list", {})  # from here on it hears of all
        await one.new()
        await one.ask("Go")
        question = await opened(two)
        assert question["title"] == "Run touch made"
        assert question["sessionId"] == SESSION
        await two.respond(question["interactionId"], True)
        resolved = await one.client.wait_for("magy/interaction/changed", lambda p: p["resolved"])
        assert resolved["resolved"] == [question["interactionId"]]
        resolved = await two.client.wait_for("magy/interaction/changed", lambda p: p["resolved"])
        assert resolved["resolved"] == [question["interactionId"]]
        await one.end()
        listed = await two.client.wait_for("magy/session/listChanged", lambda p: True)
        assert listed == {"sessionId": SESSION}
        await stranger.new("other")
        told = stranger.client.notifications("magy/session/listChanged")
        assert SESSION not in {params["sessionId"] for params in told}
        assert not stranger.client.notifications("magy/interaction/changed")
    assert (root / "made").exists()


async def test_a_question_that_ends_unanswered_is_taken_back_in_each_editor(
    root: Path, state: Path
) -> None:
    async with (
        person(root, state, calling("touch made")) as one,
        person(root, state, calling("touch made")) as two,
    ):
        await two.client.request("magy/interaction/list", {})  # from here on it hears of all
        await one.new()
        await one.ask("Go")
        question = await opened(two)
        await one.request("session/cancel")
        resolved = await two.client.wait_for("magy/interaction/changed", lambda p: p["resolved"])
        assert resolved["resolved"] == [question["interactionId"]]
        await one.end()
    assert not (root / "made").exists()
