from __future__ import annotations

import os
import shutil
import socket
import tracemalloc
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.core.errors import ToolError
from magy_server.tools.files.edit_tools import edit_file, write_file
from magy_server.tools.files.pages import Page
from magy_server.tools.files.read_tool import read_file

from .conftest import FakeEditor, Workspace


async def refusal(workspace: Workspace, path: str, **more: Any) -> str:
    with pytest.raises(ToolError) as caught:
        await workspace.run(read_file, path=path, **more)
    return caught.value.message


@pytest.mark.req("E110")
async def test_a_file_is_read_with_line_numbers(workspace: Workspace) -> None:
    file = workspace.file("src/a.py", "import os\n\n\tprint('é')\n")
    result = await workspace.run(read_file, path="src/a.py")
    assert result.for_model == "1\timport os\n2\t\n3\t\tprint('é')"
    assert not workspace.last.evidence
    assert not result.changes
    same = await workspace.run(read_file, path=str(file))
    assert same.for_model == result.for_model
    facts = workspace.last.facts
    assert (facts.title, facts.resources[0].relative) == ("Read src/a.py", "src/a.py")


async def test_a_link_to_a_name_that_is_no_utf8_is_refused(workspace: Workspace) -> None:
    (workspace.root / "link").symlink_to(os.fsdecode(b"\xff"))
    said = await refusal(workspace, "link")
    assert said.startswith("link leads to ") and "whose name is not UTF-8" in said
    said.encode()


@pytest.mark.req("E110")
async def test_a_long_file_is_read_by_page(workspace: Workspace) -> None:
    workspace.file("a.txt", "".join(f"row {n}\n" for n in range(1, 5311)))
    first = await workspace.run(read_file, path="a.txt")
    assert first.for_model.endswith(
        "2000\trow 2000\n[lines 1-2000 of 5310; continue with offset=2001]"
    )
    assert await workspace.run(read_file, path="a.txt", limit=9000) == first
    last = await workspace.run(read_file, path="a.txt", offset=5309)
    assert last.for_model == "5309\trow 5309\n5310\trow 5310\n[lines 5309-5310 of 5310]"
    assert "has only 5310 lines" in await refusal(workspace, "a.txt", offset=5311)


async def test_pages_of_a_file_that_changes_without_a_trace_are_of_what_it_holds(
    workspace: Workspace,
) -> None:
    file = workspace.file("a.txt", "".join(f"one {n:05}\n" for n in range(1, 5001)))
    before = file.stat()
    for word in ("one", "two", "one"):
        file.write_text("".join(f"{word} {n:05}\n" for n in range(1, 5001)))
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        for line in (1, 4000, 5000):
            read = await workspace.run(read_file, path="a.txt", offset=line, limit=1)
            assert read.for_model.startswith(f"{line}\t{word} {line:05}\n[lines {line}-{line} of")
            (seen,) = read.seen
            assert read.blobs == {seen.hash: file.read_bytes()}


async def test_a_page_is_bounded_in_lines_and_characters(workspace: Workspace) -> None:
    workspace.file("wide.txt", ("w" * 1000 + "\n") * 200 + "x" * 5000 + "\nend\n")
    result = await workspace.run(read_file, path="wide.txt")
    assert len(result.for_model) < 52_000
    assert "continue with offset=51]" in result.for_model
    result = await workspace.run(read_file, path="wide.txt", offset=201)
    assert "x [... cut: this line has 5,000 characters]\n202\tend" in result.for_model


@given(
    lines=st.lists(st.text(st.sampled_from("ab é"), max_size=4), max_size=30),
    last=st.booleans(),
    first=st.integers(1, 12),
    limit=st.integers(1, 12),
    cuts=st.lists(st.integers(0, 100), max_size=8),
)
def test_pages_do_not_depend_on_how_the_text_arrives(
    lines: list[str], last: bool, first: int, limit: int, cuts: list[int]
) -> None:
    text = "\n".join(lines) + ("\n" if last else "")
    bounds = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[a:b] for a, b in pairwise(bounds)]
    page = Page(pieces, first, limit)
    expected = text.split("\n")
    if expected[-1] == "":
        expected.pop()
    assert page.lines == expected[first - 1 : first - 1 + limit]
    assert page.total == len(expected)
    assert page.next == (first + limit if first + limit <= len(expected) else None) or (
        first > len(expected)
    )


def large(path: Path, size: int) -> None:
    block = "".join(f"{n:07} some text of a log file, with an é\n" for n in range(20_000)).encode()
    with path.open("wb") as file:
        for _ in range(size // len(block) + 1):
            file.write(block)


async def test_two_hundred_megabytes_are_paged_without_loading_them(workspace: Workspace) -> None:
    file = workspace.root / "big.log"
    large(file, 200_000_000)
    total = file.stat().st_size // len("0000001 some text of a log file, with an é\n".encode())
    tracemalloc.start()
    try:
        result = await workspace.run(read_file, path="big.log", offset=total - 1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20_000_000
    assert f"[lines {total - 1}-{total} of {total}]" in result.for_model
    file.unlink()


async def test_a_sparse_file_of_two_hundred_megabytes_is_named_at_once(
    workspace: Workspace,
) -> None:
    file = workspace.file("disk.img")
    os.truncate(file, 200_000_000)
    said = await refusal(workspace, "disk.img")
    assert "binary data (200,000,000 bytes)" in said
    file.write_bytes(b"text\n" * 20_000)
    os.truncate(file, 200_000_000)
    said = await refusal(workspace, "disk.img")
    assert "not text" in said


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ("grüße\n".encode("utf-16"), "grüße"),
        ("grüße\r\n".encode("utf-16-be").join([b"\xfe\xff", b""]), "grüße"),
        (b"\xef\xbb\xbfgr\xc3\xbc\xc3\x9fe\n", "grüße"),
        ("Grüße aus Köln\n".encode("cp1252"), "Grüße aus Köln"),
        ("Preis: 5 €\n".encode("cp1252"), "Preis: 5 €"),
        ("viel grüße und äöü ".encode() + b"\xff damaged", "viel grüße und äöü \ufffd damaged"),
        (b"one\rtwo\r", "one\n2\ttwo"),
    ],
)
async def test_encodings(workspace: Workspace, data: bytes, shown: str) -> None:
    workspace.file("a.txt", data)
    result = await workspace.run(read_file, path="a.txt")
    assert result.for_model == f"1\t{shown}"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x7fELF\x02\x01\x01\x00\x00", "an ELF program"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "a PNG image"),
        (b"some\x00thing", "binary data (10 bytes)"),
        ("日本語のテキスト".encode("shift-jis") * 5, "not text"),
        (bytes(range(1, 256)), "not text"),
    ],
)
async def test_binary_files_are_named(workspace: Workspace, data: bytes, kind: str) -> None:
    workspace.file("thing", data)
    assert kind in await refusal(workspace, "thing")


async def test_an_empty_file_a_directory_and_the_root(workspace: Workspace) -> None:
    workspace.file("empty")
    assert (await workspace.run(read_file, path="empty")).for_model == "(empty is empty)"
    workspace.file("src/one.py")
    workspace.file("src/sub/two.py")
    assert "src is a directory. It has: one.py, sub/" in await refusal(workspace, "src")
    assert "is a directory. It has: empty, src/" in await refusal(workspace, ".")


async def test_a_missing_file_comes_with_near_names(workspace: Workspace) -> None:
    workspace.file("src/helpers.py")
    workspace.file("deep/down/config.toml")
    assert "Did you mean: src/helpers.py?" in await refusal(workspace, "src/helper.py")
    assert "Did you mean: deep/down/config.toml?" in await refusal(workspace, "config.toml")
    assert "src has: helpers.py" in await refusal(workspace, "src/quite/other.c")
    assert "src/helpers.py is a file" in await refusal(workspace, "src/helpers.py/x")
    with pytest.raises(ToolError, match=r"Did you mean: src/helpers\.py"):
        await workspace.run(edit_file, path="src/helperz.py", old_text="a", new_text="b")


async def test_a_workspace_that_is_gone_is_named(workspace: Workspace) -> None:
    shutil.rmtree(workspace.root)
    told = f"a.txt does not exist: the workspace {workspace.root} is gone. Tell the user."
    assert await refusal(workspace, "a.txt") == told


async def test_wrong_arguments_are_told(workspace: Workspace) -> None:
    with pytest.raises(ToolError, match="offset"):
        read_file.arguments({"path": "a", "offset": 0})
    with pytest.raises(ToolError, match="limit"):
        read_file.arguments({"path": "a", "limit": 0})
    described = read_file.parameters["properties"]
    assert described["offset"]["description"] == "The first line, from 1"


# --- paths --------------------------------------------------------------------------------------


async def problem(workspace: Workspace, path: str) -> str:
    facts = await workspace.judge(read_file, path=path)
    assert facts.problem is not None
    again = await workspace.judge(write_file, path=path, content="x")
    assert again.problem == facts.problem
    return facts.problem


async def test_paths_that_lead_out_are_refused(workspace: Workspace) -> None:
    outside = workspace.root.parent / "secret"
    outside.mkdir()
    (outside / "key.txt").write_text("hunter2")
    (workspace.root / "link").symlink_to(outside)
    (workspace.root / "file").symlink_to(outside / "key.txt")
    (workspace.root / "dangling").symlink_to(outside / "new.txt")
    (workspace.root / "up").symlink_to("..")
    for path in (
        "../secret/key.txt",
        str(outside / "key.txt"),
        "link/key.txt",
        "link/not/yet/there.txt",
        "file",
        "dangling",
        "up/secret/key.txt",
        "link/../secret/key.txt",
        "/etc/passwd",
        f"{workspace.root}-sibling/a.txt",
        "..",
    ):
        said = await problem(workspace, path)
        assert said.startswith("outside the workspace"), (path, said)
        assert "hunter2" not in said
    assert os.listdir(outside) == ["key.txt"]


async def test_paths_that_cannot_be_meant_are_refused(workspace: Workspace) -> None:
    (workspace.root / "loop").symlink_to("loop")
    (workspace.root / "ping").symlink_to("pong")
    (workspace.root / "pong").symlink_to("ping")
    os.mkfifo(workspace.root / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        old = os.getcwd()
        os.chdir(workspace.root)
        try:
            listener.bind("sock")
        finally:
            os.chdir(old)
    assert "leads back to itself" in await problem(workspace, "loop")
    assert "leads back to itself" in await problem(workspace, "ping/x")
    assert "a fifo" in await problem(workspace, "fifo")
    assert "a socket" in await problem(workspace, "sock")
    assert "control characters" in await problem(workspace, "a\0b")
    assert "control characters" in await problem(workspace, "a\nb")
    assert "control characters" in await problem(workspace, "a\ud800")
    assert "`~` is not expanded" in await problem(workspace, "~/x")
    assert "path is empty" in await problem(workspace, "")
    (workspace.root / "null").symlink_to("/dev/null")
    assert "outside the workspace" in await problem(workspace, "null")


async def test_links_inside_are_followed_once(workspace: Workspace) -> None:
    file = workspace.file("real/a.txt", "one\n")
    (workspace.root / "alias").symlink_to("real")
    (workspace.root / "b.txt").symlink_to("alias/a.txt")
    facts = await workspace.judge(read_file, path="b.txt")
    assert facts.resources[0].subject == str(file)
    assert facts.resources[0].relative == "real/a.txt"
    await workspace.run(edit_file, path="alias/a.txt", old_text="one", new_text="two")
    assert file.read_text() == "two\n"
    assert (workspace.root / "b.txt").is_symlink()
    await workspace.run(write_file, path="alias/new/c.txt", content="c\n")
    assert (workspace.root / "real/new/c.txt").read_text() == "c\n"


@pytest.mark.parametrize("level", ["file", "directory"])
async def test_a_link_put_there_after_the_facts_is_not_followed(
    workspace: Workspace, level: str
) -> None:
    file = workspace.file("src/a.txt", "harmless\n")
    outside = workspace.root.parent / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("harmless\n")
    calls = [
        (read_file, {"path": "src/a.txt"}),
        (edit_file, {"path": "src/a.txt", "old_text": "harmless", "new_text": "x"}),
        (write_file, {"path": "src/a.txt", "content": "x"}),
    ]
    contexts = [await workspace.prepare(tool, **arguments) for tool, arguments in calls]
    file.unlink()
    if level == "directory":
        file.parent.rmdir()
        file.parent.symlink_to(outside)
    else:
        file.symlink_to(outside / "a.txt")
    for context, (tool, arguments) in zip(contexts, calls, strict=True):
        with pytest.raises(ToolError, match="symbolic link was put in this path"):
            await tool.run(context, **arguments)
    assert (outside / "a.txt").read_text() == "harmless\n"
    assert os.listdir(outside) == ["a.txt"]


async def test_a_fifo_put_there_after_the_facts_does_not_block(workspace: Workspace) -> None:
    file = workspace.file("a.txt", "text\n")
    context = await workspace.prepare(read_file, path="a.txt")
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(ToolError, match="not a regular file"):
        await read_file.run(context, path="a.txt")


async def test_the_buffer_is_read_even_when_the_file_is_not_on_disk(
    workspace: Workspace, editor: FakeEditor
) -> None:
    editor.open(workspace.root / "new.txt", "only here\r\n")
    result = await workspace.run(read_file, path="new.txt")
    assert result.for_model.startswith("1\tonly here\n")
    assert "it has unsaved changes" in result.for_model
