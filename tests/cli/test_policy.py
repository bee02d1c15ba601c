"""Guardrails and `magy policy` in a terminal."""

from __future__ import annotations

import pytest

from tests.cli.harness import Magy


@pytest.mark.req("A116")
def test_a_pattern_that_cannot_be_read_stops_the_start(magy: Magy) -> None:
    magy.script("text: Hello.\n")
    (magy.root / "magy.toml").write_text('[[guardrail]]\naction = "block"\npattern = "rm ("\n')
    done = magy("run", "hello")
    assert done.returncode == 2 and "Hello." not in done.stdout
    assert f"{magy.root}/magy.toml: guardrail 1 (*, block): the pattern 'rm ('" in done.stderr
    assert magy("config", "check").returncode == 2
