from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from magy_server.core.state.vector import Vector


@given(st.lists(st.tuples(st.integers(0, 5), st.integers())))
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
