"""Runs the tests that show a requirement, and lists every requirement id with how its tests fared:
`make requirements`.

    python scripts/requirements.py                  all tests that carry a `req` mark
    python scripts/requirements.py tests/e2e -x     the same, of these; options go to pytest

Fails if any of these tests does.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest


@dataclass(slots=True)
class Shown:
    """The tests that show one requirement, by outcome."""

    passed: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    left_out: set[str] = field(default_factory=set)

    @property
    def verdict(self) -> str:
        if self.failed:
            return "FAILED"
        return "passed" if self.passed else "not run"


class Recorder:
    """A pytest plugin: keeps only the tests with a `req` mark, and remembers their outcomes."""

    def __init__(self) -> None:
        self.shown: defaultdict[str, Shown] = defaultdict(Shown)
        self._ids: dict[str, tuple[str, ...]] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        for item in items:
            if ids := tuple(str(id) for mark in item.iter_markers("req") for id in mark.args):
                self._ids[item.nodeid] = ids
        config.hook.pytest_deselected(items=[i for i in items if i.nodeid not in self._ids])
        items[:] = [item for item in items if item.nodeid in self._ids]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test passed if its call did and neither set-up nor tear-down failed."""
        for id in self._ids[report.nodeid]:
            shown = self.shown[id]
            if report.failed:
                shown.failed.add(report.nodeid)
                shown.passed.discard(report.nodeid)
            elif report.skipped:
                shown.left_out.add(report.nodeid)
            elif report.when == "call":
                shown.passed.add(report.nodeid)

    def table(self) -> Iterator[str]:
        yield f"{'id':6}{'passed':>8}{'failed':>8}{'left out':>10}"
        for id, shown in sorted(self.shown.items()):
            counts = f"{len(shown.passed):8}{len(shown.failed):8}{len(shown.left_out):10}"
            yield f"{id:6}{counts}  {shown.verdict}"
            yield from (f"        {test}" for test in sorted(shown.failed))
        good = sum(shown.verdict == "passed" for shown in self.shown.values())
        yield f"{good} of {len(self.shown)} requirements with a test have passing tests only."


def main(arguments: Sequence[str]) -> int:
    recorder = Recorder()
    status = int(pytest.main(["-p", "no:cacheprovider", *arguments], plugins=[recorder]))
    print("\n" + "\n".join(recorder.table()))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
