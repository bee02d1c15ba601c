"""These functions are the tools of `magy mcp serve` that start sessions, and go on with them."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from typing import Any

from magy_server.api import present
from magy_server.api.sessions.fresh_ids import fresh_id
from magy_server.api.sessions.paragraphs import Paragraphs
from magy_server.api.sessions.totals import Totals, totals
from magy_server.core.text.markdown import STOPS
from magy_server.core.updates import operation
from magy_server.core.values import Text
from magy_server.mcp_server import tool_inputs
from magy_server.mcp_server.calling import Calling, Told
from magy_server.mcp_server.resting import Rest, asking, rested
from magy_server.mcp_server.served_project import Served


async def start(served: Served, asked: tool_inputs.StartSession, call: Calling) -> Told:
    if call.state:  # it was started by an earlier part of this call
        await served.info(call.state)
        return await _answer(served, call.state, asked.wait_seconds, call)
    root, service = served.root, served.service
    cwd = served.directory(asked.directory)
    session_id = await fresh_id(service.world.store)
    agent = asked.agent or served.settings().default_agent
    await service.open(session_id, root, cwd, agent, asked.model)
    return await _prompt(served, session_id, asked.prompt, "steer", asked.wait_seconds, call)


async def prompt(served: Served, asked: tool_inputs.PromptSession, call: Calling) -> Told:
    await served.info(asked.session)
    if call.state:
        return await _answer(served, asked.session, asked.wait_seconds, call)
    return await _prompt(
        served, asked.session, asked.prompt, asked.delivery, asked.wait_seconds, call
    )


async def _prompt(
    served: Served, session_id: str, text: str, delivery: str, seconds: float, call: Calling
) -> Told:
    call.keep(session_id)
    message = f"mcp-{secrets.token_hex(8)}"
    await served.service.prompt(session_id, message, [Text(text=text)], delivery)
    return await _answer(served, session_id, seconds, call)


async def wait(served: Served, asked: tool_inputs.WaitForSession, call: Calling) -> Told:
    await served.info(asked.session)
    return await _answer(served, asked.session, asked.wait_seconds, call)


async def _answer(served: Served, session_id: str, seconds: float, call: Calling) -> Told:
    rest = await rested(served, session_id, seconds, call)
    attached = await served.service.attach(session_id, after=None, tail=1)
    found = totals(attached.entries)
    changed = [
        {"path": served.name(path), "operation": operation(change)}
        for path, change in found.changes.items()
    ]
    data = {
        "session": session_id,
        "state": rest.state,
        "answer": found.text,
        "stop": found.stop if rest.state == "idle" else None,
        "message": found.message,
        "changed": changed,
        "questions": [{"title": one.title, "rule": one.rule} for one in rest.questions],
    }
    return Told("\n".join(_lines(session_id, rest, found, changed)), data)


def _lines(
    session_id: str, rest: Rest, found: Totals, changed: list[dict[str, str]]
) -> Iterator[str]:
    if found.text:
        yield found.text + "\n"
    match rest.state:
        case "idle":
            said = STOPS.get(found.stop or "", "nothing was asked of it yet")
            yield f"[session {session_id}: {said}{f': {found.message}' if found.message else ''}]"
        case "running":
            yield f"[session {session_id} is still at work; session_wait waits for it]"
        case "waiting":
            yield f"[session {session_id} waits for a person to answer:"
            yield from (asking(one) for one in rest.questions)
            yield _who(rest, session_id) + "]"
    if changed:
        names = ", ".join(f"{one['path']} ({one['operation']})" for one in changed)
        yield f"[it changed {names}; what is under review, review_list says]"


def _who(rest: Rest, session_id: str) -> str:
    where = f"in an editor that has the project open, or with `magy sessions resume {session_id}`"
    if rest.alone:
        return f"Nobody can answer now: no other Magy runs. Ask the user to answer {where}"
    return f"It can be answered {where}; session_wait waits for that"


async def cancel(served: Served, asked: tool_inputs.Session, call: Calling) -> Told:
    await served.info(asked.session)
    cancelled = await served.service.cancel(asked.session, None)
    said = "was cancelled" if cancelled else "had no turn to cancel"
    return Told(f"The session {asked.session} {said}.", {"cancelled": cancelled})


async def listed(served: Served, asked: tool_inputs.ListSessions, call: Calling) -> Told:
    page = await served.service.sessions(
        first_root=None, root=served.root, cursor=asked.cursor, limit=asked.limit
    )
    infos = [present.session_info(info) for info in page.items]
    rows: list[dict[str, Any]] = [
        {
            "session": one.session_id,
            "title": one.title or "",
            "agent": one.agent,
            "state": one.state,
            "turns": one.turns,
            "updated_at": one.updated_at,
        }
        for one in infos
    ]
    data = {"sessions": rows, "next_cursor": page.cursor}
    return Told(json.dumps(data, ensure_ascii=False, indent=1), data)


async def read(served: Served, asked: tool_inputs.ReadSession, call: Calling) -> Told:
    info = await served.info(asked.session)
    found: list[str] = []
    size = left_out = 0
    async for paragraph in Paragraphs(served.service.world.store, info).more():
        found.append(paragraph)
        size += len(paragraph) + 2
        while len(found) > 1 and size - len(found[0]) - 2 >= asked.characters:
            gone = len(found.pop(0)) + 2
            size, left_out = size - gone, left_out + gone
    text = "\n\n".join(found)
    if len(text) > asked.characters:
        left_out += len(text) - asked.characters
        text = text[-asked.characters :]
    head = f"[{left_out:,} characters before this are left out]\n\n" if left_out else ""
    return Told(head + text, {"transcript": text, "left_out": left_out})
