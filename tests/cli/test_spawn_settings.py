"""The `[spawn]` settings: clamped to what holds on any machine, and said."""

from __future__ import annotations

import json

import pytest

from magy_server.core import spawn_settings
from magy_server.core.spawn_settings import SpawnSettings
from tests.cli.harness import Magy

RANGES = {"max_depth": (1, 3), "max_children": (1, 4), "max_total": (1, 256),
          "max_concurrent": (1, 10), "max_queue": (1, 200)}  # fmt: skip


def configure(magy: Magy, **spawn: int) -> None:
    lines = "".join(f"{name} = {value}\n" for name, value in spawn.items())
    (magy.state.parent / "magy.toml").write_text(f"[spawn]\n{lines}", encoding="utf-8")


@pytest.mark.req("C049", "C050", "C051")
def test_what_is_out_of_range_is_clamped_and_said(magy: Magy) -> None:
    shown = json.loads(magy("config", "--json").stdout)["values"]
    defaults = {name: shown[f"spawn.{name}"]["value"] for name in RANGES}
    assert defaults == {"max_depth": 2, "max_children": 4, "max_total": 24, "max_concurrent": 8,
                        "max_queue": 200}  # fmt: skip
    for end, asked in ((0, dict.fromkeys(RANGES, -5)), (1, dict.fromkeys(RANGES, 999))):
        configure(magy, **asked)
        done = magy("config", "check")
        assert done.returncode == 0
        for name, range in RANGES.items():
            said = f"spawn.{name}: {asked[name]} becomes {range[end]} ({range[0]} to {range[1]})."
            assert said in done.stdout
        assert "is right" not in done.stdout
        shown = json.loads(magy("config", "--json").stdout)["values"]
        holds = {name: (shown[f"spawn.{name}"]["value"], shown[f"spawn.{name}"]["asked"])
                 for name in RANGES}  # fmt: skip
        assert holds == {name: (range[end], asked[name]) for name, range in RANGES.items()}
        table = magy("config").stdout.splitlines()
        (line,) = [line for line in table if line.startswith("max_total")]
        assert line.startswith(f"max_total = {RANGES['max_total'][end]} ")
        assert line.endswith(f"magy.toml, asked: {asked['max_total']}")


def test_a_number_of_any_length_is_clamped(magy: Magy) -> None:
    """A project that nobody trusts may set it: it must not keep Magy from starting."""
    configure(magy, max_depth=-(10**400))
    done = magy("config", "check")
    assert done.returncode == 0 and "becomes 1 (1 to 3)." in done.stdout


def test_within_range_nothing_is_said(magy: Magy) -> None:
    configure(magy, max_depth=3, max_children=1, max_total=256, max_concurrent=10, max_queue=1)
    said = magy("config", "check").stdout
    assert "becomes" not in said and "is right" in said
    assert "asked" not in magy("config").stdout


@pytest.mark.req("C052", "C054")
def test_what_holds_is_logged_where_it_is_used(magy: Magy) -> None:
    configure(magy, max_depth=999)
    magy.script("prompt: hello\ntext: Good day.\n")
    done = magy("run", "hello", "-q")
    assert done.stdout == "Good day.\n"
    assert done.stderr == "magy: spawn.max_depth: 999 becomes 3 (1 to 3).\n"
    shown = json.loads(magy("config", "--json").stdout)["values"]
    assert shown["spawn.max_queue"] == {"value": 200, "origin": "default"}


def test_a_project_that_is_not_trusted_may_only_lower(magy: Magy) -> None:
    configure(magy, max_children=3)
    (magy.root / "magy.toml").write_text(
        "[spawn]\nmax_depth = 3\nmax_children = 2\nmax_total = 1\n"
        "[limits]\ncost = 2\nrun_tokens = 1000\nrequests = 99\n",
        encoding="utf-8",
    )
    shown = json.loads(magy("config", "--json").stdout)["values"]
    spawn = {key: shown[f"spawn.{key}"]["value"] for key in RANGES}
    assert (spawn["max_depth"], spawn["max_children"], spawn["max_total"]) == (2, 2, 1)
    limits = {key: shown[f"limits.{key}"]["value"] for key in ("cost", "run_tokens", "requests")}
    assert limits == {"cost": 2.0, "run_tokens": 1000, "requests": 25}


def test_the_descriptions_name_the_ranges() -> None:
    for name, (low, high) in spawn_settings.RANGES.items():
        about = SpawnSettings.model_fields[name].description or ""
        assert about.endswith(f"{low:,.0f} to {high:,.0f}.")
