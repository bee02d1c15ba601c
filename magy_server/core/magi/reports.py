"""This module writes a ruling for people: as text, as a box of ASCII, as Markdown. All three are
made of its canonical JSON, and none leaves out what is about safety, nor who disagrees. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from magy_server.core.magi.vote import TITLES, tier
from magy_server.core.text.sanitizing import one_line

Form = Literal["text", "box", "markdown", "json"]
WIDTH = 78
"""Columns of the box, its lines included."""
EMOJI: Mapping[str, str] = {
    "APPROVE": "✅", "CAVEATED": "⚠️", "REJECT": "❌", "ABSTAIN": "⚪", "NONE": "🚫",
    "APPROVED": "✅", "REJECTED": "❌", "DEADLOCK": "🔒",
}  # fmt: skip
FACES: Mapping[str, str] = {"melchior": "🔬", "balthasar": "🛡️", "casper": "💗"}
QUESTION = 300
"""Characters of the question that a report shows."""
_SPECIAL = str.maketrans({char: f"\\{char}" for char in "\\`*_[]<>#|~"})

Ruling = Mapping[str, Any]
Write = Callable[[str], str]
Block = tuple[str, list[str]]
"""A heading, and lines."""


def minimum(ruling: Ruling) -> str:
    """Returns the ruling in one line."""
    confidence = ruling["confidence"]
    line = (
        f"{ruling['final']} ({ruling['standing']}), confidence {confidence['tier']} "
        f"{confidence['percent']} %, {_votes(ruling)}"
    )
    return f"{line}; a person decides" if ruling["person_needed"] else line


def text(ruling: Ruling) -> str:
    """Returns it as messengers show it."""
    lines = [f"{EMOJI[ruling['final']]} MAGI: {minimum(ruling)}", ""]
    for heading, block in _blocks(ruling, plain, marks=True):
        lines += [heading, *block, ""]
    return "\n".join(lines).rstrip() + "\n"


def markdown(ruling: Ruling) -> str:
    lines = [f"# MAGI: {ruling['final']}", "", minimum(ruling), ""]
    for heading, block in _blocks(ruling, _escaped, marks=True):
        lines += [f"## {heading}", "", *(f"- {line}" for line in block), ""]
    return "\n".join(lines).rstrip() + "\n"


def box(ruling: Ruling) -> str:
    edge, inner = "+" + "-" * (WIDTH - 2) + "+", WIDTH - 4

    def rows(line: str) -> Iterator[str]:
        for row in textwrap.wrap(line, inner, subsequent_indent="  ") or [""]:
            yield f"| {row:<{inner}} |"

    lines = [edge, *rows(f"MAGI: {minimum(ruling)}"), edge]
    for heading, block in _blocks(ruling, _ascii, marks=False):
        lines += [*rows(heading.upper()), *(row for line in block for row in rows(f"  {line}"))]
        lines.append(edge)
    return "\n".join(lines) + "\n"


def plain(text: str) -> str:
    return one_line(text)


def _escaped(text: str) -> str:
    return one_line(text).translate(_SPECIAL)


def _ascii(text: str) -> str:
    """Other characters are as wide as they like, and a box is not."""
    return one_line(text).encode("ascii", "backslashreplace").decode()


# --- what each of them says -----------------------------------------------------------------------


def _blocks(ruling: Ruling, write: Write, *, marks: bool) -> Iterator[Block]:
    yield "Question", [write(_cut(ruling["question"])), f"{ruling['mode']}: {ruling['why_mode']}"]
    yield from (_node(one, ruling["mode"], write, marks) for one in ruling["nodes"])
    if ruling["minority"]:
        yield _headed("⚖️", "Minority", marks), list(minority(ruling, write))
    if ruling["conditions"]:
        yield "Conditions", [condition(one, write) for one in ruling["conditions"]]
    if ruling["tensions"]:
        yield "Tensions", [_tension(one, write) for one in ruling["tensions"]]
    if ruling["synthesis"]:
        yield "Synthesis", list(_synthesis(ruling["synthesis"], write))
    if ruling["crisis"]:
        yield _headed("🚨", "Crisis", marks), list(crisis(ruling["crisis"]))
    if review := ruling["review"]:
        said = f"Of {write(review['of'])} ({review['earlier']}): {write(review['reason'])}"
        yield "Review", [said]
    if ruling["warnings"]:
        yield "Warnings", [write(one) for one in ruling["warnings"]]
    yield "Confidence", list(_confidence(ruling, write))
    yield _headed("👤", "Safety", marks), [write(one) for one in ruling["safety"]]
    yield _headed(EMOJI[ruling["final"]], f"FINAL RULING: {ruling['final']}", marks), _end(ruling)


def _end(ruling: Ruling) -> list[str]:
    confidence = ruling["confidence"]
    longer = ["Reply DEEP for a whole deliberation."] if ruling["mode"] == "FAST" else []
    return [
        f"Votes: {_votes(ruling)}",
        f"System confidence: {confidence['tier']} ({confidence['percent']} %)",
        f"{ruling['standing'].capitalize()}, magnitude {ruling['magnitude']:g}: {ruling['why']}",
        *longer,
    ]


def condition(one: Ruling, write: Write) -> str:
    unmet = "" if one["met"] else ": NOT MET"
    return f"({one['number']}) {write(one['text'])} ({_short(one['node'])}){unmet}"


def _node(one: Ruling, mode: str, write: Write, marks: bool) -> Block:
    heading = _headed(FACES[one["node"]], TITLES[one["node"]], marks)
    vote = one["revised"] if one["counts"] == "revised" else one["first"]
    if vote is None:
        return heading, ["No vote.", *_incidents(one, write)]
    mark = f"{EMOJI[one['verdict']]} " if marks else ""
    said = f"{mark}{one['verdict']}, {tier(vote['confidence'])} ({vote['confidence']} %)"
    first = one["first"]
    if one["counts"] == "revised":
        said += f", revised; before: {first['verdict']} ({first['confidence']} %)"
    lines = [said, write(vote["summary"])]
    if mode != "FAST":
        lines += own(one["node"], vote, write)
    lines += [f"Flag: {flag}" for flag in one["flags"]]
    return heading, [*lines, *_incidents(one, write)]


def own(node: str, vote: Ruling, write: Write) -> Iterator[str]:
    """What only this node says."""
    if node == "melchior" and vote["low"] is not None:
        yield f"Range: {vote['low']} to {vote['high']} %"
    if node == "balthasar" and vote["risks"]:
        yield f"Top risks: {'; '.join(map(write, vote['risks'][:3]))}"
    if node == "balthasar" and vote["protection"]:
        yield f"Protective action: {write(vote['protection'])}"
    if node == "casper":
        if vote["feeling"]:
            yield f"{_instrument(vote['feeling'])}: {vote['feeling']}"
        if vote["stakes"]:
            yield f"Emotional stakes: {write(vote['stakes'])}"
        if vote["last_words"]:
            yield (
                f"“{write(vote['last_words'])}”"
                if write is not _ascii
                else write(f'"{vote["last_words"]}"')
            )
    if vote["delta"]:
        yield f"Why it changed: {write(vote['delta'])}"


def _instrument(feeling: str) -> str:
    return "Compass" if feeling in ("steady", "foggy", "spinning") else "Lamp"


def _incidents(one: Ruling, write: Write) -> list[str]:
    return [
        f"Incident, {it['where']}: {it['outcome']}. {write(it['problem'])}".strip()
        for it in one["incidents"]
    ]


def minority(ruling: Ruling, write: Write) -> Iterator[str]:
    for one in ruling["nodes"]:
        if one["node"] in ruling["minority"]:
            vote = one["revised"] or one["first"]
            yield f"{_short(one['node'])}: {one['verdict']}. {write(vote['summary'])}"


def _tension(one: Ruling, write: Write) -> str:
    first, second = one["between"]
    verdicts = " against " if one["apart"] else " beside "
    line = (
        f"{_short(first)} and {_short(second)}: {verdicts.join(one['verdicts'])}, confidence "
        f"{one['confidence_gap']} points apart"
    )
    return ". ".join([line, *map(write, one["said"])])


def _synthesis(one: Ruling, write: Write) -> Iterator[str]:
    yield f"Recommendation: {write(one['recommendation'])}"
    yield from (f"Trade-off: {write(text)}" for text in one["tradeoffs"])
    yield from (f"Roll back when: {write(text)}" for text in one["rollback_signals"])
    yield from (f"Required: {write(text)}" for text in one["conditions"])


def crisis(ways: Ruling) -> Iterator[str]:
    for letter, what in ways["options"].items():
        now = {ways["default"]: " (now)", ways["then"]: " (then)"}.get(letter, "")
        yield f"{letter}{now}: {what}"


def _confidence(ruling: Ruling, write: Write) -> Iterator[str]:
    yield write(ruling["confidence"]["provenance"])
    yield from (f"May fail: {write(one)}" for one in ruling["failure_modes"])
    yield f"Next step: {write(ruling['next_step'])}"


def _votes(ruling: Ruling) -> str:
    count = ruling["count"]
    return f"{count['approve']} APPROVE / {count['reject']} REJECT / {count['other']} other"


def _headed(mark: str, heading: str, marks: bool) -> str:
    return f"{mark} {heading}" if marks else heading


def _short(node: str) -> str:
    return node.upper()


def _cut(question: str) -> str:
    return question if len(question) <= QUESTION else f"{question[: QUESTION - 1]}…"


def shown(ruling: Ruling, form: Form) -> str:
    """Returns the ruling in this form, without `json`: that it is already."""
    forms: Mapping[str, Callable[[Ruling], str]] = {
        "text": text, "box": box, "markdown": markdown,
    }  # fmt: skip
    return forms[form](ruling)
