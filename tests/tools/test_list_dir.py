"""list_dir: what is in a directory, by page, in bounded memory and output."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from magy_server.core.errors import ToolError
from magy_server.tools.files.list_tool import list_tool
from magy_server.tools.search import ripgrep_program
from magy_server.tools.stoppable_thread import in_thread

from .conftest import Workspace

list_dir = list_tool("rg")


async def listed(workspace: Workspace, **arguments: Any) -> list[str]:
    return (await workspace.run(list_dir, **arguments)).for_model.split("\n")


async def refusal(workspace: Workspace, **arguments: Any) -> str:
    with pytest.raises(ToolError) as caught:
        await workspace.run(list_dir, **arguments)
    return caught.value.message


async def test_entries_say_what_they_are(workspace: Workspace) -> None:
    workspace.file("b.txt", "x" * 1234)
    workspace.file("run.sh", "").chmod(0o755)
    workspace.file("src/a.py", "")
    (workspace.root / "to_src").symlink_to("src")
    (workspace.root / "lost").symlink_to("nowhere")
    os.mkfifo(workspace.root / "pipe")
    old = os.getcwd()
    with socket.socket(socket.AF_UNIX) as listener:
        os.chdir(workspace.root)
        try:
            listener.bind("sock")
        finally:
            os.chdir(old)
    result = await workspace.run(list_dir)
    assert result.for_model.split("\n") == [
        "b.txt  1,234", "lost -> nowhere  (leads nowhere)", "pipe  (fifo)", "run.sh  0  executable",
        "sock  (socket)", "src/", "to_src -> src",
    ]  # fmt: skip
    assert result.for_user == "7 entries"
    facts = workspace.last.facts
    assert facts.title == "List the workspace"
    assert facts.resources[0].subject == str(workspace.root)


async def test_a_tree_has_up_to_three_levels(workspace: Workspace) -> None:
    workspace.file("a/b/c/d.txt", "")
    workspace.file("a/z.txt", "12")
    assert await listed(workspace, depth=3) == ["a/", "  b/", "    c/", "  z.txt  2"]
    assert await listed(workspace, path="a") == ["b/", "z.txt  2"]
    assert (await workspace.judge(list_dir, path="a")).title == "List a"
    with pytest.raises(ToolError, match="depth"):
        list_dir.arguments({"depth": 4})


async def test_ignored_directories_are_named_and_not_opened(workspace: Workspace) -> None:
    workspace.file(".gitignore", "node_modules/\n*.log\n")
    workspace.file(".git/HEAD", "")
    workspace.file("node_modules/x/y.js", "")
    workspace.file("a.log", "")
    workspace.file("src/node_modules/z.js", "")
    assert await listed(workspace, depth=3) == [
        ".git/  (ignored)", ".gitignore  20", "a.log  0  (ignored)", "node_modules/  (ignored)",
        "src/", "  node_modules/  (ignored)",
    ]  # fmt: skip
    assert await listed(workspace, path="node_modules", depth=2) == ["x/", "  y.js  0"]


async def test_a_list_of_what_is_not_ignored_is_understood(workspace: Workspace) -> None:
    workspace.file(".git/HEAD", "")
    workspace.file(".gitignore", "*\n!*/\n!*.py\nout/*\n")
    for name in ("src/a.py", "src/b.c", "out/a.py", "none/x"):
        workspace.file(name, "")
    (workspace.root / "empty").mkdir()
    assert await listed(workspace, depth=2) == [
        ".git/  (ignored)", ".gitignore  18  (ignored)", "empty/", "none/", "  x  0  (ignored)",
        "out/", "  a.py  0  (ignored)", "src/", "  a.py  0", "  b.c  0  (ignored)",
    ]  # fmt: skip


async def test_without_ripgrep_it_is_said_that_nothing_is_marked(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ripgrep_program, "PACKAGE", "no-such-package")
    workspace.file("a.txt", "")
    result = await workspace.run(list_tool("no-such-ripgrep"))
    first, said = result.for_model.split("\n")
    assert first == "a.txt  0"
    assert said.startswith("[what is ignored is not marked: There is no working ripgrep 14")


async def test_long_directories_are_paged(workspace: Workspace) -> None:
    for number in range(650):
        workspace.file(f"f{number:03}", "")
    first = await listed(workspace)
    assert (first[0], first[299]) == ("f000  0", "f299  0")
    assert first[300:] == ["[entries 1-300 of 650; continue with offset=301]"]
    last = await listed(workspace, offset=601)
    assert (len(last), last[-2:]) == (51, ["f649  0", "[entries 601-650 of 650]"])
    said = await refusal(workspace, offset=651)
    assert "has only 650 entries; offset 651 is past the end" in said


async def test_inner_directories_are_cut_and_pages_end_between_entries(
    workspace: Workspace,
) -> None:
    for folder in range(10):
        for number in range(60):
            workspace.file(f"d{folder}/f{number:02}", "")
    lines = await listed(workspace, depth=2)
    assert lines[:2] == ["d0/", "  f00  0"]
    assert lines[51] == "  [10 more]"
    assert lines[-1] == "[entries 1-6 of 10; continue with offset=7]"
    assert len(lines) == 6 * 52 + 1
    assert (await listed(workspace, depth=2, offset=7))[0] == "d6/"


async def test_a_huge_directory_takes_no_more_memory_than_its_page(workspace: Workspace) -> None:
    folder = os.open(workspace.root, os.O_RDONLY)
    for number in range(10_000):
        os.close(os.open(f"{number:06}", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
    os.close(folder)
    tracemalloc.start()
    try:
        lines = await listed(workspace)
        assert tracemalloc.get_traced_memory()[1] < 900_000
    finally:
        tracemalloc.stop()
    assert lines[-1] == "[entries 1-300 of 10,000; continue with offset=301]"


async def test_an_empty_directory_and_wrong_places(workspace: Workspace) -> None:
    (workspace.root / "empty").mkdir()
    workspace.file("src/helpers.py", "")
    assert await listed(workspace, path="empty") == ["empty is empty."]
    assert "Did you mean: src" in await refusal(workspace, path="scr")
    said = await refusal(workspace, path="src/helpers.py")
    assert said == "src/helpers.py is a file, not a directory; read it with read_file."
    assert "outside the workspace" in await refusal(workspace, path="..")


async def test_a_link_to_a_directory_is_listed_only_inside(workspace: Workspace) -> None:
    outside = workspace.root.parent / "outside"
    outside.mkdir()
    workspace.file("src/a.py", "")
    (workspace.root / "in").symlink_to("src")
    (workspace.root / "out").symlink_to(outside)
    assert await listed(workspace, path="in") == ["a.py  0"]
    assert "outside the workspace" in await refusal(workspace, path="out")
    context = await workspace.prepare(list_dir, path="src")
    (workspace.root / "src/a.py").unlink()
    (workspace.root / "src").rmdir()
    (workspace.root / "src").symlink_to(outside)
    with pytest.raises(ToolError, match="symbolic link was put in this path"):
        await list_dir.run(context, **list_dir.arguments({"path": "src"}))


async def test_strange_names_are_shown_on_one_line(workspace: Workspace) -> None:
    workspace.file("a\nb", "")
    workspace.file("\x1b[31m", "")
    (workspace.root / "link").symlink_to("to\x1b[2J\n")
    Path(os.fsdecode(os.fsencode(workspace.root) + b"/\xff")).write_text("")
    assert await listed(workspace) == [
        "\\x1b[31m  0", "a\\nb  0", "link -> to\\x1b[2J\\n  (leads nowhere)", "\\udcff  0"
    ]  # fmt: skip


async def test_a_hostile_ignore_file_costs_no_time(workspace: Workspace) -> None:
    workspace.file(".git/HEAD", "")
    workspace.file(".gitignore", "*a" * 60 + "b\n" + "**/a*/" * 40 + "x\n[\n{\n\\\n!\n/\n")
    workspace.file("a" * 250, "")
    os.mkfifo(workspace.root / ".ignore")
    assert [line for line in await listed(workspace) if line.startswith("a")] == ["a" * 250 + "  0"]


async def test_cancelling_stops_the_thread_that_looks() -> None:
    begun, ended = threading.Event(), threading.Event()

    def work(check: Callable[[], None]) -> None:
        begun.set()
        try:
            while True:
                check()
        finally:
            ended.set()

    task = asyncio.create_task(in_thread(work))
    while not begun.is_set():
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()
