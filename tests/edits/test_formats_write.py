"""What is written in a format is read back the same."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from magy_server.edits.formats import FORMATS, parse
from magy_server.edits.model import FileEdit, Hunk

from .samples import CHANGED, TEXT, pairs
from .writing import edit_of, write

Said = tuple[str, str, str, str | None, list[tuple[str, str]]]


def said(edits: list[FileEdit]) -> list[Said]:
    """What the edits want, without hints."""
    return [
        (edit.path, edit.op, edit.content, edit.to, [(hunk.old, hunk.new) for hunk in edit.hunks])
        for edit in edits
    ]


@pytest.mark.parametrize("format", CHANGED)
@given(pairs())
def test_changes(format: str, pair: tuple[str, str]) -> None:
    edit = edit_of(*pair, "src/a.py")
    nothing_to_search = [hunk for hunk in edit.hunks if not hunk.old.strip()]
    if nothing_to_search and (format == "roo" or pair[0]):
        assume(format not in ("roo", "aider"))
    assert said(parse(format, write(format, [edit]))) == said([edit])


@given(pairs())
def test_an_edit_of_two_texts(pair: tuple[str, str]) -> None:
    before, after = pair
    edit = edit_of(before, after, "a.py")
    at = 0
    for hunk in edit.hunks:
        assert before.count(hunk.old) == 1 or hunk.old == before
        start = before.index(hunk.old)
        assert hunk.lines and hunk.line == before.count("\n", 0, start) + 1
        assert start >= at, "in order, and apart"
        at = start + len(hunk.old)
    for hunk in reversed(edit.hunks):
        start = before.index(hunk.old)
        before = before[:start] + hunk.new + before[start + len(hunk.old) :]
    assert before == after


@given(st.dictionaries(st.sampled_from(["a.py", "b/c.py", "d e.py"]), TEXT, min_size=1))
@pytest.mark.parametrize("format", ["unified", "v4a", "str_replace", "whole"])
def test_new_files(format: str, files: dict[str, str]) -> None:
    edits = [edit_of(None, text, path) for path, text in files.items()]
    if format == "whole":
        assume(all(text.endswith("\n") or not text for text in files.values()))
        edits = [FileEdit(edit.path, "write", content=edit.content) for edit in edits]
    assert said(parse(format, write(format, edits))) == said(edits)


@given(TEXT)
def test_a_whole_file_whose_name_is_known(text: str) -> None:
    assume("```" not in text and "~~~" not in text)
    assert parse("whole", text, "a.py") == [FileEdit("a.py", "write", content=text)]


def test_operations() -> None:
    hunk = Hunk("a\n", "b\n", lines=True, line=1)
    edits = [
        FileEdit("gone.py", "delete"),
        FileEdit("old.py", to="new/name.py"),
        FileEdit("moved.py", hunks=(hunk,), to="moved to.py"),
        FileEdit("empty.py", "create"),
        FileEdit("changed.py", hunks=(hunk,)),
    ]
    for format in ("unified", "v4a"):
        assert said(parse(format, write(format, edits))) == said(edits)
    for format in ("str_replace", "aider", "whole"):
        with pytest.raises(ValueError, match="cannot express"):
            write(format, edits)


@pytest.mark.parametrize(
    "name", ["a b.py", "tab\there.py", 'quo"te.py', "back\\slash.py", "é.py", "line\nend.py",
             " lead.py", "trail ", "dated 2024-01-02 03:04:05", "dir/(old).py", "a (old)"],
)  # fmt: skip
def test_odd_names_in_a_diff(name: str) -> None:
    edits = [
        FileEdit(name, hunks=(Hunk("a\n", "b\n", lines=True, line=1),)),
        FileEdit(name, "create", content="x\n"),
        FileEdit(name, "create"),
        FileEdit(name, "delete"),
        FileEdit(name, to=name + "2"),
        FileEdit("plain.py", to=name),
    ]
    for edit in edits:
        assert said(parse("unified", write("unified", [edit]))) == said([edit])


@pytest.mark.parametrize(
    ("format", "edit"),
    [
        ("unified", FileEdit("a", hunks=(Hunk("a", "b"),))),
        ("unified", FileEdit("a", hunks=(Hunk("", "b\n", lines=True),))),
        ("unified", FileEdit("a", "write", content="b\n")),
        ("v4a", FileEdit("a", hunks=(Hunk("", "b\n", lines=True, line=4),))),
        ("v4a", FileEdit("a\nb", "delete")),
        ("v4a", FileEdit("a", hunks=(Hunk("a\n", "b\n", lines=True, anchors=("...",)),))),
        ("aider", FileEdit("a", hunks=(Hunk("a\n", "", lines=True, every=True),))),
        ("aider", FileEdit("no file, but prose", hunks=(Hunk("a\n", "", lines=True),))),
        ("roo", FileEdit("a", hunks=(Hunk("", "b\n", lines=True),))),
        ("str_replace", FileEdit("a", hunks=(Hunk("a", "b", anchors=("c",)),))),
        ("whole", FileEdit("a", hunks=(Hunk("a", "b"),))),
        ("whole", FileEdit("a", "write", content="b")),
        ("ed", FileEdit("a")),
    ],
)
def test_what_a_format_cannot_say_is_refused(format: str, edit: FileEdit) -> None:
    with pytest.raises(ValueError, match=r"cannot|no format"):
        write(format, [edit])


def test_hints_survive_where_the_format_has_them() -> None:
    hunk = Hunk("a\n", "b\n", lines=True, anchors=("class A:", "def f(self):"), at_end=True)
    (edit,) = parse("v4a", write("v4a", [FileEdit("a.py", hunks=(hunk,))]))
    assert edit.hunks[0].anchors == hunk.anchors and edit.hunks[0].at_end
    hunk = Hunk("a", "b", every=True, line=7)
    (edit,) = parse("str_replace", write("str_replace", [FileEdit("a.py", hunks=(hunk,))]))
    assert edit.hunks[0].every and edit.hunks[0].line == 7
    hunk = Hunk("a\n", "b\n", lines=True, line=7)
    for format in ("unified", "roo", "str_replace"):
        (edit,) = parse(format, write(format, [FileEdit("a.py", hunks=(hunk,))]))
        assert edit.hunks[0].line == 7


def test_two_texts_that_are_none() -> None:
    with pytest.raises(ValueError, match="no file before"):
        edit_of(None, None, "a.py")
    assert edit_of("a\n", None, "a.py") == FileEdit("a.py", "delete")
    assert edit_of("a\n", "a\n", "a.py") == FileEdit("a.py")


def test_every_format_can_be_written() -> None:
    for format in FORMATS:
        edit = FileEdit("a.py", "write", content="x\n") if format == "whole" else edit_of(
            "a\n", "b\n", "a.py")  # fmt: skip
        assert parse(format, write(format, [edit]))
