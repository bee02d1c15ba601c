"""An Emacs that a program drives as a person does: in batch, in a terminal, or in a window.

`installed` makes a home directory in which Magy is installed as the guide says, with a scripted
model. Keys are typed; what came of them is asked over a socket, and always waited for.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from socket import AF_UNIX
from socket import socket as Socket
from typing import Any

from tests import nursery
from tests.patience import PATIENCE

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
GUIDE = ROOT / "docs" / "start" / "emacs.md"
_BLOCK = re.compile(r"^```elisp\n(.*?)^```$", re.MULTILINE | re.DOTALL)

INTERPRETED = (
    "(dolist (option '(native-comp-deferred-compilation native-comp-jit-compilation))"
    " (set option nil))"
)
"""In a new home Emacs would compile in the background all that it loads, each time."""

_QUOTED = re.compile(r"&(.)")
_MEANS = {"_": " ", "n": "\n"}
"""What Emacs's server writes for blanks and line ends, after an ampersand."""

Environment = Mapping[str, str]
Type = Callable[[str], None]


class NotSeen(AssertionError):
    """What was waited for did not come."""


def installed(home: Path, script: str) -> Path:
    """Installs Magy in a home directory, in every word as the guide says, but that its program asks
    the nursery for a server. The model follows `script`. The answer is the init file."""
    checkout = home / "src" / "magy"
    checkout.mkdir(parents=True)
    (checkout / "clients").symlink_to(ROOT / "clients")
    nursery.write_program(checkout / ".venv" / "bin" / "magy")
    init = home / ".emacs.d" / "init.el"
    init.parent.mkdir()
    blocks = _BLOCK.findall(GUIDE.read_text("utf-8"))
    init.write_text("\n".join(blocks).replace("/home/me/", f"{home}/"), "utf-8")
    model = home / "model.script"
    model.write_text(script, "utf-8")
    settings = home / "config" / "magy" / "magy.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(
        'model.default = "scripted/model"\ntitles = false\n\n'
        f'[[provider]]\nname = "scripted"\nkind = "scripted"\nscript = "{model}"\n',
        "utf-8",
    )
    return init


class Driven:
    """A running Emacs."""

    def __init__(
        self,
        socket: Path,
        type: Type | None = None,
        screen: Callable[[], str] = str,
    ) -> None:
        self.screen = screen
        """What a person sees of the terminal."""
        self._socket = socket
        self._type = type
        """For keys that do not come over the socket."""

    def ask(self, form: str) -> Any:
        """The value of a form in the buffer that is shown: whatever JSON can say."""
        printed = self._evaluate(f"(magy-driven-answer '(progn {form}))")
        answer = json.loads(re.sub(r"\\(.)", r"\1", printed.strip()[1:-1], flags=re.DOTALL))
        if "error" in answer:
            raise NotSeen(f"{form}: {answer['error']}")
        return answer["value"]

    def _evaluate(self, form: str) -> str:
        """What Emacs prints of a form's value. This speaks as `emacsclient` does: a process for
        each look would take most of a test's time."""
        said = bytearray()
        with Socket(AF_UNIX) as one:
            one.settimeout(PATIENCE)
            try:
                one.connect(str(self._socket))
                one.sendall(f"-current-frame -eval {_quoted(form)} \n".encode())
                while piece := one.recv(64 * 1024):
                    said += piece
            except OSError as error:
                raise NotSeen(f"Emacs does not answer: {error!r}") from None
        lines = [line.partition(" ") for line in said.decode("utf-8", "replace").split("\n")]
        printed = "".join(text for kind, _, text in lines if kind in ("-print", "-print-nonl"))
        if not printed:
            raise NotSeen(f"Emacs does not answer: {said.decode('utf-8', 'replace')}")
        return _QUOTED.sub(lambda found: _MEANS.get(found[1], found[1]), printed)

    def until(self, form: str, seconds: float = PATIENCE) -> Any:
        """Waits until a form is true; the answer is its value."""
        end = time.monotonic() + seconds
        while not (value := self.ask(form)):
            if time.monotonic() > end:
                raise NotSeen(f"{form} stays false.\n{self.report()}")
            time.sleep(0.03)
        return value

    def keys(self, *keys: str) -> None:
        """Types keys, in the syntax of `kbd`, and waits until they were read. What a command reads
        must come with the keys of the command: in batch nobody types later."""
        typed = " ".join(keys)
        if self._type:
            self._type(typed)
        else:
            self.ask(f"(magy-driven-type {lisp(typed)})")
            self.until("(magy-driven-typed-p)")

    def report(self) -> str:
        """What is on the screen, for one who wants to know why something did not come."""
        return str(
            self.ask(
                "(concat (mapconcat (lambda (window) (with-current-buffer (window-buffer window)"
                ' (format "--- %s\\n%s" (buffer-name) (buffer-string)))) (window-list nil t) "\\n")'
                ' "\\n--- messages\\n" (with-current-buffer (messages-buffer) (buffer-string)))'
            )
        )


def _quoted(text: str) -> str:
    """One word of what Emacs's server reads."""
    for char, written in (("&", "&&"), ("\n", "&n"), (" ", "&_")):
        text = text.replace(char, written)
    return text


def letters(text: str) -> str:
    """The keys that type a text."""
    return " ".join("SPC" if char == " " else char for char in text)


def lisp(text: str) -> str:
    """A string in Lisp."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@contextmanager
def emacs(
    kind: str, init: Path, cwd: Path, display: str = "", env: Environment | None = None
) -> Iterator[Driven]:
    """Starts an Emacs of a kind ("batch", "terminal", "window") that has read `init`."""
    with ExitStack() as stack:
        # The address of a socket must be short.
        place = stack.enter_context(tempfile.TemporaryDirectory(prefix="magy-", dir="/tmp"))
        socket = Path(place) / "emacs"
        env = {**(env or os.environ), "MAGY_DRIVEN": str(socket), "LC_ALL": "C.UTF-8"}
        load = [
            "-Q",
            "--eval",
            INTERPRETED,
            "-l",
            str(init),
            "-l",
            str(HERE / "emacs" / "magy-driven.el"),
        ]
        program = shutil.which("emacs") or "emacs"
        if kind == "terminal":
            driven = stack.enter_context(_terminal([program, "-nw", *load], socket, cwd, env))
        else:
            where = ["--batch"] if kind == "batch" else ["-g", "100x40+0+0"]
            command = [program, *where, *load]
            driven = stack.enter_context(
                _process(command, socket, cwd, {**env, "DISPLAY": display})
            )
        yield driven


@contextmanager
def _process(command: list[str], socket: Path, cwd: Path, env: Environment) -> Iterator[Driven]:
    with open(socket.with_name("output"), "w+b") as output, subprocess.Popen(
        command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        # Emacs in batch dies of writing to a server that was killed, unless it inherits that
        # SIGPIPE is ignored, as it is in Python.
        restore_signals=False,
    ) as process:  # fmt: skip
        try:
            _started(socket, lambda: process.poll() is None)
            yield Driven(socket)
        finally:
            # Not by a signal: one that comes while Emacs draws a window can hang it.
            with suppress(NotSeen, subprocess.TimeoutExpired):
                Driven(socket).ask("(kill-emacs)")
            with suppress(subprocess.TimeoutExpired):
                process.wait(5)
            process.kill()


@contextmanager
def _terminal(command: list[str], socket: Path, cwd: Path, env: Environment) -> Iterator[Driven]:
    name = ["tmux", "-L", f"magy-{os.getpid()}-{socket.parent.name}", "-f", "/dev/null"]

    def control(*words: str) -> str:
        return subprocess.run(
            [*name, *words], env={**env, "TERM": "xterm-256color"}, cwd=cwd,
            capture_output=True, text=True, check=False, timeout=PATIENCE,
        ).stdout  # fmt: skip

    def type(keys: str) -> None:
        words = {"SPC": "Space", "RET": "Enter", "TAB": "Tab", "ESC": "Escape", ";": "\\;"}
        control("send-keys", "-t", "magy", *(words.get(key, key) for key in keys.split(" ")))

    control("new-session", "-d", "-s", "magy", "-x", "110", "-y", "40", *command)
    try:
        _started(socket, lambda: "magy" in control("list-sessions"))
        yield Driven(socket, type, lambda: control("capture-pane", "-p", "-t", "magy"))
    finally:
        control("kill-server")


def _started(socket: Path, alive: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not _listens(socket):
        if not alive() or time.monotonic() > end:
            output = socket.with_name("output")
            raise NotSeen(f"Emacs did not start: {output.read_text() if output.exists() else ''}")
        time.sleep(0.03)


def _listens(path: Path) -> bool:
    """A socket is there a moment before anything listens at it."""
    with Socket(AF_UNIX) as one, suppress(OSError):
        one.connect(str(path))
        return True
    return False


@contextmanager
def xvfb(size: str = "1200x900") -> Iterator[str]:
    """A display of its own; Xvfb picks a free number and writes it when it is ready."""
    reader, writer = os.pipe()
    command = ["Xvfb", "-displayfd", str(writer), "-noreset", "-nolisten", "tcp"]
    with subprocess.Popen(
        [*command, "-screen", "0", f"{size}x24"], pass_fds=[writer], stderr=subprocess.DEVNULL
    ) as server:
        os.close(writer)
        try:
            with os.fdopen(reader) as number:
                yield f":{number.readline().strip()}"
        finally:
            server.terminate()
