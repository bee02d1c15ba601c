"""Review in an editor that has no Magy code: lenses, code actions, commands and texts of the
standard protocol, and nothing else."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from .harness import Person, RpcError, person
from .test_review import TEXT, TWO, path, worked

__all__ = ["path"]

CAPABILITIES: dict[str, Any] = {
    "workspace": {
        "applyEdit": True,
        "workspaceEdit": {"documentChanges": True},
        "codeLens": {"refreshSupport": True},
        "textDocumentContent": {"dynamicRegistration": True},
    },
    "textDocument": {
        "synchronization": {},
        "codeAction": {"tagSupport": {"valueSet": [1]}},
    },
    "window": {"showDocument": {"support": True}},
}


class Plain:
    """An editor with an ordinary language client."""

    def __init__(self, one: Person) -> None:
        self.one = one
        self.client = one.client
        self.asked: list[tuple[str, Any]] = []
        """Requests of the server that such a client answers."""
        for method in ("workspace/codeLens/refresh", "workspace/textDocumentContent/refresh",
                       "client/registerCapability"):  # fmt: skip
            self.client.handlers[method] = self._noting(method, None)
        self.client.handlers["window/showDocument"] = self._noting(
            "window/showDocument", {"success": True}
        )

    def _noting(self, method: str, answer: Any) -> Any:
        def note(params: Any) -> Any:
            self.asked.append((method, params))
            return answer

        return note

    async def asked_for(self, method: str, count: int = 1) -> list[Any]:
        def found() -> list[Any]:
            params = [params for name, params in self.asked if name == method]
            return params if len(params) >= count else []

        result: list[Any] = await self.client.wait_until(found, why=f"{count} times {method}")
        return result

    async def lenses(self, path: Path) -> list[Any]:
        document = {"textDocument": {"uri": path.as_uri()}}
        found: list[Any] = await self.client.request("textDocument/codeLens", document)
        return found

    async def titles(self, path: Path) -> list[tuple[int, str]]:
        return [
            (lens["range"]["start"]["line"], lens["command"]["title"])
            for lens in await self.lenses(path)
        ]

    async def actions(self, path: Path, line: int, **context: Any) -> list[Any]:
        """Those of the review; `test_plain_actions.py` has the others."""
        at = {"line": line, "character": 0}
        params = {
            "textDocument": {"uri": path.as_uri()},
            "range": {"start": at, "end": at},
            "context": {"diagnostics": [], **context},
        }
        found: list[Any] = await self.client.request("textDocument/codeAction", params)
        kinds = ("quickfix.magy.accept", "quickfix.magy.reject")
        return [action for action in found if action["kind"] in kinds]

    async def run(self, command: Any) -> Any:
        """As a click on a lens or the choice of an action does."""
        params = {key: command[key] for key in ("command", "arguments") if key in command}
        return await self.client.request("workspace/executeCommand", params)

    async def text(self, uri: str) -> str:
        found = await self.client.request("workspace/textDocumentContent", {"uri": uri})
        return str(found["text"])


def plain_person(root: Path, state: Path, script: str = TWO, **options: Any) -> Any:
    about = {"knows_magy": False, "capabilities": CAPABILITIES, **options}
    return person(root, state, script, **about)


@pytest.mark.req("G001", "G010")
async def test_lenses_accept_and_reject(root: Path, state: Path, path: Path) -> None:
    async with plain_person(root, state) as one:
        editor = Plain(one)
        one.editor.open(path)
        assert await editor.lenses(path) == []
        await worked(one)
        await editor.asked_for("workspace/codeLens/refresh")
        assert await editor.titles(path) == [
            (2, "Accept"), (2, "Reject"), (2, "Accept all in file (2)"), (2, "Reject all"),
            (9, "Accept"), (9, "Reject"),
        ]  # fmt: skip
        lenses = await editor.lenses(path)
        rejected = await editor.run(lenses[5]["command"])
        assert rejected["results"][0]["state"] == "rejected"
        assert one.editor.text(path) == TEXT.replace("line 3\n", "LINE 3\n")
        assert await editor.titles(path) == [(2, "Accept"), (2, "Reject")]
        await editor.run((await editor.lenses(path))[0]["command"])
        assert await editor.lenses(path) == []
        assert one.editor.text(path) == TEXT.replace("line 3\n", "LINE 3\n")
        assert one.client.notifications("magy/review/changed") == []


@pytest.mark.req("G001")
async def test_code_actions_at_the_cursor(root: Path, state: Path, path: Path) -> None:
    async with plain_person(root, state) as one:
        editor = Plain(one)
        one.editor.open(path)
        await worked(one)
        assert await editor.actions(path, 0) == []
        found = await editor.actions(path, 2)
        assert [(a["title"], a["kind"], a["tags"]) for a in found] == [
            ("Accept this change of build", "quickfix.magy.accept", [1]),
            ("Reject this change of build", "quickfix.magy.reject", [1]),
            ("Accept all 2 changes in this file", "quickfix.magy.accept", [1]),
            ("Reject all 2 changes in this file", "quickfix.magy.reject", [1]),
        ]
        assert len(await editor.actions(path, 10, only=["quickfix"])) == 4
        assert len(await editor.actions(path, 10, only=["quickfix.magy.reject"])) == 2
        for other in ("source.organizeImports", "refactor", "quickfix.magy.acc"):
            assert await editor.actions(path, 2, only=[other]) == []
        await editor.run(found[1]["command"])
        assert one.editor.text(path) == TEXT.replace("line 10\n", "LINE 10\nand more\n")
        assert await editor.actions(path, 2) == []
        await editor.run((await editor.actions(path, 9))[1]["command"])
        assert one.editor.text(path) == TEXT


@pytest.mark.req("G001")
async def test_an_editor_that_shows_its_edits_only_after_the_answer(
    root: Path, state: Path, path: Path
) -> None:
    """Eglot waits for the answer to a command, and sends no didChange meanwhile."""
    async with plain_person(root, state) as one:
        editor = Plain(one)
        one.editor.open(path)
        await worked(one)
        one.editor.blocking = True
        here = {"uri": path.as_uri(), "line": 2, "reason": "Keep it small"}
        assert await editor.run({"command": "magy.hunk.reject", "arguments": [here]}) is None
        await one.client.wait_until(lambda: one.editor.text(path).count("LINE 3") == 0)
        while len(await editor.titles(path)) > 2:
            await asyncio.sleep(0.02)
        rejected = await editor.run({"command": "magy.file.rejectAll", "arguments": [
            {"uri": path.as_uri()}
        ]})  # fmt: skip
        assert rejected is None
        await one.client.wait_until(lambda: one.editor.text(path) == TEXT)
        while await editor.titles(path):
            await asyncio.sleep(0.02)
        await one.update("notice", lambda u: "Keep it small" in str(u))


@pytest.mark.req("G001")
async def test_an_editor_that_answers_nothing_before_it_is_answered(
    root: Path, state: Path, path: Path
) -> None:
    """The decision goes on when the command is answered; what came of it is then seen."""
    async with plain_person(root, state) as one:
        editor = Plain(one)
        one.editor.open(path)
        await worked(one)
        apply = one.client.handlers["workspace/applyEdit"]

        async def later(params: Any) -> Any:
            idle = asyncio.Event()
            one.client.when_idle(idle.set)
            await idle.wait()
            return await apply(params)

        one.client.handlers["workspace/applyEdit"] = later
        reject = {"command": "magy.file.rejectAll", "arguments": [{"uri": path.as_uri()}]}
        assert await editor.run(reject) is None
        await one.client.wait_until(lambda: one.editor.text(path) == TEXT)
        while await editor.titles(path):
            await asyncio.sleep(0.02)


async def test_all_of_a_file_at_once(root: Path, state: Path, path: Path) -> None:
    async with plain_person(root, state) as one:
        editor = Plain(one)
        one.editor.open(path)
        await worked(one)
        reject = (await editor.lenses(path))[3]["command"]
        assert reject["command"] == "magy.file.rejectAll"
        await editor.run(reject)
        assert one.editor.text(path) == TEXT
        assert await editor.lenses(path) == []


async def test_commands_for_keys(root: Path, state: Path, path: Path) -> None:
    """Who binds a key knows the cursor, and no hunk by its name."""
    async with plain_person(root, state) as one:
        editor = Plain(one)
        one.editor.open(path)
        await worked(one)
        there = await editor.run({"command": "magy.review.next"})
        (shown,) = await editor.asked_for("window/showDocument")
        assert shown["uri"] == path.as_uri() and shown["selection"] == there["range"]
        assert there["range"]["start"] == {"line": 2, "character": 0}
        here = {"uri": path.as_uri(), "line": 2}
        there = await editor.run({"command": "magy.review.next", "arguments": [here]})
        assert there["range"]["start"]["line"] == 9
        said = {"command": "magy.hunk.comment", "arguments": [{**here, "text": "Really?"}]}
        assert (await editor.run(said))["results"][0]["state"] == "commented"
        await editor.run({"command": "magy.hunk.reject", "arguments": [{**here, "reason": "No"}]})
        assert "line 3\n" in one.editor.text(path)
        with pytest.raises(RpcError, match="line 3") as gone:
            await editor.run({"command": "magy.hunk.reject", "arguments": [here]})
        assert (gone.value.code, gone.value.reason) == (-32803, "not_found")
        for name, arguments in (
            ("magy.hunk.accept", []), ("magy.hunk.accept", ["x"]), ("magy.hunk.accept", [{}]),
            ("magy.hunk.accept", [{"uri": path.as_uri()}]), ("magy.file.acceptAll", [{"uri": 1}]),
            ("magy.hunk.accept", [{"uri": path.as_uri(), "line": -1}]),
            ("magy.hunk.comment", [{**here, "line": 9}]),
        ):  # fmt: skip
            with pytest.raises(RpcError) as wrong:
                await editor.run({"command": name, "arguments": arguments})
            assert wrong.value.code == -32602, (name, arguments)


async def test_a_click_on_an_old_lens_changes_nothing(root: Path, state: Path, path: Path) -> None:
    async with plain_person(root, state) as one:
        editor = Plain(one)
        one.editor.open(path)
        await worked(one)
        lenses = await editor.lenses(path)
        await editor.run(lenses[1]["command"])
        after = one.editor.text(path)
        found = await editor.run(lenses[1]["command"])
        assert found["results"][0]["state"] == "stale"
        assert one.editor.text(path) == after
        shown = await one.client.wait_for("window/showMessage")
        assert "That hunk no longer exists" in shown["message"]


@pytest.mark.req("G001")
async def test_the_base_can_be_shown_beside_the_file(root: Path, state: Path, path: Path) -> None:
    async with plain_person(root, state) as one:
        editor = Plain(one)
        one.editor.open(path)
        (asked,) = await editor.asked_for("client/registerCapability")
        (registration,) = asked["registrations"]
        assert registration["method"] == "workspace/textDocumentContent"
        assert registration["registerOptions"] == {"schemes": ["magy"]}
        await worked(one)
        base = f"magy://base{path}"
        assert await editor.text(base) == TEXT
        await editor.run((await editor.lenses(path))[0]["command"])
        assert {"uri": base} in await editor.asked_for("workspace/textDocumentContent/refresh")
        assert await editor.text(base) == TEXT.replace("line 3\n", "LINE 3\n")
        await editor.run((await editor.lenses(path))[0]["command"])
        assert await editor.text(base) == one.editor.text(path)
        for wrong in (
            "magy://elsewhere/x",
            "magy:/base/x",
            "file:///x",
            "magy:",
            "magy://base/a%00b",
        ):
            with pytest.raises(RpcError) as error:
                await editor.text(wrong)
            assert error.value.code == -32602
        with pytest.raises(RpcError) as outside:
            await editor.text("magy://base/etc/passwd")
        assert outside.value.code == -32803


async def test_proposals_have_lenses_and_a_text(root: Path, state: Path, path: Path) -> None:
    async with plain_person(root, state) as one:
        editor = Plain(one)
        one.editor.open(path)
        await worked(one, review="propose")
        titles = await editor.titles(path)
        assert titles[:2] == [(2, "Accept (apply)"), (2, "Reject")]
        wanted = TEXT.replace("line 3\n", "LINE 3\n").replace("line 10\n", "LINE 10\nand more\n")
        assert await editor.text(f"magy://proposed{path}") == wanted
        assert one.editor.text(path) == TEXT
        await editor.run((await editor.lenses(path))[2]["command"])
        assert one.editor.text(path) == wanted


async def test_lenses_follow_typing(root: Path, state: Path, path: Path) -> None:
    async with plain_person(root, state) as one:
        editor = Plain(one)
        one.editor.open(path)
        await worked(one)
        assert (await editor.titles(path))[0][0] == 2
        refreshed = len(await editor.asked_for("workspace/codeLens/refresh"))
        one.editor.type(path, 0, 0, "\n\n")
        assert (await editor.titles(path))[0][0] == 4
        await editor.asked_for("workspace/codeLens/refresh", refreshed + 1)
        at = one.editor.text(path).index("LINE 3\n")
        one.editor.type(path, at, at + 4, "line")
        assert (await editor.titles(path))[0] == (11, "Accept")


async def test_a_deletion_is_named(root: Path, state: Path, path: Path) -> None:
    script = """call: edit_file {"path": "app.py", "old_text": "line 2\\nline 3\\n", "new_text": ""}
---
text: Done.
"""
    async with plain_person(root, state, script) as one:
        editor = Plain(one)
        one.editor.open(path)
        await worked(one)
        ((line, title), _) = await editor.titles(path)
        assert (line, title) == (1, "Accept (removed 2 lines)")
        assert len(await editor.actions(path, line)) == 2


@pytest.mark.req("G015")
async def test_lenses_are_there_after_a_restart_asked_for_at_once(
    root: Path, state: Path, path: Path
) -> None:
    """The first request comes together with `initialized`: long before there is an engine."""
    async with plain_person(root, state) as one:
        await worked(one)
    async with plain_person(root, state) as one:
        editor = Plain(one)
        one.editor.open(path)
        assert len(await editor.lenses(path)) == 6


async def test_what_the_server_announces(root: Path, state: Path) -> None:
    async with person(root, state, TWO) as one:
        (answer,) = [m for m in one.client.received if m.get("id") == 1 and "result" in m]
        can = answer["result"]["capabilities"]
        assert can["codeLensProvider"]["resolveProvider"] is False
        assert can["codeActionProvider"]["codeActionKinds"] == [
            "quickfix.magy.accept", "quickfix.magy.reject",
            "quickfix.magy", "refactor.magy", "refactor.rewrite.magy", "source.magy",
        ]  # fmt: skip
        assert can["codeActionProvider"]["resolveProvider"] is True
        assert can["textDocumentSync"]["openClose"] is True
        assert can["executeCommandProvider"]["commands"] == [
            "magy.hunk.accept", "magy.hunk.reject", "magy.hunk.comment", "magy.file.acceptAll",
            "magy.file.rejectAll", "magy.review.next", "magy.review.previous",
            "magy.action.run", "magy.prompt", "magy.rewrite", "magy.cancel", "magy.session.new",
            "magy.transcript.show", "magy.child.spawn", "magy.child.list", "magy.child.close",
        ]  # fmt: skip


async def test_a_client_that_draws_hunks_itself_gets_no_lenses(
    root: Path, state: Path, path: Path
) -> None:
    async with person(root, state, TWO, offers={"review": True}) as one:
        editor = Plain(one)
        one.editor.open(path)
        await worked(one)
        await one.client.wait_for("magy/review/changed", lambda p: p["files"][0]["pending"] == 2)
        assert await editor.lenses(path) == []
        assert len(await editor.actions(path, 2)) == 4


async def test_malformed_standard_requests(root: Path, state: Path, path: Path) -> None:
    async with plain_person(root, state) as one:
        uri = {"textDocument": {"uri": path.as_uri()}}
        for method, params in (
            ("textDocument/codeLens", {}), ("textDocument/codeLens", {"textDocument": []}),
            ("textDocument/codeAction", uri), ("workspace/textDocumentContent", {}),
            ("textDocument/codeAction", {**uri, "range": {"start": 1}}),
        ):  # fmt: skip
            with pytest.raises(RpcError) as error:
                await one.client.request(method, params)
            assert error.value.code == -32602
        other = {"textDocument": {"uri": "untitled:Untitled-1"}}
        assert await one.client.request("textDocument/codeLens", other) == []
