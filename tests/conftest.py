"""What holds for every test. See `guard.py` for what a test cannot reach.

A test that needs a program which is not installed is left out and named in the summary; with `CI`
set, nothing may be left out.
"""

from __future__ import annotations

import gc
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests import guard, thorough
from tests.outcomes import Keeper, requirement_lines

_IN_CI = os.environ.get("CI", "").lower() not in ("", "0", "false")
_MOST_WORKERS = 8
_session = ExitStack()
_ended: dict[str, float] = {}
"""When each process of a run had no more tests."""


def pytest_configure(config: pytest.Config) -> None:
    """Before any test is imported, so that processes of wider fixtures are kept in, too."""
    gc.disable()  # until all is collected: nothing of it is garbage
    guard.find_cached_programs(os.environ)
    guard.clean_environment(os.environ)
    guard.trust_nobody(os.environ)
    os.environ.update(_session.enter_context(guard.fresh_home()))
    guard.block_network()
    guard.hear_interrupts()
    # How long an example takes says more of the machine than of the code. In CI the examples are
    # the same in each run: what chance finds there has nothing to do with the change that is being
    # tested, and would only keep it from landing. A developer's run goes on searching.
    slow = [HealthCheck.too_slow]
    settings.register_profile(
        "magy", deadline=None, suppress_health_check=slow, max_examples=thorough.examples(100)
    )
    settings.register_profile("ci", settings.get_profile("magy"), derandomize=True)
    settings.register_profile("brief", settings.get_profile("ci"), max_examples=10)
    settings.load_profile(os.environ.get("EXAMPLES") or ("ci" if _IN_CI else "magy"))
    if not hasattr(config, "workerinput"):  # one process of a run hears of all its tests
        config.pluginmanager.register(Keeper(config.rootpath))


def pytest_report_header() -> str:
    return thorough.said()


def pytest_unconfigure(config: pytest.Config) -> None:
    _session.close()


@pytest.fixture(autouse=True)
def own_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test has an empty home directory of its own, and no network beyond loopback."""
    guard.blocked.clear()
    with guard.fresh_home() as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        yield
    if guard.blocked:
        pytest.fail(f"tried to leave this machine: {', '.join(guard.blocked)}")


def pytest_collection_finish() -> None:
    """What was collected lives until the end: there is no garbage in it to look for."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """For `-n auto`: two for each processor that may be used and one more, up to a few: half of its
    time a test waits, for processes of its own or for the disk."""
    some = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(2 * (some or 1) + 1, _MOST_WORKERS)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    _ended[node.gateway.id] = time.monotonic()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # What takes longest must not begin when the others are nearly done.
    items.sort(key=lambda item: item.get_closest_marker("long") is None)
    lines = requirement_lines(config.rootpath)
    for item in items:
        ids = [id for mark in item.iter_markers("req") for id in mark.args]
        if len(ids) > 3 or not lines.keys() >= set(ids):
            raise pytest.UsageError(
                f"{item.nodeid}: `req` takes at most three ids of docs/requirements.md, not {ids}."
            )


def pytest_runtest_setup(item: pytest.Item) -> None:
    programs = {name for mark in item.iter_markers("needs") for name in mark.args}
    if missing := sorted(name for name in programs if shutil.which(name) is None):
        pytest.skip(f"{', '.join(missing)} not installed")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if _IN_CI and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"Left out, and with CI set no test may be: {_reason(report)}"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says how long processes had nothing to do at the end, names the tests that were left out, and
    why."""
    if last := max(_ended.values(), default=0.0):
        idle = " ".join(f"{last - end:.0f}" for end in sorted(_ended.values()))
        terminalreporter.line(f"seconds for which each process waited for the last one: {idle}")
    left_out = terminalreporter.stats.get("skipped", [])
    if not left_out:
        return
    terminalreporter.section("left out", sep="-")
    by_reason: dict[str, list[str]] = {}
    for report in left_out:
        by_reason.setdefault(_reason(report), []).append(report.nodeid)
    for reason, tests in sorted(by_reason.items()):
        terminalreporter.line(f"{reason}:")
        for test in sorted(tests):
            terminalreporter.line(f"    {test}")


def _reason(report: pytest.TestReport) -> str:
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")
