"""This module writes the card of a deliberation as text: in a box of three columns, and as rows for
what is narrow, or read aloud. Both say the same, and need no colours. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from magy_server.core.text.columns import width_of, wrapped

Card = Mapping[str, Any]
COLUMN = 21
"""Columns of the screen that the text of a node has."""
INNER = 3 * COLUMN + 6
"""Those between the outer lines of the box, which is four wider."""
_CENTRES = {
    node: COLUMN // 2 + place * (COLUMN + 3)
    for place, node in enumerate(("melchior", "balthasar", "casper"))
}
_LINES = {"agree": "=", "beside": "-", "apart": ".", "against": "-"}
_SPOKEN = {"agree": " agree ", "beside": " one side ", "apart": " apart ", "against": " AGAINST "}


def box(card: Card) -> list[str]:
    """Returns the lines, each as wide as all others."""
    full = f"+{'-' * (INNER + 2)}+"
    split = f"+{'+'.join(['-' * (COLUMN + 2)] * 3)}+"
    lines = [full, *_wide(_head(card)), *_wide([_counted(card)]), split]
    columns = [_fitted(_node(one), COLUMN) for one in card["nodes"]]
    for cells in zip_longest(*columns, fillvalue=""):
        lines.append(f"| {' | '.join(_padded(cell, COLUMN) for cell in cells)} |")
    lines.append(split)
    for block in (_picture(card), _ruling(card)):
        if block:
            lines += [*_wide(block), full]
    if card["spent"]:
        lines += [*_wide([card["spent"]]), full]
    return lines


def rows(card: Card) -> list[str]:
    """Returns the lines, of any length."""
    found = [*_head(card), _counted(card)]
    for one in card["nodes"]:
        name, role, *rest = _node(one)
        said = [line for line in rest if line]
        found += [f"{name} ({role}): {', '.join(said[: _headed(one)])}"]
        found += [f"  {line}" for line in said[_headed(one) :]]
    for one in card["tensions"]:
        found += [one["line"], *(f"  {line}" for line in one["said"])]
    found += [line for line in _ruling(card) if line]
    return [*found, card["spent"]] if card["spent"] else found


def _head(card: Card) -> list[str]:
    return [f"MAGI, {card['mode']}: {card['question']}"]


def _counted(card: Card) -> str:
    counted = f"{card['voted']} of 3 voted."
    return counted if card["ruling"] else f"{counted} {card['line']}"


def _node(one: Card) -> list[str]:
    """What stands in a column, a line for each thing; the first of it is about the vote."""
    found = [one["name"], one["role"], *_vote(one)]
    texts = [text for text in (one["summary"], *one["own"], *one["flags"]) if text]
    return [*found, *(line for text in texts for line in ("", text))]


def _headed(one: Card) -> int:
    return len(_vote(one))


def _vote(one: Card) -> list[str]:
    found = []
    if one["verdict"]:
        found += [one["verdict"], f"{one['tier']} ({one['confidence']} %)"]
    if one["before"]:
        found.append(f"before: {one['before']}")
    if one["dissents"]:
        found.append("DISSENTS")
    return [*found, one["status"]] if one["status"] else found


def _picture(card: Card) -> list[str]:
    """A line between each two that have voted, below their columns; then what it is about."""
    drawn = [_drawn(one) for one in card["tensions"]]
    told = [one for one in card["tensions"] if one["kind"] != "agree"]
    said = [line for one in told for line in (one["line"], *(f"  {text}" for text in one["said"]))]
    return [*drawn, *([""] if said else []), *said]


def _drawn(one: Card) -> str:
    start, end = (_CENTRES[node] for node in one["between"])
    room = end - start - 1
    word, sign = _SPOKEN[one["kind"]], _LINES[one["kind"]]
    before = (room - len(word)) // 2
    after = room - len(word) - before
    left, right = sign * before, sign * after
    if one["kind"] == "against":
        left, right = f"{left[1:]}>", f"<{right[1:]}"
    return f"{' ' * start}*{left}{word}{right}*"


def _ruling(card: Card) -> list[str]:
    """The safety fields are last: what was read last is what is done."""
    ruling = card["ruling"]
    if ruling is None:
        return []
    found = [f"RULING: {card['line']}", ruling["why"]]
    found += [f"Dissent: {line}" for line in ruling["dissent"]]
    found += [f"Condition {line}" for line in ruling["conditions"]]
    found += [f"Way on {line}" for line in ruling["options"]]
    found += [f"May fail: {line}" for line in ruling["mayFail"]]
    found += [f"Next step: {ruling['nextStep']}"]
    found += [f"Warning: {line}" for line in ruling["warnings"]]
    return [*found, *(f"Safety: {line}" for line in ruling["safety"])]


# --- columns of the screen ------------------------------------------------------------------------


def _wide(lines: Sequence[str]) -> Iterator[str]:
    for line in _fitted(lines, INNER):
        yield f"| {_padded(line, INNER)} |"


def _fitted(lines: Sequence[str], width: int) -> list[str]:
    return [row for line in lines for row in wrapped(line, width, long=True)]


def _padded(text: str, width: int) -> str:
    return text + " " * max(0, width - width_of(text))
