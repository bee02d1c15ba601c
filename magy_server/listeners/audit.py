"""The audit appends what was asked, decided and done to daily files of JSON lines.

A listener: it gets entries after they are in the log. Payloads are redacted to kinds, lengths,
paths and short previews; what looks like a secret never gets in. The lines are chained
(`audit_chain.py`).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from magy_server.core.agents import tree
from magy_server.core.agents.mail import Closed, Mailed, SignalPayload, TextPayload
from magy_server.core.agents.tree import id_of
from magy_server.core.events import (
    Answered,
    Asked,
    Entry,
    Exited,
    Finished,
    Granted,
    Judged,
    Opened,
    Started,
    Withdrawn,
)
from magy_server.core.reviews.review_events import Restored
from magy_server.core.settings import AuditSettings
from magy_server.core.state.state import State
from magy_server.core.values import Form
from magy_server.listeners.audit_chain import Chain
from magy_server.regex import regex

LOG = logging.getLogger(__name__)

_NAME = r"[A-Za-z0-9_.-]*(?:key|token|secret|pass(?:word|wd|phrase)?|pwd|credentials?|auth)"
_SECRET = regex(
    rf"""(?ix)
    ( \b{_NAME} ["']? \s* [:=] \s* (?: (?:bearer|basic|token) \s+ )?  # NAME=value
    | \b (?:bearer|basic) \s+
    | --?{_NAME} [= ]                                                  # --password value
    | \s -u \s* [^\s:]+ :                                             # curl -u name:value
    | :// [^\s/:@]* :                                                  # https://name:value@host
    ) ["']? [^\s"'@]+
    | \b (?: sk | pk | ghp | gho | ghs | github_pat | glpat | xox[a-z] | AKIA | eyJ )
      [-_A-Za-z0-9.]{{8,}}
    """
)
"""What looks like a secret, with what introduces it in group 1. It catches the usual spellings; the
audit keeps no payload anyway, so this is for commands and titles."""
_WORDS = (
    "key", "token", "secret", "pass", "pwd", "credential", "auth", "bearer", "basic", "-u", "://",
    "sk", "pk", "ghp", "gho", "ghs", "github_pat", "glpat", "xox", "akia", "eyj",
)  # fmt: skip
"""One of these is in each text of ASCII in which that finds something."""


MOST = 1_000
"""Lines that are kept while another process that was stopped holds the audit."""


def without_secrets(text: str, gone: str) -> str:
    """Returns the text with `gone` in place of what looks like a secret."""
    lower = text.lower()
    if text.isascii() and not any(word in lower for word in _WORDS):
        return text
    return _SECRET.sub(lambda found: f"{found.group(1) or ''}{gone}", text)


def audit_directory(settings: AuditSettings, state: Path) -> Path:
    """`state`: the state directory."""
    return Path(settings.directory).expanduser() if settings.directory else state / "audit"


class Audit:
    """Writes `audit-YYYYMMDD.jsonl` (mode 0600) in `directory` (mode 0700), UTC days."""

    def __init__(self, directory: str, preview: int, clean: Callable[[str], str] = str) -> None:
        """`clean` takes out of a text what the configuration has redacted."""
        self._directory = directory
        self._clean = clean
        self._preview = preview
        self._chain = Chain(directory)
        self._waiting: list[Mapping[str, Any]] = []
        self._day = ""

    def __call__(self, state: State, entries: Sequence[Entry]) -> None:
        """Never raises: an audit that cannot be written is said in the log, once a try."""
        opened = state.opened
        source = opened.forked_from if opened and opened.parent else None
        own = [entry for entry in entries if not source or not 1 < entry.seq <= source[1]]
        lines = [line for entry in own if (line := self._line(state, entry))]
        if lines:
            self._day = datetime.fromtimestamp(entries[-1].at, UTC).strftime("%Y%m%d")
            self._waiting += lines
            self._write()

    def close(self) -> None:
        if self._waiting:
            self._write()
        self._chain.close()

    def _write(self) -> None:
        try:
            self._chain.append(self._day, self._waiting)
            self._waiting.clear()
        except BlockingIOError:
            del self._waiting[:-MOST]
            LOG.warning(
                "Another process holds the audit in %s; %d lines wait.",
                self._directory,
                len(self._waiting),
            )
        except OSError as error:
            self._waiting.clear()
            self._chain.close()
            LOG.error("The audit in %s cannot be written: %s.", self._directory, error)

    def _line(self, state: State, entry: Entry) -> Mapping[str, Any] | None:
        fields = self._fields(state, entry)
        if fields is None:
            return None
        stamp = datetime.fromtimestamp(entry.at, UTC).isoformat(timespec="milliseconds")
        about = {
            "timestamp": stamp,
            "event": entry.event.type,
            "session_id": id_of(entry.stream),
            "seq": entry.seq,
            "agent": state.agent,
            "turn_id": state.turn.id if state.turn else None,
            "project_root": state.root,
        }
        return {**about, **fields}

    def _fields(self, state: State, entry: Entry) -> Mapping[str, Any] | None:
        event = entry.event
        match event:
            case Judged():
                return {
                    **_tool(state, event.call),
                    "resources": [
                        {"kind": r.kind, "subject": self._redact(r.subject)}
                        for r in event.facts.resources
                    ],
                    "decision": event.decision.action,
                    "rule": self._redact(event.decision.rule),
                    "arguments_length": _arguments(state, event.call),
                }
            case Asked():
                about = {**_tool(state, event.call), "interaction_id": event.id,
                         "title": self._redact(event.title)}  # fmt: skip
                return {**about, **self._form(event.form)} if event.form else about
            case Answered():
                about = {"interaction_id": event.id, "allowed": event.allow, "scope": event.scope,
                         "by": event.by, "reason_length": len(event.reason)}  # fmt: skip
                return about if event.content is None else {**about, "filled": [*event.content]}
            case Granted(grant=grant):
                return {"grant_id": grant.id, "key": grant.key,
                        "pattern": self._redact(grant.pattern)}  # fmt: skip
            case Withdrawn():
                return {"grant_id": event.grant}
            case Started():
                return {**_tool(state, event.call), "process_group": event.evidence.group}
            case Finished():
                return {**_tool(state, event.call), "status": event.status,
                        "result_length": len(event.for_model),
                        "changed": [c.path for c in event.changes]}  # fmt: skip
            case Restored():
                return {"turn": event.turn, "undoes": event.undoes,
                        "changed": [c.path for c in event.changes],
                        "left_alone": list(event.conflicts)}  # fmt: skip
            case Exited():
                return {"call_id": event.call, "exit_code": event.code}
            case Opened(parent=str(parent)):
                task, call = self._redact(event.title), event.call or None
                return {"parent_session_id": parent, "call_id": call, "task": task}
            case Mailed():
                return self._mailed(event)
            case Closed():
                return {"mode": event.mode, "by": event.by, "reason_length": len(event.reason)}
        return None

    def _form(self, form: Form) -> Mapping[str, Any]:
        """What a server wanted to know. What it was told is nobody else's: only the names of the
        fields are kept."""
        return {"server": form.server, "fields": [one.name for one in form.fields],
                "url": self._redact(form.url)}  # fmt: skip

    def _mailed(self, mail: Mailed) -> Mapping[str, Any]:
        """With a report it is the edge of a delegation: who did which part for whom, and what that
        took (C060, C061)."""
        about: dict[str, Any] = {
            "message_id": mail.id,
            "from_session_id": mail.sender or None,
            "from_agent": mail.agent,
            "kind": mail.payload.kind,
        }
        if isinstance(mail.payload, SignalPayload):
            about["signal"] = mail.payload.signal
        if isinstance(mail.payload, TextPayload):
            about["text_length"] = len(mail.payload.text)
        if report := mail.report:
            about |= {
                "task": self._redact(mail.name),
                "call_id": tree.call_of(mail.sender.rpartition("/")[2]) or None,
                "run_id": mail.run,
                "child_turn_id": report.turn,
                "status": report.status,
                "stop": report.stop,
                "model": mail.metadata.get("model"),
                "requests": report.requests,
                "tokens": report.usage.model_dump(),
                "cost": report.cost,
                "unpriced_requests": report.unpriced,
                "seconds": round(report.seconds, 3),
            }
        return about

    def _redact(self, text: str) -> str:
        text = without_secrets(self._clean(text), "[redacted]")
        return text if len(text) <= self._preview else f"{text[: self._preview]}…"


def _tool(state: State, call: str) -> dict[str, Any]:
    found = state.turn.calls.get(call) if state.turn else None
    return {"call_id": call, "tool": found.call.name if found else None}


def _arguments(state: State, call: str) -> int:
    found = state.turn.calls.get(call) if state.turn else None
    return len(json.dumps(found.call.arguments)) if found else 0
