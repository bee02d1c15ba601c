"""This module writes the doctor's findings as text for an issue, without any secret, and without
the person's home directory."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from magy_server import __version__
from magy_server.core.text.sanitizing import one_line
from magy_server.core.text.secrets import Secrets
from magy_server.core.variables import names_key
from magy_server.dataclass import dataclass
from magy_server.doctor.finding import Around, Finding
from magy_server.listeners.audit import without_secrets
from magy_server.regex import regex

DEPTH, ENTRIES, TEXT, WHOLE = 6, 100, 2_000, 60_000
"""Limits on what an editor reports about itself: levels, entries of one object, characters of one
text, characters of the whole."""
NAME = 200
"""Characters of a name."""
_SECRET_NAME = regex(
    r"api.?key|private.?key|keys?$|token|secret|pass(?:w|phrase|$)|pwd|credential|cookie"
    r"|authorization|(?:^|[_.:-])auth$",
    re.IGNORECASE,
)
_KEY = regex(
    r"(?:sk-(?:ant|proj|or)-|gh[posu]_|github_pat_|glpat-|xox[a-z]-|AKIA|eyJ)[-_A-Za-z0-9.]{8,}"
)
"""Keys have one of these beginnings, also in the middle of a word."""
_GONE = "[redacted]"
_MARKS = {"ok": "ok", "note": "note", "warning": "WARNING", "problem": "PROBLEM"}


@dataclass(frozen=True, slots=True)
class Redaction:
    """`secrets` are texts that must not be seen, `home` the directory that becomes `~`."""

    home: str
    secrets: frozenset[str]

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Redaction:
        """Makes one with the values of variables whose names say that they hold a secret."""
        values = {
            value
            for name, value in environ.items()
            if (_SECRET_NAME.search(name) or names_key(name))
            and len(value) >= 8
            and not value.startswith("/")
        }
        return cls(environ.get("HOME", "").rstrip("/"), frozenset(values))

    def text(self, text: str, most: int | None = None) -> str:
        """Returns the text, cut to `most` characters, but never within a part that has to go."""
        for secret in sorted(self.secrets, key=len, reverse=True):
            text = re.sub(re.escape(secret), _GONE, text, flags=re.IGNORECASE)
        text = known(self.secrets).clean(text)
        long = most is not None and len(text) > 2 * most
        if long:  # bounds what is looked at; the beginning of a secret looks like one, too
            text = text[: 2 * (most or 0)]
        text = _KEY.sub(_GONE, text)
        text = without_secrets(text, _GONE)
        for home in {self.home, os.path.realpath(self.home or "/")} - {"", "/"}:
            text = re.sub(rf"{re.escape(home)}(?![\w.-])", "~", text)
        return text[:most] + "…" if most is not None and (long or len(text) > most) else text

    def value(self, value: Any, depth: int = DEPTH) -> Any:
        """Returns the value with everything inside it redacted and bounded. What stands under a
        secret's name goes whole, also in lists of names and values."""
        match value:
            case str():
                return self.text(value, TEXT)
            case Mapping() | list() if depth == 0:
                return "…"
            case Mapping():
                return {
                    self.text(str(key), NAME): self._hidden(inner)
                    if _SECRET_NAME.search(str(key))
                    else self.value(inner, depth - 1)
                    for key, inner in list(value.items())[:ENTRIES]
                }
            case list():
                return self._list(value[:ENTRIES], depth - 1)
        return value

    def _list(self, values: Sequence[Any], depth: int) -> list[Any]:
        found: list[Any] = []
        named = False
        for inner in values:
            found.append(self._hidden(inner) if named else self.value(inner, depth))
            named = named or (isinstance(inner, str) and _names_secret(inner))
        return found

    def _hidden(self, value: Any) -> Any:
        """Returns what stands for a secret. People may see whether there is one."""
        return value if value is None or type(value) is bool or value in ("", [], {}) else _GONE

    def finding(self, one: Finding) -> Finding:
        return replace(one, what=self.text(one.what), mend=self.text(one.mend))


@cache
def known(secrets: frozenset[str]) -> Secrets:
    """Returns the same texts, with the forms that they have where they are encoded."""
    return Secrets(secrets)


def _names_secret(text: str) -> bool:
    return len(text) <= NAME and not re.search(r"\s", text) and bool(_SECRET_NAME.search(text))


def report(
    findings: Sequence[Finding], editor: Mapping[str, Any] | None, redaction: Redaction
) -> str:
    """Returns Markdown. Everything that came from outside stands in a block of code."""
    lines = [
        f"{one.topic:13} {_MARKS[one.status]:8} {one_line(redaction.text(one.what))}"
        for one in findings
    ]
    parts = [f"Magy {__version__}", _fenced("\n".join(lines))]
    if editor:
        told = json.dumps(redaction.value(editor), indent=2, ensure_ascii=False, default=str)
        parts += ["What the editor reports:", _fenced(told[:WHOLE], "json")]
    return "\n\n".join(parts) + "\n"


def _fenced(text: str, language: str = "") -> str:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


async def examination(root: str, editor: Mapping[str, Any] | None) -> tuple[Sequence[Finding], str]:
    """Examines this installation and the project `root` (canonical path), and returns the findings
    and their report, neither with a secret."""
    from magy_server.doctor import examine

    environ = dict(os.environ)
    redaction = Redaction.of(environ)
    findings = [redaction.finding(one) for one in await examine(Around(root, environ))]
    return findings, report(findings, editor, redaction)
