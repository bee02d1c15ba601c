"""A closed file that gets other bytes stays what it was in all else: names, mode, attributes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from magy_server.core.errors import EditRefused
from magy_server.core.values import Version, digest
from magy_server.tools.files import versions

OLD, NEW = b"one\ntwo\nthree\n", b"one\n2\n"


def put(file: Path) -> None:
    was, _ = versions.look(str(file.parent), str(file))
    now = Version(hash=digest(NEW), kind=was.kind)
    versions.put(str(file.parent), str(file), was, now, NEW)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path.resolve() / "a.txt"
    path.write_bytes(OLD)
    return path


@pytest.mark.parametrize("mode", [0o640, 0o744])
def test_other_names_of_a_file_see_the_edit(file: Path, mode: int) -> None:
    other = file.with_name("other.txt")
    os.link(file, other)
    file.chmod(mode)
    put(file)
    assert other.read_bytes() == NEW and file.samefile(other)
    assert file.stat().st_mode & 0o777 == mode
    assert sorted(file.parent.iterdir()) == [file, other]


def test_a_file_with_other_names_is_not_written_when_it_is_another(file: Path) -> None:
    os.link(file, file.with_name("other.txt"))
    with pytest.raises(EditRefused, match="was changed"):
        was, now = Version(hash=digest(b"else")), Version(hash=digest(NEW))
        versions.put(str(file.parent), str(file), was, now, NEW)
    assert file.read_bytes() == OLD


def test_a_file_with_other_names_becomes_executable(file: Path) -> None:
    other = file.with_name("other.txt")
    os.link(file, other)
    was, data = versions.look(str(file.parent), str(file))
    now = Version(hash=was.hash, kind="executable")
    versions.put(str(file.parent), str(file), was, now, data)
    assert os.access(other, os.X_OK) and file.samefile(other)


def test_a_file_of_somebody_else_with_other_names_is_written() -> None:
    """Whoever may write it need not own it: its mode is left alone. Only a superuser can give files
    away: for others it is their own."""
    with tempfile.TemporaryDirectory() as open_to_all:
        file = Path(open_to_all).resolve() / "a.txt"
        file.write_bytes(OLD)
        os.link(file, file.with_name("other.txt"))
        file.parent.chmod(0o777)
        file.chmod(0o666)
        if os.geteuid() == 0:
            os.chown(file, 12345, 12345)
        assert _as_somebody_else(lambda: put(file)) == 0
        assert file.read_bytes() == NEW and file.stat().st_mode & 0o777 == 0o666


def _as_somebody_else(work: Callable[[], None]) -> int:
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgid(54321)
                os.setuid(54321)
            work()
            os._exit(0)
        except BaseException:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_extended_attributes_stay(file: Path) -> None:
    try:
        os.setxattr(file, "user.kept", b"1")
    except (AttributeError, OSError) as error:
        pytest.skip(f"no extended attributes here: {error}")
    put(file)
    assert file.read_bytes() == NEW and os.getxattr(file, "user.kept") == b"1"


@pytest.mark.parametrize("mode", [0o600, 0o744])
def test_a_file_that_changes_and_comes_back_has_its_mode(file: Path, mode: int) -> None:
    file.chmod(mode)
    put(file)
    was, data = versions.look(str(file.parent), str(file))
    assert was.mode == mode
    versions.put(str(file.parent), str(file), was, Version(), b"")
    versions.put(str(file.parent), str(file), Version(), was, data)
    assert file.read_bytes() == NEW and file.stat().st_mode & 0o777 == mode
