"""The files that change during a command: found, kept as they were, and said."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from magy_server.core.ports import Seen
from magy_server.core.tool import Result, Tool
from magy_server.core.values import FileChange, Version, digest
from magy_server.tools.files.change import busy
from magy_server.tools.files.versions import look, put
from magy_server.tools.kit import make_tools
from magy_server.tools.shell.processes import Processes
from magy_server.tools.shell.read_only_commands import only_reads
from magy_server.tools.tracking import known_changes, worktree
from tests.patience import pass_time

from .conftest import FakeEditor, Workspace
from .repositories import Person, git, in_repository

pytestmark = pytest.mark.needs("git")


class Shell:
    """bash in a workspace; `changes` are told by name, as (before, after) bytes."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.processes = Processes()
        self.tools: dict[str, Tool] = {tool.name: tool for tool in make_tools(self.processes)}

    async def bash(self, command: str, **more: object) -> Result:
        return await self.workspace.run(self.tools["bash"], command=command, **more)

    async def changes(self, command: str) -> dict[str, tuple[bytes | None, bytes | None]]:
        return self.told(await self.bash(command))

    def told(self, result: Result) -> dict[str, tuple[bytes | None, bytes | None]]:
        assert result.for_model.startswith("[exit code 0"), result.for_model
        found = {}
        for change in result.changes:
            assert change.via == "command"
            name = os.path.relpath(change.path, self.workspace.root)
            before, after = (h and result.blobs[h] for h in (change.before, change.after))
            assert all(digest(data) == h for h, data in result.blobs.items())
            found[name] = (before, after)
        assert len(found) == len(result.changes)
        return found


@pytest.fixture
async def person(workspace: Workspace) -> AsyncIterator[Person]:
    async with in_repository(workspace.root) as one:
        yield one


@pytest.fixture
def shell(person: Person) -> Shell:
    return Shell(person)


def one(result: Result, name: str) -> FileChange:
    (found,) = [change for change in result.changes if change.path.endswith(f"/{name}")]
    return found


def said(result: Result) -> str:
    """What a person is told besides what the model reads."""
    assert not result.for_user or result.for_user.startswith(result.for_model)
    return result.for_user.removeprefix(result.for_model).strip()


A, B = b"one\ntwo\nthree\n", b"b\n"


# --- what changed -------------------------------------------------------------------------------


async def test_changed_created_and_removed(person: Person, shell: Shell) -> None:
    result = await shell.bash("sed -i s/two/2/ a.py; rm b.py; mkdir d; printf 'n\\n' > d/new.txt")
    assert shell.told(result) == {
        "a.py": (A, b"one\n2\nthree\n"),
        "b.py": (B, None),
        "d/new.txt": (None, b"n\n"),
    }
    assert result.for_model == "[exit code 0]\n(no output)"
    assert said(result) == (
        "[3 files changed during this command (ignored files are not scanned): "
        "a.py, b.py, d/new.txt.]"
    )


async def test_nothing_changed(person: Person, shell: Shell) -> None:
    person.file("new.txt", "n")
    for command in ("touch a.py new.txt", "cp a.py x && mv x a.py", "git add -A", "python3 -V"):
        result = await shell.bash(command)
        assert (result.changes, result.for_user) == ((), ""), command


async def test_what_was_not_committed_is_kept_as_it_was(person: Person, shell: Shell) -> None:
    person.file("a.py", "mine\n")
    person.file("notes.txt", "untracked\n")
    person.file("staged.txt", "staged\n")
    person.git("add", "staged.txt")
    (person.root / "b.py").unlink()
    assert await shell.changes("for f in a.py notes.txt staged.txt b.py; do echo x > $f; done") == {
        "a.py": (b"mine\n", b"x\n"),
        "b.py": (None, b"x\n"),
        "notes.txt": (b"untracked\n", b"x\n"),
        "staged.txt": (b"staged\n", b"x\n"),
    }
    assert await shell.changes("git checkout -q -- a.py b.py; rm notes.txt") == {
        "a.py": (b"x\n", A),
        "b.py": (b"x\n", B),
        "notes.txt": (b"x\n", None),
    }


async def test_a_change_of_the_same_size_at_the_same_time(person: Person, shell: Shell) -> None:
    """Within the tick of the file system's clock, and with the times put back."""
    person.file("new.txt", "1")
    for number in range(2, 8):
        line = f"printf {number} > new.txt; touch -d @1000000000 new.txt; :"
        assert await shell.changes(line) == {
            "new.txt": (b"%d" % (number - 1), b"%d" % number),
        }
    assert await shell.changes("printf 'ONE\\ntwo\\nthree\\n' > a.py; touch -r b.py a.py") == {
        "a.py": (A, b"ONE\ntwo\nthree\n")
    }


async def test_a_command_that_adds_and_commits(person: Person, shell: Shell) -> None:
    """The index of before counts; what is committed is as in the commit now checked out."""
    result = await shell.bash("echo x > a.py; echo y > new.txt; git add -A")
    assert shell.told(result) == {"a.py": (A, b"x\n"), "new.txt": (None, b"y\n")}
    result = await shell.bash("echo z > b.py; echo later > c.py; git add b.py; git commit -qm x")
    assert shell.told(result) == {"c.py": (None, b"later\n")}
    assert "[1 file is now as in the commit that was checked out" in said(result)


async def test_kinds(person: Person, shell: Shell) -> None:
    (person.root / "link").symlink_to("a.py")
    person.commit()
    result = await shell.bash(
        "chmod +x a.py; ln -sf elsewhere link; ln -s 'to b' new; rm b.py; ln -s a.py b.py; "
        "printf '#!' > run; chmod +x run"
    )
    kinds = {os.path.basename(c.path): (c.was, c.now) for c in result.changes}
    assert kinds == {
        "a.py": ("file", "executable"),
        "b.py": ("file", "link"),
        "link": ("link", "link"),
        "new": ("file", "link"),
        "run": ("file", "executable"),
    }
    assert shell.told(result) == {
        "a.py": (A, A),
        "b.py": (B, b"a.py"),
        "link": (b"a.py", b"elsewhere"),
        "new": (None, b"to b"),
        "run": (None, b"#!"),
    }
    result = await shell.bash("chmod -x a.py; rm link; mkdir link; echo x > link/in")
    assert shell.told(result) == {
        "a.py": (A, A),
        "link": (b"elsewhere", None),
        "link/in": (None, b"x\n"),
    }
    assert (one(result, "a.py").was, one(result, "a.py").now) == ("executable", "file")


async def test_renames(person: Person, shell: Shell) -> None:
    person.file("empty", "")
    result = await shell.bash("git mv a.py moved.py; mkdir d; mv b.py d/; mv empty void")
    moved = {os.path.basename(c.path): os.path.basename(c.moved_from) for c in result.changes}
    assert moved["moved.py"] == "a.py"
    assert one(result, "d/b.py").moved_from == str(person.root / "b.py")
    assert moved["void"] == ""  # all that is empty is alike
    assert shell.told(result) == {
        "a.py": (A, None),
        "b.py": (B, None),
        "d/b.py": (None, B),
        "empty": (b"", None),
        "moved.py": (None, A),
        "void": (None, b""),
    }


async def test_a_directory_replaced_by_a_link(person: Person, shell: Shell) -> None:
    """What is seen through the link is another's file."""
    person.commit(**{"d/one": "1\n"})
    outside = person.root.parent / "outside"
    outside.mkdir()
    (outside / "one").write_text("theirs")
    assert await shell.changes("rm -r d; ln -s ../outside d") == {
        "d": (None, b"../outside"),
        "d/one": (b"1\n", None),
    }


async def test_binary_and_odd_names(person: Person, shell: Shell) -> None:
    person.file("päth/[x] *.bin", b"\0\xff")
    person.commit()
    result = await shell.bash(
        "printf '\\1' > 'päth/[x] *.bin'; touch $'new\\nline' $'\\xff' ' lead'; "
    )
    assert shell.told(result) == {"päth/[x] *.bin": (b"\0\xff", b"\1"), " lead": (None, b"")}
    assert "2 files with line breaks or strange bytes in the name" in said(result)


async def test_caches_are_nobodys_to_judge_unless_they_are_in_the_repository(
    person: Person, shell: Shell
) -> None:
    person.file("__pycache__/kept.pyc", "x")
    person.commit()
    made = "mkdir -p a/__pycache__ .pytest_cache/v; echo p > a/__pycache__/m.pyc; "
    made += "echo y > __pycache__/kept.pyc; echo z > .pytest_cache/v/last; echo n > a/n.py"
    assert await shell.changes(made) == {
        "__pycache__/kept.pyc": (b"x", b"y\n"), "a/n.py": (None, b"n\n"),
    }  # fmt: skip


async def test_what_is_ignored_is_not_looked_at(person: Person, shell: Shell) -> None:
    person.file("built.o", "old")
    person.commit(_gitignore="*.o\n")
    assert await shell.changes("echo x > built.o; echo y > other.o; echo z > a.o") == {}
    await asyncio.sleep(0.1)  # that it is not ignored any more did not make it
    assert await shell.changes("echo '*.x' > .gitignore; echo n > n.o") == {
        ".gitignore": (b"*.o\n", b"*.x\n"),
        "n.o": (None, b"n\n"),
    }
    person.file("k.txt", "kept\n")
    assert await shell.changes("echo k.txt >> .gitignore") == {
        ".gitignore": (b"*.x\n", b"*.x\nk.txt\n"),
    }


async def test_a_timeout_does_not_hide_what_changed(person: Person, shell: Shell) -> None:
    task = asyncio.create_task(shell.bash("echo x > a.py; sleep 60", timeout=600))
    while (person.root / "a.py").read_bytes() != b"x\n":
        await asyncio.sleep(0.01)
    pass_time(600)
    result = await task
    assert one(result, "a.py").before == digest(A)


# --- what git has is not always what was there --------------------------------------------------


async def test_line_ends_that_git_turns(person: Person, shell: Shell) -> None:
    person.file("unix", "a\nb\n")
    person.file("dos.txt", b"a\r\nb\r\n")
    person.file("mixed.txt", b"a\r\nb\n")
    person.commit(_gitattributes="*.txt text\n")
    person.file("none.txt", b"none")
    person.git("add", "-A")
    result = await shell.bash("for f in unix *.txt; do echo x > $f; done")
    assert shell.told(result) == {
        "dos.txt": (b"a\r\nb\r\n", b"x\n"),
        "none.txt": (b"none", b"x\n"),
        "unix": (b"a\nb\n", b"x\n"),
    }
    assert "mixed.txt (its earlier content is unknown)" in said(result)


@pytest.mark.parametrize(
    ("attributes", "data"),
    [
        ("ident", b"$Id$ and $Id: is expanded $\n"),
        ("working-tree-encoding=UTF-16", "\ufeffsome text\n".encode("utf-16-le")),
        ("filter=upper", b"same size\n"),
    ],
)
async def test_bytes_that_cannot_be_proved(
    person: Person, shell: Shell, attributes: str, data: bytes
) -> None:
    ran = person.root.parent / "ran"
    person.git("config", "filter.upper.clean", f"touch {ran}; tr a-z A-Z")
    os.utime(person.file("it", data), (1e9, 1e9))  # else git compares contents
    person.commit(_gitattributes=f"it {attributes}\n")
    assert ran.exists() == (attributes == "filter=upper")
    ran.unlink(missing_ok=True)
    # The attributes of then count, also when the command changes them.
    result = await shell.bash("echo x > it; echo > .gitattributes")
    assert set(shell.told(result)) == {".gitattributes"}
    assert "not under review: it (its earlier content is unknown)" in said(result)
    assert not ran.exists()
    assert await shell.changes("echo y > it") == {"it": (b"x\n", b"y\n")}


# --- the repository -----------------------------------------------------------------------------


def traces(root: Path) -> dict[str, tuple[object, ...]]:
    """Of everything in the repository's directory."""
    found: dict[str, tuple[object, ...]] = {}
    for folder, _, files in os.walk(root / ".git"):
        for name in files:
            path = os.path.join(folder, name)
            about = os.stat(path)
            found[path] = (about.st_mtime_ns, about.st_ctime_ns, about.st_ino, about.st_size)
    return found


async def test_the_repository_is_not_touched_and_nothing_of_it_runs(
    person: Person, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = person.root.parent / "ran"
    person.commit(_gitattributes="*.py filter=x diff=x\n")
    trap = f"touch {ran}; cat"
    for key in ("filter.x.clean", "filter.x.smudge", "diff.x.textconv", "core.fsmonitor"):
        person.git("config", key, trap)
    person.hook("post-index-change", f"touch {ran}")
    for name in ("a.py", "new.py"):
        person.file(name, "dirty\n")
    before = traces(person.root)
    result = await shell.bash("echo x > a.py; echo y > b.py; echo z > new.py; chmod +x b.py")
    assert set(shell.told(result)) == {"a.py", "new.py"}
    assert "b.py (its earlier content is unknown)" in said(result)
    assert traces(person.root) == before
    assert not ran.exists()


async def test_a_filter_configured_meanwhile_is_not_run(person: Person, shell: Shell) -> None:
    """Also where the file that says so is only included."""
    ran = person.root.parent / "ran"
    person.file(".git/more", "")
    person.git("config", "include.path", "more")
    person.commit(_gitattributes="*.py filter=x\n")
    await shell.bash("touch a.py")
    config = f'[filter "x"]\\nclean = "touch {ran}; cat"\\n'
    await shell.bash(f"printf '{config}' > .git/more; echo x > a.py; touch b.py")
    await shell.bash("echo y > a.py; touch b.py; git checkout -q --orphan other; git reset -q")
    assert not ran.exists() or "x" not in ran.read_text()


async def test_a_checkout_is_no_edit(person: Person, shell: Shell) -> None:
    first = person.head()
    person.commit(a_py="second\n", new_txt="new\n")
    result = await shell.bash(f"git checkout -q {first}; echo x > b.py")
    assert shell.told(result) == {"b.py": (B, b"x\n")}
    assert "[2 files are now as in the commit that was checked out" in said(result)
    result = await shell.bash("git checkout -q main")  # b.py is carried along
    assert result.changes == () and "[2 files are now" in said(result)


async def test_a_checkout_that_destroys_is_one(person: Person, shell: Shell) -> None:
    first = person.head()
    person.commit(a_py="second\n")
    person.file("a.py", "nobody else has this\n")
    person.file("b.py", "added once\n")
    person.git("add", "b.py")
    assert await shell.changes(f"git reset -q --hard {first}") == {
        "a.py": (b"nobody else has this\n", A)
    }


async def test_stash_takes_away_and_brings_back(person: Person, shell: Shell) -> None:
    person.file("a.py", "mine\n")
    assert await shell.changes("git stash -q") == {"a.py": (b"mine\n", A)}
    assert await shell.changes("git stash pop -q") == {"a.py": (A, b"mine\n")}
    assert person.git("stash", "list") == ""


async def test_the_repository_is_removed(person: Person, shell: Shell) -> None:
    result = await shell.bash("rm -rf .git; echo x > a.py")
    assert result.changes == ()
    assert said(result) == (
        "[Files that this command may have changed are not under review: it is no longer a "
        "git work tree.]"
    )
    result = await shell.bash("git init -q; echo y > a.py")
    assert "there is no readable git work tree here" in said(result)
    assert await shell.changes("echo z > a.py") == {"a.py": (b"y\n", b"z\n")}
    person.commit()
    result = await shell.bash("rm -rf .git; git init -q; echo x > a.py; rm b.py")
    assert "a.py (its earlier content is unknown), b.py (" in said(result)


async def test_no_work_tree_to_look_at(workspace: Workspace, tmp_path: Path) -> None:
    shell = Shell(workspace)
    result = await shell.bash("touch x")
    assert said(result) == (
        "[Files that this command may have changed are not under review: there is no readable "
        "git work tree here.]"
    )
    assert (await shell.bash("ls; cat x")).for_user == ""
    git(tmp_path, "init", "-q", "--bare", str(workspace.root))
    assert "no readable git work tree here" in said(await shell.bash("touch y"))


async def test_before_the_first_commit(workspace: Workspace) -> None:
    git(workspace.root, "init", "-q")
    shell = Shell(workspace)
    assert await shell.changes("echo 1 > a; echo 2 > b; git add b") == {
        "a": (None, b"1\n"),
        "b": (None, b"2\n"),
    }
    result = await shell.bash("echo 3 > b; echo 4 > a; git commit -qam x")
    assert shell.told(result) == {"a": (b"1\n", b"4\n")}


async def test_a_linked_work_tree_and_a_root_inside_one(person: Person, tmp_path: Path) -> None:
    tree = tmp_path.resolve() / "tree"
    person.commit(**{"sub/in": "in\n"})
    person.git("worktree", "add", "-q", str(tree))
    shell = Shell(Workspace(tree / "sub"))
    assert await shell.changes("echo x > in; echo y > new; echo z > ../a.py") == {
        "in": (b"in\n", b"x\n"),
        "new": (None, b"y\n"),
    }
    result = await shell.bash(f"git -C {tree} commit -qam all; rm in")
    assert shell.told(result) == {"in": (b"x\n", None)}


async def test_repositories_inside_are_not_looked_into(person: Person, shell: Shell) -> None:
    inner = person.root / "inner"
    subprocess.run(["git", "clone", "-q", str(person.root), str(inner)], check=True)
    result = await shell.bash("echo x > inner/a.py; echo y > a.py")
    assert set(shell.told(result)) == {"a.py"}
    assert "(ignored files and repositories inside this one are not scanned)" in said(result)
    person.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", "./inner", "inner")
    result = await shell.bash("echo z > inner/a.py; echo z > a.py")
    assert set(shell.told(result)) == {"a.py"}
    assert "repositories inside this one" in said(result)


async def test_a_sparse_work_tree(person: Person, shell: Shell) -> None:
    person.commit(**{"in/one": "1\n", "out/two": "2\n"})
    person.git("sparse-checkout", "set", "in")
    assert not (person.root / "out").exists()
    assert await shell.changes("echo x > in/one") == {"in/one": (b"1\n", b"x\n")}
    result = await shell.bash("git sparse-checkout disable")
    assert result.changes == ()


async def test_while_files_are_unmerged(person: Person, shell: Shell) -> None:
    person.git("checkout", "-q", "-b", "side")
    person.commit(a_py="side\n")
    person.git("checkout", "-q", "main")
    person.commit(a_py="main\n")
    result = await shell.bash("git merge -q side || true")
    assert shell.told(result)["a.py"][0] == b"main\n"
    conflict = (person.root / "a.py").read_bytes()
    assert b"<<<<<<<" in conflict
    assert await shell.changes("echo both > a.py") == {"a.py": (conflict, b"both\n")}


# --- bounds -------------------------------------------------------------------------------------


async def test_large_files_are_named_and_not_covered(
    person: Person, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    person.file("large", b"x" * 2_000_001)
    person.commit()
    person.file("old", b"x" * 2_000_001)
    result = await shell.bash(
        "echo x > large; echo x >> old; head -c 2000001 /dev/zero > new; rm a.py"
    )
    assert set(shell.told(result)) == {"a.py"}
    assert "large (2,000,001 bytes before)" in said(result)
    assert "new (2,000,001 bytes), old (2,000,001 bytes)" in said(result)
    result = await shell.bash("touch b.py")  # and is not told again
    assert result.for_user == ""
    monkeypatch.setattr(worktree, "ALL", 1_000)
    result = await shell.bash("for n in 1 2 3; do head -c 400 /dev/zero > $n; done")
    assert set(shell.told(result)) == {"1", "2"}
    assert "3 (more than" in said(result)


async def test_many_files_are_counted(
    person: Person, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = await shell.bash("for n in $(seq 501); do echo $n > n$n; done")
    assert result.changes == ()
    assert "Changed, but not under review: 501 files, more than 500: n1, n10" in said(result)
    person.commit()
    first = person.git("rev-parse", "HEAD~1").strip()
    result = await shell.bash(f"git checkout -q {first}")
    assert "[501 files are now as in the commit" in said(result)
    monkeypatch.setattr(worktree, "UNKNOWN", 10)
    for number in range(11):
        person.file(f"x{number}", "x")
    assert "more than 10 files are neither known" in said(await shell.bash("rm x1"))


async def test_a_work_tree_that_takes_too_long_is_left_alone(
    person: Person, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worktree, "LATE", 0.0)
    assert "takes longer than 0 s" in said(await shell.bash("echo x > a.py"))
    monkeypatch.undo()
    assert await shell.changes("echo y > a.py") == {"a.py": (b"x\n", b"y\n")}
    monkeypatch.setattr(worktree, "SECONDS", 0.0)
    assert "takes longer than 0 s" in said(await shell.bash("echo x > a.py"))
    monkeypatch.undo()
    assert "takes longer than 0 s" in said(await shell.bash("echo y > a.py"))


def test_a_busy_machine_may_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    processors = os.cpu_count() or 1
    for load, seconds in ((0.5, 5.0), (2.0, 10.0), (50.0, 20.0)):
        monkeypatch.setattr(os, "getloadavg", lambda load=load: (load * processors, 0.0, 0.0))
        assert worktree._patience() == seconds


async def test_a_repository_that_git_cannot_read(person: Person, shell: Shell) -> None:
    (person.root / ".git/index").write_bytes(b"damaged")
    result = await shell.bash("echo x > a.py")
    assert result.for_model == "[exit code 0]\n(no output)"
    assert "not under review: git " in said(result)


async def test_without_git_commands_run_all_the_same(
    person: Person, shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for program in ("bash", "sh", "touch", "env"):
        (tmp_path / program).symlink_to(shutil.which(program) or program)
    monkeypatch.setenv("PATH", str(tmp_path))
    result = await shell.bash("touch new")
    assert result.for_model.startswith("[exit code 0]")
    assert "no readable git work tree here" in said(result)


# --- whose doing it was -------------------------------------------------------------------------


async def begun(shell: Shell, command: str, mark: str = "begun") -> asyncio.Task[Result]:
    """A command that goes on when `go` is called."""
    root = shell.workspace.root
    os.mkfifo(root.parent / "go")
    line = f"touch {root.parent}/{mark}; read x < {root.parent}/go; {command}"
    task = asyncio.create_task(shell.bash(line, timeout=600))
    while not (root.parent / mark).exists():
        await asyncio.sleep(0.01)
    return task


async def go(shell: Shell) -> None:
    await asyncio.to_thread((shell.workspace.root.parent / "go").write_text, "\n")


async def test_what_magy_itself_wrote_meanwhile_is_not_the_commands(
    person: Person, shell: Shell
) -> None:
    root = str(person.root)
    person.file("b.py", B + b"unsaved\n")
    task = await begun(shell, "echo late > late.py; rm gone.py; echo x > c.py")
    by_magy = {"a.py": b"by Magy\n", "late.py": b"by Magy\n", "gone.py": b"by Magy\n"}
    for name, data in by_magy.items():
        now = Version(hash=digest(data), kind="executable")
        path = f"{root}/{name}"
        await asyncio.to_thread(put, root, path, look(root, path)[0], now, data)
    path, now = f"{root}/b.py", Version(hash=digest(B))
    await asyncio.to_thread(put, root, path, look(root, path)[0], now, B)
    await go(shell)
    result = await task
    assert shell.told(result) == {
        "c.py": (None, b"x\n"),
        "gone.py": (b"by Magy\n", None),
        "late.py": (b"by Magy\n", b"late\n"),
    }
    assert (one(result, "late.py").was, one(result, "late.py").now) == ("executable",) * 2


async def test_what_a_person_saves_meanwhile_is_not_the_commands(
    person: Person, shell: Shell
) -> None:
    editor = person.editor = FakeEditor()
    for name in ("a.py", "b.py", "c.py"):
        editor.open(person.file(name, "disk\n"))
    editor.type(f"{person.root}/a.py", "typed\n")
    editor.type(f"{person.root}/b.py", "typed\n")
    task = await begun(shell, "echo x > b.py; echo y > c.py")
    editor.type(f"{person.root}/a.py", "typed on\n")
    await editor.save(editor.buffers[f"{person.root}/a.py"])
    await go(shell)
    while (person.root / "c.py").read_text() != "y\n":
        await asyncio.sleep(0.01)
    editor.type(f"{person.root}/c.py", "y\n")  # it loads what is on disk
    assert shell.told(await task) == {
        "b.py": (b"disk\n", b"x\n"),  # the unsaved text is still the person's own
        "c.py": (b"disk\n", b"y\n"),
    }


async def test_a_file_that_the_editor_is_just_writing_is_looked_at_again(
    person: Person, shell: Shell
) -> None:
    """An editor that cannot be asked empties a file, writes it, and says so then."""
    editor = person.editor = FakeEditor()
    editor.configurable = False
    file = person.file("a.py", "disk\n")
    editor.open(file)
    editor.type(str(file), "typed\n")
    task = await begun(shell, "echo x > c.py")
    file.write_bytes(b"")
    await go(shell)
    while not (person.root / "c.py").exists():
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.3)
    file.write_bytes(b"typed\n")
    editor.tell(str(file), saved=True)
    assert shell.told(await task) == {"c.py": (None, b"x\n")}


async def test_a_file_that_is_opened_and_saved_while_the_work_tree_is_looked_at(
    person: Person, shell: Shell
) -> None:
    """What was heard until then was before the look at it, which finds the file half-written."""
    file = person.file("a.py", "one\ntwo\n")

    class Opening(FakeEditor):
        def follow(self, see: Callable[[Seen], None]) -> Callable[[], None]:
            stop = super().follow(see)
            if not self.buffers:
                self.open(file)
                self.type(str(file), "one\ntyped\n")
                file.write_bytes(b"")
            return stop

    editor = person.editor = Opening()
    task = await begun(shell, "echo x > c.py")
    file.write_bytes(b"one\ntyped\n")
    editor.tell(str(file), saved=True)
    await go(shell)
    assert shell.told(await task) == {"c.py": (None, b"x\n")}


async def test_two_commands_at_once_do_not_both_tell_it(person: Person, shell: Shell) -> None:
    slow = await begun(shell, "echo slow > slow.py")
    assert await shell.changes("echo x > a.py") == {"a.py": (A, b"x\n")}
    await go(shell)
    assert shell.told(await slow) == {"slow.py": (None, b"slow\n")}


async def test_a_change_under_way_is_waited_for(person: Person, shell: Shell) -> None:
    path = person.root / "a.py"
    async with busy(str(path)):
        task = asyncio.create_task(shell.bash("echo x > a.py"))
        while path.read_text() != "x\n":
            await asyncio.sleep(0.01)
        path.write_bytes(b"done")
        await asyncio.sleep(0.3)
        assert not task.done()
        was, now = (known_changes.Told(Version(hash=digest(d)), d) for d in (b"x\n", b"done"))
        known_changes.tell(str(path), was, now)
    assert (await task).changes == ()


# --- what needs no look -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("ls -la && cat a.py | head -3", True),
        ("git status -s; git log --oneline | wc -l", True),
        ("grep -rn one . | sort -u", True),
        ("find . -name '*.py'", True),
        ("sed -n 1,2p a.py", True),
        ("true", True),
        ("find . -name '*.py' -delete", False),
        ("sed -i s/a/b/ a.py", False),
        ("sort -o a.py a.py", False),
        ("uniq a.py b.py", False),
        ("echo x > a.py", False),
        ("cat a.py > /dev/null; touch b.py", False),
        ("git log --output=a.py", False),
        ("git commit -am x", False),
        ("git -C . status", False),
        ("ls $(rm a.py)", False),
        ("cat <(rm a.py)", False),
        ("ls() { rm a.py; }; ls", False),
        ("PATH=. ls", False),
        ("./ls", False),
        ("make", False),
    ],
)
async def test_what_only_reads(person: Person, shell: Shell, command: str, expected: bool) -> None:
    assert only_reads(await person.judge(shell.tools["bash"], command=command)) is expected


async def test_what_runs_in_the_background_is_not_covered(person: Person, shell: Shell) -> None:
    result = await shell.bash("echo x > a.py", background=True)
    assert result.changes == ()
    assert result.for_user.endswith("files that it changes are not under review")
    await shell.processes.close()
