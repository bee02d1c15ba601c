"""Which files a search would look at: what is asked about a copy of a tree is so in the tree."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magy_server.core.errors import ToolError
from magy_server.tools.search import ignored_paths
from magy_server.tools.search.ignored_paths import searched
from magy_server.tools.search.ripgrep_queries import Answer, FilePattern, Finder
from tests.thorough import examples

FINDER = Finder("rg")
NAMES = st.sampled_from(
    ["a", "b", "ab", "c.py", "d.py", ".h", "x.o", "lib", "é", "#x", "!y", "a b"]
)
GLOBS = st.sampled_from(
    ["a", "b", "*", "?", "*.py", "*.o", "lib", "**", "[ab]", "[!a]*", ".h", "*.*", "\\#x", "é"]
)
LINES = st.builds(
    lambda mark, start, parts, end: f"{mark}{start}{'/'.join(parts)}{end}",
    st.sampled_from(["", "", "!", "#"]),
    st.sampled_from(["", "", "/"]),
    st.lists(GLOBS, min_size=1, max_size=3),
    st.sampled_from(["", "", "/", " "]),
)
RULES = st.tuples(
    st.sampled_from([".gitignore", ".gitignore", ".ignore", ".rgignore", ".git/info/exclude"]),
    st.lists(LINES, min_size=1, max_size=4).map("\n".join),
)
FOLDERS = st.lists(NAMES, max_size=3).map("/".join)
TREES = st.fixed_dictionaries(
    {
        "files": st.lists(st.tuples(FOLDERS, NAMES), min_size=1, max_size=12),
        "rules": st.lists(st.tuples(FOLDERS, RULES), max_size=4),
        "repositories": st.lists(FOLDERS, max_size=2),
    }
)


def build(root: Path, tree: Mapping[str, list[tuple[str, object]]]) -> None:
    """What cannot be, because a file has the name of a directory, is left out."""
    for folder in tree["repositories"]:
        make(root / str(folder) / ".git/HEAD", "")
    for folder, (name, lines) in tree["rules"]:  # type: ignore[misc]
        make(root / folder / name, str(lines))
    for folder, name in tree["files"]:
        make(root / folder / str(name), "x\n")


def make(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        return


async def found(root: Path, wanted: FilePattern | None) -> set[str]:
    answer = Answer()
    await FINDER.files(str(root), answer, wanted)
    return set(answer.files)


@settings(max_examples=examples(60), deadline=None)
@given(
    tree=TREES,
    within=FOLDERS,
    pattern=st.sampled_from(["", "", "*.py", "**/a*/**", "!*.py", "{a,b}/*", "[ab]", "a"]),
)
def test_the_copy_says_what_the_tree_says(
    tree: dict[str, list[tuple[str, object]]], within: str, pattern: str
) -> None:
    with tempfile.TemporaryDirectory() as path:
        root = Path(path).resolve()
        build(root, tree)
        start = root / within if (root / within).is_dir() else root
        every = [str(file) for file in start.rglob("*") if file.is_file()]
        wanted = FilePattern(pattern) if pattern else None
        asked = asyncio.run(searched(FINDER, str(start), every, wanted))
        assert asked == asyncio.run(found(start, wanted))


async def test_what_is_not_there_counts_too(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    make(root / ".git/HEAD", "")
    make(root / ".gitignore", "build/\n")
    make(root / ".git/info/exclude", "*.log\n")
    raw = os.fsdecode(b"\xff.py")
    names = ["new/a.py", "build/a.py", "a.log", ".gitignore", ".git/COMMIT_EDITMSG", raw]
    asked = await searched(FINDER, str(root), [str(root / name) for name in names])
    assert asked == {str(root / name) for name in ("new/a.py", ".gitignore", raw)}
    assert sorted(os.listdir(root)) == [".git", ".gitignore"]


async def test_rules_that_never_end_or_are_no_files_say_nothing(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    make(root / ".git/HEAD", "")
    (root / ".git/info").mkdir()
    os.mkfifo(root / ".git/info/exclude")
    (root / ".gitignore").symlink_to("/dev/zero")
    (root / ".ignore").mkdir()
    async with asyncio.timeout(20):
        assert await searched(FINDER, str(root), [str(root / "a")]) == {str(root / "a")}


async def test_paths_that_cannot_be_are_left_out(tmp_path: Path) -> None:
    root = str(tmp_path.resolve())
    names = ["a", "a/b", "c" * 300, "d"]
    asked = await searched(FINDER, root, [f"{root}/{name}" for name in names])
    assert asked == {f"{root}/a", f"{root}/d"}
    assert await searched(FINDER, root, []) == set()


async def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(ignored_paths, "MEMORY", str(tmp_path / "one"))
    assert await searched(FINDER, "/", ["/a"]) == {"/a"}
    monkeypatch.setattr(ignored_paths, "MEMORY", str(tmp_path / "none"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "other"))
    assert await searched(FINDER, "/", ["/a"]) == {"/a"}
    assert not list(tmp_path.glob("*/*"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(ToolError, match="temporary directory"):
        await searched(FINDER, "/", ["/a"])
