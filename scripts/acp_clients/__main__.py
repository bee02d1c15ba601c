"""Real ACP clients make a whole turn with `magy acp` and a scripted model:

    python -m scripts.acp_clients codecompanion DIRECTORY PLENARY
    python -m scripts.acp_clients avante DIRECTORY NUI PLENARY
    python -m scripts.acp_clients acp-el DIRECTORY
    python -m scripts.acp_clients sdk PYTHON

The directories are checkouts of codecompanion.nvim, avante.nvim, nui.nvim, plenary.nvim and
acp.el; PYTHON is an interpreter with the package `agent-client-protocol`. Neovim, Emacs and `magy`
are those of PATH. Each asks for an edit of a file that has unsaved text (with avante: of one that
has none), answers the question, stops a turn, and goes on with the session after `kill -9`. The
exit code is 0 if all of it was seen.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "clients" / "acp.md"
TEXT = 'def greet():\n    print("hi")\n'
SCRIPT = """prompt: again
text: Here again.
prompt: slow
speed: 20
text: This is said slowly, so that there is time to stop it before it ends, and more is to come.
prompt: polite
text: I will greet politely.
call: edit_file {"path": "app.py", "old_text": "hi", "new_text": "good morning"}
---
text: Done.
"""
LONGEST = 120.0
"""Seconds."""


def main() -> int:
    chosen = _parser().parse_args()
    with tempfile.TemporaryDirectory() as folder:
        project, state = Path(folder, "project"), Path(folder, "state")
        for directory in (project / ".git", state):
            directory.mkdir(parents=True)
        file = project / "app.py"
        file.write_text(TEXT)
        (state / "model.script").write_text(SCRIPT)
        (state / "magy.toml").write_text('titles = false\n\n[permission]\nedit = "ask"\n')
        guide = Path(folder, "guide")
        guide.write_text(_snippet(chosen.client))
        about = {
            "HOME": folder, "MAGY_STATE_DIR": str(state), "MAGY_CONFIG_DIR": str(state),
            "MAGY_SCRIPT": str(state / "model.script"), "FILE": str(file), "GUIDE": str(guide),
            "PLUGINS": ":".join(map(os.path.abspath, chosen.directories)),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }  # fmt: skip
        command = _command(chosen.client, chosen.directories)
        return subprocess.run(
            command, cwd=project, env=about, timeout=LONGEST, check=False
        ).returncode


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.acp_clients", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("client", choices=("codecompanion", "avante", "acp-el", "sdk"))
    parser.add_argument("directories", nargs="+")
    return parser


def _command(client: str, directories: list[str]) -> list[str]:
    if client == "codecompanion":
        return ["nvim", "--headless", "--clean", "-l", str(HERE / "codecompanion.lua")]
    if client == "avante":
        return ["nvim", "--headless", "--clean", "-l", str(HERE / "avante.lua")]
    if client == "acp-el":
        return ["emacs", "-Q", "--batch", "-L", directories[0], "-l", str(HERE / "acp_el.el")]
    return [directories[0], str(HERE / "sdk.py")]


def _snippet(client: str) -> str:
    """What the page says to paste for a client of Neovim; nothing for others."""
    found = re.search(rf"^\*\*Neovim, {client}\*\*:\n\n```lua\n(.*?)^```$", PAGE.read_text(),
                      re.DOTALL | re.MULTILINE | re.IGNORECASE)  # fmt: skip
    return found[1] if found else ""


if __name__ == "__main__":
    sys.exit(main())
