from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from magy_server.core.state.vector import Vector


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3))))
def test_versions_never_see_each_others_items(appends: list[tuple[int, int]]) -> None:
    versions: list[tuple[Vector[int], list[int]]] = [(Vector(), [])]
    for which, item in appends:
        vector, model = versions[which % len(versions)]
        versions.append((vector.append(item), [*model, item]))
    for vector, model in versions:
        assert list(vector) == model
        assert len(vector) == len(model)
        assert vector[1:] == model[1:]
        if model:
            assert vector[-1] == model[-1]


def test_what_was_appended_to_see_what_comes_of_it_is_shared_when_it_is_appended() -> None:
    """A log is folded ahead for its summary with each append; what is remembered of the past must
    not hold a copy for each."""
    now: Vector[str] = Vector()
    versions = []
    for number in range(10):
        now.append(f"item {number}")
        now = now.append(f"item {number}")
        versions.append(now)
    assert len({id(version._items) for version in versions}) == 1
    assert [len(version) for version in versions] == list(range(1, 11))
    other = versions[4].append("another")
    assert list(other) == [*(f"item {n}" for n in range(5)), "another"]
    assert list(now) == [f"item {n}" for n in range(10)]
