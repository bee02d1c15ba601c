"""Runs the tests that show a requirement, and lists how each line of `docs/requirements.md` fares:
`make requirements`.

    python -m scripts.requirements                  all tests that carry a `req` mark
    python -m scripts.requirements tests/e2e -x     the same, of these; options go to pytest

A test of the Emacs client carries its ids as tags. What `make test` or this command has seen pass,
with the project exactly as it is now, does not run again. Fails if any of these tests does.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from tests.outcomes import kept, requirement_lines


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
        self.lines: Mapping[str, str] = {}
        self._ids: dict[str, tuple[str, ...]] = {}
        self._known = 0

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        self.lines = requirement_lines(config.rootpath)
        for item in items:
            if ids := tuple(str(id) for mark in item.iter_markers("req") for id in mark.args):
                self._ids[item.nodeid] = ids
        known = kept(config.rootpath) & self._ids.keys()
        for test in known:
            for id in self._ids[test]:
                self.shown[id].passed.add(test)
        self._known = len(known)
        runs = [item for item in items if item.nodeid in self._ids.keys() - known]
        config.hook.pytest_deselected(items=[item for item in items if item not in runs])
        items[:] = runs

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
        yield "\nNo test shows:"
        yield from (f"{id:6}{line}" for id, line in self.lines.items() if id not in self.shown)
        good = sum(shown.verdict == "passed" for shown in self.shown.values())
        yield (
            f"\n{good} of {len(self.shown)} requirements with a test have passing tests only;"
            f" no test shows {len(self.lines.keys() - self.shown.keys())} of {len(self.lines)}."
        )
        if self._known:
            yield f"{self._known} tests passed before, with the project as it is, and did not run."


def main(arguments: Sequence[str]) -> int:
    recorder = Recorder()
    status = pytest.main(["-p", "no:cacheprovider", *arguments], plugins=[recorder])
    print("\n" + "\n".join(recorder.table()))
    nothing_to_run = status == pytest.ExitCode.NO_TESTS_COLLECTED and recorder.shown
    return 0 if nothing_to_run else int(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
