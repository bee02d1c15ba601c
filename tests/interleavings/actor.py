"""Who has Magy change one place of the file, again and again, and knows what must come of it."""

from __future__ import annotations

import json
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.lsp.client import RpcError

from . import command
from .command import Quiet, idle
from .editor import Editor, Wire
from .text import KEY, Sheet, State, belongs, lines_of, more, strip, tag

REWRITES = 3


class Wrong(Exception):
    """What Magy did to a target cannot be right."""


def script(paths: list[Path], targets: int) -> str:
    """What the model says in all cases."""
    said = []
    for target in range(targets):
        for number in range(REWRITES):
            text = "".join(f"{line}\n" for line in rewritten(target, number))
            call = json.dumps({"text": text})
            said.append(f"prompt: rewrite {target} as {number}.\ncall: replace_selection {call}\n")
        for path in paths:
            for kind in ("in", "above"):
                new = f"{tag(target)} agent's"
                if kind == "above":
                    new = f"{more(target)} agent's\n{tag(target)}"
                edit = {"path": path.name, "old_text": tag(target), "new_text": new}
                prompt = f"edit {target} {kind} {path.name}."
                said.append(f"prompt: {prompt}\ncall: edit_file {json.dumps(edit)}\n---\n")
                said.append("text: Done.\n")
    said += [command.script(path) for path in paths]
    return "".join(said)


def rewritten(target: int, number: int) -> tuple[str, ...]:
    lines = (f"{tag(target)} rewritten {number}", f"{more(target)} and more")
    return lines[: 1 + number % 2]


@dataclass(frozen=True, slots=True)
class Decided:
    id: str
    before: State
    after: State


class Actor:
    """Of one target. Keys that are in its lines when the person asks for them to be replaced may
    go."""

    def __init__(
        self,
        rng: random.Random,
        wire: Wire,
        editor: Editor,
        path: Path,
        sheet: Sheet,
        target: int,
        quiet: Quiet,
    ) -> None:
        self._quiet = quiet
        self._rng, self._wire, self._editor = rng, wire, editor
        self._path, self._uri = path, path.as_uri()
        self._sheet, self._target = sheet, target
        self._last: Decided | None = None
        self._number = 0
        self._going: set[str] = set()
        self.did: list[str] = []
        self.refused = 0

    @property
    def state(self) -> State:
        return self._sheet.states[self._target]

    async def act(self, times: int) -> None:
        for _ in range(times):
            async with self._quiet.step():
                await self._step()

    async def _step(self) -> None:
        ways: list[tuple[int, Callable[[], Awaitable[None]]]] = [
            (4, self._apply),
            (1, self._rewrite),
            (1, self._turn),
        ]
        if self.state.pending:
            ways += [(3, self._reject), (2, self._accept), (2, self._amend)]
        if self._last and self._last.after == self.state:
            ways.append((4, self._undo))
        (way,) = self._rng.choices([w for _, w in ways], [n for n, _ in ways])
        self.did.append(f"{self._target}{way.__name__}")
        await way()

    def _become(self, text: tuple[str, ...], base: tuple[str, ...] | None = None) -> None:
        self._sheet.states[self._target] = State(self.state.base if base is None else base, text)

    def _refused(self, why: Any) -> None:
        """Magy may refuse where the person types in the very lines, and nowhere else. Then no key
        goes."""
        self.did.append("refused")
        if self._target not in self._sheet.typed_at:
            raise Wrong(f"{' '.join(self.did[-2:])} at {self._target}, for no reason: {why}")
        self._sheet.loose -= self._going
        self._going.clear()
        self.refused += 1

    def _key(self) -> str:
        self._number += 1
        return f"{self._path.stem}.{self._target}.{self._number}"

    async def _ask(self, method: str, **params: Any) -> Any:
        trace = self._editor.traces[self._uri]
        trace.append(f"ask {method} {json.dumps(params)}")
        try:
            answer = await self._wire.request(f"magy/{method}", params, 60)
        except RpcError as error:
            trace.append(f"answer {params.get('requestKey', method)} {error}")
            raise
        trace.append(f"answer {params.get('requestKey', method)} {json.dumps(answer)}")
        return answer

    def _lines(self) -> list[tuple[int, str]]:
        """Number and text of those from the first of the target to the last."""
        lines = self._editor.texts[self._uri].split("\n")
        own = [n for n, line in enumerate(lines) if belongs(line, self._target)]
        return [(n, lines[n]) for n in range(own[0], own[-1] + 1)] if own else []

    def _may_go(self, shown: str = "") -> None:
        """Keys that are in the lines now, or in what the person was shown of them."""
        text = "\n".join([shown, *(line for _, line in self._lines())])
        self._going = set(KEY.findall(text)) - self._sheet.loose
        self._sheet.loose |= self._going

    def _fresh(self, first: str) -> tuple[str, ...]:
        name = self._key()
        count = self._rng.choice((1, 1, 2, 3))
        rest = [f"{more(self._target)} {first} {name} line {n}" for n in range(1, count)]
        return (f"{tag(self._target)} {first} {name}", *rest)

    # --- edits ----------------------------------------------------------------------------------

    async def _apply(self) -> None:
        was = self.state.text
        if len(was) > 1 and self._rng.random() < 0.3:
            n = self._rng.randrange(1, len(was))
            new, old, put = (*was[:n], *was[n + 1 :]), was[n : n + 1], ()
        elif self._rng.random() < 0.3:
            n = self._rng.randrange(len(was))
            added = f"{more(self._target)} added {self._key()}"
            new, old, put = (*was[: n + 1], added, *was[n + 1 :]), was[n : n + 1], (was[n], added)
        else:
            new = put = self._fresh("applied")
            old = was
        sides = ["".join(f"{line}\n" for line in side) for side in (old, put)]
        edit = {"old_text": sides[0], "new_text": sides[1]}
        done = await self._ask("edit/apply", uri=self._uri, edits=[edit], requestKey=self._key())
        if done["applied"]:
            self._become(new)
        else:
            self._refused(done["failures"])

    async def _rewrite(self) -> None:
        lines = self._lines()
        if not lines:
            raise Wrong(f"target {self._target} is gone")
        number = self._rng.randrange(REWRITES)
        ends = {
            "start": {"line": lines[0][0], "character": 0},
            "end": {"line": lines[-1][0] + 1, "character": 0},
        }
        self._may_go()
        about = {"instruction": f"rewrite {self._target} as {number}.", "requestKey": self._key()}
        try:
            started = await self._ask("rewrite/start", uri=self._uri, range=ends, **about)
        except RpcError as error:
            return self._refused(error)
        session = started["sessionId"]
        heard = await self._wire.heard(
            session,
            lambda m: m["method"] == "magy/rewrite/draft" and m["params"]["state"] != "streaming",
        )
        last = heard[-1]["params"]
        if last["state"] != "applied":
            return self._refused(last)
        self._going.clear()
        return self._become(rewritten(self._target, number))

    async def _turn(self) -> None:
        was, name = self.state, self._key()
        kind = self._rng.choice(("in", "above"))
        if any(
            f"{mark(self._target)} agent's" in line for line in was.text for mark in (tag, more)
        ):
            return None  # it would be there already
        session = f"s-{name}"
        root = str(self._path.parent)
        await self._ask("session/new", cwd=root, sessionId=session)
        self._wire.sessions[session]
        await self._ask("session/subscribe", sessionId=session)
        said = [{"type": "text", "text": f"edit {self._target} {kind} {self._path.name}."}]
        await self._ask("session/prompt", sessionId=session, messageId="p1", prompt=said)
        heard = await self._wire.heard(session, idle)
        updates = [m["params"].get("update", {}) for m in heard]
        if not any(u.get("status") == "completed" for u in updates):
            return self._refused(updates)
        mark = tag(self._target)
        first = was.text.index(next(line for line in was.text if line.startswith(mark)))
        if kind == "in":
            lines = (was.text[first].replace(mark, f"{mark} agent's"),)
        else:
            lines = (f"{more(self._target)} agent's", was.text[first])
        self._become((*was.text[:first], *lines, *was.text[first + 1 :]))
        if self._rng.random() < 0.6:
            await self._restored(session, was)
        return None

    async def _restored(self, session: str, was: State) -> None:
        after, key = self.state.text, self._key()
        self.did.append("restore")
        done = await self._ask("checkpoint/restore", sessionId=session, turnId="p1", requestKey=key)
        if any(file["conflict"] for file in done["files"]):
            return self._refused(done)
        self._become(was.text)
        if self._rng.random() < 0.5:
            self.did.append("redo")
            again = self._key()
            done = await self._ask(
                "checkpoint/restore", sessionId=session, undoes=key, requestKey=again
            )
            if any(file["conflict"] for file in done["files"]):
                return self._refused(done)
            self._become(after)
        return None

    # --- decisions ------------------------------------------------------------------------------

    async def _hunks(self) -> list[Any]:
        """Those of the target."""
        file = (await self._ask("review/get", uri=self._uri))["file"]
        found = []
        for hunk in file["hunks"] if file else []:
            lines = [line for line in lines_of(hunk["oldText"]) + lines_of(hunk["newText"]) if line]
            if lines and belongs(strip(lines[0]), self._target):
                found.append(hunk)
        return found

    async def _decide(self, verb: str, seen: list[Any] | None = None, **more: Any) -> Any:
        """The answer, where all of it was decided. `seen`: the hunks that it is about."""
        hunks = await self._hunks() if seen is None else seen
        if not hunks and self._target in self._sheet.typed_in:
            return None
        if not hunks:
            raise Wrong(f"no hunk is pending at {self._target}, but {self.state} is so")
        if verb != "accept":
            self._may_go(hunks[0]["newText"] if verb == "amend" else "")
        ids = [hunk["hunkId"] for hunk in hunks]
        try:
            done = await self._ask(
                "review/resolve",
                uri=self._uri,
                decision=verb,
                hunkIds=ids,
                requestKey=self._key(),
                **more,
            )
        except RpcError as error:
            return self._refused(error)
        if done["decisionId"] is not None:
            self._going.clear()
        states = {result["state"] for result in done["results"]}
        if done["decisionId"] is None or states & {"stale", "conflict"}:
            return self._refused(done)
        return done

    def _decided(self, done: Any, before: State) -> None:
        self._last = Decided(done["decisionId"], before, self.state)

    async def _accept(self) -> None:
        before = self.state
        if done := await self._decide("accept"):
            self._become(before.text, before.text)
            self._decided(done, before)

    async def _reject(self) -> None:
        before = self.state
        if done := await self._decide("reject"):
            self._become(before.base)
            self._decided(done, before)

    async def _amend(self) -> None:
        before = self.state
        hunks = await self._hunks()
        whole = len(hunks) == 1 and tuple(lines_of(hunks[0]["newText"].rstrip("\n"))) == before.text
        if not whole:
            return
        text = self._fresh("amended")
        if done := await self._decide("amend", hunks, text="\n".join(text) + "\n"):
            self._become(text, text)
            self._decided(done, before)

    async def _undo(self) -> None:
        last = self._last
        assert last is not None
        done = await self._ask(
            "review/undo", uri=self._uri, decisionId=last.id, requestKey=self._key()
        )
        if done["decisionId"] is None:
            return self._refused(done)
        self._sheet.states[self._target] = last.before
        self._last = Decided(done["decisionId"], last.after, last.before)
        return None
