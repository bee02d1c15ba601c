"""The rooms of the server: how many modules a package has, who imports whom, circles, parts that
may be missing, callbacks set from outside. What breaks a rule today is listed; a list may only
shrink, and what is mended is taken off it."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from .test_architecture import SERVER, TOP, imports, name, statements, tree

MODULES = 24
"""A package has at most, not counted what is in packages inside it."""
CROWDED: Mapping[str, int] = {}
"""By package: how many there are today."""

LEVELS = (
    {"dataclass"},
    {"edits"},
    {"core"},
    {"tasks"},
    {
        "config", "engine", "tools", "llm", "store", "bus", "sandbox", "mcp", "hooks", "skills",
        "plugins",
    },
    {"reviews", "team", "memory", "listeners"},
    {"api"},
    {"lsp", "cli", "acp", "http", "channels"},
    {
        "app", "projects", "providers", "doctor", "demo", "replay", "privacy", "redacted_log",
        "__main__",
    },
)  # fmt: skip
"""What a package may import is lower, or itself. Those of one level meet through `core/ports.py`;
those of the last put all together, and may import each other."""
FREE = {"__init__"}


def module(path: Path) -> str:
    """Its dotted name below `magy_server`."""
    parts = path.relative_to(TOP / "magy_server").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


@cache
def modules() -> Mapping[str, Path]:
    return {module(path): path for path in SERVER}


@cache
def ours(path: Path) -> frozenset[str]:
    """The modules of the server that one imports, wherever in it."""
    return frozenset(_ours(path))


def _ours(path: Path) -> Iterator[str]:
    for _, wanted in imports(tree(path)):
        if not wanted.startswith("magy_server."):
            continue
        inner = wanted.removeprefix("magy_server.")
        for one in (inner, inner.rpartition(".")[0]):
            if one in modules():
                yield one
                break


def package(one: str) -> str:
    return one.split(".")[0]


def same(found: Iterable[object], listed: Iterable[object], what: str) -> None:
    """Neither more nor fewer: what is mended leaves the list."""
    there = set(found)
    new, mended = there - set(listed), set(listed) - there
    assert not new, f"{what}: {sorted(map(str, new))} must not be"
    assert not mended, f"{what}: {sorted(map(str, mended))} is mended; take it off the list"


def test_packages_have_few_modules() -> None:
    counted = Counter(
        path.parent.relative_to(TOP / "magy_server").as_posix()
        for path in SERVER
        if path.stem not in ("__init__", "__main__")
    )
    found = {room: n for room, n in counted.items() if n > MODULES}
    grown = {room: n for room, n in found.items() if n > CROWDED.get(room, MODULES)}
    assert not grown, f"more modules than {MODULES}, or than there were: {grown}; split by idea"
    assert found == CROWDED, f"there are fewer now; write so: {found}"


def test_everything_has_a_home() -> None:
    known = set().union(*LEVELS, FREE)
    same({package(one) for one in modules()} - known, (), "without a level")


def test_imports_go_down() -> None:
    level = {one: n for n, rooms in enumerate(LEVELS) for one in rooms}

    top = len(LEVELS) - 1

    def up() -> Iterator[str]:
        for one, path in modules().items():
            at = level.get(package(one), top)
            for wanted in ours(path):
                other = package(wanted) != package(one)
                if other and at < top and level.get(package(wanted), -1) >= at:
                    yield f"{one} imports {wanted}"

    same(up(), (), "imports that do not go down")


def test_no_imports_go_round() -> None:
    same(circular(), (), "in a circle of imports")


def circular() -> set[str]:
    """The modules that can be reached from themselves."""
    graph = {one: set(ours(path)) - {one} for one, path in modules().items()}
    found = set()
    for one in graph:
        seen: set[str] = set()
        left = list(graph[one])
        while left:
            at = left.pop()
            if at not in seen:
                seen.add(at)
                left += graph[at]
        if one in seen:
            found.add(one)
    return found


def test_the_world_is_complete() -> None:
    (world,) = (
        node
        for node in tree(TOP / "magy_server/engine/world.py").body
        if isinstance(node, ast.ClassDef) and node.name == "World"
    )
    same(
        (
            node.target.id
            for node in world.body
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
            if isinstance(node.annotation, ast.BinOp) and "None" in ast.unparse(node.annotation)
        ),
        (),
        "parts of the world that may be missing",
    )


def callbacks() -> set[str]:
    """The attributes of which it is known that they are called."""
    nodes = [node for path in SERVER for node in statements(tree(path))]
    names = {"Callable"} | {
        target.id
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript | ast.BinOp)
        if ast.unparse(node.value).startswith("Callable[")
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    called = re.compile(rf"\b(?:{'|'.join(names)})\b")
    found = set()
    for node in nodes:
        if isinstance(node, ast.AnnAssign) and called.search(ast.unparse(node.annotation)):
            match node.target:
                case ast.Attribute(value=ast.Name(id="self"), attr=attribute):
                    found.add(attribute)
                case ast.Name(id=attribute):
                    found.add(attribute)
    return found


def test_no_callback_is_set_from_outside() -> None:
    known = callbacks()

    def wrong() -> Iterator[tuple[str, str]]:
        for path in SERVER:
            for node in statements(tree(path)):
                if not isinstance(node, ast.Assign):
                    continue
                for target in node.targets:
                    match target:
                        case ast.Attribute(value=ast.Name(id="self")):
                            pass
                        case ast.Attribute(attr=attribute) if attribute in known:
                            if isinstance(node.value, ast.Lambda | ast.Attribute | ast.Name):
                                yield name(path), attribute

    same(wrong(), (), "callbacks set from outside")
