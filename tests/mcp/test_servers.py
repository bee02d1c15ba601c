"""Connections to real servers, over real pipes: one written with the SDK, and one that misbehaves
in every way."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

import psutil
import pytest

from magy_server.core.errors import ToolError
from magy_server.core.events import Answered
from magy_server.core.mcp.server_settings import McpServer
from magy_server.core.tool import Result, ToolContext
from magy_server.core.values import Facts, Form
from magy_server.mcp.connection import Connection
from magy_server.mcp.kept_logins import kept
from magy_server.mcp.offers import Link, LinkError, Notices
from magy_server.mcp.servers import Means, Servers
from magy_server.tools.files.pictures import picture
from magy_server.tools.shell.piped_programs import PipedPrograms
from magy_server.tools.shell.processes import Processes
from tests.patience import PATIENCE

HERE = Path(__file__).parent
KEY = "sk-test-1234567890"


@dataclass
class Seen:
    """The context of a call: what it does is kept."""

    call: str = "7.0"
    facts: Facts = field(default_factory=Facts)
    shown: list[str] = field(default_factory=list)
    started_: int = 0
    asked: list[Form] = field(default_factory=list)
    answers: list[dict[str, Any] | None] = field(default_factory=list)
    """What the person fills in, form by form; None: they refuse. Then nobody answers."""

    async def started(self, *_: Any) -> None:
        self.started_ += 1

    def emit(self, text: str) -> None:
        self.shown.append(text)

    async def ask(self, form: Form) -> Answered | None:
        self.asked.append(form)
        if not self.answers:
            return None
        given = self.answers.pop(0)
        return Answered(id="q", allow=given is not None, by="x", content=given)


class House:
    """The servers, as a session finds them."""

    def __init__(self, servers: Servers, configured: dict[str, McpServer]) -> None:
        self.servers = servers
        self.configured = configured
        self.logs: list[str] = []

    async def call(self, name: str, seen: Seen | None = None, /, **given: Any) -> Result:
        """Looks, and runs, as the engine does."""
        tool = await self.servers.named(None, f"mcp__{name}")
        assert tool is not None
        context = seen or Seen()
        ctx, arguments = cast(ToolContext, context), tool.arguments(given)
        context.facts, _ = await tool.facts(ctx, **arguments)
        return await tool.run(ctx, **arguments)

    async def names(self) -> set[str]:
        """Waits until all tools are there."""
        return set(await self.servers.gathered(None))

    async def until(self, there: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not there():
                await asyncio.sleep(0.02)


def sample(**more: Any) -> McpServer:
    return McpServer(command=sys.executable, args=[str(HERE / "sdk_server.py")], **more)


def rude(how: str = "", **more: Any) -> McpServer:
    args = [str(HERE / "rude_server.py"), *([how] if how else [])]
    return McpServer(command=sys.executable, args=args, start_timeout=PATIENCE, **more)


@asynccontextmanager
async def house(
    tmp_path: Path, base: Mapping[str, str] | None = None, **configured: McpServer
) -> AsyncIterator[House]:
    processes = Processes({"MAGY_TEST_KEY"}, base={**os.environ, **(base or {})})
    lines: list[str] = []
    means = Means(
        PipedPrograms(processes),
        picture,
        lambda: str(tmp_path),
        lambda name: lines.append,
        partial(kept, tmp_path),
    )
    async with Servers(tuple, lambda root: configured, means) as servers:
        one = House(servers, configured)
        one.logs = lines
        yield one
    running = [p for p in psutil.process_iter() if _marked(p)]
    assert not running, "a server is left running"


def _marked(process: psutil.Process) -> bool:
    try:
        mark = process.environ().get("MAGY_CALL", "")
    except psutil.Error:
        return False
    return mark.startswith(f"mcp:{os.getpid()}.")


# --- what servers do ------------------------------------------------------------------------------


@pytest.mark.req("G040")
async def test_tools_are_called_and_give_text_pictures_pages_and_progress(tmp_path: Path) -> None:
    async with house(tmp_path, sample=sample(start_timeout=PATIENCE)) as one:
        assert (await one.call("sample__echo", text="hé")).for_model == "It said: hé"
        shown = await one.call("sample__picture")
        assert shown.for_model == "Here it is." and shown.images[0].mime == "image/png"
        assert shown.images[0].hash in shown.blobs
        long = await one.call("sample__long", characters=100_000)
        assert len(long.for_model) < 31_000 and 'bash_output(call_id="7.0", offset=20000)' in (
            long.for_model
        )
        assert long.output is not None and len(long.output) == 100_000
        seen = Seen()
        slow = await one.call("sample__slow", seen, steps=3)
        assert slow.for_model == "done at last" and seen.started_ == 1
        assert "1/3 step 1\n" in seen.shown
        failed = await one.call("sample__fail")
        assert not failed.ok and "fail" in failed.for_model


async def test_a_server_gets_what_commands_get_and_what_its_table_names(tmp_path: Path) -> None:
    base = {"MAGY_TEST_KEY": KEY, "OTHER_TOKEN": "t", "LC_ALL": "C.UTF-8"}
    server = sample(env={"MINE": "given", "NAMED": KEY}, start_timeout=PATIENCE)
    async with house(tmp_path, base, sample=server) as one:
        for name, value in {
            "MAGY_TEST_KEY": "(not set)", "OTHER_TOKEN": "(not set)", "LC_ALL": "C.UTF-8",
            "MINE": "given", "NAMED": "[redacted]", "PWD": str(tmp_path),
        }.items():  # fmt: skip
            assert (await one.call("sample__environment", name=name)).for_model == value


async def test_what_its_table_gives_a_server_it_cannot_say_to_a_model_or_a_log(
    tmp_path: Path,
) -> None:
    server = sample(env={"TOKEN": KEY, "HERE": str(tmp_path)}, start_timeout=PATIENCE)
    async with house(tmp_path, sample=server) as one:
        assert (await one.call("sample__environment", name="TOKEN")).for_model == "[redacted]"
        assert (await one.call("sample__echo", text=KEY)).for_model == "It said: [redacted]"
        here = await one.call("sample__environment", name="HERE")
        assert here.for_model == str(tmp_path)
    odd = McpServer(command=sys.executable, args=["-c", f"exit('{KEY}')"], env={"TOKEN": KEY})
    async with house(tmp_path, odd=odd) as one:
        with pytest.raises(ToolError, match=r"the last that it wrote: \[redacted\]"):
            await one.call("odd__x")
        assert KEY not in "".join(one.logs) and "[redacted]" in "".join(one.logs)


async def test_only_the_tools_that_a_person_wants_are_there(tmp_path: Path) -> None:
    server = rude(tools=["h*", "die"], without_tools=["huge"])
    async with house(tmp_path, rude=server) as one:
        await one.servers.named(None, "mcp__rude__hang")
        assert await one.names() == {"mcp__rude__hang", "mcp__rude__die"}


async def test_a_slow_server_keeps_no_prompt_waiting_and_comes_later(tmp_path: Path) -> None:
    async with house(tmp_path, slow=rude("slow"), silent=rude("silent")) as one:
        began = time.monotonic()
        first = await one.names()
        assert "mcp__slow__die" not in first
        assert (
            time.monotonic() - began < 20
        )  # and not the 3 seconds of each, were this machine idle
        before = time.process_time()
        await one.names()
        assert time.process_time() - before < 1
        await one.until(lambda: "mcp__slow__die" in one.servers.there(None))


# --- what servers should not do -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("die", "was lost during the call: it has ended; the last that it wrote: I am dying"),
        ("endless_line", "was lost during the call: it sent a message of more than 32 MB"),
        ("nonsense", "is no result of a tool"),
    ],
)
async def test_a_call_that_goes_wrong_says_so_and_the_next_one_works(
    tmp_path: Path, tool: str, said: str
) -> None:
    async with house(tmp_path, rude=rude()) as one:
        with pytest.raises(ToolError, match=said):
            await one.call(f"rude__{tool}")
        assert "delete everything" in (await one.call("rude__babble")).for_model


async def test_a_server_that_hangs_is_ended_and_started_again(tmp_path: Path) -> None:
    """Also while it does not even read: to give a call up waits for no pipe."""
    async with house(tmp_path, rude=rude(call_timeout=1)) as one:
        await one.servers.named(None, "mcp__rude__hang")
        began = time.monotonic()
        hang, deaf = await asyncio.gather(
            one.call("rude__hang"),
            one.call("rude__babble", x="y" * 1_000_000),
            return_exceptions=True,
        )
        assert time.monotonic() - began < 14
        assert re.search(r"did not answer within 1 seconds\. It is unknown", str(hang))
        assert isinstance(deaf, ToolError)
        assert "it does not answer any more, and is ended" in one.logs
        assert "delete everything" in (await one.call("rude__babble")).for_model


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("steal", "the field 'password' looks like a secret"),
        ("ask", "Sampling not supported"),
    ],
)
async def test_a_server_that_asks_for_what_it_may_not_is_refused(
    tmp_path: Path, tool: str, said: str
) -> None:
    async with house(tmp_path, rude=rude()) as one:
        seen = Seen(answers=[{}])
        assert said in (await one.call(f"rude__{tool}", seen)).for_model
        assert not seen.asked


@pytest.mark.req("G040")
async def test_a_person_is_asked_in_the_middle_of_a_call(tmp_path: Path) -> None:
    async with house(tmp_path, rude=rude(call_timeout=PATIENCE)) as one:
        filled = Seen(answers=[{"branch": "main", "push": True}])
        said = json.loads((await one.call("rude__form", filled)).for_model)
        assert said == {"action": "accept", "content": {"branch": "main", "push": True}}
        (form,) = filled.asked
        assert (form.server, form.message) == ("rude", "Which branch?")
        assert [each.name for each in form.fields] == ["branch", "push", "size"]
        refused = Seen(answers=[None])
        assert '"decline"' in (await one.call("rude__form", refused)).for_model
        assert '"cancel"' in (await one.call("rude__form")).for_model
        opened = Seen(answers=[{}])
        assert '"accept"' in (await one.call("rude__link", opened)).for_model
        assert opened.asked[0].url == "https://login.example/x"


async def test_a_server_asks_no_more_than_ten_times(tmp_path: Path) -> None:
    async with house(tmp_path, rude=rude(call_timeout=PATIENCE)) as one:
        seen = Seen()
        assert "more than 10 times" in (await one.call("rude__ask_on", seen)).for_model
        assert len(seen.asked) == 10


async def test_a_person_may_take_longer_than_a_call(tmp_path: Path) -> None:
    @dataclass
    class Slow(Seen):
        async def ask(self, form: Form) -> Answered | None:
            await asyncio.sleep(1.5)
            return await super().ask(form)

    async with house(tmp_path, rude=rude(call_timeout=1)) as one:
        answer = await one.call("rude__form", Slow(answers=[None]))
        assert '"decline"' in answer.for_model


async def test_a_server_that_floods_is_cut_off(tmp_path: Path) -> None:
    async with house(tmp_path, rude=rude()) as one:
        with pytest.raises(ToolError, match="it flooded: more than 20,000 messages"):
            await one.call("rude__flood")


async def test_a_list_of_tools_ends_and_looks_like_what_it_is(tmp_path: Path) -> None:
    async with house(tmp_path, pages=rude("pages"), odd=rude("odd")) as one:
        await one.servers.named(None, "mcp__pages__hang")
        assert "mcp__pages__hang" in await one.names(), "and it does not ask for pages for ever"
        await one.servers.named(None, "mcp__odd__x")
        odd = [tool for name, tool in one.servers.there(None).items() if "__odd__" in name]
        red, long, *_ = odd
        shown = repr(red.schema)
        assert red.description == "Safe<U+202E>.live"
        assert "ok<U+202E>dne" in shown and "x1b" not in shown
        assert len(long.name) == 64 and long.key == f"mcp__odd__{'a' * 5_000}"
        assert any("is left out: its description is too long" in line for line in one.logs)
        assert any("no JSON-RPC message: Welcome!" in line for line in one.logs)


async def test_a_server_whose_tools_change_all_the_time_is_asked_ever_more_seldom(
    tmp_path: Path,
) -> None:
    async with house(tmp_path, restless=rude("restless")) as one:
        await one.servers.named(None, "mcp__restless__hang")
        began = asyncio.get_running_loop().time()
        times: list[float] = []

        def heard() -> bool:
            count = len((tmp_path / "asked").read_text())
            times.extend([asyncio.get_running_loop().time() - began] * (count - len(times)))
            return count >= 5

        await one.until(heard)
        assert times[-1] - times[1] >= 4, times  # 1, 2 and 4 seconds lie between


async def test_ten_megabytes_are_kept_but_not_shown(tmp_path: Path) -> None:
    async with house(tmp_path, rude=rude()) as one:
        huge = await one.call("rude__huge")
        assert len(huge.for_model) < 31_000
        assert huge.output is not None and len(huge.output) < 9 << 20


@pytest.mark.parametrize(
    ("server", "said"),
    [
        (rude("exit"), "it has ended; the last that it wrote: there is no configuration"),
        (McpServer(command="no-such-program-here"), "is not in the PATH that commands get"),
        (McpServer(command="/etc/passwd"), "/etc/passwd cannot be started: "),
        (rude(cwd="/no/such/place"), "the directory /no/such/place does not exist"),
        (rude("silent").model_copy(update={"start_timeout": 0.5}), "not answered within 0.5 sec"),
        (McpServer(url="http://127.0.0.1:1/mcp"), "127.0.0.1|[Cc]onnect"),
    ],
)
async def test_a_server_that_cannot_be_reached_says_why(
    tmp_path: Path, server: McpServer, said: str
) -> None:
    async with house(tmp_path, odd=server) as one:
        with pytest.raises(ToolError, match=f"The MCP server 'odd' cannot be reached: .*{said}"):
            await one.call("odd__die")


async def test_a_tool_that_changed_since_it_was_judged_is_not_called(tmp_path: Path) -> None:
    async with house(tmp_path, rude=rude(call_timeout=1)) as one:
        before = await one.servers.named(None, "mcp__rude__hang")
        assert before is not None
        seen = Seen()
        seen.facts, _ = await before.facts(cast(ToolContext, seen), given={})
        await one.call("rude__change")

        def now() -> object:
            return one.servers.there(None)["mcp__rude__hang"]

        await one.until(lambda: now() is not before)
        after = one.servers.there(None)["mcp__rude__hang"]
        assert after.description == "Now deletes everything."
        with pytest.raises(ToolError, match="has changed this tool since the call was judged"):
            await after.run(cast(ToolContext, seen), given={})
        assert seen.started_ == 0
        same = one.servers.there(None)["mcp__rude__die"]
        assert same is (await one.servers.named(None, "mcp__rude__die"))


async def test_a_server_that_is_configured_no_more_is_ended_and_its_tools_say_so(
    tmp_path: Path,
) -> None:
    async with house(tmp_path, rude=rude()) as one:
        await one.call("rude__babble")
        del one.configured["rude"]
        assert not await one.names()
        await one.until(lambda: not [p for p in psutil.process_iter() if _marked(p)])
        with pytest.raises(ToolError, match="There is no MCP server 'rude' here any more"):
            await one.call("rude__babble")


async def test_a_connection_ends_also_where_closing_it_fails() -> None:
    opening = asyncio.Event()

    @asynccontextmanager
    async def opened(notices: Notices) -> AsyncIterator[Link]:
        try:
            opening.set()
            await asyncio.Event().wait()
            raise AssertionError
            yield
        except asyncio.CancelledError:
            raise LinkError("the pipe is broken") from None

    connection = Connection("odd", McpServer(command="x"), opened, print, picture)
    owner = asyncio.create_task(connection.run())
    connection.want()
    await opening.wait()
    owner.cancel()
    async with asyncio.timeout(PATIENCE):
        await asyncio.wait([owner])
    assert owner.cancelled()


async def test_a_call_that_is_cancelled_is_cancelled_there(tmp_path: Path) -> None:
    async with house(tmp_path, sample=sample(start_timeout=PATIENCE)) as one:
        seen = Seen()
        call = asyncio.create_task(one.call("sample__slow", seen, steps=10_000))
        await one.until(lambda: bool(seen.shown))
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (await one.call("sample__echo", text="on")).for_model == "It said: on"
