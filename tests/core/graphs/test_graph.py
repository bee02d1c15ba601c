"""Which tasks may begin, and which graphs there can be: against a naive model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.core.agents.child import ChildInfo
from magy_server.core.agents.mail import Mailed, Status, TextPayload, ulid
from magy_server.core.errors import InvalidRequest
from magy_server.core.graphs.graph import (
    MOST,
    SETTLED,
    GraphTask,
    check_writes,
    in_order,
    last,
    states,
)
from magy_server.core.graphs.progress import Attempt, GraphProgress
from magy_server.core.graphs.shapes import Shape, shaped


def task(id: str, *needs: str, **more: object) -> GraphTask:
    return GraphTask.model_validate({"id": id, "prompt": f"do {id}", "needs": needs, **more})


@st.composite
def graphs(draw: st.DrawFn, most: int = 8) -> list[GraphTask]:
    """Without a cycle, in any order."""
    count = draw(st.integers(1, most))
    tasks = [
        task(
            f"t{n}",
            *draw(st.sets(st.sampled_from([f"t{i}" for i in range(n)]))) if n else (),
            retries=draw(st.integers(0, 2)),
        )
        for n in range(count)
    ]
    return draw(st.permutations(tasks))


@given(graphs())
def test_a_task_comes_after_all_that_it_needs(tasks: list[GraphTask]) -> None:
    ordered = [one.id for one in in_order(tasks)]
    assert sorted(ordered) == sorted(one.id for one in tasks)
    for one in tasks:
        assert all(ordered.index(need) < ordered.index(one.id) for need in one.needs)


@given(graphs(6), st.data())
def test_whatever_comes_of_the_tasks_all_are_settled_in_the_end(
    tasks: list[GraphTask], data: st.DataObject
) -> None:
    """Each is begun once it can be, never before, never more often than it may be, and none is
    left over."""
    ordered = in_order(tasks)
    attempts: dict[str, list[Status]] = {}
    while True:
        how = states(ordered, attempts)
        assert how == naive(ordered, attempts)
        ready = [id for id, state in how.items() if state == "ready"]
        running = [id for id, state in how.items() if state in ("running", "asking")]
        if not ready and not running:
            break
        if ready and (not running or data.draw(st.booleans(), "begins")):
            live = data.draw(st.sampled_from(("queued", "running", "waiting")))
            attempts.setdefault(data.draw(st.sampled_from(ready)), []).append(live)
        else:
            ended = data.draw(st.sampled_from(("completed", "failed", "cancelled", "closed")))
            attempts[data.draw(st.sampled_from(running))][-1] = ended
    assert all(state in SETTLED for state in how.values())
    for one in tasks:
        assert len(attempts.get(one.id, ())) <= one.retries + 1


def naive(tasks: list[GraphTask], attempts: dict[str, list[Status]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in tasks:
        tries, needs = attempts.get(one.id, []), [found[need] for need in one.needs]
        if set(tries) & {"queued", "running"}:
            found[one.id] = "running"
        elif "waiting" in tries:
            found[one.id] = "asking"
        elif "completed" in tries:
            found[one.id] = "completed"
        elif set(tries) & {"cancelled", "closed"}:
            found[one.id] = "cancelled"
        elif tries:
            found[one.id] = "ready" if len(tries) < one.retries + 1 else "failed"
        elif set(needs) & {"waiting", "ready", "running", "asking"}:
            found[one.id] = "waiting"
        else:
            found[one.id] = "ready" if not needs or "completed" in needs else "skipped"
    return found


@given(graphs(), st.data())
def test_what_goes_in_a_circle_is_refused_with_its_way(
    tasks: list[GraphTask], data: st.DataObject
) -> None:
    first = data.draw(st.sampled_from(tasks))
    below = {first.id}
    for one in in_order(tasks):
        if below & set(one.needs):
            below.add(one.id)
    end = data.draw(st.sampled_from(sorted(below)))
    turned = [
        one.model_copy(update={"needs": (*one.needs, end)}) if one.id == first.id else one
        for one in tasks
    ]
    with pytest.raises(InvalidRequest, match=f"{end} needs |needs {end}"):
        in_order(turned)


@pytest.mark.parametrize(
    ("tasks", "said"),
    [
        ([], "1 to 10,000 tasks, not 0"),
        ([task("a"), task("a")], "Two tasks have the id 'a'"),
        ([task("a", "a")], "Tasks need each other: a needs a"),
        ([task("a", "c"), task("b", "a"), task("c", "b"), task("d", "c")],
         "Tasks need each other: a needs c needs b needs a. Take one need away"),
        ([task("a", "x"), task("b")], "Task 'a' needs x, which is not a task of this graph"),
    ],
)  # fmt: skip
def test_what_is_no_graph_is_refused(tasks: list[GraphTask], said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        in_order(tasks)


def test_ten_thousand_tasks_are_a_graph_and_one_more_is_not() -> None:
    chain = [task("t0"), *(task(f"t{n}", f"t{n - 1}") for n in range(1, MOST))]
    ordered = in_order(chain[::-1])
    assert [one.id for one in ordered[:2]] == ["t0", "t1"]
    assert states(ordered, {"t0": ["completed"]})["t1"] == "ready"
    with pytest.raises(InvalidRequest, match="not 10,001"):
        in_order([*chain, task("more")])
    with pytest.raises(InvalidRequest, match="needs … needs"):
        in_order([chain[0].model_copy(update={"needs": (f"t{MOST - 1}",)}), *chain[1:]])


# --- who may change what --------------------------------------------------------------------------


@given(graphs(6), st.data())
def test_two_that_may_change_a_place_are_never_at_work_at_the_same_time(
    tasks: list[GraphTask], data: st.DataObject
) -> None:
    places = st.sampled_from(("a", "a/b", "a/b/c.py", "a/d", "ab", "./a/b/", "e"))
    tasks = in_order([
        one.model_copy(update={"writes": tuple(data.draw(st.lists(places, max_size=2)))})
        for one in tasks
    ])  # fmt: skip
    clash = any(
        _overlap(one, other) and not _before(one, other, tasks) and not _before(other, one, tasks)
        for one in tasks for other in tasks if one.id != other.id
    )  # fmt: skip
    if clash:
        with pytest.raises(InvalidRequest, match="at the same time"):
            check_writes(tasks)
    else:
        check_writes(tasks)


def _overlap(one: GraphTask, other: GraphTask) -> bool:
    clean = [[f"{path.strip('./')}/" for path in task.writes] for task in (one, other)]
    return any(a.startswith(b) or b.startswith(a) for a in clean[0] for b in clean[1])


def _before(one: GraphTask, other: GraphTask, tasks: list[GraphTask]) -> bool:
    known = {task.id: task for task in tasks}
    return one.id in other.needs or any(_before(one, known[id], tasks) for id in other.needs)


@pytest.mark.parametrize("path", ["/etc", "../up", "a/../../b", "", ".", "a/*.py"])
def test_a_place_is_below_the_root(path: str) -> None:
    with pytest.raises(InvalidRequest, match="below the workspace root"):
        check_writes([task("a", writes=[path])])


# --- shapes ---------------------------------------------------------------------------------------


def needs(tasks: list[GraphTask]) -> dict[str, tuple[str, ...]]:
    return {one.id: one.needs for one in tasks}


@pytest.mark.req("A178", "A179")
def test_shapes_say_what_needs_what() -> None:
    three = [task("a"), task("b"), task("c")]
    assert needs(shaped("pipeline", three)) == {"a": (), "b": ("a",), "c": ("b",)}
    assert needs(shaped("fan_out", three)) == {"a": (), "b": (), "c": ("a", "b")}
    assert shaped("graph", three) == three


@pytest.mark.req("C059")
def test_in_a_discussion_each_answers_all_before_one_brings_together() -> None:
    tasks = shaped("discussion", [task("a"), task("b"), task("end")], rounds=3)
    assert needs(tasks) == {
        "a": (), "b": (),
        "a-2": ("a", "b"), "b-2": ("b", "a"),
        "a-3": ("a-2", "b-2"), "b-3": ("b-2", "a-2"),
        "end": ("a-3", "b-3"),
    }  # fmt: skip
    again = next(one for one in tasks if one.id == "a-2")
    assert again.prompt.startswith("do a\n\nYou have said what you think")
    assert [one.id for one in last(tasks)] == ["end"]
    assert needs(shaped("discussion", [task("a"), task("b"), task("end")], rounds=1)) == {
        "a": (), "b": (), "end": ("a", "b"),
    }  # fmt: skip


@pytest.mark.req("A180")
def test_a_swarm_splits_the_work_does_it_fits_it_together_and_brings_it_together() -> None:
    team = [task("lead"), task("dev", agent="developer"), task("qa", agent="qa"), task("end")]
    tasks = shaped("swarm", team)
    assert needs(tasks) == {
        "lead": (), "dev": ("lead",), "qa": ("lead",),
        "dev-2": ("dev", "qa"), "qa-2": ("qa", "dev"),
        "end": ("lead", "dev-2", "qa-2"),
    }  # fmt: skip
    told = {one.id: one.prompt for one in tasks}
    assert "- dev (developer): do dev\n- qa (qa): do qa" in told["lead"]
    assert "You are dev, one of several at work: qa. The message before" in told["dev"]
    assert told["dev-2"].startswith("do dev\n\nYou are dev, and have done your part.")
    assert {one.agent for one in tasks if one.id.startswith("dev")} == {"developer"}
    assert needs(shaped("swarm", team, rounds=1))["end"] == ("lead", "dev", "qa")


def test_what_people_write_in_braces_stays_as_it_is() -> None:
    odd = [task(id).model_copy(update={"prompt": f"{id} {{prompt}} {{0}}"}) for id in "abcd"]
    shapes: tuple[Shape, ...] = ("discussion", "swarm", "auto")
    for shape in shapes:
        for one in shaped(shape, odd):
            assert one.prompt.startswith(f"{one.id[0]} {{prompt}} {{0}}")


@pytest.mark.parametrize(
    ("shape", "tasks", "said"),
    [
        ("fan_out", [task("a")], "at least one task and one"),
        ("discussion", [task("a"), task("b")], "at least two tasks that speak"),
        ("swarm", [task("a"), task("b"), task("c")], "one task that splits the work, two roles"),
        ("swarm", [task(f"t{n}") for n in range(400)], "at most 100,000 needs"),
        ("pipeline", [task("a"), task("b", "a")], "leave `needs` of 'b' out"),
        ("discussion", [task(f"t{n}") for n in range(400)], "at most 100,000 needs, not 159,600"),
    ],
)
def test_what_does_not_fit_a_shape_is_refused(
    shape: Shape, tasks: list[GraphTask], said: str
) -> None:
    with pytest.raises(InvalidRequest, match=said):
        shaped(shape, tasks)


# --- what it comes to -----------------------------------------------------------------------------


def test_what_failed_gives_way_to_what_it_would_have_built_on() -> None:
    """However many ways lead there."""
    layers = [[task(f"t{n}-{m}", *(f"t{n - 1}-{k}" for k in range(4) if n)) for m in range(4)]
              for n in range(40)]  # fmt: skip
    tasks = in_order([one for layer in layers for one in layer])
    came = {one.id: [attempt(one.id)] for one in layers[0]}
    came |= {one.id: [attempt(one.id, "cancelled")] for one in layers[1]}
    how = GraphProgress("4.0", tasks, came)
    assert how.states["t39-0"] == "skipped"
    found = how.result
    assert [found.text.count(f"{one.id} is done.") for one in layers[0]] == [1, 1, 1, 1]


def attempt(id: str, status: Status = "completed") -> Attempt:
    child = ChildInfo(f"s/4.0.{id}.1", "s", id, "general", "", "completed", 1)
    said = TextPayload(text=f"{id} is done.")
    mail = Mailed(id=ulid(0, id), sender=child.session, agent="general", to="s", payload=said)
    return Attempt(child, 1, status, mail)
