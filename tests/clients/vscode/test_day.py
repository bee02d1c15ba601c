"""A day with Magy in a real VS Code, against the real server. The model is scripted; everything
else is what a person has who did what the client's page says."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence

import pytest

from tests.clients.shop import PRICES, TYPED, edit
from tests.clients.vscode.driven import Window
from tests.clients.vscode.story import BROKEN, NOTES, Came, Day, Part, Scene, in_turn, parts
from tests.mcp.test_servers import HERE

RUDE = HERE / "rude_server.py"

LINES = ("first\n\tsame ", "first\n\tother ")
MENDED = NOTES.replace(b"first\r\n\tsame ", b"first\r\n\tother ")
PLAN = (("completed", "in_progress"), ("completed", "completed"))
KNOWN = {
    "diagnostics {}": "rates.json:3:15: error: Trailing comma",
    'diagnostics {"path": "fees.json"}': "fees.json:3:15: error: Trailing comma",
    'find_definition {"path": "style.css", "name": "--price", "line": 5}': "style.css:2: --price",
    'find_references {"path": "style.css", "name": "--price"}': "style.css:5: color: var(--price)",
    'list_symbols {"path": "terms.md"}': "string # Terms",
    'list_symbols {"query": "deliv"}': "terms.md:3",
}
"""What is asked of the other extensions, and what is in the answer."""


def plan(*states: str) -> str:
    tasks = [{"content": f"Task {n}", "status": one} for n, one in enumerate(states)]
    return f"call: update_plan {json.dumps({'tasks': tasks})}\n"


ASKED = "".join(f"call: {call}\n---\ntext: {{{{last}}}}\n" for call in KNOWN)
SCRIPT = f"""\
prompt: name the tax
text: I name it.
{edit("def gross(price):", "def gross(price):  # TAX")}
---
text: It has a name.

prompt: mend the notes
text: Both lines are alike.
{edit("same", "other", "notes.txt")}
---
text: Refused: {{{{last}}}}
{edit(*LINES, "notes.txt")}
{edit(*LINES, "closed.txt")}
---
text: The notes are mended.

prompt: what does the editor know
{ASKED}
prompt: make a plan
{plan(*PLAN[0])}
---
{plan(*PLAN[1])}
---
text: All is planned.

prompt: sweep
call: bash {{"command": "touch swept"}}
---
text: It was swept.

prompt: fill in the form
call: call_tool {{"name": "mcp__rude__form", "arguments": {{}}}}
---
text: It got {{{{last}}}}

prompt: Document the code
text: These are prices.

prompt: def vat
text: <insert>price * 0.19</insert>

prompt: Fix the problems that the editor reports
text: A comma too many.
{edit("7,", "7", "rates.json")}
---
text: Now it is valid.
"""


def prompted_and_answered(scene: Scene) -> None:
    """A prompt; what streams; a question that takes nothing; its answer."""
    one, talk, shop = scene.window, scene.talk, scene.shop
    one.open("prices.py")
    talk.show()
    talk.ask("tidy the prices")
    talk.said("I look at prices.py.")
    assert "rm -rf build" in talk.question()
    assert talk.prompts() == ["tidy the prices"]
    assert (shop / "build").exists()
    talk.answer("Allow once")
    one.until(lambda: not (shop / "build").exists(), "what was allowed")


def typed_while_edits_land(scene: Scene) -> None:
    """Each key is a change of its own, while edits are made in the buffer; neither side loses."""
    one, talk = scene.window, scene.talk
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


def reviewed(scene: Scene) -> None:
    """Three changes: one accepted, one rejected with a reason, one after it was typed into."""
    one = scene.window
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
    accept(one)
    assert "return name.strip().title()\n" in (one.text() or "")
    assert "return round(price, 2)\n" in (one.text() or "")


def accept(one: Window) -> None:
    """Accepts the only change. What is typed makes another one of it, and until that is known none
    is decided."""

    def accepted() -> bool:
        if one.lenses("Accept").count():
            one.lenses("Accept").first.click(timeout=2000)
        return not one.lenses("Accept").count()

    one.until(accepted, "the decision")


def rewritten(scene: Scene) -> None:
    """The function at the cursor, in its place, while something is typed above it."""
    one = scene.window
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
    accept(one)
    before = one.text()
    one.go(13)
    one.command("Magy: Rewrite Selection…")
    one.answer("in one line")
    one.until(lambda: one.lenses("Stop").count(), "that another one has begun")
    one.keys("Escape")
    one.until(lambda: not one.lenses("Stop").count(), "its end")
    assert one.text() == before


def explained(scene: Scene) -> None:
    """One of the editor's own code actions, for what is selected."""
    one, talk = scene.window, scene.talk
    one.go(1)
    one.keys("Shift+ArrowDown", "Shift+ArrowDown")
    action = one.page.locator(".action-widget .monaco-list-row").filter(
        has_text="Document this code"
    )

    def chosen() -> bool:
        # A list that is not there yet is given up when the editor changes: one asks for it again.
        one.keys("Control+.")
        action.first.click(timeout=5000)
        return True

    one.until(chosen, "the code actions")
    talk.said("These are prices.")
    talk.idle()


def known(scene: Scene) -> None:
    """Agents ask the other extensions of VS Code, of files that are open and of others."""
    one, talk = scene.window, scene.talk
    one.open("rates.json")
    one.until(lambda: one.page.locator(".squiggly-error, .squiggly-warning").count(), "a problem")
    talk.show()
    talk.ask("what does the editor know")
    for answer in KNOWN.values():
        talk.said(answer)
    talk.idle()
    assert not one.page.locator('.tab[data-resource-name="fees.json"]').count(), "only meanwhile"


def fixed(scene: Scene) -> None:
    """A problem that the editor reports, chosen of all."""
    one, talk = scene.window, scene.talk
    one.open("rates.json")
    one.until(lambda: one.page.locator(".squiggly-error, .squiggly-warning").count(), "a problem")
    one.command("Magy: Fix a Problem…")
    one.choose("Trailing comma")
    talk.said("Now it is valid.")
    one.until(lambda: one.text() == BROKEN.replace("7,", "7"), "the fix")
    one.changes(1)


def exact(scene: Scene) -> None:
    """An edit that could be meant for two places is refused, and the model told of both. What it
    then changes, in an open file and in a closed one, changes no other byte."""
    one, talk, shop = scene.window, scene.talk, scene.shop
    one.open("notes.txt")
    talk.ask("mend the notes")
    talk.said("The notes are mended.")
    assert "2 places" in talk.words()
    one.shows("other")
    one.until(lambda: (shop / "notes.txt").read_bytes() == MENDED, "the file that is open")
    assert (shop / "closed.txt").read_bytes() == MENDED
    one.until(lambda: "3 changes in 3 files" in talk.review(), "what waits")
    (shop / "closed.txt").write_bytes(NOTES)
    one.until(lambda: "2 changes in 2 files" in talk.review(), "that one was taken back outside")


def proposed(scene: Scene) -> None:
    """The key of the modes has the agent ask before it edits: the file changes with the answer."""
    one, talk = scene.window, scene.talk
    one.open("prices.py")
    talk.show()
    mode = talk.frame.get_by_label("What happens to edits (Alt+M)")
    one.until(lambda: mode.input_value() == "review", "the modes")
    talk.frame.get_by_label("Message to the agent").press("Alt+m")
    one.until(lambda: mode.input_value() == "propose", "the mode")
    talk.ask("name the tax")
    talk.said("It has a name.")
    one.until(lambda: "3 changes in 3 files" in talk.review(), "what waits")
    one.changes(1)
    assert "TAX" not in (one.text() or "")
    one.lenses("Accept").first.click()
    one.shows("# TAX")
    one.until(lambda: "2 changes in 2 files" in talk.review(), "that it is decided")


def undone(scene: Scene) -> None:
    """A turn is undone after a preview, which leaves the conversation as it is if one wants, and
    done again."""
    one, talk = scene.window, scene.talk
    one.command("Magy: Undo Last Turn")
    one.shows("prices.py changes (+1 −1).")
    one.shows("The conversation goes back")
    one.title_button("Include or Leave Out Conversation")
    one.shows("The conversation stays as it is.")
    one.title_button("Include or Leave Out Conversation")
    one.title_button("Apply Preview")
    one.until(lambda: "\ndef gross(price):\n" in (one.text() or ""), "the text before")
    talk.wrote("name the tax")
    one.command("Magy: Redo Last Undone Turn")
    one.shows("The conversation comes back.")
    one.title_button("Apply Preview")
    one.shows("\ndef gross(price):  # TAX\n")
    talk.wrote("")  # so that nobody asks for it twice


def planned(scene: Scene) -> None:
    """The plan is shown, and how far it is."""
    talk = scene.talk
    talk.ask("make a plan")
    talk.said("All is planned.")
    plans = [text for kind, text in talk.blocks() if kind == "plan"]
    assert plans and "Plan 2/2" in plans[-1]


def remembered(scene: Scene) -> None:
    """What is allowed in the project is not asked again, until that is withdrawn."""
    one, talk, shop = scene.window, scene.talk, scene.shop
    for count, answer in ((1, "Allow for this project"), (2, ""), (3, "Refuse")):
        talk.ask("sweep")
        if answer:
            assert "touch swept" in talk.question()
            talk.answer(answer)
        talk.said("It was swept.", count)
        talk.idle()
        assert (shop / "swept").exists() == (answer != "Refuse")
        (shop / "swept").unlink(missing_ok=True)
        if not answer:
            one.command("Magy: Show Remembered Permissions…")
            one.choose("touch swept")
            one.keys("Enter")
            one.until(lambda: "Magy asks about these again." in one.notifications(), "its end")


def killed(scene: Scene) -> None:
    """Nothing that was said is lost; the question is asked again, and what waits for a decision
    waits. Meanwhile nothing is said to work."""
    one, talk, shop, server = scene.window, scene.talk, scene.shop, scene.server
    one.command("Magy: Focus on Sessions View")
    talk.show()
    talk.ask("tell me a long story")
    talk.said("And it lived")
    assert "touch told" in talk.question()
    before, waits = talk.prompts(), talk.review()
    assert "changes in" in waits
    one.until(lambda: "asks" in one.pane("Sessions"), "the session that asks")
    (process,) = server.servers(shop)
    process.kill()
    one.until(lambda: process not in server.servers(shop), "the end of the server")
    one.until(lambda: "interrupted" in one.pane("Sessions"), "that nobody works")
    assert "asks" not in one.pane("Sessions")
    ended = "Magy's server ended unexpectedly"
    one.until(lambda: ended in "".join(one.notifications()), "that it ended")
    one.command("Magy: Restart Server")
    one.until(lambda: server.servers(shop), "another server")
    one.until(lambda: ended not in "".join(one.notifications()), "that this is said no more")
    assert "touch told" in talk.question()
    talk.answer("Allow once")
    talk.said("That was the story")
    talk.idle()
    assert (shop / "told").exists()
    assert talk.prompts() == before
    # The file that the command made is one change more.
    one.until(lambda: counted(talk.review()) >= counted(waits), "the review")
    assert talk.words().count("Once upon a time") == talk.words().count("And it lived") == 1
    busy = ("works", "asks", "interrupted")
    one.until(lambda: not any(word in one.pane("Sessions") for word in busy), "rest")


def counted(review: str) -> list[int]:
    """How many changes wait, and in how many files."""
    return [int(number) for number in re.findall(r"\d+", review)]


def reloaded(scene: Scene) -> None:
    """What is written and not sent is there when the view comes back, and when the window does."""
    one, talk = scene.window, scene.talk
    talk.write("half a thought")
    one.hide_side_bar()
    one.command("Magy: Focus Transcript")
    talk.wrote("half a thought")
    left_in(scene, "a whole thought")
    one.reload()
    talk.show()  # that the side bar was in view again may not have been on the disk yet
    talk.wrote("a whole thought")


def reloaded_again(scene: Scene) -> None:
    """It is there, too, when the window comes back twice, however soon after another."""
    one, talk = scene.window, scene.talk
    left_in(scene, "another thought")
    one.reload()
    talk.show()
    one.reload()
    talk.wrote("another thought")


def left_in(scene: Scene, text: str) -> None:
    scene.talk.write(text)
    # The key is on its way to the extension, which gives what it hears of to the disk at once.
    scene.window.until(lambda: text in scene.server.left(), "the thought on the disk")


def forked(scene: Scene) -> None:
    """The fork has all that was said, and goes on alone."""
    one, talk = scene.window, scene.talk
    talk.write("")
    talk.said("That was the story.")
    before, last = talk.prompts()[-4:], talk.blocks()[-3:]  # older turns come as one scrolls up
    one.command("Magy: Fork Session")
    one.until(lambda: one.pane("Sessions").count("tidy the prices") == 2, "the fork")
    one.until(lambda: talk.prompts()[-4:] == before, "what was said")
    assert talk.blocks()[-3:] == last
    talk.ask("shout")
    talk.said("It shouts.")
    talk.idle()
    one.command("Magy: Resume Session…")
    rows = one.page.locator(".quick-input-list .monaco-list-row:visible")
    one.until(lambda: rows.filter(has_text="tidy the prices").count() == 2, "both")
    one.keys("ArrowDown", "Enter")
    one.until(lambda: talk.prompts()[-4:] == before, "the first one")
    assert "It shouts." not in talk.words()


def walked_through(scene: Scene) -> None:
    """The first step of the walkthrough is done where there is a server, however late it opens."""
    one = scene.window
    one.command("Welcome: Open Walkthrough...")
    one.choose("Get started with Magy")
    step = one.page.get_by_role("checkbox", name="A server where your files are")
    one.until(lambda: step.get_attribute("aria-checked") == "true", "the step")
    one.keys("Control+w")


def begun_anew(scene: Scene) -> None:
    """Once a key is set one can write. While the server hangs, that is said, a list to choose from
    takes the keys, and what is sent after New Session is for that. Then a model is chosen of those
    that its provider lists."""
    one, talk = scene.window, scene.talk
    one.command("Magy: Focus on Sessions View")
    one.command("Magy: Set API Key…")
    one.choose("Another provider of magy.toml…")
    one.answer("elsewhere")
    title = one.page.locator(".quick-input-title:visible")
    one.until(lambda: title.all_inner_texts() == ["API key for elsewhere"], "the next box")
    one.answer("no-such-key")
    focused = "input => document.hasFocus() && document.activeElement === input"
    prompt = talk.frame.locator("textarea").first
    one.until(lambda: prompt.evaluate(focused), "that the keys go to the prompt")
    hangs = "Magy's server does not answer."
    scene.server.settings(magy__patience=5)
    # The key has started another server, and the one before may take a moment to end.
    one.until(lambda: len(scene.server.servers(scene.shop)) == 1, "one server")
    (process,) = scene.server.servers(scene.shop)
    process.suspend()
    try:
        one.command("Magy: Select Agent…")
        typed = one.page.locator(".quick-input-widget:visible input")
        one.until(lambda: typed.input_value() == "", "the list")
        one.type("plan")
        assert typed.input_value() == "plan"
        one.command("Magy: New Session")
        talk.ask("shout")
        one.until(lambda: hangs in "".join(one.notifications()), "that it hangs")
        state = talk.frame.locator(".state")
        assert "not answering" in state.inner_text()
    finally:
        process.resume()
        scene.server.settings()
    one.until(lambda: "not answering" not in state.inner_text(), "that it answers")
    one.until(lambda: hangs not in "".join(one.notifications()), "that this is said no more")
    one.until(lambda: talk.prompts() == ["shout"], "the new session")
    talk.said("It shouts.")
    talk.idle()
    one.command("Magy: Select Model…")
    one.choose("scripted/script")
    model = talk.frame.get_by_label("Model", exact=True)
    one.until(lambda: model.input_value() == "scripted/script", "the model")


def filled_in(scene: Scene) -> None:
    """A form of an MCP server is filled in at the top, field by field; Escape leaves it open."""
    one, talk = scene.window, scene.talk
    rude = f'[mcp.rude]\ncommand = "{sys.executable}"\nargs = ["{RUDE}"]\n'
    scene.server.configure(f'{rude}start_timeout = 100\n[permission]\nmcp__rude = "allow"\n')
    fill = talk.frame.locator(".block.question.open").get_by_role("button", name="Fill it in…")

    def asked() -> bool:
        # Of a server that starts yet the model has no tools: then its call fails.
        failed = talk.words().count("It got")
        talk.ask("fill in the form")
        one.until(lambda: fill.count() or talk.words().count("It got") > failed, "the call")
        return fill.count() > 0

    one.until(asked, "the form")
    assert "Which branch?" in talk.question()

    def begun() -> bool:
        if not box.is_visible():
            fill.click(timeout=2000)
        return box.is_visible()

    box = one.page.locator(".quick-input-widget input").first
    one.until(begun, "the first field")
    assert "rude asks (1 of 3): branch" in one.page.locator(".quick-input-widget").inner_text()
    one.keys("Escape")
    one.until(lambda: not box.is_visible() and fill.count(), "the question")
    one.until(begun, "the first field again")
    one.answer("release-7")
    one.choose("yes")
    one.choose("Leave it out")
    talk.said('"content": {"branch": "release-7", "push": true}')
    talk.idle()


def suggested(scene: Scene) -> None:
    """Off until it is turned on: how a line goes on, as a suggestion that a key takes."""
    one, server = scene.window, scene.server
    one.open("vat.py")
    one.type("def vat(price):\n    return ")
    ghost = one.page.locator(".ghost-text, .ghost-text-decoration")
    assert not ghost.count()
    server.configure('[completion]\nenabled = true\nmodel = "scripted/model"\n')

    def offered() -> bool:
        if not ghost.count():
            one.keys("Backspace")
            one.type(" ")
            one.page.wait_for_timeout(1000)
        return ghost.count() > 0

    one.until(offered, "a suggestion")
    one.keys("Tab")
    one.shows("return price * 0.19")


ALL: Mapping[Part, Sequence[str]] = {
    prompted_and_answered: ("F006", "F009", "G005"),
    typed_while_edits_land: ("G006", "G011"),
    reviewed: ("G010",),
    rewritten: ("F010", "G008"),
    explained: ("F011",),
    known: ("G007",),
    fixed: (),
    exact: ("G012", "G013"),
    proposed: (),
    undone: ("G014",),
    planned: ("G028",),
    remembered: ("G023",),
    killed: ("G015",),
    reloaded: (),
    reloaded_again: (),
    forked: ("G025",),
    walked_through: (),
    begun_anew: (),
    filled_in: (),
    suggested: ("G009",),
}
TURNS = (reloaded_again, known, walked_through, begun_anew, suggested, remembered, filled_in)
"""No other part stands on these: they are played in turns."""
PARTS = in_turn(ALL, TURNS)


DAY = Day(SCRIPT, list(PARTS))


@pytest.mark.long
@parts(PARTS)
def test_a_day_with_magy(days: Came, part: Part) -> None:
    days.good(part)
