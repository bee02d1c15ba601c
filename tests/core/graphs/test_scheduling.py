"""Which shape is chosen for tasks, and how hard they are taken to be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.core.graphs.graph import GraphTask, check_writes, in_order
from magy_server.core.graphs.scheduling import LEVELS, chosen, complexity
from magy_server.core.graphs.shapes import shaped


def task(id: str, prompt: str, agent: str = "general", **more: object) -> GraphTask:
    return GraphTask.model_validate({"id": id, "prompt": prompt, "agent": agent, **more})


def needs(tasks: list[GraphTask]) -> dict[str, tuple[str, ...]]:
    return {one.id: one.needs for one in tasks}


@pytest.mark.req("A057", "A058")
@pytest.mark.parametrize(
    ("words", "tools", "depth", "level"),
    [
        (5, 0, 0, "simple"), (60, 2, 0, "simple"), (60, 4, 0, "moderate"), (5, 4, 6, "moderate"),
        (200, 4, 0, "complex"), (600, 0, 0, "complex"), (600, 4, 6, "critical"),
        (5, 9, 20, "complex"), (600, 9, 20, "critical"),
    ],
)  # fmt: skip
def test_length_tools_and_depth_make_a_task_harder(
    words: int, tools: int, depth: int, level: str
) -> None:
    assert complexity("word " * words, tools=tools, depth=depth) == level
    assert complexity("字" * words, tools=tools, depth=depth) == level


@given(st.text(max_size=300), st.integers(0, 30), st.integers(0, 40))
def test_more_of_anything_makes_nothing_easier(text: str, tools: int, depth: int) -> None:
    level = LEVELS.index(complexity(text, tools=tools, depth=depth))
    for more in (
        complexity(text + " more words", tools=tools, depth=depth),
        complexity(text, tools=tools + 1, depth=depth),
        complexity(text, tools=tools, depth=depth + 1),
    ):
        assert LEVELS.index(more) >= level


SAME = "Which of the two ways is better for our store, and why? Name three reasons."
HARD = " ".join(f"word{n} `file{n}.py`" for n in range(100))


@pytest.mark.req("A177", "A181")
@pytest.mark.parametrize(
    ("tasks", "shape"),
    [
        ([task("one", "Mend it")], "graph"),
        ([task("a", "Mend a.py"), task("b", "Mend b.py")], "graph"),
        ([task("a", "Look"), task("b", "Write", needs=("a",)), task("c", "Combine")], "graph"),
        ([task("a", "Look at a"), task("b", "Look at b"), task("c", "Combine what they found")],
         "fan_out"),
        ([task("a", "Suche"), task("b", "Suche"), task("c", "Fasse zusammen, was ist")], "fan_out"),
        ([task("a", "Cherche"), task("b", "Cherche"), task("c", "Résume les deux")], "fan_out"),
        ([task("a", "Busca"), task("b", "Busca"), task("c", "Reúne lo que hay")], "fan_out"),
        ([task("a", "看北方"), task("b", "看南方"), task("c", "汇总两份报告")], "fan_out"),
        ([task("a", "x"), task("b", "y"), task("c", "Write of `a` and `b`")], "fan_out"),
        ([task("a", "Write it"), task("b", "Then test it"), task("c", "After that, ship it")],
         "pipeline"),
        ([task("a", "Schreib"), task("b", "Danach prüfe")], "pipeline"),
        ([task("a", "写"), task("b", "然后测试")], "pipeline"),
        ([task("a", "Write it"), task("b", "Test what `a` wrote")], "pipeline"),
        ([task("a", "One", writes=("x",)), task("b", "Two", writes=("x/y",))], "pipeline"),
        ([task("a", SAME), task("b", SAME), task("c", "Compare")], "fan_out"),
        ([task("a", SAME + HARD), task("b", SAME + HARD), task("c", "Compare")], "discussion"),
        ([task("p", "Plan", "architect"), task("d", "Build", "developer"), task("q", "Test", "qa"),
          task("end", "Bring it together")], "swarm"),
    ],
)  # fmt: skip
def test_the_shape_follows_from_what_the_tasks_say(tasks: list[GraphTask], shape: str) -> None:
    found = chosen(tasks)
    assert found.shape == shape, found
    built = shaped("auto", tasks)
    assert needs(built) == needs(shaped(found.shape, tasks, found.rounds or 2))
    check_writes(in_order(built))


@pytest.mark.req("A181")
def test_hard_work_of_a_swarm_is_fitted_together_and_easy_work_is_not() -> None:
    def swarm(words: str) -> list[GraphTask]:
        return [task("p", "Plan " + words, "architect"), task("d", "Build", "developer"),
                task("q", "Test", "qa"), task("end", "Bring it together")]  # fmt: skip

    assert [one.id for one in shaped("auto", swarm(""))] == ["p", "d", "q", "end"]
    hard = shaped("auto", swarm(HARD))
    assert [one.id for one in hard] == ["p", "d", "q", "d-2", "q-2", "end"]


@given(
    st.lists(
        st.tuples(
            st.text("ab `'then字combine", min_size=1, max_size=40).filter(str.strip),
            st.sampled_from(["general", "architect", "qa"]),
            st.lists(st.sampled_from(["x", "x/y", "z"]), max_size=2),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_whatever_is_chosen_is_a_graph_of_all_tasks_and_always_the_same(
    given: list[tuple[str, str, list[str]]],
) -> None:
    tasks = [task(f"t{n}", *one, writes=files) for n, (*one, files) in enumerate(given)]
    built = in_order(shaped("auto", tasks))
    assert {one.id for one in tasks} <= {one.id for one in built}
    assert built == in_order(shaped("auto", list(tasks)))
