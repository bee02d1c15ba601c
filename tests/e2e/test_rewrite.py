"""Rewriting a selection in place: it streams where it stands, while the person types; what comes of
it is under review like an agent's edit, and can be undone."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from .harness import MAGY, Person, RpcError, person

TEXT = "import os\n\ndef greet():\n    return 'hello'\n\nprint(greet())\n"
OLD = "def greet():\n    return 'hello'\n"
NEW = "def greet(name):\n    message = f'hello {name}'\n    return message\n"
DONE = TEXT.replace(OLD, NEW)


def call(text: str = NEW) -> str:
    return f"call: replace_selection {json.dumps({'text': text})}\n"


SLOW = "speed: 60\n" + call()
"""Over a second, in which the person can do something."""


@pytest.fixture
def app(root: Path) -> Path:
    path = root / "app.py"
    path.write_text(TEXT)
    return path


def position(text: str, at: int) -> dict[str, int]:
    before = text[:at].replace("\r\n", "\n").split("\n")
    return {"line": len(before) - 1, "character": len(before[-1])}


def place(path: Path, old: str = OLD, text: str = TEXT) -> dict[str, Any]:
    start = text.index(old)
    ends = {"start": position(text, start), "end": position(text, start + len(old))}
    return {"uri": path.as_uri(), "range": ends}


async def rewrite(one: Person, path: Path, key: str = "k1", **params: Any) -> str:
    """Starts one; the answer is the id of its session."""
    about = {**place(path), "instruction": "Greet by name", "requestKey": key, **params}
    result = await one.client.request("magy/rewrite/start", about)
    assert result["messageId"] == "rewrite"
    found: str = result["sessionId"]
    return found


async def draft(one: Person, **wanted: Any) -> dict[str, Any]:
    """The next draft that has these fields."""

    def right(params: dict[str, Any]) -> bool:
        return all(params[key] == value for key, value in wanted.items())

    found: dict[str, Any] = await one.client.wait_for("magy/rewrite/draft", right)
    return found


async def line(one: Person) -> dict[str, Any]:
    """The first draft that shows a line."""
    found: dict[str, Any] = await one.client.wait_for("magy/rewrite/draft", lambda p: p["text"])
    return found


async def end(one: Person) -> dict[str, Any]:
    found: dict[str, Any] = await one.client.wait_for(
        "magy/rewrite/draft", lambda params: params["state"] != "streaming"
    )
    return found


def of(text: str, range: dict[str, Any]) -> str:
    """What stands in a range of a text."""
    lines = text.split("\n")
    at = [
        sum(len(line) + 1 for line in lines[: range[key]["line"]]) + range[key]["character"]
        for key in ("start", "end")
    ]
    return text[at[0] : at[1]]


async def listed(one: Person) -> dict[str, str]:
    files = (await one.client.request("magy/review/list", {}))["files"]
    return {Path(file["uri"]).name: file["mode"] for file in files}


async def hunks(one: Person, path: Path) -> list[Any]:
    about = {"uri": path.as_uri()}
    found: list[Any] = (await one.client.request("magy/review/get", about))["file"]["hunks"]
    return found


# --- as it should be ----------------------------------------------------------------------------


@pytest.mark.req("G008")
async def test_it_streams_in_place_and_is_then_under_review(
    root: Path, state: Path, app: Path
) -> None:
    """Nothing is asked, though edits are: the person asked for it here."""
    script = "text: Certainly.\nspeed: 60\n" + call()
    async with person(root, state, script) as one:
        one.editor.open(app)
        session = await rewrite(one, app)
        last = await end(one)
        drafts = one.client.notifications("magy/rewrite/draft")
        assert drafts[-1] == last and last["state"] == "applied" and last["text"] == NEW
        assert {d["sessionId"] for d in drafts} == {session}
        assert {d["uri"] for d in drafts} == {app.as_uri()}
        streaming = drafts[:-1]
        assert {d["state"] for d in streaming} == {"streaming"}
        assert all(of(TEXT, d["range"]) == OLD for d in streaming)
        lines = NEW.splitlines(keepends=True)
        texts = list(dict.fromkeys(d["text"] for d in streaming))
        assert texts[0] == "" and len(texts) > 1  # drafts that follow closely become one
        assert texts == [t for t in ("".join(lines[:n]) for n in range(4)) if t in texts]

        assert one.editor.text(app) == app.read_text() == DONE
        assert of(DONE, last["range"]) == NEW
        assert len(one.editor.edits) == 1
        assert await listed(one) == {"app.py": "applied"}
        (hunk,) = await hunks(one, app)
        (origin,) = hunk["origins"]
        assert (origin["sessionId"], origin["agent"]) == (session, "rewrite")
        assert origin["turnId"] == "rewrite" and origin["toolCallId"]
        assert not one.client.notifications("magy/session/update")  # no transcript was opened


@pytest.mark.req("G008")
async def test_its_session_is_listed_costs_and_is_undone(
    root: Path, state: Path, app: Path
) -> None:
    script = "usage: input=1000 output=20\n" + call()
    async with person(root, state, script) as one:
        one.editor.open(app)
        session = await rewrite(one, app, instruction="Greet by name\nand be friendly")
        await end(one)
        (info,) = (await one.client.request("magy/session/list", {}))["sessions"]
        assert (info["sessionId"], info["agent"]) == (session, "rewrite")
        assert (info["title"], info["turns"]) == ("Rewrite: Greet by name", 1)
        attached = await one.request("session/subscribe", sessionId=session)
        assert attached["summary"]["usage"]["totalTokens"] == 1020  # one request, no more
        assert attached["summary"]["session"]["state"] == "idle"
        ended = [e["update"] for e in attached["events"] if "stopReason" in e["update"]]
        assert [update["stopReason"] for update in ended] == ["end_turn"]
        await one.request("checkpoint/restore", sessionId=session, turnId="rewrite",
                          requestKey="back")  # fmt: skip
        assert one.editor.text(app) == app.read_text() == TEXT
        assert await listed(one) == {}


async def test_a_hunk_of_it_is_rejected_like_any(root: Path, state: Path, app: Path) -> None:
    async with person(root, state, call()) as one:
        one.editor.open(app)
        await rewrite(one, app)
        await end(one)
        about = {"uri": app.as_uri(), "decision": "reject", "all": True, "requestKey": "no"}
        await one.client.request("magy/review/resolve", about)
        assert one.editor.text(app) == TEXT and await listed(one) == {}


async def test_the_same_request_again_is_the_same_rewrite(
    root: Path, state: Path, app: Path
) -> None:
    async with person(root, state, SLOW) as one:
        one.editor.open(app)
        sessions = await asyncio.gather(*[rewrite(one, app) for _ in range(3)])
        await end(one)
        ends = [d["state"] for d in one.client.notifications("magy/rewrite/draft")
                if d["state"] != "streaming"]  # fmt: skip
        assert ends == ["applied"]
        assert [await rewrite(one, app)] == [*set(sessions)]
        assert one.editor.text(app) == DONE and len(one.editor.edits) == 1
        assert len((await one.client.request("magy/session/list", {}))["sessions"]) == 1


async def test_a_file_that_is_not_open_is_rewritten_on_disk(
    root: Path, state: Path, app: Path
) -> None:
    async with person(root, state, call()) as one:
        await rewrite(one, app)
        last = await end(one)
        assert (last["state"], of(DONE, last["range"])) == ("applied", NEW)
        assert app.read_text() == DONE and await listed(one) == {"app.py": "applied"}


async def test_a_buffer_that_was_never_saved_is_rewritten(root: Path, state: Path) -> None:
    path = root / "new.py"
    async with person(root, state, call()) as one:
        one.editor.open(path, TEXT)
        await rewrite(one, path)
        assert (await end(one))["state"] == "applied"
        assert one.editor.text(path) == DONE and not path.exists()


@pytest.mark.parametrize("opened", [True, False])
async def test_line_ends_and_tabs_are_kept(root: Path, state: Path, opened: bool) -> None:
    path = root / "main.c"
    text = "int f()\r\n{\r\n\treturn 1;\r\n}\r\n"
    path.write_bytes(text.encode())
    async with person(root, state, call("\treturn 2;\n\t/* 😀 */\n")) as one:
        if opened:
            one.editor.open(path)
        await rewrite(one, path, **place(path, "\treturn 1;\r\n", text))
        last = await end(one)
        assert path.read_bytes().decode() == text.replace("1;\r\n", "2;\r\n\t/* 😀 */\r\n")
        assert last["range"] == {
            "start": {"line": 2, "character": 0}, "end": {"line": 4, "character": 0},
        }  # fmt: skip


async def test_a_part_of_a_line_and_a_place_to_write_at(root: Path, state: Path, app: Path) -> None:
    script = f"prompt: shout\n{call('HELLO')}\nprompt: document\n{call('# Says hello.')}"
    async with person(root, state, script) as one:
        one.editor.open(app)
        await rewrite(one, app, **place(app, "hello"), instruction="shout")
        assert (await end(one))["state"] == "applied"
        shouted = TEXT.replace("hello", "HELLO")
        assert one.editor.text(app) == shouted
        at = position(TEXT, TEXT.index("def"))
        nowhere = {"range": {"start": at, "end": at}}
        await rewrite(one, app, "k2", **nowhere, instruction="document")
        assert (await end(one))["state"] == "applied"
        assert one.editor.text(app) == shouted.replace("def", "# Says hello.\ndef")


async def test_what_is_proposed_is_not_in_the_file(root: Path, state: Path, app: Path) -> None:
    async with person(root, state, call(), settings={"edits": {"review": "propose"}}) as one:
        one.editor.open(app)
        await rewrite(one, app)
        last = await end(one)
        assert (last["state"], last["text"]) == ("applied", NEW)
        assert "proposed" in last["message"] and of(TEXT, last["range"]) == OLD
        assert one.editor.text(app) == TEXT and await listed(one) == {"app.py": "proposed"}
        about = {"uri": app.as_uri(), "decision": "accept", "all": True, "requestKey": "yes",
                 "proposed": True}  # fmt: skip
        await one.client.request("magy/review/resolve", about)
        assert one.editor.text(app) == DONE


# --- while the person types ---------------------------------------------------------------------


@pytest.mark.req("G008", "G011")
async def test_what_is_typed_elsewhere_stays_and_the_place_moves(
    root: Path, state: Path, app: Path
) -> None:
    async with person(root, state, SLOW) as one:
        one.editor.open(app)
        await rewrite(one, app)
        await line(one)
        one.editor.type(app, 0, 0, "# mine\n")
        after = one.editor.text(app).index("print")
        one.editor.type(app, after, after, "# too\n")
        typed = one.editor.text(app)
        moved = await draft(one, range=place(app, OLD, typed)["range"], state="streaming")
        assert of(typed, moved["range"]) == OLD
        last = await end(one)
        assert last["state"] == "applied"
        wanted = f"# mine\n{DONE}".replace("print", "# too\nprint")
        assert one.editor.text(app) == wanted and of(wanted, last["range"]) == NEW
        assert app.read_text() == TEXT  # what the person has not saved is not saved for them


@pytest.mark.req("G008", "G011")
async def test_what_is_typed_into_the_selection_is_never_overwritten(
    root: Path, state: Path, app: Path
) -> None:
    async with person(root, state, SLOW) as one:
        one.editor.open(app)
        session = await rewrite(one, app)
        await line(one)
        at = TEXT.index("hello")
        one.editor.type(app, at, at, "oh ")
        last = await end(one)
        assert last["state"] == "failed" and last["text"] == NEW
        assert last["message"].startswith("The selection was changed while it was being rewritten")
        assert one.editor.text(app) == TEXT.replace("hello", "oh hello")
        assert one.editor.edits == [] and await listed(one) == {}
        attached = await one.request("session/subscribe", sessionId=session)
        assert attached["summary"]["session"]["state"] == "idle"


async def test_what_is_typed_in_and_taken_back_does_no_harm(
    root: Path, state: Path, app: Path
) -> None:
    async with person(root, state, SLOW) as one:
        one.editor.open(app)
        await rewrite(one, app)
        await line(one)
        at = TEXT.index("hello")
        one.editor.type(app, at, at, "oh ")
        one.editor.type(app, at, at + 3, "")
        assert (await end(one))["state"] == "applied"
        assert one.editor.text(app) == DONE


async def test_a_file_that_is_closed_meanwhile_is_rewritten_on_disk(
    root: Path, state: Path, app: Path
) -> None:
    async with person(root, state, SLOW) as one:
        one.editor.open(app)
        await rewrite(one, app)
        await line(one)
        one.editor.close(app)
        last = await end(one)
        assert (last["state"], of(DONE, last["range"])) == ("applied", NEW)
        assert app.read_text() == DONE


async def test_a_file_that_is_removed_meanwhile_stays_removed(
    root: Path, state: Path, app: Path
) -> None:
    async with person(root, state, SLOW) as one:
        await rewrite(one, app)
        await line(one)
        app.unlink()
        last = await end(one)
        assert last["state"] == "failed" and "does not exist" in last["message"]
        assert not app.exists()


# --- when it does not go well -------------------------------------------------------------------


async def test_cancelled_in_the_middle_everything_is_as_it_was(
    root: Path, state: Path, app: Path
) -> None:
    async with person(root, state, SLOW) as one:
        one.editor.open(app)
        session = await rewrite(one, app)
        await line(one)
        answer = await one.request("session/cancel", sessionId=session)
        assert answer == {"cancelled": True}
        assert (await end(one))["state"] == "cancelled"
        assert one.editor.text(app) == app.read_text() == TEXT and await listed(one) == {}


async def kill(one: Person) -> None:
    one.client.process.send_signal(signal.SIGKILL)
    await one.client.exit_code()


@pytest.mark.req("G008")
async def test_after_kill_9_it_goes_on_in_the_next_process(
    root: Path, state: Path, app: Path
) -> None:
    async with person(root, state, SLOW) as one:
        one.editor.open(app)
        session = await rewrite(one, app)
        await line(one)
        await kill(one)
    async with person(root, state, SLOW) as one:
        one.editor.open(app)
        shown = await line(one)
        assert (shown["sessionId"], shown["state"]) == (session, "streaming")
        assert await rewrite(one, app) == session
        assert (await end(one))["state"] == "applied"
        assert one.editor.text(app) == DONE
        (hunk,) = await hunks(one, app)
        assert [origin["sessionId"] for origin in hunk["origins"]] == [session]


@pytest.mark.parametrize("text", [f"```python\n{NEW}```", f"```\n{NEW}```\n", NEW.rstrip("\n")])
async def test_a_fence_around_the_text_is_taken_off(
    root: Path, state: Path, app: Path, text: str
) -> None:
    script = f"text: Here is your code.\nspeed: 400\n{call(text)}"
    async with person(root, state, script) as one:
        one.editor.open(app)
        await rewrite(one, app)
        assert (await end(one))["text"] == NEW
        assert one.editor.text(app) == DONE
        assert not [d for d in one.client.notifications("magy/rewrite/draft") if "`" in d["text"]]


async def test_words_of_the_prompt_in_a_file_come_back_as_they_were(
    root: Path, state: Path
) -> None:
    """The model is shown `&lt;note>` and writes that again."""
    path = root / "a.xml"
    path.write_text("<all>\n<note>\n  old\n</note>\n</all>\n")
    script = call("&lt;note>\n  new &lt;b>\n&lt;/note>\n")
    async with person(root, state, script) as one:
        where = place(path, "<note>\n  old\n</note>\n", path.read_text())
        await rewrite(one, path, **where)
        assert (await end(one))["state"] == "applied"
    assert path.read_text() == "<all>\n<note>\n  new &lt;b>\n</note>\n</all>\n"


async def test_a_model_that_chatters_in_the_text_is_told_and_tries_again(
    root: Path, state: Path, app: Path
) -> None:
    script = call(f"Here:\n```python\n{NEW}```\n") + "---\n" + call()
    async with person(root, state, script) as one:
        one.editor.open(app)
        await rewrite(one, app)
        assert (await end(one))["state"] == "applied"
        assert one.editor.text(app) == DONE


FAULTS = {
    "text: That makes no sense there.\n": "but answered: That makes no sense there.",
    "stop: refusal\n": "The model refused to answer.",
    f"stop: max_tokens\n{call()}": None,
    "text: Well, I\nstop: max_tokens\n": "cut off at its limit of length",
    "error: auth times=9\n": 'The script makes this request fail with "auth"',
    "error: too_long times=9\n": 'The script makes this request fail with "too_long"',
    call("Here:\n```\nx\n```\n") + "---\ntext: I give up.\n": "without fences or words around it",
    'call: bash {"command": "ls"}\n---\ntext: Sorry.\n': "but answered: Sorry.",
}


@pytest.mark.parametrize(("script", "said"), FAULTS.items())
async def test_what_went_wrong_is_said(
    root: Path, state: Path, app: Path, script: str, said: str | None
) -> None:
    async with person(root, state, script) as one:
        one.editor.open(app)
        await rewrite(one, app)
        last = await end(one)
        if said is None:  # the text was whole all the same
            assert last["state"] == "applied" and one.editor.text(app) == DONE
            return
        assert last["state"] == "failed" and said in last["message"]
        assert one.editor.text(app) == app.read_text() == TEXT and await listed(one) == {}


async def test_a_model_that_is_overloaded_is_asked_again(
    root: Path, state: Path, app: Path
) -> None:
    script = "error: overloaded retry_after=0.3\n" + call()
    async with person(root, state, script) as one:
        one.editor.open(app)
        await rewrite(one, app)
        waiting = await one.client.wait_for("magy/rewrite/draft", lambda p: p["message"])
        assert waiting["state"] == "streaming" and "Trying again" in waiting["message"]
        assert (await end(one))["state"] == "applied"


@pytest.mark.parametrize(
    ("name", "params", "said"),
    [
        (".env", {}, r"not allowed: common rules: read `\.env\.\*|\*\.env` -> deny"),
        ("app.py", {"instruction": "  "}, "The instruction is empty"),
        ("gone.py", {}, "gone.py does not exist"),
        ("app.bin", {}, "app.bin is not text"),
        ("long.txt", {}, "at most 100,000 at once"),
        ("app.py", {"uri": "untitled:Untitled-1"}, "is not the URI of a file"),
        ("app.py", {"model": "nobody/knows"}, "nobody"),
    ],
)
async def test_what_cannot_be_rewritten_is_refused_at_once(
    root: Path, state: Path, app: Path, name: str, params: dict[str, Any], said: str
) -> None:
    """And what may not be read is not sent to any model."""
    (root / ".env").write_text("KEY=1\n")
    (root / "app.bin").write_bytes(b"\x7fELF\x00\x01")
    (root / "long.txt").write_text("x" * 100_001)
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}}
    async with person(root, state, call()) as one:
        about = {"range": whole, "uri": (root / name).as_uri(), **params}
        with pytest.raises(RpcError, match=said):
            await rewrite(one, app, **about)
        assert (await one.client.request("magy/session/list", {}))["sessions"] == []
        assert one.client.notifications("magy/rewrite/draft") == []


async def test_a_rule_that_denies_the_file_holds(root: Path, state: Path, app: Path) -> None:
    settings = {"permission": {"edit": {"app.py": "deny", "*": "allow"}}}
    async with person(root, state, call(), settings=settings) as one:
        with pytest.raises(RpcError, match=r"app\.py was not rewritten.*deny") as caught:
            await rewrite(one, app)
        assert caught.value.reason == "denied"


# --- clients without Magy code ------------------------------------------------------------------


@pytest.mark.req("G001", "G008")
async def test_a_plain_client_has_it_as_a_command(root: Path, state: Path, app: Path) -> None:
    async with person(root, state, SLOW, knows_magy=False) as one:
        one.editor.open(app)
        arguments = [{**place(app), "instruction": "Greet by name"}]
        about = {"command": "magy.rewrite", "arguments": arguments}
        answer = await one.client.request("workspace/executeCommand", about)
        assert answer["sessionId"].startswith("rewrite-")
        begun = await one.client.wait_for("$/progress", lambda p: p["value"]["kind"] == "begin")
        assert begun["value"]["title"] == "Magy: Rewrite: Greet by name"
        await one.client.wait_for("$/progress", lambda p: p["value"]["kind"] == "end")
        assert one.editor.text(app) == DONE
        assert one.client.notifications("magy/rewrite/draft") == []


async def test_a_plain_client_is_told_what_went_wrong(root: Path, state: Path, app: Path) -> None:
    async with person(root, state, "text: No.\n", knows_magy=False) as one:
        one.editor.open(app)
        about = {"command": "magy.rewrite", "arguments": [{**place(app), "instruction": "x"}]}
        await one.client.request("workspace/executeCommand", about)
        shown = await one.client.wait_for(
            "window/showMessage", lambda params: "rewrite" in params["message"]
        )
        assert shown == {
            "type": 2,
            "message": "Magy: The model did not rewrite it, but answered: No.",
        }
        with pytest.raises(RpcError, match="uri is missing"):
            await one.client.request(
                "workspace/executeCommand", {"command": "magy.rewrite", "arguments": []}
            )


# --- two editors --------------------------------------------------------------------------------


async def test_another_editor_is_not_shown_what_it_did_not_ask_for(
    root: Path, state: Path, app: Path
) -> None:
    async with person(root, state, SLOW) as one, person(root, state, command=MAGY) as other:
        one.editor.open(app)
        await rewrite(one, app)
        assert (await end(one))["state"] == "applied"
        await other.client.request("magy/session/list", {})
        assert other.client.notifications("magy/rewrite/draft") == []
