"""Temporary directories go with their process, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from magy_server.tools.temporary import temporary

TOP = Path(__file__).parents[2]
SCRIPT = """
import asyncio, os, signal, sys
from magy_server.tools.temporary import temporary

async def main():
    async with temporary(sys.argv[1]) as path:
        os.makedirs(path + "/a/b")
        print(path, *os.listdir(sys.argv[1]), flush=True)
        os.kill(os.getpid(), int(sys.argv[2]))

asyncio.run(main())
"""


def another(within: Path, end: int) -> list[str]:
    """A process that makes one, ends so meanwhile, and says where it is and what there is."""
    words = [sys.executable, "-c", SCRIPT, str(within), str(end)]
    return subprocess.run(words, cwd=TOP, capture_output=True, text=True).stdout.split()


async def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path) -> None:
    mine = tmp_path / "magy-temporary-notes"
    mine.mkdir()
    async with temporary(str(tmp_path)) as held:
        (Path(held) / "index").write_text("x")
        left, *_ = another(tmp_path, signal.SIGKILL)
        assert Path(left).is_dir()
        own, *there = another(tmp_path, 0)
        names = {os.path.basename(path) for path in (own, held, mine)}
        assert set(there) == names and (Path(held) / "index").exists()
    assert os.listdir(tmp_path) == [mine.name]


def test_a_directory_that_cannot_be_listed_is_no_obstacle(tmp_path: Path) -> None:
    script = (
        "import asyncio, concurrent.futures.thread, os, sys\n"
        "from magy_server.tools.temporary import temporary\n"
        "async def main():\n"
        "    async with temporary(sys.argv[1]) as path:\n"
        "        print(os.path.isdir(path))\n"
        "if os.geteuid() == 0:\n"
        "    os.setuid(54321)\n"
        "asyncio.run(main())\n"
    )
    place = tmp_path / "tmp"
    place.mkdir()
    place.chmod(0o1733)
    for above in (tmp_path, *tmp_path.parents[:-2]):
        above.chmod(above.stat().st_mode | 0o111)
    words = [sys.executable, "-c", script, str(place)]
    done = subprocess.run(words, cwd=TOP, capture_output=True, text=True)
    assert done.stdout == "True\n", done.stderr
