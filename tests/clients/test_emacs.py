"""The Emacs client in a real Emacs: each ERT test is a test here.

Without Emacs they are skipped, except where CI is set: there nothing may be left out.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests import nursery
from tests.clients.driven import xvfb
from tests.patience import PATIENCE

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
CLIENT = ROOT / "clients" / "emacs"
TESTS = HERE / "emacs"
GUIDE = ROOT / "docs" / "clients" / "emacs.md"
SOURCES = sorted(CLIENT.glob("*.el"))
DEBIAN_PACKAGES = "/usr/share/emacs/site-lisp/elpa"
"""Where Debian keeps packages such as Eglot, which Emacs 28 does not bring."""

EMACS = shutil.which("emacs")
_DEFTEST = re.compile(r"^\(ert-deftest ([^ ]+) \(\)\n(?:  :tags '\(([^)]*)\))?", re.MULTILINE)
_RESULT = re.compile(r"^ +(passed|FAILED|skipped) +\d+/\d+ +(\S+)", re.MULTILINE)


@pytest.fixture(autouse=True)
def needs_emacs() -> None:
    if EMACS is None:
        missing("emacs is not installed (Debian: apt install emacs-nox elpa-eglot)")


def missing(why: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)


def emacs(
    *arguments: str, cwd: Path = TESTS, timeout: float = PATIENCE, **env: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [EMACS or "emacs", "-Q", "--batch", "-L", str(CLIENT), "-L", str(TESTS), *arguments],
        cwd=cwd,
        env={**os.environ, "MAGY_PYTHON": sys.executable, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        # In batch, unlike otherwise, Emacs dies of writing to a server that has ended, unless it
        # inherits that SIGPIPE is ignored, as it is in Python.
        restore_signals=False,
    )


def packages() -> list[str]:
    """Arguments that make installed packages available, which -Q leaves out."""
    code = (
        f"(progn (require 'package) (add-to-list 'package-directory-list \"{DEBIAN_PACKAGES}\")"
        " (package-initialize))"
    )
    return ["--eval", code]


def deftests(file: str) -> list[tuple[str, str]]:
    """(name, tags) of the ERT tests that a file defines."""
    return _DEFTEST.findall((TESTS / file).read_text("utf-8"))


def ert_tests() -> list[Any]:
    """An ERT test's tags are the requirements that it shows."""
    return [
        pytest.param(path.name, name, id=name, marks=[pytest.mark.req(*tags.split())] * bool(tags))
        for path in sorted(TESTS.glob("*-test.el"))
        for name, tags in deftests(path.name)
    ]


@pytest.fixture(scope="module")
def run_file(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Runs a file of ERT tests once, for all processes of this run; the answer is its output."""
    here = tmp_path_factory.getbasetemp()
    shared = here.parent if "PYTEST_XDIST_WORKER" in os.environ else here

    def run(file: str) -> str:
        output = shared / f"{file}.txt"
        with (shared / f"{file}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not output.exists():
                output.write_text(_run_file(file), "utf-8")
            return output.read_text("utf-8")

    return run


def _run_file(file: str) -> str:
    names = " ".join(name for name, _ in deftests(file))
    code = f"(ert-run-tests-batch-and-exit '(member {names}))"
    done = emacs(
        *packages(), "-l", file, "--eval", code,
        timeout=5 * PATIENCE, NURSERY=nursery.address(),
    )  # fmt: skip
    return done.stdout + done.stderr


@pytest.mark.parametrize(("file", "name"), ert_tests())
def test_ert(run_file: Callable[[str], str], file: str, name: str) -> None:
    output = run_file(file)
    results = {test: result for result, test in _RESULT.findall(output)}
    if results.get(name) == "skipped":
        missing(f"{name} was left out: what it needs is not installed")
    if results.get(name) != "passed":
        start = output.find(f"Test {name} ")
        end = output.find(f"  {name} (", start)
        pytest.fail(output[start:end] if 0 <= start < end else output[-4000:], pytrace=False)


def test_speaks_only_methods_of_the_wire() -> None:
    from magy_server.api.wire.methods import CLIENT_TO_SERVER, SERVER_TO_CLIENT

    wire = {method.name for method in (*CLIENT_TO_SERVER, *SERVER_TO_CLIENT)}
    text = "".join(source.read_text("utf-8") for source in SOURCES)
    used = set(re.findall(r"'(magy/\w+/\w+)", text))
    assert used
    assert used <= wire


def test_no_option_is_without_effect() -> None:
    texts = {source.name: source.read_text("utf-8") for source in SOURCES}
    options = texts.pop("magy-options.el")
    names = re.findall(r"^\(defcustom (magy-[a-z-]+)", options, re.MULTILINE)
    assert len(names) > 30
    of_the_server = options[options.index("(defconst magy-options--of-the-server") :]
    used = set(re.findall(r"[a-z-]+", of_the_server + "".join(texts.values())))
    assert set(names) <= used


def test_tool_groups_are_the_servers_permission_keys() -> None:
    from magy_server.tools import kit
    from magy_server.tools.shell.processes import Processes

    options = (CLIENT / "magy-options.el").read_text("utf-8")
    found = re.search(r"\(defconst magy-tool-groups\s+'\(([^)]*)\)", options)
    assert found
    groups = set(found[1].split())
    keys = {tool.key for tool in kit.make_tools(Processes())}
    of_the_network = {"http", "github", "browser"}  # what is said of `net` holds for them, too
    assert keys - groups <= {"bash_stop", "tools", *of_the_network}


def test_documented_settings_are_settings() -> None:
    """The guide's table of options that are settings of the server: names and defaults are so."""
    from magy_server.core.settings import Settings

    rows = re.findall(
        r"^\| `(magy-[a-z-]+)` \| (.*?) \| `([a-z_]+(?:\.[a-z_]+)?)`",
        GUIDE.read_text("utf-8"),
        re.MULTILINE,
    )
    assert len(rows) > 8
    settings = Settings()
    for option, default, path in rows:
        value: Any = settings
        for step in path.split("."):
            value = getattr(value, step)
        first = re.match(r'`?("?)(\w+)', default)
        assert first
        shown = {"t": True, "nil": ""}.get(first[2], first[2])
        if path != "permission":
            assert str(value).removesuffix(".0") == str(shown), option


def test_documented_keys_are_bound() -> None:
    """Each row of the guide's key tables names what its keys do."""
    tables = re.findall(
        r"^\| key \|.*\n\|.*\n((?:\|.*\n)+)", GUIDE.read_text("utf-8"), re.MULTILINE
    )
    rows = re.findall(r"^\| (`.+?`) \| (.*?) \|", "".join(tables), re.MULTILINE)
    keys = [(key, row[1].strip("`")) for row in rows for key in re.findall(r"`(.+?)`", row[0])]
    assert len(keys) > 15
    looked_up = " ".join(
        f'(princ (key-binding (kbd "{key.replace("S-TAB", "<backtab>")}"))) (terpri)'
        for key, _ in keys
    )
    code = (
        '(with-temp-buffer (global-set-key (kbd "C-c m") \'magy-command-map)'
        f" (magy-transcript-mode) {looked_up})"
    )
    bound = emacs("-l", "magy", "--eval", code).stdout.split()
    for (key, command), found in zip(keys, bound, strict=True):
        assert found == command if command.startswith("magy-") else found != "nil", key


def test_in_a_window(tmp_path: Path) -> None:
    """What only a display shows: the end stays in view while text arrives, no window is taken."""
    if shutil.which("Xvfb") is None:
        missing("Xvfb is not installed")
    if emacs("--eval", "(princ (fboundp 'x-create-frame))").stdout != "t":
        missing("this Emacs has no graphical display (Debian: apt install emacs-lucid)")
    seen = tmp_path / "seen.json"
    look = f"""
      (progn
        (magy-prompt "make the tests pass")
        (magy-test-until (magy-permission--all))
        (sit-for 0.3)
        (let* ((project (magy-current-project))
               (window (get-buffer-window (magy-project-buffer project)))
               (said (list :selected (buffer-name (window-buffer))
                           :end (if (pos-visible-in-window-p (window-point window) window)
                                    t :json-false)
                           :header (format-mode-line
                                    (buffer-local-value 'header-line-format
                                                        (window-buffer window)) nil window)
                           :line (format-mode-line mode-line-format))))
          (with-temp-file "{seen}" (insert (json-serialize said)))
          (kill-emacs)))"""
    with xvfb() as display:
        subprocess.run(
            [EMACS or "emacs", "-Q", "-L", str(CLIENT), "-L", str(TESTS), "-l", "magy-demo.el",
             "--eval", f"(run-with-timer 0.2 nil (lambda () {look}))"],
            cwd=TESTS, timeout=PATIENCE, check=True, capture_output=True,
            env={**os.environ, "DISPLAY": display, "MAGY_PYTHON": sys.executable},
        )  # fmt: skip
    said = json.loads(seen.read_text("utf-8"))
    assert said["selected"] == "header.py"
    assert said["end"] is True
    assert (
        said["header"]
        == " ? question  Make the tests pass · build · 18.4k tokens · turn 18.4k tokens"
    )
    assert "[Magy asks 1]" in said["line"]


@pytest.mark.req("G022", "F009")
def test_in_a_terminal(tmp_path: Path) -> None:
    """A person types: the question shows in the mode line, and one key answers it."""
    tmux = shutil.which("tmux")
    if tmux is None:
        missing("tmux is not installed")
    socket = f"magy-{os.getpid()}"

    def control(*words: str) -> str:
        run = subprocess.run(
            [tmux, "-L", socket, "-f", "/dev/null", *words],
            capture_output=True, text=True, check=False, timeout=PATIENCE,
        )  # fmt: skip
        return run.stdout

    def see(text: str) -> str:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if text in (screen := control("capture-pane", "-p", "-t", "magy")):
                return screen
            time.sleep(0.1)
        pytest.fail(f"{text!r} was not seen:\n{screen}")

    start = (
        f"env TERM=xterm-256color LC_ALL=C.UTF-8 MAGY_PYTHON={sys.executable} emacs -nw -Q"
        f" -L {CLIENT} -L {TESTS} -l {TESTS / 'magy-demo.el'}"
    )
    control("new-session", "-d", "-s", "magy", "-x", "110", "-y", "40", "-c", str(tmp_path), start)
    try:
        see("working on it")
        control("send-keys", "-t", "magy", "C-c", "m", "m")
        see("Ask Magy")
        control("send-keys", "-t", "magy", "make the tests pass", "Enter")
        see("[Magy asks 1]")
        screen = see("[y] allow once")
        assert "? Run pytest -q" in screen
        assert "? question" in screen, "the header line says it too"
        control("send-keys", "-t", "magy", "C-c", "m", "y")
        see("(y) allow once, (s) for this session")
        control("send-keys", "-t", "magy", "s")
        screen = see("allow for the session")
        assert "Magy asks" not in screen
        assert "working on it" in screen, "no window was taken"
    finally:
        control("kill-server")
