"""grep: what it finds and shows."""

from __future__ import annotations

import asyncio
import os
import tracemalloc
from pathlib import Path

import psutil
import pytest

from magy_server.core.errors import ToolError
from magy_server.tools.search import grep_search, ripgrep_program

from .conftest import FakeEditor
from .searching import Searcher, searcher


@pytest.fixture
def search(tmp_path: Path) -> Searcher:
    return searcher(tmp_path)


async def test_lines_come_with_path_and_number_in_the_order_of_the_paths(search: Searcher) -> None:
    search.file("b/two.py", "x\n\tdef foo():\n")
    search.file("b.py", "def foo(): pass\ndef bar(): pass\ndef foobar(): pass")
    search.file("a.txt", "def nothing\n")
    result = await search.do("grep", pattern=r"def \w*foo")
    assert result.for_model == (
        "b/two.py:2:\tdef foo():\n"
        "b.py:1:def foo(): pass\n"
        "b.py:3:def foobar(): pass\n"
        "[3 matching lines in 2 files]"
    )
    assert result.for_user == "3 matching lines in 2 files"
    assert not search.last.evidence


async def test_facts_name_what_is_searched(search: Searcher) -> None:
    search.file("src/a.py", "x")
    facts = await search.judge(search.tools["grep"], pattern="foo\n\x1b[31m", path="src")
    assert facts.title == 'Search "foo\\n\\x1b[31m" in src'
    assert facts.resources[0].subject == str(search.root / "src")
    assert (facts.resources[0].kind, facts.resources[0].relative) == ("read", "src")
    outside = await search.judge(search.tools["grep"], pattern="x", path="../")
    assert outside.problem is not None and outside.problem.startswith("outside the workspace")


async def test_no_match_is_no_error(search: Searcher) -> None:
    search.file("src/a.py", "x")
    assert await search.grep("absent", path="src") == ["No matches for absent in src."]
    assert await search.grep("x", glob="*.c") == [
        "No matches for x in the workspace, files matching *.c."
    ]
    (search.root / "empty").mkdir()
    assert await search.grep("x", path="empty") == ["No matches for x in empty."]


async def test_a_page_and_the_way_on(search: Searcher) -> None:
    search.file("a.txt", "".join(f"hit {n}\n" for n in range(1, 8)))
    search.file("b.txt", "".join(f"hit {n}\nmiss\n" for n in range(8, 30)))
    first = await search.grep("hit")
    assert first[6:] == [
        "a.txt:7:hit 7", "b.txt:1:hit 8", "b.txt:3:hit 9", "b.txt:5:hit 10",
        "[matching lines 1-10 of 29 in 2 files; continue with offset=11, or narrow the search]",
    ]  # fmt: skip
    second = await search.grep("hit", offset=11)
    assert (second[0], second[9]) == ("b.txt:7:hit 11", "b.txt:25:hit 20")
    last = await search.grep("hit", offset=29)
    assert last == ["b.txt:43:hit 29", "[matching lines 29-29 of 29 in 2 files]"]
    said = await search.refusal("grep", pattern="hit", offset=30)
    assert said == "There are only 29 matching lines; offset 30 is past the end."


async def test_context_lines_are_marked_and_groups_apart(search: Searcher) -> None:
    search.file("a.txt", "1\n2\nhit\n4\n5\n6\n7\nhit\nhit\n10\n")
    search.file("b.txt", "hit")
    assert await search.grep("hit", context=1) == [
        "a.txt-2-2", "a.txt:3:hit", "a.txt-4-4", "--", "a.txt-7-7", "a.txt:8:hit", "a.txt:9:hit",
        "a.txt-10-10", "--", "b.txt:1:hit", "[4 matching lines in 2 files]",
    ]  # fmt: skip


async def test_names_and_counts(search: Searcher) -> None:
    for number in range(12):
        search.file(f"f{number:02}.txt", "hit\nhit\n")
    files = await search.grep("hit", output="files")
    assert files[:2] == ["f00.txt", "f01.txt"]
    assert files[10:] == ["[files 1-10 of 12; continue with offset=11, or narrow the search]"]
    counts = await search.grep("hit", output="counts", offset=11)
    assert counts == ["f10.txt:2", "f11.txt:2", "[files 11-12 of 12]"]
    assert "only 12 files" in await search.refusal("grep", pattern="h", output="files", offset=13)


async def test_a_file_filter(search: Searcher) -> None:
    for name in ("a.py", "src/b.py", "src/b.ts", "src/deep/c.py", "src/deep/d.min.py"):
        search.file(name, "hit")

    async def found(glob: str, path: str = ".") -> list[str]:
        return (await search.grep("hit", glob=glob, path=path, output="files"))[:-1]

    assert await found("*.ts") == ["src/b.ts"]
    assert await found("src/*.py") == ["src/b.py"]
    assert await found("src/**/*.{py,ts}") == [
        "src/b.py", "src/b.ts", "src/deep/c.py", "src/deep/d.min.py"
    ]  # fmt: skip
    assert await found("!*.min.*", "src/deep") == ["src/deep/c.py"]
    assert await found("[ab].py") == ["a.py", "src/b.py"]
    assert await found("./*.py") == ["a.py"]
    assert await found("src/") == ["src/b.py", "src/b.ts", "src/deep/c.py", "src/deep/d.min.py"]
    assert "unclosed alternate group" in await search.refusal("grep", pattern="x", glob="*.{py")


async def test_letter_case_and_plain_texts(search: Searcher) -> None:
    search.file("a.txt", "Foo.bar(\nfoo+bar(\nGRÖSSE\nkelvin \u212a\n")
    assert (await search.grep("foo", ignore_case=True))[:2] == [
        "a.txt:1:Foo.bar(",
        "a.txt:2:foo+bar(",
    ]
    assert (await search.grep("(?i)größe|grösse"))[0] == "a.txt:3:GRÖSSE"
    assert (await search.grep("foo+bar(", fixed=True))[0] == "a.txt:2:foo+bar("
    assert (await search.grep(" k$", ignore_case=True))[0] == "a.txt:4:kelvin \u212a"
    search.file("b.txt", "-e --files -- x\n")
    assert (await search.grep("-e --files", fixed=True))[0] == "b.txt:1:-e --files -- x"


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("foo(", "unclosed group"),
        ("a)b", "unopened group"),
        ("*x", "repetition operator missing expression"),
        ("(?=x)y", "there is no look-around"),
        (r"(a)\1", "no back reference"),
        (r"a\nb", "A pattern matches within one line"),
        ("a\nb", "A pattern matches within one line"),
        ("[a", "unclosed character class"),
        ("[z-a]", "invalid character class range"),
        ("a{5,2}", "invalid repetition count range"),
        (r"(\w{100}){100}", "exceeds size limit"),
        ("a\0b", "contains a NUL"),
        ("a\ud800", "unicode"),
        ("", "at least 1 character"),
        ("x" * 2001, "at most 2000 characters"),
    ],
)
async def test_what_a_pattern_cannot_say_is_told(search: Searcher, pattern: str, said: str) -> None:
    refusal = await search.refusal("grep", pattern=pattern)
    assert said in refusal and "PCRE" not in refusal and "multiline" not in refusal


async def test_braces_and_quotes_need_no_escape(search: Searcher) -> None:
    search.file("a.ts", 'interface {\n  "a": {},\n}\nx{2} xx {{ é\n')
    assert (await search.grep("interface {"))[0] == "a.ts:1:interface {"
    assert (await search.grep(r"\"a\": {}"))[0] == 'a.ts:2:  "a": {},'
    for pattern in (r"x\{2", "x{2} {", "{{", r"x[{]2", r"\p{Ll}{2} {{", r"\x{e9}", "(?P<n>x){2}"):
        assert (await search.grep(pattern))[0].startswith("a.ts:4:"), pattern


# --- what is searched ---------------------------------------------------------------------------


async def test_ignored_files_are_left_out_at_all_levels(search: Searcher) -> None:
    search.repository()
    search.file(".gitignore", "build/\n*.log\n!keep.log\n")
    search.file("src/.gitignore", "/gen.py\n")
    search.file("src/.ignore", "!x.log\n")
    search.file(".git/config", "hit")
    search.file(".git/info/exclude", "private.txt\n")
    for name in (
        "build/a.py", "a.log", "keep.log", "src/gen.py", "src/sub/gen.py", "src/x.log",
        "private.txt", ".github/ci.yml",
    ):  # fmt: skip
        search.file(name, "hit")
    assert await search.grep("hit", output="files") == [
        ".github/ci.yml", "keep.log", "src/sub/gen.py", "src/x.log", "[4 matching lines in 4 files]"
    ]  # fmt: skip
    assert (await search.grep("hit", path="src"))[:-1] == [
        "src/sub/gen.py:1:hit", "src/x.log:1:hit"
    ]  # fmt: skip
    assert (await search.grep("hit", path="build"))[0] == "build/a.py:1:hit"
    assert (await search.grep("hit", path="a.log"))[0] == "a.log:1:hit"
    assert (await search.grep("hit", path=".git"))[0] == ".git/config:1:hit"


async def test_gitignore_counts_up_to_the_repository_and_not_beyond(search: Searcher) -> None:
    search.file(".gitignore", "*.txt\n")
    search.file("a.txt", "hit")
    assert (await search.grep("hit"))[0] == "a.txt:1:hit", "there is no repository"
    search.file("repo/.gitignore", "b.*\n")
    search.repository("repo")
    search.file("repo/in/a.txt", "hit")
    search.file("repo/in/b.txt", "hit")
    assert (await search.grep("hit", path="repo/in"))[:-1] == ["repo/in/a.txt:1:hit"]
    search.repository()
    assert (await search.grep("hit"))[:-1] == ["repo/in/a.txt:1:hit"]


async def test_a_work_tree_has_the_exclusions_of_its_repository(search: Searcher) -> None:
    store = search.root.parent / "main" / ".git"
    (store / "info").mkdir(parents=True)
    (store / "info/exclude").write_text("secret.txt\n")
    (store / "worktrees/one").mkdir(parents=True)
    (store / "worktrees/one/commondir").write_text("../..\n")
    search.file(".git", f"gitdir: {store}/worktrees/one\n")
    search.file("secret.txt", "hit")
    search.file("open.txt", "hit")
    assert (await search.grep("hit"))[:-1] == ["open.txt:1:hit"]


async def test_encodings_line_ends_and_binary_files(search: Searcher) -> None:
    search.file("bom.txt", b"\xef\xbb\xbfhit b")
    search.file("crlf.txt", b"no\r\nhit c\r\nhit\r\n")
    search.file("latin.txt", "größer hit\n".encode("latin-1"))
    search.file("u16le.txt", "\ufeffno\nhit ü\n".encode("utf-16-le"))
    search.file("u16be.txt", "\ufeffhit ü".encode("utf-16-be"))
    search.file("zip", b"PK\x03\x04\x00\x00hit\n")
    search.file("late", b"hit\n" + b"x\n" * 200_000 + b"\0\n")
    assert (await search.grep("^hit"))[:-1] == [
        "bom.txt:1:hit b", "crlf.txt:2:hit c", "crlf.txt:3:hit", "u16be.txt:1:hit ü",
        "u16le.txt:2:hit ü",
    ]  # fmt: skip
    assert (await search.grep("hit$"))[:-1] == ["crlf.txt:3:hit", "latin.txt:1:größer hit"]
    assert "holds binary data" in await search.refusal("grep", pattern="hit", path="late")
    assert "holds binary data" in await search.refusal("grep", pattern="hit", path="zip")
    assert (await search.grep("ü", path="u16le.txt"))[0] == "u16le.txt:2:hit ü"


async def test_long_lines_are_cut_around_the_match(search: Searcher) -> None:
    search.file("min.js", "x" * 50_000 + "é hit é" + "y" * 50_000 + "\nhit\n" + "é" * 390 + "hit")
    lines = await search.grep("hit")
    assert lines[0].startswith("min.js:1:[...] " + "x" * 90)
    assert "é hit é" + "y" * 100 in lines[0]
    assert lines[0].endswith("y [... cut: this line has 100,009 bytes]")
    assert len(lines[0]) < 500
    assert lines[1] == "min.js:2:hit"
    assert lines[2] == "min.js:3:" + "é" * 390 + "hit"


async def test_links_fifos_and_a_sparse_file_do_no_harm(search: Searcher) -> None:
    outside = search.root.parent / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("hit")
    (search.root / "out").symlink_to(outside)
    (search.root / "file.txt").symlink_to(outside / "secret.txt")
    (search.root / "loop").symlink_to(".")
    os.mkfifo(search.root / "fifo")
    os.truncate(search.file("disk.img"), 1_000_000_000)
    search.file("real.txt", "hit")
    assert await search.grep("hit") == ["real.txt:1:hit", "[1 matching line in 1 file]"]
    tracemalloc.start()
    try:
        assert "binary data" in await search.refusal("grep", pattern="x", path="disk.img")
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


async def test_strange_names_are_shown_on_one_line(search: Searcher) -> None:
    search.file("a\nb:1:fake.txt", "hit")
    search.file("\x1b[31mred", "hit")
    search.file("-rf", "hit")
    Path(os.fsdecode(os.fsencode(search.root) + b"/bad\xff.txt")).write_text("hit")
    assert (await search.grep("hit"))[:-1] == [
        "\\x1b[31mred:1:hit", "-rf:1:hit", "a\\nb:1:fake.txt:1:hit", "bad\\udcff.txt:1:hit",
    ]  # fmt: skip


async def test_what_cannot_be_read_is_said(search: Searcher) -> None:
    search.file("a.txt", "hit")
    here = os.open(search.root, os.O_RDONLY)
    try:  # deeper than a path can say
        for _ in range(20):
            os.mkdir("d" * 250, dir_fd=here)
            deeper = os.open("d" * 250, os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = deeper
    finally:
        os.close(here)
    lines = await search.grep("hit")
    assert lines[0] == "a.txt:1:hit"
    assert lines[-1] == "[something in there could not be read and was skipped]"


async def test_wrong_places_are_told(search: Searcher) -> None:
    search.file("src/helpers.py", "x")
    assert "Did you mean: src" in await search.refusal("grep", pattern="x", path="scr")
    said = await search.refusal("grep", pattern="x", path="src/helper.py")
    assert "Did you mean: src/helpers.py" in said


async def test_a_link_put_there_after_the_facts_is_not_followed(search: Searcher) -> None:
    search.file("src/a.txt", "harmless")
    outside = search.root.parent / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("hit")
    grep = search.tools["grep"]
    context = await search.prepare(grep, pattern="hit", path="src")
    (search.root / "src/a.txt").unlink()
    (search.root / "src").rmdir()
    (search.root / "src").symlink_to(outside)
    with pytest.raises(ToolError, match="symbolic link was put in this path"):
        await grep.run(context, **grep.arguments({"pattern": "hit", "path": "src"}))


# --- permission ---------------------------------------------------------------------------------


async def test_what_may_not_be_read_does_not_leak(search: Searcher) -> None:
    search.file("a.txt", "key=1\n")
    search.file(".env", "key=hunter2\n")
    search.file("id.pem", "key=hunter3\n")
    search.rules = {".env": "deny", "id.pem": "ask"}
    result = await search.do("grep", pattern="key", context=3)
    assert result.for_model == (
        "a.txt:1:key=1\n[1 matching line in 1 file]\n[1 file left out: the rules do not allow "
        "reading without asking; read_file asks]"
    )
    assert "hunter" not in result.for_user
    assert isinstance(search.last.asked, list)
    assert sorted(map(os.path.basename, search.last.asked)) == [".env", "a.txt", "id.pem"]
    for output in ("files", "counts"):
        assert ".env" not in "".join(await search.grep("key", output=output))


async def test_a_denied_file_does_not_even_tell_whether_it_matches(search: Searcher) -> None:
    search.file(".env", "key=hunter2\n")
    search.rules = {".env": "deny"}
    right, wrong = await search.grep("key=hunter."), await search.grep("key=other..")
    assert [line.replace("other.", "hunter") for line in wrong] == right


# --- live buffers -------------------------------------------------------------------------------


async def test_open_buffers_are_searched_instead_of_the_disk(search: Searcher) -> None:
    search.editor = editor = FakeEditor()
    changed, new = search.file("b.txt", "hit on disk\n"), search.root / "c/new.txt"
    search.file("a.txt", "hit a\n")
    editor.open(changed, "one\r\ntwo hit\r\n\r\nthree")
    editor.open(new, "\ufeffhit: never saved")
    assert await search.grep("hit", context=1) == [
        "a.txt:1:hit a", "--", "b.txt-1-one", "b.txt:2:two hit", "b.txt-3-", "--",
        "c/new.txt:1:hit: never saved", "[3 matching lines in 3 files]",
    ]  # fmt: skip
    assert (await search.grep("three$", path="b.txt"))[0] == "b.txt:4:three"
    assert (await search.grep("^hit", path="c/new.txt"))[0] == "c/new.txt:1:hit: never saved"
    assert await search.grep("disk") == ["No matches for disk in the workspace."]


async def test_buffers_are_left_out_where_files_are(search: Searcher) -> None:
    search.editor = editor = FakeEditor()
    search.repository()
    search.file(".gitignore", "build/\n")
    search.file("build/a.txt", "")
    for name in ("build/a.txt", "b.log", "sub/c.txt", "nul.txt", ".git/COMMIT_EDITMSG", ".env"):
        editor.open(search.root / name, "hit\0" if name == "nul.txt" else "hit")
    search.rules = {".env": "ask"}
    lines = await search.grep("hit", glob="!*.log")
    assert lines[:2] == ["sub/c.txt:1:hit", "[1 matching line in 1 file]"]
    assert lines[2].startswith("[1 file left out")
    assert (await search.grep("hit", path="build"))[0] == "build/a.txt:1:hit"
    assert (await search.grep("hit", path="sub"))[:-1] == ["sub/c.txt:1:hit"]


async def test_a_file_pattern_is_for_buffers_too(search: Searcher) -> None:
    search.editor = editor = FakeEditor()
    search.repository()
    search.file(".gitignore", "*.log\n")
    search.file("src/d.log", "hit")
    for name in ("src/a.py", "src/deep/b.py", "src/c.log", "e.py"):
        editor.open(search.root / name, "hit")

    async def found(glob: str, path: str = ".") -> list[str]:
        return (await search.grep("hit", glob=glob, path=path, output="files"))[:-1]

    assert await found("*.py") == ["e.py", "src/a.py", "src/deep/b.py"]
    assert await found("src/*") == ["src/a.py"]
    assert await found("deep/*", "src") == ["src/deep/b.py"]
    assert await found("!src/*") == ["e.py"]
    assert await found("*.log") == []
    assert await found("d.log") == ["src/d.log"]


async def test_an_empty_buffer_has_no_lines(search: Searcher) -> None:
    search.editor = editor = FakeEditor()
    editor.open(search.root / "a.txt", "")
    editor.open(search.root / "b.txt", "\n")
    assert await search.grep("^$") == ["b.txt:1:", "[1 matching line in 1 file]"]


# --- time ---------------------------------------------------------------------------------------


def program(path: Path, does: str, says: str = "ripgrep 15.0.0") -> str:
    """A program that has this to say of itself, and else does that."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\ncase $1 in --version) echo '{says}' ;; *) {does} ;; esac\n")
    path.chmod(0o755)
    return str(path)


def workers() -> list[psutil.Process]:
    """Search programs that this process has started."""
    return psutil.Process().children(recursive=True)


@pytest.fixture
def slow(tmp_path: Path) -> Searcher:
    """With a ripgrep that finds one file and then never ends."""
    found = tmp_path.resolve() / "work/a.txt"
    does = f"printf '{found}\\0001\\r\\n'; exec sleep 1000"
    return searcher(tmp_path, program(tmp_path / "slow", does))


async def test_a_search_that_takes_too_long_is_stopped(
    slow: Searcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grep_search, "SECONDS", 1.0)
    said = await slow.refusal("grep", pattern="x")
    assert said.startswith("The search took longer than 1 s and was stopped.")
    assert "Until then it had found matches in a.txt" in said
    assert workers() == []


async def test_cancelling_ends_the_search_program(
    slow: Searcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "hunter2")
    task = asyncio.create_task(slow.do("grep", pattern="x"))
    while not any(worker.name() == "sleep" for worker in workers()):
        await asyncio.sleep(0.01)
    [worker] = workers()
    assert "ANTHROPIC_API_KEY" not in worker.environ()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert workers() == []


async def test_ripgrep_reads_no_settings_of_the_user(
    search: Searcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = search.root.parent / "ripgreprc"
    settings.write_text("--max-count=1\n--glob=!*.txt\n--hidden\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(settings))
    search.file("a.txt", "hit\nhit\n")
    assert (await search.grep("hit"))[:2] == ["a.txt:1:hit", "a.txt:2:hit"]


# --- which program ------------------------------------------------------------------------------


async def test_the_one_on_path_goes_first(
    search: Searcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    *_, brought = ripgrep_program.candidates("rg")
    folder = search.root.parent / "bin"
    program(folder / "rg", f'echo >> {folder}/asked; exec {brought} "$@"')
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    search.file("a.txt", "hit")
    assert (await search.grep("hit"))[0] == "a.txt:1:hit"
    assert (folder / "asked").exists()


@pytest.mark.parametrize("says", ["grep (GNU grep) 3.11", "ripgrep 13.0.0", "ripgrep", ""])
async def test_one_that_does_not_suit_is_passed_over(tmp_path: Path, says: str) -> None:
    search = searcher(tmp_path, program(tmp_path / "rg", "exit 3", says))
    search.file("a.txt", "hit")
    assert (await search.grep("hit"))[0] == "a.txt:1:hit"


async def test_that_there_is_none_is_said_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ripgrep_program, "PACKAGE", "no-such-package")
    search = searcher(tmp_path, "no-such-ripgrep")
    for name in ("grep", "glob"):
        said = await search.refusal(name, pattern="x")
        assert said.startswith("There is no working ripgrep 14 or newer")
        assert "Install ripgrep 14 or newer, or install Magy again" in said
