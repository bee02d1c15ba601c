"""`magy edit` applies edits in any format to files, or checks them, from the shell."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

from magy_server.api.edits.files_in_memory import Fault, File, Tree, faults
from magy_server.cli import exit_codes
from magy_server.cli.commands.edit_files import load, write
from magy_server.cli.screen.complaints import complain
from magy_server.cli.screen.terminal import Output, OutputError, standard_output, write_text
from magy_server.core.errors import InvalidRequest, ToolError
from magy_server.core.text.sanitizing import harmless
from magy_server.edits.formats import detect, parse
from magy_server.edits.model import EditError, FileEdit
from magy_server.edits.rebasing.diff import counts
from magy_server.tools.files.disk import EDIT_LIMIT
from magy_server.tools.files.encodings import decode
from magy_server.tools.files.paths import Place, below, canonical, resolve

TEXT_LIMIT = 8 * EDIT_LIMIT
"""Bytes of the largest edit."""
DONE = {"create": "created", "delete": "removed", "rename": "renamed", "update": "changed"}
WOULD = {"create": "create", "delete": "remove", "rename": "rename", "update": "change"}


def edit(options: argparse.Namespace) -> int:
    """Runs the command, and returns the exit code. Raises MagyError for a wrong command line, and
    for an output that cannot be written, as long as no file was written."""
    output = standard_output()
    root = os.path.realpath(os.getcwd())
    files = [_given(root, name) for name in options.files]
    seen = _seen(options.seen) if options.seen else None
    data = _read(options.source)
    try:
        format, edits = _parsed(data, options.format, options.files)
    except EditError as error:
        hint = _hint(data, options)
        found = [replace(one, message=one.message + hint) for one in faults(error.failures)]
        return _report(output, options, [], found)
    except ToolError as error:
        return _report(output, options, [], [Fault("", "parse", error.message)])
    edits = [_chosen(root, files, one) for one in edits]
    if seen is not None and len({one.path for one in edits}) > 1:
        raise InvalidRequest("--seen gives the text of one file, but this edit changes several.")
    links = {
        file.path for name, file in zip(options.files, files, strict=True) if os.path.islink(name)
    }
    tree = Tree(
        lambda path: _place(root, files, edits, path),
        load,
        lambda path, place: place.path in links or os.path.islink(path),
        seen,
        creates=format != "v4a",  # which has Add File
    )
    found = tree.apply(edits)
    changed = tree.changed()
    if found or options.check or options.diff:
        return _report(output, options, changed, found)
    try:
        write(changed)
    except ToolError as error:
        return _report(output, options, changed, [Fault("", "refused", error.message)])
    return _written(output, options, changed)


# --- what is asked --------------------------------------------------------------------------------


def _given(root: str, name: str) -> Place:
    """Returns a file that the command line names, wherever it is. Raises InvalidRequest."""
    if name == "-":
        raise InvalidRequest(
            "- does not name a file to change (write ./- for a file of that name). Without "
            "--from, and with --from -, the edit is read from standard input."
        )
    try:
        path = canonical(root, name)
    except ToolError as error:
        raise InvalidRequest(error.message) from None
    if os.path.isdir(path):
        raise InvalidRequest(f"{name} is a directory; name the files in it.")
    if (inside := below(root, path)) is not None:
        return Place(root, path, inside)
    folder, last = os.path.split(path)
    return Place(folder, path, last)


def _place(root: str, files: Sequence[Place], edits: Sequence[FileEdit], path: str) -> Place:
    """Returns the place of a path. Raises ToolError for a file that it may not touch."""
    if not files or any(one.to == path for one in edits):
        return _below(root, path)
    found = canonical(root, path)
    for file in files:
        if file.path == found:
            return file
    if len(files) == 1 and len({one.path for one in edits}) == 1:
        return files[0]  # whatever the edit calls it, as with patch(1)
    raise ToolError(f"{path} is not among the files on the command line; name it there, too.")


def _chosen(root: str, files: Sequence[Place], edit: FileEdit) -> FileEdit:
    """Returns which of the two files that diff(1) has compared is meant. It chooses as patch(1)
    does: the one on the command line, else the first that exists."""
    if not edit.other:
        return edit
    named = {file.path for file in files}
    for path in (edit.path, edit.other):
        with suppress(ToolError):
            found = canonical(root, path)
            if found in named or (not files and os.path.lexists(found)):
                return replace(edit, path=path)
    return edit


def _below(root: str, path: str) -> Place:
    """Returns the path below the directory. Raises ToolError for a file elsewhere, links
    followed."""
    found = canonical(root, path)
    if below(root, found) is None:
        leads = "" if found == os.path.join(root, path) else f" (that is {found})"
        raise ToolError(
            f"{path}{leads} is not below the current directory; to change it, name it on the "
            "command line."
        )
    return resolve(root, path)


def _parsed(data: bytes, format: str | None, names: Sequence[str]) -> tuple[str, list[FileEdit]]:
    """Returns the format, and the edits. Raises EditError, and ToolError when the input is not
    text."""
    if len(data) > TEXT_LIMIT:
        raise ToolError(f"The edit has more than {TEXT_LIMIT:,} bytes; apply it in parts.")
    text, _ = decode(data, "The edit")
    if not text.strip():
        raise ToolError("The edit is empty.")  # as a whole file it would empty that one
    default = names[0] if len(names) == 1 else ""
    format = format or detect(text)
    return format, parse(format, text, default)


def _hint(data: bytes, options: argparse.Namespace) -> str:
    """Returns which option on the command line would make an edit understood that is not."""
    if not options.files:
        with suppress(EditError):
            _parsed(data, options.format, ["file"])
            return " Or name the file on the command line."
    elif len(options.files) == 1 and not options.format:
        try:
            detect(decode(data, "The edit")[0])
        except EditError:
            return f" If it is the whole new text of {options.files[0]}, use --format whole."
    return ""


def _read(source: str | None) -> bytes:
    try:
        if source not in (None, "-"):
            with open(source, "rb") as file:
                return file.read(TEXT_LIMIT + 1)
        if sys.stdin is None:
            return b""
        if sys.stdin.isatty():
            complain("reading the edit from the terminal; end it with Ctrl-D.")
        return sys.stdin.buffer.read(TEXT_LIMIT + 1)
    except OSError as error:
        what = "Standard input" if source in (None, "-") else str(source)
        raise InvalidRequest(f"{what} cannot be read: {error.strerror}.") from None


def _seen(name: str) -> str:
    """Raises InvalidRequest."""
    try:
        with open(name, "rb") as file:
            return decode(file.read(EDIT_LIMIT + 1), name)[0]
    except OSError as error:
        raise InvalidRequest(f"{name} cannot be read: {error.strerror}.") from None
    except ToolError as error:
        raise InvalidRequest(error.message) from None


# --- what is said ---------------------------------------------------------------------------------


def _written(output: Output, options: argparse.Namespace, files: Sequence[File]) -> int:
    """Prints what was done. It is no failure if nobody can be told."""
    try:
        return _report(output, options, files, [])
    except OutputError as error:
        if error.quiet:
            raise
        complain(f"{error.message} The edit was made nevertheless.")
        return exit_codes.UNTOLD


def _report(
    output: Output,
    options: argparse.Namespace,
    files: Sequence[File],
    faults: Sequence[Fault],
) -> int:
    written = not (faults or options.check or options.diff)
    if options.json:
        found = {
            "written": written,
            "files": [as_json(file) for file in files],
            "failures": [asdict(fault) for fault in faults],
        }
        write_text(output, json.dumps(found, indent=2) + "\n")
    elif faults:
        for fault in faults:
            complain(_sentence(fault))
        complain("nothing was written.")
    elif options.diff:
        diff = "".join(file.diff() for file in files)
        write_text(output, harmless(diff) if os.isatty(output.descriptor) else diff)
    else:
        lines = [line for file in files for line in _lines(file, written)]
        write_text(output, harmless("\n".join(lines or ["nothing to change"]) + "\n"))
    return exit_codes.ERROR if faults else exit_codes.DONE


def as_json(file: File) -> dict[str, Any]:
    """Returns one file of `magy edit --json`."""
    added, removed = _counts(file)
    return {
        "path": file.moved_from.place.name if file.moved_from else file.place.name,
        "op": file.op,
        "to": file.place.name if file.moved_from else None,
        "added": added,
        "removed": removed,
        "hunks": [
            {"hunk": placed.hunk, "tier": placed.tier, "note": placed.note}
            for placed in file.placed
        ],
        "diff": file.diff(),
    }


def _counts(file: File) -> tuple[int, int]:
    return counts(file.before or "", file.after or "")


def _lines(file: File, written: bool) -> list[str]:
    added, removed = _counts(file)
    did = DONE[file.op] if written else f"would {WOULD[file.op]}"
    name = file.place.name
    if file.moved_from:
        name = f"{file.moved_from.place.name} to {name}"
    notes = [f"  {line}" for placed in file.placed for line in placed.note.splitlines()]
    return [f"{did} {name} +{added} -{removed}", *notes]


def _sentence(fault: Fault) -> str:
    if fault.path and fault.hunk is not None:
        return f"{fault.path}, hunk {fault.hunk + 1}: {fault.message}"
    named = fault.message.startswith(fault.path)  # so it does with no path at all
    return fault.message if named else f"{fault.path}: {fault.message}"
