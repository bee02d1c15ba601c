"""The audit's chain of hashes: what was changed afterwards is found, by whomever and wherever, and
what crashes and other processes do is not taken for it."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magy_server.listeners.audit_chain import Chain, Verified, verify
from tests.patience import PATIENCE
from tests.thorough import examples

DAYS = ("20261124", "20261125", "20261126")


def made(directory: Path, *, lines: int = 5) -> list[Path]:
    """Three days, each written by a process of its own."""
    for day in DAYS:
        chain = Chain(str(directory))
        for n in range(lines):
            chain.append(day, [{"event": "judged", "tool": "bash", "n": n, "word": "é\u2028x"}])
        chain.close()
    return [directory / f"audit-{day}.jsonl" for day in DAYS]


def checked(directory: Path, expect: str = "") -> Verified:
    return verify(str(directory), expect)


def test_what_was_written_holds(tmp_path: Path) -> None:
    files = made(tmp_path / "audit")
    found = checked(tmp_path / "audit")
    assert (found.files, found.lines, found.broken, list(found.notes)) == (3, 15, "", [])
    numbers = [json.loads(line)["number"] for f in files for line in f.read_bytes().splitlines()]
    assert numbers == list(range(1, 16))
    assert checked(tmp_path / "audit", found.head).expected
    assert (tmp_path / "audit").stat().st_mode & 0o777 == 0o700
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in files)


def test_what_only_looks_like_a_file_of_the_audit_breaks_nothing(tmp_path: Path) -> None:
    directory = tmp_path / "audit"
    made(directory)
    (directory / "audit-20261127.jsonl").touch()
    (directory / "audit-20261128.jsonl").mkdir()
    chain = Chain(str(directory))
    chain.append(DAYS[-1], [{"event": "judged", "n": 16}])
    chain.close()
    found = checked(directory)
    assert (found.lines, found.broken, list(found.notes)) == (16, "", [])


def changed(file: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(change(lines)))


@pytest.mark.parametrize("day", range(3))
@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize(
    "change",
    [
        lambda ls, n: [*ls[:n], ls[n].replace(b"bash", b"grep"), *ls[n + 1 :]],
        lambda ls, n: [*ls[:n], *ls[n + 1 :]],
        lambda ls, n: [*ls[:n], ls[n + 1], ls[n], *ls[n + 2 :]],
        lambda ls, n: [*ls[:n], ls[n], *ls[n:]],
        lambda ls, n: [*ls[:n], b"no line at all\n", *ls[n + 1 :]],
        lambda ls, n: [*ls[:n], b'{"event": "judged"}\n', *ls[n:]],
        lambda ls, n: [*ls[:n], ls[n][:-2] + b"\n", *ls[n + 1 :]],
    ],
    ids=["changed", "taken out", "swapped", "doubled", "garbage", "put in", "cut"],
)
def test_what_is_changed_is_found_and_named(
    tmp_path: Path, day: int, at: int, change: Callable[[list[bytes], int], list[bytes]]
) -> None:
    files = made(tmp_path)
    changed(files[day], lambda lines: change(lines, at))
    found = checked(tmp_path)
    begins = (day, at) == (0, 0)
    if begins and not found.broken:
        assert found.notes, "the first lines of all may be those of files that were deleted"
        return
    assert found.broken.startswith(f"{files[day]}:")
    line = int(found.broken.removeprefix(f"{files[day]}:").split()[0])
    assert at + 1 <= line <= at + 3


def test_a_file_that_is_gone_is_found_unless_it_was_the_first_or_the_last(tmp_path: Path) -> None:
    first, second, last = made(tmp_path)
    head = checked(tmp_path).head
    kept = second.read_bytes()
    second.unlink()
    assert checked(tmp_path).broken.startswith(f"{last}:1 does not follow")
    second.write_bytes(kept)
    first.unlink()
    found = checked(tmp_path)
    assert not found.broken and "the lines before it are gone" in found.notes[0]
    last.unlink()
    assert not checked(tmp_path).broken, "a chain does not know how long it should be"
    assert not checked(tmp_path, head).expected, "but who kept the hash of its end does"


def test_a_line_that_a_crash_cut_off_is_said_and_breaks_nothing(tmp_path: Path) -> None:
    *_, last = made(tmp_path)
    whole = last.read_bytes()
    last.write_bytes(whole[:-20])
    found = checked(tmp_path)
    assert not found.broken and "the last line, is cut off" in found.notes[0]
    chain = Chain(str(tmp_path))
    chain.append(DAYS[2], [{"event": "after"}])
    chain.append("20261127", [{"event": "next day"}])
    found = checked(tmp_path)
    assert not found.broken and f"{last}:5 was cut off" in found.notes[0]
    last.write_bytes(last.read_bytes().replace(whole[-60:-20], b"x" * 40))
    assert checked(tmp_path).broken.startswith(f"{last}:5 is no line that Magy wrote")


def test_older_lines_have_no_hash_and_that_is_said(tmp_path: Path) -> None:
    tmp_path.joinpath(f"audit-{DAYS[0]}.jsonl").write_text('{"event": "old"}\n{"event": "old"}\n')
    made(tmp_path)
    found = checked(tmp_path)
    assert not found.broken and found.notes == [
        "2 lines are older than the chain: they carry no hash."
    ]


def test_a_clock_that_goes_back_breaks_nothing(tmp_path: Path) -> None:
    chain = Chain(str(tmp_path))
    for day in reversed(DAYS):
        chain.append(day, [{"event": "judged"}])
    assert checked(tmp_path).lines == 3 and not checked(tmp_path).broken
    assert [path.name for path in tmp_path.glob("*.jsonl")] == [f"audit-{DAYS[2]}.jsonl"]


def test_a_file_that_is_deleted_meanwhile_is_made_anew(tmp_path: Path) -> None:
    chain = Chain(str(tmp_path))
    chain.append(DAYS[0], [{"event": "judged"}])
    (tmp_path / f"audit-{DAYS[0]}.jsonl").unlink()
    chain.append(DAYS[0], [{"event": "judged"}])
    assert checked(tmp_path).lines == 1


WRITER = """
import os, sys
from magy_server.listeners.audit_chain import Chain

directory, *days = sys.argv[1:]
chain = Chain(directory)
for n in range(40):
    while True:
        try:
            chain.append(days[n * 3 // 40], [{"event": "judged", "pid": os.getpid()}] * 2)
            break
        except BlockingIOError:
            continue
"""


def test_many_processes_write_one_chain(tmp_path: Path) -> None:
    """Python's own pool would leave a process behind, which tests that count them would find."""
    command = [sys.executable, "-c", WRITER, str(tmp_path), *DAYS]
    writers = [subprocess.Popen(command) for _ in range(4)]
    assert [one.wait(PATIENCE) for one in writers] == [0] * 4
    found = checked(tmp_path)
    assert (found.lines, found.broken) == (320, "")


def test_who_holds_the_lock_and_was_stopped_stops_nobody(tmp_path: Path) -> None:
    chain = Chain(str(tmp_path))
    chain.append(DAYS[0], [{"event": "one"}])
    other = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    with pytest.raises(BlockingIOError):
        chain.append(DAYS[0], [{"event": "two"}])
    os.close(other)
    chain.append(DAYS[0], [{"event": "two"}, {"event": "three"}])
    assert checked(tmp_path).lines == 3 and not checked(tmp_path).broken


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_any_changed_byte_is_found(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    directory = tmp_path_factory.mktemp("audit")
    file = made(directory, lines=2)[1]
    content = bytearray(file.read_bytes())
    at = data.draw(st.integers(0, len(content) - 2))
    new = data.draw(st.integers(0, 255).filter(lambda byte: byte != content[at]))
    content[at] = new
    file.write_bytes(bytes(content))
    assert checked(directory).broken
