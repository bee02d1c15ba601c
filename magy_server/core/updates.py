"""Entries become session updates here, in the shape of the Agent Client Protocol v2 draft.

All front doors send these; each only wraps them. One entry gives any number of updates, and needs
nothing but itself and the diffs it names, so a page of the log can be shown from anywhere.
Update kinds with a leading underscore are Magy's own, as the draft allows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from magy_server.core.agents.mail import Closed, Mailed
from magy_server.core.events import (
    Admitted,
    Answered,
    Asked,
    Briefed,
    CancelAsked,
    CompactAsked,
    Compacted,
    Configured,
    Consulted,
    Ended,
    Entry,
    Event,
    Exited,
    Finished,
    Judged,
    Opened,
    Planned,
    Prompted,
    Replied,
    Requeued,
    Resumed,
    Started,
)
from magy_server.core.mcp.names import in_words, is_key
from magy_server.core.reviews.moves import moves
from magy_server.core.reviews.review_events import Noted, Restored
from magy_server.core.skills.statement import uses
from magy_server.core.text.sanitizing import LINE, shortened, unpadded, visible
from magy_server.core.values import (
    Call,
    Content,
    Facts,
    FileChange,
    Form,
    Grant,
    Hash,
    Image,
    Text,
    Thinking,
)
from magy_server.core.wire_values import STOP, report, stamp, usage

Update = dict[str, Any]

STATUS = {
    "completed": "completed",
    "failed": "failed",
    "denied": "failed",
    "unknown": "failed",
    "cancelled": "cancelled",
    "not_run": "cancelled",
}
_CLOSED = {"finish": "It finishes its work and accepts nothing more.",
           "cancel": "It was stopped, and accepts nothing more."}  # fmt: skip
_STOPPED = {"user": "On request.", "closed": "The session is closed."}
"""Of a limit, how the turn ended says it all."""


def updates(entry: Entry, texts: Mapping[Hash, str]) -> list[Update]:
    """`texts` has the diffs that `shown` names; one that is missing is left out."""
    return list(_updates(entry.event, stamp(entry.at), texts))


def shown(event: Event) -> tuple[Hash, ...]:
    """Returns the blobs that a person sees with this event."""
    match event:
        case Judged(facts=Facts(preview=str(preview))) | Asked(preview=str(preview)):
            return (preview,)
        case Finished():
            return tuple(filter(None, (event.diff, event.graph, event.deliberation)))
    return ()


def _updates(event: Event, stamp: str, texts: Mapping[Hash, str]) -> Iterable[Update]:
    match event:
        case Opened():
            yield _opened(event, stamp)
        case Configured():
            yield from _configured(event, stamp)
        case Briefed():
            yield _option("agent", event.agent)
            yield {**_option("model", event.model), "_meta": {"magy": {"window": event.window}}}
        case Prompted():
            yield user_message(event)
            for skill in uses(event.content):
                if skill.why:
                    yield notice("info", f"Skill {skill.name}", f"It goes along: {skill.why}.")
            yield {"sessionUpdate": "_magy_queue", "added": event.id, "delivery": event.delivery}
        case Mailed() | Closed():
            yield from _of_mail(event)
        case Requeued():
            yield {"sessionUpdate": "_magy_queue", "order": list(event.order),
                   "dropped": list(event.dropped)}  # fmt: skip
        case Admitted():
            yield {"sessionUpdate": "_magy_queue", "admitted": list(event.prompts)}
            yield {"sessionUpdate": "state_update", "state": "running",
                   "_meta": {"magy": {"turnId": event.turn, "opens": event.opens}}}  # fmt: skip
        case Planned():
            entries = [task.model_dump() for task in event.tasks]
            plan = {"type": "items", "planId": "plan", "entries": entries}
            yield {"sessionUpdate": "plan_update", "plan": plan}
        case Consulted():
            yield from _consulted(event, stamp)
        case CompactAsked():
            why = "as you asked" if event.why == "user" else "the model says that it is too long"
            yield notice("info", "Compacting", f"Magy summarizes the conversation: {why}.")
            if event.resting:
                yield {"sessionUpdate": "state_update", "state": "running"}
        case Compacted():
            yield from _compacted(event)
        case Noted():
            yield notice("info", "Told the agent", event.text)
        case Restored():
            yield from _restored(event)
        case _:
            yield from _of_turn(event, texts)


def _of_turn(event: Event, texts: Mapping[Hash, str]) -> Iterable[Update]:
    match event:
        case Replied():
            yield from _replied(event)
        case Resumed():
            yield notice("info", "Resumed", "The session was interrupted and continues here.")
        case CancelAsked():
            if event.why in _STOPPED:
                yield notice("info", "Stopped", _STOPPED[event.why])
        case Ended():
            yield _ended(event)
        case Judged():
            yield _judged(event, texts)
        case Asked():
            yield {"sessionUpdate": "_magy_interaction", "open": interaction(event, texts)}
            yield {"sessionUpdate": "state_update", "state": "requires_action"}
        case Answered():
            yield {
                "sessionUpdate": "_magy_interaction",
                "resolved": {
                    "interactionId": event.id,
                    "outcome": "allowed" if event.allow else "refused",
                    "reason": event.reason,
                    "scope": event.scope,
                    "by": event.by,
                },
            }
            yield {"sessionUpdate": "state_update", "state": "running"}
        case Started():
            yield tool_call(event.call, status="in_progress")
        case Finished():
            yield _finished(event, texts)
        case Exited():
            code = "was lost" if event.code is None else f"exited with {event.code}"
            yield notice("info", "Background command", f"{event.call} {code}")


def user_message(prompted: Prompted) -> Update:
    return {
        "sessionUpdate": "user_message",
        "messageId": prompted.id,
        "content": [_content(block) for block in prompted.content],
    }


def tool_call(call: str, **fields: Any) -> Update:
    return {"sessionUpdate": "tool_call_update", "toolCallId": call, **fields}


def notice(severity: str, title: str, description: str) -> Update:
    return {"sessionUpdate": "notice", "severity": severity, "title": title,
            "description": description}  # fmt: skip


def progress(text: str) -> Update:
    """What goes on while nothing of a reply has come yet; the next one, or the reply, replaces it.
    Never in the log."""
    return {"sessionUpdate": "_magy_progress", "text": text}


def chunk(kind: str, id: str, text: str, name: str = "") -> Update | None:
    """What has streamed of something of this `kind` (see `streaming.Partial`) since the last one.
    Never in the log. A call that streams has its name, and is told of once."""
    block = {"type": "text", "text": text}
    match kind:
        case "text":
            return {"sessionUpdate": "agent_message_chunk", "messageId": id, "content": block}
        case "thinking":
            return {"sessionUpdate": "agent_thought_chunk", "messageId": f"{id}.thought",
                    "content": block}  # fmt: skip
        case "output":
            return {"sessionUpdate": "tool_call_content_chunk", "toolCallId": id,
                    "content": {"type": "content", "content": block}}  # fmt: skip
        case "call":
            return tool_call(id, name=name, title=name, status="pending")
        case "graph" | "deliberation":
            latest = text.rstrip("\n").rpartition("\n")[2]
            return tool_call(id, _meta={"magy": {kind: json.loads(latest)}})
        case "progress":
            return progress(text)
        case "notice":
            return notice("warning", "Model", text.strip())
    return None


def emptied(kind: str, id: str) -> Update:
    """What has streamed of a text, or of thinking, does not count: the reply begins anew."""
    if kind == "thinking":
        return {"sessionUpdate": "agent_thought", "messageId": f"{id}.thought", "content": []}
    return {"sessionUpdate": "agent_message", "messageId": id, "content": []}


def interaction(asked: Asked, texts: Mapping[Hash, str]) -> dict[str, Any]:
    """An open question as clients get it, in updates and from `magy/interaction/list`. `title`,
    `rule` and `covers` are each one line to be shown as it is; `content` is all that would run or
    change, where the title does not say it. Much white space is only counted."""
    return {
        "interactionId": asked.id,
        "kind": "form" if asked.form else "permission",
        "toolCallId": asked.call,
        "title": asked.title,
        "rule": shortened(asked.rule, LINE),
        "remember": [{"key": grant.key, "pattern": grant.pattern} for grant in asked.remember],
        "covers": list(map(_covered, asked.remember)),
        "content": ahead(asked.preview, asked.code, texts),
        **(asking(asked.form) if asked.form else {}),
    }


def asking(form: Form) -> dict[str, Any]:
    """Returns what a question with a form has besides: the fields, and as content all of it to be
    read."""
    from magy_server.core.mcp.forms import for_clients, told

    text = {"type": "content", "content": {"type": "text", "text": unpadded(told(form))}}
    return {"form": for_clients(form), "content": [text]}


def _covered(grant: Grant) -> str:
    if is_key(grant.key) and "@" in grant.pattern:
        told = in_words(grant.key, grant.pattern)
        return f"{shortened(told, LINE)}, for as long as its server describes it as it does now"
    return f"{grant.key} `{shortened(grant.pattern, LINE)}`"


def ahead(
    preview: Hash | None, code: bool, texts: Mapping[Hash, str], paths: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Returns what a call would run or change, as the content of a call, made to be read."""
    if preview is None or preview not in texts:
        return []
    text = texts[preview]
    if code:
        return [{"type": "content", "content": {"type": "text", "text": unpadded(text)}}]
    return [_diff((), visible(text), paths)]


def _of_mail(event: Mailed | Closed) -> Iterable[Update]:
    """A message from another agent: what is text waits, as a prompt does. Or the end of one."""
    if isinstance(event, Closed):
        yield {"sessionUpdate": "_magy_closed", "mode": event.mode, "reason": event.reason}
        yield notice("info", "Closed", event.reason or _CLOSED[event.mode])
        return
    inside = {"type", "payload", "report", "untrusted", "skills"}
    about = event.model_dump(mode="json", by_alias=True, exclude=inside)
    mail: Update = {"sessionUpdate": "_magy_mail", "mail": {**about, "payload": event.payload.kind}}
    if event.payload.kind != "text":
        yield {**mail, "body": event.payload.model_dump(mode="json", exclude={"kind"})}
        return
    content = [_content(block) for block in event.content]
    told = report(event.report) if event.report else None
    yield {**mail, "messageId": event.id, "content": content, "report": told}
    yield {"sessionUpdate": "_magy_queue", "added": event.id, "delivery": event.delivery}


def _opened(event: Opened, stamp: str) -> Update:
    """Of a child it says whose, and which call spawned it (null: a person did)."""
    update = _titled(event.title, stamp) | ({} if event.title else {"title": None})
    if event.parent is None:
        return update
    of = {"parentSessionId": event.parent, "toolCallId": event.call or None}
    return {**update, "_meta": {"magy": of}}


def _titled(title: str, stamp: str) -> Update:
    shown = shortened(title, LINE)
    return {"sessionUpdate": "session_info_update", "title": shown, "updatedAt": stamp}


def _configured(event: Configured, stamp: str) -> Iterable[Update]:
    if event.option == "title":
        yield _titled(event.value, stamp)
    else:
        yield _option(event.option, event.value)


def _option(id: str, value: str) -> Update:
    return {
        "sessionUpdate": "config_option_update",
        "configOptions": [{"configId": id, "name": id.capitalize(), "currentValue": value}],
    }


def _replied(event: Replied) -> Iterable[Update]:
    thinking = [p.text for p in event.content if isinstance(p, Thinking) and p.text]
    text = [p.text for p in event.content if isinstance(p, Text) and p.text]
    if thinking:
        yield _message("agent_thought", f"{event.request}.thought", thinking)
    if text:
        yield _message("agent_message", event.request, text)
    for part in event.content:
        if isinstance(part, Call):
            raw = part.arguments if part.invalid is None else part.invalid
            yield tool_call(part.id, name=part.name, title=part.name, status="pending",
                            rawInput=raw)  # fmt: skip
    if event.model:
        yield _usage(event, event.request)


def _usage(event: Replied | Consulted | Compacted, request: str) -> Update:
    """`cost` is in US dollars, null when the price is not known."""
    about = {"request": request, "model": event.model, "usage": usage(event.usage),
             "cost": event.cost}  # fmt: skip
    return {"sessionUpdate": "usage_update", "used": event.usage.total, "_meta": {"magy": about}}


def _compacted(event: Compacted) -> Iterable[Update]:
    if event.problem:
        yield notice("warning", "Not compacted", event.problem)
    else:
        by = "A summary" if event.written else "The model wrote no summary; a list from the log"
        what = f"{by} replaces {event.dropped} earlier items of what the model sees."
        yield notice("info", "Compacted", f"{what} The transcript keeps them.")
    if event.model:
        yield _usage(event, "compaction")
    if event.resting:
        yield {"sessionUpdate": "state_update", "state": "idle"}


def _consulted(event: Consulted, stamp: str) -> Iterable[Update]:
    if event.agent == "title":
        yield _titled(event.text, stamp)
    yield _usage(event, event.agent)


def _restored(event: Restored) -> Iterable[Update]:
    """With `conversation`, a client marks as undone (or hides) all from the first prompt of turn
    `turnId` up to this update; with `undoes`, what restore `undoes` had marked counts again (or, if
    that one did so itself, does not any more). The plan is then that of the session's summary."""
    origins = moves(event.changes)
    told = set(origins.values())
    changes = [
        {"operation": "move", "oldPath": origins[change.path], "path": change.path}
        if change.path in origins
        else {"operation": operation(change), "path": change.path}
        for change in event.changes
        if change.path not in told
    ]
    yield {
        "sessionUpdate": "_magy_restored",
        "restoreId": event.id,
        "turnId": event.turn,
        "undoes": event.undoes or None,
        "files": event.files,
        "conversation": event.conversation,
        "changes": changes,
        "conflicts": list(event.conflicts),
    }
    both = [f"{len(changes)} file{'' if len(changes) == 1 else 's'}"] if event.files else []
    both += ["the conversation"] if event.conversation else []
    left = f"; {len(event.conflicts)} left alone" if event.conflicts else ""
    when = "an undo or redo" if event.undoes else "an earlier prompt"
    yield notice("info", "Restored", f"{' and '.join(both)}, as before {when}{left}")


def _message(kind: str, id: str, texts: list[str]) -> Update:
    content = [{"type": "text", "text": text} for text in texts]
    return {"sessionUpdate": kind, "messageId": id, "content": content}


def _judged(event: Judged, texts: Mapping[Hash, str]) -> Update:
    facts, decision = event.facts, event.decision
    places = (r.subject for r in facts.resources if r.kind in ("read", "write"))
    paths = [*dict.fromkeys(places)]
    fields: dict[str, Any] = {
        "kind": facts.kind,
        "locations": [{"path": path} for path in paths],
        "_meta": {"magy": {"decision": decision.model_dump()}},
    }
    if facts.title:
        fields["title"] = facts.title
    if content := ahead(facts.preview, facts.code, texts, paths):
        fields["content"] = content
    return tool_call(event.call, **fields)


def _finished(event: Finished, texts: Mapping[Hash, str]) -> Update:
    content: list[dict[str, Any]] = []
    if event.diff and event.diff in texts:
        content.append(_diff(event.changes, texts[event.diff], []))
    meta: dict[str, Any] = {"status": event.status, "duration": round(event.duration, 3)}
    text = event.for_user or event.for_model
    if event.graph and event.graph in texts:
        meta["graph"] = graph = json.loads(texts[event.graph])
        content.append(_text("\n".join(task["line"] for task in graph["tasks"])))
        text = event.for_user
    if event.deliberation and event.deliberation in texts:
        meta["deliberation"] = json.loads(texts[event.deliberation])
    if text:
        content.append(_text(text))
    return tool_call(event.call, status=STATUS[event.status], content=content,
                     _meta={"magy": meta})  # fmt: skip


def _text(text: str) -> dict[str, Any]:
    return {"type": "content", "content": {"type": "text", "text": text}}


def _diff(changes: Iterable[FileChange], patch: str, paths: Sequence[str]) -> dict[str, Any]:
    listed = [{"operation": operation(change), "path": change.path} for change in changes] or [
        {"operation": "modify", "path": path} for path in paths
    ]
    return {"type": "diff", "changes": listed, "patch": {"format": "git_patch", "text": patch}}


def operation(change: FileChange) -> str:
    """Returns what became of the file."""
    if change.before is None:
        return "add"
    return "delete" if change.after is None else "modify"


def _ended(event: Ended) -> Update:
    update: Update = {
        "sessionUpdate": "state_update",
        "state": "idle",
        "stopReason": STOP.get(event.stop, event.stop),
        "_meta": {"magy": {"turnId": event.turn, "stop": event.stop, "message": event.message}},
    }
    if event.stop == "error":
        update["error"] = {"code": -32603, "message": event.message}
    return update


def _content(block: Content) -> dict[str, Any]:
    if isinstance(block, Text):
        return {"type": "text", "text": block.text}
    if isinstance(block, Image):
        # The bytes are not sent round again with every look at the transcript.
        return {"type": "resource_link", "uri": f"magy-blob:{block.hash}",
                "name": block.name or "picture", "mimeType": block.mime}  # fmt: skip
    if block.type == "link":
        return {"type": "resource_link", "uri": block.uri, "name": block.name}
    return {"type": "resource", "resource": {"uri": block.uri, "text": block.text}}
