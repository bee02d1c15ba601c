"""The transcript in a window of VS Code, as a person sees and uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.clients.vscode.driven import Window

if TYPE_CHECKING:
    from playwright.sync_api import Frame

INPUT = "Message to the agent"


class Transcript:
    """The one in the side bar; with `title`, the one in the tab with that title."""

    def __init__(self, window: Window, title: str = "") -> None:
        self.window = window
        self._title = title

    @property
    def frame(self) -> Frame:
        """Another one after each time that the view was hidden."""

        found = self.window.until(self._look, f"the transcript {self._title}".strip())
        assert found
        return found

    def _look(self) -> Frame | None:
        for one in self.window.webviews():
            if not one.locator(".log").count():
                continue
            if self._title in one.locator(".session-title").inner_text():
                return one
        return None

    def show(self) -> None:
        """Has it in view, by the keys of the command: to open the palette takes a second of a
        processor. They do nothing before the extension is there."""

        def shown() -> bool:
            self.window.keys("Control+Alt+m")
            self.window.page.wait_for_timeout(500)
            return bool(self._look())

        self.window.until(shown, "the transcript")

    def ask(self, text: str, key: str = "Enter") -> None:
        """A prompt, sent with a key."""
        box = self.frame.get_by_label(INPUT)
        box.fill(text)
        box.press(key)
        self.window.until(lambda: box.input_value() == "", f"{text!r} sent")

    def wrote(self, text: str) -> None:
        """Waits until this stands in the input."""
        box = self.frame.get_by_label(INPUT)
        self.window.until(lambda: box.input_value() == text, f"{text!r} in the input")

    def write(self, text: str) -> None:
        self.frame.get_by_label(INPUT).fill(text)

    def blocks(self) -> list[tuple[str, str]]:
        """(kind, words) of what is shown, in order."""
        found: list[tuple[str, str]] = [
            (kind, text)
            for kind, text in self.frame.locator(".block").evaluate_all(
                "all => all.filter(one => !one.hidden).map(one =>"
                " [one.dataset.kind, one.innerText.trim()])"
            )
        ]
        return found

    def prompts(self) -> list[str]:
        return self.frame.locator(".block.user .words").all_inner_texts()

    def words(self) -> str:
        return "\n".join(text for _, text in self.blocks())

    def said(self, text: str, times: int = 1) -> None:
        """Waits until this is shown, so many times at least."""
        self.window.until(lambda: self.words().count(text) >= times, f"{text!r} in the transcript")

    def review(self) -> str:
        """What it says of changes that wait for a decision; empty if none does."""
        bar = self.frame.locator(".review-bar")
        return bar.inner_text() if bar.is_visible() else ""

    def idle(self) -> None:
        self.window.until(
            lambda: not self.frame.get_by_role("button", name="Stop what runs").count(),
            "the end of the turn",
        )

    def question(self) -> str:
        """The words of the first question that is open."""
        card = self.frame.locator(".block.question.open").first
        self.window.until(lambda: card.count(), "a question")
        return card.inner_text()

    def answer(self, choice: str, reason: str = "") -> None:
        """Presses a choice of the first question that is open. For a moment after it has appeared
        none is taken."""
        cards = self.frame.locator(".block.question.open")
        asked = cards.first.get_attribute("data-id")
        this = self.frame.locator(f'.block.question[data-id="{asked}"]')
        if reason:
            this.locator("input.reason").fill(reason)

        def taken() -> bool:
            if this.evaluate("one => one.classList.contains('open')"):
                this.get_by_role("button", name=choice, exact=True).click(timeout=2000)
            return not this.evaluate("one => one.classList.contains('open')")

        self.window.until(taken, f"the answer {choice!r}")
