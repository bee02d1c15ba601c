"""These checks look at the encoding, the terminal and the clock."""

from __future__ import annotations

import locale
import sys
import time
from datetime import UTC, date, datetime

from magy_server.doctor.finding import Around, Finding, note, ok, problem, warning


async def check(around: Around) -> list[Finding]:
    return [_encoding(around), *_terminal(around), _clock()]


def _encoding(around: Around) -> Finding:
    names = {locale.getpreferredencoding(False), sys.getfilesystemencoding()}
    wrong = sorted(name for name in names if name.replace("-", "").lower() != "utf8")
    if not wrong:
        return ok("Text is UTF-8.")
    said = next((f" ({k}={v})" for k in ("LC_ALL", "LC_CTYPE", "LANG")
                 if (v := around.environ.get(k))), "")  # fmt: skip
    what = f"The locale{said} uses {', '.join(wrong)}, not UTF-8: names and text may be garbled."
    mend = "Set LANG to a UTF-8 locale, such as C.UTF-8, where Magy is started."
    return warning(what, mend)


def _terminal(around: Around) -> list[Finding]:
    if not sys.stdout.isatty():
        return []
    kind = around.environ.get("TERM", "")
    if kind not in ("", "dumb", "unknown"):
        return [ok(f"The terminal is {kind}.")]
    what = f"TERM is {kind or 'not set'}: no colours, and no progress line."
    mend = "Set TERM to the type of the terminal, such as xterm-256color."
    return [note(what, mend)]


def _clock() -> Finding:
    from magy_server.llm.catalogue import AS_OF

    made = datetime.combine(date.fromisoformat(AS_OF), datetime.min.time(), UTC)
    now = datetime.fromtimestamp(time.time(), UTC)
    if now.timestamp() >= made.timestamp() - 86_400:
        return ok(f"The clock says {now:%Y-%m-%d %H:%M} UTC.")
    what = f"The clock says {now:%Y-%m-%d %H:%M} UTC, which is before this Magy was made."
    mend = "Set the clock of this computer; secure connections fail until then."
    return problem(what, mend)
