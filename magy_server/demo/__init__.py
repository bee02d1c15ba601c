"""`magy demo` plays a whole task over the real wire, in a project made for it.

A person (Ada) has a file open with unsaved text and asks for a fix. The real server runs over real
stdio; only the model is scripted, unless a real one is asked for.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import Coroutine
from contextlib import aclosing
from pathlib import Path
from typing import Any

from magy_server.cli import exit_codes
from magy_server.cli.plain_output import drop_output, require_output
from magy_server.core.errors import MagyError
from magy_server.demo.editor import Editor
from magy_server.demo.helper import Helper
from magy_server.demo.project import PRICES, TEST_OF_TOTAL, UNSAVED, git_diff, make
from magy_server.demo.review import TYPED, Review
from magy_server.demo.screen import Screen
from magy_server.tasks import Tasks

MORE = (
    "Document that prices include VAT, and what the mean of an empty list is; make total() "
    "return whole cents."
)
DECIDE = "@magi Should the shop round prices when it stores them?"
DELEGATE = "Have a child agent write a test of total(), and tell me how it went."
TEAM = "Have a team find out what the head of our price list must say about VAT."
PROMPT = "average() crashes on an empty list. Please fix it and run the tests."


def demo(*, fast: bool, real: bool) -> int:
    """Returns the process's exit code: 0 when the story came to its end."""
    require_output()
    if real and (problem := _no_model()):
        print(f"magy: {problem}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="magy-demo-", ignore_cleanup_errors=True) as directory:
        try:
            return asyncio.run(_left_once(_play(Path(directory).resolve(), fast=fast, real=real)))
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None
        except BrokenPipeError:
            drop_output()
            return exit_codes.PIPE


async def _left_once(story: Coroutine[Any, Any, int]) -> int:
    """Plays the story; Ctrl-C ends it. Further ones change nothing: what is left to do is bounded,
    and without it a directory would stay."""
    playing, loop = asyncio.ensure_future(story), asyncio.get_running_loop()

    def leave() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        playing.cancel()

    loop.add_signal_handler(signal.SIGINT, leave)
    return await playing


def _no_model() -> str:
    """What keeps the person's own model from being used; "" when nothing does."""
    from magy_server.config import layers
    from magy_server.providers import Providers

    try:
        settings = layers.load(None, trusted=False, options={}).settings
        providers = Providers(settings.provider, os.environ, settings.model)
        asyncio.run(providers.default())
    except MagyError as error:
        return error.message
    return ""


async def _play(directory: Path, *, fast: bool, real: bool) -> int:
    root = directory / "shop"
    file = make(root)
    environ = {"MAGY_STATE_DIR": str(directory / "state")}
    if not real:
        environ["MAGY_CONFIG_DIR"] = str(directory)
        environ["MAGY_SCRIPT"] = str(_script(directory, fast=fast))
    screen = Screen(pause=0.0 if fast else 1.0)
    story = _Story(screen, root, file, real=real)
    async with aclosing(story.editor) as editor:
        await editor.start(root, environ, directory / "server.log")
        screen.scene("A small git project with one open file and an unsaved line in it")
        editor.open(file, UNSAVED + PRICES)
        screen.say(f"  {file.relative_to(root)} (unsaved): {UNSAVED.strip()}")
        session = {"sessionId": "demo"}
        await editor.request("magy/session/new", {**session, "cwd": str(root)})
        await editor.request("magy/session/subscribe", session)
        screen.scene("Ada asks")
        ended = await story.ask("ask", PROMPT) == "end_turn"
        if not real:
            await story.review.accept_all()
            screen.scene("Ada asks for more, and reviews while the agent works")
            ended = ended and await story.ask("more", MORE) == "end_turn"
            screen.scene("What is left to review")
            ended = ended and await story.review.finish()
            editor.save(file)
            screen.scene("Ada gives a task to a child agent, and talks to both agents")
            ended = ended and await story.ask("delegate", DELEGATE) == "end_turn"
            await story.review.accept_all(root / TEST_OF_TOTAL)
            screen.scene("Ada has a team look something up: two side by side, one builds on both")
            ended = ended and await story.ask("team", TEAM) == "end_turn"
            await story.close_agents()
            screen.scene("Ada has a question judged by three agents, each by itself")
            ended = ended and await story.ask("decide", DECIDE) == "end_turn"
        done = await _after(screen, editor, root, file, real=real)
        await editor.stop()
    return 0 if ended and (done or real) else 1


async def _after(screen: Screen, editor: Editor, root: Path, file: Path, *, real: bool) -> bool:
    screen.scene("What git shows")
    diff = git_diff(root)
    screen.diff(diff)
    attached = await editor.request("magy/session/subscribe", {"sessionId": "demo"})
    screen.usage(attached["summary"]["usage"])
    _, text = editor.documents[file.as_uri()]
    kept = text.startswith(UNSAVED) and "return 0.0" in text
    if not real:
        kept = kept and TYPED in text and "0.0 of none" in text and "round(" not in text
    spared = (root / "build" / "cache.bin").exists()
    screen.say("")
    if kept and spared:
        screen.good("Ada's own lines are still there, the hunk that she rejected is not, build/ "
            "was not deleted, and every event is in the log: kill the server at any point, and the "
            "next one continues from there.")  # fmt: skip
    return kept and spared and "+        return 0.0" in diff


class _Story:
    """Ada: she refuses what deletes, allows the rest, and saves when her buffer was edited."""

    def __init__(self, screen: Screen, root: Path, file: Path, *, real: bool) -> None:
        self.editor = Editor(self._heard, self._failed)
        self.review = Review(self.editor, screen, file)
        self._ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._reviewing = False
        self._screen = screen
        self._root = root
        self._file = file
        self._real = real
        self._edits: set[str] = set()
        self._waits: set[str] = set()
        """Calls that wait for a child."""
        self._helper = Helper(self.editor, Screen(screen.pause, "    ┃", "helper"))
        self._held: list[dict[str, Any]] | None = None
        """Updates to be shown when the helper rests."""
        self._tasks = Tasks(self._failed)

    async def close_agents(self) -> None:
        """Makes room for others: those that have done their tasks take nothing more."""
        about = {"parentSessionId": "demo"}
        for child in (await self.editor.request("magy/child/list", about))["children"]:
            about = {"sessionId": child["sessionId"]}
            await self.editor.request("magy/child/close", about)

    async def ask(self, id: str, text: str) -> str:
        """Prompts; the answer is how the turn ended."""
        self._ended = asyncio.get_running_loop().create_future()
        self._reviewing = id == "more"
        block = {"type": "text", "text": text}
        asked = {"sessionId": "demo", "messageId": id, "prompt": [block]}
        await self.editor.request("magy/session/prompt", asked)
        return await self._ended

    def _heard(self, method: str, params: dict[str, Any]) -> None:
        if method == "magy/session/update":
            if params["sessionId"] == self._helper.session:
                self._helper.updates.put_nowait(params["update"])
            elif self._held is not None:
                self._held.append(params["update"])
            else:
                self._update(params["update"])
        elif method == "magy/interaction/changed":
            for question in params["opened"]:
                if question["sessionId"] == "demo":
                    self._tasks.begin(self._answer(question))

    def _failed(self, error: BaseException) -> None:
        if not self._ended.done():
            self._ended.set_exception(error)
            self._ended.exception()  # who asks for something hears of it, too

    def _update(self, update: dict[str, Any]) -> None:
        self._screen.update(update)
        if update["sessionUpdate"] == "tool_call_update":
            call = update["toolCallId"]
            if update.get("name") in ("edit_file", "apply_patch", "write_file"):
                self._edits.add(call)
            if call in self._edits and update.get("status") == "completed":
                self._save()
            if update.get("name") == "wait_agent":
                self._waits.add(call)
            if call in self._waits and "decision" in update.get("_meta", {}).get("magy", {}):
                self._held = []
                self._tasks.begin(self._watch())
        ended = update["sessionUpdate"] == "state_update" and update.get("state") == "idle"
        if ended and not self._ended.done():
            self._ended.set_result(update["stopReason"])

    async def _watch(self) -> None:
        """What the child does stands beneath the wait for it; what its parent does, behind that."""
        await self._helper.watch()
        held, self._held = self._held, None
        for update in held or ():
            self._update(update)

    def _save(self) -> None:
        _, text = self.editor.documents[self._file.as_uri()]
        if text != self._file.read_text("utf-8"):
            self.editor.save(self._file)
            self._screen.aside("Ada looks at the change in her buffer, and saves it.")

    async def _answer(self, question: dict[str, Any]) -> None:
        if self._reviewing:
            await self.review.look()
        allow, reason = await self._decide(question["title"])
        self._screen.answered(allow, reason)
        await self.editor.request("magy/interaction/respond", {
            "sessionId": question["sessionId"],
            "interactionId": question["interactionId"],
            "outcome": "allow" if allow else "refuse",
            "reason": reason,
        })  # fmt: skip

    async def _decide(self, title: str) -> tuple[bool, str]:
        self._screen.asked(title)
        if self._real and sys.stdin.isatty():
            answer = await asyncio.to_thread(input, "    allow? [y/N, or why not] ")
            return answer.strip().lower() in ("y", "yes"), answer.strip()
        await asyncio.sleep(self._screen.pause)
        if "rm " in title:
            return False, "Do not delete build/: it is slow to make. Just run the tests."
        return True, ""


def _script(directory: Path, *, fast: bool) -> Path:
    text = (Path(__file__).parent / "story.script").read_text("utf-8")
    path = directory / "story.script"
    path.write_text(text.replace("SPEED", "0" if fast else "90"), encoding="utf-8")
    return path
