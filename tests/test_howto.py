"""The Python in the how-tos runs as it stands, one after the other on a page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HOWTOS = sorted((Path(__file__).parents[1] / "docs" / "howto").glob("*.md"))
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WITH_PYTHON = [path for path in HOWTOS if FENCE.search(path.read_text("utf-8"))]


def test_the_howtos_for_programmers_have_python() -> None:
    assert {"add-a-tool", "add-a-provider", "add-an-event"} <= {path.stem for path in WITH_PYTHON}


@pytest.mark.parametrize("path", WITH_PYTHON, ids=lambda path: path.stem)
def test_snippets_run(path: Path) -> None:
    exec(compile("\n".join(FENCE.findall(path.read_text("utf-8"))), str(path), "exec"), {})
