"""The page of VS Code's transcript alone, in a headless Chromium, as the extension shows it.

A shim stands where VS Code does: it gives the page the same policy, the colours of a real theme
(`themes.json`, read from VS Code itself) and what `acquireVsCodeApi` returns, and keeps what the
page says. `Transcript.tell` is what the extension would tell it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tests.clients.driven import NotSeen
from tests.clients.vscode import driven
from tests.patience import PATIENCE

if TYPE_CHECKING:  # there is not a wheel of it for every machine
    from playwright.sync_api import Browser, Locator, Page

T = TypeVar("T")

HERE = Path(__file__).parent
CLIENT = HERE.parents[2] / "clients" / "vscode"
BUILT = CLIENT / "out" / "webview"
PICTURES = HERE.parent / "pictures"
ORIGIN = "https://transcript.test"
THEMES: dict[str, Any] = json.loads((HERE / "themes.json").read_text("utf-8"))
FONTS = {
    "--vscode-font-family": 'system-ui, "Ubuntu", "Droid Sans", sans-serif',
    "--vscode-font-size": "13px",
    "--vscode-editor-font-family": '"Droid Sans Mono", monospace',
    "--vscode-editor-font-size": "13px",
}

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'nonce-n';
 style-src {origin}; font-src {origin}; img-src data:">
<title>Magy</title><link rel="stylesheet" href="/main.css"></head>
<body class="{theme}" data-place="{place}"><script nonce="n" src="/shim.js"></script>
<script nonce="n" src="/main.js"></script></body></html>"""

_SHIM = """
const vars = %s;
const style = document.documentElement.style;
for (const [name, value] of Object.entries(vars)) style.setProperty(name, value);
window.said = [];
window.broken = [];
addEventListener("error", (event) => broken.push(event.message));
addEventListener("securitypolicyviolation", (event) => broken.push("refused: " + event.blockedURI));
let kept = JSON.parse(sessionStorage.getItem("kept") ?? "null") ?? undefined;
window.acquireVsCodeApi = () => ({
  postMessage: (message) => said.push(message),
  getState: () => kept,
  setState: (state) => { kept = state; sessionStorage.setItem("kept", JSON.stringify(state)); },
});
"""


def lacking() -> str:
    """What is missing here to show the page; empty if nothing is."""
    if why := driven.lacking_browser():
        return why
    if not (BUILT / "main.js").exists():
        return "clients/vscode/out/webview/main.js is not there (`make vscode` builds it)"
    return ""


def chromium() -> AbstractContextManager[Browser]:
    """A browser with exact figures of its memory."""
    return driven.chromium("--enable-precise-memory-info", "--js-flags=--expose-gc")


class Transcript:
    """A page that is shown. `asked` are the addresses that it asked for besides its own parts."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.asked: list[str] = []

    def tell(self, *messages: dict[str, Any]) -> None:
        self.page.evaluate("all => all.forEach(one => postMessage(one))", list(messages))

    def grow(self, turns: int, calls: int = 2, first: int = 0) -> None:
        """Tells of turns that are over: `calls * 3 + 7` updates each."""
        how = {"turns": turns, "calls": calls, "first": first}
        self.page.evaluate(
            f"how => postMessage({{type: 'updates', sessionId: 's-1', updates: ({GROW})(how)}})",
            how,
        )

    def said(self, kind: str) -> list[dict[str, Any]]:
        """What the page told the extension, of a kind."""
        all: list[dict[str, Any]] = self.page.evaluate("said")
        return [one for one in all if one["type"] == kind]

    def until(self, look: Callable[[], T], what: str) -> T:
        """As the function, while the browser's messages are read."""
        try:
            return driven.until(look, what, lambda s: self.page.wait_for_timeout(1000 * s))
        except NotSeen as error:
            error.add_note(self.page.locator("body").inner_text())
            raise

    def waits_for(self, kind: str, count: int = 1) -> dict[str, Any]:
        """The last message of that kind, as soon as there are so many."""
        return self.until(lambda: self.said(kind)[count - 1 :], f"a message {kind}")[-1]

    def at(self, selector: str) -> Locator:
        return self.page.locator(selector)

    def settled(self) -> None:
        """Waits until all that it was told is drawn."""
        self.page.evaluate(
            "() => new Promise(done => setTimeout(() => requestAnimationFrame("
            "() => requestAnimationFrame(done)), 50))"
        )

    def sound(self) -> None:
        """Nothing broke, and nothing was loaded or refused."""
        assert self.page.evaluate("broken") == []
        assert self.asked == []


@contextmanager
def transcript(
    browser: Browser, theme: str = "dark", width: int = 420, height: int = 900, place: str = "view",
    **options: Any,
) -> Iterator[Transcript]:  # fmt: skip
    context = browser.new_context(viewport={"width": width, "height": height}, **options)
    page = context.new_page()
    page.set_default_timeout(1000 * PATIENCE)
    one = Transcript(page)
    look = THEMES[theme]
    parts = {
        "/": ("text/html", _PAGE.format(origin=ORIGIN, theme=look["class"], place=place)),
        "/shim.js": ("text/javascript", _SHIM % json.dumps({**look["vars"], **FONTS})),
    }

    def serve(route: Any) -> None:
        path = re.sub(r"\?.*", "", route.request.url.removeprefix(ORIGIN))
        if path in parts:
            kind, body = parts[path]
            route.fulfill(content_type=kind, body=body)
        elif (BUILT / path.lstrip("/")).is_file() and route.request.url.startswith(ORIGIN):
            route.fulfill(path=BUILT / path.lstrip("/"))
        else:
            one.asked.append(route.request.url)
            route.abort()

    context.route("**/*", serve)
    page.goto(ORIGIN + "/")
    one.tell({"type": "connection", "state": "running", "message": ""})
    try:
        yield one
    finally:
        context.close()


GROW = """({turns, calls, first}) => {
    let seq = 10 + first * (calls * 3 + 7)
    const entry = (sessionUpdate, fields, about = {}) => ({sessionUpdate, ...fields,
        _meta: {magy: {...about, seq: ++seq, at: 1764000000 + seq}}})
    const text = text => [{type: "text", text}]
    const content = [{type: "content", content: {type: "text", text: "ok"}}]
    const updates = []
    for (let turn = first; turn < first + turns; turn++) {
        const id = `p${turn}`
        updates.push(entry("user_message", {messageId: id, content: text(`Prompt ${turn}`)}),
            entry("_magy_queue", {added: id, delivery: "steer"}),
            entry("_magy_queue", {admitted: [id]}),
            entry("state_update", {state: "running"}, {turnId: id, opens: true}))
        for (let call = 0; call < calls; call++) {
            const toolCallId = `${turn}.${call}`
            updates.push(
                entry("tool_call_update", {toolCallId, name: "read_file", status: "pending"}),
                entry("tool_call_update", {toolCallId, title: `Read file${call}.py`, kind: "read"}),
                entry("tool_call_update", {toolCallId, status: "completed", content}))
        }
        const said = `Answer ${turn}: **see** file.py.\\n\\n- one\\n- two\\n\\nAnd *more*.`
        updates.push(entry("agent_message", {messageId: String(turn), content: text(said)}),
            entry("usage_update", {used: 100}, {request: String(turn), usage: {totalTokens: 100}}),
            entry("state_update", {state: "idle", stopReason: "end_turn"}, {turnId: id}))
    }
    return updates
}"""
"""JavaScript that makes the updates of `turns` turns from number `first` on, `calls` in each."""


# --- sessions to show -----------------------------------------------------------------------------


def session(session_id: str = "s-1", **summary: Any) -> dict[str, Any]:
    """A page of a session of which nothing is known: what `magy/session/subscribe` returns."""
    about = {
        "session": {
            "sessionId": session_id, "cwd": "/home/me/shop", "root": "/home/me/shop",
            "title": None, "agent": "build", "state": "idle", "turns": 0, "headSeq": 0,
        },
        "configOptions": [
            {"configId": "agent", "name": "Agent", "currentValue": "build",
             "options": ["build", "plan"]},
            {"configId": "model", "name": "Model", "currentValue": "lab/large",
             "options": ["lab/large", "lab/small"]},
            {"configId": "bypass", "name": "Bypass", "currentValue": "off",
             "options": ["off", "on"]},
        ],
        "waiting": [], "interactions": [], "plan": [], "usage": {}, "cost": {}, "context": {},
    }  # fmt: skip
    about.update(summary)
    return {"headSeq": 0, "floorSeq": 1, "summary": about, "events": [], "more": False}


def attached(
    page: dict[str, Any], session_id: str = "s-1", resumed: bool = False, folder: str = ""
) -> dict[str, Any]:
    return {
        "type": "attached", "sessionId": session_id, "page": page, "resumed": resumed, "parent": "",
        "folder": folder,
    }  # fmt: skip


def updates(*all: dict[str, Any], session_id: str = "s-1") -> dict[str, Any]:
    return {"type": "updates", "sessionId": session_id, "updates": list(all)}


def recorded(name: str) -> list[dict[str, Any]]:
    """A recorded session as the extension would tell it."""
    lines = (PICTURES / f"{name}.jsonl").read_text("utf-8").splitlines()
    first, *rest = [json.loads(line) for line in lines]
    return [attached(first["result"]), *(_told(line["method"], line["params"]) for line in rest)]


def _told(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "magy/session/update":
            return updates(params["update"])
        case "magy/interaction/changed":
            return {"type": "interactions", "news": params}
        case "magy/child/changed":
            return {"type": "children", "children": [params["child"]]}
    raise ValueError(method)


class Log:
    """Makes the updates of a session, with the numbers that its log would have."""

    def __init__(self) -> None:
        self.seq = 0

    def entry(self, what: str, **fields: Any) -> dict[str, Any]:
        """An update from the log; `about` goes to its `_meta`."""
        self.seq += 1
        about = {**fields.pop("about", {}), "seq": self.seq, "at": 1_764_000_000.0 + self.seq}
        return {"sessionUpdate": what, **fields, "_meta": {"magy": about}}

    def prompt(self, id: str, text: str) -> list[dict[str, Any]]:
        """A prompt that opens a turn."""
        return [
            self.entry("user_message", messageId=id, content=[text_block(text)]),
            self.entry("_magy_queue", added=id, delivery="steer"),
            self.entry("_magy_queue", admitted=[id]),
            self.entry("state_update", state="running", about={"turnId": id, "opens": True}),
        ]

    def says(self, id: str, text: str) -> dict[str, Any]:
        return self.entry("agent_message", messageId=id, content=[text_block(text)])

    def used(self, id: str, tokens: int, cost: float | None) -> dict[str, Any]:
        usage = {"totalTokens": tokens, "inputTokens": tokens - 20, "outputTokens": 20,
                 "cachedReadTokens": 0, "cachedWriteTokens": 0}  # fmt: skip
        about = {"request": id, "model": "lab/large", "usage": usage, "cost": cost}
        return self.entry("usage_update", used=tokens, about=about)

    def call(self, id: str, title: str, **fields: Any) -> list[dict[str, Any]]:
        """A call that was allowed and done; `fields` are those of its last update."""
        judged = {"decision": {"action": "allow", "rule": "agent build: read `*` -> allow",
                               "firm": False, "proposed": False}}  # fmt: skip
        name = fields.pop("name", "read_file")
        sort = fields.pop("sort", "read")
        return [
            self.entry("tool_call_update", toolCallId=id, name=name, title=name, status="pending",
                       rawInput=fields.pop("input", {})),
            self.entry("tool_call_update", toolCallId=id, kind=sort, title=title,
                       locations=fields.pop("locations", []), about=judged),
            self.entry("tool_call_update", toolCallId=id, status=fields.pop("status", "completed"),
                       about={"status": "completed", "duration": fields.pop("duration", 0.1)},
                       **fields),
        ]  # fmt: skip

    def ends(self, id: str, stop: str = "end_turn", message: str = "") -> dict[str, Any]:
        about = {"turnId": id, "stop": stop, "message": message}
        return self.entry("state_update", state="idle", stopReason=stop, about=about)


def text_block(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def output(text: str) -> dict[str, Any]:
    return {"type": "content", "content": text_block(text)}


def diff(patch: str, *paths: str) -> dict[str, Any]:
    changes = [{"operation": "modify", "path": path} for path in paths]
    return {"type": "diff", "changes": changes, "patch": {"format": "git_patch", "text": patch}}
