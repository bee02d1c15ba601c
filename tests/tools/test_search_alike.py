"""With ripgrep and without it the answers are the same: random trees, ignore files, texts and
patterns. The parts are compared by themselves, which is quick, and the tools as a whole."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from magy_server.core.tool import Result
from magy_server.tools.search import ripgrep, walk
from magy_server.tools.search.content import opened, pieces
from magy_server.tools.search.dialect import BadPattern, Regex, translate
from magy_server.tools.search.finder import Answer, Finder
from magy_server.tools.search.globs import BadGlob, Filter
from magy_server.tools.search.standin import Search

from .searching import NONE, RIPGREP, Searcher

pytestmark = pytest.mark.needs("rg")

NAMES = st.sampled_from(
    ["a", "b", "ab", "c.py", "d.py", ".h", "x.o", "lib", "é", "#x", "!y", "a b"]
)
GLOB = st.sampled_from(
    [
        "a",
        "b",
        "*",
        "?",
        "*.py",
        "*.o",
        "lib",
        "**",
        "[ab]",
        "[!a]*",
        ".h",
        "*.*",
        "\\#x",
        "é",
        "a*b",
    ]
)
LINE = st.builds(
    lambda mark, start, parts, end: f"{mark}{start}{'/'.join(parts)}{end}",
    st.sampled_from(["", "", "!", "#"]),
    st.sampled_from(["", "", "/"]),
    st.lists(GLOB, min_size=1, max_size=3),
    st.sampled_from(["", "", "/", " "]),
)
IGNORES = st.tuples(
    st.sampled_from([".gitignore", ".gitignore", ".ignore", ".rgignore", ".git/info/exclude"]),
    st.lists(LINE, min_size=1, max_size=4).map("\n".join),
)
FOLDERS = st.lists(NAMES, max_size=3).map("/".join)
TREE = st.fixed_dictionaries(
    {
        "files": st.lists(st.tuples(FOLDERS, NAMES), min_size=1, max_size=12),
        "ignores": st.lists(st.tuples(FOLDERS, IGNORES), max_size=4),
        "repositories": st.lists(FOLDERS, max_size=2),
    }
)


def build(root: Path, tree: Mapping[str, list[tuple[str, object]]], data: bytes = b"x\n") -> None:
    """What cannot be, because a file has the name of a directory, is left out."""
    for folder in tree["repositories"]:
        _make(root / str(folder) / ".git" / "HEAD", b"")
    for folder, (name, lines) in tree["ignores"]:  # type: ignore[misc]
        _make(root / folder / name, str(lines).encode())
    for folder, name in tree["files"]:
        _make(root / folder / str(name), data)


def _make(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        return


@settings(max_examples=60, deadline=None)
@given(tree=TREE, within=FOLDERS)
def test_the_same_files_are_found(tree: dict[str, list[tuple[str, object]]], within: str) -> None:
    with tempfile.TemporaryDirectory() as path:
        root = Path(path).resolve()
        build(root, tree)
        start = root / within
        assume(start.is_dir())
        failed: list[None] = []
        ours = sorted(walk.files(os.fsencode(start), lambda: failed.append(None)))
        run = subprocess.run(
            ripgrep.files("rg", str(start), None), capture_output=True, check=False
        )
        assert ours == sorted(run.stdout.split(b"\0")[:-1])
        assert not failed and not run.stderr


CHARACTERS = st.sampled_from(
    "abABikKsS01_ -.{}[]()^$\\éÉßẞıİſσςΣ²٣日𝒜\u212a\u0301\u200d\u2028\x85\x1c\x0b\t\r"
)
ODD_BYTES = st.sampled_from([b"", b"", b"", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xe6\x97"])
TEXT = st.builds(
    lambda lines, end: b"".join(lines)[: None if end else -1],
    st.lists(
        st.builds(
            lambda text, odd, end: text.encode() + odd + end,
            st.text(CHARACTERS, max_size=6),
            ODD_BYTES,
            st.sampled_from([b"\n", b"\n", b"\r\n"]),
        ),
        min_size=1,
        max_size=8,
    ),
    st.booleans(),
)
UTF16 = st.builds(
    lambda lines, codec: ("\ufeff" + "\n".join(lines)).encode(codec),
    st.lists(st.text(CHARACTERS, max_size=6), max_size=5),
    st.sampled_from(["utf-16-le", "utf-16-be", "utf-8"]),
)
ATOM = st.sampled_from(
    [
        "a", "b", "i", "k", "s", "é", "ß", "ı", "σ", "²", "日", "_", " ", "{", "}", "]", ".", "^",
        "$",
        r"\w", r"\W", r"\d", r"\D", r"\s", r"\S", r"\b", r"\B", r"\.", r"\$", r"\t", r"\x61",
        "[a-b]", "[^a]", "[A-Z0-9]", r"[\w.-]", r"[^\s]", r"[\W_]", "[[:alpha:]]", "[[:^space:]k]",
        "[à-ý]", "[^à-ý\\d]", "[]a]", "\u0301",
    ]
)  # fmt: skip
PATTERN = st.recursive(
    ATOM,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{,1}", "*?"])).map(
            "".join
        ),
        st.tuples(st.sampled_from(["(", "(?:", "(?i:", "(?P<n>", "(?i)("]), inner).map(
            lambda pair: f"{pair[0]}{pair[1]})"
        ),
        st.tuples(inner, inner).map("|".join),
    ),
    max_leaves=6,
)


@settings(max_examples=25, deadline=None)
@given(
    texts=st.lists(st.one_of(TEXT, TEXT, UTF16), min_size=1, max_size=6),
    patterns=st.lists(PATTERN, min_size=3, max_size=5),
    ignore_case=st.booleans(),
)
def test_the_same_lines_match(texts: list[bytes], patterns: list[str], ignore_case: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        for number, text in enumerate(texts):
            (root / f"f{number}").write_bytes(text)
        (root / "all").write_bytes(
            b"\n".join(text for text in texts if text[:1] not in b"\xff\xfe")
        )
        for pattern in patterns:
            try:
                regex = translate(pattern, ignore_case=ignore_case)
            except BadPattern:
                continue
            theirs = asyncio.run(_asked(root, regex))
            search = Search({"python": regex.python, "ascii": regex.ascii})
            for path in root.iterdir():
                with opened(str(path)) as file:
                    ours = list(search.lines(pieces(file)))
                assert ours == theirs.get(str(path), []), pattern


async def _asked(root: Path, regex: Regex) -> dict[str, list[tuple[int, int]]]:
    answer = Answer()
    paths = sorted(str(path) for path in root.iterdir())
    await Finder(RIPGREP).lines(paths, regex, 1000, answer)
    return answer.lines


@settings(max_examples=12, deadline=None)
@given(
    tree=TREE,
    data=st.one_of(TEXT, UTF16, st.just(b"a\n\0b\n")),
    pattern=PATTERN,
    glob=st.sampled_from(["", "*.py", "**/a*/**", "!*.py", "{a,b}/*", "[ab]"]),
    options=st.fixed_dictionaries(
        {
            "context": st.integers(0, 2),
            "output": st.sampled_from(["lines", "lines", "files", "counts"]),
            "ignore_case": st.booleans(),
            "fixed": st.booleans(),
        }
    ),
)
def test_the_tools_say_the_same(
    tree: dict[str, list[tuple[str, object]]],
    data: bytes,
    pattern: str,
    glob: str,
    options: dict[str, object],
) -> None:
    try:
        translate(pattern, fixed=bool(options["fixed"]))
        Filter(glob or "*")
    except (BadPattern, BadGlob):
        assume(False)
    with tempfile.TemporaryDirectory() as path:
        root = Path(path).resolve()
        build(root, tree, data)

        async def both(name: str, **arguments: object) -> list[Result]:
            return [await Searcher(root, p).do(name, **arguments) for p in (RIPGREP, NONE)]

        one, other = asyncio.run(both("grep", pattern=pattern, glob=glob, **options))
        assert one == other
        one, other = asyncio.run(both("glob", pattern=glob or "*"))
        assert one == other
