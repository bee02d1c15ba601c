"""`magy/context/get`: what is around the cursor, from the live text, as blocks that a prompt takes
along as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.loopback import text
from tests.lsp.client import GONE, uri_of

from .harness import Person, person
from .test_prompts import at_work, said

CODE = """\
import os


def one():
    return 1


def two(x):
    '''grüße 😀'''
    y = x + 1
    return y
"""
NO_MODEL = "prompt: x\ntext: x\n"


def at(line: int, character: int = 0) -> dict[str, int]:
    return {"line": line, "character": character}


def span(first: int, start: int, last: int, end: int) -> dict[str, Any]:
    return {"start": at(first, start), "end": at(last, end)}


async def items(one: Person, uri: str, position: Any, **more: Any) -> dict[str, list[Any]]:
    """By kind, in order."""
    params = {"uri": uri, "position": position, **more}
    answer = await one.client.request("magy/context/get", params)
    found: dict[str, list[Any]] = {}
    for item in answer["items"]:
        found.setdefault(item["kind"], []).append(item)
    return found


def shown(item: Any) -> tuple[str, bool, str]:
    return item["label"], item["default"], item["block"]["resource"]["text"]


@pytest.mark.req("E011", "E044")
async def test_the_function_and_the_line_of_the_live_text_and_what_is_wrong_there(
    root: Path, state: Path
) -> None:
    file = root / "app.py"
    wrong = {"severity": 2, "source": "lint", "code": 7, "message": "bad\nname", "tags": [1]}
    diagnostics = [
        {"range": span(0, 0, 0, 6), "message": "unused", "severity": 4},
        {"range": span(9, 4, 9, 5), **wrong},
    ]
    async with person(root, state, NO_MODEL) as one:
        uri = one.editor.open(file, CODE)  # on disk is another text
        found = await items(one, uri, at(10, 8), diagnostics=diagnostics, visible=span(0, 0, 4, 0))
        assert list(found) == ["definition", "point", "diagnostics", "visible"]
        body = "\n".join(CODE.splitlines()[7:])
        assert shown(found["definition"][0]) == ("app.py:8-11", True, body)
        assert found["definition"][0]["block"]["resource"]["uri"] == f"{uri}#L8-L11"
        cursor = "[the cursor is in line 11, column 9]\n    return y"
        assert shown(found["point"][0]) == ("app.py:11 (cursor)", True, cursor)
        assert shown(found["diagnostics"][0]) == (
            "2 diagnostics",
            True,
            "app.py:10:5: warning: bad name [lint 7]\napp.py:1:1: hint: unused",
        )
        label, default, text_ = shown(found["visible"][0])
        assert (label, default) == ("app.py:1-5 (visible)", False)
        assert text_ == "\n".join(CODE.splitlines()[:5])


@pytest.mark.req("E011", "G032")
async def test_a_selection_goes_before_all_else_and_enters_the_prompt(
    root: Path, state: Path
) -> None:
    async with at_work(root, state) as (one, model):
        uri = one.editor.open(root / "app.py", CODE)
        far = [{"range": span(0, 0, 0, 1), "message": "far"}]
        # columns of the negotiated encoding: the emoji takes two
        found = await items(one, uri, at(9), selection=span(8, 13, 9, 5), diagnostics=far)
        defaults = {kind: item["default"] for kind, (item,) in found.items()}
        assert defaults == {
            "selection": True, "definition": False, "point": False, "diagnostics": False
        }  # fmt: skip
        assert shown(found["selection"][0]) == ("app.py:9-10", True, "😀'''\n    y")
        model.reply(text("Yes."))
        words = {"type": "text", "text": "What is this?"}
        await one.request(
            "session/prompt", messageId="p1", prompt=[words, found["selection"][0]["block"]]
        )
        await one.end()
        given = f"<context from=\"{uri}#L9-L10\">\n😀'''\n    y\n</context>"
        assert given in said(model.asked[0].body)


@pytest.mark.req("G007")
async def test_an_outline_of_the_editor_knows_better(root: Path, state: Path) -> None:
    odd = "begin one\nstill one\nfinish\nbegin two\nstill two\nfinish\n"
    symbols = [
        {"name": "all", "kind": "module", "range": span(0, 0, 6, 0)},
        {"name": "two", "kind": "function", "range": span(3, 0, 6, 0)},
        {"name": "v", "kind": "variable", "range": span(4, 0, 5, 0)},
    ]
    async with person(root, state, NO_MODEL, offers={"editor": {"symbols": True}}) as one:
        uri = one.editor.open(root / "app.py", odd)
        answer = {"symbols": [{**symbol, "uri": uri} for symbol in symbols]}
        one.client.handlers["magy/editor/symbols"] = lambda params: answer
        found = await items(one, uri, at(4))
        assert shown(found["definition"][0])[0] == "app.py:4-6"
        answer["symbols"] = [{"name": "two", "uri": uri, "range": span(3, 6, 3, 9)}]
        one.editor.type(root / "app.py", 0, len(odd), CODE)
        answer["symbols"] = [{"name": "two", "uri": uri, "range": span(7, 4, 7, 7)}]
        found = await items(one, uri, at(9))
        assert shown(found["definition"][0])[0] == "app.py:8-11", "only the name: by indentation"
        for sloppy in (GONE, {"symbols": 7}, None):
            one.client.handlers["magy/editor/symbols"] = lambda params, answer=sloppy: answer
            found = await items(one, uri, at(9))
            assert shown(found["definition"][0])[0] == "app.py:8-11"


@pytest.mark.req("E011")
async def test_what_rules_keep_from_agents_is_not_in_it(root: Path, state: Path) -> None:
    secret = root / ".env"
    secret.write_text("KEY=hidden-value\n")
    (root / "lib").mkdir()
    other = root / "lib" / "a b.py"
    other.write_text("x = 1\n")
    link = root / "innocent.txt"
    link.symlink_to(secret)
    async with person(root, state, NO_MODEL) as one:
        one.editor.open(secret)
        uris = [uri_of(path) for path in (secret, other, link, root / "app.py", other)]
        for uri in (uri_of(secret), uri_of(link)):
            found = await items(
                one, uri, at(0), selection=span(0, 0, 0, 9), visible=span(0, 0, 1, 0),
                openUris=uris, diagnostics=[{"range": span(0, 0, 0, 1), "message": "hidden-value"}],
            )  # fmt: skip
            assert list(found) == ["open"] and "hidden-value" not in str(found)
            assert [item["label"] for item in found["open"]] == ["lib/a b.py", "app.py"]
            block = {"type": "resource_link", "uri": other.as_uri(), "name": "lib/a b.py"}
            assert found["open"][0]["block"] == block and not found["open"][0]["default"]


async def test_one_sloppy_diagnostic_spoils_nothing(root: Path, state: Path) -> None:
    where = span(0, 0, 0, 6)
    sloppy = [{"range": where, "message": "m", **more} for more in (
        {"severity": 0}, {"code": {"value": "E1", "target": "x"}}, {"code": 1.5}, {"source": 7},
        {"uri": ""}, {"range": {**where, "x": 1}}, {"range": span(0, -1, 2**70, 0)},
    )]  # fmt: skip
    async with person(root, state, NO_MODEL) as one:
        uri = one.editor.open(root / "app.py", CODE)
        found = await items(
            one, uri, at(-1, 2**70), diagnostics=[*sloppy, None, {"message": "m"}],
            openUris=[uri_of(root / "lib.py"), "", 7],
        )  # fmt: skip
        label, _, text_ = shown(found["diagnostics"][0])
        assert label == "7 diagnostics (2 malformed left out)" and len(text_.splitlines()) == 7
        assert [item["label"] for item in found["open"]] == ["lib.py"]
        odd = one.editor.open(root / "a\nb\u202e.py", CODE)
        assert shown((await items(one, odd, at(4)))["point"][0])[0] == "a\\nb\\u202e.py:5 (cursor)"


@pytest.mark.req("E011")
async def test_what_may_be_about_a_file_that_is_kept_is_not_in_it(root: Path, state: Path) -> None:
    (root / ".env").write_text("KEY=hidden-value\n")
    (root / "innocent.txt").symlink_to(root / ".env")
    uris = [f"git:{root}/.env?ref=HEAD", f"magy://base{root}/.env", f"file://host{root}/.env",
            f"vscode-vfs://github{root}/%2Eenv", f"git:{root}/innocent.txt", "untitled:.env",
            f'git:{root}/.env.git?{{"path":"{root}/.env"}}']  # fmt: skip
    async with person(root, state, NO_MODEL) as one:
        for uri in (*uris, f"git:{root}/app.py"):
            item = {"uri": uri, "languageId": "x", "version": 1, "text": "KEY=hidden-value\n"}
            one.client.notify("textDocument/didOpen", {"textDocument": item})
            found = await items(one, uri, at(0), selection=span(0, 0, 0, 9))
            assert bool(found) == uri.endswith("app.py"), uri


async def test_sizes_are_bounded_and_what_is_cut_is_said(root: Path, state: Path) -> None:
    long = "def f():\n" + "    x = 1\n" * 3000
    wide = "y" * 100_000
    many = [{"range": span(n, 0, n, 1), "message": f"m{n}"} for n in range(2000)]
    async with person(root, state, NO_MODEL) as one:
        uri = one.editor.open(root / "app.py", long)
        found = await items(one, uri, at(2000), diagnostics=many, visible=span(0, 0, 2999, 0))
        label, _, text_ = shown(found["definition"][0])
        assert label == "app.py:1801-2200 (cut)" and len(text_.splitlines()) == 400
        assert shown(found["visible"][0])[0].endswith("(visible) (cut)")
        label, _, text_ = shown(found["diagnostics"][0])
        assert label == "1000 diagnostics (cut to 100)" and len(text_.splitlines()) == 100
        other = one.editor.open(root / "wide.txt", wide)
        found = await items(one, other, at(0, 50), selection=span(0, 0, 0, 90_000))
        label, _, text_ = shown(found["selection"][0])
        assert label == "wide.txt:1 (cut)" and len(text_) < 41_000


async def test_odd_places_and_odd_documents(root: Path, state: Path) -> None:
    async with person(root, state, NO_MODEL) as one:
        empty = one.editor.open(root / "empty.txt", "")
        assert shown((await items(one, empty, at(9, 9)))["point"][0])[0] == "empty.txt:1 (cursor)"
        found = await items(one, uri_of(root / "app.py"), at(1))
        assert shown(found["definition"][0])[0] == "app.py:1-2", "not open: from the disk"
        assert await items(one, uri_of(root / "gone.py"), at(0)) == {}
        assert await items(one, uri_of(root), at(0)) == {}
        assert await items(one, "https://example.org/x", at(0)) == {}
        (root / "data.bin").write_bytes(b"\0\1\2\xff" * 50)
        assert await items(one, uri_of(root / "data.bin"), at(0)) == {}
        crlf = one.editor.open(root / "crlf.py", CODE.replace("\n", "\r\n"))
        found = await items(one, crlf, at(3), selection=span(6, 0, 5, 0))
        assert "selection" not in found, "only a blank line"
        assert "\r" not in str(found)
        item = {"uri": "untitled:One", "languageId": "x", "version": 1, "text": CODE}
        one.client.notify("textDocument/didOpen", {"textDocument": item})
        found = await items(one, "untitled:One", at(3))
        assert shown(found["definition"][0])[0] == "untitled:One:4-5"
