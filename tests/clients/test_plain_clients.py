"""Stock clients without any Magy code, set up as the guide says: Neovim's vim.lsp, Emacs' Eglot,
and a client made with pygls (G001). Each asks for an explanation and reads it, has a problem fixed
and reviews that, answers a question, and stops what runs."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from lsprotocol import types
from pytest_lsp import LanguageClient
from pytest_lsp.client import make_test_lsp_client
from test_emacs import missing, packages

from tests.patience import PATIENCE

HERE = Path(__file__).parent / "plain"
GUIDE = Path(__file__).parents[2] / "docs" / "start" / "lsp.md"
BIN = Path(sys.executable).parent
TEXT = "def greet():\n    return 'hello'\n"
FIXED = TEXT.replace("'hello'", "'hello, you'")
EDIT = {"path": "app.py", "old_text": "'hello'", "new_text": "'hello, you'"}
SCRIPT = f"""
prompt: Explain
text: It greets.

prompt: Fix
call: edit_file {json.dumps(EDIT)}
---
text: It was a slip.

prompt: Take your time
text: Let me see.
delay: 600
"""


def environment(folder: Path) -> dict[str, str]:
    """A project with a file, and what makes `magy lsp` play the script there."""
    project, state = folder / "project", folder / "state"
    for directory in (project / ".git", state):
        directory.mkdir(parents=True)
    (project / "app.py").write_text(TEXT)
    (state / "model.script").write_text(SCRIPT)
    (state / "magy.toml").write_text('titles = false\n\n[permission]\nedit = "ask"\n')
    return {
        "MAGY_STATE_DIR": str(state),
        "MAGY_CONFIG_DIR": str(state),
        "MAGY_SCRIPT": str(state / "model.script"),
        "FILE": str(project / "app.py"),
        "SEEN": str(folder / "seen.json"),
        "GUIDE": str(folder / "guide"),
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
    }


def guide(language: str, path: str) -> None:
    """What the guide says to put into the editor's init file."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    assert found
    Path(path).write_text("\n".join(found))


def run(command: list[str], env: dict[str, str]) -> dict[str, Any]:
    done = subprocess.run(
        command, cwd=Path(env["FILE"]).parent, env={**os.environ, **env}, timeout=5 * PATIENCE,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        restore_signals=False,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert Path(env["SEEN"]).exists(), said
    seen: dict[str, Any] = json.loads(Path(env["SEEN"]).read_text())
    assert not seen.get("problem"), f"{seen['problem']}\n{said}"
    return seen


@pytest.mark.req("G001", "F010", "F011")
def test_neovim(tmp_path: Path) -> None:
    nvim = shutil.which("nvim", path=f"{BIN}{os.pathsep}{os.environ['PATH']}")
    if nvim is None:
        missing("Neovim is not installed (there is no wheel of it for this machine)")
    env = environment(tmp_path)
    guide("lua", env["GUIDE"])
    seen = run([nvim, "--headless", "--clean", "-l", str(HERE / "nvim.lua")], env)
    assert "It greets." in seen["explained"] and seen["stayed"]
    assert seen["at_end"] and seen["at_end_again"]
    assert Path(seen["transcript"]).stat().st_mode & 0o777 == 0o600
    assert seen["fixed"] == FIXED.rstrip("\n") and seen["rejected"] == TEXT.rstrip("\n")
    assert seen["lenses"] == ["Accept", "Reject"]
    (question,) = [one for one in seen["questions"] if "Allow once" in one["items"]]
    assert "app.py" in question["prompt"]
    assert seen["completed"] == ["/explain", "see @app.py", "@spawn explore "]
    assert seen["progress"].count("begin") == 3 and seen["last"] == "end"


@pytest.mark.req("G001", "F010", "F011")
def test_eglot(tmp_path: Path) -> None:
    emacs = shutil.which("emacs")
    if emacs is None:
        missing("emacs is not installed (Debian: apt install emacs-nox elpa-eglot)")
    env = environment(tmp_path)
    there = subprocess.run(
        [emacs, "-Q", "--batch", *packages(), "--eval", "(princ (require 'eglot nil t))"],
        capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip
    if there.stdout != "eglot":
        missing("this Emacs has no Eglot (Debian: apt install elpa-eglot)")
    guide("elisp", env["GUIDE"])
    seen = run([emacs, "-Q", "--batch", *packages(), "-l", str(HERE / "eglot.el")], env)
    assert "It greets." in seen["explained"]
    kept = re.search(r"\[With what it did: (.*?)\]", seen["explained"])
    assert kept and "It greets." in Path(kept[1]).read_text()
    assert seen["fixed"] == FIXED and seen["rejected"] == TEXT
    assert any("Allow once" in titles for titles in seen["questions"])
    assert seen["completed"] == ["/explain", "see @app.py", "@spawn explore "]
    assert seen["stopped"]


CAPABILITIES = types.ClientCapabilities(
    workspace=types.WorkspaceClientCapabilities(
        apply_edit=True,
        workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True),
    ),
    text_document=types.TextDocumentClientCapabilities(
        code_action=types.CodeActionClientCapabilities(
            data_support=True,
            resolve_support=types.ClientCodeActionResolveOptions(["edit", "command"]),
        )
    ),
    window=types.WindowClientCapabilities(
        work_done_progress=True, show_document=types.ShowDocumentClientCapabilities(support=True)
    ),
)


class Window:
    """A small editor on a client made with pygls: one open document, questions that are all
    answered with `Allow once`, and what a person saw."""

    def __init__(self, client: LanguageClient, file: Path) -> None:
        self.client = client
        self.uri = file.as_uri()
        self.text = file.read_text()
        self.version = 1
        self.questions: list[str] = []

        @client.feature(types.WINDOW_SHOW_MESSAGE_REQUEST)
        def ask(params: types.ShowMessageRequestParams) -> types.MessageActionItem:
            self.questions.append(params.message)
            (allow,) = (a for a in params.actions or () if a.title == "Allow once")
            return allow

        @client.feature(types.WORKSPACE_APPLY_EDIT)
        def apply(params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
            (change,) = params.edit.document_changes or ()
            assert isinstance(change, types.TextDocumentEdit)
            assert change.text_document.version == self.version
            for edit in reversed(change.edits):
                assert isinstance(edit, types.TextEdit)
                self._replace(edit)
            self._changed()
            return types.ApplyWorkspaceEditResult(applied=True)

    def _replace(self, edit: types.TextEdit) -> None:
        lines = self.text.split("\n")
        starts = [sum(len(line) + 1 for line in lines[:n]) for n in range(len(lines))]
        start, end = (starts[p.line] + p.character for p in (edit.range.start, edit.range.end))
        self.text = self.text[:start] + edit.new_text + self.text[end:]

    def _changed(self) -> None:
        self.version += 1
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(self.version, self.uri),
                [types.TextDocumentContentChangeWholeDocument(self.text)],
            )
        )

    def open(self) -> None:
        document = types.TextDocumentItem(self.uri, "python", self.version, self.text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(document))

    async def until(self, holds: Callable[[], Any]) -> Any:
        async with asyncio.timeout(PATIENCE):
            while not (found := holds()):
                await asyncio.sleep(0.05)
        return found

    async def choose(self, title: str, *diagnostics: types.Diagnostic) -> None:
        at = types.Position(1, 12)
        found = await self.client.text_document_code_action_async(
            types.CodeActionParams(
                types.TextDocumentIdentifier(self.uri),
                types.Range(at, at),
                types.CodeActionContext(list(diagnostics)),
            )
        )
        (action,) = (one for one in found or () if one.title == title)
        assert isinstance(action, types.CodeAction)
        if action.command is None:
            action = await self.client.code_action_resolve_async(action)
        assert action.command
        await self.run(action.command)

    async def run(self, command: types.Command) -> None:
        await self.client.workspace_execute_command_async(
            types.ExecuteCommandParams(command.command, command.arguments)
        )

    def reported(self, kind: str) -> list[types.ProgressToken]:
        """The tokens of the progresses that have come so far."""
        reports = self.client.progress_reports.items()
        return [token for token, some in reports if any(_kind(one) == kind for one in some)]


def _kind(value: Any) -> str:
    return str(value["kind"] if isinstance(value, dict) else value.kind)


@pytest.mark.req("G001", "F010", "F011")
async def test_a_client_made_with_pygls(tmp_path: Path) -> None:
    env = environment(tmp_path)
    client = make_test_lsp_client()
    window = Window(client, Path(env["FILE"]))
    command = [sys.executable, "-m", "magy_server", "lsp"]
    await client.start_io(*command, env={**os.environ, **env})
    try:
        folder = types.WorkspaceFolder(Path(env["FILE"]).parent.as_uri(), "project")
        await client.initialize_session(
            types.InitializeParams(CAPABILITIES, workspace_folders=[folder])
        )
        window.open()
        await window.choose("Magy: Explain this code")
        shown = await window.until(lambda: client.shown_documents)
        answer = Path(unquote(urlsplit(shown[0].uri).path))
        assert "It greets." in answer.read_text() and not shown[0].take_focus
        span = types.Range(types.Position(1, 11), types.Position(1, 18))
        await window.choose("Magy: Fix this problem", types.Diagnostic(span, "greets nobody"))
        await window.until(lambda: len(window.reported("end")) == 2)
        assert window.text == FIXED and "app.py" in window.questions[0]
        lenses = await client.text_document_code_lens_async(
            types.CodeLensParams(types.TextDocumentIdentifier(window.uri))
        )
        (reject,) = (one.command for one in lenses or () if one.command.title == "Reject")
        await window.run(reject)
        await window.until(lambda: window.text == TEXT)
        await window.run(types.Command("", "magy.prompt", arguments=[{"text": "Take your time"}]))
        begun = await window.until(lambda: window.reported("begin")[2:])
        client.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams(begun[0]))
        await window.until(lambda: begun[0] in window.reported("end"))
        await window.until(lambda: [m for m in client.messages if "cancelled" in m.message])
    finally:
        await client.shutdown_session()
        await client.stop()
