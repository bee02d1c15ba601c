"""VS Code's transcript in a real browser: a fast stream, and what a long session makes of it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from bench.measure import Failed, Row, Run, in_turn
from tests.clients.vscode.transcript_page import (
    Transcript,
    attached,
    chromium,
    lacking,
    session,
    transcript,
)

if TYPE_CHECKING:
    from playwright.sync_api import Browser, CDPSession

DELTAS = 5_000
LONG, SHORT = 2_000, 20

_STREAM = """count => new Promise(done => {
    let sent = 0
    const text = (at) => at % 12 ? `word ${at} ` : `of a **line** ${at}.\\n\\n`
    const some = () => {
        const updates = []
        for (let end = Math.min(count, sent + 25); sent < end; sent++)
            updates.push({sessionUpdate: "agent_message_chunk", messageId: "900000",
                content: {type: "text", text: text(sent)}})
        postMessage({type: "updates", sessionId: "s-1", updates})
        requestAnimationFrame(() => requestAnimationFrame(() => sent < count ? some() : done()))
    }
    some()
})"""
"""JavaScript that streams an answer, 25 deltas a frame."""


def deltas(run: Run) -> Row:
    """How long the page works on 5,000 deltas of one answer: after 2,000 turns and after 20."""
    with _browser() as browser:
        one, other = in_turn(
            run.choose(2, 5),
            lambda: _streamed(browser, LONG),
            lambda: _streamed(browser, SHORT),
            warm=0,
        )
    return Row("VS Code streams 5,000 deltas, 2,000 turns vs 20", "seconds", one, other, 1.5)


def memory(run: Run) -> Row:
    """The memory of a page whose reader has 2,000 turns there, none of them dropped, and of 20."""
    with _browser() as browser:
        found = []
        for turns in (LONG, SHORT):
            with transcript(browser) as page:
                found.append(_grown(page, turns)["JSHeapUsedSize"])
    return Row("heap of VS Code's transcript, 2,000 turns vs 20", "bytes", *found, 3.0)


ROWS = (deltas, memory)


def _browser() -> AbstractContextManager[Browser]:
    if why := lacking():
        raise Failed(f"{why}.")
    return chromium()


def _streamed(browser: Browser, turns: int) -> float:
    """Seconds that the page worked on a stream, after so many turns that are all there."""
    with transcript(browser) as page:
        _grown(page, turns)
        page.at(".jump").click()
        page.settled()
        cdp = _metrics(page)
        before = _value(cdp, "TaskDuration")
        page.page.evaluate(_STREAM, DELTAS)
        return _value(cdp, "TaskDuration") - before


def _grown(page: Transcript, turns: int) -> dict[str, float]:
    """What the browser says of a page that has so many turns, whose reader is at the first."""
    page.tell(attached(session()))
    page.grow(10)
    page.until(lambda: "Answer 9" in page.at(".log").inner_text(), "the first turns")
    page.at(".scroller").evaluate("e => { e.scrollTop = 100 }")
    page.at(".jump").wait_for()
    page.grow(turns - 10, first=10)
    page.until(lambda: page.at(".turn").count() >= turns, "all turns")
    page.settled()
    cdp = _metrics(page)
    cdp.send("HeapProfiler.collectGarbage")
    return {one["name"]: one["value"] for one in cdp.send("Performance.getMetrics")["metrics"]}


def _metrics(page: Transcript) -> CDPSession:
    cdp = page.page.context.new_cdp_session(page.page)
    cdp.send("Performance.enable")
    return cdp


def _value(cdp: CDPSession, name: str) -> float:
    metrics = cdp.send("Performance.getMetrics")["metrics"]
    return float(next(one["value"] for one in metrics if one["name"] == name))
