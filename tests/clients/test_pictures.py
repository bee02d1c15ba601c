"""What Emacs shows of recorded sessions (`record.py`), compared with kept pictures.

NAME.blocks.json has the same as blocks, each of a kind, with its whole text: every client shows
these, in this order. After a change that is meant, REWRITE_PICTURES=1 has them written anew;
look at what git says is different then.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE

HERE = Path(__file__).parent
PICTURES = HERE / "pictures"
CLIENT = HERE.parent.parent / "clients" / "emacs"
NAMES = sorted(path.stem for path in PICTURES.glob("*.jsonl"))


def scenario(recording: Path) -> dict[str, Any]:
    """For the fake server: whoever attaches gets the recorded session."""
    first, *rest = [json.loads(line) for line in recording.read_text("utf-8").splitlines()]
    end = {"type": 3, "message": "end of the recording"}
    notified = [{"notify": line["method"], "params": line["params"]} for line in rest]
    hello = {"capabilities": {"positionEncoding": "utf-32", "experimental": {"magy": {
        "protocol": 1, "version": "test"}}}}  # fmt: skip
    attach = [
        {"result": first["result"]},
        *notified,
        {"notify": "window/logMessage", "params": end},
    ]
    return {
        "initialize": [[{"result": hello}]],
        "magy/session/resume": [attach],
        "magy/review/list": [[{"result": {"files": []}}]],
    }


ORNAMENT = re.compile(r"^(?:USER ❯ |ASSISTANT\n|✻ |— )|  \[transcript\]", re.MULTILINE)


def picture(name: str, directory: Path) -> tuple[str, str]:
    """What Emacs shows, header line first, and its blocks as JSON."""
    script, shown = directory / "scenario.json", directory / "picture.txt"
    blocks = directory / "blocks.json"
    script.write_text(json.dumps(scenario(PICTURES / f"{name}.jsonl")), encoding="utf-8")
    tests = HERE / "emacs"
    done = subprocess.run(
        ["emacs", "-Q", "--batch", "-L", str(CLIENT), "-L", str(tests), "-l", "magy-picture.el",
         "--eval", f'(magy-picture "{script}" "{shown}" "{blocks}")'],
        cwd=tests, env={**os.environ, "MAGY_PYTHON": sys.executable}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=PATIENCE, check=False, restore_signals=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return shown.read_text("utf-8"), plain(json.loads(blocks.read_text("utf-8")))


def plain(blocks: list[list[str]]) -> str:
    """Blocks without what only Emacs writes around them; those without text are not shown."""
    said = [[kind, ORNAMENT.sub("", text).strip()] for kind, text in blocks]
    return json.dumps([one for one in said if one[1]], indent=1, ensure_ascii=False) + "\n"


@pytest.mark.req("F008")
@pytest.mark.needs("emacs")
@pytest.mark.parametrize("name", NAMES)
def test_what_emacs_shows(name: str, tmp_path: Path) -> None:
    kept, kept_blocks = PICTURES / f"{name}.emacs.txt", PICTURES / f"{name}.blocks.json"
    seen, blocks = picture(name, tmp_path)
    if os.environ.get("REWRITE_PICTURES"):
        kept.write_text(seen, encoding="utf-8")
        kept_blocks.write_text(blocks, encoding="utf-8")
    assert seen == kept.read_text("utf-8")
    assert blocks == kept_blocks.read_text("utf-8")


def test_every_recording_can_be_made_again() -> None:
    from tests.clients.record import STREAMS

    assert set(NAMES) == set(STREAMS)
