"""The recorded sessions (`record.py`) come to the same blocks in Neovim as in Emacs and VS Code."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.clients.nvim.embedded import CLIENT, program
from tests.patience import PATIENCE

HERE = Path(__file__).parent
PICTURES = HERE.parent / "pictures"
RECORDINGS = sorted(PICTURES.glob("*.jsonl"))


def lua(script: str, *words: str) -> Any:
    """What a script of this folder prints, as JSON."""
    done = subprocess.run(
        [program(), "--clean", "--headless", "-l", str(HERE / script), str(CLIENT), *words],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, check=False,
        env=dict(os.environ),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.req("F008")
def test_a_recorded_session_has_the_same_blocks_as_in_emacs() -> None:
    found = dict(zip(RECORDINGS, lua("blocks.lua", *map(str, RECORDINGS)), strict=True))
    for recording, blocks in found.items():
        kept = json.loads(recording.with_suffix(".blocks.json").read_text("utf-8"))
        assert blocks == kept, recording.stem


def test_a_session_that_is_read_from_its_log_in_pages_is_what_it_was_live() -> None:
    names = [PICTURES / f"{name}.jsonl" for name in ("tools", "agents", "restore", "plan")]
    for name, sizes in zip(names, lua("pages.lua", *map(str, names)), strict=True):
        kept = json.loads(name.with_suffix(".blocks.json").read_text("utf-8"))
        for size, blocks in sizes.items():
            # A prompt that waited may stand where it came if the page ends before it was admitted.
            if int(size) > 7:
                assert blocks == kept, (name.stem, size)
            else:
                assert sorted(blocks) == sorted(kept), (name.stem, size)


def test_what_is_no_update_changes_nothing() -> None:
    before, after = lua("nonsense.lua", str(PICTURES / "tools.jsonl"))
    assert before == after and len(before) > 5


def test_text_that_would_steer_a_screen_is_shown_as_what_it_is() -> None:
    raw = "a\x1b[31mred\x1b[0m\x1b]0;title\x07\r\nb\u202ec\x07\x9b1m\x00é\ufeff"
    assert lua("harmless.lua", json.dumps([raw, "plain é 𝒳\tword"])) == [
        "ared\nb<U+202E>c<U+0007><U+009B>1m<U+0000>é<U+FEFF>",
        "plain é 𝒳\tword",
    ]
