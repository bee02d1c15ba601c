"""A judge without I/O, for tests of rules: every word that is no option names a file."""

from __future__ import annotations

import posixpath

from magy_server.core.shell.nested_commands import text_at
from magy_server.core.shell.simple_commands import parse
from magy_server.core.values import Effect, Facts, Resource

ROOT = "/proj"
EFFECTS: dict[str, Effect] = {
    "read": "read", "edit": "write", "write": "write", "bash": "exec", "git": "read",
    "net": "net", "agent": "agent",
}  # fmt: skip


def file(kind: Effect, path: str) -> Resource:
    subject = posixpath.normpath(posixpath.join(ROOT, path))
    inside = subject == ROOT or subject.startswith(ROOT + "/")
    relative = posixpath.relpath(subject, ROOT) if inside else None
    return Resource(kind=kind, subject=subject, relative=relative)


def command(line: str) -> Facts:
    found: list[Resource] = []
    for part in parse(line, "/home/someone"):
        found.append(part.resource())
        if not part.opaque:
            words = [word for at, word in enumerate(part.argv) if at not in (0, text_at(part.argv))]
            found += [file("read", word) for word in words if not word.startswith("-")]
        found += [file(r.mode, r.target) for r in part.redirects if r.target]
    return Facts(resources=tuple(found))


def facts(key: str, subject: str) -> Facts:
    if key in ("bash", "git"):
        return command(subject)
    if key in ("read", "edit", "write"):
        return Facts(resources=(file(EFFECTS[key], subject),))
    return Facts(resources=(Resource(kind=EFFECTS[key], subject=subject),))
