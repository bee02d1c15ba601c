"""What is committed, and what is at a path: links, executable bits, whole or not at all."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from magy_server.core.errors import EditRefused, ToolError
from magy_server.core.values import NO_FILE, Version, digest
from magy_server.tools.files import disk, versions
from magy_server.tools.files.commits import Commits
from magy_server.tools.files.versions import look, put
from magy_server.tools.shell.processes import Processes

from .conftest import Workspace
from .repositories import Person, git, in_repository

needs_git = pytest.mark.needs("git")


@pytest.fixture
async def person(workspace: Workspace) -> AsyncIterator[Person]:
    async with in_repository(workspace.root) as one:
        yield one


@pytest.fixture
def commits() -> Commits:
    return Commits(Processes())


def version(data: bytes, kind: str = "file") -> Version:
    return Version.model_validate({"hash": digest(data), "kind": kind})


# --- what is committed --------------------------------------------------------------------------


async def had(commits: Commits, root: str, path: str, commit: str | None = None) -> bytes | None:
    """What the commit that is checked out (or another) has of a file."""
    commit = commit or await commits.head(root, path)
    assert commit
    found = await commits.committed(root, path, commit)
    return found.data if found.version.hash else None


@needs_git
async def test_head_and_its_files(person: Person, commits: Commits) -> None:
    root = str(person.root)
    first = person.head()
    assert await commits.head(root) == first
    assert await had(commits, root, f"{root}/a.py") == b"one\ntwo\nthree\n"
    assert await had(commits, root, f"{root}/none.py") is None
    assert await had(commits, root, f"{root}/a.py/x") is None
    assert await had(commits, root, root) is None
    with pytest.raises(ToolError, match="not in a readable git work tree"):
        await commits.committed(root, "/etc/passwd", first)
    person.file("a.py", "not committed\n")
    assert await had(commits, root, f"{root}/a.py") == b"one\ntwo\nthree\n"
    second = person.commit(a_py="committed\n")
    assert await commits.head(root) == second
    assert await had(commits, root, f"{root}/a.py") == b"committed\n"
    person.git("checkout", "-q", first)
    assert await commits.head(root) == first
    assert await had(commits, root, f"{root}/a.py", second) == b"committed\n"
    with pytest.raises(ToolError):
        await commits.committed(root, f"{root}/a.py", "0" * 40)
    person.git("checkout", "-q", "-b", "side")
    person.git("pack-refs", "--all")
    person.git("update-ref", "refs/heads/side", second)
    person.git("pack-refs", "--all")
    assert await commits.head(root) == second


@needs_git
async def test_nothing_is_run_while_nothing_moves(
    person: Person, commits: Commits, tmp_path: Path
) -> None:
    root = str(person.root)
    head = await commits.head(root)
    was = await had(commits, root, f"{root}/a.py")
    shutil.move(person.root / ".git/objects", tmp_path / "objects")
    assert await commits.head(root) == head
    assert await had(commits, root, f"{root}/a.py") == was
    with pytest.raises(ToolError):
        await had(commits, root, f"{root}/b.py")  # git was asked
    shutil.move(tmp_path / "objects", person.root / ".git/objects")
    assert await had(commits, root, f"{root}/b.py") == b"b\n"


@needs_git
async def test_the_bytes_are_those_that_git_has(person: Person, commits: Commits) -> None:
    """Neither line ends nor filters nor `$Id$` are applied; of a link it is the target."""
    root = str(person.root)
    ran = person.root.parent / "ran"
    for part in ("clean", "smudge"):
        person.git("config", f"filter.x.{part}", f"touch {ran}; cat")
    person.file("crlf.txt", "a\n$Id$\n")
    person.file(".gitattributes", "*.txt text eol=crlf ident filter=x\n")
    (person.root / "link").symlink_to("nowhere")
    person.file("sub/[odd] *.bin", b"\0\xff")
    person.commit()
    (person.root / "crlf.txt").unlink()
    person.git("checkout", "--", "crlf.txt")
    assert b"\r\n" in (person.root / "crlf.txt").read_bytes()
    ran.unlink()
    assert await had(commits, root, f"{root}/crlf.txt") == b"a\n$Id$\n"
    assert await had(commits, root, f"{root}/link") == b"nowhere"
    assert await had(commits, root, f"{root}/sub/[odd] *.bin") == b"\0\xff"
    below = f"{root}/sub"
    assert await had(commits, below, f"{below}/[odd] *.bin") == b"\0\xff"
    assert not ran.exists()


@needs_git
async def test_where_there_is_no_commit(person: Person, commits: Commits, tmp_path: Path) -> None:
    empty = tmp_path.resolve() / "empty"
    empty.mkdir()
    assert await commits.head(str(empty)) is None
    with pytest.raises(ToolError, match="not in a readable git work tree"):
        await commits.committed(str(empty), f"{empty}/a.py", "HEAD")
    git(empty, "init", "-q")
    assert await commits.head(str(empty)) is None  # unborn
    git(empty, "commit", "-q", "--allow-empty", "-m", "first")
    assert await commits.head(str(empty)) == git(empty, "rev-parse", "HEAD").strip()
    shutil.rmtree(empty / ".git")
    assert await commits.head(str(empty)) is None
    bare = tmp_path.resolve() / "bare"
    git(tmp_path, "clone", "-q", "--bare", str(person.root), str(bare))
    assert await commits.head(str(bare)) is None
    assert await commits.head(str(tmp_path.resolve() / "missing")) is None
    archive = tmp_path.resolve() / "archive"
    archive.mkdir()
    (archive / ".git").write_text(f"gitdir: {person.root}/.git\n")  # another's repository
    assert await commits.head(str(archive)) is None


@needs_git
async def test_a_linked_work_tree_has_its_own_head(
    person: Person, commits: Commits, tmp_path: Path
) -> None:
    tree = tmp_path.resolve() / "tree"
    person.git("worktree", "add", "-q", str(tree), "-b", "side")
    first = await commits.head(str(tree))
    assert first == person.head()
    (tree / "a.py").write_text("side\n")
    git(tree, "commit", "-qam", "side")
    assert await commits.head(str(tree)) not in (None, first)
    assert await had(commits, str(tree), f"{tree}/a.py") == b"side\n"
    assert await commits.head(str(person.root)) == first


@needs_git
async def test_a_repository_that_appears_nearer_is_the_one(
    person: Person, commits: Commits
) -> None:
    inner = person.root / "inner"
    inner.mkdir()
    assert await commits.head(str(inner)) == person.head()
    git(inner, "init", "-q")
    assert await commits.head(str(inner)) is None
    (inner / ".git").rename(inner / "git")
    assert await commits.head(str(inner)) == person.head()


@needs_git
async def test_a_repository_in_the_repository_has_its_own_commits(
    person: Person, commits: Commits
) -> None:
    root, inner = str(person.root), person.root / "inner"
    file = inner / "deep/x.sh"
    file.parent.mkdir(parents=True)
    file.write_text("inner\n")
    file.chmod(0o755)
    git(inner, "init", "-q")
    assert await commits.head(root, str(file)) is None
    git(inner, "add", ".")
    git(inner, "commit", "-qm", "inner")
    head = git(inner, "rev-parse", "HEAD").strip()
    assert await commits.head(root, str(file)) == head != await commits.head(root)
    found = await commits.committed(root, str(file), head)
    assert (found.data, found.version) == (b"inner\n", version(b"inner\n", "executable"))
    assert await commits.head(root, f"{root}/other/a.py") == person.head()


async def test_without_git_there_is_no_commit(workspace: Workspace) -> None:
    (workspace.root / ".git").mkdir()
    commits = Commits(Processes(base={"PATH": str(workspace.root)}))
    assert await commits.head(str(workspace.root)) is None


# --- what is at a path --------------------------------------------------------------------------


def test_every_kind_is_made_and_seen(workspace: Workspace) -> None:
    root, path = str(workspace.root), str(workspace.root / "deep/er/it")
    steps = [
        (version(b"one"), b"one"),
        (version(b"two", "executable"), b"two"),
        (version(b"two"), b"two"),
        (version(b"../../gone", "link"), b"../../gone"),
        (version(b"\xff/elsewhere", "link"), b"\xff/elsewhere"),
        (version(b"", "executable"), b""),
        (NO_FILE, b""),
        (NO_FILE, b""),
        (version(b"target", "link"), b"target"),
        (version(b"three"), b"three"),
    ]
    was = NO_FILE
    assert look(root, path) == (was, b"")
    for now, data in steps:
        put(root, path, was, now, data)
        assert look(root, path) == (now, data)
        was = now
    assert sorted(os.listdir(workspace.root / "deep/er")) == ["it"]


def test_mode_and_owner_stay(workspace: Workspace) -> None:
    path = workspace.file("run.sh", b"one")
    path.chmod(0o640)
    put(str(workspace.root), str(path), version(b"one"), version(b"two"), b"two")
    assert path.stat().st_mode & 0o777 == 0o640
    put(str(workspace.root), str(path), version(b"two"), version(b"two", "executable"), b"two")
    assert path.stat().st_mode & 0o777 == 0o750  # for whom it can be read
    put(str(workspace.root), str(path), version(b"two", "executable"), version(b"x"), b"x")
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        (NO_FILE, "was created"),
        (version(b"other"), "was changed"),
        (version(b"one", "executable"), "was changed"),
        (version(b"one", "link"), "was changed"),
    ],
)
@pytest.mark.parametrize("now", [NO_FILE, version(b"two"), version(b"two", "link")])
def test_what_is_not_as_expected_stays(
    workspace: Workspace, expected: Version, said: str, now: Version
) -> None:
    path = workspace.file("a.txt", b"one")
    if expected == NO_FILE == now:
        said = "was created"
    with pytest.raises(EditRefused, match=said):
        put(str(workspace.root), str(path), expected, now, b"two")
    assert os.listdir(workspace.root) == ["a.txt"] and path.read_bytes() == b"one"


@pytest.mark.parametrize("now", [NO_FILE, version(b"two"), version(b"two", "link")])
def test_what_is_gone_stays_gone(workspace: Workspace, now: Version) -> None:
    for path in ("a.txt", "gone/deep/a.txt"):
        with pytest.raises(EditRefused, match="was removed"):
            put(str(workspace.root), str(workspace.root / path), version(b"one"), now, b"two")
    assert os.listdir(workspace.root) == []


def test_directories_that_become_empty(workspace: Workspace) -> None:
    root = str(workspace.root)
    path = workspace.file("a/b/c/file", b"x")
    workspace.file("a/other", b"y")
    put(root, str(path), version(b"x"), NO_FILE, b"")
    assert (workspace.root / "a/b/c").is_dir()
    put(root, str(path), NO_FILE, NO_FILE, b"", prune=True)
    assert os.listdir(workspace.root / "a") == ["other"]
    put(root, str(workspace.root / "a/other"), version(b"y"), NO_FILE, b"", prune=True)
    assert os.listdir(workspace.root) == []


def test_what_has_no_version(workspace: Workspace) -> None:
    root = str(workspace.root)
    workspace.file("folder/file", b"")
    os.mkfifo(workspace.root / "fifo")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(workspace.root / "socket"))
    workspace.file("large", b"")
    os.truncate(workspace.root / "large", disk.EDIT_LIMIT + 1)
    for name in ("folder", "fifo", "socket", "large"):
        path = str(workspace.root / name)
        with pytest.raises(ToolError, match=name):
            look(root, path)
        for now in (NO_FILE, version(b"x"), version(b"x", "link")):
            with pytest.raises(ToolError, match=name):
                put(root, path, NO_FILE, now, b"x")
    assert sorted(os.listdir(workspace.root)) == ["fifo", "folder", "large", "socket"]
    with pytest.raises(ToolError, match="10,000,001 bytes"):
        look(root, str(workspace.root / "large"))


def test_nothing_leads_out_of_the_root(workspace: Workspace) -> None:
    root = str(workspace.root)
    outside = workspace.root.parent / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(b"theirs")
    (workspace.root / "way").symlink_to(outside)
    for path in (f"{root}/way/file", f"{root}/../outside/file", str(outside / "file"), root):
        with pytest.raises(ToolError):
            look(root, path)
        for now in (NO_FILE, version(b"x")):
            with pytest.raises(ToolError):
                put(root, path, version(b"theirs"), now, b"x")
    with pytest.raises(ToolError):
        put(root, f"{root}/way/new", NO_FILE, version(b"x"), b"x")
    assert os.listdir(outside) == ["file"] and (outside / "file").read_bytes() == b"theirs"
    with pytest.raises(ToolError, match="cannot be a link"):
        put(root, f"{root}/empty", NO_FILE, version(b"", "link"), b"")
    with pytest.raises(ValueError, match="not those of the version"):
        put(root, f"{root}/empty", NO_FILE, version(b"x"), b"y")


@contextmanager
def nobody_special() -> Iterator[None]:
    """A superuser may do everything."""
    me = os.geteuid()
    if me == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(me)


def test_what_may_not_be_read_is_not_taken_for_gone(workspace: Workspace) -> None:
    path = workspace.file("shut/file", b"x")
    path.parent.chmod(0o000)
    try:
        with nobody_special():
            with pytest.raises(ToolError, match="no permission"):
                look(str(workspace.root), str(path))
            with pytest.raises(ToolError, match="no permission"):
                put(str(workspace.root), str(path), NO_FILE, version(b"y"), b"y")
    finally:
        path.parent.chmod(0o700)


def test_a_read_only_file_stays(workspace: Workspace) -> None:
    path = workspace.file("fixed", b"x")
    path.chmod(0o444)
    with pytest.raises(ToolError, match="read-only"):
        put(str(workspace.root), str(path), version(b"x"), version(b"y"), b"y")
    assert path.read_bytes() == b"x"


def test_kinds_by_mode() -> None:
    assert [versions.kind_of(mode) for mode in (0o100644, 0o100755, 0o120000, 0o160000)] == [
        "file", "executable", "link", None,
    ]  # fmt: skip
