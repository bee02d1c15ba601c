"""What a project's Magy files may be, to be hashed at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from magy_server.config import trust
from magy_server.config.layers import LARGEST, read
from magy_server.config.trust import files_hash
from magy_server.core.errors import InvalidConfig, NotTrusted


def test_every_file_and_name_counts(tmp_path: Path) -> None:
    seen = {files_hash(str(tmp_path))}
    (tmp_path / ".magy/agent").mkdir(parents=True)
    (tmp_path / ".magy/plan").mkdir()
    for name, text in ((".magy/agent/a.md", "1"), (".magy/agent/a.md", "2"),
                       (".magy/agent/b.md", "2"), ("magy.toml", "")):  # fmt: skip
        (tmp_path / name).write_text(text)
        seen.add(files_hash(str(tmp_path)))
    assert len(seen) == 5
    (tmp_path / ".magy/plan/p.md").write_text("a plan")
    assert files_hash(str(tmp_path)) in seen


@pytest.mark.parametrize("name", ["magy.toml", ".magy/agent/a.md"])
def test_a_pipe_is_not_waited_for(tmp_path: Path, name: str) -> None:
    (tmp_path / ".magy/agent").mkdir(parents=True)
    os.mkfifo(tmp_path / name)
    with pytest.raises(NotTrusted, match="not a regular file"):
        files_hash(str(tmp_path))


def test_what_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".magy").mkdir()
    with open(tmp_path / ".magy/huge", "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(NotTrusted, match=r"huge is larger than 8 MB"):
        files_hash(str(tmp_path))
    (tmp_path / ".magy/huge").unlink()
    monkeypatch.setattr(trust, "ALL", 1 << 20)
    for number in range(3):
        (tmp_path / f".magy/{number}").write_bytes(bytes(400_000))
    with pytest.raises(NotTrusted, match="more than 1 MB of Magy files"):
        files_hash(str(tmp_path))


def test_settings_are_read_from_a_regular_file_of_some_size(tmp_path: Path) -> None:
    file = tmp_path / "magy.toml"
    assert read(file).values == {}
    file.write_bytes(b"default_agent = 'plan'\r\n[limits]\r\nrequests = 3\r\n")
    assert read(file).values == {"default_agent": "plan", "limits": {"requests": 3}}
    file.write_bytes(b"#\n\xff")
    with pytest.raises(InvalidConfig, match=r"is not UTF-8 text \(line 2\); save it as UTF-8"):
        read(file)
    file.unlink()
    file.symlink_to(file)
    with pytest.raises(InvalidConfig, match=r"magy\.toml cannot be read: Too many levels[^\[]*\.$"):
        read(file)
    file.unlink()
    file.write_text("#" * (LARGEST + 1))
    with pytest.raises(InvalidConfig, match="larger than 256 KB"):
        read(file)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(InvalidConfig, match="not a regular file"):
        read(file)
    file.unlink()
    file.mkdir()
    with pytest.raises(InvalidConfig, match="not a regular file"):
        read(file)
