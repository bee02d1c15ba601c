"""One editor's connection: all that answers it, put together once it has said what it can."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from magy_server.api.children.news import ChildNews
from magy_server.api.children.verbs import ChildVerbs
from magy_server.api.connected import Connected
from magy_server.api.doctor import DoctorVerbs
from magy_server.api.edits.verbs import EditVerbs
from magy_server.api.places import SCHEME
from magy_server.api.prompts.completion import PromptVerbs
from magy_server.api.prompts.context import ContextVerbs
from magy_server.api.prompts.reach import Reach
from magy_server.api.reviews.checkpoints import CheckpointVerbs
from magy_server.api.reviews.news import ReviewNews
from magy_server.api.reviews.verbs import ReviewVerbs, View
from magy_server.api.rewrites.verbs import RewriteVerbs
from magy_server.api.sessions.asking import QuestionVerbs
from magy_server.api.sessions.verbs import SessionVerbs
from magy_server.api.wire.calling import handlers
from magy_server.api.wire.methods import Verbs
from magy_server.api.workspaces import WorkspaceVerbs
from magy_server.core.errors import EditorError
from magy_server.lsp.abilities import Abilities
from magy_server.lsp.announced import Announced
from magy_server.lsp.plain.client import Plain
from magy_server.lsp.plain.pointing import Pointing
from magy_server.lsp.plain.review import PlainReview, Window
from magy_server.lsp.server import Answering, Server
from magy_server.lsp.workspace import LiveEditor


def connect(
    server: Server,
    at: Connected,
    about: Announced,
    editor: LiveEditor,
    running: Callable[[], Sequence[str]],
    closing: ExitStack,
) -> Answering:
    """`running`: the sessions that have a turn now, the latest last. `closing` ends it."""
    can = Abilities(server.client)
    view, reach = View(at), Reach(at)
    children, contexts, rewrites = ChildVerbs(at), ContextVerbs(at, reach), RewriteVerbs(at)
    reviews = ReviewVerbs(at, view)
    family = ChildNews(at)
    sessions = SessionVerbs(at, family)
    verbs = _verbs(at, sessions, children, reviews, rewrites, contexts, PromptVerbs(at, reach))
    review = PlainReview(
        view, reviews, Window(server.show, _revealing(server, can), editor.unseen),
        server.connection.spawn, shows_lenses=about.lenses, tags=can.tags,
    )  # fmt: skip
    pointing = Pointing(at.documents, contexts, reach)
    plain = Plain(server, at, about, can, review, pointing, rewrites.command, children, running)
    news = ReviewNews(
        at, view, server.connection.request, texts=review.texts,
        lenses=about.lenses and can.refresh_lenses,
    )  # fmt: skip
    for end in (sessions.leave_all, family.close, rewrites.close, plain.close, news.close):
        closing.callback(end)
    closing.callback(server.workspace.touched.add(news.touched))
    at.spawn(view.learn())
    at.spawn(rewrites.resume())
    if can.texts:
        at.spawn(_offer_texts(server))
    magy = plain.noting(handlers(verbs, sessions.made))
    return Answering({**magy, **plain.methods()}, plain.commands())


def _verbs(
    at: Connected,
    sessions: SessionVerbs,
    children: ChildVerbs,
    reviews: ReviewVerbs,
    rewrites: RewriteVerbs,
    contexts: ContextVerbs,
    prompts: PromptVerbs,
) -> Verbs:
    checkpoints, edits = CheckpointVerbs(at), EditVerbs(at)
    questions, workspaces = QuestionVerbs(at), WorkspaceVerbs(at)
    return Verbs(
        session_new=sessions.new,
        session_list=sessions.list,
        session_resume=sessions.resume,
        session_subscribe=sessions.subscribe,
        session_unsubscribe=sessions.unsubscribe,
        session_events=sessions.events,
        session_prompt=sessions.prompt,
        session_cancel=sessions.cancel,
        session_close=sessions.close,
        session_delete=sessions.delete,
        session_fork=sessions.fork,
        session_set_config_option=sessions.set_config_option,
        session_compact=sessions.compact,
        session_summarize=sessions.summarize,
        queue_reorder=sessions.reorder_queue,
        queue_drop=sessions.drop_queued,
        agent_list=workspaces.agents,
        agent_health=workspaces.health,
        workspace_trust=workspaces.trust,
        child_spawn=children.spawn,
        child_send=children.send,
        child_wait=children.wait,
        child_list=children.list,
        child_close=children.close,
        child_limits=children.limits,
        interaction_list=questions.list,
        interaction_respond=questions.respond,
        permission_list=questions.grants,
        permission_withdraw=questions.withdraw,
        review_list=reviews.list,
        review_get=reviews.get,
        review_resolve=reviews.resolve,
        review_undo=reviews.undo,
        review_comment=reviews.comment,
        review_navigate=reviews.navigate,
        checkpoint_list=checkpoints.list,
        checkpoint_preview=checkpoints.preview,
        checkpoint_restore=checkpoints.restore,
        edit_preview=edits.preview,
        edit_apply=edits.apply,
        context_get=contexts.get,
        prompt_complete=prompts.complete,
        doctor_run=DoctorVerbs(at.examine, at.roots).run,
        rewrite_start=rewrites.start,
    )


def _revealing(server: Server, can: Abilities) -> Callable[[str, Mapping[str, Any]], Any]:
    async def reveal(uri: str, range: Mapping[str, Any]) -> None:
        if can.show_document:
            await server.show_document(uri, range, True)

    return reveal


async def _offer_texts(server: Server) -> None:
    """pygls does not announce it (as of 2.1), so it is registered afterwards. The client may
    refuse: then it has not."""
    method = "workspace/textDocumentContent"
    options = {"schemes": [SCHEME]}
    registration = {"id": "magy-texts", "method": method, "registerOptions": options}
    try:
        await server.connection.request(
            "client/registerCapability", {"registrations": [registration]}, 10.0
        )
    except EditorError:
        return
