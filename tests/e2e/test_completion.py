"""`magy/prompt/complete`: what may follow an `@`, and that what it offers is then understood."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from magy_server.core.prompting.framing import named
from tests.loopback import text
from tests.lsp.client import GONE, RpcError, uri_of
from tests.patience import PATIENCE

from .harness import Person, person
from .test_prompts import at_work, said

NO_MODEL = "prompt: x\ntext: x\n"


async def complete(one: Person, before: str, **params: Any) -> Any:
    return await one.client.request("magy/prompt/complete", {"before": before, **params})


async def labels(one: Person, before: str, **params: Any) -> list[str]:
    return [item["label"] for item in (await complete(one, before, **params))["items"]]


@pytest.fixture
def root(root: Path) -> Path:
    for name in ("lib/parser.py", "lib/deep/path_tools.py", "docs/a plan.md", "build/out.py",
                 "README.md", ".env", "empty/.keep", "#README.md#", "lib/parser.py~"):  # fmt: skip
        (root / name).parent.mkdir(exist_ok=True, parents=True)
        (root / name).write_text("x\n")
    (root / ".ignore").write_text("build/\n")
    return root


@pytest.mark.req("G032")
async def test_files_of_the_project_without_what_is_ignored_or_kept(
    root: Path, state: Path
) -> None:
    async with person(root, state, NO_MODEL) as one:
        answer = await complete(one, "Look at @pa")
        assert answer["prefix"] == "@pa" and not answer["incomplete"]
        assert [(item["text"], item["kind"]) for item in answer["items"]][:2] == [
            ("@lib/parser.py", "file"),
            ("@lib/deep/path_tools.py", "file"),
        ]
        assert await labels(one, "@lib/") == [
            "lib/deep/",
            "lib/parser.py",
            "lib/deep/path_tools.py",
        ]
        assert await labels(one, "see @LIB/DEEP") == ["lib/deep/", "lib/deep/path_tools.py"]
        assert await labels(one, "see @dptools") == ["lib/deep/path_tools.py"], "letters in order"
        assert await labels(one, "see @out") == [] == await labels(one, "see @env")
        assert await labels(one, "see @zzzz") == []
        for nothing in ("", "see", "me@li", "@lib/parser.py ", "see @lib\n"):
            assert await complete(one, nothing) == {"prefix": "", "items": [], "incomplete": False}


@pytest.mark.req("G032")
async def test_names_with_blanks_are_quoted_and_understood(root: Path, state: Path) -> None:
    async with at_work(root, state) as (one, model):
        answer = await complete(one, "Read @pla")
        (item,) = answer["items"]
        assert item["text"] == '@"docs/a plan.md"'
        again = await complete(one, 'Read @"docs/a')
        assert again["prefix"] == '@"docs/a' and again["items"] == [item]
        model.reply(text("Yes."))
        await one.turn("Read @pla".removesuffix(answer["prefix"]) + item["text"])
        assert '[The user mentions the file "docs/a plan.md" (' in said(model.asked[0].body)


async def test_with_nothing_typed_what_is_open_comes_first(root: Path, state: Path) -> None:
    async with person(root, state, NO_MODEL) as one:
        for name in ("README.md", "lib/parser.py", ".env"):
            one.editor.open(root / name)
        found = await labels(one, "and @")
        assert found[:2] == ["lib/parser.py", "README.md"]
        assert set(found[2:]) == {"app.py", "docs/", "lib/", "empty/", ".ignore"}


@pytest.mark.req("G032")
async def test_skills_and_commands_at_the_very_beginning_only(root: Path, state: Path) -> None:
    async with person(root, state, NO_MODEL) as one:
        kinds = {
            i["label"]: (i["kind"], bool(i["detail"])) for i in (await complete(one, "@"))["items"]
        }
        assert kinds["@init"] == ("skill", True)
        assert kinds["@clear"] == kinds["@compact"] == ("command", True)
        assert (await labels(one, " @in"))[0] == "@init"
        assert not {"@init", "@clear"} & set(await labels(one, "please @"))


@pytest.mark.req("G032")
async def test_actions_after_a_slash_at_the_very_beginning_only(root: Path, state: Path) -> None:
    async with at_work(root, state) as (one, model):
        (state / "agent").mkdir()
        (state / "agent" / "actions.yaml").write_text(
            "audit: {title: Audit, when: always, prompt: Look., agent: explore}\n"
            "english: {title: In English, when: always, prompt: Translate.}\n"
        )
        answer = await complete(one, " /")
        offered = [item["text"] for item in answer["items"]]
        assert answer["prefix"] == "/" and {"/explain", "/fix", "/english"} <= set(offered)
        assert "/audit" not in offered, "another agent does that"
        (ask,) = (await complete(one, "/as"))["items"]
        assert ask == {
            "label": "/ask", "text": "/ask", "kind": "action", "detail": "What is `…`?"
        }  # fmt: skip
        for other in ("see /", "/lib/", "/explain "):
            assert await labels(one, other) == []
        assert await labels(one, "/explain @pars") == ["lib/parser.py"]
        model.reply(text("So."))
        await one.turn("/explain @lib/parser.py, please")
        given = said(model.asked[0].body)
        assert "/explain @lib/parser.py, please" in given
        assert "Explain the code at the place that I name or show." in given
        assert "[The user mentions the file lib/parser.py (" in given
        for id, plain in (("p2", "/lib/parser.py is odd"), ("p3", "/audit it"), ("p4", "/nothing")):
            model.reply(text("So."))
            await one.turn(plain, id)
            assert "magy:action" not in said(model.asked[-1].body)


@pytest.mark.req("G032")
async def test_agents_that_take_tasks_after_an_at(root: Path, state: Path) -> None:
    async with person(root, state, NO_MODEL) as one:
        (explore,) = [i for i in (await complete(one, "@exp"))["items"] if i["kind"] == "agent"]
        assert explore["label"] == "@explore" and explore["text"] == "@spawn explore "
        assert (await complete(one, "@spa"))["items"][0]["text"] == "@spawn "
        answer = await complete(one, "@spawn ")
        offered = {item["text"] for item in answer["items"]}
        assert {"explore ", "general ", "magi ", "reviewer "} <= offered
        assert not offered & {"build ", "plan ", "title "}, "those that take no tasks"
        answer = await complete(one, "@spawn gen")
        assert answer["prefix"] == "gen" and [i["text"] for i in answer["items"]] == ["general "]
        answer = await complete(one, "@spawn general -")
        assert answer["prefix"] == "-" and answer["items"][0]["text"] == "--worktree "
        assert not (await complete(one, "@spawn general do -"))["items"]
        assert await labels(one, "@spawn general @READ") == ["README.md"]
        assert "@spawn" not in await labels(one, "please @")


@pytest.mark.req("G032")
async def test_names_that_would_mean_something_else_are_quoted(root: Path, state: Path) -> None:
    odd = ("clear", "init", "sym:parse", "wait.", "really?", "(odd).py")
    for name in odd:
        (root / name).write_text("x\n")

    async def texts(one: Person, before: str) -> list[str]:
        items = (await complete(one, before))["items"]
        return [item["text"] for item in items if item["kind"] == "file"]

    async with at_work(root, state) as (one, model):
        assert await texts(one, "@clear") == ['@"clear"'] == await texts(one, '@"cle')
        assert await texts(one, "@init") == ['@"init"']
        assert await texts(one, "see @clear") == ["@clear"]
        assert await texts(one, '@"sym:') == ['@"sym:parse"'] == await texts(one, "see @m:parse")
        assert await texts(one, "@sym:p") == []
        assert await texts(one, "see @wai") == ['@"wait."']
        assert await texts(one, "see @reall") == ['@"really?"']
        assert await texts(one, "see @(odd") == ["@(odd).py"]
        model.reply(text("Yes."))
        await one.turn('@"init" @"clear" @"sym:parse" @"wait." @"really?" @(odd).py')
        given = said(model.asked[0].body)
        for name in odd:
            assert f"[The user mentions the file {named(name)} (" in given


async def test_new_files_are_found_soon_and_old_ones_go(root: Path, state: Path) -> None:
    async with person(root, state, NO_MODEL) as one:
        assert "README.md" in await labels(one, "x @READ")
        (root / "README.md").unlink()
        (root / "novel.txt").write_text("x")
        assert await labels(one, "x @READ") == [], "at once"
        async with asyncio.timeout(PATIENCE):
            while await labels(one, "x @novel") != ["novel.txt"]:
                await asyncio.sleep(0.2)


@pytest.mark.req("G007", "G032")
async def test_symbols_where_the_editor_offers_them(root: Path, state: Path) -> None:
    def symbol(name: str, file: str, **more: Any) -> dict[str, Any]:
        start = {"line": 4, "character": 0}
        return {"name": name, "uri": uri_of(root / file), "range": {"start": start, "end": start},
                **more}  # fmt: skip

    known = [
        symbol("unparse", "lib/parser.py"),
        symbol("parse", "lib/parser.py", kind="function"),
        symbol("parse secret", "lib/parser.py"),
        symbol("parse_key", ".env"),
        symbol("other", "app.py"),
    ]
    async with person(root, state, NO_MODEL, offers={"editor": {"symbols": True}}) as one:
        asked: list[Any] = []

        def answer(params: Any) -> Any:
            asked.append(params)
            return {"symbols": known}

        one.client.handlers["magy/editor/symbols"] = answer
        found = (await complete(one, "see @pars"))["items"]
        assert [item["label"] for item in found] == ["lib/parser.py", "parse", "unparse"]
        assert found[1] == {
            "label": "parse", "text": "@sym:parse", "kind": "symbol",
            "detail": "function in lib/parser.py:5",
        }  # fmt: skip
        assert await labels(one, "see @sym:p") == ["parse", "unparse"]
        assert [params["query"] for params in asked] == ["pars", "p"]
        for sloppy in (GONE, {"symbols": [{}]}, "no"):
            one.client.handlers["magy/editor/symbols"] = lambda params, answer=sloppy: answer
            assert await labels(one, "see @pars") == ["lib/parser.py"]


async def test_a_newer_request_takes_the_place_of_an_older_one(root: Path, state: Path) -> None:
    async with person(root, state, NO_MODEL, offers={"editor": {"symbols": True}}) as one:
        one.client.handlers["magy/editor/symbols"] = lambda params: GONE
        _, first = one.client.start("magy/prompt/complete", {"before": "see @rea"})
        await one.client.wait_for("magy/editor/symbols")
        _, second = one.client.start("magy/prompt/complete", {"before": "see @read"})
        superseded = {"prefix": "@rea", "items": [], "incomplete": True}
        assert await first == superseded
        assert [item["label"] for item in (await second)["items"]] == ["README.md"]


async def test_the_session_says_whose_files(root: Path, state: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "elsewhere.txt").write_text("x")
    async with person(root, state, NO_MODEL) as one:
        assert await labels(one, "x @else", cwd=str(other)) == ["elsewhere.txt"]
        await one.client.request("magy/session/new", {"sessionId": "s2", "cwd": str(other)})
        assert await labels(one, "x @else", sessionId="s2") == ["elsewhere.txt"]
        assert await labels(one, "x @else") == []
        with pytest.raises(RpcError, match="not a directory"):
            await complete(one, "x @else", cwd=str(other / "elsewhere.txt"))


@pytest.mark.req("E130")
async def test_the_doctor_over_the_wire(root: Path, state: Path) -> None:
    key = "sk-test-0123456789abcdef"
    facts = {
        "emacs": "28.2",
        "apiKey": key,
        "env": {"note": f"uses {key}", "list": ["a"] * 500},
        "deep": {"a": {"b": {"c": {"d": {"e": {"f": {"g": 1}}}}}}},
        "init": str(Path.home() / ".emacs.d" / "init.el"),
        "fence": "```",
    }
    (root / "magy.toml").write_text("nonsense = 1\n")
    async with person(root, state, NO_MODEL, env={"SOME_API_KEY": key}) as one:
        with pytest.raises(RpcError, match="unknown key 'nonsense'"):
            await one.client.request("magy/session/list", {})
        answer = await one.client.request("magy/doctor/run", {"cwd": str(root), "editor": facts})
    checks = answer["checks"]
    assert {check["status"] for check in checks} <= {"ok", "warn", "fail", "info"}
    broken = [check for check in checks if "nonsense" in check["summary"]]
    assert broken and broken[0]["name"] == "configuration" and broken[0]["fix"]
    assert all(bool(check["fix"]) == (check["status"] != "ok") for check in checks)
    assert not any("other Magy process" in c["summary"] and "1 " in c["summary"] for c in checks)
    report = answer["report"]
    assert "28.2" in report and "nonsense" in report and "~/.emacs.d/init.el" in report
    assert key not in report and str(Path.home()) + "/" not in report
    assert len(report) < 70_000 and "````json" in report
