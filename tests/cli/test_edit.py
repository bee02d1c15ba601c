"""`magy edit`: what a shell can do with the edit engine."""

from __future__ import annotations

import io
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from magy_server.__main__ import main
from magy_server.cli.commands.edit_files import load, write
from magy_server.cli.exit_codes import EDIT_CODES
from magy_server.cli.parser import EDIT_FORMATS
from magy_server.core.errors import ToolError
from magy_server.edits.formats import FORMATS
from magy_server.tools.files.paths import resolve
from tests.cli.harness import Done, Magy

HELLO = json.dumps({"old_text": "'hello'", "new_text": "'good morning'"})
CHANGED = "def greet():\n    return 'good morning'\n"
EDITS = {
    "str_replace": json.dumps({"path": "app.py", **json.loads(HELLO)}),
    "aider": "app.py\n<<<<<<< SEARCH\n    return 'hello'\n=======\n    return 'good morning'\n"
             ">>>>>>> REPLACE\n",
    "cline": "app.py\n------- SEARCH\n    return 'hello'\n=======\n    return 'good morning'\n"
             "+++++++ REPLACE\n",
    "roo": "app.py\n<<<<<<< SEARCH\n:start_line:2\n-------\n    return 'hello'\n=======\n"
           "    return 'good morning'\n>>>>>>> REPLACE\n",
    "unified": "--- a/app.py\n+++ b/app.py\n@@ ... @@\n def greet():\n-    return 'hello'\n"
               "+    return 'good morning'\n",
    "v4a": "*** Begin Patch\n*** Update File: app.py\n@@ def greet():\n-    return 'hello'\n"
           "+    return 'good morning'\n*** End Patch\n",
    "whole": f"app.py\n```python\n{CHANGED}```\n",
}  # fmt: skip


def tree(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


class Here:
    """The command in this process, where there are many of them. In `root`."""

    def __init__(
        self, root: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        self.root = root
        self._monkeypatch = monkeypatch
        self._capfd = capfd
        monkeypatch.chdir(root)

    def __call__(self, *words: str, input: str = "") -> Done:
        stdin = io.TextIOWrapper(io.BytesIO(input.encode()))
        self._monkeypatch.setattr(sys, "stdin", stdin)
        try:
            code = main(words)
        except SystemExit as left:
            code = int(left.code or 0)
        out, err = self._capfd.readouterr()
        return Done(words, code, out, err)


@pytest.fixture
def here(root: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Here:
    return Here(root, monkeypatch, capfd)


def refused(magy: Magy | Here, text: str, *words: str) -> str:
    """What is said; nothing may have changed."""
    before = tree(magy.root)
    done = magy("edit", *words, input=text)
    assert done.returncode == 1, done
    assert tree(magy.root) == before
    assert done.stdout == "" and done.stderr.endswith("magy: nothing was written.\n")
    return done.stderr


def found(done: Done) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_the_formats_are_those_of_the_engine() -> None:
    assert EDIT_FORMATS == FORMATS == tuple(EDITS)


@pytest.mark.parametrize("format", EDITS)
def test_every_format(here: Here, format: str) -> None:
    for words in ((), ("--format", format)):
        (here.root / "app.py").write_text("def greet():\n    return 'hello'\n")
        done = here("edit", *words, input=EDITS[format])
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == "changed app.py +1 -1\n"
        assert (here.root / "app.py").read_text() == CHANGED


def test_a_file_on_the_command_line_is_meant(here: Here) -> None:
    assert here("edit", "--format", "str_replace", "app.py", input=HELLO).returncode == 0
    assert (here.root / "app.py").read_text() == CHANGED
    other = EDITS["unified"].replace("app.py", "elsewhere/other.py").replace("morning", "night")
    other = other.replace("'hello'", "'good morning'")
    assert here("edit", "app.py", input=other).returncode == 0
    assert "'good night'" in (here.root / "app.py").read_text()
    (here.root / "b.py").write_text("'hello'\n")
    text = json.dumps([{"path": "b.py", **json.loads(HELLO)}])
    assert "not among the files" in refused(here, text, "app.py", "c.py")
    assert here("edit", "app.py", "b.py", input=text).returncode == 0


def test_the_whole_text_of_a_file(here: Here) -> None:
    assert here("edit", "--format", "whole", "app.py", input="x = 1").returncode == 0
    assert (here.root / "app.py").read_text() == "x = 1"
    assert "The edit is empty" in refused(here, "", "--format", "whole", "app.py")
    (here.root / "app.py").write_text(CHANGED)
    said = refused(here, "def greet():\n    # ... rest\n", "--format", "whole", "app.py")
    assert "has a placeholder" in said
    assert (here.root / "app.py").read_text() == CHANGED


def test_several_files_and_operations(magy: Magy) -> None:
    (magy.root / "gone.py").write_text("a\nb\n")
    (magy.root / "old.py").write_text("a\nb\n")
    (magy.root / "old.py").chmod(0o750)
    text = (
        "*** Begin Patch\n*** Add File: deep/er/new.py\n+x = 1\n*** Delete File: gone.py\n"
        "*** Update File: old.py\n*** Move to: sub/name.py\n@@\n-a\n+c\n*** Update File: app.py\n"
        "@@\n-    return 'hello'\n+    return 1\n*** End Patch\n"
    )
    dry = magy("edit", "--check", input=text)
    assert dry.stdout == (
        "would create deep/er/new.py +1 -0\nwould remove gone.py +0 -2\n"
        "would rename old.py to sub/name.py +1 -1\nwould change app.py +1 -1\n"
    )
    assert not (magy.root / "deep").exists()
    done = magy("edit", input=text)
    assert done.returncode == 0 and done.stdout == (
        "created deep/er/new.py +1 -0\nremoved gone.py +0 -2\n"
        "renamed old.py to sub/name.py +1 -1\nchanged app.py +1 -1\n"
    )
    assert tree(magy.root) == {
        "app.py": b"def greet():\n    return 1\n",
        "deep/er/new.py": b"x = 1\n",
        "sub/name.py": b"c\nb\n",
    }
    assert stat.S_IMODE((magy.root / "sub/name.py").stat().st_mode) == 0o750


@pytest.mark.req("G013")
def test_all_or_nothing(magy: Magy) -> None:
    """Each failure says where it is and what to do; what would have fitted is not done."""
    text = (
        "--- a/app.py\n+++ b/app.py\n@@ -1,2 +1,2 @@\n-def greet():\n+def hail():\n"
        "     return 'hello'\n--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n-x\n+y\n"
        "--- a/two.py\n+++ b/two.py\n@@ ... @@\n-same\n+other\n@@ ... @@\n-none\n+other\n"
    )
    (magy.root / "two.py").write_text("same\nx\nsame\n")
    said = refused(magy, text)
    assert "b.py does not exist" in said
    assert "two.py, hunk 1: " in said and "two.py, hunk 2: " in said
    done = magy("edit", "--json", input=text)
    assert done.returncode == 1
    answer = found(done)
    assert answer["written"] is False and [file["path"] for file in answer["files"]] == ["app.py"]
    assert [(f["path"], f["hunk"], f["code"]) for f in answer["failures"]] == [
        ("b.py", None, "unknown_file"), ("two.py", 0, "ambiguous"), ("two.py", 1, "not_found"),
    ]  # fmt: skip
    assert answer["failures"][1]["lines"] == [1, 3]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"def f():\r\n    return 'hello'\r\n", b"def f():\r\n    return 'good morning'\r\n"),
        (b"\xef\xbb\xbfx = 'hello'\r\ny\n", b"\xef\xbb\xbfx = 'good morning'\r\ny\n"),
        ("é 'hello'".encode("utf-16"), "é 'good morning'".encode("utf-16")),
        (b"caf\xe9 'hello'", b"caf\xe9 'good morning'"),
        (b"a\rx = 'hello'\rb", b"a\rx = 'good morning'\rb"),
    ],
)
def test_bytes_that_are_not_meant_stay(here: Here, before: bytes, after: bytes) -> None:
    file = here.root / "app.py"
    file.write_bytes(before)
    file.chmod(0o755)
    assert here("edit", "app.py", input=HELLO).returncode == 0
    assert file.read_bytes() == after
    assert stat.S_IMODE(file.stat().st_mode) == 0o755


def test_a_diff_is_printed_that_does_the_same(here: Here, tmp_path: Path) -> None:
    (here.root / "gone.py").write_bytes(b"a\r\nb")
    (here.root / "tab\there").write_text("a\n")
    edits = [
        {"path": "app.py", **json.loads(HELLO)},
        {"command": "create", "path": "new dir/é.py", "content": "x"},
        {"command": "create", "path": "empty", "content": ""},
        {"command": "delete", "path": "gone.py"},
        {"path": "tab\there", "content": "--- b\n"},
    ]
    before = tree(here.root)
    assert "control characters" in refused(here, json.dumps(edits))
    diff = here("edit", "--diff", input=json.dumps(edits[:-1]))
    assert diff.returncode == 0 and tree(here.root) == before
    assert here("edit", input=diff.stdout).returncode == 0
    after = tree(here.root)
    for name, data in before.items():
        (here.root / name).write_bytes(data)
    (here.root / "new dir/é.py").unlink()
    (here.root / "empty").unlink()
    assert here("edit", input=json.dumps(edits[:-1])).returncode == 0
    assert tree(here.root) == after


def test_what_is_read(magy: Magy, tmp_path: Path) -> None:
    file = tmp_path / "edit"
    file.write_bytes(b"\xff\xfe" + EDITS["unified"].encode("utf-16-le"))
    assert magy("edit", "--from", str(file)).returncode == 0
    assert (magy.root / "app.py").read_text() == CHANGED
    gone = magy("edit", "--from", str(tmp_path / "none"))
    assert gone.returncode == 2 and "cannot be read: No such file" in gone.stderr
    file.write_bytes(b"\x7fELF\0\0")
    assert "not text: it looks like an ELF program" in magy("edit", "--from", str(file)).stderr
    done = magy("edit", "--json", "--from", str(file))
    assert done.returncode == 1 and found(done)["failures"][0]["code"] == "parse"


def test_the_text_that_the_edit_was_made_for(magy: Magy, tmp_path: Path) -> None:
    """Lines that were changed since, elsewhere, stay; the same line is a conflict."""
    seen = tmp_path / "seen.py"
    seen.write_text("import os\n\ndef greet():\n    return 'hello'\n")
    (magy.root / "app.py").write_text("import sys\n\ndef greet():\n    return 'hello'\n")
    patch = (
        "*** Begin Patch\n*** Update File: app.py\n@@\n import os\n \n def greet():\n"
        "-    return 'hello'\n+    return 1\n*** End Patch\n"
    )
    assert magy("edit", "--seen", str(seen), input=patch).returncode == 0
    assert (magy.root / "app.py").read_text() == "import sys\n\ndef greet():\n    return 1\n"
    (magy.root / "app.py").write_text("import os\n\ndef greet():\n    return 'hi'\n")
    done = magy("edit", "--seen", str(seen), "--json", input=patch)
    assert done.returncode == 1
    assert [failure["code"] for failure in found(done)["failures"]] == ["conflict"]
    two = json.dumps([{"path": p, "old_text": "a", "new_text": "b"} for p in ("app.py", "b.py")])
    assert magy("edit", "--seen", str(seen), input=two).returncode == 2
    assert magy("edit", "--seen", str(tmp_path / "none"), input=patch).returncode == 2


# --- what must not happen -------------------------------------------------------------------------


def test_files_elsewhere(here: Here, tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text("x = 'hello'\n")
    (here.root / "link.py").symlink_to(outside)
    (here.root / "folder").symlink_to(tmp_path)
    for name in ("../outside.py", str(outside), "link.py", "folder/outside.py", "~/x", "a\0b"):
        text = json.dumps({"path": name, **json.loads(HELLO)})
        refused(here, text)
        assert outside.read_text() == "x = 'hello'\n"
    moved = "*** Begin Patch\n*** Update File: app.py\n*** Move to: folder/app.py\n*** End Patch\n"
    assert "not below the current directory" in refused(here, moved)
    assert here("edit", str(outside), input=HELLO).returncode == 0, "it was named"
    assert outside.read_text() == "x = 'good morning'\n"


def test_links(here: Here) -> None:
    (here.root / "link.py").symlink_to("app.py")
    text = EDITS["unified"].replace("app.py", "link.py")
    assert here("edit", input=text).returncode == 0
    assert (here.root / "link.py").is_symlink()
    assert (here.root / "app.py").read_text() == CHANGED
    for text in ("*** Delete File: link.py\n", "*** Update File: link.py\n*** Move to: b.py\n"):
        assert "does not remove or rename links" in refused(here, text)
    gone = json.dumps({"command": "delete"})
    assert "does not remove or rename links" in refused(here, gone, "link.py")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("*** Update File: picture.png\n@@\n-a\n+b\n", "a PNG image"),
        ("*** Update File: folder\n@@\n-a\n+b\n", "is a directory"),
        ("*** Delete File: folder\n", "is a directory"),
        ("*** Add File: folder/x\n+a\n", "already exists"),
        ("*** Add File: app.py/x\n+a\n", "app.py"),
        ("*** Update File: app.py\n*** Move to: folder/x\n", "already exists"),
        ("*** Delete File: none.py\n", "does not exist"),
        ("*** Update File: none.py\n@@\n+a\n", "does not exist"),
        ("*** Delete File: app.py\n*** Delete File: app.py\n", "was already removed or renamed"),
        ("*** Update File: pipe\n@@\n+a\n", "fifo"),
        ("*** Update File: kept.py\n@@\n-a\n+b\n", "read-only"),
        ("*** Update File: latin.py\n@@\n-a\n+日本\n", "does not have"),
        ("--- a/folder/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", "contains more than the diff"),
        ("hello\n", "not an edit in a known format"),
        ("", "The edit is empty"),
        ("\x1b[31m*** Begin Patch\n", "not an edit in a known format"),
    ],
)
def test_what_is_refused(here: Here, text: str, said: str) -> None:
    (here.root / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    (here.root / "folder").mkdir()
    (here.root / "folder/x").write_text("a\nmore\n")
    (here.root / "kept.py").write_text("a\n")
    (here.root / "kept.py").chmod(0o444)
    (here.root / "latin.py").write_bytes(b"a\n\xe9\n")
    if "pipe" in text:
        os.mkfifo(here.root / "pipe")
    message = refused(here, text)
    assert said in message and "\x1b" not in message


def test_a_binary_file_can_be_removed_and_renamed(here: Here) -> None:
    data = b"\x89PNG\r\n\x1a\n\0\0"
    (here.root / "a.png").write_bytes(data)
    (here.root / "b.png").write_bytes(data)
    text = "*** Delete File: a.png\n*** Update File: b.png\n*** Move to: c.png\n"
    assert here("edit", input=text).returncode == 0
    assert tree(here.root) == {"app.py": (here.root / "app.py").read_bytes(), "c.png": data}


def test_a_file_that_is_removed_and_written_anew_keeps_its_line_ends(here: Here) -> None:
    (here.root / "app.py").write_bytes(b"a\r\nb\r\n")
    text = "*** Delete File: app.py\n*** Add File: app.py\n+a\n+c\n"
    assert here("edit", input=text).stdout == "changed app.py +1 -1\n"
    assert (here.root / "app.py").read_bytes() == b"a\r\nc\r\n"


def test_a_second_edit_sees_the_first(here: Here) -> None:
    text = EDITS["unified"] + "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n" + EDITS[
        "unified"].replace("'good morning'", "2").replace("'hello'", "'good morning'")  # fmt: skip
    assert here("edit", input=text).returncode == 0
    assert (here.root / "app.py").read_text() == "def greet():\n    return 2\n"


FIRST = {"path": "n.txt", "old_text": "all", "new_text": "ALL"}
SECOND = {"path": "n.txt", "old_text": "ALL new", "new_text": "chain"}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([FIRST, SECOND]),
        json.dumps({"path": "n.txt", "edits": [FIRST, SECOND]}),
        f"{json.dumps(FIRST)}\n{json.dumps(SECOND)}\n",
        "n.txt\n<<<<<<< SEARCH\nall new\n=======\nALL new\n>>>>>>> REPLACE\n"
        "<<<<<<< SEARCH\nALL new\n=======\nchain\n>>>>>>> REPLACE\n",
        "*** Begin Patch\n*** Update File: n.txt\n@@\n-all new\n+ALL new\n@@\n-ALL new\n+chain\n"
        "*** End Patch\n",
    ],
)
def test_an_edit_sees_those_before_it_in_every_shape(here: Here, text: str) -> None:
    (here.root / "n.txt").write_text("all new\n")
    assert here("edit", input=text).returncode == 0
    assert (here.root / "n.txt").read_text() == "chain\n"


def plain_diff(root: Path) -> str:
    """What diff(1) says of two files, with their names and times."""
    (root / "n").write_text("a\nb\nc\n")
    (root / "n2").write_text("a\nB\nc\n")
    return subprocess.run(
        ["diff", "-u", "n", "n2"], cwd=root, capture_output=True, text=True, check=False
    ).stdout


def test_a_diff_of_two_files(here: Here) -> None:
    """The file on the command line is meant; else the first of the two that is there."""
    diff = plain_diff(here.root)
    (here.root / "n.txt").write_text("a\nb\nc\n")
    assert here("edit", "n.txt", input=diff).stdout == "changed n.txt +1 -1\n"
    assert (here.root / "n.txt").read_text() == "a\nB\nc\n"
    assert here("edit", input=diff).stdout == "changed n +1 -1\n"
    (here.root / "n").write_text("a\nb\nc\n")
    (here.root / "n2").write_text("a\nb\nc\n")
    assert here("edit", "app.py", "n2", input=diff).stdout == "changed n2 +1 -1\n"
    assert (here.root / "n").read_text() == "a\nb\nc\n"
    (here.root / "n2").write_text("a\nb\nc\n")
    (here.root / "n").unlink()
    assert here("edit", input=diff).stdout == "changed n2 +1 -1\n"
    (here.root / "n2").unlink()
    assert "n does not exist" in refused(here, diff)


def test_a_diff_of_two_files_that_may_be_anybodys(here: Here) -> None:
    """Without the times of diff(1) it may be a model's, which may mean to rename."""
    diff = "".join(
        line.partition("\t")[0] + ("\n" if "\t" in line else "")
        for line in plain_diff(here.root).splitlines(keepends=True)
    )
    assert "Or name the file on the command line" in refused(here, diff)
    assert here("edit", "n", input=diff).returncode == 0
    assert (here.root / "n").read_text() == "a\nB\nc\n"


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ('{"old_text": "a", "new_text": "b"}', (), "Or name the file on the command line"),
        ("hello\n", ("app.py",), "If it is the whole new text of app.py, use --format whole"),
        ('{"path": "app.py", "insert": {"line": 99, "text": "x"}}', (), "There is no line 99 to "
         "insert after: the file has 2 lines, so 0 to 2 are possible"),
        ('{"path": "app.py", "old_text": "GREET", "new_text": "x"}', (), "The closest is line 1 "),
        ('{"path": "none.py", "old_text": "a", "new_text": "b"}', (), "Its directory has: .git/"),
        ('{"path": "no/x.py", "old_text": "a", "new_text": "b"}', (), "There is no no either"),
    ],
)  # fmt: skip
def test_what_to_do_is_said(here: Here, text: str, words: tuple[str, ...], said: str) -> None:
    assert said in refused(here, text, *words)


def test_a_mode_is_not_explained_with_the_syntax_of_diffs(here: Here) -> None:
    said = refused(here, "diff --git a/app.py b/app.py\nold mode 100644\nnew mode 100755\n")
    assert "which an edit cannot do; use chmod" in said and "@@" not in said


def test_nothing_is_said_that_only_a_model_can_do(here: Here, tmp_path: Path) -> None:
    """The same sentences are read by people and by models."""
    (here.root / "kept.py").write_text("a\n")
    (here.root / "kept.py").chmod(0o444)
    os.mkfifo(here.root / "pipe")
    seen = tmp_path / "seen.py"
    seen.write_text("x = 0\n")
    (here.root / "app.py").write_text("x = 2\n")
    one = {"old_text": "a", "new_text": "b"}
    said = [
        refused(here, json.dumps({"path": "kept.py", **one})),
        refused(here, json.dumps({"path": "pipe", **one})),
        refused(here, '{"path": "app.py", "old_text": "x = 0", "new_text": "x = 2"}'),
        refused(here, '{"old_text": "x = 0", "new_text": "x = 1"}', "--seen", str(seen), "app.py"),
    ]
    assert "changed these same lines after they were read" in said[3]
    for sentence in said:
        assert not any(word in sentence for word in ("the user", "bash", " you ", "Do not send"))


def test_an_output_that_cannot_be_written(magy: Magy) -> None:
    """What was done is not called undone."""
    text = json.dumps({"path": "app.py", **json.loads(HELLO)})
    with open("/dev/full", "wb") as full:
        dry = magy("edit", "--check", input=text, stdout=full, stderr=subprocess.PIPE)
        assert dry.returncode == 1 and (magy.root / "app.py").read_text() != CHANGED
        done = magy("edit", input=text, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 5
    assert "No space left on device. The edit was made nevertheless." in done.stderr
    assert (magy.root / "app.py").read_text() == CHANGED
    assert {1, 5} <= dict(EDIT_CODES).keys()


def test_an_empty_directory_goes_with_its_last_file(here: Here) -> None:
    (here.root / "keep/deep").mkdir(parents=True)
    (here.root / "keep/deep/z").write_text("a\n")
    assert here("edit", input="*** Delete File: keep/deep/z\n").returncode == 0
    assert not (here.root / "keep").exists()


def test_what_only_adds_to_no_file_creates_it(here: Here) -> None:
    text = "new.py\n<<<<<<< SEARCH\n=======\nx = 1\n>>>>>>> REPLACE\n"
    assert here("edit", input=text).stdout == "created new.py +1 -0\n"
    assert here("edit", input=text.replace("x", "y")).returncode == 0
    assert (here.root / "new.py").read_text() == "x = 1\ny = 1\n", "as Aider defines it"
    text = json.dumps({"path": "n.py", "insert": {"line": 7, "text": "x"}})
    assert "does not exist" in refused(here, text)


def test_nothing_to_change(here: Here) -> None:
    text = json.dumps({"path": "app.py", "content": (here.root / "app.py").read_text()})
    before = (here.root / "app.py").stat()
    assert here("edit", input=text).stdout == "nothing to change\n"
    assert (here.root / "app.py").stat().st_ino == before.st_ino


@pytest.mark.parametrize(
    "words",
    [("--format", "ed"), ("--check", "--diff"), (".",), ("",), ("~/x",), ("--chec",), ("-",)],
)
def test_a_wrong_command_line(here: Here, words: tuple[str, ...]) -> None:
    done = here("edit", *words, input=EDITS["unified"])
    assert done.returncode == 2 and done.stderr
    assert (here.root / "app.py").read_text() != CHANGED


def test_what_was_written_is_taken_back_when_something_fails(root: Path) -> None:
    """The third file changes between the look and the write."""
    (root / "b.py").write_text("b\n")
    (root / "old.py").write_text("o\n")
    before = {**tree(root), "b.py": b"someone else\n"}
    place = [load(resolve(str(root), name)) for name in ("app.py", "made/new.py", "b.py", "old.py")]
    target = load(resolve(str(root), "moved/to.py"))
    place[0].after, place[1].after, place[2].after = "changed\n", "new\n", "changed\n"
    target.moved_from, target.before, target.after = place[3], "o\n", "o\n"
    target.data, place[3].moved_to, place[3].after = place[3].data, target, None
    (root / "b.py").write_text("someone else\n")
    with pytest.raises(ToolError, match=r"b\.py was changed by someone else"):
        write([place[0], place[1], target, place[2]])
    assert tree(root) == before
    assert sorted(path.name for path in root.iterdir()) == [".git", "app.py", "b.py", "old.py"]
