"""The real `magy` command: over pipes, and in a real terminal (tmux)."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from magy_server.cli.commands import session_list
from magy_server.store.sqlite import SqliteStore
from tests.guard import SHUT
from tests.nursery import STARTING, ran
from tests.patience import PATIENCE

COMMAND = (sys.executable, "-m", "magy_server")
Done = subprocess.CompletedProcess[str]


class Magy:
    """Commands in one project with one state directory. `script` plays the model."""

    def __init__(self, root: Path, state: Path) -> None:
        self.root = root
        self.state = state
        self.script_file = state.parent / "model.script"
        (state.parent / "magy.toml").write_text(
            f'[permission]\nedit = "ask"\n\n{SHUT}', encoding="utf-8"
        )

    def script(self, text: str) -> None:
        self.script_file.write_text(text, encoding="utf-8")

    def env(self, env: Mapping[str, str] | None = None) -> dict[str, str]:
        own = {"MAGY_STATE_DIR": str(self.state), "MAGY_CONFIG_DIR": str(self.state.parent)}
        if self.script_file.exists():
            own["MAGY_SCRIPT"] = str(self.script_file)
        return {**os.environ, **own, **(env or {})}

    def __call__(
        self,
        *words: str,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        input: str | None = None,
        **streams: Any,
    ) -> Done:
        """`streams` are those of `subprocess.run`; with them, or with an `env` that an interpreter
        reads when it starts, the command gets a fresh one."""
        command, where, whole = (*COMMAND, *words), cwd or self.root, self.env(env)
        if not streams and not any(name.startswith(STARTING) for name in env or ()):
            return ran(command, str(where), whole, input=input, timeout=PATIENCE)
        streams = {"stdin": subprocess.DEVNULL, **streams} if input is None else streams
        return subprocess.run(
            command, env=whole, cwd=where, input=input, text=True, timeout=PATIENCE, check=False,
            **{**({} if "stdout" in streams else {"capture_output": True}), **streams},
        )  # fmt: skip

    def start(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen(
            [*COMMAND, *words], env=self.env(), cwd=self.root, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options,
        )  # fmt: skip

    def run_json(self, *words: str, **options: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """(updates, result) of `magy run --json`."""
        lines = self("run", "--json", *words, **options).stdout.splitlines()
        *updates, result = map(json.loads, lines)
        return [line["update"] for line in updates], result

    def sessions(self) -> list[dict[str, Any]]:
        """As `magy sessions list --json --all` prints them; a process would take half a second."""

        async def read() -> dict[str, Any]:
            store = await SqliteStore.open(str(self.state))
            try:
                found = await session_list.read(
                    store, str(self.root), only=False, cursor=None, limit=1, whole=True
                )
                return session_list.as_json(found)
            finally:
                await store.close()

        sessions: list[dict[str, Any]] = asyncio.run(read())["sessions"]
        return sessions

    def wait_for_turn(self) -> str:
        """Until a turn has begun; the session's id."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if (found := self.sessions()) and found[0]["turns"]:
                id: str = found[0]["sessionId"]
                return id
            time.sleep(0.05)
        pytest.fail("no turn began")


class Terminal:
    """A shell in a tmux pane; what is on it is read as a person sees it."""

    def __init__(self, magy: Magy, client: subprocess.Popen[str]) -> None:
        """`client` is attached, in tmux's control mode: a process for each look at the screen would
        take most of a test's time."""
        self._magy = magy
        self._client = client
        self._answer()  # of having attached

    def control(self, *words: str) -> str:
        """What a command of tmux says."""
        assert self._client.stdin
        self._client.stdin.write(shlex.join(words) + "\n")
        self._client.stdin.flush()
        return self._answer()

    def _answer(self) -> str:
        """What stands between `%begin` and the same with `%end`, or `%error`."""
        lines: list[str] = []
        number = ""
        for line in self._client.stdout or ():
            kind, _, rest = line.partition(" ")
            if number and kind in ("%end", "%error") and rest == number:
                return "".join(lines)
            if number:
                lines.append(line)
            elif kind == "%begin":
                number = rest
        pytest.fail("tmux has ended")

    def type(self, text: str) -> None:
        """A whole line."""
        self.control("send-keys", "-t", "magy", "-l", text)
        self.press("Enter")

    def press(self, *keys: str) -> None:
        self.control("send-keys", "-t", "magy", *keys)

    def clear(self) -> None:
        """Nothing of what was on the screen is left."""
        self.control("send-keys", "-R", "-t", "magy")

    def run(self, *words: str, **env: str) -> None:
        """Starts `magy` there; when it ends, its exit code is printed as `[code]`. What an earlier
        command showed is gone before."""
        end = time.monotonic() + PATIENCE
        while {*(screen := self.screen()).split()} != {"$"}:
            if time.monotonic() > end:
                pytest.fail(f"the prompt of the shell was not seen:\n{screen}")
            self.clear()
            self.press("Enter")
            time.sleep(0.2)
        variables = " ".join(f"{name}={value}" for name, value in env.items())
        self.type(f'{variables} {self.command(*words)}; echo "[$?]"')

    def command(self, *words: str) -> str:
        return shlex.join((*COMMAND, *words))

    def kill(self) -> None:
        """SIGKILL to what runs in the shell of this pane, and to nothing else."""
        shell = self.control("display-message", "-p", "-t", "magy", "#{pane_pid}").strip()
        for child in psutil.Process(int(shell)).children():
            child.kill()

    def screen(self, *, colours: bool = False) -> str:
        return self.control("capture-pane", "-p", *(["-e"] if colours else []), "-t", "magy")

    def see(self, *texts: str, seconds: float = PATIENCE) -> str:
        """Waits until all of these are on the screen."""
        end = time.monotonic() + seconds
        screen = ""
        while time.monotonic() < end:
            screen = self.screen()
            if all(text in screen for text in texts):
                return screen
            time.sleep(0.05)
        pytest.fail(f"{texts!r} were not seen:\n{screen}")

    def insist(self, key: str, *texts: str) -> str:
        """Presses a key until all of these are on the screen. A busy machine may read a key
        together with those before it, and such keys answer nothing."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            self.press(key)
            with suppress(pytest.fail.Exception):
                return self.see(*texts, seconds=1)
        return self.see(*texts)


@contextmanager
def terminal(magy: Magy, term: str = "xterm-256color", size: str = "90x40") -> Iterator[Terminal]:
    tmux = ["tmux", "-L", f"magy-{os.getpid()}-{secrets.token_hex(4)}", "-f", "/dev/null"]
    names = ("MAGY_STATE_DIR", "MAGY_CONFIG_DIR", "MAGY_SCRIPT", "PATH", "HOME")
    env = [f"{name}={value}" for name, value in magy.env().items() if name in names]
    shell = ["env", "-i", *env, f"TERM={term}", "LC_ALL=C.UTF-8", "PS1=$ ", "bash", "--norc"]
    width, height = size.split("x")
    new = ["new-session", "-d", "-s", "magy", "-x", width, "-y", height, "-c", str(magy.root)]
    subprocess.run([*tmux, *new, *shell], check=True, timeout=PATIENCE)
    attach = [*tmux, "-C", "attach", "-f", "ignore-size,no-output", "-t", "magy"]
    pipe = subprocess.PIPE
    with subprocess.Popen(attach, stdin=pipe, stdout=pipe, encoding="utf-8") as client:
        try:
            one = Terminal(magy, client)
            one.see("$")
            yield one
        finally:
            subprocess.run([*tmux, "kill-server"], check=False, timeout=PATIENCE)
            # To the end of its output: where tmux cannot write that, it waits for ever.
            client.communicate(timeout=PATIENCE)
