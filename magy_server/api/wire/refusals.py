"""This module says in plain sentences what is wrong with parameters, each with its path as sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic.alias_generators import to_snake

NAME = r"^[A-Za-z0-9][A-Za-z0-9._:/-]*$"
KEY = r"^[A-Za-z0-9._-]+$"
TASK = r"^[A-Za-z0-9_-]+$"
PLUGIN = r"^[a-z0-9_]*$"
PATTERNS: Mapping[str, str] = {
    NAME: "letters, digits, `.`, `_`, `:`, `/` and `-`, the first a letter or digit",
    KEY: "letters, digits, `.`, `_` and `-`",
    TASK: "letters, digits, `_` and `-`",
    PLUGIN: "small letters, digits and `_`",
}
"""Every pattern of the wire, in words."""
SAID = 5
"""Wrong parameters that one refusal names."""

Context = Mapping[str, Any]


def sentences(error: ValidationError, params: Any) -> str:
    """Returns what is wrong, as sentences. `params` is what was validated."""
    found: dict[tuple[str, ...], list[str]] = {}
    for item in _meant(error.errors(include_url=False), params):
        said = found.setdefault(_path(item["loc"], item["type"], params), [])
        if (sentence := _sentence(item["type"], item.get("ctx", {}), item["input"])) not in said:
            said.append(sentence)
    # Of the shapes that a value may have, the one that it comes closest to is meant.
    deepest = {path: said for path, said in found.items() if not _deeper(path, found)}
    return "; ".join(
        f"{'.'.join(path) or 'params'} {_either(said)}" for path, said in [*deepest.items()][:SAID]
    )


def _meant(errors: Sequence[Mapping[str, Any]], params: Any) -> Iterator[Mapping[str, Any]]:
    """Of a value that may have several shapes, only the errors of the shape that it says it has;
    when it says none of them, only that."""
    shapes = [_shape(item, params) for item in errors]
    wrong = {shape for item, shape in zip(errors, shapes, strict=True) if _says_else(item, shape)}
    right = {shape[:-1] for shape in shapes if shape and shape not in wrong}
    for item, shape in zip(errors, shapes, strict=True):
        if shape not in wrong or (shape[:-1] not in right and _says_else(item, shape)):
            yield item


def _shape(item: Mapping[str, Any], params: Any) -> tuple[int | str, ...]:
    """Where the value is, and the name of the shape that this error is about; () if it may have but
    one."""
    here, loc = params, item["loc"]
    for nth, step in enumerate(loc[:-1]):
        key = _sent(here, step)
        if key is None:
            return tuple(loc[: nth + 1])
        here = here[key]
    return ()


def _says_else(item: Mapping[str, Any], shape: Sequence[int | str]) -> bool:
    """Whether it is said that the value is of another shape: by a constant, which is called `type`
    where it is missing."""
    own = item["loc"][len(shape) :]
    missing = item["type"] == "missing" and own == ("type",)
    return bool(shape) and len(own) == 1 and (missing or item["type"] == "literal_error")


def _path(loc: Sequence[int | str], kind: str, params: Any) -> tuple[str, ...]:
    """Without the steps that name one of several shapes: those were not sent."""
    path: list[str] = []
    here = params
    for nth, step in enumerate(loc, 1):
        key = _sent(here, step)
        if key is not None:
            here = here[key]
        elif nth < len(loc) or kind != "missing":
            continue
        path.append(str(step))
    return tuple(path)


def _sent(here: Any, step: int | str) -> int | str | None:
    """Under which key it was sent; None: under none."""
    if isinstance(step, int):
        return step if isinstance(here, list) and step < len(here) else None
    if not isinstance(here, Mapping):
        return None
    return next((key for key in (step, to_snake(step)) if key in here), None)


def _deeper(path: tuple[str, ...], paths: Iterable[tuple[str, ...]]) -> bool:
    return any(len(one) > len(path) and one[: len(path)] == path for one in paths)


def _either(said: Sequence[str]) -> str:
    return ", or ".join([said[0], *(one.removeprefix("must ") for one in said[1:])])


def _sentence(kind: str, about: Context, value: Any) -> str:
    if kind in _SENTENCES:
        return _SENTENCES[kind]
    if kind in _BOUNDS:
        return _BOUNDS[kind](about, value)
    return "has the wrong shape"


def _count(number: int, value: Any) -> str:
    what = "character" if isinstance(value, str) else "item"
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _short(least: int, value: Any) -> str:
    return "must not be empty" if least == 1 else f"must have at least {_count(least, value)}"


def _long(most: int, value: Any) -> str:
    return f"may have at most {_count(most, value)}, not {len(value)}"


_SENTENCES: Mapping[str, str] = {
    "missing": "is missing",
    "extra_forbidden": "is not known here",
    "string_type": "must be a string",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "must be a whole number"),
    "int_parsing_size": "is too large a number",
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
    "finite_number": "must be a finite number",
    **dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false"),
    **dict.fromkeys(("list_type", "tuple_type"), "must be a list"),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "must be an object"),
    "union_tag_not_found": "needs a `type`",
}
_BOUNDS: Mapping[str, Callable[[Context, Any], str]] = {
    "string_too_short": lambda about, value: _short(about["min_length"], value),
    "too_short": lambda about, value: _short(about["min_length"], value),
    "string_too_long": lambda about, value: _long(about["max_length"], value),
    "too_long": lambda about, value: _long(about["max_length"], value),
    "greater_than_equal": lambda about, value: f"must be {about['ge']:g} or more",
    "less_than_equal": lambda about, value: f"must be {about['le']:,} or less",
    "string_pattern_mismatch": lambda about, value: f"may have only {PATTERNS[about['pattern']]}",
    "literal_error": lambda about, value: f"must be {about['expected']}".replace("'", '"'),
    "union_tag_invalid": lambda about, value: (
        f"has type {about['tag']!r}; known are {about['expected_tags']}"
    ),
    "value_error": lambda about, value: f"is refused: {about['error']}",
}
