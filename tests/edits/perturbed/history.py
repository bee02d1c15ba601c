"""Hunks of real commits, read from a git repository."""

from __future__ import annotations

import random
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

COMMITS = 300
"""Sampled of a repository."""
A_FILE, A_COMMIT = 4, 40
"""Hunks taken of one file's change, and of one commit, at most."""
FILE_LINES, LINE_LENGTH, CUT, PUT = 6000, 400, 25, 40
"""Above these, a file or a hunk is left alone."""

_BLOBS = re.compile(rb"index ([0-9a-f]+)\.\.[0-9a-f]+ 100(?:644|755)$")
_RANGES = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@")


class File:
    """The lines of a text that ends with a line end, and where each kind of line is."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = tuple(lines)

    @cached_property
    def text(self) -> str:
        return "".join(f"{line}\n" for line in self.lines)

    @cached_property
    def by_bone(self) -> dict[str, list[int]]:
        """Line indices by what no perturbation changes."""
        found = defaultdict(list)
        for at, line in enumerate(self.lines):
            found[bone(line)].append(at)
        return dict(found)

    def offset(self, line: int) -> int:
        return sum(len(text) + 1 for text in self.lines[:line])


@dataclass(frozen=True)
class Site:
    """One hunk of a real commit: lines [start, end) of `file` became `put`."""

    repo: str
    commit: str
    path: str
    file: File
    start: int
    end: int
    put: tuple[str, ...]

    @property
    def cut(self) -> tuple[str, ...]:
        return self.file.lines[self.start : self.end]

    @property
    def gone(self) -> list[int]:
        """Indices into `cut` of the lines that are removed for good: a diff may say of a line that
        it goes, and comes again."""
        put = set(map(bone, self.put))
        return [at for at, line in enumerate(self.cut) if bone(line) not in put]


def bone(line: str) -> str:
    """Letters and digits only."""
    return "".join(filter(str.isalnum, line))


def sites(repo: Path, seed: int, oldest: int | None = None) -> list[Site]:
    """Hunks in a random order that `seed` and the history determine. `oldest`: only the so many
    first commits, so that a growing history gives the same."""
    rng = random.Random(f"{seed} history")
    commits = _git(repo, "rev-list", "--no-merges", "--reverse", "HEAD").decode().split()[:oldest]
    if len(commits) > COMMITS:
        commits = rng.sample(commits, COMMITS)
    found: list[Site] = []
    with _Blobs(repo) as blobs:
        for commit in commits:
            changes = list(_changes(repo, commit))
            rng.shuffle(changes)
            found += _of_commit(repo.resolve(), commit, changes, blobs, rng)
    rng.shuffle(found)
    return found


Change = tuple[str, str, list[tuple[int, int, tuple[str, ...]]]]
"""Path, blob before, and hunks: lines [start, end) became these."""


def _of_commit(
    repo: Path, commit: str, changes: Sequence[Change], blobs: _Blobs, rng: random.Random
) -> list[Site]:
    name = repo.parent.name if repo.name in (".git", "repo") else repo.name
    found: list[Site] = []
    for path, blob, hunks in changes:
        if len(found) >= A_COMMIT:
            break
        fit = [hunk for hunk in hunks if hunk[1] - hunk[0] <= CUT and len(hunk[2]) <= PUT]
        if not fit or (file := _file(blobs.read(blob))) is None:
            continue
        for start, end, put in rng.sample(fit, min(A_FILE, len(fit))):
            found.append(Site(name, commit, path, file, start, end, put))
    return found


def _changes(repo: Path, commit: str) -> Iterator[Change]:
    """Of the files that `commit` modified."""
    patch = _git(
        repo, "-c", "core.quotePath=false", "diff-tree", "-r", "-p", "-U0", "--no-commit-id",
        "--no-renames", "--diff-filter=M", "--full-index", "--no-ext-diff", "--no-textconv",
        "--no-color", commit,
    )  # fmt: skip
    lines = iter(patch.split(b"\n"))
    path, blob = "", ""
    hunks: list[tuple[int, int, tuple[str, ...]]] = []
    for line in lines:
        if line.startswith(b"diff --git "):
            if blob and hunks:
                yield path, blob, hunks
            path, blob, hunks = "", "", []
        elif index := _BLOBS.match(line):
            blob = index[1].decode()
        elif line.startswith(b"+++ b/"):
            path = line[6:].decode(errors="replace")
        elif (ranges := _RANGES.match(line)) and (hunk := _hunk(ranges, lines)):
            hunks.append(hunk)
    if blob and hunks:
        yield path, blob, hunks


def _hunk(
    ranges: re.Match[bytes], lines: Iterator[bytes]
) -> tuple[int, int, tuple[str, ...]] | None:
    cut, put = (1 if count is None else int(count) for count in ranges.group(2, 3))
    start = int(ranges[1]) - (1 if cut else 0)
    new, bad = [], False
    for _ in range(cut):
        next(lines)
    for _ in range(put):
        line = next(lines)
        if line.startswith(b"\\"):  # the cut lines had no line end at the end of the file
            bad, line = True, next(lines)
        try:
            new.append(line[1:].decode())
        except UnicodeDecodeError:
            bad = True
    if bad or any("\r" in line or len(line) > LINE_LENGTH for line in new):
        return None
    return start, start + cut, tuple(new)


def _file(data: bytes) -> File | None:
    """None: not a text that the perturbations are made for."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    if not text.endswith("\n") or any(mark in text for mark in "\r\0\ufeff"):
        return None
    lines = text[:-1].split("\n")
    if len(lines) > FILE_LINES or max(map(len, lines)) > LINE_LENGTH:
        return None
    return File(lines)


class _Blobs:
    """`git cat-file --batch`: one process for all."""

    def __init__(self, repo: Path) -> None:
        self.process = subprocess.Popen(
            ["git", "-C", str(repo), "cat-file", "--batch"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def __enter__(self) -> _Blobs:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()

    def read(self, blob: str) -> bytes:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{blob}\n".encode())
        self.process.stdin.flush()
        header = self.process.stdout.readline().split()
        if header[-1] == b"missing":  # a partial clone
            return b"\0"
        data = self.process.stdout.read(int(header[2]))
        self.process.stdout.read(1)
        return data


def _git(repo: Path, *arguments: str) -> bytes:
    return subprocess.run(
        ["git", "-C", str(repo), *arguments], check=True, stdout=subprocess.PIPE
    ).stdout
