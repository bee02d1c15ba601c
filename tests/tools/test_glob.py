"""glob: files by name."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from .searching import Searcher, searcher


@pytest.fixture
def search(tmp_path: Path) -> Searcher:
    return searcher(tmp_path)


def aged(search: Searcher, *names: str) -> None:
    """The files were changed in this order."""
    for age, name in enumerate(names):
        os.utime(search.file(name), (1_000_000 + age, 1_000_000 + age))


async def test_files_come_newest_first_and_equal_ones_by_name(search: Searcher) -> None:
    aged(search, "old.py", "src/new.py")
    for name in ("b/z.py", "b.py", "a.py"):
        os.utime(search.file(name), (1_000_001, 1_000_001))
    result = await search.do("glob", pattern="**/*.py")
    assert result.for_model == "a.py\nb/z.py\nb.py\nsrc/new.py\nold.py"
    assert result.for_user == "5 files"
    facts = search.last.facts
    assert facts.title == "Find **/*.py in the workspace"


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", ["a.py", "src/b.py", "src/deep/c.py"]),
        ("src/*.py", ["src/b.py"]),
        ("/src/*.py", ["src/b.py"]),
        ("./*.py", ["a.py"]),
        ("src/**", ["src/b.py", "src/b.tsx", "src/deep/c.py"]),
        ("src/", ["src/b.py", "src/b.tsx", "src/deep/c.py"]),
        ("**/deep/*", ["src/deep/c.py"]),
        ("s*/**/c.py", ["src/deep/c.py"]),
        ("**/{b,c}.{py,ts*}", ["src/b.py", "src/b.tsx", "src/deep/c.py"]),
        ("src/{deep/b,[!c]}.py", ["src/b.py"]),
        ("?.py", ["a.py", "src/b.py", "src/deep/c.py"]),
        (".hid*", [".hidden"]),
        ("[[]x]", ["[x]"]),
        (r"\[x\]", ["[x]"]),
        ("src/b.py", ["src/b.py"]),
        ("src", []),
        ("nothing/*.py", []),
    ],
)
async def test_patterns(search: Searcher, pattern: str, found: list[str]) -> None:
    aged(search, "[x]", ".hidden", "src/deep/c.py", "src/b.tsx", "src/b.py", "a.py")
    lines = await search.glob(pattern)
    assert lines == found or (not found and lines[0].startswith("No files match"))


async def test_ignored_files_are_there_when_their_directory_or_name_is_given(
    search: Searcher,
) -> None:
    search.repository()
    search.file(".gitignore", "node_modules/\n.env\n")
    aged(search, ".git/HEAD", ".env", "node_modules/foo/i.js", "src/i.js")
    assert await search.glob("**/i.js") == ["src/i.js"]
    assert await search.glob("node_modules/**/*.js") == ["node_modules/foo/i.js"]
    assert await search.glob("i.js", path="node_modules") == ["node_modules/foo/i.js"]
    assert await search.glob(".env*") == ["No files match .env* in the workspace."]
    assert await search.glob(".env") == [".env"]
    assert await search.glob("{.env,src/i.js}") == ["src/i.js", ".env"]
    assert await search.glob("HEAD") == ["No files match HEAD in the workspace."]


async def test_a_path_with_wildcards_does_not_show_what_is_ignored(search: Searcher) -> None:
    search.repository()
    search.file(".gitignore", "*.log\nout/\n!keep.log\n")
    aged(search, "src/keep.log", "src/a.log", "src/out/b.log", "src/deep/c.txt")
    assert await search.glob("s*/*.log") == ["src/keep.log"]
    assert await search.glob("s*/**") == ["src/deep/c.txt", "src/keep.log"]
    assert await search.glob("!*.txt") == [".gitignore", "src/keep.log"]
    assert await search.glob("!src/d*/*") == [".gitignore", "src/keep.log"]
    assert await search.glob("**/*.txt") == ["src/deep/c.txt"]


async def test_a_directory_may_have_any_name(search: Searcher) -> None:
    aged(search, "o{d} [x]*\\!/sub/a.py", "o{d} [x]*\\!/b.py", "a:b.txt")
    assert await search.glob("s*/a.py", path="o{d} [x]*\\!") == ["o{d} [x]*\\!/sub/a.py"]
    assert await search.glob("a:*.txt") == ["a:b.txt"]


async def test_a_hostile_pattern_takes_no_time(search: Searcher) -> None:
    aged(search, "/".join("a" * 120), "a" * 250)
    async with asyncio.timeout(20):
        for pattern in ("*a" * 100 + "b", "**/a/" * 60 + "b", "{a,b}" * 60, "**/*a*a*a*a*a*b/**/c"):
            assert "No files match" in (await search.glob(pattern))[0]


async def test_paths_are_taken_from_the_directory_that_is_searched(search: Searcher) -> None:
    aged(search, "src/lib/a.py", "src/a.py")
    assert await search.glob("lib/*.py", path="src") == ["src/lib/a.py"]
    assert await search.glob("src/*.py", path="src") == [
        "No files match src/*.py in src; the pattern is for paths below it."
    ]
    assert await search.glob("lib/**", path="src") == ["src/lib/a.py"]


async def test_only_so_many_are_shown_and_the_total_is_said(search: Searcher) -> None:
    aged(search, *(f"f{number}.txt" for number in range(20)))
    lines = await search.glob("*.txt")
    assert lines == [
        *(f"f{number}.txt" for number in range(19, 11, -1)),
        "[8 of 20 files, the newest; narrow the pattern or give a path]",
    ]


async def test_links_lead_nowhere(search: Searcher) -> None:
    outside = search.root.parent / "outside"
    outside.mkdir()
    (outside / "a.py").write_text("")
    (search.root / "out").symlink_to(outside)
    (search.root / "link.py").symlink_to(outside / "a.py")
    (search.root / "loop").symlink_to(".")
    os.mkfifo(search.root / "fifo.py")
    aged(search, "real.py")
    assert await search.glob("**/*.py") == ["real.py"]
    for pattern in ("out/*.py", "out/a.py", "link.py", "loop/real.py", "../outside/*.py"):
        assert "No files match" in (await search.glob(pattern))[0], pattern


async def test_strange_names_are_shown_on_one_line(search: Searcher) -> None:
    aged(search, "a\nb.py", "\x1b[2J.py", "-x.py")
    Path(os.fsdecode(os.fsencode(search.root) + b"/\xff.py")).write_text("")
    assert await search.glob("*.py") == ["\\udcff.py", "-x.py", "\\x1b[2J.py", "a\\nb.py"]


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("[a", "unclosed character class"),
        ("{a", "unclosed alternate group"),
        ("a}", "unopened alternate group"),
        ("a\\", "dangling"),
        ("[b-a]", "invalid range"),
        ("{a,}.py", "An alternative within { } is empty"),
        ("", "at least 1 character"),
        ("x" * 2001, "at most 2000 characters"),
    ],
)
async def test_bad_patterns_are_told(search: Searcher, pattern: str, said: str) -> None:
    assert said in await search.refusal("glob", pattern=pattern)


async def test_wrong_places_are_told(search: Searcher) -> None:
    aged(search, "src/a.py")
    assert "Did you mean: src" in await search.refusal("glob", pattern="*", path="scr")
    said = await search.refusal("glob", pattern="*", path="src/a.py")
    assert said == "src/a.py is a file, not a directory; read it with read_file."
    facts = await search.judge(search.tools["glob"], pattern="*", path="..")
    assert facts.problem is not None
