"""This module says what a setting must be, in the words of TOML, where its value was refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_KINDS = {
    "string_type": "text in quotes",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list: [...]",
    "tuple_type": "a list: [...]",
    "set_type": "a list: [...]",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
}
_LIMITS = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}


def expectation(item: Mapping[str, Any]) -> str:
    """Returns what goes on after the name of a key, such as " must be text in quotes (it is 3)".
    `item`: one of those that `told` returns."""
    kind = item["type"]
    if kind == "missing":
        return " is missing"
    if kind in _KINDS:
        said = f" must be {_KINDS[kind]}"
    elif kind in _LIMITS:
        name, words = _LIMITS[kind]
        said = f" must be {words} {item['ctx'][name]:g}"
    elif kind == "literal_error":
        said = f" must be {item['ctx']['expected']}{item.get('else', '')}"
    else:
        said = f": {item['msg'].removeprefix('Value error, ')}"
    return f"{said} (it is {item['input']!r})"


def told(items: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns those of `ValidationError.errors()` that people are told. Of a value that may have
    one of several shapes pydantic says what is wrong with it in each shape, with the shape as a
    step of the place: of these only the one that got furthest remains, without that step."""
    found: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for item in items:
        place = item["loc"]
        shape = next((n for n, step in enumerate(place) if _is_shape(step)), None)
        if shape is None:
            found[place] = item
            continue
        kept = found.get(place[:shape])
        if kept is None or len(place) - 1 > len(kept["loc"]):
            ways = ", or a table with one of these for each pattern"
            plain = tuple(step for step in place if not _is_shape(step))
            more = {"else": ways} if shape == len(place) - 1 else {}
            found[place[:shape]] = {**item, "loc": plain, **more}
    return list(found.values())


def _is_shape(step: Any) -> bool:
    return isinstance(step, str) and step.startswith(("literal[", "dict[", "list["))
