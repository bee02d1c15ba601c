"""This check looks for editors on this machine, and whether this installation has a client for
them."""

from __future__ import annotations

import asyncio

from magy_server.dataclass import dataclass
from magy_server.doctor.finding import Around, Finding, note, ok, warning
from magy_server.doctor.programs import found, outcome, version_in


@dataclass(frozen=True, slots=True)
class Editor:
    """`client`: its directory below `clients/`; `least`: the oldest version that client takes."""

    name: str
    program: str
    client: str
    least: tuple[int, ...] = ()


EDITORS = (
    Editor("Emacs", "emacs", "emacs", (28, 1)),
    Editor("Neovim", "nvim", "nvim", (0, 11)),
    Editor("VS Code", "code", "vscode"),
)


async def check(around: Around) -> list[Finding]:
    seen = await asyncio.gather(*(_editor(editor, around) for editor in EDITORS))
    findings = [finding for finding in seen if finding is not None]
    if findings:
        return findings
    names = ", ".join(editor.name for editor in EDITORS)
    what = f"PATH has no editor for which Magy has a client ({names})."
    mend = "Use any editor that speaks the Language Server Protocol with `magy lsp`."
    return [note(what, mend)]


async def _editor(editor: Editor, around: Around) -> Finding | None:
    from magy_server.config.resources import resource

    path = found(editor.program, around)
    if path is None:
        return None
    code, said = await outcome([path, "--version"], around)
    version = version_in(said)
    if code != 0 or not version:
        why = said.splitlines()[0] if said else "it prints nothing"
        mend = f"Run `{path} --version` and fix what it reports."
        return warning(f"{editor.name} ({path}) does not run: {why}.", mend)
    number = ".".join(map(str, version))
    if version < editor.least:
        least = ".".join(map(str, editor.least))
        what = f"{editor.name} {number} ({path}) is older than Magy's client needs."
        return warning(what, f"Install {editor.name} {least} or newer.")
    client = resource("clients", editor.client)
    if client.is_dir() and any(client.iterdir()):
        return ok(f"{editor.name} {number} ({path}); its client is in {client}.")
    what = f"{editor.name} {number} ({path}) is installed, but this Magy has no client for it."
    mend = f"Start `magy lsp` as a language server in {editor.name}."
    return note(what, mend)
