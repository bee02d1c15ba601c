"""Takes the pictures of the VS Code page, and records its clip: part of `make screenshots`.

A real VS Code in a browser that nobody sees (`.ci/programs` installs both), the package that
`make vscode` built, a real server, the scripted model of the Emacs guide's pictures. Arguments
choose some of them: light, dark, contrast, clip.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP))  # for `tests`, which is not installed

from scripts.screenshots import CODE, IMAGES, SCRIPT, VOTED  # noqa: E402
from tests import guard  # noqa: E402
from tests.clients import record  # noqa: E402
from tests.clients.vscode.driven import (  # noqa: E402
    Served,
    Window,
    chromium,
    lacking,
    served,
    window,
)
from tests.clients.vscode.transcript import Transcript  # noqa: E402

GRAPH, MAGI = "have two look up the price of coal", "have the three judge the move"
ALL = "\n".join(
    [
        record.MAGI.replace("Please do it", MAGI),  # before what answers to a single word
        record.GRAPH.replace("Please do it", GRAPH),
        SCRIPT.replace(VOTED, ""),  # the three vote otherwise here
    ]
)
"""What the model says, in all scenes."""
THEMES = {
    "light": "Default Light Modern",
    "dark": "Default Dark Modern",
    "contrast": "Default High Contrast",
}
WIDTH, HEIGHT = 1280, 860
CLIP = "light"
"""The theme of the clip."""
PAUSE = 0.5
"""Seconds between two pictures of the clip."""


def transcript(one: Window, talk: Transcript) -> None:
    """An answer, its edits, and a question that waits."""
    talk.show()
    talk.ask("a field is lost. Why?")
    talk.question()
    one.changes(3)


def review(one: Window, talk: Transcript) -> None:
    """Changes in the file, one of them at the cursor."""
    one.tab("header.py").click()
    one.go(1)
    one.command("Magy: Next Change")


def diff(one: Window, talk: Transcript) -> None:
    """The same beside what it was."""
    one.command("Magy: Compare with Original")
    one.until(lambda: one.page.locator(".monaco-diff-editor").count(), "a diff")


def agents(one: Window, talk: Transcript) -> None:
    """The tree of agents, one of which asks."""
    one.keys("Control+W")
    one.command("Magy: New Session")
    one.until(lambda: not talk.prompts(), "a new session")
    talk.ask("have two agents look at the parser")
    talk.question()
    talk.answer("Allow until your next prompt")
    talk.said("is at work still")
    one.until(lambda: "try_values" in talk.question(), "the question of an agent")


def graph(one: Window, talk: Transcript) -> None:
    """Tasks, one of which failed, and their states, in a tab."""
    anew(one, talk, GRAPH)
    alone(one, talk, "It is written.", "Run 3 tasks")


def magi(one: Window, talk: Transcript) -> None:
    """The votes of three, beside each other, and what they come to, in a tab."""
    one.command("View: Close All Editors")
    one.command("Magy: Focus Transcript")
    anew(one, talk, MAGI)
    alone(one, talk, "The votes say yes", "MAGI")


def alone(one: Window, talk: Transcript, last: str, call: str) -> None:
    """Allows what is asked; then has the transcript in a tab, the call at the top."""
    talk.answer("Allow until your next prompt")
    talk.said(last)
    one.command("Magy: Open Transcript in Editor Tab")
    one.command("View: Close Primary Side Bar")
    one.until(lambda: len(one.webviews()) == 1, "the tab alone")
    talk.said(last)
    shown = talk.frame.locator(".block.tool").filter(has_text=call).first
    shown.evaluate("block => block.scrollIntoView()")


def anew(one: Window, talk: Transcript, prompt: str) -> None:
    """Asks in a session of its own, and waits for the question that it comes to."""
    one.command("Magy: New Session")
    one.until(lambda: not talk.prompts(), "a new session")
    talk.ask(prompt)
    talk.question()


SCENES: dict[str, Callable[[Window, Transcript], None]] = {
    "transcript": transcript,
    "review": review,
    "diff": diff,
    "agents": agents,
    "graph": graph,
    "magi": magi,
}


def take(server: Served, name: str, into: Path) -> Iterator[Path]:
    """Plays all scenes in the theme `name`, and takes a picture of each."""
    server.play(ALL)
    server.settings(workbench__colorTheme=THEMES[name])
    with tempfile.TemporaryDirectory() as place, chromium() as browser:
        root = Path(place) / "mailer"
        (root / ".git").mkdir(parents=True)
        (root / "header.py").write_text(CODE, "utf-8")
        with window(browser, server, root, WIDTH, HEIGHT, 1) as one:
            one.open("header.py")
            talk = Transcript(one)
            for scene, play in SCENES.items():
                play(one, talk)
                one.page.wait_for_timeout(1000)  # what fades in is there then
                picture = into / f"vscode-{scene}-{name}.png"
                one.picture(picture)
                yield picture


def clip(server: Served, into: Path) -> Path:
    """A prompt, its answer as it comes, its changes, and an answer to its question."""
    server.play("speed: 60\n" + SCRIPT.replace("All tests pass.", "Then run them. It is mended."))
    server.settings(workbench__colorTheme=THEMES[CLIP])
    with tempfile.TemporaryDirectory() as place, chromium() as browser:
        root = Path(place) / "mailer"
        (root / ".git").mkdir(parents=True)
        (root / "header.py").write_text(CODE, "utf-8")
        frames: list[Path] = []
        with window(browser, server, root, 1000, 700, 1) as one:
            one.open("header.py")
            talk = Transcript(one)
            talk.show()

            def frame() -> None:
                frames.append(Path(place) / f"{len(frames):04}.png")
                one.picture(frames[-1])

            def until(there: Callable[[], object]) -> None:
                end = time.monotonic() + 60
                while not there() and time.monotonic() < end:
                    frame()
                    one.page.wait_for_timeout(1000 * PAUSE)
                frame()

            talk.ask("a field is lost. Why?")
            until(lambda: "pytest" in talk.words())
            talk.answer("Refuse", "I run them myself")
            until(lambda: "I run them myself" in talk.words())
            until(lambda: one.lenses("Accept").count() == 3)
            one.lenses("Accept").first.click()
            until(lambda: one.lenses("Accept").count() == 2)
        film = into / "vscode.gif"
        pace = ["-delay", str(int(100 * PAUSE)), "-loop", "0"]
        small = ["+dither", "-colors", "192", "-layers", "optimize"]
        subprocess.run(["convert", *pace, *map(str, frames), *small, str(film)], check=True)
    return film


def main() -> None:
    guard.find_cached_programs(os.environ)
    guard.clean_environment(os.environ)
    if why := lacking():
        sys.exit(f"No pictures of VS Code: {why}")
    chosen = sys.argv[1:] or [*THEMES, "clip"]
    for name in chosen:
        # Sessions that wait in another window are counted, too: each picture has a home of its own.
        with guard.fresh_home() as places, served(places) as server:
            taken = [clip(server, IMAGES)] if name == "clip" else take(server, name, IMAGES)
            for picture in taken:
                print(picture.relative_to(TOP), f"{picture.stat().st_size // 1024} KB", flush=True)


if __name__ == "__main__":
    main()
