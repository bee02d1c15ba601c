"""Which values a file of secrets holds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from magy_server.config import layers
from magy_server.config.secret_files import values
from magy_server.core.errors import InvalidConfig


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("KEY=abc", "abc"), ("export KEY = abc # x", "abc"), ('KEY="a # b" # c', "a # b"),
        ("KEY='a b'", "a b"), ("key.name: abc", "abc"), ("abc-def", "abc-def"), ("# abc", ""),
        ("", ""), ("KEY=", ""),
    ],
)  # fmt: skip
def test_the_value_of_a_line(tmp_path: Path, line: str, value: str) -> None:
    (tmp_path / "s").write_text(f"{line}\n")
    assert list(values(["s"], str(tmp_path))) == ([value] if value else [])


def test_what_is_no_file_has_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert list(values(["none", "pipe", "."], str(tmp_path))) == []
    (tmp_path / "s").write_text("abc\n")
    assert list(values([str(tmp_path / "s")], None)) == ["abc"]
    assert list(values(["s"], None)) == []


@pytest.mark.parametrize(
    ("pattern", "said"), [("(", "missing )"), ("x*", "matches nothing at all")]
)
def test_a_wrong_pattern_names_its_file(tmp_path: Path, pattern: str, said: str) -> None:
    file = tmp_path / "magy.toml"
    file.write_text(f"[redact]\npatterns = ['{pattern}']\n")
    with pytest.raises(InvalidConfig) as error:
        layers.load(str(tmp_path), trusted=True, options={})
    assert (
        error.value.message.startswith(f"{file}: redact.patterns") and said in error.value.message
    )
