"""Everything that goes wrong between Magy and a provider, on all three wires: what becomes of the
turn, how often Magy asks, and what the person reads.

    python -m tests.llm.matrix            the page as things are now
    python -m tests.llm.matrix --write    docs/reference/provider-faults.md

The whole way of a request is real: a composed engine with its retries, the adapters with their
transports, HTTP on loopback. Only the delays are short. Faults run side by side, so the page takes
as long as the slowest of them.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import os
import re
import socket
import ssl
import sys
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from magy_server.api.service import Service
from magy_server.app import Configured, compose
from magy_server.core.errors import ProviderError
from magy_server.core.events import Ended, Replied
from magy_server.core.ports import Delta, ModelFacts, ModelList, ModelRequest, Provider
from magy_server.core.values import Text
from magy_server.engine.model import LONGEST_WAIT
from magy_server.llm.anthropic import AnthropicProvider
from magy_server.llm.openai import ChatProvider, ResponsesProvider
from tests.llm.talking import made
from tests.loopback import (
    Answer,
    AnthropicServer,
    ChatServer,
    Fault,
    ModelServer,
    ResponsesServer,
    cut,
    error,
    hang,
    raw,
    refusal,
    text,
)

TOP = Path(__file__).parents[2]
PAGE = TOP / "docs/reference/provider-faults.md"
CERTIFICATE = TOP / "tests/loopback/self_signed.pem"

Make = Callable[..., AnthropicProvider | ResponsesProvider | ChatProvider]
WIRES: Mapping[str, tuple[type[ModelServer], Make]] = {
    "Anthropic Messages": (AnthropicServer, AnthropicProvider),
    "OpenAI Responses": (ResponsesServer, ResponsesProvider),
    "Chat Completions": (ChatServer, ChatProvider),
}
RETRY_DELAY, ASKED, CONNECT, FIRST_BYTE, STALL = 0.01, 0.2, 3.0, 1.51, 1.52
"""Seconds. Odd ones, so that they are found in the words and shown as the usual ones."""


@dataclass(frozen=True)
class Case:
    """Something that goes wrong. `answer` is what the server says to every request; `by_wire`
    where a wire has words of its own. `place`: where the server is found, or is not."""

    what: str
    answer: Answer = ()
    by_wire: Mapping[str, Answer] = field(default_factory=dict)
    place: str = "there"
    retry_after: float | None = None

    def on(self, wire: str) -> Answer:
        return self.by_wire.get(wire, self.answer)


def status(code: str, message: str, type: str = "", retry_after: float | None = None) -> Fault:
    headers = {} if retry_after is None else {"retry-after": f"{retry_after:g}"}
    return Fault(code, message, type, headers)


HALF = text("half of the reply")
BROKEN = raw(b'data: {"broken\n\n')
NOT_UTF8 = raw(b'data: {"type": "\xff\xfe"}\n\n')
NO_CREDIT: Mapping[str, Answer] = {
    "Anthropic Messages": status(
        "400", "Your credit balance is too low to access the Anthropic API."
    )
}

CASES: Sequence[Case] = (
    Case("Nothing listens there", place="nowhere"),
    Case("`https://` to a port that speaks plain HTTP", place="no tls"),
    Case("A certificate that nobody vouches for", place="self-signed"),
    Case(
        "307: it points elsewhere",
        Fault("307", headers={"location": "https://moved.example.org/v1"}),
    ),
    Case("401: the key is wrong", status("401", "Incorrect API key provided")),
    Case("403: the key may not do this", status("403", "Your account may not use this model")),
    Case("404: no such model", status("404", "The model does not exist")),
    Case("408: the provider waited too long", status("408", "Request timed out")),
    Case("429: too many requests", status("429", "Rate limit reached")),
    Case(
        "429 that says when to come back",
        status("429", "Rate limit reached", retry_after=ASKED),
        retry_after=ASKED,
    ),
    Case(
        "429 that says to come back in two minutes",
        status("429", "Rate limit reached", retry_after=2 * LONGEST_WAIT),
        retry_after=2 * LONGEST_WAIT,
    ),
    Case(
        "The account has no credit left",
        status("429", "You exceeded your current quota", "insufficient_quota"),
        NO_CREDIT,
    ),
    Case("500: the provider fails", status("500", "Internal server error")),
    Case("503: the provider is overloaded", status("503", "The server is overloaded")),
    Case("529: the provider is overloaded", status("529", "Overloaded")),
    Case("No answer begins", Fault("silence"), place="in a hurry"),
    Case("The reply stops in the middle", (HALF, hang()), place="in a hurry"),
    Case("The connection is cut before the answer", Fault("drop")),
    Case("The connection is cut in the middle", (HALF, cut())),
    Case(
        "The provider breaks off in the middle",
        (HALF, error("server_is_overloaded", "Overloaded")),
        {"Anthropic Messages": (HALF, error("overloaded_error", "Overloaded"))},
    ),
    Case("Malformed JSON in the stream", (HALF, BROKEN)),
    Case("Malformed UTF-8 in the stream", (HALF, NOT_UTF8)),
    Case("A web page instead of a reply", Fault("html")),
    Case("200, and nothing", Fault("empty")),
    Case("A reply without content", ()),
    Case("The model refuses", (refusal("I cannot help with that."),)),
    Case(
        "The conversation is too long",
        status("400", "maximum context length exceeded", "context_length_exceeded"),
        {"Anthropic Messages": status("400", "prompt is too long: 210000 > 200000 maximum")},
    ),
)


@dataclass(frozen=True)
class Outcome:
    """`fault` is empty when there was a reply; `may_pass`: the same request may succeed later.
    `tries` is how often the engine asked, `requests` what arrived of it (None: there was no server
    to count); `waits` is how long it waited in between. `words` is what the person reads."""

    fault: str
    may_pass: bool
    tries: int
    requests: int | None
    waits: str
    words: str


class Watched:
    """A provider, and what came of its requests."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self.tries = 0
        self.fault = ""
        self.may_pass = False

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta | Replied, None]:
        self.tries += 1
        stream = self._provider.stream(request)
        try:
            async for item in stream:
                yield item
        except ProviderError as failed:
            self.fault, self.may_pass = failed.fault, failed.retryable
            raise
        finally:
            await stream.aclose()

    async def models(self) -> list[str]:
        return await self._provider.models()

    async def window(self, model: str) -> int:
        return 0

    def warm(self) -> None:
        self._provider.warm()

    async def close(self) -> None:
        await self._provider.close()


class Offered:
    """`engine.world.Models`: the watched providers, each with one model."""

    def __init__(self, watched: Mapping[str, Watched]) -> None:
        self._watched = watched

    def named(self, full: str) -> tuple[Provider, str]:
        return self._watched[full], full.partition("/")[2]

    def facts(self, full: str) -> ModelFacts:
        return ModelFacts()

    async def measured(self, full: str) -> ModelFacts:
        return self.facts(full)

    async def default(self) -> str:
        return next(iter(self._watched))

    def models(self) -> list[str]:
        return list(self._watched)

    async def listed(self) -> list[ModelList]:
        return []


async def run(directory: Path, way: str) -> dict[tuple[int, str], Outcome]:
    """The outcome of every case on every wire. `directory` is empty, and Magy's state goes there:
    `MAGY_STATE_DIR` and `MAGY_CONFIG_DIR` must name it. `way`: one of `talking.WAYS`."""
    project = directory / "project"
    project.mkdir()
    settings = {
        "model": {"retry_delay": RETRY_DELAY},
        "titles": False,
        "audit": {"enabled": False},
    }
    async with AsyncExitStack() as closing:
        stages = [await closing.enter_async_context(_stage(wire, way)) for wire in WIRES]
        watched = {
            f"wire{w}/case{c}": Watched(stage.providers[case.place])
            for w, stage in enumerate(stages)
            for c, case in enumerate(CASES)
        }
        patch = closing.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(Configured, "models", lambda self, root: Offered(watched))
        service, _ = await closing.enter_async_context(compose([str(project)], settings))
        found: dict[tuple[int, str], Outcome] = {}

        async def one(number: int, place: int) -> None:
            model, stage = f"wire{place}/case{number}", stages[place]
            stop, words = await _turn(service, str(project), model)
            found[number, stage.wire] = stage.outcome(number, watched[model], stop, words)

        # What has little time comes last: beside the others it would lack the processor.
        for hurried in (False, True):
            async with asyncio.TaskGroup() as group:
                for number, case in enumerate(CASES):
                    for place in range(len(stages)):
                        if hurried is (case.place == "in a hurry"):
                            group.create_task(one(number, place))
    return found


async def _turn(service: Service, root: str, model: str) -> tuple[str, str]:
    """Why the turn ended, and what the person was shown of it."""
    name = model.replace("/", "-")
    session = await service.open(name, root, root, "build", model)
    moved = asyncio.Event()
    forget = session.watch(moved.set)
    await service.prompt(name, "p1", [Text(text="Hello")], "steer")
    while True:
        events = [entry.event for entry in session.log.recent]
        if ended := next((e for e in events if isinstance(e, Ended)), None):
            break
        await moved.wait()
        moved.clear()
    forget()
    said = [p.text for e in events if isinstance(e, Replied) for p in e.content
            if isinstance(p, Text)]  # fmt: skip
    return ended.stop, "\n".join(filter(None, [*said, ended.message]))


@dataclass
class Stage:
    """One wire: its server, and how it is reached."""

    wire: str
    server: ModelServer
    providers: Mapping[str, Provider]

    def outcome(self, number: int, watched: Watched, stop: str, words: str) -> Outcome:
        case = CASES[number]
        served = case.place in ("there", "in a hurry")
        times = [r.at for r in self.server.asked if r.body["model"] == f"case{number}"]
        waits = "its own" if watched.tries > 1 else ""
        if case.retry_after is not None:
            gaps = [after - before for before, after in pairwise(times)]
            obeyed = bool(gaps) and all(gap >= case.retry_after for gap in gaps)
            waits = "as asked" if obeyed else waits or "gives up"
        fault = watched.fault or (stop if stop != "end_turn" else "")
        return Outcome(
            fault=fault,
            may_pass=watched.may_pass,
            tries=watched.tries,
            requests=len(times) if served else None,
            waits=waits,
            words=normal(words, number),
        )


@asynccontextmanager
async def _stage(wire: str, way: str) -> AsyncIterator[Stage]:
    kind, adapter = WIRES[wire]
    make = partial(made, adapter, way)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    async with AsyncExitStack() as closing:
        server = await closing.enter_async_context(kind())
        secret = await closing.enter_async_context(kind(tls=context))
        nobody = closing.enter_context(socket.socket())
        nobody.bind(("127.0.0.1", 0))  # and no listen: the port stays free of others
        nowhere = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        server.answer(lambda body: CASES[int(body["model"].removeprefix("case"))].on(wire))
        providers = {
            "there": make("key", server.base_url),
            "in a hurry": make(
                "key", server.base_url, connect=CONNECT, first_byte=FIRST_BYTE, stall=STALL
            ),
            "no tls": make("key", server.base_url.replace("http:", "https:")),
            "self-signed": make("key", secret.base_url),
            "nowhere": make("key", nowhere),
        }
        for provider in providers.values():
            await asyncio.to_thread(provider.warm)
            closing.push_async_callback(provider.close)
        yield Stage(wire, server, providers)


# --- the page -----------------------------------------------------------------------------------


def normal(words: str, number: int) -> str:
    """Without what differs from run to run, and with the usual limits instead of the short ones."""
    defaults = inspect.signature(AnthropicProvider.__init__).parameters
    words = re.sub(rf"case{number} at https?://[\d.]+:\d+", "MODEL at URL", words)
    words = words.replace(f"{FIRST_BYTE:g} s", f"{defaults['first_byte'].default:g} s")
    return words.replace(f"{STALL:g} s", f"{defaults['stall'].default:g} s")


def comparable(page: str) -> str:
    """The reasons that OpenSSL gives differ from version to version."""
    return re.sub(r"\(TLS: [^)]*\)", "(TLS)", page)


HEAD = """\
<!-- Generated by `python -m tests.llm.matrix --write`; change what it runs instead. -->

# When a provider fails

What Magy does when something goes wrong between it and a model provider, and what you read then. A
test runs all of it over the three wires that Magy speaks, and fails when this page is not right.

A request that may succeed later is tried again, up to `model.retries` times (4), after
`model.retry_delay` (1 s), then twice as long each time, or as long as the provider asks. While it
waits, the session says so. Nothing of a reply that broke off stays in the session, and trying again
is always safe: no tool with an effect runs before the reply is whole. If the provider asks for more
than a minute, the turn ends, and you decide.

*Fault* is the word that programs get; *passing* faults may be gone when the same request is sent
again; *tried* is how often Magy asked in all. MODEL and URL stand for yours. Where the wires
differ, each has a row.

| What goes wrong | Fault | Passing | Tried | Waits | What you read |
|---|---|---|---|---|---|
"""


def render(found: Mapping[tuple[int, str], Outcome]) -> str:
    lines = []
    for number, case in enumerate(CASES):
        outcomes: dict[tuple[str, ...], list[str]] = {}
        for wire in WIRES:
            o = found[number, wire]
            passing = "yes" if o.may_pass else "no" if o.fault else ""
            fault = f"`{o.fault}`" if o.fault else "none"
            words = o.words or "(nothing)"
            row: tuple[str, ...] = (fault, passing, str(o.tries), o.waits, words)
            outcomes.setdefault(row, []).append(wire)
        for cells, wires in outcomes.items():
            on = "" if len(wires) == len(WIRES) else f" ({', '.join(wires)})"
            lines.append(f"| {' | '.join(map(_cell, (case.what + on, *cells)))} |\n")
    return HEAD + "".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "&#124;").replace("<", "&lt;")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.llm.matrix", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(TOP)}")
    write = parser.parse_args().write
    with tempfile.TemporaryDirectory(prefix="magy-") as directory:
        os.environ |= {"MAGY_STATE_DIR": directory, "MAGY_CONFIG_DIR": directory}
        page = render(asyncio.run(run(Path(directory), "http")))
    if write:
        PAGE.write_text(page, encoding="utf-8")
    else:
        print(page, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
