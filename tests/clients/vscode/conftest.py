from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import guard
from tests.clients.test_emacs import missing
from tests.clients.vscode.driven import Served, lacking, served
from tests.clients.vscode.story import Came, Stage


@pytest.fixture(scope="session")
def places() -> Iterator[dict[str, str]]:
    """The variables of the home directory in which VS Code runs, and all that it starts."""
    with guard.fresh_home() as variables:
        yield variables


@pytest.fixture(scope="session")
def server(places: dict[str, str]) -> Iterator[Served]:
    """One code-server for all tests of this process, with the extension installed."""
    if why := lacking():
        missing(why)
    with served(places) as one:
        yield one


@pytest.fixture(scope="session")
def stage(
    request: pytest.FixtureRequest, places: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Stage:
    """Starts a VS Code only in the process that plays a day."""
    if why := lacking():
        missing(why)
    return Stage(lambda: request.getfixturevalue("server"), places, tmp_path_factory)


@pytest.fixture(scope="session")
def days(request: pytest.FixtureRequest, stage: Stage) -> Came:
    """What came of the days of which a part is tested. A day is the `DAY` of its module."""
    tests = [one for one in request.session.items if isinstance(one, pytest.Function)]
    modules = {one.module for one in tests if "days" in one.fixturenames}
    return stage.days([one.DAY for one in sorted(modules, key=lambda one: one.__name__)])
