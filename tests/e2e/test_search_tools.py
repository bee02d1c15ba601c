"""list_dir, glob and grep through the wire, as a model uses them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .harness import person


def calling(tool: str, **arguments: object) -> str:
    return f"call: {tool} {json.dumps(arguments)}\n---\ntext: {{{{last}}}}\n"


@pytest.mark.req("E113", "A092")
async def test_grep_gives_file_line_and_content_and_no_secret(root: Path, state: Path) -> None:
    (root / ".env").write_text("greet_key=hunter2\n")
    script = calling("grep", pattern=r"greet\w*", output="lines")
    async with person(root, state, script) as one:
        await one.new()
        end = await one.turn("Who greets?")
        assert end["stopReason"] == "end_turn"
        assert one.said() == "app.py:1:def greet():\n[1 matching line in 1 file]"
        assert "hunter2" not in json.dumps(one.client.notifications("magy/session/update"))


@pytest.mark.req("G006", "E113")
async def test_grep_finds_what_is_not_saved_yet(root: Path, state: Path) -> None:
    async with person(root, state, calling("grep", pattern="unsaved")) as one:
        await one.new()
        path = root / "app.py"
        one.editor.open(path, "# unsaved\n" + path.read_text())
        await one.turn("Find it")
        assert one.said() == "app.py:1:# unsaved\n[1 matching line in 1 file]"


@pytest.mark.req("E037", "E113")
async def test_grep_needs_no_ripgrep_on_path(root: Path, state: Path) -> None:
    state.mkdir(parents=True, exist_ok=True)
    (state / "magy.toml").write_text('[tools]\ngrep_program = "no-such-ripgrep"\n')
    async with person(root, state, calling("grep", pattern=r"\breturn\b")) as one:
        await one.new()
        await one.turn("Find it")
        assert one.said() == "app.py:2:    return 'hello'\n[1 matching line in 1 file]"


@pytest.mark.req("E114")
async def test_glob_finds_files_by_name(root: Path, state: Path) -> None:
    (root / "src").mkdir()
    (root / "src/deep.py").write_text("")
    async with person(root, state, calling("glob", pattern="src/**/*.{py,js}")) as one:
        await one.new()
        await one.turn("Find it")
        assert one.said() == "src/deep.py"


@pytest.mark.req("A092")
async def test_list_dir_shows_a_directory(root: Path, state: Path) -> None:
    (root / "src").mkdir()
    (root / "src/one.py").write_text("12345")
    async with person(root, state, calling("list_dir", depth=2)) as one:
        await one.new()
        await one.turn("What is there?")
        assert "app.py  " in one.said()
        assert "src/\n  one.py  5" in one.said()


async def test_a_bad_pattern_comes_back_with_what_to_write(root: Path, state: Path) -> None:
    async with person(root, state, calling("grep", pattern="greet(")) as one:
        await one.new()
        await one.turn("Find it")
        assert "error: unclosed group\nWrite \\ before a character" in one.said()
        [failed] = [u for u in one.updates("tool_call_update") if u.get("status") == "failed"]
        assert failed
