"""A request that fails is answered with `error`: a `code`, a `message` for the person that says
what was wrong and what to do, and in most cases `data.reason`, a word for programs. Show the
message as it is. Decide by the reason, and by the code where there is none; never by the message.

```json error
{"jsonrpc": "2.0", "id": 9, "error": {"code": -32803, "message": "There is no session 'two'. The list of sessions has all of them.", "data": {"reason": "not_found"}}}
```

An error is about the request alone: what fails in a turn (the provider is down, a file cannot be
written) ends a call or the turn, and updates report that. Nor is it an error that there was nothing
to do: look at `applied`, `failures`, `cancelled`, `deleted`, `accepted` and the `state` of hunks.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Mapping

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
NOT_INITIALIZED = -32002
CANCELLED = -32800
CONTENT_MODIFIED = -32801
REQUEST_FAILED = -32803

CODES: Mapping[int, str] = {
    PARSE_ERROR: "The frame holds no JSON. Its `id` is null.",
    INVALID_REQUEST: "The JSON is no message, an `id` is in use, or the message came after "
    "`shutdown`.",
    METHOD_NOT_FOUND: "There is no such method. No reason is given.",
    INVALID_PARAMS: "The parameters are wrong, and the message names them (`invalid_request`); or "
    "they ask for what cannot be as things stand, and the reason says why.",
    INTERNAL_ERROR: "A fault of Magy's. Its log, on standard error, has details.",
    NOT_INITIALIZED: "The request came before `initialize`.",
    CANCELLED: "The client cancelled the request.",
    CONTENT_MODIFIED: "The text or the log has moved on. Look again, then repeat if it is still "
    "wanted.",
    REQUEST_FAILED: "Magy cannot or will not do it now. The reason says why; without one, more "
    "requests are unanswered than Magy takes at once.",
}
"""Every code that an error may have."""

REASONS: Mapping[str, str] = {
    "invalid_request": "The parameters are wrong.",
    "key_used": "An id or key that names another session, message, child or decision was used "
    "again. Choose a new one.",
    "not_found": "There is no such session, question, agent, model or waiting prompt.",
    "closed": "The child accepts nothing more; or the document is no longer open.",
    "queue_full": "So many prompts and messages wait there already that no more are accepted.",
    "spawn_limit": "There are as many children there, or as deep, as there may be.",
    "busy": "Something else is under way there: cancel its turn, or wait. A prompt is never "
    "refused for that: it joins or waits.",
    "conversation": "The conversation cannot go back to that point; the files alone can.",
    "denied": "A rule forbids it.",
    "not_trusted": "The project asks for more than it may before a person trusts it.",
    "invalid_config": "A setting or an agent file is wrong.",
    "provider": "No model could be asked.",
    "max_run": "It might use more than is left to spend.",
    "stale": "The text was changed in the meantime.",
    "conflict": "Somebody else changed the same thing in the meantime.",
    "edit_refused": "The editor refused an edit.",
    "edit_unverified": "It is not known what the editor made of an edit.",
    "editor": "The editor could not do what it was asked.",
    "timeout": "The editor did not answer in time.",
    "disconnected": "The editor went away.",
    "malformed": "The editor's answer has the wrong shape. Only a call of the agent's fails so.",
    "not_offered": "The editor did not announce that it can answer this. Likewise.",
    "tool": "A file or program could not be used.",
    "store": "The log could not be read or written.",
    "store_corrupt": "The database, or one entry of it, cannot be read.",
    "store_newer": "A newer Magy wrote this log. Upgrade.",
    "store_unavailable": "The database cannot be used: the disk is full or read-only, or another "
    "program locks it.",
    "peer_gone": "Another Magy process had the answer, and has ended. Repeat the request.",
    "peer_busy": "Another Magy process has too much to do. Repeat the request later.",
    "peer_timeout": "Another Magy process did not answer in time.",
    "state": "Magy's state directory cannot be written.",
    "not_started": "Magy could not start. The message says why; `magy/doctor/run` says more.",
    "failed": "Anything else.",
}
"""Every `data.reason`."""

CODES_OF: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(REASONS, (REQUEST_FAILED,)),
    **dict.fromkeys(
        ("invalid_request", "key_used", "queue_full", "spawn_limit", "busy", "conversation",
         "denied"),
        (INVALID_PARAMS,),
    ),
    "closed": (INVALID_PARAMS, REQUEST_FAILED),
    "stale": (CONTENT_MODIFIED,),
    "conflict": (CONTENT_MODIFIED, INVALID_PARAMS),
}  # fmt: skip
"""The codes with which each comes."""
