"""ripgrep, asked such that what it answers depends on nothing but the tree: no settings of the
user, no global ignore file. Hidden files are searched, the stores of version control are not."""

from __future__ import annotations

from collections.abc import Sequence

from magy_server.tools.search.dialect import Regex
from magy_server.tools.search.globs import Filter
from magy_server.tools.search.ignores import STORES

_COMMON = [
    "--no-config", "--hidden", "--no-messages", "--no-ignore-messages", "--no-ignore-global",
    "--color=never", "--null", *(f"--glob=!{store}" for store in STORES),
]  # fmt: skip
_SEARCH = [
    "--with-filename", "--no-heading", "--no-mmap", "--regex-size-limit=500M",
    "--dfa-size-limit=100M",
]  # fmt: skip
_LINES = ["--line-number", "--column", "--text", "--max-columns=1"]
"""The text of a line is left out: it may be a gigabyte."""


def files(folder: str, keep: Filter | None) -> list[str]:
    """`path NUL` for each file."""
    return [*_COMMON, "--files", *_types(keep), "--", folder]


def counts(path: str, regex: Regex, keep: Filter | None) -> list[str]:
    """`path NUL count LF` for each file with matching lines. Files with a NUL byte are left out,
    but for one that is named."""
    what = f"--regexp={regex.rust}"
    return [*_COMMON, *_SEARCH, "--count", *_types(keep), what, "--", path]


def lines(paths: Sequence[str], regex: Regex, most: int) -> list[str]:
    """`path NUL line:column:... LF` for the first `most` matching lines of each file."""
    what = [f"--max-count={most}", f"--regexp={regex.rust}"]
    return [*_COMMON, *_SEARCH, *_LINES, *what, "--", *paths]


def lines_of_input(regex: Regex) -> list[str]:
    """The same for UTF-8 text on standard input."""
    return [*_COMMON, *_SEARCH, *_LINES, "--encoding=none", f"--regexp={regex.rust}", "--", "-"]


def _types(keep: Filter | None) -> list[str]:
    """Leaves out what cannot pass the filter. A file type does this without touching the ignore
    rules, which --glob would override."""
    names = keep.names if keep else []
    return [*(f"--type-add=magy:{name}" for name in names), *(["--type=magy"] if names else [])]
