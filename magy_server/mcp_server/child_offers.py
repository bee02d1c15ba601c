"""These functions are the tools of `magy mcp serve` that spawn child agents, write to them, wait
for them, list and close them."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any

from magy_server.api.wire import children as wire
from magy_server.api.wire.shapes import Block, TextBlock
from magy_server.core.agents import tree
from magy_server.core.errors import InvalidRequest
from magy_server.mcp_server import tool_inputs
from magy_server.mcp_server.calling import Calling, Told
from magy_server.mcp_server.served_project import Served


def _words(text: str) -> list[Block]:
    return [TextBlock(type="text", text=text)]


async def spawn(served: Served, asked: tool_inputs.SpawnChild, call: Calling) -> Told:
    await served.info(asked.session)
    spawned = await served.children.spawn(
        wire.ChildSpawnParams(
            parent_session_id=asked.session,
            request_key=f"m-{secrets.token_hex(6)}",
            agent=asked.agent,
            prompt=_words(asked.prompt),
            name=asked.name,
            context=asked.context,
            model=asked.model,
            permissions=asked.permissions,
            worktree=asked.worktree,
        )
    )
    child = _child(spawned.child)
    return Told(f"The child {child['child']} has begun; child_wait waits for it.", child)


async def send(served: Served, asked: tool_inputs.SendChild, call: Calling) -> Told:
    await _child_of(served, asked.child)
    sent = await served.children.send(
        wire.ChildSendParams(
            session_id=asked.child,
            request_key=f"mcp-{secrets.token_hex(8)}",
            prompt=_words(asked.prompt),
        )
    )
    return Told(f"The message to {asked.child} was {sent.outcome}.", {"outcome": sent.outcome})


async def wait(served: Served, asked: tool_inputs.WaitForChildren, call: Calling) -> Told:
    for session_id in (*filter(None, [asked.session]), *(asked.children or ())):
        await served.info(session_id)
    await call.progress("waits for children")
    waited = await served.children.wait(
        wire.ChildWaitParams(
            parent_session_id=asked.session,
            session_ids=asked.children,
            until=asked.until,
            after_seq=asked.after,
            timeout_ms=int(asked.wait_seconds * 1000),
        )
    )
    results = [{**_child(one.child), "result": one.text} for one in waited.results]
    data = {"results": results, "timed_out": waited.timed_out, "seq": waited.seq}
    parts = [f"## {one['child']} ({one['state']})\n\n{one['result']}" for one in results]
    parts += ["The time is over; nothing was cancelled. Wait again."] if waited.timed_out else []
    return Told("\n\n".join([*parts, f"[seq {waited.seq}]"]), data)


async def listed(served: Served, asked: tool_inputs.Session, call: Calling) -> Told:
    await served.info(asked.session)
    found = await served.children.list(
        wire.ChildListParams(parent_session_id=asked.session, include_closed=True, limit=200)
    )
    data = {"children": [_child(one) for one in found.children]}
    return Told(json.dumps(data, ensure_ascii=False, indent=1), data)


async def close(served: Served, asked: tool_inputs.CloseChild, call: Calling) -> Told:
    await _child_of(served, asked.child)
    closed = await served.children.close(
        wire.ChildCloseParams(session_id=asked.child, mode=asked.mode)
    )
    names = ", ".join(closed.closed) or "nothing, as it was closed before"
    data = {"closed": closed.closed, "previous_state": closed.previous_state}
    return Told(f"Closed {names}.", data)


async def _child_of(served: Served, session_id: str) -> None:
    """Raises NotFound, InvalidRequest: it is no child."""
    await served.info(session_id)
    if tree.parent(session_id) is None:
        raise InvalidRequest(f"{session_id} is not a child; session_prompt speaks to a session.")


def _child(child: wire.Child) -> Mapping[str, Any]:
    return {
        "child": child.session_id,
        "parent": child.parent_session_id,
        "name": child.name,
        "agent": child.agent,
        "state": child.state,
        "questions": child.questions,
        "said": child.said,
    }
