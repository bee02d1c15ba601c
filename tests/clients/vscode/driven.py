"""A VS Code that a program drives as a person does: code-server, shown by a headless Chromium.

`served` starts a code-server in a home directory in which Magy is installed as the client's page
says; `chromium` starts a browser; `Window` is one window of VS Code in it. Keys are typed and
things are clicked; what came of it is read from what the window shows, and always waited for.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlsplit

import psutil

from tests.clients.driven import NotSeen
from tests.patience import PATIENCE

if TYPE_CHECKING:  # there is not a wheel of it for every machine
    from playwright.sync_api import Browser, Frame, Locator, Page

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[3]
VSIX = ROOT / "clients" / "vscode" / "magy.vsix"
CODE_SERVER = "code-server-for-tests"
"""What `.ci/vscode` installs."""
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")

SETTINGS = {
    "workbench.startupEditor": "none",
    "workbench.tips.enabled": False,
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.enableExperiments": False,
    "window.commandCenter": False,
    "chat.disableAIFeatures": True,
    "security.workspace.trust.enabled": False,
    "telemetry.telemetryLevel": "off",
    "update.mode": "none",
    "extensions.autoCheckUpdates": False,
    "extensions.ignoreRecommendations": True,
    "git.openRepositoryInParentFolders": "never",
    "editor.minimap.enabled": False,
    "editor.cursorBlinking": "solid",
    "workbench.reduceMotion": "on",
    "files.autoSave": "off",
    "remote.autoForwardPorts": False,
}
"""Of a person who has seen the welcome pages, and looks for nothing on the net."""

_ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--force-prefers-reduced-motion",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]  # fmt: skip
_LISTENING = re.compile(r"HTTP server listening on (http://\S+?)/?$", re.MULTILINE)


def until(
    look: Callable[[], T], what: str, pause: Callable[[float], None] = time.sleep,
    seconds: float = PATIENCE,
) -> T:  # fmt: skip
    """What `look` answers as soon as that is true. A page that changes meanwhile is looked at
    again."""
    from playwright.sync_api import Error

    end = time.monotonic() + seconds
    fault = ""
    while True:
        try:
            if value := look():
                return value
            fault = ""
        except Error as error:
            fault = f" ({error.message})"
        if time.monotonic() > end:
            raise NotSeen(f"{what}: not seen{fault}")
        pause(0.1)


def lacking() -> str:
    """What is missing here to drive a VS Code; empty if nothing is."""
    if shutil.which(CODE_SERVER) is None:
        return "code-server is not installed (.ci/programs builds it, once)"
    if why := lacking_browser():
        return why
    if not VSIX.exists():
        return f"{VSIX.relative_to(ROOT)} is not there (`make vscode` builds it)"
    return ""


def lacking_browser() -> str:
    """What is missing here to drive a browser; empty if nothing is."""
    if browser() is None:
        return "chromium is not installed (.ci/programs installs it)"
    if find_spec("playwright") is None:
        return "playwright is not installed (there is no wheel of it for this machine)"
    return ""


def browser() -> str | None:
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


class Served:
    """A running code-server."""

    def __init__(self, process: psutil.Process, url: str, home: Path, script: Path) -> None:
        self.url = url
        self.home = home
        self._process = process
        self._script = script

    def servers(self, folder: Path) -> list[psutil.Process]:
        """The servers of Magy that run in windows on this folder."""
        found = []
        for one in self._process.children(recursive=True):
            with suppress(psutil.Error):
                if one.cmdline()[-1:] == ["lsp"] and one.cwd() == str(folder):
                    found.append(one)
        return found

    def log(self) -> str:
        """What the extension wrote into its log, of all windows."""
        found = sorted(self.home.glob("vscode/logs/*/exthost*/magy.magy/Magy.log"))
        return "\n".join(file.read_text("utf-8") for file in found)

    def left(self) -> str:
        """What was written in the side bars of all windows, and not sent, as the disk has it."""
        found = self.home.glob("vscode/User/globalStorage/magy.magy/left/*/view.json")
        return "\n".join(file.read_text("utf-8") for file in found)

    def play(self, script: str) -> None:
        """From now on, servers that start have this script for a model."""
        self._script.write_text(script, "utf-8")

    def configure(self, more: str = "") -> None:
        """Writes the user's `magy.toml`: the scripted model, and what is to stand below that."""
        file = self.home / "config" / "magy" / "magy.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(
            'model.default = "scripted/model"\ntitles = false\n\n'
            f'[[provider]]\nname = "scripted"\nkind = "scripted"\nscript = "{self._script}"\n\n'
            f"{more}",
            "utf-8",
        )

    def settings(self, **changed: Any) -> None:
        """The user's settings of windows that are opened from now on, `.` written as `__`."""
        more = {name.replace("__", "."): value for name, value in changed.items()}
        file = self.home / "vscode" / "User" / "settings.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({**SETTINGS, **more}), "utf-8")


@contextmanager
def served(places: Mapping[str, str], vsix: Path = VSIX) -> Iterator[Served]:
    """Installs the extension in the home directory that `places` are the variables of, with `magy`
    where pipx puts it and a scripted model, and serves it on a port of this machine that was
    free."""
    home = Path(places["HOME"])
    script = _furnished(home)
    program = [
        shutil.which(CODE_SERVER) or CODE_SERVER,
        "--user-data-dir", str(home / "vscode"), "--extensions-dir", str(home / "extensions"),
    ]  # fmt: skip
    env = {**os.environ, **places, "EXTENSIONS_GALLERY": "{}", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        [*program, "--install-extension", str(vsix)],
        env=env, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    output = home / "code-server.log"
    command = [
        *program, "--auth", "none", "--bind-addr", "127.0.0.1:0", "--disable-telemetry",
        "--disable-update-check", "--disable-getting-started-override",
    ]  # fmt: skip
    with output.open("wb") as log, subprocess.Popen(
        command, cwd=home, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        start_new_session=True,
    ) as process:  # fmt: skip

        def listening() -> str:
            assert process.poll() is None, output.read_text("utf-8")
            found = _LISTENING.search(output.read_text("utf-8"))
            return found[1] if found else ""

        try:
            url = until(listening, "code-server")
            one = Served(psutil.Process(process.pid), url, home, script)
            one.configure()
            one.settings()
            yield one
        finally:
            _end(process)


def _furnished(home: Path) -> Path:
    """Puts `magy` into a home directory; the answer is the script of its model."""
    script = home / "model.script"
    script.write_text("text: Hello.\n", "utf-8")
    local = home / ".local" / "bin"
    local.mkdir(parents=True)
    (local / "magy").symlink_to(Path(sys.prefix) / "bin" / "magy")
    return script


def _end(process: subprocess.Popen[bytes]) -> None:
    """All of its processes: they have a group of their own."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)


@contextmanager
def chromium(*arguments: str) -> Iterator[Browser]:
    """A browser, started with further arguments, that reaches nothing but this machine. While it
    runs, nothing of asyncio runs in this thread."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        args = [*_ARGUMENTS, *arguments]
        one = playwright.chromium.launch(executable_path=browser(), args=args)
        try:
            yield one
        finally:
            one.close()


class Window:
    """A window of VS Code on a folder. `abroad` are the addresses beyond this machine that it asked
    for."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.abroad: list[str] = []
        page.on("request", self._requested)

    def _requested(self, request: Any) -> None:
        parts = urlsplit(request.url)
        host = parts.hostname or ""
        # What webviews load of the extension has a name of the editor's, which never leaves it.
        here = host == "127.0.0.1" or host.endswith(".vscode-resource.vscode-cdn.net")
        if parts.scheme in ("http", "https", "ws", "wss") and not here:
            self.abroad.append(request.url)

    def until(self, look: Callable[[], T], what: str) -> T:
        """As the function, while the browser's messages are read."""
        return until(look, what, lambda seconds: self.page.wait_for_timeout(1000 * seconds))

    def command(self, title: str) -> None:
        """Chooses a command in the palette, by its whole title. The palette does not take up what
        becomes known while it is open: it is opened again until the command is there. The Escape
        that closes it ends a selection in the text, so what is about one has to go by its key."""
        box = self.page.locator(".quick-input-widget:visible input")
        row = self.page.locator(".quick-input-list .monaco-list-row").filter(
            has=self.page.get_by_text(title, exact=True)
        )

        def chosen() -> bool:
            self.page.keyboard.press("Escape")
            self.page.keyboard.press("F1")
            box.fill(f">{title}", timeout=3000)
            row.first.click(timeout=2000)
            return True

        self.until(chosen, f"the command {title!r}")

    def open(self, path: str) -> None:
        """Opens a file of the folder, as Ctrl+P does."""
        self.page.keyboard.press("Control+P")
        box = self.page.locator(".quick-input-widget:visible input")
        box.wait_for(timeout=1000 * PATIENCE)
        box.fill(path)
        name = path.rpartition("/")[2]
        row = self.page.locator(f'.quick-input-list .monaco-list-row[aria-label^="{name}"]')
        row.first.click(timeout=1000 * PATIENCE)  # which may not be the first of the list yet
        self.tab(name).wait_for(timeout=1000 * PATIENCE)
        self.until(lambda: self.text() is not None, f"the text of {path}")

    def tab(self, name: str) -> Locator:
        return self.page.locator(f'.tabs-container .tab.active[data-resource-name="{name}"]')

    def keys(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def type(self, text: str) -> None:
        self.page.keyboard.type(text)

    def answer(self, text: str) -> None:
        """Writes into the box that asks at the top, and confirms."""
        box = self.page.locator(".quick-input-widget:visible input")
        box.wait_for(timeout=1000 * PATIENCE)
        box.fill(text)
        self.page.keyboard.press("Enter")

    def choose(self, label: str) -> None:
        """Chooses the first row with this in its label of the list that is shown at the top."""
        row = self.page.locator(f'.quick-input-list .monaco-list-row[aria-label*="{label}"]')
        row.first.click(timeout=1000 * PATIENCE)

    def text(self) -> str | None:
        """The lines that the active editor shows, without what decorations add."""
        lines: str | None = self.page.evaluate(_VISIBLE_LINES)
        return lines

    def shows(self, text: str) -> None:
        self.until(lambda: text in (self.text() or ""), f"{text!r} in the editor")

    def go(self, line: int, column: int = 1) -> None:
        """Puts the cursor there."""
        self.page.keyboard.press("Control+G")
        self.answer(f":{line}:{column}")
        self.page.locator(".quick-input-widget").wait_for(state="hidden")

    def notifications(self) -> list[str]:
        return self.page.locator(".notification-list-item-message").all_inner_texts()

    def press_in_notification(self, about: str, button: str) -> None:
        toast = self.page.locator(".notification-list-item").filter(has_text=about)
        toast.hover(timeout=1000 * PATIENCE)
        toast.get_by_role("button", name=button, exact=True).click(timeout=1000 * PATIENCE)

    def link_in_notification(self, about: str, link: str) -> None:
        toast = self.page.locator(".notification-list-item").filter(has_text=about)
        toast.get_by_role("link", name=link, exact=True).click(timeout=1000 * PATIENCE)

    def pane(self, title: str) -> str:
        """The words of a view in the side bar."""
        header = self.page.locator(f'.pane-header[aria-label*="{title}"]')
        return self.page.locator(".pane").filter(has=header).inner_text()

    def hide_side_bar(self) -> None:
        self.command("View: Toggle Primary Side Bar Visibility")
        self.until(lambda: not self.webviews(), "no transcript")

    def reload(self) -> None:
        self.page.reload(timeout=1000 * PATIENCE)
        self.page.locator(".monaco-workbench .part.statusbar").wait_for(timeout=1000 * PATIENCE)

    def status(self) -> list[str]:
        """The items of the status bar, as they are read out."""
        return [
            label
            for item in self.page.locator(".statusbar-item a").all()
            if (label := item.get_attribute("aria-label"))
        ]

    def title_button(self, label: str) -> None:
        """Presses a button at the right of the tabs."""
        button = self.page.locator(f'.editor-actions .action-label[aria-label^="{label}"]')
        button.first.click(timeout=1000 * PATIENCE)

    def lenses(self, title: str) -> Locator:
        """Those with this title, from the top of the file to its end."""
        return self.page.locator(".codelens-decoration a").filter(has_text=title)

    def changes(self, count: int) -> None:
        """Waits until so many changes of the file have their buttons."""
        self.until(lambda: self.lenses("Accept").count() == count, f"{count} changes")

    def drafts(self) -> str:
        """The text of the pictures that decorations put beside the text."""
        found: list[str] = self.page.evaluate(_PICTURES)
        return "\n".join(base64.b64decode(one).decode("utf-8") for one in found)

    def webviews(self) -> list[Frame]:
        """The documents of Magy's webviews that are shown."""
        return [
            child
            for frame in self.page.frames
            if "extensionId=magy.magy" in frame.url
            for child in frame.child_frames
        ]

    def webview(self, selector: str = "body") -> Frame:
        """The first of Magy's webviews that has such an element."""

        def look() -> Frame | None:
            return next((one for one in self.webviews() if one.locator(selector).count()), None)

        found = self.until(look, f"a webview with {selector}")
        assert found
        return found

    def picture(self, file: Path) -> None:
        self.page.screenshot(path=file)

    def report(self) -> str:
        """What is to be seen, for one who wants to know why something did not come."""
        shown = [self.page.locator("body").inner_text()]
        shown += [frame.locator("body").inner_text() for frame in self.webviews()]
        return "\n--- webview\n".join(shown)


@contextmanager
def window(
    browser: Browser, server: Served, folder: Path,
    width: int = 1400, height: int = 1000, scale: float = 0.5,
) -> Iterator[Window]:  # fmt: skip
    """A window of VS Code on a folder, or on the folders that a `.code-workspace` file lists, as
    soon as it can be used. Nobody looks at it: it is drawn with few pixels, unless `scale` is
    more."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, device_scale_factor=scale
    )
    context.add_init_script(_NOTHING_SPINS)
    page = context.new_page()
    one = Window(page)
    kind = "workspace" if folder.suffix == ".code-workspace" else "folder"
    page.goto(f"{server.url}/?{kind}={quote(str(folder))}", timeout=1000 * PATIENCE)
    page.locator(".monaco-workbench .part.statusbar").wait_for(timeout=1000 * PATIENCE)
    try:
        yield one
    except Exception as error:
        with suppress(Exception):
            error.add_note(f"{one.report()}\n--- Magy's log\n{server.log()}")
        raise
    finally:
        context.close()


_NOTHING_SPINS = """{
    const style = new CSSStyleSheet()
    style.replaceSync(".codicon-modifier-spin { animation: none !important }")
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, style]
}"""
"""Reduced motion leaves the icon of what works turning, and each of its steps draws the window."""

_VISIBLE_LINES = """() => {
    const editor = document.querySelector(".editor-group-container.active .monaco-editor")
    if (!editor) return null
    const top = line => parseFloat(line.style.top)
    return [...editor.querySelectorAll(".view-lines > .view-line")]
        .sort((one, other) => top(one) - top(other))
        .map(line => line.textContent.replaceAll("\\u00a0", " ").replaceAll("\\u200c", ""))
        .join("\\n")
}"""

_PICTURES = """() => [...document.querySelectorAll(".monaco-editor .view-lines span")]
    .map(one => getComputedStyle(one, "::after").content)
    .flatMap(one => one.match(/data:image\\/svg\\+xml;base64,([A-Za-z0-9+\\/=]+)/)?.[1] ?? [])"""
