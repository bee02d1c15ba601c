"""`visited` drives a browser that begins and ends with one visit to a page.

It is a Chromium or Chrome of the machine, or the one that `playwright install chromium` brings; the
Python package playwright speaks with it. All that it loads goes through `magy_server.proxy`.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Protocol
from urllib.parse import urlsplit

from magy_server.core.errors import ToolError
from magy_server.core.text.sanitizing import shortened
from magy_server.dataclass import dataclass
from magy_server.proxy import Proxy
from magy_server.tasks import to_end
from magy_server.tools.web.urls import LONGEST as LONGEST_URL
from magy_server.tools.web.urls import Target

if TYPE_CHECKING:
    from playwright.async_api import Browser, Locator, Page, Playwright, Request, Route

WHOLE = 90.0
"""Seconds that a visit may take."""
OPENING, STEP, QUIET = 30_000, 10_000, 2_000
"""Milliseconds: until a page is there, for a step, and until a page has come to rest after it."""
LONGEST = 2_000_000
"""Characters of a page."""
LOADED = 32 << 20
"""Bytes that a page may load; a browser takes many times that of memory."""
WIDE, HIGH = 1280, 900
PROGRAMS = (
    "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome",
    "google-chrome-stable",
)  # fmt: skip
"""The first, which never shows a window, does the same in less than half of the processor time."""
ARGUMENTS = (
    "--disable-quic", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run", "--disable-gpu", "--force-prefers-reduced-motion",
    "--js-flags=--max-old-space-size=512",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)  # fmt: skip
"""The proxy looks names up, and nothing goes round it."""
_SELECTORS = ("role=", "text=", "css=", "xpath=", "#", ".", "[", "//")
_HTML = "most => (document.documentElement?.outerHTML ?? '').slice(0, most)"
TOO_MUCH = f"the page loads more than {LOADED >> 20} MB; the rest was left out"
_NO_PACKAGE = (
    "The tool browser needs the Python package playwright, which is not there. Tell the user: "
    "Magy's extra `browser` has it (`pip install 'magy[browser]'`)."
)
_NO_BROWSER = (
    "There is no browser on this machine. Tell the user to install Chromium or Chrome, or to run "
    "`playwright install chromium`."
)
_AS_ROOT = (
    "Magy runs as root, and Chromium cannot be isolated then. Tell the user to run Magy as another "
    "user, or to set tools.browser_sandbox = false where the whole machine is a sandbox."
)


Show = Literal["text", "elements", "picture"]


class Step(Protocol):
    """What is done on a page; `words` says it for people."""

    @property
    def do(self) -> Literal["click", "fill", "choose", "press", "wait_for"]: ...
    @property
    def target(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def words(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Visit:
    """`private`: the page itself may be on this machine or in a private network; `denied`: async
    (url) -> whether the rules deny that page."""

    at: Target
    steps: Sequence[Step]
    show: Show
    denied: Callable[[str], Awaitable[bool]]
    private: bool
    sandbox: bool


@dataclass(frozen=True, slots=True)
class Visited:
    """`content`: the HTML after the scripts, the elements as a tree, or a PNG."""

    url: str
    title: str
    content: bytes
    notes: tuple[str, ...] = ()


async def visited(visit: Visit) -> Visited:
    """Raises ToolError that says what to do."""
    try:
        from playwright.async_api import Error, async_playwright
    except ImportError:
        raise ToolError(_NO_PACKAGE) from None
    if visit.sandbox and os.geteuid() == 0:
        raise ToolError(_AS_ROOT)
    async with AsyncExitStack() as closing:
        try:
            async with asyncio.timeout(WHOLE):
                proxy, port = await _proxied(visit, closing)
                running = async_playwright()
                playwright = await running.__aenter__()
                closing.push_async_callback(to_end, running.__aexit__())
                browser = await _started(playwright, visit, port)
                closing.push_async_callback(to_end, browser.close())
                try:
                    found = await _on_page(visit, browser)
                except ToolError as error:
                    raise ToolError(
                        f"{error.message} [{TOO_MUCH}]" if proxy.full else error.message
                    ) from None
                return replace(found, notes=(*found.notes, TOO_MUCH)) if proxy.full else found
        except TimeoutError:
            raise ToolError(f"{visit.at.url}: the page took more than {WHOLE:g} s.") from None
        except Error as error:
            raise ToolError(f"{visit.at.url}: {_plain(error.message)}") from None


async def _proxied(visit: Visit, closing: AsyncExitStack) -> tuple[Proxy, int]:
    """A proxy that reaches the internet, and the page itself; and its port."""
    host = visit.at.host.strip("[]")
    name = f"[{host}]" if ":" in host else host
    own = [f"{name}:{visit.at.port}"] if visit.private else []
    proxy = Proxy([*own, "*", f"*:{visit.at.port}"], LOADED)
    listening = socket.create_server(("127.0.0.1", 0))
    await proxy.serve(listening)
    closing.push_async_callback(proxy.close)
    port: int = listening.getsockname()[1]
    return proxy, port


async def _started(playwright: Playwright, visit: Visit, port: int) -> Browser:
    program = next((path for name in PROGRAMS if (path := shutil.which(name))), None)
    if program is None and not os.path.exists(playwright.chromium.executable_path):
        raise ToolError(_NO_BROWSER)
    return await playwright.chromium.launch(
        executable_path=program,
        chromium_sandbox=visit.sandbox,
        args=[*ARGUMENTS],
        proxy={"server": f"http://127.0.0.1:{port}"},
        handle_sigint=False,
        handle_sigterm=False,
        handle_sighup=False,
    )


async def _on_page(visit: Visit, browser: Browser) -> Visited:
    context = await browser.new_context(
        viewport={"width": WIDE, "height": HIGH}, service_workers="block", accept_downloads=False
    )
    page = await context.new_page()
    away: list[str] = []
    leaves: list[str] = []
    denied: list[str] = []

    async def judge(route: Route, request: Request) -> None:
        """The page stays where it was allowed to be, and no other window opens."""
        window = request.is_navigation_request() and _is_window(page, request)
        own = request.is_navigation_request() and not window and request.frame == page.main_frame
        left = own and not _is_at(visit.at, request.url)
        first = page.url == "about:blank"  # it has been judged
        if own and not left and not first and await visit.denied(request.url):
            denied.append(request.url)
            await route.fulfill(status=204)
        elif window or left:
            away.append(request.url)
            leaves.extend([request.url] if left else ())
            await route.fulfill(status=204)  # No Content: what is shown stays
        else:
            await route.continue_()

    await context.route("**/*", judge)
    page.set_default_timeout(STEP)
    answer = await page.goto(visit.at.url, timeout=OPENING, wait_until="commit")
    await _loaded(page, leaves)
    await _at_rest(page)
    await _check_place(visit, page)
    for number, step in enumerate(visit.steps, 1):
        await _do(page, step, number)
        await _check_place(visit, page)
    notes = [f"the page wanted to go to {shortened(url, 500)}: open that if you mean it"
             for url in away[:5]]  # fmt: skip
    notes += [f"the page wanted to go to {shortened(url, 500)}, which the rules deny"
              for url in denied[:5]]  # fmt: skip
    if answer is not None and answer.status >= 400:
        notes.append(f"the server answered {answer.status}")
    content = await _content(page, visit.show)
    title = shortened(await page.title(), 200)
    await _check_place(visit, page)  # it may have gone elsewhere meanwhile
    return Visited(shortened(page.url, LONGEST_URL), title, content, tuple(notes))


def _is_window(page: Page, request: Request) -> bool:
    """Whether this request, which navigates, is for another window than that of the page."""
    from playwright.async_api import Error

    try:
        return request.frame.page != page
    except Error:  # a window that is not there yet has no frame
        return True


def _is_at(at: Target, url: str) -> bool:
    """Whether a page may be there: `about:blank` is none, and `https` for `http` is the same."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)
    except ValueError:
        return False
    same = (parts.hostname or "").strip("[]").lower() == at.host.strip("[]")
    return same and (port == at.port or {port, at.port} == {80, 443})


async def _check_place(visit: Visit, page: Page) -> None:
    """Raises ToolError where a redirect, or a script, has led where the page may not be."""
    if page.url != visit.at.url and _is_at(visit.at, page.url) and await visit.denied(page.url):
        raise ToolError(
            f"{visit.at.url} led to {shortened(page.url, 500)}, which the rules deny. Nothing of "
            "that is shown."
        )
    if not _is_at(visit.at, page.url):
        raise ToolError(
            f"{visit.at.url} led to {shortened(page.url, 500)}, on another host. Nothing of that "
            "is shown. Open that URL if it is what you want."
        )


async def _do(page: Page, step: Step, number: int) -> None:
    """Raises ToolError that names the step."""
    from playwright.async_api import Error

    try:
        if step.do == "press":
            await (page.keyboard if not step.target else await _found(page, step)).press(step.text)
        else:
            found = await _found(page, step)
            if step.do == "click":
                await found.click()
            elif step.do == "fill":
                await found.fill(step.text)
            elif step.do == "choose":
                await found.select_option(step.text)
            else:
                await found.wait_for()
    except Error as error:
        why = _plain(error.message)
        raise ToolError(f"Step {number} ({step.words[:200]}) failed: {why}") from None
    await _at_rest(page)


async def _found(page: Page, step: Step) -> Locator:
    """The first element that is meant: by a selector, or else by its name, label or text."""
    words = step.target
    if words.startswith(_SELECTORS):
        return page.locator(words).first
    ways = [page.get_by_label(words), page.get_by_placeholder(words)]
    if step.do in ("click", "press", "wait_for"):
        named = [page.get_by_role(role, name=words) for role in ("button", "link", "tab")]
        ways = [*named, page.get_by_text(words), *ways]
    for way in ways:
        if await way.count():
            return way.first
    any_of_them = ways[0]  # the first that comes
    for way in ways[1:]:
        any_of_them = any_of_them.or_(way)
    return any_of_them.first


async def _loaded(page: Page, leaves: Sequence[str]) -> None:
    """Waits until the page has loaded; one that `leaves` for elsewhere meanwhile never has. Raises
    ToolError."""
    from playwright.async_api import TimeoutError as Late

    for _ in range(OPENING // QUIET):
        try:
            return await page.wait_for_load_state("load", timeout=QUIET)
        except Late:
            if leaves:
                return None
    raise ToolError(f"{shortened(page.url, 500)} had not loaded after {OPENING // 1000} s.")


async def _at_rest(page: Page) -> None:
    """What a page still loads after that is not waited for."""
    from playwright.async_api import Error

    try:
        await page.wait_for_load_state("networkidle", timeout=QUIET)
    except Error:
        return


async def _content(page: Page, show: Show) -> bytes:
    if show == "picture":
        return await page.screenshot(type="png")
    if show == "elements":
        return (await page.locator("body").aria_snapshot())[:LONGEST].encode("utf-8", "replace")
    # Cut where it is: a page may be of any size, and all that comes here is in this memory.
    html = await page.evaluate(_HTML, LONGEST)
    return str(html)[:LONGEST].encode("utf-8", "replace")


def _plain(message: str) -> str:
    """The first sentence of an error of playwright's, which has a log and a stack below it."""
    first = message.partition("Call log:")[0].partition("\n=====")[0]
    return shortened(first.partition(": ")[2] or first, 300)
