"""This table has all methods of the `magy/*` wire; the modules beside it have their shapes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from types import NoneType
from typing import get_args, get_type_hints

from magy_server.api.wire import children as child
from magy_server.api.wire import completions as completion
from magy_server.api.wire import editor, graphs, magi, models, permissions, servers
from magy_server.api.wire import reviews as review
from magy_server.api.wire import rewriting as rewrite
from magy_server.api.wire import sessions as session
from magy_server.api.wire import workspaces as workspace
from magy_server.api.wire.shapes import Empty
from magy_server.api.wire.verbs import Method, Verbs, named

TOPICS = {
    "child": child, "completion": completion, "editor": editor, "graphs": graphs, "magi": magi,
    "models": models, "permissions": permissions, "review": review, "rewrite": rewrite,
    "servers": servers, "session": session, "workspace": workspace,
}  # fmt: skip
"""What the types of the verbs are called there."""


def _methods(verbs: type) -> Iterator[Method]:
    """The table, as the fields and their types have it."""
    types = get_type_hints(verbs, localns=TOPICS, include_extras=True)
    for one in fields(verbs):
        verb, about = get_args(types[one.name])
        (params,), answer = get_args(verb)
        (result,) = get_args(answer)
        yield Method(named(one.name), params, Empty if result is NoneType else result, about)


CLIENT_TO_SERVER = tuple(_methods(Verbs))

SERVER_TO_CLIENT = (
    Method("magy/session/update", session.SessionUpdate, None,
           "What happens in a session that the client subscribed to. [Updates](#updates) has the "
           "kinds."),
    Method("magy/interaction/changed", session.InteractionChanged, None,
           "Questions were opened or resolved, in any session of this workspace, whichever process "
           "runs it."),
    Method("magy/child/changed", child.ChildChanged, None,
           "The state of a child that started, became idle, asks, has a result or was closed. "
           "Sent for the trees in which this connection is subscribed to any session; a "
           "burst of changes is sent once."),
    Method("magy/review/changed", review.ReviewChanged, None,
           "Decisions, edits, or typing (once it pauses) changed what is pending in these files. "
           "Sent to clients that announced `review` or `interactions`."),
    Method("magy/rewrite/draft", rewrite.RewriteDraft, None,
           "The progress of a rewrite that this client started; a rewrite resumed after a crash "
           "is reported to clients that announced `review` or `interactions`."),
    Method("magy/completion/changed", completion.CompletionStatus, None,
           "What inline completion took today, after each request that this process made; the "
           "settings are those of the first project. Sent to clients that announced `review` or "
           "`interactions`."),
    Method("magy/session/listChanged", session.ListChanged, None,
           "A session's row in magy/session/list changed, or the session was deleted, by whichever "
           "process. Sent to clients that announced `interactions`."),
    Method("magy/editor/save", session.SaveParams, session.SaveResult,
           "Save a buffer. Only sent if the client announced `editor.save`."),
    Method("magy/editor/diagnostics", editor.DiagnosticsParams, editor.DiagnosticsAnswer,
           "Ask for diagnostics. Only sent if announced, like all requests below; the client "
           "answers at once, from what the editor already knows."),
    Method("magy/editor/definition", editor.PlaceParams, editor.LocationsAnswer,
           "Ask where the name at this place is defined."),
    Method("magy/editor/references", editor.PlaceParams, editor.LocationsAnswer,
           "Ask where the name at this place is used."),
    Method("magy/editor/symbols", editor.SymbolsParams, editor.SymbolsAnswer,
           "Ask for the definitions in a file, or in the workspace by name."),
    Method("magy/editor/eval", editor.EvalParams, editor.EvalAnswer,
           'Evaluate code that a person has allowed. Announced as `eval: "elisp"`.'),
)  # fmt: skip
