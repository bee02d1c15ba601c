"""What pages name exists: modules and what they define, methods of the wire, commands of editors
and of the shell, settings, names of code."""

from __future__ import annotations

import argparse
import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from magy_server.api.wire import names
from magy_server.api.wire.methods import CLIENT_TO_SERVER, SERVER_TO_CLIENT
from magy_server.api.wire.updates import UPDATES, kind_of
from magy_server.cli.parser import build
from magy_server.core.settings import Settings

from .test_architecture import tree

TOP = Path(__file__).parents[1]
SERVER = TOP / "magy_server"
PAGES = [TOP / "README.md", *sorted((TOP / "docs").rglob("*.md"))]
PAGES.remove(TOP / "docs" / "requirements.md")  # says what shall be, not what there is
FENCE = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
DEFINED_IN = re.compile(
    r"`([A-Za-z_][\w.]*)(?:\([^`]*\))?`[\s,]+\(?(?:in )?\[`[^`]+`\]\(([^)#\s]+\.py)\)"
)
LINKED = re.compile(r"\[`([^`]+)`\]\(([^)#\s]+)\)")


@cache
def words(page: Path) -> Sequence[str]:
    """What a page has in backticks, outside of examples."""
    return CODE.findall(FENCE.sub("", page.read_text(encoding="utf-8")))


def every(pattern: str, apart: Callable[[str], object] = lambda word: False) -> Any:
    """By page, the words that match as a whole, but for what is `apart`."""
    shape = re.compile(pattern)
    found = {
        str(page.relative_to(TOP)): sorted(
            {word for word in words(page) if shape.fullmatch(word) and not apart(word)}
        )
        for page in PAGES
    }
    cases = [(page, some) for page, some in found.items() if some]
    assert cases, pattern
    return pytest.mark.parametrize(("page", "said"), cases, ids=[page for page, _ in cases])


# --- modules and what they define -----------------------------------------------------------------

ROOMS = "|".join(sorted(path.name for path in SERVER.iterdir() if path.is_dir()))


@every(rf"(?:(?:magy_server/)?(?:{ROOMS})|tests|bench|scripts|agents|skills|clients)/[\w./-]*")
def test_a_path_is_there(page: str, said: Sequence[str]) -> None:
    places = (SERVER, TOP)
    assert not [word for word in said if not any((top / word).exists() for top in places)]


@every(r"magy_server(?:\.\w+)+")
def test_a_dotted_name_is_there(page: str, said: Sequence[str]) -> None:
    assert not [word for word in said if not importable(word.split("."))]


def importable(parts: Sequence[str]) -> bool:
    for size in range(len(parts), 0, -1):
        path = TOP.joinpath(*parts[:size])
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if file.exists():
            return not parts[size:] or ".".join(parts[size:]) in definitions(file)
    return False


@cache
def definitions(file: Path) -> frozenset[str]:
    """The names that a module defines, and those of its classes' members, as `Class.member`."""
    return frozenset(_defined(tree(file).body, ""))


def _defined(body: list[ast.stmt], above: str) -> Iterator[str]:
    for node in body:
        match node:
            case ast.ClassDef(name=name, body=inner):
                yield f"{above}{name}"
                yield from _defined(inner, f"{above}{name}.")
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield f"{above}{name}"
                if name == "__init__":
                    yield from _attributes(node, above)
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield f"{above}{name}"
            case ast.Assign(targets=targets):
                yield from (f"{above}{one.id}" for one in targets if isinstance(one, ast.Name))


def _attributes(init: ast.AST, above: str) -> Iterator[str]:
    for node in ast.walk(init):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                yield f"{above}{name}"


def said_to_define() -> Iterator[tuple[str, str, str]]:
    for page in PAGES:
        for name, target in DEFINED_IN.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
            yield str(page.relative_to(TOP)), name, target


@pytest.mark.parametrize(("page", "name", "target"), list(said_to_define()))
def test_a_module_defines_what_the_page_says(page: str, name: str, target: str) -> None:
    file = ((TOP / page).parent / target).resolve()
    assert name in definitions(file), name


def linked() -> Iterator[tuple[str, str, str]]:
    for page in PAGES:
        for name, target in LINKED.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
            if target.endswith(".py"):
                yield str(page.relative_to(TOP)), name, target


@pytest.mark.parametrize(("page", "name", "target"), list(linked()))
def test_a_link_leads_to_what_it_is_called(page: str, name: str, target: str) -> None:
    """By the module's path, or by something that it defines."""
    file = ((TOP / page).parent / target).resolve()
    called = f"/{name.rstrip('/')}"
    assert (
        str(file).endswith(called)
        or str(file.parent).endswith(called)
        or name.partition("(")[0] in definitions(file)
    ), name


@cache
def vocabulary() -> frozenset[str]:
    """Every name that the code has, as words."""
    sources = [path for top in (SERVER, TOP / "tests", TOP / "bench") for path in top.rglob("*.py")]
    sources += (TOP / "clients" / "nvim").rglob("*.lua")
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    return frozenset(re.findall(r"\w+", text))


@every(r"(?:[A-Z][a-z0-9]+)+(?:\.\w+)*(?:\(.*\))?|[a-z]+(?:_[a-z0-9]+)+(?:\(.*\))?")
def test_a_name_of_code_is_in_the_code(page: str, said: Sequence[str]) -> None:
    parts = {part for word in said for part in re.findall(r"\w+", word.partition("(")[0])}
    assert not sorted(parts - vocabulary())


# --- the wire, and commands of editors ------------------------------------------------------------

METHODS = {method.name for method in (*CLIENT_TO_SERVER, *SERVER_TO_CLIENT)}


@every(r"magy/[\w/*]+")
def test_a_method_is_there(page: str, said: Sequence[str]) -> None:
    assert not [word for word in said if not is_method(word)]


def is_method(word: str) -> bool:
    prefix = re.fullmatch(r"(magy/.*)(?:\*|NAME)", word)
    if prefix is None:
        return word in METHODS
    return any(name.startswith(prefix[1]) for name in METHODS)


@every(r"_magy_\w+|\w*_(?:update|chunk)|agent_\w+")
def test_a_kind_of_update_is_there(page: str, said: Sequence[str]) -> None:
    kinds = [kind_of(model) for model in UPDATES]
    assert not [word for word in said if not any(kind.endswith(word) for kind in kinds)]


FILES = ("magy.el", "magy.org", "magy.toml", "magy.db")


@cache
def vscode() -> frozenset[str]:
    """The commands and settings of the VS Code extension."""
    manifest = json.loads((TOP / "clients" / "vscode" / "package.json").read_bytes())["contributes"]
    commands = [command["command"] for command in manifest["commands"]]
    return frozenset([*commands, *manifest["configuration"]["properties"]])


@every(r"magy(?:\.[a-zA-Z]+)+")
def test_a_command_of_editors_is_there(page: str, said: Sequence[str]) -> None:
    assert not [*{*said} - {*names.COMMANDS, *FILES, *vscode()}]


@cache
def lisp() -> frozenset[str]:
    sources = (TOP / "clients" / "emacs").glob("*.el")
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    return frozenset(re.findall(r"magy[\w-]*", text))


@every(r"magy-[a-z-]+(?:\.el)?")
def test_a_name_of_the_emacs_client_is_there(page: str, said: Sequence[str]) -> None:
    files = TOP / "clients" / "emacs"
    assert not [word for word in said if word not in lisp() and not (files / word).exists()]


# --- settings, and the command line ---------------------------------------------------------------


@cache
def settings() -> Mapping[str, bool]:
    """Dotted keys; True: a table, below which any key may stand."""
    schema = Settings.model_json_schema()
    found: dict[str, bool] = {}

    def walk(prefix: str, part: Mapping[str, Any]) -> None:
        for key, body in part.get("properties", {}).items():
            inner = body.get("items", body)
            table = schema["$defs"].get(inner.get("$ref", "").rpartition("/")[2])
            found[f"{prefix}{key}"] = table is None and body.get("type") == "object"
            if table:
                walk(f"{prefix}{key}.", table)

    walk("", schema)
    return found


def is_other(word: str) -> bool:
    """A file beside the page's module, or a figure of the benchmarks."""
    figures = (TOP / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    return word.endswith(".py") or f"`{word}`" in figures


TABLES = "|".join(sorted({key.partition(".")[0] for key in settings() if "." in key} - {"magy"}))


@every(rf"\[{{0,2}}(?:{TABLES})(?:\.[\w*]+)+(?: = .+)?\]{{0,2}}", is_other)
def test_a_setting_is_there(page: str, said: Sequence[str]) -> None:
    assert not [word for word in said if not is_setting(word)]


def is_setting(word: str) -> bool:
    key = word.strip("[]").partition(" = ")[0].removesuffix(".*")
    parts = key.split(".")
    above = (".".join(parts[:size]) for size in range(1, len(parts)))
    return key in settings() or any(settings().get(one) for one in above)


def options(parser: argparse.ArgumentParser) -> set[str]:
    return {option for action in parser._actions for option in action.option_strings}


def commands(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


@every(r"magy (?:[a-z]+|--[a-z-]+)(?: .*)?")
def test_a_command_line_is_there(page: str, said: Sequence[str]) -> None:
    assert not [f"{word}: {wrong}" for word in said if (wrong := unknown(word))]


def unknown(line: str) -> str:
    """The first command or option that there is not; "" if there are all."""
    parser = build()
    for one in re.sub(r"['\"].*?['\"]", "WORD", line).split()[1:]:
        if one in commands(parser):
            parser = commands(parser)[one]
        elif one.startswith("--"):
            if (option := one.partition("=")[0].strip("[],.")) not in options(parser):
                return option
        elif parser.prog == "magy":
            return one
    return ""
