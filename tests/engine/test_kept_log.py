"""CASPER's emotional log as a file: several processes write it, one dies, and somebody else has put
something there."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from magy_server.core.errors import InvalidRequest
from magy_server.core.magi.emotional_log import FILE, Log
from magy_server.team.magi import kept_log
from tests.patience import PATIENCE

WRITER = """
import sys, time
from magy_server.core.magi.emotional_log import added, entry
from magy_server.core.magi.vote import Memory
from magy_server.team.magi import kept_log
root, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
for number in range(count):
    memory = Memory(valence=0.1, primary_emotion="calm", lesson=f"{name} {number}")
    new = entry("Should we?", memory, time.time())
    kept_log.change(root, lambda log: added(log, new, time.time()))
    print(number, flush=True)
"""


def writer(root: Path, name: str, count: int) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", WRITER, str(root), name, str(count)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def lessons(root: Path) -> set[str]:
    return {one.lesson_1_line for one in kept_log.read(str(root)).entries}


@pytest.mark.req("D080")
def test_two_processes_write_it_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    both = [writer(tmp_path, name, 15) for name in ("one", "other")]
    for process in both:
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
    assert lessons(tmp_path) == {f"{name} {n}" for name in ("one", "other") for n in range(15)}
    (file,) = (tmp_path / "memory").iterdir()
    assert file.name == "casper-emotional-log.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_writer_that_is_killed_leaves_the_log_whole(tmp_path: Path) -> None:
    sure: set[str] = set()
    for round_ in range(4):
        process = writer(tmp_path, f"round {round_}", 400)
        assert process.stdout
        for number in range(3):
            assert process.stdout.readline().strip() == str(number)
        time.sleep(0.003 * round_)  # wherever it is by then
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=PATIENCE)
        sure |= {f"round {round_} {number}" for number in range(3)}
        assert sure <= lessons(tmp_path)
    (tmp_path / "memory" / ".casper-0123").write_text("half an ent")
    kept_log.change(str(tmp_path), lambda log: log.model_copy(update={"entries": ()}))
    assert os.listdir(tmp_path / "memory") == ["casper-emotional-log.json"]


def test_what_is_no_log_of_magys_is_left_alone(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("private")
    for name in ("linked", "folder", "pipe", "file", "broken"):
        (tmp_path / name).mkdir()
    (tmp_path / "linked" / "memory").symlink_to(outside)
    (tmp_path / "file" / "memory").write_text("")
    memory = {name: tmp_path / name / "memory" for name in ("folder", "pipe", "broken")}
    for folder in memory.values():
        folder.mkdir()
    (memory["folder"] / FILE).mkdir()
    os.mkfifo(memory["pipe"] / FILE)
    (memory["broken"] / FILE).symlink_to(outside / "file")
    for name in ("linked", "folder", "pipe", "file", "broken"):
        for attempt in (kept_log.read, lambda root: kept_log.change(root, lambda _: Log())):
            with pytest.raises(InvalidRequest, match=r"memory/casper-emotional-log\.json "):
                attempt(str(tmp_path / name))
    assert (outside / "file").read_text() == "private" and len(os.listdir(outside)) == 1
