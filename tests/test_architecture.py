"""The shape of the code, read from its syntax trees: how big things are, what may be caught, and
what the pure parts may touch. A rule that pinches is changed here, in the open."""

from __future__ import annotations

import ast
import gc
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.outcomes import requirement_lines

TOP = Path(__file__).parents[1]
FILE_LINES, FUNCTION_LINES = 500, 50
FILE_BUDGETS = {"magy_server/engine/turn.py": 150}

PURE = {"core", "edits"}
PURE_STANDARD_LIBRARY = {
    "__future__", "abc", "base64", "bisect", "codecs", "collections", "copy", "dataclasses",
    "datetime", "difflib", "enum", "fnmatch", "functools", "hashlib", "heapq", "inspect",
    "itertools", "json", "math", "operator", "posixpath", "re", "shlex", "string", "textwrap",
    "types", "typing", "unicodedata",
}  # fmt: skip
"""What is pure, rather than what is not: a module missing here is a question worth asking."""
PURE_PACKAGES = {
    "pydantic", "orjson", "rapidfuzz", "yaml", "tree_sitter", "tree_sitter_bash",
    "re2",
}  # fmt: skip
IO_CALLS = {"open", "print", "input"}
CLOCKS = {"now", "utcnow", "today"}

HEAVY = {
    "anthropic", "openai", "git", "aiosqlite", "psutil", "yaml", "tree_sitter", "tree_sitter_bash",
}  # fmt: skip

SUPERVISORS = {
    ("magy_server/bus/local.py", "_supervised"),
    ("magy_server/engine/runner.py", "_supervise"),
    ("magy_server/engine/calls.py", "supervised"),
    ("magy_server/jsonrpc/outbox.py", "settle"),
    ("magy_server/lsp/transport.py", "_read_here"),
    ("magy_server/mcp/connection.py", "_supervised"),
    ("magy_server/plugins/loading.py", "run"),
    ("magy_server/plugins/installed.py", "installed"),
    ("magy_server/plugins/supervising.py", "_said"),
    ("magy_server/plugins/supervising.py", "_stoppable"),
}
"""(file, function): where one session, tool call or request is kept from taking others with it."""


@cache
def tree(path: Path) -> ast.Module:
    """All are kept: to look for garbage in them takes three times as long as to read them."""
    gc.disable()
    try:
        return ast.parse(path.read_text(encoding="utf-8"), str(path))
    finally:
        gc.freeze()
        gc.enable()


def sources(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (TOP / folder).rglob("*.py"))


def name(path: Path) -> str:
    return path.relative_to(TOP).as_posix()


SERVER = sources("magy_server")
CODE = sources("magy_server", "scripts", "bench")
OURS = CODE + sources("tests")
PURE_FILES = sources(*(f"magy_server/{layer}" for layer in sorted(PURE)))


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """The node and every statement inside it, those of functions and classes included. It looks
    into no expression, and expressions are most of a tree."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        for part in ("body", "handlers", "orelse", "finalbody", "cases"):
            inner = getattr(node, part, None)
            waiting += inner if isinstance(inner, list) else ()


def called(node: ast.Call) -> str:
    """The last part of the name of what is called."""
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def imports(node: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, module) of every import, those inside functions and TYPE_CHECKING included.

    `from a import b` gives `a.b`: whether `b` is a module does not matter to any rule here.
    """
    for child in statements(node):
        if isinstance(child, ast.Import):
            yield from ((child.lineno, alias.name) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            base = child.module or ""
            yield from ((child.lineno, f"{base}.{alias.name}") for alias in child.names)


def at_import(module: ast.Module) -> Iterator[ast.AST]:
    """The statements that run when the module is imported; not those that only a type checker
    sees."""
    waiting: list[ast.AST] = list(module.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting.extend(node.orelse)
            continue
        yield node
        waiting.extend(ast.iter_child_nodes(node))


def say(problems: Iterable[str]) -> None:
    found = list(problems)
    assert not found, "\n" + "\n".join(found)


def test_imports_are_absolute() -> None:
    say(
        f"{name(path)}:{node.lineno}: write the whole module name"
        for path in SERVER
        for node in statements(tree(path))
        if isinstance(node, ast.ImportFrom) and node.level
    )


def test_pure_layers_touch_nothing() -> None:
    allowed = PURE_STANDARD_LIBRARY | PURE_PACKAGES | {"magy_server"}

    def wrong() -> Iterator[str]:
        for path in PURE_FILES:
            for line, module in imports(tree(path)):
                if module.split(".")[0] not in allowed:
                    yield f"{name(path)}:{line}: {module} is not on the list of pure modules"
            for node in ast.walk(tree(path)):
                if isinstance(node, ast.AsyncFunctionDef | ast.Await) and not in_port(path, node):
                    yield f"{name(path)}:{node.lineno}: no coroutine in a pure layer"
                if not isinstance(node, ast.Call):
                    continue
                if isinstance(node.func, ast.Name) and node.func.id in IO_CALLS:
                    yield f"{name(path)}:{node.lineno}: {node.func.id}() is I/O"
                if called(node) in CLOCKS:
                    yield f"{name(path)}:{node.lineno}: {ast.unparse(node.func)} reads the clock"

    assert PURE_FILES
    say(wrong())


def in_port(path: Path, node: ast.AST) -> bool:
    """Declarations do not run: the Protocols, and the `facts` function that looks at nothing."""
    names = ("no_editor", "piped_programs", "ports", "sandbox", "tool")
    ports = {f"magy_server/core/{one}.py" for one in names}
    return name(path) in ports and not any(isinstance(child, ast.Await) for child in ast.walk(node))


def test_heavy_packages_are_imported_where_they_are_used() -> None:
    say(
        f"{name(path)}:{line}: import {module} inside the function that needs it"
        for path in SERVER
        for node in at_import(tree(path))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for line, module in imports(node)
        if module.split(".")[0] in HEAVY
    )


def test_files_stay_small() -> None:
    """Not those of tests: a list of cases is not harder to read for being long."""

    def wrong() -> Iterator[str]:
        for path in CODE:
            budget = FILE_BUDGETS.get(name(path), FILE_LINES)
            lines = len(path.read_text(encoding="utf-8").splitlines())
            if lines > budget:
                yield f"{name(path)}: {lines} lines, budget {budget}; split it by idea"

    assert all((TOP / path).is_file() for path in FILE_BUDGETS)
    say(wrong())


def test_functions_stay_small() -> None:
    def wrong() -> Iterator[str]:
        for path in OURS:
            for node in statements(tree(path)):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    lines = (node.end_lineno or node.lineno) - node.lineno + 1
                    if lines > FUNCTION_LINES:
                        yield f"{name(path)}:{node.lineno}: {node.name} has {lines} lines"

    say(wrong())


def test_a_test_shows_three_requirements_at_most() -> None:
    """And such as there are: with others no test at all would be run."""
    known = requirement_lines(TOP)

    def wrong() -> Iterator[str]:
        for path in sources("tests"):
            for node in statements(tree(path)):
                marks = [ids for one in getattr(node, "decorator_list", ()) if (ids := shown(one))]
                ids = [id for mark in marks for id in mark]
                if len(ids) > 3 or not known.keys() >= set(ids):
                    yield f"{name(path)}: {node.name} shows {ids}"

    say(wrong())


def shown(decorator: ast.expr) -> list[str]:
    """The ids in a mark `req`; none in what is another."""
    if not isinstance(decorator, ast.Call) or ast.unparse(decorator.func) != "pytest.mark.req":
        return []
    return [one.value for one in decorator.args if isinstance(one, ast.Constant)]


BROAD = ("Exception", "BaseException")


def catches_all(node: ast.AST) -> bool:
    if isinstance(node, ast.ExceptHandler):
        kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        return any(kind is None or ast.unparse(kind) in BROAD for kind in kinds)
    return (
        isinstance(node, ast.Call)
        and called(node).endswith("suppress")
        and any(ast.unparse(argument) in BROAD for argument in node.args)
    )


def functions(path: Path) -> Iterator[tuple[str, ast.AST]]:
    """(name of the innermost function, node) of every node of the file."""
    waiting: list[tuple[str, ast.AST]] = [("", tree(path))]
    while waiting:
        inside, node = waiting.pop()
        yield inside, node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inside = node.name
        waiting.extend((inside, child) for child in ast.iter_child_nodes(node))


def test_only_supervisors_catch_everything() -> None:
    """Cleaning up and raising on is not catching."""
    met = set()

    def wrong() -> Iterator[str]:
        for path in SERVER:
            for function, node in functions(path):
                if not catches_all(node):
                    continue
                if isinstance(node, ast.ExceptHandler) and isinstance(node.body[-1], ast.Raise):
                    continue
                if (name(path), function) in SUPERVISORS:
                    met.add((name(path), function))
                    continue
                yield f"{name(path)}:{node.lineno}: catch what is expected here, and no more"

    say(wrong())
    assert met == SUPERVISORS, f"no longer needed in SUPERVISORS: {SUPERVISORS - met}"


def test_no_task_is_forgotten() -> None:
    """A task that nobody holds may vanish while it runs, and its failure with it."""
    makers = ("asyncio.create_task", "asyncio.ensure_future", "loop.create_task")
    say(
        f"{name(path)}:{node.lineno}: keep and await the task, or use a TaskGroup"
        for path in OURS
        if re.search(r"(?:create_task|ensure_future)\b", path.read_text(encoding="utf-8"))
        for node in statements(tree(path))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func).endswith(makers)
    )


def test_nothing_is_mocked() -> None:
    say(
        f"{name(path)}:{line}: test the real thing, or a shipped fake"
        for path in OURS
        if "mock" in path.read_text(encoding="utf-8")
        for line, module in imports(tree(path))
        if module.startswith(("unittest.mock", "mock.")) or module == "mock"
    )


@pytest.mark.parametrize(
    ("code", "caught"),
    [
        ("try: f()\nexcept Exception: pass", True),
        ("try: f()\nexcept: pass", True),
        ("try: f()\nexcept (OSError, BaseException): pass", True),
        ("with contextlib.suppress(Exception): f()", True),
        ("try: f()\nexcept OSError: pass", False),
        ("with contextlib.suppress(OSError): f()", False),
    ],
)
def test_the_rules_see_what_they_forbid(code: str, caught: bool) -> None:
    assert any(catches_all(node) for node in ast.walk(ast.parse(code))) is caught


def test_statements_are_found_wherever_they_stand() -> None:
    code = """
try: 1
except E: 2
else: 3
finally: 4
match a:
    case 5:
        with b:
            6
async def f():
    for c in d: 7
    else:
        if e: 8
        elif f: 9
        else:
            while g:
                class H: 10
"""
    seen = [node for node in statements(ast.parse(code)) if isinstance(node, ast.Expr)]
    assert sorted(map(ast.unparse, seen), key=int) == [str(n) for n in range(1, 11) if n != 5]


def test_only_what_runs_at_import_is_at_import() -> None:
    code = (
        "import a\nif TYPE_CHECKING:\n    import b\ndef f():\n    import c\nclass D:\n    import d"
    )
    seen = {m for node in at_import(ast.parse(code)) for _, m in imports(node)}
    assert seen == {"a", "d"}


@pytest.mark.req("F014", "F015")
def test_the_top_level_and_the_packages_are_as_laid_out() -> None:
    for there in ("magy_server", "clients", "agents", "skills", "tests", "docs", "README.md"):
        assert (TOP / there).exists(), there
    named = re.findall(r'^    "([a-z-]+)[><=]', (TOP / "pyproject.toml").read_text(), re.MULTILINE)
    assert set(named) >= {
        "pygls", "lsprotocol", "anthropic", "openai", "pydantic", "aiosqlite", "sqlite-vec",
        "gitpython", "pytest", "pytest-lsp",
    }  # fmt: skip
