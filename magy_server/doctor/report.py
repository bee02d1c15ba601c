"""This module shows the findings as text for people and as JSON for editors."""

from __future__ import annotations

import json
import os
import shutil
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TextIO

from magy_server import __version__
from magy_server.core.text.sanitizing import one_line
from magy_server.doctor.finding import Finding, Status

_WIDEST = 100
_COLOURS: dict[Status, str] = {"ok": "32", "note": "36", "warning": "33", "problem": "31"}
_MARKS: dict[Status, str] = {"ok": "✓", "note": "·", "warning": "!", "problem": "✗"}
_PLAIN: dict[Status, str] = {"ok": "+", "note": "-", "warning": "!", "problem": "x"}
"""These signs are for terminals that cannot write the others."""


def as_json_text(findings: Sequence[Finding]) -> str:
    """Returns one JSON object. docs/howto/doctor.md describes its shape, which only grows."""
    ok = all(finding.status != "problem" for finding in findings)
    report = {"version": __version__, "ok": ok, "findings": [asdict(one) for one in findings]}
    return json.dumps(report, indent=2)


def for_people(findings: Sequence[Finding], out: TextIO) -> str:
    """Returns the findings by topic, as `out` can show them: wrapped to the terminal, in colours
    where it has them."""
    said: list[str] = []
    coloured = _coloured(out)
    width = min(_WIDEST, shutil.get_terminal_size((80, 24)).columns)
    marks = _MARKS if _can_write("".join(_MARKS.values()) + "→", out) else _PLAIN
    arrow = "→" if marks is _MARKS else "->"
    topic = ""
    for one in findings:
        if one.topic != topic:
            topic = one.topic
            said.append(f"\n{_painted(topic, '1', coloured)}")
        mark = _painted(marks[one.status], _COLOURS[one.status], coloured)
        first, *rest = _wrapped(one.what, width - 4) or [""]
        said += [f"  {mark} {first}", *(f"    {line}" for line in rest)]
        if one.mend:
            mend = _wrapped(one.mend, width - 5 - len(arrow))
            indent = " " * (len(arrow) + 5)
            said += [f"    {arrow} {mend[0]}", *(indent + x for x in mend[1:])]
    said.append(f"\n{_painted(_sum(findings), '1', coloured)}")
    return "\n".join(said) + "\n"


def _wrapped(text: str, width: int) -> list[str]:
    """Wraps the text, but breaks no path, option or name: people copy these."""
    return textwrap.wrap(one_line(text), width, break_on_hyphens=False, break_long_words=False)


def _sum(findings: Sequence[Finding]) -> str:
    counts = Counter(finding.status for finding in findings)
    kinds: tuple[Status, ...] = ("problem", "warning", "note")
    said = [f"{counts[k]} {k}{'s' * (counts[k] != 1)}" for k in kinds if counts[k]]
    return f"{', '.join(said)}." if said else "Nothing is wrong."


def _coloured(out: TextIO) -> bool:
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return wanted and out.isatty()


def _can_write(text: str, out: TextIO) -> bool:
    try:
        text.encode(out.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _painted(text: str, code: str, coloured: bool) -> str:
    return f"\033[{code}m{text}\033[0m" if coloured else text


class Progress:
    """On a terminal, one passing line says what the doctor looks at; elsewhere there is nothing."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._shown = out.isatty() and os.environ.get("TERM") != "dumb"

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exc: object) -> None:
        self._write("")

    def show(self, topics: Sequence[str]) -> None:
        columns = shutil.get_terminal_size((80, 24)).columns
        self._write(f"Looking at {', '.join(topics)} ..."[: columns - 1])

    def _write(self, line: str) -> None:
        if self._shown:
            print(f"\r\033[K{line}", end="", file=self._out, flush=True)
