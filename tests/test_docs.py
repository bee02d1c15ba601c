"""Documentation that cannot drift: generated pages are fresh, links lead somewhere, and what the
README tells people to type exists."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from magy_server.api.wire.methods import CLIENT_TO_SERVER, SERVER_TO_CLIENT
from magy_server.api.wire.verbs import Method
from magy_server.core.events import Event

TOP = Path(__file__).parents[1]
PAGES = [TOP / "README.md", TOP / "CHANGELOG.md", *sorted((TOP / "docs").rglob("*.md"))]
FENCE = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\[[^\]]*\]\(<?([^)>\s]+)>?(?:\s+\"[^\"]*\")?\)")
HEADING = re.compile(r"^#+\s+(.+?)\s*$", re.MULTILINE)
ELSEWHERE = re.compile(r"^[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def links(page: Path) -> list[str]:
    """The relative link targets of a Markdown page; what stands in code is not a link."""
    text = CODE.sub("", FENCE.sub("", page.read_text(encoding="utf-8")))
    return [target for target in LINK.findall(text) if not ELSEWHERE.match(target)]


def anchors(page: Path) -> set[str]:
    """The anchors that its headings get, by the rule that code hosting sites share."""
    headings = HEADING.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
    words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {word.replace(" ", "-") for word in words}


def problem(page: Path, target: str) -> str | None:
    """What is wrong with a link, or None."""
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    if TOP not in file.parents:
        return f"{target} leads out of the project"
    if not file.exists():
        return f"{target} does not exist"
    if anchor and anchor not in anchors(file):
        return f"{target} has no such heading"
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_links_lead_somewhere(page: Path) -> None:
    assert not [said for target in links(page) if (said := problem(page, target))]


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("gone.md", "gone.md does not exist"),
        ("page.md#nowhere", "page.md#nowhere has no such heading"),
        ("../../../elsewhere.md", "../../../elsewhere.md leads out of the project"),
        ("page.md#two-words-and-code", None),
        ("#two-words-and-code", None),
    ],
)
def test_a_wrong_link_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, said: str | None
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "TOP", tmp_path)
    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    page.write_text(f"# Two words, and `code`\n\n[a link]({target}) `[not](one)` [x](https://x.y)")
    assert links(page) == [target]
    assert problem(page, target) == said


def test_every_page_is_reachable_from_the_index() -> None:
    reached, waiting = set(), [TOP / "docs" / "index.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md" or not page.is_file():
            continue
        reached.add(page)
        targets = (target.partition("#")[0] for target in links(page))
        waiting.extend((page.parent / target).resolve() for target in targets if target)
    docs = {page.resolve() for page in (TOP / "docs").rglob("*.md")}
    assert not sorted(str(page.relative_to(TOP)) for page in docs - reached)


def test_generated_pages_are_fresh() -> None:
    command = [sys.executable, "-m", "scripts.generate_docs", "--check"]
    run = subprocess.run(command, cwd=TOP, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("method", [*CLIENT_TO_SERVER, *SERVER_TO_CLIENT], ids=lambda m: m.name)
def test_every_method_is_documented(method: Method) -> None:
    page = (TOP / "docs" / "protocol.md").read_text(encoding="utf-8")
    kind = "request" if method.result else "notification"
    assert f"\n### `{method.name}` ({kind})\n\n{method.about}\n" in page


def test_what_the_readme_says_to_make_can_be_made() -> None:
    readme = (TOP / "README.md").read_text(encoding="utf-8")
    said = set(re.findall(r"(?:`|^)make ([a-z]+)", readme, re.MULTILINE))
    targets = re.findall(
        r"^([a-z]+):", (TOP / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert "demo" in said
    assert said <= set(targets)


def test_every_event_stands_on_its_page() -> None:
    page = (TOP / "docs" / "reference" / "events.md").read_text(encoding="utf-8")
    (kinds, *_) = get_args(Event)
    for kind in get_args(kinds):
        (_, section) = page.split(f"### `{kind.model_fields['type'].default}`", 1)
        fields = section.partition("\n### ")[0]
        assert all(f"| `{name}` |" in fields for name in kind.model_fields if name != "type")
