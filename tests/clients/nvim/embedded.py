"""A real Neovim that a program drives as a person does: keys are typed, the screen is read back.

It runs embedded, spoken to by its RPC, with a screen of 80 columns, no user's configuration, and
the plugin on its runtimepath. What is waited for is always a condition.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.clients.nvim.msgpack import Unpacker, pack
from tests.patience import PATIENCE

ROOT = Path(__file__).parents[3]
CLIENT = ROOT / "clients" / "nvim"
BIN = Path(sys.executable).parent
_CHOOSES = """
_G.wanted = ...
_G.offered = _G.offered or {}
vim.ui.select = function(items, options, done)
  local texts = vim.tbl_map(options.format_item or tostring, items)
  _G.offered[options.prompt or ""] = texts
  for _, wanted in ipairs(_G.wanted) do
    for place, text in ipairs(texts) do
      if text:find(wanted, 1, true) then
        return done(items[place], place)
      end
    end
  end
  error("nothing to choose: " .. vim.inspect(texts))
end
"""


def program() -> str:
    """The Neovim of this environment, or of the machine. Without any, the test is left out."""
    found = shutil.which("nvim", path=f"{BIN}{os.pathsep}{os.environ['PATH']}")
    if found is None:
        pytest.skip("nvim not installed")
    return found


class Unanswered(AssertionError):
    """Neovim ended, or what was waited for did not come."""


class Neovim:
    """A running Neovim."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin and process.stdout
        self._stdin, self._values = process.stdin, Unpacker(process.stdout)
        self._count = 0
        self.told: Callable[[str, list[Any]], object] = lambda method, params: None
        """Takes what Neovim says by itself: what it draws, once a screen is attached."""
        self._process = psutil.Process(process.pid)

    def server(self) -> psutil.Process:
        """The process of Magy's server."""
        (found,) = [one for one in self._process.children() if "magy" in one.name()]
        return found

    def request(self, method: str, *args: Any) -> Any:
        """Calls a function of Neovim's API."""
        self._count += 1
        self._stdin.write(pack([0, self._count, method, list(args)]))
        self._stdin.flush()
        while True:
            try:
                message = self._values.read()
            except EOFError:
                raise Unanswered(f"Neovim has ended before it answered {method}") from None
            if message[0] == 1 and message[1] == self._count:
                break
            if message[0] == 2:
                self.told(message[1], message[2])
        if message[2] is not None:
            raise Unanswered(f"{method}: {message[2]}")
        return message[3]

    def lua(self, code: str, *args: Any) -> Any:
        """What a chunk of Lua returns."""
        return self.request("nvim_exec_lua", code, list(args))

    def command(self, line: str) -> None:
        self.request("nvim_command", line)

    def keys(self, keys: str) -> None:
        """Types keys, as `nvim_input` writes them (`<CR>`, `<C-s>`)."""
        self.request("nvim_input", keys)

    def screen(self) -> list[str]:
        """What a person sees: each row of the screen as text."""
        rows: list[str] = self.lua(
            """
            vim.cmd.redraw()
            local rows = {}
            for row = 1, vim.o.lines do
              local cells = {}
              for column = 1, vim.o.columns do
                cells[column] = vim.fn.screenstring(row, column)
              end
              rows[row] = table.concat(cells):gsub("%s+$", "")
            end
            return rows
            """
        )
        return rows

    def seen(self) -> str:
        return "\n".join(self.screen())

    def text(self, buffer: int = 0) -> str:
        """The whole text of a buffer."""
        return "\n".join(self.request("nvim_buf_get_lines", buffer, 0, -1, False))

    def until(self, what: str, holds: Callable[[], Any], seconds: float = PATIENCE) -> Any:
        """Waits until `holds` returns something true, and returns that."""
        end = time.monotonic() + seconds
        while not (value := holds()):
            if time.monotonic() > end:
                said = self.request("nvim_exec2", "messages", {"output": True})["output"]
                raise Unanswered(f"waited in vain for {what}\n{self.seen()}\n--- messages\n{said}")
            time.sleep(0.03)
        return value

    def chooses(self, *words: str) -> None:
        """From now on, of each list that Neovim offers, what has one of these words is chosen: the
        first word that is there counts. `_G.offered` keeps the lists, by their prompts."""
        self.lua(_CHOOSES, list(words))

    def until_seen(self, *words: str) -> str:
        """Waits until all of the words are on the screen, and returns it."""

        def all_there() -> str:
            seen = self.seen()
            return seen if all(word in seen for word in words) else ""

        return str(self.until(f"{words} on the screen", all_there))

    def until_lua(self, code: str, *args: Any) -> Any:
        """Waits until a chunk of Lua returns something true, and returns that."""
        return self.until(code, lambda: self.lua(code, *args))


@contextmanager
def neovim(
    cwd: Path, env: Mapping[str, str], *words: str, lines: int = 24, columns: int = 80
) -> Iterator[Neovim]:
    """Starts Neovim in a directory; `words` are further arguments. `env` has a PATH on which `magy`
    is found."""
    command = [
        program(), "--clean", "--embed", "--headless",
        "--cmd", f"set runtimepath^={CLIENT} lines={lines} columns={columns} nomore",
        # Else each Python file has it look for a Python, in several processes.
        "--cmd", "let g:loaded_python3_provider = 0",
        *words,
    ]  # fmt: skip
    log = Path(env.get("HOME", cwd)) / "nvim-stderr"
    with open(log, "wb") as errors, subprocess.Popen(
        command, cwd=cwd, env=env,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
    ) as process:  # fmt: skip
        editor = Neovim(process)
        try:
            yield editor
        finally:
            try:
                editor.keys("<C-\\><C-n>")
                editor._stdin.write(pack([2, "nvim_command", ["qall!"]]))
                editor._stdin.flush()
                process.wait(20)
            except (OSError, Unanswered, subprocess.TimeoutExpired):
                process.kill()
