"""`magy audit verify` tells whether the audit is as Magy wrote it, and where it first is not."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from magy_server.cli import exit_codes, project_directory
from magy_server.cli.composition import Composition, Options, Verb
from magy_server.cli.screen.terminal import Screen, standard_output
from magy_server.cli.screen.text import Span, record
from magy_server.config import layers
from magy_server.core.errors import InvalidRequest
from magy_server.core.text.sanitizing import one_line
from magy_server.listeners.audit import audit_directory
from magy_server.listeners.audit_chain import Verified, verify


async def verified(options: Options, app: Composition) -> int:
    directory = _directory(options)
    try:
        found = await asyncio.to_thread(verify, str(directory), options.expect or "")
    except OSError as error:
        raise InvalidRequest(f"The audit in {directory} cannot be read: {error}.") from None
    missing = bool(options.expect) and not found.expected
    output = standard_output()
    if options.json:
        await output.write(record(_as_json(found, directory)))
    else:
        screen = Screen(output)
        await screen.write(_lines(found, directory, options.expect if missing else ""))
    return exit_codes.ERROR if found.broken or missing or not found.lines else exit_codes.DONE


def _directory(options: Options) -> Path:
    if options.directory:
        return Path(options.directory)
    root, _ = project_directory.project(options.root, None)
    settings = layers.load(root, trusted=False, options={}).settings
    return audit_directory(settings.audit, layers.state_dir())


def _as_json(found: Verified, directory: Path) -> Mapping[str, object]:
    return {
        "directory": str(directory),
        "files": found.files,
        "lines": found.lines,
        "broken": found.broken or None,
        "notes": list(found.notes),
        "head": found.head or None,
        "expected": found.expected,
    }


def _lines(found: Verified, directory: Path, missing: str) -> list[Span]:
    files = f"{found.files} file{'s' if found.files != 1 else ''} in {one_line(str(directory))}"
    spans: list[Span] = [(f"{one_line(note)}\n", "yellow") for note in found.notes]
    if found.broken:
        spans.append((f"BROKEN: {one_line(found.broken)}\n", "red"))
        before = max(0, found.lines - 2)
        spans.append((f"The first {before} lines of {files} hold.\n", ""))
    elif not found.lines:
        spans.append((f"There is no audit in {one_line(str(directory))}.\n", ""))
    else:
        spans.append((f"The audit holds: {found.lines} lines of {files}.\n", "green"))
        spans.append((f"Its last line has the hash {found.head}\n", "dim"))
    if missing:
        spans.append((f"No line has the hash {one_line(missing)}: lines were taken away, all of it "
                      "was written anew, or the hash is not right.\n", "red"))  # fmt: skip
    return spans


VERBS: Mapping[str | None, Verb] = {"verify": verified}
