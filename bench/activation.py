"""The VS Code client: what it takes to activate it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.measure import TOP, Failed, Row, Run, in_turn
from bench.peer import BARE
from tests import guard
from tests.clients.vscode.driven import VSIX, Served, chromium, lacking, served, window

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CLIENT = TOP / "clients" / "vscode"
SOURCE = TOP / "bench" / "bare_client"


def activation(run: Run) -> Row:
    """Loading the code and calling it, as the editor itself measures it. The floor is an extension
    that only starts a bare server by the same library."""
    guard.find_cached_programs(os.environ)
    if why := lacking():
        raise Failed(why)
    with ExitStack() as stack:
        browser = stack.enter_context(chromium())
        ours = stack.enter_context(_home({}, VSIX))
        command = {"BARE_SERVER": json.dumps([sys.executable, *BARE]), "PYTHONPATH": str(TOP)}
        floor = stack.enter_context(_home(command, _bare(run.fresh("bare"))))
        one, other = in_turn(
            run.choose(3, 7),
            partial(_seconds, run, browser, ours, "Magy"),
            partial(_seconds, run, browser, floor, "Bare"),
        )
    return Row("VS Code activates Magy vs a bare client", "seconds", one, other, 1.3)


ROWS = (activation,)


@contextmanager
def _home(more: Mapping[str, str], vsix: Path) -> Iterator[Served]:
    with guard.fresh_home() as places, served({**places, **more}, vsix) as one:
        yield one


def _bare(directory: Path) -> Path:
    """Builds the package of the bare extension, with the tools of the other one."""
    tools = CLIENT / "node_modules" / ".bin"
    shutil.copytree(SOURCE, directory / "bare")
    for command in (
        [tools / "esbuild", SOURCE / "extension.js", "--bundle", "--platform=node", "--minify",
         "--external:vscode", f"--outfile={directory / 'bare' / 'out.js'}", "--log-level=error"],
        [tools / "vsce", "package", "--no-dependencies", "--skip-license",
         "--allow-missing-repository", "--out", directory / "bare.vsix"],
    ):  # fmt: skip
        done = subprocess.run(
            command, cwd=directory / "bare", capture_output=True, text=True, check=False,
            env={**os.environ, "NODE_PATH": str(CLIENT / "node_modules")},
        )  # fmt: skip
        if done.returncode:
            raise Failed(f"The bare extension cannot be built: {done.stdout}{done.stderr}")
    return directory / "bare.vsix"


def _seconds(run: Run, browser: Browser, server: Served, name: str) -> float:
    """What the editor says of the extension in its list of those that run."""
    with window(browser, server, run.fresh("folder")) as one:
        one.command("Developer: Show Running Extensions")
        row = one.page.locator(".runtime-extensions-editor .extension").filter(has_text=name)

        def told() -> re.Match[str] | None:
            return re.search(r"Activation: (\d+)ms", row.first.inner_text())

        found = one.until(told, f"the activation of {name}")
        assert found
        return int(found[1]) / 1000
