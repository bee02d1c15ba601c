from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from magy_server.core.errors import ToolError
from magy_server.core.values import digest
from magy_server.edits.model import Hunk
from magy_server.edits.placing.decorations import as_lines
from magy_server.edits.placing.partial_lines import completes, lost_margin
from magy_server.edits.rebasing.diff import changes, unified
from magy_server.edits.text import plain, split
from magy_server.tools.files.change import ROUNDS
from magy_server.tools.files.edit_tools import edit_file, write_file
from magy_server.tools.files.read_tool import read_file
from tests.thorough import examples

from .conftest import FakeEditor, Workspace

ENDS = ["\n", "\r\n", "\r"]
ENCODINGS = {
    "utf-8": b"",
    "utf-8-sig": b"\xef\xbb\xbf",
    "utf-16-le": b"\xff\xfe",
    "utf-16-be": b"\xfe\xff",
    "cp1252": b"",
}


def encoded(text: str, encoding: str) -> bytes:
    mark = ENCODINGS[encoding]
    return mark + text.encode("utf-8" if encoding == "utf-8-sig" else encoding)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("end", ENDS, ids=["lf", "crlf", "cr"])
@pytest.mark.parametrize("last", [True, False], ids=["newline", "no-newline"])
@pytest.mark.req("G012", "E112")
async def test_only_the_edited_lines_change(
    workspace: Workspace, encoding: str, end: str, last: bool
) -> None:
    before = end.join(["ein Käse", "\tzwei", "drei  ", "vier ß"]) + (end if last else "")
    file = workspace.file("a.txt", encoded(before, encoding))
    result = await workspace.run(
        edit_file, path="a.txt", old_text="\tzwei\ndrei  \n", new_text="\tzwei\nneu\nöfter\n"
    )
    expected = before.replace(f"drei  {end}", f"neu{end}öfter{end}")
    assert file.read_bytes() == encoded(expected, encoding)
    assert result.for_user == "a.txt +2 -1"
    assert [(c.before, c.after) for c in result.changes] == [
        (digest(encoded(before, encoding)), digest(encoded(expected, encoding)))
    ]
    assert "-drei  \n+neu\n+öfter\n" in result.diff


LINE = st.text(st.sampled_from("ab \té€x"), max_size=5)
FILE = st.lists(st.tuples(LINE, st.sampled_from(["\n", "\r\n"])), min_size=1, max_size=12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    rows=FILE,
    tail=LINE,
    span=st.tuples(st.integers(0, 60), st.integers(1, 30)),
    new=st.text(st.sampled_from("ab\n\té"), max_size=12),
    mark=st.sampled_from([b"", b"\xef\xbb\xbf"]),
)
@example(rows=[("", "\n")], tail=" a", span=(2, 1), new="\na", mark=b"")
def test_bytes_outside_the_replaced_text_never_change(
    workspace: Workspace,
    rows: list[tuple[str, str]],
    tail: str,
    span: tuple[int, int],
    new: str,
    mark: bytes,
) -> None:
    workspace.known.clear()
    raw = "".join(text + end for text, end in rows) + tail
    shown = plain(raw)
    start = min(span[0], len(shown) - 1)
    old = shown[start : start + span[1]]
    file = workspace.file("a.txt", mark + raw.encode())
    assume(not completes(shown, (start, start + len(old)), old, new))
    wanted = as_lines(Hunk(old, new))
    assume(not lost_margin(shown.split("\n"), shown.count("\n", 0, start), wanted))
    possible = shown.count(old) == 1 and shown.find(old, start + 1) < 0 and old != new

    async def edit() -> None:
        await workspace.run(edit_file, path="a.txt", old_text=old, new_text=new)

    if not possible or shown.find(old) != start:
        with pytest.raises(ToolError):
            asyncio.run(edit())
        assert file.read_bytes() == mark + raw.encode()
        return
    asyncio.run(edit())
    now = file.read_bytes()
    assert now.startswith(mark)
    text = now[len(mark) :].decode()
    assert plain(text) == shown[:start] + new + shown[start + len(old) :]
    pairs = [i - n for n, i in enumerate(i for i in range(len(raw)) if raw[i : i + 2] == "\r\n")]
    head = raw[: start + sum(p < start for p in pairs)]
    rest = raw[start + len(old) + sum(p < start + len(old) for p in pairs) :]
    assert text.startswith(head)
    assert text.endswith(rest)


async def test_a_line_quoted_without_its_indentation_keeps_it_in_the_new_lines(
    workspace: Workspace,
) -> None:
    file = workspace.file("a.txt", "\n  a\n")
    await workspace.run(edit_file, path="a.txt", old_text="a", new_text="\na")
    assert file.read_text() == "\n\n  a\n"


async def test_lines_that_stay_keep_their_own_ends_inside_the_replaced_text(
    workspace: Workspace,
) -> None:
    file = workspace.file("mixed.txt", "a\nb\r\nc\nd\r\ne\n")
    await workspace.run(
        edit_file, path="mixed.txt", old_text="a\nb\nc\nd\n", new_text="A\nb\nc\nnew\nD\n"
    )
    assert file.read_bytes() == b"A\nb\r\nc\nnew\r\nD\r\ne\n"


@pytest.mark.parametrize("end", ENDS, ids=["lf", "crlf", "cr"])
async def test_new_lines_inside_one_line_take_the_ends_of_the_file(
    workspace: Workspace, end: str
) -> None:
    file = workspace.file("a.txt", f"one{end}f(x, y){end}")
    await workspace.run(edit_file, path="a.txt", old_text="x, y", new_text="\n  x,\n  y\n")
    assert file.read_bytes().decode() == f"one{end}f({end}  x,{end}  y{end}){end}"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(rows=FILE, tail=LINE, new=st.text(st.sampled_from("ab\n\té€"), max_size=40))
def test_a_whole_write_keeps_the_ends_of_lines_that_stay(
    workspace: Workspace, rows: list[tuple[str, str]], tail: str, new: str
) -> None:
    workspace.known.clear()
    raw = "".join(text + end for text, end in rows) + tail
    file = workspace.file("a.txt", raw)
    asyncio.run(workspace.run(write_file, path="a.txt", content=new))
    now = file.read_bytes().decode()
    assert plain(now) == new
    if {end for _, end in rows} == {"\r\n"}:
        assert now == new.replace("\n", "\r\n")
    shared = [a for a, b in zip(split(raw), split(now), strict=False) if plain(a) == plain(b)]
    first = split(now)[: len(shared)]
    if [plain(line) for line in first] == [plain(line) for line in split(raw)[: len(shared)]]:
        assert first == split(raw)[: len(shared)]


@given(
    rows=st.lists(st.tuples(LINE, st.sampled_from(ENDS)), max_size=8),
    new=st.text(st.sampled_from("ab\n\t"), max_size=20),
)
def test_no_change_begins_or_ends_inside_a_line_end(rows: list[tuple[str, str]], new: str) -> None:
    raw = "".join(text + end for text, end in rows)
    for change in changes(raw, new, 0, len(raw)):
        for at in (change.start, change.end):
            assert at == 0 or raw[at - 1 : at + 1] != "\r\n"


ROWS = st.lists(st.sampled_from(["a", "b", "", "  c", "d d"]), max_size=14)


@settings(max_examples=examples(40), deadline=None)
@given(
    before=ROWS, after=ROWS, ends=st.tuples(st.booleans(), st.booleans()), pad=st.integers(0, 12)
)
def test_the_diff_is_one_that_git_applies(
    tmp_path_factory: pytest.TempPathFactory,
    before: list[str],
    after: list[str],
    ends: tuple[bool, bool],
    pad: int,
) -> None:
    middle = [f"row {n}" for n in range(pad)]
    old, new = (
        "\n".join([*rows, *middle, *rows]) + ("\n" if end else "")
        for rows, end in ((before, ends[0]), (after, ends[1]))
    )
    folder = tmp_path_factory.mktemp("diff")
    (folder / "f.txt").write_bytes(old.encode())
    diff = unified(old, new, "f.txt")
    assert (diff == "") == (old == new)
    if diff:
        applied = subprocess.run(
            ["git", "apply", "--unidiff-zero", "-"], cwd=folder, input=diff.encode(), check=False,
            capture_output=True,
        )  # fmt: skip
        assert applied.returncode == 0, (applied.stderr, diff)
    assert (folder / "f.txt").read_bytes().decode() == new


# --- what the model is told ---------------------------------------------------------------------


async def refusal(workspace: Workspace, **arguments: str) -> str:
    with pytest.raises(ToolError) as caught:
        await workspace.run(edit_file, **arguments)
    assert not workspace.last.evidence
    return caught.value.message


@pytest.mark.req("E112", "G013")
async def test_an_ambiguous_text_is_refused_with_every_line(workspace: Workspace) -> None:
    file = workspace.file("a.py", "x = 1\ny = 2\nx = 1\nz\nx = 1\n")
    said = await refusal(workspace, path="a.py", old_text="x = 1\n", new_text="x = 2\n")
    assert "in 3 places" in said
    assert "line 1, at the top" in said
    assert "line 3, after `y = 2`" in said
    assert "line 5, after `z`" in said
    assert "more of the lines around" in said
    assert file.read_text() == "x = 1\ny = 2\nx = 1\nz\nx = 1\n"


async def test_overlapping_places_are_ambiguous(workspace: Workspace) -> None:
    workspace.file("a.txt", "aaa\n")
    said = await refusal(workspace, path="a.txt", old_text="aa", new_text="b")
    assert "in 2 places" in said


@pytest.mark.parametrize(
    ("old", "why"),
    [
        ("def area(w, k):\n    return w * k\n", "line 3 is `def area(w, h):` where old has"),
        ("class Quux:\n    zebra = None\n", "Nothing similar is there"),
    ],
)
@pytest.mark.req("G013")
async def test_a_text_that_is_not_there_is_refused_with_the_closest(
    workspace: Workspace, old: str, why: str
) -> None:
    workspace.file("a.py", "import math\n\ndef area(w, h):\n    return w * h\n")
    said = await refusal(workspace, path="a.py", old_text=old, new_text="pass\n")
    assert why in said, said
    if "closest" in said:
        assert "lines 3-4" in said
        assert "     4 |     return w * h" in said


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def area(w, h):\n  return w * h\n", "def area(w, h):\n  return w + h\n"),
        ("def area(w, h):\n\treturn w * h\n", "def area(w, h):\n\treturn w + h\n"),
        ("def area(w, h): \n    return w * h\n", "def area(w, h):\n    return w + h\n"),
        ("3\tdef area(w, h):\n4\t    return w * h", "def area(w, h):\n    return w + h"),
        ("def area(w, h):\r\n    return w * h\r\n", "def area(w, h):\n    return w + h\n"),
    ],
    ids=["indented otherwise", "tabs", "trailing blank", "line numbers", "line ends"],
)
@pytest.mark.req("G012")
async def test_a_text_that_is_a_little_off_is_found_and_the_rest_of_its_lines_kept(
    workspace: Workspace, old: str, new: str
) -> None:
    file = workspace.file("a.py", "import math\n\ndef area(w, h):\n    return w * h\n")
    result = await workspace.run(edit_file, path="a.py", old_text=old, new_text=new)
    assert file.read_text() == "import math\n\ndef area(w, h):\n    return w + h\n"
    assert result.for_user == "a.py +1 -1"


async def test_an_edit_that_is_done_already_is_recognised(workspace: Workspace) -> None:
    workspace.file("a.py", "def area(w, h):\n    return w * h\n")
    said = await refusal(
        workspace, path="a.py", old_text="    return w + h\n", new_text="    return w * h\n"
    )
    assert "the file already has the new text, at line 2" in said


async def test_a_stale_text_in_a_large_file_is_explained(workspace: Workspace) -> None:
    rows = [f"    value_{n} = compute({n * 7919 % 1000}, 'row {n}')" for n in range(120_000)]
    workspace.file("big.py", "\n".join(rows))
    old = "\n".join([*rows[70_000:70_003], "    value_x = gone()", *rows[70_004:70_010]])
    said = await refusal(workspace, path="big.py", old_text=old, new_text="pass")
    assert "lines 70001-70010" in said


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [("", "x", "old_text is empty"), ("a", "a", "nothing to change"), ("a\r\n", "a\n", "nothing")],
)
async def test_edits_without_meaning_are_refused_before_anyone_is_asked(
    workspace: Workspace, old: str, new: str, why: str
) -> None:
    workspace.file("a.txt", "a\n")
    facts = await workspace.judge(edit_file, path="a.txt", old_text=old, new_text=new)
    assert facts.problem is not None
    assert why in facts.problem


async def test_the_facts_show_the_diff_beforehand(workspace: Workspace) -> None:
    file = workspace.file("src/a.txt", "one\ntwo\n")
    context = workspace.context()
    arguments = edit_file.arguments({"path": "src/a.txt", "old_text": "two", "new_text": "2"})
    facts, blobs = await edit_file.facts(context, **arguments)
    assert facts.preview is not None
    assert blobs[facts.preview].decode() == (
        "--- a/src/a.txt\n+++ b/src/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    )
    assert facts.title == "Edit src/a.txt"
    assert facts.resources[0].subject == str(file)
    assert file.read_text() == "one\ntwo\n"


async def test_binary_damaged_and_huge_files_are_not_edited(workspace: Workspace) -> None:
    workspace.file("a.bin", b"PK\x03\x04\x00\x00abc")
    said = await refusal(workspace, path="a.bin", old_text="abc", new_text="x")
    assert "ZIP archive" in said
    workspace.file("b.txt", "grüße äöü ".encode() * 20 + b"\xff\nabc\n")
    said = await refusal(workspace, path="b.txt", old_text="abc", new_text="x")
    assert "not valid utf-8: byte 0xff" in said
    workspace.file("c.txt", b"abc\n" + b"x" * 10_000_000)
    said = await refusal(workspace, path="c.txt", old_text="abc", new_text="x")
    assert "10,000,004 bytes" in said
    workspace.file("d.txt", "Käse abc\n".encode("cp1252"))
    said = await refusal(workspace, path="d.txt", old_text="abc", new_text="→")
    assert "cp1252, which does not have '→' (U+2192)" in said
    assert (workspace.root / "d.txt").read_bytes() == "Käse abc\n".encode("cp1252")


# --- writing ------------------------------------------------------------------------------------


@pytest.mark.req("E111")
async def test_write_creates_the_file_and_its_directories(workspace: Workspace) -> None:
    result = await workspace.run(write_file, path="x/y/z.txt", content="eins\nzwei\n")
    assert (workspace.root / "x/y/z.txt").read_text() == "eins\nzwei\n"
    assert result.for_model == "Created x/y/z.txt (2 lines)."
    assert result.changes[0].before is None
    assert result.diff.startswith("--- /dev/null\n+++ b/x/y/z.txt\n@@ -0,0 +1,2 @@\n+eins\n")
    old = os.umask(0)
    os.umask(old)
    assert (workspace.root / "x/y/z.txt").stat().st_mode & 0o777 == 0o666 & ~old


@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_write_keeps_how_a_file_is_kept(workspace: Workspace, encoding: str) -> None:
    file = workspace.file("a.txt", encoded("alt ü\r\nzwei\r\n", encoding))
    file.chmod(0o751)
    result = await workspace.run(write_file, path="a.txt", content="neu é\nzwei\ndrei")
    assert file.read_bytes() == encoded("neu é\r\nzwei\r\ndrei", encoding)
    assert file.stat().st_mode & 0o7777 == 0o751
    assert result.for_model.startswith("Overwrote a.txt (3 lines)")


async def test_write_of_a_text_that_leaves_something_out_changes_nothing(
    workspace: Workspace,
) -> None:
    file = workspace.file("a.js", "a();\nb();\nc();\n")
    with pytest.raises(ToolError, match="send an edit with only the lines that change"):
        await workspace.run(write_file, path="a.js", content="a(1);\n// ... rest of the code ...\n")
    assert file.read_text() == "a();\nb();\nc();\n"
    result = await workspace.run(write_file, path="new.js", content="a(1);\n// ... the rest\n")
    assert result.for_model.startswith("Created new.js")


async def test_write_of_the_same_text_changes_nothing(workspace: Workspace) -> None:
    file = workspace.file("a.txt", "same\r\n")
    inode = file.stat().st_ino
    result = await workspace.run(write_file, path="a.txt", content="same\n")
    assert "already has exactly this text" in result.for_model
    assert not result.changes
    assert not workspace.last.evidence
    assert file.stat().st_ino == inode


async def test_an_empty_file_can_be_written(workspace: Workspace) -> None:
    result = await workspace.run(write_file, path="pkg/__init__.py", content="")
    assert (workspace.root / "pkg/__init__.py").read_bytes() == b""
    assert result.changes[0].after == digest(b"")


@pytest.mark.parametrize("limit", [0, 3, 4096])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(workspace: Workspace, limit: int) -> None:
    file = workspace.file("a.txt", "old\n")
    script = f"""
        import asyncio, resource, sys
        sys.path.insert(0, {str(Path(__file__).parents[2])!r})
        from tests.tools.conftest import Workspace
        from magy_server.core.errors import ToolError
        from magy_server.tools.files.edit_tools import write_file
        from pathlib import Path

        resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
        for name in ("a.txt", "new/b.txt"):
            try:
                asyncio.run(Workspace(Path({str(workspace.root)!r})).run(
                    write_file, path=name, content="x" * 10_000))
            except ToolError as error:
                print(error.message)
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
    )
    assert ran.stdout.count("is unchanged: File too large. The person must") == 2, ran.stderr
    assert file.read_text() == "old\n"
    assert os.listdir(workspace.root) == ["a.txt"]


async def test_a_read_only_file_is_refused_and_kept(workspace: Workspace) -> None:
    file = workspace.file("a.txt", "old\n")
    file.chmod(0o444)
    with pytest.raises(ToolError, match=r"read-only \(mode 0444\)"):
        await workspace.run(write_file, path="a.txt", content="new\n")
    assert file.read_text() == "old\n"


async def test_a_file_changed_at_the_last_moment_is_not_overwritten(workspace: Workspace) -> None:
    file = workspace.file("a.txt", "old\n")
    context = await workspace.prepare(write_file, path="a.txt", content="new\n")
    context.on_started = lambda: file.write_text("someone else\n")
    with pytest.raises(ToolError, match="changed by someone else"):
        await write_file.run(context, path="a.txt", content="new\n")
    assert file.read_text() == "someone else\n"
    context = await workspace.prepare(write_file, path="b.txt", content="new\n")
    context.on_started = lambda: workspace.file("b.txt", "theirs\n")
    with pytest.raises(ToolError, match="created by someone else"):
        await write_file.run(context, path="b.txt", content="new\n")
    assert (workspace.root / "b.txt").read_text() == "theirs\n"
    assert sorted(os.listdir(workspace.root)) == ["a.txt", "b.txt"]


async def test_started_comes_before_the_effect_with_the_bytes(workspace: Workspace) -> None:
    file = workspace.file("a.txt", "old\n")
    context = await workspace.prepare(edit_file, path="a.txt", old_text="old", new_text="new")
    seen: list[bytes] = []
    context.on_started = lambda: seen.append(file.read_bytes())
    await edit_file.run(context, path="a.txt", old_text="old", new_text="new")
    assert seen == [b"old\n"]
    (change,) = context.evidence[0].changes
    assert change.before is not None and change.after is not None
    assert context.blobs[change.before] == b"old\n"
    assert context.blobs[change.after] == b"new\n"


async def test_two_agents_that_change_one_file_take_turns(workspace: Workspace) -> None:
    file = workspace.file("a.txt", "".join(f"line {n}\n" for n in range(20)))
    edits = [
        {"path": "a.txt", "old_text": f"line {n}\n", "new_text": f"done {n}\n"} for n in range(20)
    ]
    contexts = [await workspace.prepare(edit_file, **edit) for edit in edits]
    await asyncio.gather(
        *(edit_file.run(c, **edit) for c, edit in zip(contexts, edits, strict=True))
    )
    assert file.read_text() == "".join(f"done {n}\n" for n in range(20))


async def test_a_cancelled_write_is_over_when_the_cancel_is_seen(workspace: Workspace) -> None:
    file = workspace.file("a.txt", "old\n")
    context = await workspace.prepare(write_file, path="a.txt", content="x" * 5_000_000)
    arguments = write_file.arguments({"path": "a.txt", "content": "x" * 5_000_000})
    task = asyncio.ensure_future(write_file.run(context, **arguments))
    while not context.evidence:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert os.listdir(workspace.root) == ["a.txt"]
    seen = file.stat()
    await asyncio.sleep(0.2)
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (seen.st_ino, seen.st_mtime_ns)
    assert file.read_bytes() in (b"old\n", b"x" * 5_000_000)


async def test_recover_looks_at_the_file(workspace: Workspace) -> None:
    file = workspace.file("a.txt", "old\n")
    arguments = {"path": "a.txt", "old_text": "old", "new_text": "new"}
    context = await workspace.prepare(edit_file, **arguments)
    await edit_file.run(context, **arguments)
    assert edit_file.recover is not None
    result = await edit_file.recover(context, context.evidence[0], arguments)
    assert result is not None
    assert "changed as asked" in result.for_model
    assert "-old\n+new\n" in result.diff
    file.write_text("old\n")
    assert await edit_file.recover(context, context.evidence[0], arguments) is None
    file.write_text("third\n")
    with pytest.raises(ToolError, match="neither the old nor the new text"):
        await edit_file.recover(context, context.evidence[0], arguments)


# --- through the editor -------------------------------------------------------------------------


@pytest.mark.req("G006")
async def test_a_clean_buffer_is_edited_and_saved(workspace: Workspace, editor: FakeEditor) -> None:
    file = workspace.file("a.py", "one\ntwo\nthree\n")
    editor.open(file)
    result = await workspace.run(edit_file, path="a.py", old_text="two\n", new_text="2\n")
    assert file.read_text() == "one\n2\nthree\n"
    assert editor.saves == [str(file)]
    ((change,),) = editor.applied
    assert (change.start, change.end, change.text) == (4, 7, "2")
    assert result.changes[0].via == "editor"
    assert "unsaved" not in result.for_model


@pytest.mark.req("G006")
async def test_unsaved_text_wins_and_is_not_saved_for_the_user(
    workspace: Workspace, editor: FakeEditor
) -> None:
    file = workspace.file("a.py", "disk\n")
    editor.open(file, "typed, unsaved\nmore\n")
    read = await workspace.run(read_file, path="a.py")
    assert "1\ttyped, unsaved" in read.for_model
    assert "it has unsaved changes" in read.for_model
    result = await workspace.run(edit_file, path="a.py", old_text="more", new_text="less")
    assert editor.buffers[str(file)].text == "typed, unsaved\nless\n"
    assert file.read_text() == "disk\n"
    assert editor.saves == []
    assert "commands still see the older text" in result.for_model
    assert workspace.last.blobs[str(result.changes[0].before)] == b"typed, unsaved\nmore\n"


async def test_a_buffer_that_hides_line_ends_and_mark_is_not_dirty(
    workspace: Workspace, editor: FakeEditor
) -> None:
    file = workspace.file("a.txt", b"\xef\xbb\xbfone\r\ntwo\r\n")
    editor.open(file, "one\ntwo\n")
    editor.on_save = None

    result = await workspace.run(edit_file, path="a.txt", old_text="two", new_text="2")
    assert editor.saves == [str(file)]
    before, after = result.changes[0].before, workspace.last.evidence[0].changes[0].after
    assert workspace.last.blobs[str(before)] == b"\xef\xbb\xbfone\r\ntwo\r\n"
    assert workspace.last.blobs[str(after)] == b"\xef\xbb\xbfone\r\n2\r\n"


async def test_an_edit_is_worked_out_again_when_the_user_typed_meanwhile(
    workspace: Workspace, editor: FakeEditor
) -> None:
    file = workspace.file("a.py", "one\ntwo\n")
    editor.open(file)
    editor.before_apply = lambda path: editor.type(path, "zero\none\ntwo\n")
    await workspace.run(edit_file, path="a.py", old_text="two", new_text="2")
    assert editor.buffers[str(file)].text == "zero\none\n2\n"
    assert len(workspace.last.evidence) == 2
    final = workspace.last.evidence[-1].changes[0].after
    assert workspace.last.blobs[str(final)] == b"zero\none\n2\n"


@pytest.mark.req("G013")
async def test_a_stale_edit_that_fits_no_more_is_refused(
    workspace: Workspace, editor: FakeEditor
) -> None:
    file = workspace.file("a.py", "one\ntwo = 2 + 2\n")
    editor.open(file)
    editor.before_apply = lambda path: editor.type(path, "one\ntwo = 5 + 5\n")
    with pytest.raises(ToolError, match="line 2"):
        await workspace.run(edit_file, path="a.py", old_text="two = 2 + 2", new_text="two = 4")
    assert editor.buffers[str(file)].text == "one\ntwo = 5 + 5\n"


async def test_a_user_who_never_stops_typing_ends_the_tries(
    workspace: Workspace, editor: FakeEditor
) -> None:
    file = workspace.file("a.py", "x\n")
    editor.open(file)

    def type_again(path: str) -> None:
        editor.type(path, editor.buffers[path].text + "more\n")
        editor.before_apply = type_again

    editor.before_apply = type_again
    with pytest.raises(ToolError, match="at each of 20 attempts"):
        await workspace.run(edit_file, path="a.py", old_text="x", new_text="y")
    assert len(workspace.last.evidence) == ROUNDS


async def test_an_editor_that_refuses_is_believed(workspace: Workspace, editor: FakeEditor) -> None:
    file = workspace.file("a.py", "x\n")
    editor.open(file)
    editor.refuse = "the buffer is read-only"
    with pytest.raises(ToolError, match=r"a\.py was not changed\. the buffer is read-only"):
        await workspace.run(edit_file, path="a.py", old_text="x", new_text="y")
    assert file.read_text() == "x\n"


async def test_an_editor_that_lies_is_found_out(workspace: Workspace, editor: FakeEditor) -> None:
    file = workspace.file("a.py", "x\nz\n")
    editor.open(file)
    editor.lie = lambda text: text.replace("y", "y y")
    with pytest.raises(ToolError) as caught:
        await workspace.run(edit_file, path="a.py", old_text="x", new_text="y")
    assert "-y\n+y y\n" in caught.value.message
    assert editor.saves == []


async def test_what_the_person_types_right_after_an_edit_is_not_saved_for_them(
    workspace: Workspace, editor: FakeEditor
) -> None:
    file = workspace.file("a.py", "x\nz\n")
    editor.open(file)
    editor.typing = lambda text: text + "more"
    result = await workspace.run(edit_file, path="a.py", old_text="x", new_text="y")
    assert editor.saves == []
    assert editor.buffers[str(file)].text == "y\nz\nmore"
    assert "typing in the buffer" in result.for_model
    assert result.changes[0].after == digest(b"y\nz\n")


async def test_a_formatter_on_save_is_told_and_recorded(
    workspace: Workspace, editor: FakeEditor
) -> None:
    file = workspace.file("a.py", "x = 1\n")
    editor.open(file)
    editor.on_save = lambda text: text.replace("  ", " ")
    result = await workspace.run(edit_file, path="a.py", old_text="1", new_text=" 2")
    assert file.read_text() == "x = 2\n"
    assert "a formatter?" in result.for_model
    assert result.changes[0].after == digest(b"x = 2\n")
    assert result.blobs[digest(b"x = 2\n")] == b"x = 2\n"


async def test_an_editor_that_cannot_save_is_told(workspace: Workspace, editor: FakeEditor) -> None:
    file = workspace.file("a.py", "x\n")
    editor.open(file)
    editor.can_save = False
    result = await workspace.run(write_file, path="a.py", content="y\n")
    assert "did not save" in result.for_model
    assert file.read_text() == "x\n"


async def test_a_whole_write_touches_only_the_lines_that_differ(
    workspace: Workspace, editor: FakeEditor
) -> None:
    text = "".join(f"line {n}\n" for n in range(100))
    file = workspace.file("a.txt", text)
    editor.open(file)
    new = text.replace("line 10\n", "ten\n").replace("line 90\n", "")
    await workspace.run(write_file, path="a.txt", content=new)
    assert editor.buffers[str(file)].text == new
    ((first, second),) = editor.applied
    assert text[first.start : first.end] == "line 10"
    assert text[second.start : second.end] == "line 90\n"


async def test_a_new_buffer_that_was_never_saved_is_written_through_the_editor(
    workspace: Workspace, editor: FakeEditor
) -> None:
    path = workspace.root / "new.txt"
    editor.open(path, "")
    result = await workspace.run(write_file, path="new.txt", content="hello\n")
    assert path.read_text() == "hello\n"
    assert editor.buffers[str(path)].text == "hello\n"
    assert result.for_model.startswith("Created")


async def test_recover_looks_at_the_buffer_first(workspace: Workspace, editor: FakeEditor) -> None:
    file = workspace.file("a.py", "disk\n")
    editor.open(file, "typed\n")
    arguments = {"path": "a.py", "old_text": "typed", "new_text": "edited"}
    context = await workspace.prepare(edit_file, **arguments)
    await edit_file.run(context, **arguments)
    assert edit_file.recover is not None
    result = await edit_file.recover(context, context.evidence[0], arguments)
    assert result is not None
    assert "not saved" in result.for_model
