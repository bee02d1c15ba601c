"""Which names are offered for what was typed, and in which order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.tools.search.file_name_index import Names, best

PATHS = (
    "README.md", "app.py", "lib/app_test.py", "lib/deep/wrapper.py", "docs/app/index.md",
    "lib/myapp.py", "lib/", "lib/deep/", "docs/", "docs/app/",
)  # fmt: skip


def names(*paths: str) -> Names:
    return Names(paths, tuple(path.casefold() for path in paths))


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
    found = best(names(*PATHS), query, 20, nothing)
    assert found[: len(first)] == first and bool(found) == bool(first)


@given(st.permutations(PATHS), st.sampled_from(["", "a", "app", "lib/", "p", "xd"]))
def test_the_order_does_not_depend_on_that_of_the_search(paths: list[str], query: str) -> None:
    for most in (2, 20):
        found = best(names(*paths), query, most, nothing)
        assert found == best(names(*PATHS), query, most, nothing)


PARTS = st.text("abAB_. é", min_size=1, max_size=4).filter(lambda part: part.strip(". "))
SOME = st.lists(st.lists(PARTS, min_size=1, max_size=3).map("/".join), max_size=20, unique=True)


@given(SOME, st.text("abAB_./ é*[(", max_size=5), st.integers(1, 10))
def test_what_is_found_has_the_letters_and_each_is_there_once(
    paths: list[str], query: str, most: int
) -> None:
    found = best(names(*paths), query, most, nothing)
    assert len(found) <= most and len(set(found)) == len(found) and set(found) <= set(paths)
    wanted = query.removeprefix("./").casefold()
    for path in found:
        letters = iter(path.casefold())
        assert all(letter in letters for letter in wanted)
    containing = [path for path in paths if wanted and wanted in path.casefold()]
    if len(containing) <= most and not wanted.endswith("/"):
        assert set(containing) <= set(found), "what has the text itself is never left out"
