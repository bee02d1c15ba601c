"""This module puts together all verbs of one connection, whichever front door it came in by."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from magy_server.api.connected import Connected, Outbox
from magy_server.api.prompts.readable_files import Reach
from magy_server.api.reviews.news import ReviewNews
from magy_server.api.reviews.view import View
from magy_server.api.rewrites.left_open import left_open
from magy_server.api.wire.verbs import Verbs, later
from magy_server.api.workspace_verbs import WorkspaceVerbs

if TYPE_CHECKING:  # a connection may last for days without a request about these
    from magy_server.api.children.child_verbs import ChildVerbs
    from magy_server.api.children.news import ChildNews
    from magy_server.api.completions.suggesting import Completions
    from magy_server.api.doctor import DoctorVerbs
    from magy_server.api.edits.edit_verbs import EditVerbs
    from magy_server.api.graphs.graph_verbs import GraphVerbs
    from magy_server.api.prompts.completion import PromptVerbs
    from magy_server.api.prompts.context import ContextVerbs
    from magy_server.api.reviews.checkpoint_verbs import CheckpointVerbs
    from magy_server.api.reviews.review_verbs import ReviewVerbs
    from magy_server.api.rewrites.rewrite_verbs import RewriteVerbs
    from magy_server.api.rulings import MagiVerbs
    from magy_server.api.sessions.interaction_verbs import QuestionVerbs
    from magy_server.api.sessions.session_verbs import SessionVerbs
    from magy_server.api.source_verbs import SourceVerbs


class Magy:
    """`view`: what is under review, as the client is shown it; `reach`: which files may be shown to
    a model; `news`: tells of changed reviews, and is told of the documents that people touch."""

    def __init__(self, at: Connected) -> None:
        self.at = at
        self.view, self.reach = View(at), Reach(at)
        self.news = ReviewNews(at, self.view)
        self.workspaces = WorkspaceVerbs(at)
        self._closing = AsyncExitStack()

    def begin(self) -> None:
        """Starts what nobody asks for: it finds out what is under review, and tells of rewrites
        that a process which died had begun."""
        for work in (self.view.learn(), self._resume_rewrites()):
            self._closing.callback(self.at.spawn(work).cancel)

    def apart(self, outbox: Outbox) -> SessionVerbs:
        """Subscriptions beside those of `sessions`: what they tell goes to this outbox."""
        from magy_server.api.sessions.session_verbs import SessionVerbs

        verbs = SessionVerbs(replace(self.at, outbox=outbox), self._child_news)
        self._closing.callback(verbs.leave_all)
        return verbs

    async def close(self) -> None:
        self.news.close()
        await self._closing.aclose()

    async def _resume_rewrites(self) -> None:
        if found := await left_open(self.at.service.world, self.at.roots):
            await self.rewrites.resume(found)

    @cached_property
    def _child_news(self) -> ChildNews:
        from magy_server.api.children.news import ChildNews

        news = ChildNews(self.at)
        self._closing.callback(news.close)
        return news

    @cached_property
    def sessions(self) -> SessionVerbs:
        from magy_server.api.sessions.session_verbs import SessionVerbs

        verbs = SessionVerbs(self.at, self._child_news)
        self._closing.callback(verbs.leave_all)
        return verbs

    async def made(self, session_id: str) -> None:
        """Waits while a request makes this session: others may name it right after that."""
        if "sessions" in vars(self):
            await self.sessions.made(session_id)

    @cached_property
    def rewrites(self) -> RewriteVerbs:
        from magy_server.api.rewrites.rewrite_verbs import RewriteVerbs

        verbs = RewriteVerbs(self.at)
        self._closing.callback(verbs.close)
        return verbs

    @cached_property
    def completions(self) -> Completions:
        from magy_server.api.completions.suggesting import Completions

        verbs = Completions(self.at, self.reach)
        self._closing.push_async_callback(verbs.close)
        return verbs

    @cached_property
    def contexts(self) -> ContextVerbs:
        from magy_server.api.prompts.context import ContextVerbs

        return ContextVerbs(self.at, self.reach)

    @cached_property
    def children(self) -> ChildVerbs:
        from magy_server.api.children.child_verbs import ChildVerbs

        return ChildVerbs(self.at)

    @cached_property
    def reviews(self) -> ReviewVerbs:
        from magy_server.api.reviews.review_verbs import ReviewVerbs

        return ReviewVerbs(self.at, self.view)

    @cached_property
    def _checkpoints(self) -> CheckpointVerbs:
        from magy_server.api.reviews.checkpoint_verbs import CheckpointVerbs

        return CheckpointVerbs(self.at.service)

    @cached_property
    def _doctor(self) -> DoctorVerbs:
        from magy_server.api.doctor import DoctorVerbs

        return DoctorVerbs(self.at.examine, self.at.roots)

    @cached_property
    def _edits(self) -> EditVerbs:
        from magy_server.api.edits.edit_verbs import EditVerbs

        return EditVerbs(self.at)

    @cached_property
    def _graphs(self) -> GraphVerbs:
        from magy_server.api.graphs.graph_verbs import GraphVerbs

        return GraphVerbs(self.at)

    @cached_property
    def _magi(self) -> MagiVerbs:
        from magy_server.api.rulings import MagiVerbs

        return MagiVerbs(self.at)

    @cached_property
    def _questions(self) -> QuestionVerbs:
        from magy_server.api.sessions.interaction_verbs import QuestionVerbs

        return QuestionVerbs(self.at.service, self.at.client)

    @cached_property
    def _prompts(self) -> PromptVerbs:
        from magy_server.api.prompts.completion import PromptVerbs

        return PromptVerbs(self.at, self.reach)

    @cached_property
    def _sources(self) -> SourceVerbs:
        from magy_server.api.source_verbs import SourceVerbs

        return SourceVerbs(self.at)

    def verbs(self) -> Verbs:
        return Verbs(
            session_new=later(lambda: self.sessions.new), agent_list=self.workspaces.agents,
            session_list=later(lambda: self.sessions.list), workspace_trust=self.workspaces.trust,
            session_resume=later(lambda: self.sessions.resume),
            session_subscribe=later(lambda: self.sessions.subscribe),
            session_unsubscribe=later(lambda: self.sessions.unsubscribe),
            session_events=later(lambda: self.sessions.events),
            session_prompt=later(lambda: self.sessions.prompt),
            session_cancel=later(lambda: self.sessions.cancel),
            session_close=later(lambda: self.sessions.close),
            session_delete=later(lambda: self.sessions.delete),
            session_fork=later(lambda: self.sessions.fork),
            session_options=later(lambda: self.sessions.options),
            session_set_config_option=later(lambda: self.sessions.set_config_option),
            session_compact=later(lambda: self.sessions.compact),
            session_summarize=later(lambda: self.sessions.summarize),
            queue_reorder=later(lambda: self.sessions.reorder_queue),
            queue_drop=later(lambda: self.sessions.drop_queued),
            agent_health=later(lambda: self.children.health),
            magi_list=later(lambda: self._magi.list), magi_log=later(lambda: self._magi.log),
            mcp_list=later(lambda: self._sources.servers),
            model_list=later(lambda: self._sources.models),
            magi_accept=later(lambda: self._magi.accept), graph_run=later(lambda: self._graphs.run),
            child_spawn=later(lambda: self.children.spawn),
            child_send=later(lambda: self.children.send),
            child_wait=later(lambda: self.children.wait),
            child_list=later(lambda: self.children.list),
            child_close=later(lambda: self.children.close),
            child_limits=later(lambda: self.children.limits),
            graph_show=later(lambda: self._graphs.show), review_get=later(lambda: self.reviews.get),
            interaction_list=later(lambda: self._questions.list),
            interaction_respond=later(lambda: self._questions.respond),
            permission_list=later(lambda: self._questions.grants),
            permission_withdraw=later(lambda: self._questions.withdraw),
            review_list=later(lambda: self.reviews.list),
            review_resolve=later(lambda: self.reviews.resolve),
            review_undo=later(lambda: self.reviews.undo),
            review_comment=later(lambda: self.reviews.comment),
            review_navigate=later(lambda: self.reviews.navigate),
            checkpoint_list=later(lambda: self._checkpoints.list),
            checkpoint_preview=later(lambda: self._checkpoints.preview),
            checkpoint_restore=later(lambda: self._checkpoints.restore),
            edit_preview=later(lambda: self._edits.preview),
            edit_apply=later(lambda: self._edits.apply), doctor_run=later(lambda: self._doctor.run),
            context_get=later(lambda: self.contexts.get),
            prompt_complete=later(lambda: self._prompts.complete),
            completion_status=later(lambda: self.completions.status),
            rewrite_start=later(lambda: self.rewrites.start),
        )  # fmt: skip
