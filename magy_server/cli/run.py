"""`magy run` takes one prompt, and shows its turn until that is over."""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from magy_server.api.service import Service
from magy_server.cli import ending, place
from magy_server.cli.door import ONCE, Composition
from magy_server.cli.prompt import prompt_of
from magy_server.cli.screen.keyboard import Keyboard
from magy_server.cli.screen.printers import Lines, Printer, Records, Silence, record
from magy_server.cli.screen.prose import filled
from magy_server.cli.screen.terminal import Output, Screen, standard_output
from magy_server.cli.screen.view import View
from magy_server.cli.typed_prompt import typed
from magy_server.cli.watch import Watch
from magy_server.config.trust import Trust
from magy_server.core.agents.child import Spawn
from magy_server.core.agents.tree import SESSIONS, stream_of
from magy_server.core.errors import InvalidRequest, MagyError
from magy_server.core.events import Content, Text
from magy_server.core.ports import StreamInfo
from magy_server.core.state.state import State
from magy_server.core.summary import task_id
from magy_server.core.text.markdown import STOPS
from magy_server.engine.session import Session
from magy_server.reviews.views import Summary
from magy_server.tools.prompts.openings import spawned
from magy_server.tools.shell.process_groups import end_group, mark

CLOSING = 5.0
"""Seconds that a turn has to end when its output cannot be written any more."""
SETTLING = 0.5
"""Seconds that a cancelled turn whose commands were killed has to be closed."""
WIPING = 0.3
"""Seconds that a terminal which may be stopped has to take the last line."""


class Interrupts:
    """Ctrl-C once cancels the turn, twice leaves at once; being asked to end (SIGTERM), or having
    lost the terminal, leaves too. What is left open can be resumed."""

    def __init__(self) -> None:
        self._cancel: Callable[[], None] | None = None
        self._restore: Callable[[], None] = lambda: None
        self.left = 0
        """The signal that made the command leave."""
        self.resting = False
        """The command left no turn open."""
        self._asked = False
        self._task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._hear, number)

    def terminal(self, restore: Callable[[], None]) -> None:
        """`restore` puts the terminal back; it is called before the command leaves."""
        self._restore = restore

    @contextmanager
    def cancels(self, cancel: Callable[[], None]) -> Iterator[None]:
        """While a turn runs that `cancel` cancels. After an error nothing is there to cancel, but
        the next Ctrl-C is still the second one."""
        self._cancel = cancel
        yield
        self._cancel = None

    def _hear(self, number: int) -> None:
        if self.left:  # closing takes too long for somebody who asks a third time
            self._restore()
            os._exit(128 + number)
        if number == signal.SIGINT and self._cancel and not self._asked:
            self._asked = True
            self._cancel()
            return
        self.left = number
        self._restore()
        if self._task:
            self._task.cancel()


@dataclass(slots=True)
class Shown:
    """How a turn is shown, from the options that `run` and `resume` share."""

    output: Output
    screen: Screen
    options: argparse.Namespace

    @classmethod
    def on(cls, options: argparse.Namespace) -> Shown:
        output = standard_output()
        return cls(output, Screen(output), options)

    def keyboard(self) -> Keyboard | None:
        return None if self.options.json else Keyboard.open()

    def printer(self, session_id: str, asks: bool) -> Printer:
        thinking, rendered = self.options.thinking, self.screen.renders
        view = View(self.screen.marks, thinking=thinking, rendered=rendered)
        if self.options.json:
            return Records(self.output, session_id)
        if self.options.quiet and not asks:
            return Silence()
        return Lines(self.screen, view, quiet=self.options.quiet)

    async def end(
        self,
        session_id: str,
        found: ending.Totals,
        unasked: list[str],
        reviewed: Sequence[Summary] = (),
    ) -> int:
        """`reviewed`: the files of the project that are under review."""
        code = ending.exit_code(found.stop, unasked=bool(unasked))
        if self.options.json:
            await self.output.write(record(ending.result(found, session_id, code, unasked)))
        elif self.options.quiet:
            await self.screen.write([(f"{found.text}\n", "")] if found.text else [])
        else:
            width, changed = self.screen.width, bool(found.changes)
            line = ending.last_line(found, session_id, self.screen.marks, width)
            waits = ending.waiting(reviewed, session_id, changed=changed, width=width)
            await self.screen.write([("\n", ""), *waits, *line])
        if self.options.quiet and found.stop != "end_turn":
            complain(f"{STOPS.get(found.stop or '', 'left open')}. {found.message}".strip())
        for rule in dict.fromkeys(unasked):
            complain(
                f"refused, because without a terminal there is nobody to ask: {rule}. Use an agent "
                "that allows it (a file with `extends: build` and `permissions`, see "
                "docs/howto/agents.md), or use --bypass to answer every question with yes."
            )
        return code


def complain(sentence: str) -> None:
    """Writes a sentence to standard error, if there is one."""
    with suppress(OSError, AttributeError, ValueError):
        descriptor = sys.stderr.fileno()
        width = os.get_terminal_size(descriptor).columns if os.isatty(descriptor) else 0
        said = filled(sentence, width, "magy: ") if width else f"magy: {sentence}\n"
        print(said, end="", file=sys.stderr, flush=True)


def run(options: argparse.Namespace, app: Composition) -> int:
    """Runs the command, and returns the exit code. Raises MagyError, and KeyboardInterrupt while it
    reads standard input."""
    shown = Shown.on(options)
    content = prompt_of(typed(options, app) if options.prompt is None else options.prompt)
    return asyncio.run(_interruptible(options, app, shown, content))


async def _interruptible(
    options: argparse.Namespace, app: Composition, shown: Shown, content: Sequence[Content]
) -> int:
    interrupts = Interrupts()
    named: list[str] = []
    try:
        return await _run(options, app, interrupts, shown, content, named)
    except asyncio.CancelledError:
        return left(interrupts, named)


async def _run(
    options: argparse.Namespace,
    app: Composition,
    interrupts: Interrupts,
    shown: Shown,
    content: Sequence[Content],
    named: list[str],
) -> int:
    root, cwd = place.project(options.root, options.cwd)
    info = await _source(options, app, root)
    root = info.root or root if info else root
    async with app.compose([root], ONCE) as (service, trust):
        _say_ignored(trust, root)
        session_id = await _session(options, service, trust, info, root, cwd)
        named.append(session_id)
        task = spawned(content[0].text) if isinstance(content[0], Text) else None
        child = await _spawn(service, session_id, *task, content[1:]) if task else None
        turn = Turn(service, interrupts, shown, child or session_id)
        async with Bypass(service, child or session_id, options.bypass):
            return await (turn.watch(0, task_id(child)) if child else turn.prompt(content))


async def _spawn(
    service: Service, parent: str, agent: str, task: str, attached: Sequence[Content]
) -> str:
    """Spawns a child of the session, and returns its id. Raises MagyError."""
    asked = Spawn(
        key=f"t-{secrets.token_hex(6)}",
        agent=agent,
        prompt=(Text(text=task), *attached),
        by="magy run",
    )
    return (await service.children.spawn(parent, asked))[0].session


def left(interrupts: Interrupts, named: list[str]) -> int:
    if named:
        how = (
            f'magy run --resume {named[0]} "..."'
            if interrupts.resting
            else (f"magy sessions resume {named[0]}")
        )
        complain(f"left; continue with `{how}`.")
    else:
        complain("left before anything happened.")
    return 128 + (interrupts.left or signal.SIGINT)


def _say_ignored(trust: Trust, root: str) -> None:
    if ignored := trust.ignored(root):
        complain(
            f"{root} is not trusted, so these settings are ignored: {', '.join(ignored)}. `magy "
            "config trust` trusts it."
        )
    for problem in dict.fromkeys([*trust.problems(root), *trust.problems(None)]):
        complain(problem)


async def _source(options: argparse.Namespace, app: Composition, root: str) -> StreamInfo | None:
    """Returns the session to go on with or to copy. Raises NotFound."""
    given = options.resume or options.fork
    if not given and not options.newest:
        return None
    store = await app.store()
    try:
        if given:
            return await place.resolve(store, given)
        newest = (await store.streams(SESSIONS, root=root, flat=True, limit=1)).items
    finally:
        await store.close()
    if not newest:
        raise InvalidRequest(f"There is no session of {root} to continue.")
    return newest[0]


async def _session(
    options: argparse.Namespace,
    service: Service,
    trust: Trust,
    info: StreamInfo | None,
    root: str,
    cwd: str,
) -> str:
    """Opens the session, or prepares the one to go on with, and returns its id."""
    store = service.world.store
    if info is None:
        id = await place.fresh_id(store)
        agent = options.agent or trust.settings(root).default_agent
        await _check_model(service, {"agent": agent, "model": options.model or ""}, root)
        await service.open(id, root, cwd, agent, options.model or "")
        return id
    id = info.id
    if options.fork:
        source, id = id, await place.fresh_id(store)
        await service.fork(source, id, None)
    if options.agent:
        await service.configure(id, "agent", options.agent)
    if options.model:
        await service.configure(id, "model", options.model)
    return id


async def _check_model(service: Service, wanted: dict[str, str], root: str) -> None:
    """Checks the model before there is a session. Raises ProviderError that says what to set."""
    model = (await service.options(wanted, root))["model"]
    models = service.world.models(root)
    models.named(model or await models.default())


class Bypass:
    """Answers questions with yes, as long as this lasts."""

    def __init__(self, service: Service, session_id: str, wanted: bool) -> None:
        self._engine = service
        self._id = session_id
        self._wanted = wanted

    async def __aenter__(self) -> None:
        if (await self._engine.loaded.session(stream_of(self._id))).state.bypass:
            complain(
                "bypass is on in this session: Magy answers every permission question with yes."
            )
            self._wanted = False
        if self._wanted:
            await self._engine.configure(self._id, "bypass", "on")

    async def __aexit__(self, *exc: object) -> None:
        if self._wanted:
            await self._engine.configure(self._id, "bypass", "off")


class Turn:
    """One turn on this terminal."""

    def __init__(
        self, service: Service, interrupts: Interrupts, shown: Shown, session_id: str
    ) -> None:
        self._engine = service
        self._interrupts = interrupts
        self._shown = shown
        self._id = session_id

    async def prompt(self, content: Sequence[Content]) -> int:
        message = f"run-{secrets.token_hex(8)}"
        start = (await self._engine.info(self._id)).head
        await self._engine.prompt(self._id, message, content, "steer")
        return await self.watch(start, message)

    async def resume(self, start: int) -> int:
        await self._engine.resume(self._id)
        return await self.watch(start, None)

    async def watch(self, start: int, awaited: str | None) -> int:
        """Shows what comes after entry `start`, and what an open turn does by then, to the end of
        the turn that the prompt `awaited` joins; None: of whatever turn is open. The exit code."""
        session = await self._engine.loaded.session(stream_of(self._id))
        start = min([start, *_under_way(session.state)])
        with ExitStack() as closing:
            keyboard = self._shown.keyboard()
            if keyboard:
                closing.enter_context(keyboard)
                self._interrupts.terminal(keyboard.restore)
            printer = self._shown.printer(self._id, keyboard is not None)
            watch = Watch(self._engine, session, start, printer, keyboard, awaited)
            try:
                with self._interrupts.cancels(watch.cancel):
                    await watch.run()
            except asyncio.CancelledError:
                with suppress(MagyError, TimeoutError):
                    async with asyncio.timeout(WIPING):
                        await printer.say([])
                await self._kill(session)
                self._interrupts.resting = session.state.turn is None
                raise
            except MagyError:
                # Nobody sees what it does any more, so it shall not go on doing it.
                with suppress(MagyError, TimeoutError):
                    await self._engine.cancel(self._id, None)
                    async with asyncio.timeout(CLOSING):
                        await settled(session, lambda now: now.turn is None)
                raise
        entries = await self._engine.world.store.read(session.stream, after=start)
        found = ending.totals(entries)
        if watch.cancelled:
            found.stop = "cancelled"
        reviewed = await self._reviewed(session)
        return await self._shown.end(self._id, found, watch.unasked, reviewed)

    async def _reviewed(self, session: Session) -> Sequence[Summary]:
        opened = session.state.opened
        with suppress(MagyError):  # the turn has ended as it has
            if opened and opened.root:
                return await self._engine.reviews.list(opened.root)
        return ()

    async def _kill(self, session: Session) -> None:
        """Ends what runs, without the time that a command has to end by itself: somebody is in a
        hurry, and what would be left running is nobody's. A cancelled turn then ends at once."""
        tree = self._engine.loaded.tree(session.stream)
        await asyncio.gather(
            *(
                end_group(group, mark(one.id, call), 0.0)
                for one in {each.stream: each for each in (session, *tree)}.values()
                for call, group in _groups(one.state)
            )
        )
        state = session.state
        if state.turn and state.turn.cancel:
            with suppress(TimeoutError):
                async with asyncio.timeout(SETTLING):
                    await settled(session, lambda now: now.turn is None)


def _under_way(state: State) -> Iterator[int]:
    """Where the requests stand whose calls are open: what these ask is asked after that."""
    for call in state.turn.open_calls if state.turn else ():
        yield int(call.call.id.partition(".")[0])


def _groups(state: State) -> Iterator[tuple[str, int]]:
    """Returns (call, process group) of every command that runs."""
    yield from state.background.items()
    for call in state.turn.open_calls if state.turn else ():
        if call.started and call.started.group is not None:
            yield call.call.id, call.started.group


async def settled(session: Session, reached: Callable[[State], bool]) -> None:
    """Waits until the session is in such a state."""
    moved = asyncio.Event()
    unwatch = session.watch(moved.set)
    try:
        while not reached(session.state):
            moved.clear()
            await moved.wait()
    finally:
        unwatch()
