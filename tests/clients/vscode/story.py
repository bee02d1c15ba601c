"""Days in a real VS Code, played in parts, for tests that ask what came of each.

A VS Code is dear to start. So the days, and the parts of each, follow each other in one window, and
of the processes of a run one plays them; the others wait for what came of it.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.clients.shop import PRICES, script
from tests.clients.vscode.driven import Served, Window, chromium, window
from tests.clients.vscode.transcript import Transcript
from tests.thorough import rotating

if TYPE_CHECKING:
    from playwright.sync_api import Browser


BROKEN = '{\n  "vat": 19,\n  "reduced": 7,\n}\n'
NOTES = b"\xef\xbb\xbffirst\r\n\tsame \r\nlast\r\n\tsame "
"""A mark of the encoding, line ends, tabs, spaces, no last line end: all of it stays."""
STYLE = """:root {
  --price: #063;
}
.net {
  color: var(--price);
}
"""
TERMS = "# Terms\n\n## Delivery\n"


@dataclass(frozen=True, slots=True)
class Scene:
    """Where a part is played: a window on the folder `shop`, and what it stands in. `script`: the
    model's."""

    browser: Browser
    server: Served
    script: str
    places: Mapping[str, str]
    shop: Path
    window: Window
    talk: Transcript


Part = Callable[[Scene], None]


def parts(marked: Mapping[Part, Sequence[str]]) -> pytest.MarkDecorator:
    """A test for each part, marked with the requirements that it shows."""
    all = [
        pytest.param(part, id=part.__name__, marks=[pytest.mark.req(*ids)] if ids else [])
        for part, ids in marked.items()
    ]
    return pytest.mark.parametrize("part", all)


def in_turn(
    all: Mapping[Part, Sequence[str]], turns: Sequence[Part], further: int = 0
) -> Mapping[Part, Sequence[str]]:
    """All parts, without those of `turns` whose turn it is not: others show the same as these."""
    left_out = {*turns} - {*rotating(turns, further)}
    return {part: ids for part, ids in all.items() if part not in left_out}


@dataclass(frozen=True, slots=True)
class Day:
    """`script`: the model's, after what `shop.script` has of it."""

    script: str
    parts: Sequence[Part]


class Came:
    """What came of the parts of all days."""

    def __init__(self, outcomes: Mapping[str, str]) -> None:
        self._outcomes = outcomes

    def good(self, part: Part) -> None:
        """Fails, and says why, unless this part went well."""
        if why := self._outcomes[part.__name__]:
            pytest.fail(why, pytrace=False)


class Stage:
    """Where days are played, once in a run."""

    def __init__(
        self, server: Callable[[], Served], places: Mapping[str, str],
        directories: pytest.TempPathFactory,
    ) -> None:  # fmt: skip
        self._server = server
        self._places = places
        self._directories = directories

    def days(self, days: Sequence[Day]) -> Came:
        """What came of these days, which follow each other."""
        here = self._directories.getbasetemp()
        shared = here.parent if "PYTEST_XDIST_WORKER" in os.environ else here
        file = shared / "days.json"
        with file.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not file.exists():
                file.write_text(json.dumps(self._play(days)), "utf-8")
            return Came(json.loads(file.read_text("utf-8")))

    def _play(self, days: Sequence[Day]) -> Mapping[str, str]:
        """By part: nothing, or what went wrong. After that no part of the same day is played, and
        the next day has a window of its own."""
        server = self._server()
        server.configure()
        server.settings()
        words = "\n".join([script(thinking=1), *(day.script for day in days)])
        server.play(words)
        came: dict[str, str] = {}
        left = [*days]
        while left:
            self._play_in_a_window(server, words, left, came)
        return came

    def _play_in_a_window(
        self, server: Served, words: str, left: list[Day], came: dict[str, str]
    ) -> None:
        """Takes off `left` the days that were played, and adds to `came` what came of them."""
        shop = repository(self._directories.mktemp("day"))
        part = left[0].parts[0]
        try:
            with chromium() as browser, window(browser, server, shop) as one:
                scene = Scene(browser, server, words, self._places, shop, one, Transcript(one))
                while left:
                    part = left[0].parts[0]
                    if came:
                        _begin_anew(scene)
                    for part in left[0].parts:
                        part(scene)
                        assert not one.abroad
                        came[part.__name__] = ""
                    del left[0]
        except Exception as error:
            not_played = f"It was not played: {part.__name__} failed before it."
            for other in (other for day in left[:1] for other in day.parts):
                came.setdefault(other.__name__, not_played)
            del left[:1]
            came[part.__name__] = "".join(traceback.format_exception(error))


def _begin_anew(scene: Scene) -> None:
    """All changes of the day before are accepted, what it set is no more, and nothing is said."""
    one, talk = scene.window, scene.talk
    scene.server.configure()
    scene.server.settings()
    talk.show()
    if talk.review():
        one.command("Magy: Accept All Changes in All Files")
        one.page.get_by_role("button", name="Accept All", exact=True).click()
        one.until(lambda: not talk.review(), "the end of the review")
    one.command("Magy: New Session")
    one.until(lambda: not talk.prompts(), "the new session")


def repository(place: Path) -> Path:
    """A repository with some files and an old directory."""
    shop = (place / "shop").resolve()
    (shop / "build").mkdir(parents=True)
    (shop / "prices.py").write_text(PRICES)
    (shop / "logo.bin").write_bytes(bytes(range(8)))
    for name in ("rates.json", "fees.json"):
        (shop / name).write_text(BROKEN)
    (shop / "vat.py").touch()
    (shop / "style.css").write_text(STYLE)
    (shop / "terms.md").write_text(TERMS)
    for name in ("notes.txt", "closed.txt"):
        (shop / name).write_bytes(NOTES)
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "The shop"]):
        subprocess.run([*git, *command], cwd=shop, check=True)
    return shop
