"""Which names are offered for what was typed, and in which order."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.tasks import Tasks
from magy_server.tools.search.file_name_index import FileIndex, Names, best, names_of
from tests.patience import PATIENCE

PATHS = (
    "README.md", "app.py", "lib/app_test.py", "lib/deep/wrapper.py", "docs/app/index.md",
    "lib/myapp.py",
)  # fmt: skip


def nothing() -> None:
    pass


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("", ["lib/", "docs/", "app.py", "README.md"]),
        ("app", ["docs/app/", "app.py", "lib/app_test.py", "lib/myapp.py"]),
        ("APP.PY", ["app.py"]),
        ("read", ["README.md"]),
        ("./app.py", ["app.py"]),
        ("lib/", ["lib/deep/", "lib/myapp.py", "lib/app_test.py", "lib/deep/wrapper.py"]),
        ("deep/w", ["lib/deep/wrapper.py"]),
        ("libwrap", ["lib/deep/wrapper.py"]),
        ("test", ["lib/app_test.py"]),
        ("none", []),
    ],
)
def test_the_likeliest_come_first(query: str, first: list[str]) -> None:
    found = best(names_of(PATHS), query, 20, nothing)
    assert found[: len(first)] == first and bool(found) == bool(first)


@given(st.permutations(PATHS), st.sampled_from(["", "a", "app", "lib/", "p", "xd"]))
def test_the_order_does_not_depend_on_that_of_the_search(paths: list[str], query: str) -> None:
    for most in (2, 20):
        found = best(names_of(paths), query, most, nothing)
        assert found == best(names_of(PATHS), query, most, nothing)


PARTS = st.text("abAB_. éßİ", min_size=1, max_size=4).filter(lambda part: part.strip(". "))
SOME = st.lists(st.lists(PARTS, min_size=1, max_size=3).map("/".join), max_size=20, unique=True)


def _slashes(path: str) -> list[int]:
    return [at for at, char in enumerate(path) if char == "/"]


@given(SOME, st.text("abAB_./ éßs*[(", max_size=5), st.integers(1, 10))
def test_what_is_found_has_the_letters_and_each_is_there_once(
    paths: list[str], query: str, most: int
) -> None:
    found = best(names_of(paths), query, most, nothing)
    there = {*paths, *(path[: at + 1] for path in paths for at in _slashes(path))}
    assert len(found) <= most and len(set(found)) == len(found) and set(found) <= there
    wanted = query.removeprefix("./").casefold()
    for path in found:
        letters = iter(path.casefold())
        assert all(letter in letters for letter in wanted)
    containing = [path for path in there if wanted and wanted in path.casefold()]
    if len(containing) <= most and not wanted.endswith("/"):
        assert set(containing) <= set(found), "what has the text itself is never left out"


async def listed(root: Path, *paths: str) -> Names:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()
    tasks = Tasks()
    try:
        return await FileIndex("rg", tasks.begin).names(str(root), PATIENCE)
    finally:
        await tasks.cancel()


@pytest.mark.parametrize("odd", ["a~", "lib/#a#", 'say "a"', "line\nend", "\udcff"])
async def test_a_name_that_nobody_can_mean_hides_no_other(tmp_path: Path, odd: str) -> None:
    found = await listed(tmp_path, "Plain.txt", "lib/deep/one", odd)
    assert set(best(found, "", 9, nothing)) == {"Plain.txt", "lib/"}
    assert best(found, "LIB/", 9, nothing) == ["lib/deep/", "lib/deep/one"]
    assert "Plain.txt" in found and "lib/" not in found and odd not in found


async def test_letters_that_are_more_when_they_are_compared(tmp_path: Path) -> None:
    paths = ["STRAẞE/Straße.py", "STRAẞE/ß", "last"]
    found = await listed(tmp_path, *paths)
    assert best(found, "strasse", 9, nothing) == ["STRAẞE/", "STRAẞE/Straße.py", "STRAẞE/ß"]
    assert best(found, "", 9, nothing) == ["STRAẞE/", "last"]
    assert best(found, "last", 9, nothing) == ["last"]
    assert all(path in found for path in paths)
