"""What the editor knows, for the model: asked over the wire, only where the client announced it,
and believed no further than it goes. Behind the server is a model that keeps what it was sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.loopback import AnthropicServer, call, text
from tests.lsp.client import GONE, RpcError, uri_of
from tests.patience import PATIENCE

from .harness import Person, findable, person
from .test_prompts import at_work, said

ALL = {"save": True, "diagnostics": True, "definition": True, "references": True, "symbols": True,
       "eval": "elisp"}  # fmt: skip
TOOLS = {"diagnostics", "find_definition", "find_references", "list_symbols", "emacs_eval"}
APP = "import lib\n\ngrüße = '😀'; x = lib.greet('you')\n"
LIB = "# Greetings\n\ndef greet(name):\n    text = 'Hello ' + name\n    return text\n\nx = 1\n"


@pytest.fixture
def root(root: Path) -> Path:
    (root / "app.py").write_text(APP)
    (root / "lib.py").write_text(LIB)
    (root / ".env").write_text("KEY=hidden-value\n")
    return root


@asynccontextmanager
async def knowing(
    root: Path, state: Path, editor: Mapping[str, Any] = ALL, **start: Any
) -> AsyncIterator[tuple[Person, AnthropicServer]]:
    async with at_work(root, state, offers={"editor": dict(editor)}, **start) as (one, model):
        yield one, model


def span(line: int, start: int = 0, last: int | None = None, end: int = 1) -> dict[str, Any]:
    last = line if last is None else last
    return {
        "start": {"line": line, "character": start},
        "end": {"line": last, "character": end},
    }


def location(path: Path, line: int, shown: str = "", **more: Any) -> dict[str, Any]:
    return {"uri": uri_of(path), "range": span(line), "text": shown, **more}


def answers(one: Person, method: str, answer: Any) -> list[Any]:
    """What the server asks from now on."""
    asked: list[Any] = []

    def handle(params: Any) -> Any:
        asked.append(params)
        if isinstance(answer, RpcError):
            raise answer
        return answer

    one.client.handlers[f"magy/editor/{method}"] = handle
    return asked


async def use(one: Person, model: AnthropicServer, tool: str, /, **arguments: Any) -> str:
    """The model calls a tool; what it then gets."""
    model.reply(call(tool, arguments))
    model.reply(text("Done."))
    await one.turn("Go", f"p{len(model.asked)}")
    return said(model.asked[-1].body)


def offered(model: AnthropicServer) -> set[str]:
    body = model.asked[-1].body
    told = "".join(part["text"] for part in body["system"])
    return {tool["name"] for tool in body["tools"]} | findable(told)


# --- offering -------------------------------------------------------------------------------------


@pytest.mark.req("G007")
@pytest.mark.parametrize(
    ("announced", "tools"),
    [
        ({}, set()),
        ({"diagnostics": True, "symbols": True}, {"diagnostics", "list_symbols"}),
        ({"eval": "elisp"}, {"emacs_eval"}),
        ({"eval": "lua", "references": False}, set()),
        (ALL, TOOLS),
    ],
)
async def test_only_what_the_editor_announced_is_offered(
    root: Path, state: Path, announced: dict[str, Any], tools: set[str]
) -> None:
    async with knowing(root, state, announced) as (one, model):
        model.reply(text("Yes."))
        await one.turn("Hello")
        assert offered(model) & TOOLS == tools
        assert "read_file" in offered(model)


async def test_a_tool_that_is_not_offered_cannot_be_called(root: Path, state: Path) -> None:
    async with knowing(root, state, {}) as (one, model):
        asked = answers(one, "eval", {"value": "1"})
        assert "There is no tool 'emacs_eval'" in await use(one, model, "emacs_eval", code="1")
        assert asked == []


async def test_rules_take_them_away(root: Path, state: Path) -> None:
    rules = {"permission": {"editor": "deny", "emacs_eval": "deny"}}
    async with knowing(root, state, settings=rules) as (one, model):
        model.reply(text("Yes."))
        await one.turn("Hello")
        assert not offered(model) & TOOLS


@pytest.mark.req("G007")
async def test_a_rule_may_have_the_person_asked(root: Path, state: Path) -> None:
    async with knowing(root, state, settings={"permission": {"editor": "ask"}}) as (one, model):
        asked = answers(one, "symbols", {"symbols": []})
        model.reply(call("list_symbols", {"query": "gr"}))
        model.reply(text("Done."))
        await one.ask("Go")
        question = await one.question()
        assert question["title"] == "Symbols of gr" and not asked
        await one.respond(question["interactionId"], False, reason="not now")
        await one.end()
        assert "not now" in said(model.asked[-1].body) and not asked


# --- definitions, references ----------------------------------------------------------------------


@pytest.mark.req("G007")
async def test_a_definition_is_asked_for_at_the_name_in_the_live_text(
    root: Path, state: Path
) -> None:
    async with knowing(root, state) as (one, model):
        one.editor.open(root / "app.py", APP + "lib.other(1)\n")
        found = {"locations": [location(root / "lib.py", 2, "def greet(name):")]}
        asked = answers(one, "definition", found)
        got = await use(one, model, "find_definition", path="app.py", name="greet", line=3)
        assert got == "lib.py:3: def greet(name):"
        # the emoji counts as two, as UTF-16 has it
        place = {"line": 2, "character": 22}
        assert asked == [{"uri": uri_of(root / "app.py"), "position": place, "name": "greet"}]
        await use(one, model, "find_definition", path="app.py", name="other")
        assert asked[1]["position"] == {"line": 3, "character": 4}, "unsaved, found by itself"


async def test_a_name_that_is_not_there_is_said(root: Path, state: Path) -> None:
    async with knowing(root, state) as (one, model):
        asked = answers(one, "references", {"locations": []})
        tool = "find_references"
        got = await use(one, model, tool, path="lib.py", name="greet", line=1)
        assert got == "Line 1 of lib.py does not have 'greet' in it; it is: # Greetings"
        assert "only 8 lines" in await use(one, model, tool, path="lib.py", name="x", line=99)
        assert "does not have 'zzz'" in await use(one, model, tool, path="lib.py", name="zzz")
        assert "outside the workspace" in await use(one, model, tool, path="../x", name="x")
        assert "does not exist" in await use(one, model, tool, path="no.py", name="x")
        assert asked == []
        got = await use(one, model, tool, path="lib.py", name="greet")
        assert got == "The editor knows no references of greet."


@pytest.mark.req("G007")
async def test_what_the_rules_keep_and_what_lies_outside_is_not_shown(
    root: Path, state: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "elsewhere.py"
    link = root / "link.py"
    link.symlink_to(root / ".env")
    async with knowing(root, state) as (one, model):
        found = [
            location(root / "app.py", 2, "grüße = lib.greet('you')"),
            location(root / ".env", 0, "KEY=hidden-value"),
            location(link, 0, "KEY=hidden-value"),
            location(outside, 4, "secret elsewhere"),
            {"uri": "jdt://x/Y.class", "range": span(1), "text": "odd"},
        ]
        answers(one, "references", {"locations": found, "truncated": True})
        got = await use(one, model, "find_references", path="lib.py", name="greet")
        assert got.splitlines() == [
            "app.py:3: grüße = lib.greet('you')",
            f"{outside}:5 (outside the workspace)",
            "jdt://x/Y.class:2 (outside the workspace)",
            "[only the first 3 are shown; ask about one file, or narrow it down]",
            "[left out: 2 in files that the rules keep from you]",
        ]
        assert "do not let you read .env" in await use(
            one, model, "find_definition", path=".env", name="KEY"
        )


# --- diagnostics, symbols -------------------------------------------------------------------------


@pytest.mark.req("G007")
async def test_diagnostics_of_a_file_and_of_all(root: Path, state: Path) -> None:
    def one_of(path: Path, line: int, message: str, **more: Any) -> dict[str, Any]:
        return {"uri": uri_of(path), "range": span(line, 4), "message": message, **more}

    found = [
        one_of(root / "lib.py", 6, "unused\n  variable", severity=2, source="lint", code=17),
        one_of(root / "app.py", 0, "no module", severity=1, code="E1", tags=[1]),
        one_of(root / ".env", 0, "hidden-value", severity=1),
    ]
    async with knowing(root, state) as (one, model):
        one.editor.open(root / "lib.py")
        asked = answers(one, "diagnostics", {"diagnostics": found})
        assert (await use(one, model, "diagnostics")).splitlines() == [
            "app.py:1:5: error: no module [E1]",
            "lib.py:7:5: warning: unused variable [lint 17]",
            "[left out: 1 in files that the rules keep from you]",
        ]
        answers(one, "diagnostics", {"diagnostics": []})
        assert await use(one, model, "diagnostics", path="lib.py") == "No diagnostics in lib.py."
        assert asked == [{"uri": None}]


@pytest.mark.req("G007")
async def test_symbols_of_a_file_and_of_the_workspace(root: Path, state: Path) -> None:
    outline = [
        {"name": "greet", "kind": "function", "uri": uri_of(root / "lib.py"),
         "range": span(2, 0, 5, 0)},
        {"name": "x", "kind": "variable", "uri": uri_of(root / "lib.py"), "range": span(6),
         "container": "lib"},
    ]  # fmt: skip
    async with knowing(root, state) as (one, model):
        asked = answers(one, "symbols", {"symbols": outline})
        got = await use(one, model, "list_symbols", path="lib.py")
        assert got.splitlines() == ["3-5: function greet", "7: variable x in lib"]
        assert await use(one, model, "list_symbols", query="gre") == "lib.py:3: function greet"
        assert asked == [
            {"uri": uri_of(root / "lib.py"), "query": ""},
            {"uri": None, "query": "gre"},
        ]
        assert "Give a path" in await use(one, model, "list_symbols")


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (None, "is not an object"),
        ([], "is not an object"),
        ({}, "locations: Field required"),
        ({"locations": "many"}, "should be a valid list"),
        (RpcError({"code": -32603, "message": "xref is broken"}), "xref is broken"),
    ],
)  # fmt: skip
async def test_a_sloppy_answer_is_an_error_for_the_model_and_nothing_breaks(
    root: Path, state: Path, answer: Any, told: str
) -> None:
    async with knowing(root, state) as (one, model):
        answers(one, "references", answer)
        got = await use(one, model, "find_references", path="lib.py", name="greet")
        assert told in got and "Use grep" in got
        answers(one, "references", {"locations": [location(root / "lib.py", 2, "here")]})
        got = await use(one, model, "find_references", path="lib.py", name="greet")
        assert got == "lib.py:3: here"


async def test_one_bad_item_spoils_no_other(root: Path, state: Path) -> None:
    good = {"uri": uri_of(root / "lib.py"), "range": span(0), "severity": 2, "message": "good"}
    far = {"start": {"line": -3, "character": 2.0}, "end": {"line": 2**40, "character": 0}}
    mended = [
        {**good, "severity": 0, "message": "no severity", "code": True, "source": 7},
        {**good, "message": {"kind": "markdown", "value": "marked"}, "code": {"value": "E1"}},
        {**good, "message": "far\x1b[2J\u202eaway", "range": far},
    ]
    bad = [None, 7, {**good, "message": None}, {**good, "range": {"start": {}}},
           {**good, "uri": None, "message": "whose?"}]  # fmt: skip
    async with knowing(root, state) as (one, model):
        answers(one, "diagnostics", {"diagnostics": [*bad, good, *mended], "truncated": 0})
        assert (await use(one, model, "diagnostics")).splitlines() == [
            "lib.py:1:1: error: no severity",
            "lib.py:1:1: warning: good",
            "lib.py:1:1: warning: marked [E1]",
            "lib.py:1:3: warning: far<U+202E>away",
            "[left out: 5 that the editor reported incompletely]",
        ]
        answers(one, "diagnostics", {"diagnostics": None})
        assert await use(one, model, "diagnostics") == "No diagnostics in the open files."


@pytest.mark.req("G007")
async def test_of_what_lies_outside_only_the_place_is_told_and_of_what_is_kept_nothing(
    root: Path, state: Path, tmp_path: Path
) -> None:
    other = tmp_path / "elsewhere"
    kept = [uri_of(other / ".env"), f"git:{root}/.env?ref=HEAD", f"magy://base{root}/.env",
            f"vscode-vfs://host{root}/%2Eenv", f"file://host{root}/.env"]  # fmt: skip
    far = uri_of(other / "x.py")
    told = [f"{other}/x.py:1 (outside the workspace)",
            "[left out: 5 in files that the rules keep from you]"]  # fmt: skip
    async with knowing(root, state) as (one, model):
        found = [{"uri": uri, "range": span(0), "message": "hidden-value"} for uri in (*kept, far)]
        answers(one, "diagnostics", {"diagnostics": found})
        assert (await use(one, model, "diagnostics")).splitlines() == told
        named = [{"uri": uri, "range": span(0), "name": "hidden-value"} for uri in (*kept, far)]
        answers(one, "symbols", {"symbols": named})
        assert (await use(one, model, "list_symbols", query="hidden")).splitlines() == told


async def test_a_huge_answer_is_cut(root: Path, state: Path) -> None:
    many = [location(root / "lib.py", n, "x" * 3000) for n in range(5000)]
    async with knowing(root, state) as (one, model):
        answers(one, "references", {"locations": many})
        got = await use(one, model, "find_references", path="lib.py", name="greet")
        lines = got.splitlines()
        assert len(lines) == 201 and max(map(len, lines)) < 500
        assert lines[-1].startswith("[only the first 200 are shown")


# --- eval -----------------------------------------------------------------------------------------

CODE = '(progn\n  (message "hi")\n  (* 6 7))'


@pytest.mark.req("E116", "G007")
async def test_code_is_shown_asked_about_and_run(root: Path, state: Path) -> None:
    async with knowing(root, state) as (one, model):
        asked = answers(one, "eval", {"value": "42", "output": "hi\n", "error": None})
        model.reply(call("emacs_eval", {"code": CODE}))
        model.reply(text("Done."))
        await one.ask("Go")
        question = await one.question()
        assert (
            question["title"] == 'Evaluate in Emacs (3 lines): (progn ⏎ (message "hi") ⏎ (* 6 7))'
        )
        assert question["remember"] == [], "no answer for one code is one for another"
        shown = [u for u in one.updates("tool_call_update") if u.get("content")]
        assert shown[-1]["content"][0]["content"] == {"type": "text", "text": CODE}
        assert asked == []
        await one.respond(question["interactionId"])
        await one.end()
        assert asked == [{"code": CODE, "timeoutMs": 10_000}]
        assert said(model.asked[-1].body) == "42\nIt wrote:\nhi"
    lines = "".join(file.read_text() for file in (state / "audit").glob("*.jsonl")).splitlines()
    kept = [json.loads(line) for line in lines]
    assert {"tool.judged", "judged", "started", "finished"} & {line["event"] for line in kept}
    judged = next(line for line in kept if line.get("tool") == "emacs_eval" and "rule" in line)
    assert judged["decision"] == "ask" and "emacs_eval" in judged["rule"]


async def test_no_comment_hides_what_comes_after_it(root: Path, state: Path) -> None:
    wide = "(ignore 1) " * 20 + "(last)"
    code = f"(safe) ; harmless{'!' * 3_000}\n\n(delete-directory x)\u202e\n{wide}"
    async with knowing(root, state) as (one, model):
        model.reply(call("emacs_eval", {"code": code}))
        await one.ask("Go")
        title = (await one.question())["title"]
        assert title.startswith("Evaluate in Emacs (4 lines): (safe) ; harmless!!!")
        assert "! ⏎  ⏎ (delete-directory x)\\u202e ⏎ (ignore 1)" in title
        assert title.endswith("(last)") and len(title) < 500
        shown = [u for u in one.updates("tool_call_update") if u.get("content")]
        whole = code.replace("\u202e", "<U+202E>")
        assert shown[-1]["content"][0]["content"]["text"] == whole, "all of it, below"


@pytest.mark.req("E116")
async def test_an_error_in_the_code_and_a_long_value(root: Path, state: Path) -> None:
    bypass = {"permission": {"emacs_eval": "ask"}}
    async with knowing(root, state, settings=bypass) as (one, model):
        await one.request("session/set_config_option", configId="bypass", value="on")
        failed = {"error": "(void-variable x)", "output": "so far"}
        asked = answers(one, "eval", failed)
        got = await use(one, model, "emacs_eval", code="x", timeout=60)
        assert got == "Emacs signals an error: (void-variable x)\nIt wrote:\nso far"
        assert asked[0]["timeoutMs"] == 60_000
        answers(one, "eval", {"value": "a" * 500_000})
        got = await use(one, model, "emacs_eval", code="(big)")
        assert len(got) < 9_000 and "492,000 characters left out" in got


async def test_an_editor_that_does_not_answer_in_time(root: Path, state: Path) -> None:
    async with knowing(root, state) as (one, model):
        await one.request("session/set_config_option", configId="bypass", value="on")
        one.client.handlers["magy/editor/eval"] = lambda params: GONE
        got = await use(one, model, "emacs_eval", code="(sit-for 99)", timeout=0.2)
        assert "did not answer magy/editor/eval within 2.2 seconds" in got
        assert "It is unknown whether the code ran" in got
        await one.client.wait_for("$/cancelRequest")


AGAIN = """prompt: go
call: emacs_eval {"code": "(first)"}
---
call: emacs_eval {"code": "(second)"}
---
text: "{{last}}"
"""


async def test_a_session_that_goes_on_without_emacs_runs_no_code(root: Path, state: Path) -> None:
    """The first code was asked about in Emacs, the second is not asked about any more."""
    async with person(root, state, AGAIN, offers={"editor": ALL}) as one:
        await one.new()
        await one.ask("go")
        question = (await one.question())["interactionId"]
    async with person(root, state, AGAIN) as one:
        await one.request("session/resume")
        await one.respond(question)
        await one.end()
        missing = "No Emacs is connected, so the code did not run."
        assert one.outputs() == [missing, missing] and missing in one.said()
    lines = "".join(file.read_text() for file in (state / "audit").glob("*.jsonl"))
    assert '"judged"' in lines and '"started"' not in lines


async def test_cancel_does_not_wait_for_the_editor(root: Path, state: Path) -> None:
    async with knowing(root, state) as (one, model):
        reached = asyncio.Event()

        def never(params: Any) -> Any:
            reached.set()
            return GONE

        one.client.handlers["magy/editor/references"] = never
        model.reply(call("find_references", {"path": "lib.py", "name": "greet"}))
        await one.ask("Go")
        await asyncio.wait_for(reached.wait(), PATIENCE)
        await one.request("session/cancel")
        assert (await one.end())["stopReason"] == "cancelled"
        await one.client.wait_for("$/cancelRequest")


# --- @sym:NAME ------------------------------------------------------------------------------------


@pytest.mark.req("G032")
async def test_a_symbol_that_is_mentioned_is_given_with_its_definition(
    root: Path, state: Path
) -> None:
    known = [
        {"name": "greet", "kind": "function", "uri": uri_of(root / "lib.py"), "range": span(2)},
        {"name": "greetings", "kind": "variable", "uri": uri_of(root / ".env"), "range": span(0)},
        {"name": "KEY", "kind": "variable", "uri": uri_of(root / ".env"), "range": span(0)},
        {"name": "far", "kind": "function", "uri": "file:///usr/lib/x.py", "range": span(0)},
    ]
    async with knowing(root, state) as (one, model):
        one.editor.open(root / "lib.py", LIB.replace("'Hello '", "'Good day '"))
        asked = answers(one, "symbols", {"symbols": known})
        model.reply(text("Yes."))
        await one.turn("Look at @sym:greet, @sym:KEY @sym:far @sym:nothing and me@sym:x")
        got = said(model.asked[-1].body)
        uri = uri_of(root / "lib.py")
        body = "def greet(name):\n    text = 'Good day ' + name\n    return text"
        assert f'<context from="{uri}#L3-L5">\n{body}\n</context>' in got
        assert "hidden-value" not in got and "[The user mentions the file .env:1" in got
        assert "x.py" not in got
        assert [params["query"] for params in asked] == ["greet", "KEY", "far", "nothing"]


async def test_without_an_editor_that_knows_it_stays_a_word(root: Path, state: Path) -> None:
    async with knowing(root, state, {}) as (one, model):
        model.reply(text("Yes."))
        await one.turn("Look at @sym:greet")
        assert said(model.asked[-1].body) == "Look at @sym:greet"
