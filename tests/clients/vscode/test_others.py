"""A day with others in a real VS Code: child agents, an Emacs on the same session, and a folder of
somebody else's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from magy_server.core.magi.emotional_log import Entry, entry
from magy_server.core.magi.vote import Memory
from magy_server.team.magi import kept_log
from tests.clients.driven import Driven, emacs, installed, lisp
from tests.clients.vscode.driven import Window, window
from tests.clients.vscode.story import TERMS, Came, Day, Part, Scene, in_turn, parts
from tests.clients.vscode.transcript import Transcript
from tests.core.magi.build import said
from tests.e2e.test_magi import put
from tests.patience import PATIENCE

SCRIPT = """\
prompt: look into the prices
text: An agent looks into it.
call: spawn_agent {"agent": "general", "task_name": "Taxes",
  "prompt": "Find out where taxes are added."}
---
text: It is on its way.
---
text: It has told me.

prompt: Find out where taxes are added
text: I look for the taxes.
call: bash {"command": "touch taxes"}
---
text: I go on looking.
call: bash {"command": "sleep 600", "timeout": 600}
---
text: Never said.

prompt: only the gross
text: It is gross alone.

prompt: ask once only
call: spawn_agent {"agent": "general", "task_name": "Counting", "limits": {"requests": 1},
  "prompt": "Count the files."}
---
text: It may ask once.
---
text: So far it came.

prompt: Count the files
text: I have counted two.
call: glob {"pattern": "*"}
---
text: Three are too many.

prompt: clear away
text: Files come and go.
call: bash {"command": "rm terms.md && cp logo.bin old.bin && head -c 8 /dev/zero > logo.bin"}
---
text: They went.

prompt: say it again
text: It was as before.
call: bash {"command": "touch again"}
---
text: Said again.

prompt: say it once more
text: As ever.
call: bash {"command": "touch first"}
---
call: bash {"command": "touch once"}
---
text: Said once more.

prompt: Where do you stand
text: I look.
call: bash {"command": "git branch --show-current"}
---
text: I stand on {{last}}
"""


def cleared(scene: Scene) -> None:
    """A file that is gone and one that is no text are decided about where they are shown; all that
    is left in the transcript."""
    one, talk, shop = scene.window, scene.talk, scene.shop
    one.open("fees.json")  # from here one goes on to the changes, by the names of files
    talk.show()
    talk.ask("clear away")
    assert "rm terms.md" in talk.question()
    talk.answer("Allow once")
    talk.said("They went.")
    talk.idle()
    one.until(lambda: "3 changes in 3 files" in talk.review(), "what waits")
    for name in ("logo.bin", "old.bin", "terms.md"):
        talk.frame.get_by_role("button", name="in 3 files").click()
        one.page.locator(f'.tab.active[aria-label^="{name}"]').wait_for()
    old = one.page.locator(".monaco-diff-editor .view-line").filter(has_text="Delivery")
    one.until(old.count, "what was removed")
    one.title_button("Reject All Changes in File")
    one.until((shop / "terms.md").exists, "the file that was gone")
    assert (shop / "terms.md").read_text() == TERMS
    one.until(lambda: "2 changes in 2 files" in talk.review(), "the rest")
    talk.frame.get_by_role("button", name="Reject All", exact=True).click()
    one.page.get_by_role("button", name="Reject All", exact=True).click()
    one.until(lambda: talk.review() == "", "the end of the review")
    assert (shop / "logo.bin").read_bytes() == bytes(range(8))
    assert not (shop / "old.bin").exists()


def steered(scene: Scene) -> None:
    """A child is watched; what it asks is answered above it; a word of the person's ends what it
    does and is done instead."""
    one, talk, shop = scene.window, scene.talk, scene.shop
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


def capped(scene: Scene) -> None:
    """A child that may do no more hands back what it has, to the person and to its parent."""
    one, talk = scene.window, scene.talk
    talk.ask("ask once only")
    assert "Counting" in talk.question()
    talk.answer("Allow until your next prompt")
    talk.said("So far it came.")
    talk.idle()
    result = talk.frame.locator('.block[data-kind="mail"]').last
    result.locator(".head").click()
    one.until(lambda: "I have counted two." in result.inner_text(), "the partial work")
    one.command("Magy: Show Transcript of Agent…")
    one.choose("Counting")
    talk.said("Too many requests")
    assert "Three are too many." not in talk.words()
    one.command("Magy: Show Transcript of Parent")
    talk.said("So far it came.")


def branched(scene: Scene) -> None:
    """A person gives an agent a task on a git branch of its own, by a command and in the input."""
    one, talk = scene.window, scene.talk
    one.command("Magy: Spawn Agent on a Branch…")
    one.choose("general")
    one.answer("Where do you stand first?")
    tells_its_branch(talk, "first")
    talk.ask("@spawn general --worktree Where do you stand then?")
    tells_its_branch(talk, "then")


def tells_its_branch(talk: Transcript, which: str) -> None:
    """Reads it in the transcript of the new child, which is called as its task. The list of agents
    is asked for at once, and has the child when that is there."""
    talk.window.command("Magy: Show Transcript of Agent…")
    talk.window.choose(which)
    talk.said(f"magy/where-do-you-stand-{which}")
    talk.window.command("Magy: Show Transcript of Parent")
    talk.said("So far it came.")
    talk.said(f"general Where do you stand {which}?")


def shared_with_emacs(scene: Scene) -> None:
    """Both show the same; what one answers is asked no more in the other."""
    talk, shop, places = scene.talk, scene.shop, scene.places
    talk.ask("say it again")
    assert "touch again" in talk.question()
    init = installed(Path(places["HOME"]), scene.script)
    with emacs("terminal", init, shop, env={**os.environ, **places}) as other:
        other.ask(f"(find-file {lisp(str(shop / 'prices.py'))}) t")
        other.keys("C-c m R")
        other.until("(> (minibuffer-depth) 0)")
        other.keys("RET")
        other.until("(magy-permission--all)")
        for prompt in talk.prompts():
            other.until(f"(string-search {lisp(prompt)} (magy-driven-transcript))")
        allowed_in_emacs(other, "touch again")
        talk.said("Said again.")
        assert not talk.frame.locator(".block.question.open").count()
        other.until('(string-search "Said again." (magy-driven-transcript))')
        assert (shop / "again").exists()
        talk.ask("say it once more")
        assert "touch first" in talk.question()
        talk.window.hide_side_bar()
        allowed_in_emacs(other, "touch first")
        asked_out_of_sight(talk.window)
        allowed_in_emacs(other, "touch once")
        talk.window.until(lambda: not told(talk.window), "the end of the notification")
        talk.show()
        talk.said("Said once more.")
        assert (shop / "once").exists()


def allowed_in_emacs(other: Driven, command: str) -> None:
    """Answers the question about this command, once it is the only one and is asked."""
    titles = "(mapcar (lambda (one) (plist-get (cdr one) :title)) (magy-permission--all))"
    other.until(f"(equal {titles} (list {lisp(f'Run {command}')}))")
    other.keys("C-c m y")
    other.until("(> (minibuffer-depth) 0)")
    other.keys("y")
    other.until("(= (minibuffer-depth) 0)")


def told(one: Window) -> bool:
    return any("touch once" in said for said in one.notifications())


def asked_out_of_sight(one: Window) -> None:
    """Where no transcript is in view a notification asks; it stays while the question is open."""
    one.until(lambda: told(one), "a notification")
    one.link_in_notification("touch once", "Answer…")
    one.choose("Leave it open")
    assert told(one)


def several(scene: Scene) -> None:
    """A window with two folders: a new session is of the folder that one chooses, or the active
    file's, and all say whose they are. The window on one of them hears of what happens here, and of
    nothing else."""
    server, shop, folder = scene.server, scene.shop, scene.shop.parent / "depot"
    folder.mkdir()
    (folder / "stock.txt").write_text("12 pears\n")
    both = shop.parent / "both.code-workspace"
    both.write_text(json.dumps({"folders": [{"path": "shop"}, {"path": "depot"}]}))
    with window(scene.browser, server, both) as one:
        talk = Transcript(one)
        one.command("Magy: New Session")
        one.choose("shop")
        belongs(talk, "shop")
        talk.ask("shout about the prices")
        talk.said("It shouts.")
        one.open("stock.txt")
        one.command("Magy: New Session")
        belongs(talk, "depot")
        talk.ask("shout about the stock")
        talk.said("It shouts.")
        one.command("Magy: Focus on Sessions View")
        one.until(lambda: "depot" in row(one, "shout about the stock"), "its session")
        assert "shop" in row(one, "clear away")
        goes_on_without_its_folder(one, talk, both)
    first = scene.window
    first.command("Magy: Focus on Sessions View")
    first.until(lambda: "shout about the prices" in first.pane("Sessions"), "what is done there")
    assert "shout about the stock" not in first.pane("Sessions")


def goes_on_without_its_folder(one: Window, talk: Transcript, workspace: Path) -> None:
    """A folder is taken out of the window while a turn there waits for an answer: it is answered,
    and the session takes another prompt."""
    talk.ask("say it again")
    assert "touch again" in talk.question()
    one.command("View: Show Explorer")
    explorer = one.page.locator(".explorer-folders-view")
    one.until(lambda: "depot" in explorer.inner_text(), "both folders")
    workspace.write_text(json.dumps({"folders": [{"path": "shop"}]}))
    one.until(lambda: "depot" not in explorer.inner_text(), "the end of one of them")
    talk.show()
    talk.answer("Allow once")
    talk.said("Said again.")
    talk.idle()
    assert (workspace.parent / "depot" / "again").exists()
    talk.ask("shout")
    talk.said("It shouts.", 2)


def belongs(talk: Transcript, folder: str) -> None:
    """Waits until the session that is shown says that it is of this folder."""
    folders = talk.frame.locator(".folder")
    talk.window.until(lambda: folders.all_inner_texts() == [f" {folder}"], f"one of {folder}")


def row(one: Window, title: str) -> str:
    """The words of a session in the list."""
    return one.page.locator(".pane .monaco-list-row").filter(has_text=title).first.inner_text()


def restricted(scene: Scene) -> None:
    """In a folder that is not trusted nothing of it is run, and what it sets does not count. It has
    sessions of its own. A server that is not found starts as soon as one says where it is."""
    server, folder = scene.server, scene.shop.parent / "theirs"
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
    machine = server.home / "vscode" / "Machine" / "settings.json"
    machine.parent.mkdir(parents=True, exist_ok=True)
    machine.write_text(json.dumps({"magy.path": ["/nowhere/magy"]}))
    with window(scene.browser, server, folder) as one:
        one.page.get_by_text("Restricted Mode").first.wait_for()
        talk = Transcript(one)
        talk.show()
        talk.frame.get_by_role("button", name="Say Where It Is…").click()
        one.page.get_by_text("Where Magy's Server Is").wait_for()
        one.page.locator(".quick-input-widget:visible input").fill(str(folder))
        one.page.get_by_text("no magy is in it").wait_for()  # only of what may be run is it one
        one.answer(str(server.home / ".local" / "bin" / "magy"))
        one.until(lambda: server.servers(folder), "the server")
        talk.ask("shout")
        talk.said("It shouts.")
        assert not (folder / "ran").exists()
        one.command("Magy: Focus on Sessions View")
        one.until(lambda: "shout" in one.pane("Sessions"), "its session")
        assert "clear away" not in one.pane("Sessions")
    machine.unlink()
    scene.window.command("Magy: Focus on Sessions View")
    scene.window.until(lambda: "clear away" in scene.window.pane("Sessions"), "theirs")


def deliberated(scene: Scene) -> None:
    """A ruling that overturns another holds once a person accepts it, whichever session it is of;
    what CASPER remembers is read and taken out."""
    one, shop = scene.window, scene.shop
    first, second = overturned(scene)
    kept_log.change(str(shop), lambda log: log.model_copy(update={"entries": tuple(feelings())}))
    one.command("Magy: Accept Ruling…")
    one.choose("REJECTED")
    asked = one.page.locator(".monaco-dialog-box")
    one.until(lambda: f"It would overturn {first}" in asked.inner_text(), "what it means")
    one.page.get_by_role("button", name="Accept", exact=True).click()
    said = f"Accepted: REJECTED holds in the place of {first}."
    one.until(lambda: said in one.notifications(), "that it holds")
    holds = magy(scene, "", "magi", "list").stdout
    assert f"{second} holds in the place of {first}: a person accepted it." in holds
    one.command("Magy: Show What CASPER Remembers…")
    one.choose("I have read all of it")
    one.until(lambda: kept_log.read(str(shop)).reviewed, "that it was read")
    one.choose("dread")
    one.page.get_by_role("button", name="Take Out", exact=True).click()
    one.until(lambda: felt_in(shop) == ["calm"], "the end of an entry")
    one.page.keyboard.press("Escape")


def overturned(scene: Scene) -> tuple[str, str]:
    """Has a ruling and a review of it made, in the shop, by the command; returns their ids."""
    votes = f"prompt: question as\ntext: {said('APPROVE', 90)}\n"
    asked = "prompt: Is it time?\n" + put("Is it time?", complexity="simple")
    made = magy(scene, f"{asked}---\ntext: So it is.\n\n{votes}", "magi", "Is it time?",
                "--format", "json")  # fmt: skip
    first: str = json.loads(made.stdout)["id"]
    review = put("Is it time?", complexity="simple", review_of=first, review_reason="It failed.",
                 new_evidence=["It failed at noon."])  # fmt: skip
    votes = f"prompt: question as\ntext: {said('REJECT', 90)}\n"
    script = f"prompt: Review it\n{review}---\ntext: So it is not.\n\n{votes}"
    again = magy(scene, script, "magi", "--resume", first.partition("/")[0], "--bypass",
                 "Review it", "--format", "json")  # fmt: skip
    return first, json.loads(again.stdout)["id"]


def magy(scene: Scene, script: str, *words: str) -> subprocess.CompletedProcess[str]:
    file = scene.shop.parent / "magi.script"
    file.write_text(script, "utf-8")
    env = {**os.environ, **scene.places, "MAGY_SCRIPT": str(file)}
    command = [sys.executable, "-m", "magy_server", *words]
    done = subprocess.run(command, env=env, cwd=scene.shop, stdin=subprocess.DEVNULL, text=True,
                          capture_output=True, timeout=PATIENCE, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done


def feelings() -> Iterator[Entry]:
    for n, emotion in enumerate(("calm", "dread")):
        memory = Memory(valence=0.1, primary_emotion=emotion, lesson=f"It felt like {emotion}.")
        yield entry("Is it time?", memory, time.time() - n)


def felt_in(shop: Path) -> list[str]:
    return [one.primary_emotion for one in kept_log.read(str(shop)).entries]


ALL: Mapping[Part, Sequence[str]] = {
    cleared: (),
    steered: ("F012", "G027"),
    capped: ("G024",),
    branched: (),
    shared_with_emacs: ("F008", "G003"),
    deliberated: ("D079", "D087"),
    several: (),
    restricted: ("F013",),
}
PARTS = in_turn(ALL, (several, restricted, shared_with_emacs), 2)
"""Each of the three starts a window of its own, of VS Code or Emacs: they are played in turns."""


DAY = Day(SCRIPT, list(PARTS))


@pytest.mark.long
@pytest.mark.needs("emacs", "emacsclient", "tmux")
@parts(PARTS)
def test_a_day_with_others(days: Came, part: Part) -> None:
    days.good(part)
