"""Skills in a session: named, attached, read by the model, changed meanwhile, and held to what they
state. The real server, and a model that keeps what it was sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from magy_server.config.shipped import shipped
from magy_server.core.agents.tree import stream_of
from magy_server.core.events import Prompted
from magy_server.core.skills.statement import uses
from magy_server.skills import installing
from magy_server.store.sqlite import SqliteStore
from tests.loopback import AnthropicServer, call, text

from .harness import SESSION, Person, RpcError, person
from .test_prompts import at_work, said, system


def bodies(model: AnthropicServer) -> list[Any]:
    """Of the requests, in order."""
    return [request.body for request in model.asked]


def put(folder: Path, name: str, body: str, more: str = "") -> Path:
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    file = place / "SKILL.md"
    file.write_text(f"---\nname: {name}\ndescription: About {name}.\n{more}---\n{body}\n")
    return file


@pytest.mark.req("E006", "E077", "E122")
async def test_the_model_is_told_of_skills_and_reads_one_with_its_files(
    root: Path, state: Path
) -> None:
    place = put(state / "skills", "release-notes", "Read the log first.").parent
    (place / "references").mkdir()
    (place / "references/style.md").write_text("Short sentences.\n")
    async with at_work(root, state) as (one, model):
        for arguments in (
            {"name": "release-notes"},
            {"name": "release-notes", "file": "references/style.md"},
            {"name": "release-notes", "file": "../../magy.toml"},
            {"name": "release-note"},
            {},
        ):
            model.reply(call("skill_invoke", arguments))
        model.reply(text("Done."))
        await one.turn("Write the notes.")
        told = system(bodies(model)[0])
        assert "- release-notes: About release-notes." in told
        assert "Read the log first." not in told and "test-driven-development" in told
        read, file, out, unknown, listed = (said(body) for body in bodies(model)[1:6])
        assert "Read the log first." in read and "- references/style.md" in read
        assert file.endswith("Short sentences.")
        assert "outside" in out and "api_key_env" not in out
        assert "There is no skill 'release-note'" in unknown
        assert "- release-notes: About" in listed and "- systematic-debugging: " in listed
    events = (state / "magy.db").read_bytes()
    assert b'"skill_read"' in events


@pytest.mark.req("E074", "E075", "A158")
async def test_a_skill_that_is_edited_meanwhile_is_the_new_one_at_the_next_prompt(
    root: Path, state: Path
) -> None:
    file = put(state / "skills", "greet", "Say hello.", "default-prompt: Greet the person.\n")
    async with at_work(root, state) as (one, model):
        for word in ("Hello.", "Bye."):
            model.reply(text(word))
        await one.turn("@greet")
        assert "Say hello.\n\nGreet the person." in said(bodies(model)[0])
        file.write_text(file.read_text().replace("Say hello.", "Say goodbye."))
        await one.turn("@greet in French", "p2")
        assert "Say goodbye." in said(bodies(model)[1])
        assert "Greet the person." not in said(bodies(model)[1])
        file.write_text("broken")
        with pytest.raises(RpcError, match=r"greet/SKILL\.md"):  # not without it, unnoticed
            await one.ask("@greet", "p3")
        assert len(bodies(model)) == 2
    store = await SqliteStore.open(state)
    entries = await store.read(stream_of(SESSION))
    await store.close()
    events = [entry.event for entry in entries if isinstance(entry.event, Prompted)]
    found = [use for event in events for use in uses(event.content)]
    assert [use.name for use in found] == ["greet", "greet"]
    assert len({use.hash for use in found}) == 2


@pytest.mark.req("E082")
async def test_a_skill_that_a_request_calls_for_goes_along_and_says_why(
    root: Path, state: Path
) -> None:
    more = 'capability:\n  phrases: [release notes]\n  files: ["*.py"]\n'
    put(state / "skills", "notes", "Read the log first.", more)
    async with at_work(root, state) as (one, model):
        for word in ("One.", "Two.", "Three."):
            model.reply(text(word))
        await one.turn("Write the release notes for @app.py")
        assert "Read the log first." in said(bodies(model)[0])
        notice = await one.update("notice")
        assert 'the prompt has "release notes", app.py (*.py)' in notice["description"]
        await one.turn("Again the release notes for @app.py", "p2")
        assert "Read the log first." not in said(bodies(model)[1])  # it has it already
        assert "The text of this skill is above" in said(bodies(model)[1])
        await one.turn("Only release notes", "p3")
        assert len(one.updates("notice")) == 2


NARROW = "allowed-tools: read_file\n"
WORK = """
prompt: @narrow
call: write_file {"path": "made.txt", "content": "made"}
---
text: Over.

prompt: read it
call: skill_invoke {"name": "narrow"}
---
call: read_file {"path": "app.py"}
---
call: write_file {"path": "made.txt", "content": "made"}
---
text: Over.

prompt: plain
call: write_file {"path": "made.txt", "content": "made"}
---
text: Over.
"""


def install(state: Path, place: Path, more: str = "") -> None:
    origin = put(place, "theirs", "Obey me.", more).parent
    (origin / "more.md").write_text("More orders.\n")
    with installing.candidate(str(origin)) as one:
        installing.install(one, str(state))


async def test_where_reading_skills_is_denied_none_is_told_of_or_given(
    root: Path, state: Path
) -> None:
    more = "capability:\n  phrases: [deploy, release]\n"
    put(state / "skills", "ship", "Obey.", more)
    denied = {"permission": {"skill": "deny"}}
    async with at_work(root, state, settings=denied) as (one, model):
        for number, prompt in enumerate(("@ship now", "deploy the release")):
            model.reply(text("Yes."))
            await one.turn(prompt, f"p{number}")
            assert "Obey." not in said(bodies(model)[-1])
        assert "skill_invoke" not in system(bodies(model)[0])


async def test_many_skills_are_listed_in_pages_and_the_nearest_first(
    root: Path, state: Path
) -> None:
    for number in range(150):
        put(state / "skills", f"s{number:03}", "x")
    put(root / ".magy/skills", "ours", "x")
    async with at_work(root, state) as (one, model):
        await one.request("workspace/trust", root=str(root), trusted=True)
        model.reply(call("skill_invoke", {}))
        model.reply(call("skill_invoke", {"input": "s098"}))
        model.reply(text("Done."))
        await one.turn("Go.")
        told = system(bodies(model)[0])
        assert "- ours: " in told and "- 51 more" in told and "s149" not in told
        first, second = (said(body) for body in bodies(model)[1:])
        assert "- s098: " in first and "s099" not in first and "input 's098'" in first
        assert "- s099: " in second and "- s149: " in second


ALLOWED = {"permission": {"edit": "allow", "write": "allow", "agent": "allow"}}
WRITE = 'call: write_file {"path": "made.txt", "content": "made"}\n---\ntext: Over.\n'


async def test_a_file_of_a_skill_is_read_by_the_rules_for_reading(root: Path, state: Path) -> None:
    places = [put(state / "skills", "mine", "x").parent, put(root / ".claude/skills", "ours", "x")]
    for place in (places[0], places[1].parent):
        (place / ".env").write_text("TOKEN=secret\n")
        (place / "keys.txt").write_text("secret\n")
        (place / "more.md").write_text("Read on.\n")
    denied = {"permission": {"read": {"*.env": "deny", "keys.txt": "deny"}}}
    async with at_work(root, state, settings=denied) as (one, model):
        await one.request("workspace/trust", root=str(root), trusted=True)
        for name in ("mine", "ours"):
            for file in ("", ".env", "keys.txt", "more.md"):
                model.reply(call("skill_invoke", {"name": name, "file": file}))
        model.reply(text("Done."))
        await one.turn("Go.")
        told = [said(body) for body in bodies(model)[1:]]
        assert not any("secret" in text for text in told)
        for listed, env, keys, more in (told[:4], told[4:]):
            assert "more.md" in listed and "keys.txt" not in listed and ".env" not in listed
            assert "`*.env` -> deny" in env and "`keys.txt` -> deny" in keys
            assert more.rstrip().endswith("Read on.")


@pytest.mark.req("G043")
async def test_what_an_installed_skill_brought_limits_as_long_as_it_is_in_the_conversation(
    root: Path, state: Path, tmp_path: Path
) -> None:
    install(state, tmp_path / "there")
    work = f"""
prompt: by file
call: skill_invoke {{"name": "theirs", "file": "more.md"}}
---
{WRITE}
prompt: again
{WRITE}"""
    async with person(root, state, work, settings=ALLOWED) as one:
        await one.new()
        for number, prompt in enumerate(("by file", "again")):
            await one.ask(prompt, f"p{number}")
            question = await one.question()
            assert "skill theirs is at work, which states no tool" in question["rule"]
            await one.respond(question["interactionId"], False)
            await one.end()
        assert not (root / "made.txt").exists()


async def test_a_skill_whose_words_call_for_it_again_limits_again(root: Path, state: Path) -> None:
    more = "allowed-tools: read_file\ncapability:\n  phrases: [deploy, release]\n"
    put(state / "skills", "ship", "Ship it.", more)
    work = f"""
prompt: deploy the first release
text: Yes.

prompt: deploy the second release
{WRITE}"""
    async with person(root, state, work, settings=ALLOWED) as one:
        await one.new()
        await one.turn("deploy the first release")
        await one.ask("deploy the second release", "p2")
        assert "skill ship is at work" in (await one.question())["rule"]


async def test_no_skill_widens_what_another_may(root: Path, state: Path) -> None:
    put(state / "skills", "narrow", "Look.", NARROW)
    put(state / "skills", "wide", "Write.", "allowed-tools: write_file\n")
    work = f"""
prompt: @narrow
call: skill_invoke {{"name": "wide"}}
---
{WRITE}"""
    async with person(root, state, work, settings=ALLOWED) as one:
        await one.new()
        await one.ask("@narrow", "p1")
        assert "skill narrow is at work" in (await one.question())["rule"]


async def test_a_child_that_outlives_the_turn_keeps_the_limit(root: Path, state: Path) -> None:
    put(state / "skills", "narrow", "Look.", "allowed-tools: read_file spawn_agent\n")
    child = 'call: spawn_agent {"agent": "general", "prompt": "child task", "task_name": "t"}'
    work = f"""
prompt: @narrow
{child}
---
text: Over.

prompt: child task
call: write_file {{"path": "first.txt", "content": "x"}}
---
{WRITE}"""
    async with person(root, state, work, settings=ALLOWED) as one:
        await one.new()
        await one.ask("@narrow", "p1")
        await one.answer()  # the child may be spawned
        first = await asked_below(one)
        await one.end()
        await one.respond(first["interactionId"], sessionId=first["sessionId"])
        question = await asked_below(one)
        assert "skill narrow is at work" in question["rule"]


async def asked_below(one: Person) -> Any:
    """The next question of a child."""
    told = await one.client.wait_for(
        "magy/interaction/changed",
        lambda params: any(found["sessionId"] != SESSION for found in params["opened"]),
    )
    return told["opened"][0]


@pytest.mark.req("G043")
async def test_what_a_skill_at_work_has_not_stated_is_asked_about(root: Path, state: Path) -> None:
    put(state / "skills", "narrow", "Look only.", NARROW)
    allowed = {"permission": {"edit": "allow", "write": "allow"}}
    async with person(root, state, WORK, settings=allowed) as one:
        await one.new()
        for number, prompt in enumerate(("@narrow", "read it")):
            await one.ask(prompt, f"p{number}")
            question = await one.question()
            assert "skill narrow is at work, which states only read_file" in question["rule"]
            await one.respond(question["interactionId"], False)
            await one.end()
            assert not (root / "made.txt").exists()
        await one.turn("plain", "p2")
        assert (root / "made.txt").read_text() == "made"


async def test_skills_of_a_project_wait_for_trust(root: Path, state: Path) -> None:
    put(root / ".claude/skills", "foreign-skill", "Obey.")
    async with at_work(root, state) as (one, model):
        for word in ("One.", "Two."):
            model.reply(text(word))
        with pytest.raises(RpcError, match=r"foreign-skill/SKILL\.md is in a project that is not"):
            await one.ask("@foreign-skill now", "p0")
        await one.turn("foreign-skill now")
        assert "Obey." not in said(bodies(model)[0])
        assert "foreign-skill" not in system(bodies(model)[0])
        await one.request("workspace/trust", root=str(root), trusted=True)
        await one.turn("@foreign-skill now", "p2")
        assert "Obey." in said(bodies(model)[1])


@pytest.mark.req("E080", "E081")
async def test_each_skill_that_comes_with_magy_is_at_work_when_it_is_named(
    root: Path, state: Path
) -> None:
    wanted = {
        "brainstorming", "systematic-debugging", "test-driven-development", "writing-plans",
        "executing-plans", "verification-before-completion", "git-workflow",
        "requesting-code-review", "receiving-code-review", "finishing-a-development-branch",
        "research", "research-add", "research-batch", "research-explore", "research-report",
        "skill-creator", "init", "dispatching-parallel-agents", "subagent-driven-development",
        "swarm",
    }  # fmt: skip
    assert wanted <= set(shipped().skills)
    async with at_work(root, state) as (one, model):
        for number, (name, skill) in enumerate(shipped().skills.items()):
            model.reply(text("Yes."))
            await one.turn(f"@{name} go on", f"p{number}")
            assert skill.body.splitlines()[-1] in said(bodies(model)[-1])


async def test_who_names_a_skill_that_is_a_tool_is_told_so(root: Path, state: Path) -> None:
    put(state / "skills", "convert", "Convert {{input}}.", "type: tool\n")
    async with at_work(root, state) as (one, model):
        model.reply(text("Done."))
        with pytest.raises(RpcError, match="'convert' is a tool for agents"):
            await one.ask("@convert now", "p0")
        await one.turn("@unknown now")
        assert len(bodies(model)) == 1
