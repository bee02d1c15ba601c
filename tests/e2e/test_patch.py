"""Patches of several files, by the model family that writes them, through the wire."""

from __future__ import annotations

import json
from pathlib import Path

from .harness import person

PATCHES = {"edits": {"style": "patch"}, "permission": {"edit": "allow"}}


def patch(*lines: str) -> str:
    text = "\n".join(["*** Begin Patch", *lines, "*** End Patch", ""])
    return f"call: apply_patch {json.dumps({'patch': text})}\n"


async def test_what_a_patch_did_before_it_failed_is_under_review(root: Path, state: Path) -> None:
    (root / "a.txt").write_text("one\ntwo\n")
    script = (
        patch("*** Update File: a.txt", "-one", "+ONE", "*** Add File: d/x", "+x",
              "*** Add File: d", "+a file where the patch just made a directory")
        + "---\n"
        + patch("*** Update File: a.txt", "-two", "+TWO")
        + "---\ntext: Done.\n"
    )  # fmt: skip
    async with person(root, state, script, settings=PATCHES) as one:
        await one.new()
        assert (await one.turn("Go"))["stopReason"] == "end_turn", one.client.log
        failed, second = one.outputs()
        assert "Done before that: a.txt, d/x" in failed
        assert "had changed since you read it" not in second
        files = (await one.client.request("magy/review/list", {}))["files"]
        assert {Path(file["uri"]).name for file in files} == {"a.txt", "x"}
        about = {"uri": (root / "a.txt").as_uri(), "decision": "reject", "all": True}
        await one.client.request("magy/review/resolve", {**about, "requestKey": "k"})
        assert (root / "a.txt").read_text() == "one\ntwo\n"


async def test_a_patch_makes_no_file_where_whole_files_may_not_be_written(
    root: Path, state: Path
) -> None:
    rules = {"edit": "allow", "write": [{"docs/**": "allow"}, {"*": "deny"}]}
    script = (
        patch("*** Add File: n.txt", "+x")
        + patch("*** Update File: app.py", "*** Move to: moved.py")
        + patch("*** Add File: docs/n.txt", "+x")
        + patch("*** Update File: app.py", "-    return 'hello'", "+    return 'bye'")
        + "---\ntext: Done.\n"
    )
    async with person(root, state, script, settings={**PATCHES, "permission": rules}) as one:
        await one.new()
        assert (await one.turn("Go"))["stopReason"] == "end_turn", one.client.log
        made, moved, allowed, changed = one.outputs()
        assert "Not allowed" in made
        assert "write `*` -> deny" in moved
        assert "docs/n.txt +1" in allowed
        assert "app.py +1 -1" in changed
    assert sorted(path.name for path in root.iterdir()) == ["app.py", "docs"]
