"""The mirror of the editor's text, against a plain reckoning of what LSP's positions mean."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.api.places import canonical
from magy_server.api.positions import Positions, split_lines
from magy_server.lsp.documents import MOST_STEPS, LiveDocument, LiveWorkspace
from tests.lsp.client import position, uri_of

ENCODINGS = ["utf-8", "utf-16", "utf-32"]
TEXT = st.text(st.sampled_from("ab\t é\u2028\x0c\x85\r\n\n\n😋𝄞\ufffd"), max_size=30)


def document(text: str, encoding: str = "utf-16") -> LiveDocument:
    return LiveDocument("file:///x", text, 1, encoding)


def change(document: LiveDocument, start: tuple[int, int], end: tuple[int, int], new: str) -> str:
    document.change((start, end, new))
    return document.source


@given(text=TEXT)
def test_lines_end_as_lsp_says(text: str) -> None:
    lines = split_lines(text)
    assert "".join(lines) == text
    assert [line.rstrip("\r\n") for line in lines] == re.split(r"\r\n|\r|\n", text)


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(text=TEXT, edits=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40), TEXT)))
def test_incremental_changes(encoding: str, text: str, edits: list[tuple[int, int, str]]) -> None:
    live = document(text, encoding)
    for a, b, new in edits:
        start, end = sorted((min(a, len(text)), min(b, len(text))))
        try:
            first, last = position(text, start, encoding), position(text, end, encoding)
        except ValueError:  # inside a CRLF there is no position
            continue
        text = text[:start] + new + text[end:]
        shown = change(live, tuple(first.values()), tuple(last.values()), new)  # type: ignore[arg-type]
        assert shown == text
        assert list(live.lines) == split_lines(text)


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(text=TEXT, at=st.integers(0, 30))
def test_offsets_and_back(encoding: str, text: str, at: int) -> None:
    offset = min(at, len(text))
    positions = Positions(text, encoding)
    try:
        expected = position(text, offset, encoding)
    except ValueError:
        return
    assert positions.position(offset) == expected
    assert positions.offset(**expected) == offset


def test_positions_outside_of_the_text_are_clamped() -> None:
    text = "one\r\ntwo\n"
    assert change(document(text), (0, 99), (0, 99), "!") == "one!\r\ntwo\n"
    assert change(document(text), (2, 0), (2, 0), "three") == text + "three"
    assert change(document(text), (9, 9), (9, 9), "end") == text + "end"
    assert change(document(text), (1, 1), (99, 0), "") == "one\r\nt"
    assert change(document(text), (1, 1), (0, 1), "") == "owo\n"
    assert change(document(""), (0, 0), (0, 0), "new") == "new"
    assert change(document("a"), (0, 9), (0, 9), "b") == "ab"


def test_the_middle_of_a_character_is_after_it() -> None:
    assert change(document("😋x"), (0, 1), (0, 1), "!") == "😋!x"
    assert change(document("éx", "utf-8"), (0, 1), (0, 1), "!") == "é!x"


def test_a_cr_and_a_later_lf_become_one_line_end() -> None:
    live = document("a\rb\nc")
    assert change(live, (1, 0), (1, 1), "") == "a\r\nc"
    assert list(live.lines) == ["a\r\n", "c"]


def test_a_whole_text_replaces_what_was_there() -> None:
    live = document("old\ntext")
    change(live, (0, 0), (0, 1), "O")
    live.change("new")
    assert change(live, (0, 3), (0, 3), "er") == "newer"


def test_paths_of_uris(tmp_path: Path) -> None:
    real = tmp_path / "a b#c%é"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    assert canonical(uri_of(real)) == str(real)
    assert canonical(uri_of(tmp_path / "link" / "x")) == str(real / "x")
    assert canonical("file://localhost/etc") == "/etc"
    assert canonical("file:///bytes%FF") == "/bytes\udcff"
    for other in ("untitled:Untitled-1", "magy:///x", "file://host/x", "file:x", "file://[", "",
                  "file:///a%00b", "/x"):  # fmt: skip
        assert canonical(other) is None


def test_two_names_of_one_file(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.write_text("")
    (tmp_path / "link").symlink_to(real)
    workspace = LiveWorkspace()

    def show() -> str | None:
        found = workspace.document(str(real))
        return found.source if found else None

    for name in ("link", "real"):
        workspace.opened(uri_of(tmp_path / name), name, 1)
    assert show() == "real"
    workspace.closed(uri_of(real))
    assert show() == "link"
    assert workspace.open_paths() == (str(real),)
    workspace.closed(uri_of(tmp_path / "link"))
    workspace.closed(uri_of(tmp_path / "link"))
    assert show() is None
    assert workspace.open_paths() == ()


def test_every_single_change_is_told(tmp_path: Path) -> None:
    """A notification may carry several, and what a document was between them may matter."""
    workspace = LiveWorkspace()
    uri = uri_of(tmp_path / "a")
    shown: list[str | None] = []
    touched: list[str] = []
    workspace.touched.add(touched.append)
    stop = workspace.watch(uri, lambda live: shown.append(live.source if live else None))
    workspace.opened(uri, "one", 1)
    workspace.changed(uri, 2, ["two", "three"])
    workspace.closed(uri)
    assert shown == ["one", "two", "three", None]
    assert touched == [uri] * 4
    stop()
    workspace.opened(uri, "again", 1)
    assert len(shown) == 4 and len(touched) == 5


def test_of_very_many_changes_at_once_only_the_last_is_told(tmp_path: Path) -> None:
    """Each is judged by the whole text, and thousands would keep the server from all else."""
    workspace = LiveWorkspace()
    uri = uri_of(tmp_path / "a")
    shown: list[str | None] = []
    workspace.opened(uri, "", 1)
    workspace.watch(uri, lambda live: shown.append(live.source if live else None))
    typed = (0, 0), (0, 0), "x"
    workspace.changed(uri, 2, [typed] * MOST_STEPS)
    assert shown == ["x" * n for n in range(1, MOST_STEPS + 1)]
    shown.clear()
    workspace.changed(uri, 2, [typed] * (MOST_STEPS + 1))
    assert shown == ["x" * (2 * MOST_STEPS + 1)]
    workspace.changed(uri, 2, [])
    assert len(shown) == 1
