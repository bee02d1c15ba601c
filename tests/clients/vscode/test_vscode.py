"""Whole days with a real VS Code and the real server. They are few and long, since each process of
a run that has one starts a VS Code. The model is scripted; everything else is what a person has who
did what the client's page says."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.clients.driven import Driven, emacs, installed, lisp
from tests.clients.shop import PRICES, TYPED, edit, script
from tests.clients.test_emacs import missing
from tests.clients.vscode.driven import Served, Window, window
from tests.clients.vscode.transcript import Transcript

if TYPE_CHECKING:
    from playwright.sync_api import Browser

BROKEN = '{\n  "vat": 19,\n  "reduced": 7,\n}\n'
SCRIPT = f"""\
{script(thinking=1)}
prompt: look into the prices
text: An agent looks into it.
call: spawn_agent {{"agent": "general", "task_name": "Taxes",
  "prompt": "Find out where taxes are added."}}
---
text: It is on its way.
---
text: It has told me.

prompt: Find out where taxes are added
text: I look for the taxes.
call: bash {{"command": "touch taxes"}}
---
text: I go on looking.
call: bash {{"command": "sleep 600", "timeout": 600}}
---
text: Never said.

prompt: only the gross
text: It is gross alone.

prompt: name the tax
text: I name it.
{edit("def gross(price):", "def gross(price):  # TAX")}
---
text: It has a name.

prompt: clear away
text: Files come and go.
call: bash {{"command": "rm rates.json && cp logo.bin old.bin && head -c 8 /dev/zero > logo.bin"}}
---
text: They went.

prompt: say it again
text: It was as before.
call: bash {{"command": "touch again"}}
---
text: Said again.

prompt: Fix the problems that the editor reports
text: A comma too many.
{edit("7,", "7", "rates.json")}
---
text: Now it is valid.
"""


@pytest.fixture
def shop(folder: Path) -> Path:
    """A repository with three files and an old directory."""
    (folder / "build").mkdir()
    (folder / "prices.py").write_text(PRICES)
    (folder / "logo.bin").write_bytes(bytes(range(8)))
    (folder / "rates.json").write_text(BROKEN)
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "The shop"]):
        subprocess.run([*git, *command], cwd=folder, check=True)
    return folder


@pytest.mark.long
@pytest.mark.req("F006", "F009", "G005")
def test_a_day_with_magy(browser: Browser, server: Served, shop: Path) -> None:
    """Beside the editor's own language server for JSON."""
    server.play(SCRIPT)
    with window(browser, server, shop) as one:
        talk = Transcript(one)
        one.open("prices.py")
        prompted_and_answered(one, talk, shop)
        typed_while_edits_land(one, talk)
        reviewed(one)
        rewritten(one)
        fixed(one, talk)
        proposed(one, talk)
        undone(one, talk)
        killed(one, talk, server, shop)
        reloaded(one, talk)
        assert not one.abroad


@pytest.mark.long
@pytest.mark.req("F008", "F012", "G003")
def test_a_day_with_others(
    browser: Browser, server: Served, places: dict[str, str], shop: Path, tmp_path: Path
) -> None:
    """A child agent, an Emacs on the same session, and a folder of somebody else's."""
    server.play(SCRIPT)
    with window(browser, server, shop) as one:
        talk = Transcript(one)
        talk.show()
        cleared(one, talk, shop)
        steered(one, talk, shop)
        shared_with_emacs(talk, places, shop)
        assert not one.abroad
    restricted(browser, server, tmp_path)


def prompted_and_answered(one: Window, talk: Transcript, shop: Path) -> None:
    """A prompt; what streams; a question that takes nothing; its answer."""
    talk.show()
    talk.ask("tidy the prices")
    talk.said("I look at prices.py.")
    assert "rm -rf build" in talk.question()
    assert talk.prompts() == ["tidy the prices"]
    assert (shop / "build").exists()
    talk.answer("Allow once")
    one.until(lambda: not (shop / "build").exists(), "what was allowed")


def typed_while_edits_land(one: Window, talk: Transcript) -> None:
    """Each key is a change of its own, while edits are made in the buffer; neither side loses."""
    one.tab("prices.py").click()
    one.keys("Control+End")
    typed = ""

    def landed() -> bool:
        nonlocal typed
        if "name.strip()" in (one.text() or ""):
            return True
        if len(typed) < len(TYPED):
            one.type(TYPED[len(typed)])
            typed += TYPED[len(typed)]
        return False

    one.until(landed, "the edits")
    one.type(TYPED[len(typed) :])
    talk.said("The prices are tidy.")
    talk.idle()
    expected = PRICES.replace("return price\n", "return round(price, 2)\n", 1)
    expected = expected.replace("price * 1.19", "round(price * 1.19, 2)")
    expected = expected.replace("name\n", "name.strip()\n") + TYPED
    one.until(lambda: one.text() == expected, "both texts")


def reviewed(one: Window) -> None:
    """Three changes: one accepted, one rejected with a reason, one after it was typed into."""
    one.changes(3)
    one.lenses("Accept").first.click()
    one.changes(2)
    one.go(6)
    one.command("Magy: Reject Change, and Say Why…")
    one.answer("taxes are rounded later")
    one.changes(1)
    one.shows("return price * 1.19")
    one.go(10)
    one.keys("End")
    one.type(".title()")
    one.shows("return name.strip().title()")

    def accepted() -> bool:
        # What was typed made another change of it: until that is known, none is decided.
        if one.lenses("Accept").count():
            one.lenses("Accept").first.click(timeout=2000)
        return not one.lenses("Accept").count()

    one.until(accepted, "the decision")
    assert "return name.strip().title()\n" in (one.text() or "")
    assert "return round(price, 2)\n" in (one.text() or "")


def rewritten(one: Window) -> None:
    """The function at the cursor, in its place, while something is typed above it."""
    one.go(13)
    one.command("Magy: Rewrite Selection…")
    one.answer("in one line")
    one.until(lambda: "# the sum" in one.drafts(), "what will stand there")
    assert "# the sum" not in (one.text() or ""), "a draft is no text yet"
    one.go(1)
    one.type("#\n")
    one.shows("return round(sum(prices), 2)")
    assert (one.text() or "").startswith("#\ndef net")
    one.changes(1)
    one.lenses("Accept").first.click()
    one.changes(0)


def fixed(one: Window, talk: Transcript) -> None:
    """A problem that the editor reports, chosen of all."""
    one.open("rates.json")
    one.until(lambda: one.page.locator(".squiggly-error, .squiggly-warning").count(), "a problem")
    one.command("Magy: Fix a Problem…")
    one.choose("Trailing comma")
    talk.said("Now it is valid.")
    one.until(lambda: one.text() == BROKEN.replace("7,", "7"), "the fix")
    one.changes(1)


def proposed(one: Window, talk: Transcript) -> None:
    """The key of the modes has the agent ask before it edits: the file changes with the answer."""
    one.open("prices.py")
    talk.show()
    mode = talk.frame.get_by_label("What happens to edits (Alt+M)")
    one.until(lambda: mode.input_value() == "review", "the modes")
    talk.frame.get_by_label("Message to the agent").press("Alt+m")
    one.until(lambda: mode.input_value() == "propose", "the mode")
    talk.ask("name the tax")
    talk.said("It has a name.")
    one.until(lambda: "2 changes in 2 files" in talk.review(), "what waits")
    one.changes(1)
    assert "TAX" not in (one.text() or "")
    one.lenses("Accept").first.click()
    one.shows("# TAX")


def undone(one: Window, talk: Transcript) -> None:
    """A turn is undone after a preview, which leaves the conversation as it is if one wants, and
    done again."""
    one.command("Magy: Undo Last Turn")
    one.shows("The conversation goes back")
    one.title_button("Include or Leave Out Conversation")
    one.shows("The conversation stays as it is.")
    one.title_button("Include or Leave Out Conversation")
    one.title_button("Apply Preview")
    one.until(lambda: "# TAX" not in (one.text() or "# TAX"), "the text before")
    talk.wrote("name the tax")
    talk.write("")
    one.command("Magy: Redo Last Undone Turn")
    one.shows("The conversation comes back.")
    one.title_button("Apply Preview")
    one.shows("# TAX")


def killed(one: Window, talk: Transcript, server: Served, shop: Path) -> None:
    """Nothing that was said is lost; the question is asked again. Meanwhile nothing is said to
    work."""
    one.command("Magy: Focus on Sessions View")
    talk.show()
    talk.ask("tell me a long story")
    talk.said("And it lived")
    assert "touch told" in talk.question()
    before = talk.prompts()
    one.until(lambda: "asks" in one.pane("Sessions"), "the session that asks")
    (process,) = server.servers(shop)
    process.kill()
    one.until(lambda: process not in server.servers(shop), "the end of the server")
    one.until(lambda: "interrupted" in one.pane("Sessions"), "that nobody works")
    assert "asks" not in one.pane("Sessions")
    one.command("Magy: Restart Server")
    one.until(lambda: server.servers(shop), "another server")
    assert "touch told" in talk.question()
    talk.answer("Allow once")
    talk.said("That was the story")
    talk.idle()
    assert (shop / "told").exists()
    assert talk.prompts() == before
    assert talk.words().count("Once upon a time") == talk.words().count("And it lived") == 1
    busy = ("works", "asks", "interrupted")
    one.until(lambda: not any(word in one.pane("Sessions") for word in busy), "rest")


def reloaded(one: Window, talk: Transcript) -> None:
    """What is written and not sent is there when the view comes back, and when the window does."""
    talk.write("half a thought")
    one.hide_side_bar()
    talk.show()
    talk.wrote("half a thought")
    one.reload()
    talk.show()
    talk.wrote("half a thought")


def steered(one: Window, talk: Transcript, shop: Path) -> None:
    """A child is watched; what it asks is answered above it; a word of the person's ends what it
    does and is done instead."""
    talk.show()
    talk.ask("look into the prices")
    assert "Taxes" in talk.question()
    talk.answer("Allow until your next prompt")
    talk.said("It is on its way.")
    one.until(lambda: "touch taxes" in talk.question(), "the child's question")
    assert "general" in talk.question(), "who asks"
    talk.answer("Allow once")
    one.until((shop / "taxes").exists, "what the child was allowed")
    one.command("Magy: Show Transcript of Agent…")
    one.choose("Taxes")
    talk.said("I go on looking.")
    assert talk.prompts()[0].startswith("Find out where taxes are added.")
    talk.ask("only the gross", "Control+Enter")
    talk.said("It is gross alone.")
    assert "Never said" not in talk.words()
    one.command("Magy: Show Transcript of Parent")
    talk.said("It has told me.")
    talk.idle()


def cleared(one: Window, talk: Transcript, shop: Path) -> None:
    """A file that is gone and one that is no text are decided about where they are shown; all that
    is left in the transcript."""
    talk.ask("clear away")
    assert "rm rates.json" in talk.question()
    talk.answer("Allow once")
    talk.said("They went.")
    talk.idle()
    one.until(lambda: "3 changes in 3 files" in talk.review(), "what waits")
    for name in ("logo.bin", "old.bin", "rates.json"):
        talk.frame.get_by_role("button", name="in 3 files").click()
        one.page.locator(f'.tab.active[aria-label^="{name}"]').wait_for()
    old = one.page.locator(".monaco-diff-editor .view-line").filter(has_text="vat")
    one.until(old.count, "what was removed")
    one.title_button("Reject All Changes in File")
    one.until((shop / "rates.json").exists, "the file that was gone")
    assert (shop / "rates.json").read_text() == BROKEN
    one.until(lambda: "2 changes in 2 files" in talk.review(), "the rest")
    talk.frame.get_by_role("button", name="Reject All", exact=True).click()
    one.page.get_by_role("button", name="Reject All", exact=True).click()
    one.until(lambda: talk.review() == "", "the end of the review")
    assert (shop / "logo.bin").read_bytes() == bytes(range(8))
    assert not (shop / "old.bin").exists()


def shared_with_emacs(talk: Transcript, places: dict[str, str], shop: Path) -> None:
    """Both show the same; what one answers is asked no more in the other."""
    for program in ("emacs", "emacsclient", "tmux"):
        if shutil.which(program) is None:
            missing(f"{program} is not installed")
    talk.ask("say it again")
    assert "touch again" in talk.question()
    init = installed(Path(places["HOME"]), SCRIPT)
    with emacs("terminal", init, shop, env={**os.environ, **places}) as other:
        other.ask(f"(find-file {lisp(str(shop / 'prices.py'))}) t")
        other.keys("C-c m R")
        other.until("(> (minibuffer-depth) 0)")
        other.keys("RET")
        other.until("(magy-permission--all)")
        for prompt in talk.prompts():
            other.until(f"(string-search {lisp(prompt)} (magy-driven-transcript))")
        allowed_in_emacs(other)
        talk.said("Said again.")
        assert not talk.frame.locator(".block.question.open").count()
        other.until('(string-search "Said again." (magy-driven-transcript))')
        assert (shop / "again").exists()


def allowed_in_emacs(other: Driven) -> None:
    other.until("(magy-permission--all)")
    other.keys("C-c m y")
    other.keys("y")


def restricted(browser: Browser, server: Served, tmp_path: Path) -> None:
    """In a folder that is not trusted nothing of it is run, and what it sets does not count."""
    folder = tmp_path / "theirs"
    program = folder / ".venv" / "bin" / "magy"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\ntouch {folder / 'ran'}\n")
    program.chmod(0o755)
    (folder / ".vscode").mkdir()
    (folder / ".vscode" / "settings.json").write_text(json.dumps({"magy.path": [str(program)]}))
    server.settings(
        security__workspace__trust__enabled=True,
        security__workspace__trust__startupPrompt="never",
    )
    with window(browser, server, folder) as one:
        one.page.get_by_text("Restricted Mode").first.wait_for()
        talk = Transcript(one)
        talk.show()
        talk.ask("shout")
        talk.said("It shouts.")
        assert not (folder / "ran").exists()
