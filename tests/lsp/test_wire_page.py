"""What docs/protocol.md tells is what Magy has: kinds of updates, reasons, announcements, edits."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from magy_server.api.wire import codes
from magy_server.api.wire.announcing import Announcement, Capabilities, ClientInfo, EditorOffers
from magy_server.api.wire.edit_objects import OBJECTS, EditList, Insertion
from magy_server.api.wire.methods import SERVER_TO_CLIENT
from magy_server.api.wire.updates import STOPS, UPDATES, kind_of
from magy_server.config import layers
from magy_server.core import errors
from magy_server.core.events import Stop
from magy_server.edits.formats import parse
from magy_server.edits.formats.str_replace import FIELDS
from magy_server.jsonrpc import peer
from magy_server.lsp import transport
from magy_server.lsp.client_options import ClientOptions
from scripts.wire_samples import samples
from tests.test_architecture import tree

TOP = Path(__file__).parents[2]
PAGE = (TOP / "docs" / "protocol.md").read_text(encoding="utf-8")
SHAPES = {kind_of(model): model for model in UPDATES}
FENCE = re.compile(r"^```json (\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def block(kind: str) -> str:
    (body,) = [body for found, body in FENCE.findall(PAGE) if found == kind]
    return str(body)


def sources(word: str, *leaving: str) -> Iterator[ast.AST]:
    """What stands in the files in which this word does."""
    for path in sorted((TOP / "magy_server").rglob("*.py")):
        away = path.relative_to(TOP / "magy_server").parts[0] in leaving
        if not away and word in path.read_text("utf-8"):
            yield from ast.walk(tree(path))


# --- updates --------------------------------------------------------------------------------------


def test_there_is_an_example_of_every_kind() -> None:
    assert {one["sessionUpdate"] for one in samples()} == set(SHAPES)


@pytest.mark.parametrize("update", samples(), ids=lambda update: str(update["sessionUpdate"]))
def test_what_is_sent_has_the_fields_that_are_told(update: dict[str, Any]) -> None:
    SHAPES[update["sessionUpdate"]].model_validate(update, strict=True)


def test_every_field_is_in_an_example() -> None:
    """A field that is told and never sent would not be noticed."""
    shown: dict[str, set[str]] = {kind: set() for kind in SHAPES}
    for one in samples():
        shown[one["sessionUpdate"]] |= {*one, *one.get("_meta", {}).get("magy", {})}
    for kind, model in SHAPES.items():
        schema = model.model_json_schema(by_alias=True)
        stamp = next(part for name, part in schema["$defs"].items() if name.endswith("Stamp"))
        assert {*schema["properties"], *stamp["properties"]} - shown[kind] <= {"_meta", "seq", "at"}


def test_no_kind_is_missing() -> None:
    made = {
        value.value
        for node in sources("sessionUpdate", "acp", "cli", "demo")
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and key.value == "sessionUpdate"
        if isinstance(value, ast.Constant)
    }
    assert made - {"agent_message", "agent_thought"} == set(SHAPES) - {
        "agent_message", "agent_thought"}  # fmt: skip


def test_every_way_in_which_a_turn_ends_is_told() -> None:
    assert set(STOPS) == set(get_args(Stop))


# --- errors ---------------------------------------------------------------------------------------


ERRORS: dict[str, type[errors.MagyError]] = {
    name: one
    for name, one in {**vars(errors), **vars(peer)}.items()
    if isinstance(one, type) and issubclass(one, errors.MagyError)
}


def raised() -> Iterator[tuple[str, int]]:
    """(reason, code) of every error that is raised on purpose, but for those of the terminal."""
    for name, one in ERRORS.items():
        if name != "MethodNotFound":
            yield code_of(name, one.reason)
    for node in sources("reason", "cli"):
        match node:
            case ast.Call(func=ast.Name(id=name), keywords=keywords) if name in ERRORS:
                for word in keywords:
                    if word.arg == "reason" and isinstance(word.value, ast.Constant):
                        yield code_of(name, str(word.value.value))


def code_of(name: str, reason: str) -> tuple[str, int]:
    error = ERRORS[name].__new__(ERRORS[name])
    error.message, error.reason = "", reason
    return reason, transport.error_of(error, "")[0]


def test_every_reason_is_told_with_its_codes() -> None:
    told = {(reason, code) for reason, numbers in codes.CODES_OF.items() for code in numbers}
    assert told == {*raised()} and codes.CODES_OF.keys() == codes.REASONS.keys()


def test_no_class_of_errors_has_a_reason_of_its_own_that_is_not_told() -> None:
    own = {
        str(node.value.value)
        for node in sources("reason", "cli")
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        if [ast.unparse(target) for target in node.targets] == ["reason"]
    }
    assert own - {"method_not_found"} <= codes.REASONS.keys()


def test_every_code_is_told() -> None:
    numbers = {value for value in vars(codes).values() if type(value) is int}
    assert set(codes.CODES) == numbers


# --- what a client announces ----------------------------------------------------------------------


class Asked(dict[str, Any]):
    """Keeps which keys it was asked for."""

    def __init__(self, **given: Any) -> None:
        super().__init__(given)
        self.keys_asked: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.keys_asked.add(key)
        return super().get(key, default)


def told(model: type[BaseModel]) -> set[str]:
    return set(model.model_json_schema(by_alias=True)["properties"])


def test_a_client_is_asked_for_what_is_told() -> None:
    client, capabilities = Asked(name="x"), Asked()
    magy = Asked(client=client, capabilities=capabilities)
    ClientOptions({"magy": magy})
    assert magy.keys_asked == told(Announcement)
    assert client.keys_asked == told(ClientInfo)
    assert capabilities.keys_asked == told(Capabilities)


def test_an_editor_may_offer_what_it_can_be_asked() -> None:
    asked = {method.name for method in SERVER_TO_CLIENT if method.name.startswith("magy/editor/")}
    assert {f"magy/editor/{name}" for name in told(EditorOffers)} == asked


def test_defaults_are_those_that_hold() -> None:
    none, about = Capabilities(), ClientOptions({})
    assert (none.interactions, none.review) == (about.interactions, about.review)
    assert ClientInfo().name == about.client


def test_the_example_of_an_announcement() -> None:
    magy = json.loads(block("options"))["magy"]
    about = ClientOptions({"magy": magy})
    assert about.interactions and about.review and about.editor == ["save", "diagnostics"]
    layers.validate(layers.Layer("the example", magy["settings"]))


# --- edits as objects -----------------------------------------------------------------------------


@pytest.mark.parametrize("line", block("edits").splitlines())
def test_examples_of_edits(line: str) -> None:
    (edit,) = parse("str_replace", line)
    assert edit.path == json.loads(line)["path"]
    assert any(_fits(model, json.loads(line)) for model in OBJECTS)


def _fits(model: type[BaseModel], given: Any) -> bool:
    try:
        model.model_validate(given)
    except ValueError:
        return False
    return True


def test_fields_of_edits_are_known() -> None:
    fields = {name for model in OBJECTS for name in model.model_fields}
    assert fields - {"after", "text"} <= set(FIELDS) and set(EditList.model_fields) <= fields
    for given in ({"line": 1, "text": "x"}, {"after": "y", "text": "x"}):
        assert _fits(Insertion, given) and parse("str_replace", json.dumps({"insert": given}), "a")
