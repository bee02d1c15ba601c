"""What a person decides, types and saves while a command runs is theirs, and never a hunk of the
command's; what the command changed is, all of it."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from .harness import Person, person

pytestmark = pytest.mark.needs("git")

TEXT = "".join(f"line {n}\n" for n in range(1, 31))
LET = {"permission": {"edit": "allow", "write": "allow", "bash": "allow"}}
RUNNING = "s2"
"""The session whose command runs."""
WAIT = "echo > ../{0}; while [ ! -e ../go{0} ]; do sleep 0.02; done"


@pytest.fixture
def file(root: Path) -> Path:
    """Of a repository, committed."""
    found = root / "a.txt"
    found.write_text(TEXT)
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "x"]):
        subprocess.run(["git", "-C", str(root), *words], check=True)
    return found


def call(tool: str, **arguments: Any) -> str:
    return f"call: {tool} {json.dumps(arguments)}\n"


def script(*parts: str, **more: str) -> str:
    """An agent edits lines 5 and 20, and a command has these parts: before each but the first it
    waits. `more`: what else is asked, and what is done then."""
    lines = [line for n, part in enumerate(parts) for line in (WAIT.format(n), part)][1:]
    edits = [
        call("edit_file", path="a.txt", old_text=f"line {n}\n", new_text=f"agent {n}\n")
        for n in (5, 20)
    ]
    run = call("bash", command="\n".join(lines), timeout=600)
    sections = {"edit": "---\n".join(edits), "run": run, **more}
    return "\n".join(
        f"prompt: {prompt}\n{body}---\ntext: Done.\n" for prompt, body in sections.items()
    )


def change(n: int) -> str:
    return f"sed -i 's/^line {n}$/command {n}/' a.txt"


def by_command(n: int) -> tuple[str, str]:
    return f"line {n}\n", f"command {n}\n"


class Watched:
    """A person beside a running command."""

    def __init__(self, one: Person, file: Path) -> None:
        self.one, self.file, self.editor = one, file, one.editor
        self.open = file.as_uri() in one.editor.texts
        self._keys = 0

    async def begin(self) -> None:
        """The agent's edits are under review, and the command runs."""
        await self.one.new()
        await self.one.turn("edit")
        await self.one.new(RUNNING)
        await self.ask("run", RUNNING)
        await self.reached(1)

    async def ask(self, text: str, session: str) -> None:
        about = {"configId": "bypass", "value": "on", "sessionId": session}
        await self.one.request("session/set_config_option", **about)
        await self.one.ask(text, sessionId=session)

    async def reached(self, part: int) -> None:
        while not (self.one.root / f"../{part}").exists():
            await asyncio.sleep(0.02)

    def go(self, part: int = 1) -> None:
        (self.one.root / f"../go{part}").touch()

    async def end(self, part: int = 1) -> None:
        self.one.client.forget()
        self.go(part)
        await self.one.end(RUNNING)
        self.load()

    def load(self) -> None:
        """As editors do with a file that was changed on disk and not in them."""
        if self.open and self.editor.text(self.file) != self.file.read_text():
            self.editor.type(self.file, 0, len(self.editor.text(self.file)), self.file.read_text())

    def type(self, old: str, new: str) -> None:
        at = self.editor.text(self.file).index(old)
        self.editor.type(self.file, at, at + len(old), new)

    async def save(self) -> None:
        """What is typed right before it may not have arrived when the file is written."""
        self.file.write_text(self.editor.text(self.file))
        self.say_saved()
        await self.heard()

    def say_saved(self) -> None:
        about = {"textDocument": {"uri": self.file.as_uri()}}
        self.one.client.notify("textDocument/didSave", about)

    async def heard(self) -> None:
        """All that the editor has said."""
        await self.review("get")

    def key(self) -> str:
        self._keys += 1
        return f"k{self._keys}"

    async def review(self, method: str, **params: Any) -> Any:
        about = {"uri": self.file.as_uri(), **params}
        return await self.one.client.request(f"magy/review/{method}", about)

    async def hunks(self) -> list[Mapping[str, Any]]:
        file = (await self.review("get"))["file"]
        return [] if file is None else file["hunks"]

    async def decide(self, decision: str, **params: Any) -> str:
        """About line 5."""
        (hunk,) = [one for one in await self.hunks() if one["oldText"] == "line 5\n"]
        about = {"hunkIds": [hunk["hunkId"]], "requestKey": self.key(), **params}
        return str((await self.review("resolve", decision=decision, **about))["decisionId"])

    async def undo(self, decision: str) -> str:
        about = {"decisionId": decision, "requestKey": self.key()}
        return str((await self.one.client.request("magy/review/undo", about))["decisionId"])

    async def restore(self, **params: Any) -> None:
        about = {"conversation": False, "requestKey": self.key(), **params}
        await self.one.request("checkpoint/restore", **about)

    async def told(self, session: str = RUNNING) -> list[tuple[str, str]]:
        """The hunks of a session that are left, as what was and what is."""
        return [
            (hunk["oldText"], hunk["newText"])
            for hunk in await self.hunks()
            if {origin["sessionId"] for origin in hunk["origins"]} == {session}
        ]


Deed = Callable[[Watched], Awaitable[object]]


async def reject(at: Watched) -> None:
    await at.decide("reject")


async def accept(at: Watched) -> None:
    await at.decide("accept")


async def amend(at: Watched) -> None:
    await at.decide("amend", text="amended 5\n")


async def undo(at: Watched) -> None:
    await at.undo(await at.decide("reject"))


async def redo(at: Watched) -> None:
    await at.undo(await at.undo(await at.decide("reject")))


async def roll_back(at: Watched) -> None:
    await at.restore(turnId="p1")


async def roll_back_and_forth(at: Watched) -> None:
    await at.restore(turnId="p1")
    await at.restore(undoes=f"k{at._keys}")


async def edit_by_request(at: Watched) -> None:
    text = "a.txt\n<<<<<<< SEARCH\nline 25\n=======\nscript 25\n>>>>>>> REPLACE\n"
    about = {"text": text, "requestKey": at.key(), "cwd": str(at.one.root)}
    assert (await at.one.client.request("magy/edit/apply", about))["applied"]


async def another_agent(at: Watched) -> None:
    await at.one.new("s3")
    await at.ask("other", "s3")
    await at.one.end("s3")


OTHER = call("edit_file", path="a.txt", old_text="line 25\n", new_text="other 25\n")
OTHERS = [("line 25\n", "other 25\n")]


async def type_and_save(at: Watched) -> None:
    at.type("line 1\n", "typed 1\n")
    await at.save()
    at.type("line 29\n", "typed 29\n")
    await at.save()


async def format_on_save(at: Watched) -> None:
    """A formatter changes the text while it is saved."""
    at.type("line 1\n", "typed 1\n")
    at.type("line 2\n", "formatted 2\n")
    await at.save()


async def format_after_save(at: Watched) -> None:
    """It changes the file, which the editor then loads."""
    at.type("line 1\n", "typed 1\n")
    formatted = at.editor.text(at.file).replace("line 2\n", "formatted 2\n")
    at.file.write_text(formatted)
    at.say_saved()
    at.load()
    await at.heard()


async def save_silently(at: Watched) -> None:
    at.type("line 1\n", "typed 1\n")
    await at.heard()
    at.file.write_text(at.editor.text(at.file))


async def rewrite(at: Watched) -> None:
    text = at.editor.text(at.file)
    row = text[: text.index("line 25\n")].count("\n")
    ends = {"start": {"line": row, "character": 0}, "end": {"line": row + 1, "character": 0}}
    about = {"uri": at.file.as_uri(), "range": ends, "instruction": "again", "requestKey": at.key()}
    found = await at.one.client.request("magy/rewrite/start", about)
    await at.one.client.wait_for(
        "magy/rewrite/draft",
        lambda p: p["sessionId"] == found["sessionId"] and p["state"] == "applied",
    )
    await at.save()


DEEDS: list[Deed] = [
    reject, accept, amend, undo, redo, roll_back, roll_back_and_forth, edit_by_request,
    another_agent,
]  # fmt: skip
EDITOR_DEEDS: list[Deed] = [
    type_and_save, format_on_save, format_after_save, save_silently, rewrite,
]  # fmt: skip


@pytest.mark.parametrize(
    ("opened", "deed"),
    [(opened, deed) for opened in (True, False) for deed in DEEDS]
    + [(True, deed) for deed in EDITOR_DEEDS],
    ids=lambda value: value.__name__ if callable(value) else "open" if value else "closed",
)
async def test_what_the_person_does_is_not_the_commands(
    root: Path, state: Path, file: Path, opened: bool, deed: Deed
) -> None:
    told = script(
        ":", change(10), change(15), other=OTHER, again=call("replace_selection", text="new 25\n")
    )
    async with person(root, state, told, settings=LET) as one:
        if opened:
            one.editor.open(file)
        at = Watched(one, file)
        await at.begin()
        await deed(at)
        at.go()
        await at.reached(2)
        before = file.read_text()
        at.load()
        assert await at.told() == []
        await at.end(2)
        assert await at.told() == [by_command(10), by_command(15)]
        assert file.read_text() == before.replace("line 15\n", "command 15\n")


async def test_what_a_command_itself_changes_back_is_its_own(
    root: Path, state: Path, file: Path
) -> None:
    """To what it was before the person rejected it, as well."""
    back = "sed -i 's/^line 5$/agent 5/' a.txt"
    async with person(root, state, script(":", back), settings=LET) as one:
        one.editor.open(file)
        at = Watched(one, file)
        await at.begin()
        await at.decide("reject")
        await at.end()
        assert await at.told() == [("line 5\n", "agent 5\n")]


async def test_files_that_the_person_makes_moves_and_removes(
    root: Path, state: Path, file: Path
) -> None:
    """In the editor, which says so. What the command does of that kind is its own."""
    for name in ("old.txt", "moved/a.txt", "moved/b.txt", "gone.txt", "theirs.txt"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(f"{name}\n")
    subprocess.run(["git", "-C", str(root), "add", "-A"], check=True)
    told = script(":", "rm theirs.txt; echo c > by_command.txt")
    async with person(root, state, told, settings=LET) as one:
        at = Watched(one, file)
        await at.begin()
        (root / "typed.txt").touch()
        one.editor.open(root / "typed.txt")
        one.editor.type(root / "typed.txt", 0, 0, "typed\n")
        (root / "typed.txt").write_text("typed\n")
        about = {"textDocument": {"uri": (root / "typed.txt").as_uri()}}
        one.client.notify("textDocument/didSave", about)
        (root / "made.txt").write_text("made\n")
        (root / "gone.txt").unlink()
        (root / "old.txt").rename(root / "new.txt")
        (root / "moved").rename(root / "elsewhere")
        said: dict[str, list[dict[str, str]]] = {
            "didCreateFiles": [{"uri": (root / "made.txt").as_uri()}],
            "didDeleteFiles": [{"uri": (root / "gone.txt").as_uri()}],
            "didRenameFiles": [
                {"oldUri": (root / old).as_uri(), "newUri": (root / new).as_uri()}
                for old, new in (("old.txt", "new.txt"), ("moved", "elsewhere"))
            ],
        }
        for method, files in said.items():
            one.client.notify(f"workspace/{method}", {"files": files})
        await at.heard()
        await at.end()
        listed = (await one.client.request("magy/review/list", {}))["files"]
        found = {(Path(one["uri"]).name, one["status"]) for one in listed}
        assert found == {
            ("a.txt", "modified"), ("theirs.txt", "deleted"), ("by_command.txt", "created"),
        }  # fmt: skip


@pytest.mark.parametrize("line", ["line 1\n", "command 10\n", "line 11\n"])
async def test_what_an_agent_changes_in_an_unsaved_buffer_is_still_to_be_decided(
    root: Path, state: Path, file: Path, line: str
) -> None:
    """The disk, of which the command's changes are told, does not have it."""
    async with person(root, state, script(change(10), ":", other=OTHER), settings=LET) as one:
        one.editor.open(file)
        at = Watched(one, file)
        await at.begin()
        at.load()
        at.type(line, f"typed {line}")
        await another_agent(at)
        assert "other 25\n" not in file.read_text()
        at.one.client.forget()
        at.go()
        await at.one.end(RUNNING)
        typed = line == "command 10\n"
        command = [("line 10\n", "typed command 10\n") if typed else by_command(10)]
        assert (await at.told("s3"), await at.told()) == (OTHERS, command)
        if not typed:  # what a person changed of it is not taken back
            await at.restore(turnId="p1", sessionId=RUNNING)
            assert (await at.told("s3"), await at.told()) == (OTHERS, [])
            await at.restore(undoes=f"k{at._keys}", sessionId=RUNNING)
            assert (await at.told("s3"), await at.told()) == (OTHERS, command)
        await at.save()
        assert (await at.told("s3"), await at.told()) == (OTHERS, command)


@pytest.mark.parametrize("half", [False, True], ids=["whole", "begun"])
async def test_what_the_editor_has_not_told_yet_is_waited_for(
    root: Path, state: Path, file: Path, half: bool
) -> None:
    """A busy editor has saved, and word of it is on its way: it comes before the answer to what the
    editor is asked. `half`: what it had written until then was an empty file."""
    async with person(root, state, script("true", "true"), settings=LET) as one:
        one.editor.open(file)
        about = Watched(one, file)
        await about.begin()
        await about.save()  # the agent's edits

        def late(params: Any) -> list[None]:
            file.write_text(about.editor.text(file))
            if held:
                one.client.send_raw(b"".join(held))
                held.clear()
                about.say_saved()
            return [None for _ in params["items"]]

        one.client.handlers["workspace/configuration"] = late
        held: list[bytes] = []
        send, one.client.send_raw = one.client.send_raw, held.append  # type: ignore[method-assign]
        about.type("line 11\n", "mine\n")
        one.client.send_raw = send  # type: ignore[method-assign]
        file.write_text("" if half else about.editor.text(file))
        one.client.forget()
        about.go()
        await one.end(RUNNING)
        hunks = [(one["oldText"], one["newText"]) for one in await about.hunks()]
        assert hunks == [("line 5\n", "agent 5\n"), ("line 20\n", "agent 20\n")]
