"""Where a command works, and which session an abbreviation means."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.api.sessions import fresh_ids
from magy_server.cli import project_directory, session_ids
from magy_server.core.errors import InvalidRequest, NotFound
from magy_server.core.events import Opened
from magy_server.core.ports import Batch
from magy_server.store.memory import MemoryStore


def test_the_root_is_the_git_work_tree_around(tmp_path: Path) -> None:
    inner = tmp_path / "work" / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "work" / ".git").write_text("gitdir: elsewhere")
    assert project_directory.project(None, str(inner)) == (str(tmp_path / "work"), str(inner))
    assert project_directory.project(str(tmp_path), str(inner)) == (str(tmp_path), str(inner))


def test_without_git_the_root_is_the_directory(tmp_path: Path) -> None:
    assert project_directory.project(None, str(tmp_path)) == (str(tmp_path), str(tmp_path))


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert project_directory.project(None, str(tmp_path / "link"))[0] == str(tmp_path / "real")


@pytest.mark.parametrize("path", ["missing", "file", "a\0b", ""])
def test_what_is_no_directory_is_refused(tmp_path: Path, path: str) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InvalidRequest, match="is not a directory"):
        project_directory.directory(str(tmp_path / path) if path else str(tmp_path / "no"))


def test_the_working_directory_lies_in_the_root(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "ab").mkdir()
    with pytest.raises(InvalidRequest, match="must lie below"):
        project_directory.project(str(tmp_path / "a"), str(tmp_path / "ab"))


def test_a_root_elsewhere_is_worked_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path)
    assert project_directory.project("a", None) == (str(tmp_path / "a"), str(tmp_path / "a"))


def test_the_current_directory_may_be_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    os.rmdir(gone)
    with pytest.raises(InvalidRequest, match="no longer exists"):
        project_directory.project(None, None)


@given(st.floats(1_704_067_200, 2_700_000_000), st.floats(1, 1e9))
def test_ids_sort_by_time(now: float, later: float) -> None:
    first, second = (
        fresh_ids.session_id(now),
        fresh_ids.session_id(min(now + later, 2_777_000_000)),
    )
    assert first[:6] <= second[:6]
    assert re.fullmatch("[0-9a-hjkmnp-tv-z]{10}", first)


def test_ids_of_one_moment_differ() -> None:
    """There are a million: among 200, two that are alike come up now and then. Whoever opens a
    session looks whether there is one of that id."""
    assert len({fresh_ids.session_id(1.8e9) for _ in range(200)}) > 190


async def test_an_id_that_a_session_has_is_not_given_again(monkeypatch: pytest.MonkeyPatch) -> None:
    store, ids = MemoryStore(), iter(["0000000001", "0000000001", "0000000002"])
    monkeypatch.setattr(fresh_ids, "session_id", lambda now: next(ids))
    first = await fresh_ids.fresh_id(store)
    opened = Opened(root="/w", cwd="/w", agent="build", model="")
    await store.append([Batch(f"session/{first}", 0, [opened], {}, {})])
    assert await fresh_ids.fresh_id(store) == "0000000002"


@pytest.fixture
async def store() -> MemoryStore:
    store = MemoryStore()
    for id in ("abc1", "abd2", "abc1/4.0", "abd", "xyz/1.0"):
        opened = Opened(root="/w", cwd="/w", agent="build", model="")
        await store.append([Batch(f"session/{id}", 0, [opened], {}, {})])
    return store


@pytest.mark.parametrize(("given_id", "found"), [("abc1", "abc1"), ("abc", "abc1"), ("abd", "abd"),
                                                 ("abc1/", "abc1/4.0")])  # fmt: skip
async def test_a_unique_beginning_is_enough(store: MemoryStore, given_id: str, found: str) -> None:
    assert (await session_ids.resolve(store, given_id)).stream == f"session/{found}"


@pytest.mark.parametrize(
    ("given_id", "said"),
    [
        ("ab", "may be ab"), ("", "There is no session"), ("q", "There is no session 'q'"),
        ("%", "There is no session"), ("x", "There is no session"), ("\udcff", "There is no"),
    ],
)  # fmt: skip
async def test_any_other_is_refused(store: MemoryStore, given_id: str, said: str) -> None:
    with pytest.raises(NotFound, match=re.escape(said)):
        await session_ids.resolve(store, given_id)
