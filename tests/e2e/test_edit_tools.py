"""The tools that edit, through the real process: what the person typed since the model looked,
which tool which model gets, and changes that are only proposed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from magy_server.engine.briefing import edit_style

from .harness import SESSION, person

FREE = {"permission": {"edit": "allow"}}
LINES = "".join(f"line {n}\n" for n in range(1, 13))
READ_AND_EDIT = """\
call: read_file {"path": "a.txt"}
---
call: bash {"command": "make"}
---
call: edit_file {"path": "a.txt", "old_text": "line 10\\n", "new_text": "LINE TEN\\n"}
---
text: {{last}}
"""
PATCH = """\
call: apply_patch {"patch": "*** Begin Patch\\n*** Update File: a.txt\\n@@\\n line 9\\n-line 10\\n\
+LINE TEN\\n line 11\\n*** Add File: b.txt\\n+new\\n*** End Patch\\n"}
---
text: {{last}}
"""


@pytest.fixture
def path(root: Path) -> Path:
    path = root / "a.txt"
    path.write_text(LINES)
    return path


@pytest.mark.req("G011")
async def test_what_was_typed_since_the_model_looked_is_merged(
    root: Path, state: Path, path: Path
) -> None:
    async with person(root, state, READ_AND_EDIT, settings=FREE) as one:
        await one.new()
        one.editor.open(path)
        await one.ask("Change it")
        asked = await one.question()  # the model has read, and waits
        one.editor.type(path, 0, 0, "typed meanwhile\n")
        await one.respond(asked["interactionId"], False)
        await one.end()
        assert one.editor.text(path) == "typed meanwhile\n" + LINES.replace("line 10", "LINE TEN")
        assert "had changed since you read it" in one.said()
        assert "+typed meanwhile" in one.said()


@pytest.mark.req("G013")
async def test_the_same_line_typed_over_is_a_conflict_that_the_model_sees(
    root: Path, state: Path, path: Path
) -> None:
    async with person(root, state, READ_AND_EDIT, settings=FREE) as one:
        await one.new()
        one.editor.open(path)
        await one.ask("Change it")
        asked = await one.question()
        at = LINES.index("line 10") + len("line 10")
        one.editor.type(path, at, at, ", mine now")
        await one.respond(asked["interactionId"], False)
        await one.end()
        assert one.editor.text(path) == LINES.replace("line 10", "line 10, mine now")
        assert "mine now" in one.said() and "LINE TEN" in one.said()


async def test_edits_in_the_project_need_no_answer(root: Path, state: Path, path: Path) -> None:
    script = READ_AND_EDIT.replace('call: bash {"command": "make"}\n---\n', "")
    async with person(root, state, script, settings={"permission": {}}) as one:
        await one.new()
        await one.turn("Change it")
        assert one.updates("_magy_interaction") == []
        assert path.read_text() == LINES.replace("line 10", "LINE TEN")


async def test_a_model_gets_the_tool_of_its_style(root: Path, state: Path, path: Path) -> None:
    async with person(root, state, PATCH, settings=FREE) as one:
        await one.new()
        await one.turn("Change it")
        assert "There is no tool 'apply_patch'" in one.said()
        assert path.read_text() == LINES
    patching = {**FREE, "edits": {"style": "patch"}}
    async with person(root, state / "other", PATCH, settings=patching) as one:
        await one.new()
        await one.turn("Change it")
        assert "Patched a.txt." in one.said()
        assert path.read_text() == LINES.replace("line 10", "LINE TEN")
        assert (root / "b.txt").read_text() == "new\n"


@pytest.mark.parametrize(
    ("model", "style"),
    [
        ("openai/gpt-5.5", "patch"),
        ("openai/o3", "patch"),
        ("openrouter/openai/gpt-6-mini", "patch"),
        ("openai/codex-large", "patch"),
        ("anthropic/claude-sonnet-5", "str_replace"),
        ("openai/gpt-4o", "str_replace"),
        ("ollama/qwen3-coder", "str_replace"),
        ("script/script", "str_replace"),
    ],
)
def test_the_style_of_a_family(model: str, style: str) -> None:
    assert edit_style(model) == style


PROPOSED = """\
call: edit_file {"path": "a.txt", "old_text": "line 10\\n", "new_text": "LINE TEN\\n"}
---
call: edit_file {"path": "a.txt", "old_text": "LINE TEN\\n", "new_text": "TEN LINES\\n"}
---
call: read_file {"path": "a.txt"}
---
text: {{last}}
"""


async def test_a_proposal_builds_on_the_one_before_and_touches_nothing(
    root: Path, state: Path, path: Path
) -> None:
    proposing = {"edits": {"review": "propose"}}
    async with person(root, state, PROPOSED, settings=proposing) as one:
        await one.new()
        one.editor.open(path)
        await one.turn("Change it")
        assert one.updates("_magy_interaction") == [], "nothing is done, so nothing is asked"
        assert one.editor.text(path) == path.read_text() == LINES
        assert "TEN LINES" in one.said() and "that you proposed" in one.said()
        file = await one.client.request("magy/review/get", {"uri": path.as_uri(), "proposed": True})
        (hunk,) = file["file"]["hunks"]
        assert (hunk["oldText"], hunk["newText"]) == ("line 10\n", "TEN LINES\n")


REPLACED = """\
call: apply_patch {"patch": "*** Begin Patch\\n*** Delete File: a.txt\\n*** End Patch\\n"}
---
call: read_file {"path": "a.txt"}
---
call: apply_patch {"patch": "*** Begin Patch\\n*** Add File: a.txt\\n+new\\n*** End Patch\\n"}
---
text: {{last}}
"""


async def test_a_file_that_is_proposed_to_go_can_be_proposed_anew(
    root: Path, state: Path, path: Path
) -> None:
    proposing = {"edits": {"review": "propose", "style": "patch"}}
    async with person(root, state, REPLACED, settings=proposing) as one:
        await one.new()
        await one.turn("Replace it")
        assert path.read_text() == LINES
        assert "You have proposed to remove a.txt" in one.outputs()[1]
        about = {"uri": path.as_uri(), "proposed": True}
        hunks = (await one.client.request("magy/review/get", about))["file"]["hunks"]
        accept = {**about, "decision": "accept", "hunkIds": [hunk["hunkId"] for hunk in hunks]}
        await one.client.request("magy/review/resolve", {**accept, "requestKey": "k"})
        assert path.read_text() == "new\n"


TWO_SESSIONS = """\
prompt: first
call: edit_file {"path": "a.txt", "old_text": "line 10\\n", "new_text": "FROM THE FIRST\\n"}
---
text: Done.
prompt: look
call: read_file {"path": "a.txt"}
---
text: {{last}}
prompt: second
call: edit_file {"path": "a.txt", "old_text": "line 3\\n", "new_text": "FROM THE SECOND\\n"}
---
text: {{last}}
"""


async def test_what_another_session_proposes_is_not_taken_for_ones_own(
    root: Path, state: Path, path: Path
) -> None:
    proposing = {"edits": {"review": "propose"}}
    other, about = f"{SESSION}-2", {"uri": path.as_uri(), "proposed": True}
    async with person(root, state, TWO_SESSIONS, settings=proposing) as one:

        async def ask(text: str, id: str) -> str:
            prompt = [{"type": "text", "text": text}]
            await one.request("session/prompt", sessionId=other, messageId=id, prompt=prompt)
            await one.end(other)
            return str(one.updates("agent_message", other)[-1]["content"][0]["text"])

        async def hunks() -> list[dict[str, Any]]:
            file = (await one.client.request("magy/review/get", about))["file"]
            return list(file["hunks"])

        await one.new()
        await one.turn("first")
        await one.new(other)
        seen = await ask("look", "p1")
        assert "line 10" in seen and "FROM THE FIRST" not in seen
        assert f"without the changes that session {SESSION} proposes" in seen
        refused = await ask("second", "p2")
        assert f"Session {SESSION} has proposed changes to a.txt" in refused
        (hunk,) = await hunks()
        assert hunk["newText"] == "FROM THE FIRST\n"
        accept = {**about, "decision": "accept", "hunkIds": [hunk["hunkId"]], "requestKey": "k"}
        await one.client.request("magy/review/resolve", accept)
        assert "Proposed a.txt" in await ask("second", "p3")
        (hunk,) = await hunks()
        assert hunk["newText"] == "FROM THE SECOND\n"
        assert [origin["sessionId"] for origin in hunk["origins"]] == [other]
        assert path.read_text() == LINES.replace("line 10", "FROM THE FIRST")
