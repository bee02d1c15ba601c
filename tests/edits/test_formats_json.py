"""Edits as JSON, with the fields of many tools."""

from __future__ import annotations

import json
from typing import Any

import pytest

from magy_server.edits.formats import parse
from magy_server.edits.model import FileEdit, Hunk

from .reading import hunks, one, refused

PAIR = {"old_text": "a", "new_text": "b"}


def read(value: Any, path: str = "x.py") -> FileEdit:
    return one("str_replace", json.dumps(value), path)


@pytest.mark.parametrize(
    "value",
    [
        {"old_text": "a", "new_text": "b"},
        {"old_str": "a", "new_str": "b", "command": "str_replace"},
        {"old_string": "a", "new_string": "b", "replace_all": False},
        {"oldString": "a", "newString": "b", "replaceAll": "false"},
        {"search": "a", "replace": "b", "explanation": "because"},
        {"old": "a", "new": "b", "expected_replacements": 1, "instruction": "do it"},
        {"edits": [{"old_text": "a", "new_text": "b"}], "display_description": "x"},
        {"edits": '[{"old_text": "a", "new_text": "b"}]'},
        [{"oldText": "a", "newText": "b", "path": None}],
        [{"edits": [{"old_text": "a", "new_text": "b"}]}],
    ],
)
def test_fields(value: Any) -> None:
    assert read(value) == FileEdit("x.py", hunks=(Hunk("a", "b"),))
    named = [{"file_path": "x.py", **value[0]}] if isinstance(value, list) else {
        "filePath": "x.py", **value}  # fmt: skip
    if not isinstance(value, list) or "path" not in value[0]:
        assert read(named, "") == FileEdit("x.py", hunks=(Hunk("a", "b"),))


def test_hints() -> None:
    assert read({**PAIR, "replace_all": True}).hunks[0].every
    assert read({**PAIR, "allow_multiple": "true"}).hunks[0].every
    assert read({**PAIR, "expected_replacements": 3}).hunks[0].every
    assert read({**PAIR, "start_line": 12}).hunks[0].line == 12


def test_line_ends_are_plain() -> None:
    assert read({"old_text": "a\r\nb\r", "new_text": "c\r\n"}).hunks == (Hunk("a\nb\n", "c\n"),)


@pytest.mark.parametrize(
    "value",
    [
        {"insert": {"line": 0, "text": "a"}},
        {"insert": {"after": 0, "text": "a\n"}},
        {"insert_line": 0, "insert_text": "a"},
        {"command": "insert", "insert_line": "0", "new_str": "a"},
        {"insertLine": 0, "text": "a\n"},
    ],
)
def test_insertions_by_line(value: Any) -> None:
    assert read(value).hunks == (Hunk("", "a\n", lines=True, line=1),)


def test_insertions_after_a_text() -> None:
    assert read({"insert": {"after": "one\r\ntwo", "text": "a"}}).hunks == (
        Hunk("one\ntwo\n", "one\ntwo\na\n", lines=True),)  # fmt: skip


def test_whole_files() -> None:
    assert read({"content": "a"}) == FileEdit("x.py", "write", content="a")
    assert read({"command": "create", "file_text": "a\r\n"}) == FileEdit(
        "x.py", "create", content="a\n")  # fmt: skip
    assert read({"command": "delete"}) == FileEdit("x.py", "delete")


def test_several_files() -> None:
    text = json.dumps([{"path": "a", **PAIR}, {"path": "a", **PAIR}, {"path": "b", **PAIR}])
    assert [(edit.path, len(edit.hunks)) for edit in parse("str_replace", text)] == [
        ("a", 2), ("b", 1)]  # fmt: skip
    nested = json.dumps([{"path": "a", "edits": [PAIR, PAIR]}, {"path": "b", "edits": [PAIR]}])
    assert [path for path, *_ in hunks("str_replace", nested)] == ["a", "a", "b"]
    late = json.dumps({"edits": [PAIR, {"path": "b", **PAIR}], "path": "a"})
    assert [path for path, *_ in hunks("str_replace", late)] == ["a", "b"]


def test_what_is_around_it() -> None:
    text = json.dumps(PAIR)
    for around in ("\ufeff{}", "```json\n{}\n```\n", "\n\n{}\n\n", "{}\r\n"):
        assert hunks("str_replace", around.format(text), "x") == [("x", "a", "b")]
    lines = f"{text}\n{text}\n"
    assert len(hunks("str_replace", lines, "x")) == 2


def test_a_string_may_have_raw_line_ends() -> None:
    text = '{"old_text": "a\nb\t\\" \\\\", "new_text": "{[,]}"}'
    assert hunks("str_replace", text, "x") == [("x", 'a\nb\t" \\', "{[,]}")]


def test_the_source_is_the_line_where_it_begins() -> None:
    text = '[\n {"old_text": "a",\n  "new_text": "b"},\n\n {"old_text": "c\n", "new_text": ""}]'
    (edit,) = parse("str_replace", text, "x")
    assert [hunk.source for hunk in edit.hunks] == [2, 5]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no edit"),
        ("[]", "there is no edit"),
        ("{}", "old_text is missing"),
        ('{"edits": []}', "there is no edit"),
        ("hello", "not well-formed JSON"),
        ("7", "7 is not an edit"),
        ('["a"]', '"a" is not an edit'),
        ('{"edits": ["a"]}', '"a" is not an edit'),
        ('{"edits": 7}', "edits is 7, not a list"),
        ('{"edits": "x"}', "not well-formed JSON"),
        ('{"edits": "{}"}', "edits is {}, not a list"),
        ('{"edits": [{"edits": []}]}', "list of edits contains a list of edits"),
        ('{"old_text": "a"', "seems to be cut off"),
        ('{"old_text": "a', "seems to be cut off"),
        ('[{"old_text": "a", "new_text": "b"} {"old_text": "a", "new_text": "b"}]',
         "not well-formed JSON"),
        ('{"old_text": "a", "new_text": "b"}]', "not well-formed JSON"),
        ('{"old_text": "a", "new_text": "b"}, 7', "not well-formed JSON"),
        ('{"old_text": "a"}', "new_text is missing"),
        ('{"old_text": 1, "new_text": "b"}', "old_text is 1, not a text"),
        ('{"old_text": "a", "old_str": "a", "new_text": "b"}', "old_str means the same as another"),
        ('{"old_text": "a", "old_text": "a", "new_text": "b"}', "old_text occurs twice"),
        ('{"old_text": "a", "new_text": "b", "regex": true}', "'regex' is not known"),
        ('{"old_text": "a", "new_text": "b", "replace_all": 1}', "replace_all is 1"),
        ('{"old_text": "a", "new_text": "b", "line": 0}', "line is 0, not a number from 1"),
        ('{"old_text": "a", "new_text": "b", "line": NaN}', "NaN is no JSON"),
        ('{"old_text": "a", "new_text": "\\ud800"}', "half a character"),
        ('{"old_text": "a", "new_text": "b", "content": "c"}', "cannot stand beside content"),
        ('{"insert": {"text": "a"}}', "line is missing"),
        ('{"insert": {"line": 1}}', "insert_text is missing"),
        ('{"insert": {"line": -1, "text": "a"}}', "line is -1, not a number from 0"),
        ('{"insert": {"line": 1, "after": "x", "text": "a"}}', "both line and after"),
        ('{"insert": {"line": 1, "text": ""}}', "The inserted text is empty"),
        ('{"insert": {"after": " ", "text": "a"}}', "insert.after is empty"),
        ('{"insert": 4, "text": "a"}', "not an object"),
        ('{"insert": 4}', "insert is 4, not an object"),
        ('{"command": "view"}', "The command 'view' is not an edit"),
        ('{"path": 7, "old_text": "a", "new_text": "b"}', "path is 7, not a text"),
        ("[" * 100_000, "not well-formed JSON"),
        ('{"a":' * 100_000, "not well-formed JSON"),
        ('{"line": ' + "9" * 5000 + "}", "Exceeds the limit"),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, said: str) -> None:
    assert said in refused("str_replace", text, "x.py")


def test_an_edit_without_a_name() -> None:
    assert "path is missing" in refused("str_replace", json.dumps(PAIR))
    assert "path is missing" in refused("str_replace", json.dumps({"edits": [PAIR]}))


def test_the_text_of_an_insertion_may_stand_beside_it() -> None:
    inside = parse("str_replace", '{"path": "a", "insert": {"line": 1, "text": "x"}}')
    beside = parse("str_replace", '{"path": "a", "insert": {"line": 1}, "text": "x"}')
    assert beside == inside
