"""The runner of other tools' cases, on cases of our own in their shape."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.edits.parity import Result, faults, judge, policy

TOP = Path(__file__).parents[2]
BLOCK = "<<<<<<< SEARCH\n{}=======\n{}>>>>>>> REPLACE\n"


def case(format: str, edit: dict[str, Any], expect: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": "r", "format": format, "edit": edit, "expect": expect, **more}


def roo(text: str, old: str, new: str, **expect: Any) -> dict[str, Any]:
    edit = {"diff": BLOCK.format(old, new), "fuzzy_threshold": 1}
    return case("roo_search_replace", edit, expect, content=text)


def cline(text: str, old: str, new: str, **expect: Any) -> dict[str, Any]:
    diff = f"------- SEARCH\n{old}=======\n{new}+++++++ REPLACE\n"
    return case("cline_search_replace", {"diff": diff, "is_final": True}, expect, content=text)


def patch(there: dict[str, str], body: str, **expect: Any) -> dict[str, Any]:
    edit = {"patch": f"*** Begin Patch\n{body}*** End Patch\n"}
    return case("apply_patch", edit, expect, files=there)


def reply(name: str, **expect: Any) -> dict[str, Any]:
    text = name + "```\n" + BLOCK.format("x\n", "y\n") + "```\n"
    return case("parse_editblocks", {"text": text}, expect)


A = {"a": "one\n"}
UPDATE = "*** Update File: a\n@@\n-one\n+two\n"
MOVE = "*** Update File: a\n*** Move to: {}\n@@\n-one\n+two\n"


@pytest.mark.parametrize(
    ("case", "verdict"),
    [
        (roo("x\ny\n", "x\n", "z\n", content="z\ny\n"), "agree"),
        (roo("x\ny\n", "x\n", "z\n", content="z\n"), "different"),
        (roo("x\ny\n", "x\n", "z\n", error=True), "unsafe"),
        (roo("x\ny\n", "lost\n", "z\n", error=True), "agree"),
        (roo("x\nx\n", "x\n", "z\n", content="z\nx\n"), "safer"),
        (cline("x\n", "x\n", "y\n", content="y\n"), "agree"),
        (patch({**A, "b": ""}, UPDATE, files={"a": "two\n", "b": ""}), "agree"),
        (patch(A, "*** Delete File: a\n", files={}), "agree"),
        (patch(A, "*** Delete File: b\n", files=A, error=True), "agree"),
        (patch(A, "*** Add File: a\n+two\n", files={"a": "two\n"}), "safer"),
        (patch(A, MOVE.format("c/b"), files={"c/b": "two\n"}), "agree"),
        (patch({**A, "b": ""}, MOVE.format("b"), files={"b": "two\n"}), "safer"),
        (reply("a.py\n", blocks=[["a.py", "x\n", "y\n"]]), "agree"),
        (reply("", error=True), "agree"),
        (case("find_filename", {}, {"filename": ""}), "not ours"),
        (
            case("search_replace_chunk", {"old": "x\n", "new": "y\n"}, {"content": "  y\n"},
                 content="  x\n"),
            "agree",
        ),
    ],
)  # fmt: skip
def test_each_case_is_sorted(case: dict[str, Any], verdict: str) -> None:
    assert judge(case).verdict == verdict


def test_what_does_not_agree_is_explained_or_a_fault() -> None:
    results = [
        Result("a", "agree", 1, 1),
        Result("b", "safer", 1, "why"),
        Result("c", "different", 1, 2),
        Result("d", "unsafe", None, 2),
        Result("e", "not ours", 1, None),
        Result("f", "safer", 1, "why"),
    ]
    explained = {"a": "was different once", "b": "it is ambiguous", "d": "never an excuse"}
    assert [fault.split(":")[0] for fault in faults(results, explained)] == ["a", "c", "d", "f"]


def test_the_policy_says_one_line_of_each() -> None:
    for id, reason in policy().items():
        assert id.strip() and reason.strip() and "\n" not in reason


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.edits.parity", *arguments]
    return subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False)


def test_the_command_counts_and_fails_on_what_is_unsafe(tmp_path: Path) -> None:
    good, bad = roo("x\n", "x\n", "y\n", content="y\n"), roo("x\n", "x\n", "y\n", error=True)
    files = {"good.json": [good, good], "bad.json": [good, bad]}
    for name, cases in files.items():
        (tmp_path / name).write_text(json.dumps({"cases": cases}))
    done = run(str(tmp_path / "good.json"))
    assert (done.returncode, done.stdout) == (0, "good.json: 2 agree\n")
    done = run(str(tmp_path / "bad.json"))
    assert done.returncode == 1
    assert "FAULT r: applied, where it must be refused" in done.stdout
