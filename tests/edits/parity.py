"""How the engine fares with other tools' own test cases.

`python -m tests.edits.parity FILE...` reads cases as JSON (`{"cases": [{"id", "format", "edit",
"expect", "content" or "files"}]}`) and sorts each into: agree; safer (refused, where the tool
applies); different (another text, or names, than the tool's); unsafe (applied, where it must be
refused). `parity_policy.json` says of each case that does not agree, by id, why that is right; a
case that is not said there, and any unsafe one, is a failure.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from magy_server.edits.formats import parse
from magy_server.edits.model import EditError, Failure, FileEdit, Hunk
from magy_server.edits.plan import plan
from magy_server.edits.rebasing.diff import apply
from magy_server.edits.text import plain

POLICY = Path(__file__).with_name("parity_policy.json")
Verdict = Literal["agree", "safer", "different", "unsafe", "not ours"]
Case = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Result:
    id: str
    verdict: Verdict
    wanted: Any
    got: Any
    """What came out, or the EditError's words."""


def judge(case: Case) -> Result:
    """Of one case; `not ours` when it is of a helper that has no counterpart here."""
    runner = RUNNERS.get(case["format"])
    expect = case["expect"]
    wanted = next((expect[key] for key in ("content", "blocks", "files") if key in expect), None)
    if runner is None:
        return Result(case["id"], "not ours", wanted, None)
    try:
        got = runner(case)
    except EditError as error:
        verdict: Verdict = "agree" if expect.get("error") else "safer"
        return Result(case["id"], verdict, wanted, str(error))
    if expect.get("error"):
        return Result(case["id"], "unsafe", None, got)
    return Result(case["id"], "agree" if got == wanted else "different", wanted, got)


# --- one runner a format ------------------------------------------------------------------------


def _blocks_in_text(format: str) -> Callable[[Case], str]:
    def run(case: Case) -> str:
        text: str = case["content"]
        for edit in parse(format, case["edit"]["diff"], "file"):
            text = _edited(text, edit)
        return text

    return run


def _chunk(case: Case) -> str:
    """An old and a new text, as of one search/replace block."""
    old, new = (plain(case["edit"][key]) for key in ("old", "new"))
    return _edited(case["content"], FileEdit("file", hunks=(Hunk(old, new, lines=True),)))


def _read_blocks(case: Case) -> list[list[str]]:
    """What is read of a reply, before it is applied."""
    edits = parse("aider", case["edit"]["text"])
    if any(not edit.path for edit in edits):
        raise EditError([Failure(0, "unknown_file", "A block names no file.")])
    return [[edit.path, hunk.old, hunk.new] for edit in edits for hunk in _hunks(edit)]


def _hunks(edit: FileEdit) -> Sequence[Hunk]:
    return edit.hunks or (Hunk("", edit.content),)


def _patch(case: Case) -> dict[str, str]:
    """All or nothing, as the tools do it."""
    files = dict(case["files"])
    for edit in parse("v4a", case["edit"]["patch"]):
        _on_files(files, edit)
    return files


def _on_files(files: dict[str, str], edit: FileEdit) -> None:
    there = edit.path in files
    if edit.op == "create" and there:
        raise EditError([Failure(0, "exists", f"{edit.path} exists already.")])
    if edit.op in ("update", "delete") and not there:
        raise EditError([Failure(0, "unknown_file", f"There is no file {edit.path}.")])
    if edit.to and edit.to in files:
        raise EditError([Failure(0, "exists", f"{edit.to} exists already.")])
    text = _edited(files.pop(edit.path, ""), edit)
    if edit.op != "delete":
        files[edit.to or edit.path] = text


def _edited(text: str, edit: FileEdit) -> str:
    if edit.op != "update":
        return edit.content
    resolved = plan(text, edit.hunks)
    if resolved.failures:
        raise EditError(resolved.failures)
    return apply(text, resolved.changes)


RUNNERS: Mapping[str, Callable[[Case], Any]] = {
    "apply_patch": _patch,
    "cline_search_replace": _blocks_in_text("cline"),
    "roo_search_replace": _blocks_in_text("roo"),
    "search_replace_chunk": _chunk,
    "parse_editblocks": _read_blocks,
}


# --- reading and telling ------------------------------------------------------------------------


def cases(path: Path) -> list[Case]:
    found: list[Case] = json.loads(path.read_text(encoding="utf-8"))["cases"]
    return found


def policy(path: Path = POLICY) -> dict[str, str]:
    found: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return found


def faults(results: Sequence[Result], explained: Mapping[str, str]) -> Iterator[str]:
    """What must not be: an unsafe case, one that is not explained, or explained without need."""
    for result in results:
        if result.verdict == "unsafe":
            yield f"{result.id}: applied, where it must be refused"
        elif result.verdict in ("safer", "different") and result.id not in explained:
            yield f"{result.id}: {result.verdict}, and the policy does not say why"
        elif result.verdict == "agree" and result.id in explained:
            yield f"{result.id}: agrees by now; the policy need not explain it"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.edits.parity", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--policy", type=Path, default=POLICY)
    parser.add_argument("--verbose", action="store_true", help="show each case that differs")
    chosen = parser.parse_args()
    explained, bad = policy(chosen.policy), 0
    for file in chosen.files:
        results = [judge(case) for case in cases(file)]
        counted = Counter(result.verdict for result in results)
        print(f"{file.name}: " + ", ".join(f"{n} {name}" for name, n in counted.most_common()))
        for result in results:
            if result.verdict not in ("agree", "not ours"):
                print(f"  {result.id}: {result.verdict}; {explained.get(result.id, 'UNEXPLAINED')}")
                if chosen.verbose:
                    print(f"    wanted {result.wanted!r}\n    got    {result.got!r}")
        for fault in faults(results, explained):
            bad += 1
            print(f"FAULT {fault}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
