"""These functions are the tools of `magy mcp serve` that decide about changes under review, and
make edits."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from typing import Any

from magy_server.api.places import paths_of
from magy_server.api.wire import reviews as wire
from magy_server.config.trust import tells_magy
from magy_server.core import permit
from magy_server.core.errors import EditRefused
from magy_server.core.values import Facts
from magy_server.mcp_server import tool_inputs
from magy_server.mcp_server.calling import Calling, Told
from magy_server.mcp_server.served_project import Served
from magy_server.tools.files.paths import resource


async def listed(served: Served, asked: tool_inputs.ListReview, call: Calling) -> Told:
    found = await served.reviews.list(wire.ReviewListParams(session_id=asked.session, limit=1000))
    files = [
        {
            "path": served.name(one.path),
            "status": one.status,
            "proposed": one.mode == "proposed",
            "pending": one.pending,
            "added": one.added,
            "removed": one.removed,
            "sessions": one.sessions,
        }
        for one in found.files
    ]
    data = {"files": files}
    return Told(json.dumps(data, ensure_ascii=False, indent=1), data)


async def hunks(served: Served, asked: tool_inputs.GetReview, call: Calling) -> Told:
    uri = served.uri(asked.path)
    found = await served.reviews.get(wire.ReviewGetParams(uri=uri, proposed=asked.proposed))
    shown = [] if found.file is None else list(map(_hunk, found.file.hunks))
    data = {"path": asked.path, "hunks": shown}
    return Told("\n".join(_texts(data)), data)


def _hunk(hunk: wire.ReviewHunk) -> dict[str, Any]:
    return {
        "hunk": hunk.hunk_id,
        "kind": hunk.kind,
        "line": hunk.range.start.line + 1,
        "old": hunk.old_text,
        "new": hunk.new_text,
        "state": hunk.state,
        "sessions": sorted({one.session_id for one in hunk.origins}),
        "comments": [one.text for one in hunk.comments],
    }


def _texts(data: dict[str, Any]) -> Iterator[str]:
    if not data["hunks"]:
        yield f"Nothing of {data['path']} is under review."
    for one in data["hunks"]:
        yield f"@@ line {one['line']}, hunk {one['hunk']} ({one['kind']}, {one['state']})"
        yield from (f"-{line}" for line in one["old"].splitlines())
        yield from (f"+{line}" for line in one["new"].splitlines())
        yield from (f"# {comment}" for comment in one["comments"])


async def resolve(served: Served, asked: tool_inputs.ResolveReview, call: Calling) -> Told:
    outcome = await served.reviews.resolve(
        wire.ReviewResolveParams(
            uri=served.uri(asked.path),
            proposed=asked.proposed,
            decision=asked.decision,
            hunk_ids=asked.hunks,
            all=asked.hunks is None,
            reason=asked.reason,
            request_key=f"mcp-{secrets.token_hex(8)}",
        )
    )
    results = [{"hunk": one.hunk_id, "state": one.state} for one in outcome.results]
    data = {"results": results, "pending": outcome.pending, "message": outcome.message}
    states = ", ".join(f"{one['hunk']} {one['state']}" for one in results) or "nothing was decided"
    more = f" {outcome.message}" if outcome.message else ""
    return Told(f"{states}; {outcome.pending} of the file are left.{more}", data)


async def edit(served: Served, asked: tool_inputs.ApplyEdit, call: Calling) -> Told:
    """Raises EditRefused: it does not fit, or a rule keeps agents from one of the files."""
    params: dict[str, Any] = {
        "cwd": served.root,
        "uri": served.uri(asked.path) if asked.path else None,
        "format": asked.format,
        "text": asked.text,
        "edits": asked.edits,
        "seen": asked.seen,
    }
    result = await served.edits.preview(wire.EditParams(**params))
    looks = asked.check or bool(result.failures)
    own = [path for path in _named(served, asked, result) if tells_magy(served.root, path)]
    if own and not looks:
        raise EditRefused(
            f"Nothing was changed: {served.name(own[0])} tells Magy what it may do. Let the person "
            "change it."
        )
    await _judge(served, _named(served, asked, result), call, only_looks=looks)
    if not looks:
        key = f"mcp-{secrets.token_hex(8)}"
        result = await served.edits.apply(
            wire.EditApplyParams(**params, request_key=key, label="an edit of an MCP client")
        )
    data = result.model_dump(mode="json", exclude={"files": {"__all__": {"uri", "from_uri"}}})
    text = "\n".join(_outcome(result, check=asked.check))
    if result.failures:
        raise EditRefused(text)
    return Told(text, data)


def _named(served: Served, asked: tool_inputs.ApplyEdit, result: wire.EditResult) -> list[str]:
    """Returns the paths of all files that an answer would tell of, those of failures with it."""
    uris = [uri for file in result.files for uri in (file.uri, file.from_uri) if uri]
    names = [asked.path, *(failure.path for failure in result.failures)]
    uris += [served.uri(name) for name in names if name]
    return list(dict.fromkeys(path for uri in uris for path in paths_of(uri)))


async def _judge(served: Served, paths: list[str], call: Calling, *, only_looks: bool) -> None:
    """The rules are those of a session with the default agent; what an answer shows of a file must
    be allowed to be read. Raises EditRefused."""
    world, root = served.service.world, served.root
    rules = [world.agent(served.settings().default_agent, root).rules, *world.rules(root)]
    read, changed = (
        Facts(resources=tuple(resource(root, path, kind) for path in paths))
        for kind in ("read", "write")
    )
    decisions = [permit.decide(read, "read", "read", rules)]
    edits = permit.decide(changed, "edit", "write", rules)
    if edits.action == "deny" or not only_looks:
        decisions.append(edits)
    decision = permit.strictest(decisions)
    if decision.action == "ask":
        names = ", ".join(map(served.name, paths))
        text = f"{'Look at' if only_looks else 'Edit'} {names}?\n(why it is asked: {decision.rule})"
        if await call.ask("edit", text) == "yes":
            return
    if decision.action != "allow":
        what = "a rule says no" if decision.action == "deny" else "a person must allow it"
        raise EditRefused(f"Nothing was changed: {what} ({decision.rule}).")


def _outcome(result: wire.EditResult, *, check: bool) -> Iterator[str]:
    for failure in result.failures:
        where = f"{failure.path}, hunk {failure.hunk}" if failure.path else "the edit"
        yield f"{where}: {failure.message}"
    if result.failures:
        yield "Nothing was changed."
    elif not result.files:
        yield "It changes nothing."
    elif check:
        yield "It fits, and would change this:"
    else:
        yield "Done; the change is under review:"
    for file in result.files:
        for note in file.notes:
            yield f"{file.path}, hunk {note.hunk}, found by {note.tier}: {note.note}".rstrip(": ")
        yield file.diff
    if result.message:
        yield result.message
