"""The code in the how-tos runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HOWTO = Path(__file__).parent.parent / "docs" / "howto"
FENCE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("path", sorted(HOWTO.glob("*.md")), ids=lambda path: path.stem)
def test_snippets_run(path: Path) -> None:
    snippets = FENCE.findall(path.read_text("utf-8"))
    assert snippets, f"{path} has no Python"
    for snippet in snippets:
        exec(compile(snippet, str(path), "exec"), {"__name__": "snippet"})
