"""The rooms of the server: how many modules a package has, who imports whom, circles, parts that
may be missing, callbacks set from outside, names of modules. No rule has exceptions."""

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

LEVELS = (
    {"dataclass", "regex"},
    {"edits"},
    {"core"},
    {"tasks", "own_files", "regular_files", "proxy", "certificates"},
    {
        "config", "engine", "tools", "llm", "store", "bus", "sandbox", "mcp", "hooks", "skills",
        "plugins",
    },
    {"reviews", "team", "memory", "listeners"},
    {"api"},
    {"jsonrpc"},
    {"lsp", "cli", "acp", "http", "mcp_server", "channels"},
    {
        "app", "projects", "providers", "doctor", "demo", "replay", "privacy", "garbage",
        "redacted_log", "__main__",
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


def none(found: Iterable[object], what: str) -> None:
    there = sorted(set(map(str, found)))
    assert not there, f"{what}: {there}"


def test_packages_have_few_modules() -> None:
    counted = Counter(
        path.parent.relative_to(TOP / "magy_server").as_posix()
        for path in SERVER
        if path.stem not in ("__init__", "__main__")
    )
    crowded = {room: n for room, n in counted.items() if n > MODULES}
    assert not crowded, f"more modules than {MODULES}: {crowded}; split by idea"


ENDING = re.compile(r"(?<=[a-z]{3})[ds]?(?:ations?|ings?|ions?|ers?|ed|es|s|e)(?=_|$)")


def root(file: Path) -> tuple[Path, str]:
    """What modules that differ only by the endings of their words have in common."""
    return file.parent, ENDING.sub("", file.stem)


def test_names_of_modules_tell_them_apart() -> None:
    """Not `deciding` and `decisions` in one package; and no name stands four times."""
    assert root(Path("deciding.py")) == root(Path("decisions.py")) != root(Path("decoding.py"))
    named = [file for file in SERVER if not file.stem.startswith("__")]
    roots = Counter(map(root, named))
    none((file for file in named if roots[root(file)] > 1), "modules with one name")
    often = Counter(file.name for file in named)
    none((one for one, times in often.items() if times > 3), "names of more than three modules")


def test_everything_has_a_home() -> None:
    known = set().union(*LEVELS, FREE)
    none({package(one) for one in modules()} - known, "without a level")


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

    none(up(), "imports that do not go down")


def test_no_imports_go_round() -> None:
    none(circular(), "in a circle of imports")


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
    none(
        (
            node.target.id
            for node in world.body
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
            if isinstance(node.annotation, ast.BinOp) and "None" in ast.unparse(node.annotation)
        ),
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

    none(wrong(), "callbacks set from outside")
