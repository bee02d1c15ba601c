"""This module tells what an answer to a question appends, and how a question was resolved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from magy_server.core.agents.tree import stream_of
from magy_server.core.errors import InvalidRequest
from magy_server.core.events import Answered, Asked, Granted
from magy_server.core.ports import Batch, Store
from magy_server.core.state.state import State
from magy_server.core.text.secrets import Secrets
from magy_server.core.values import Form
from magy_server.engine.log import Write
from magy_server.engine.world import Project

Scope = Literal["once", "session", "project"]


def answered(
    now: State,
    answer: Answered,
    project: Project,
    content: Mapping[str, Any] | None,
    secrets: Secrets,
) -> Write | None:
    """None: the question is not open (any more). `content`: what was filled in, by field. Raises
    InvalidRequest: it does not fit the form, or has something of `secrets`."""
    question = now.questions.get(answer.id)
    if question is None:
        return None
    if form := question.asked.form:
        return Write([_filled(form, answer, content, secrets)])
    granted = _granted(question.asked, answer.scope) if answer.allow else []
    if answer.scope == "project" and granted:
        return Write([answer], others=[Batch(project.stream, project.head, granted)])
    return Write([answer, *granted])


def _filled(
    form: Form, answer: Answered, content: Mapping[str, Any] | None, secrets: Secrets
) -> Answered:
    from magy_server.core.mcp.forms import filled

    if not answer.allow:
        return answer
    given = filled(form, content)
    for name, value in (given or {}).items():
        if (said := str(value)) != secrets.clean(said):
            raise InvalidRequest(
                f"{name} holds a key that Magy knows, or what a pattern of yours redacts: that is "
                "not given to a server."
            )
    return answer.model_copy(update={"content": given, "scope": "once"})


def _granted(asked: Asked, scope: Scope) -> list[Granted]:
    """What is allowed besides this one call. To spawn agents, or to write to them, is allowed for
    the run, so that one answer covers all of its kind."""
    if scope == "once":
        of_agents = [grant for grant in asked.remember if grant.key == "agent"]
        return [Granted(grant=grant.model_copy(update={"scope": "run"})) for grant in of_agents]
    return [Granted(grant=g.model_copy(update={"scope": scope})) for g in asked.remember]


async def winner(store: Store, session_id: str, interaction: str) -> str:
    """How a question that is no longer open was resolved: allowed | refused | closed."""
    request = interaction.removeprefix(f"{session_id}/").partition(".")[0]
    after = int(request) if request.isdigit() else 0
    for entry in await store.read(stream_of(session_id), after=after):
        if isinstance(entry.event, Answered) and entry.event.id == interaction:
            return "allowed" if entry.event.allow else "refused"
    return "closed"


def was_asked(state: State, call: str) -> bool:
    """A call's request number is the seq it answers; what lies behind us was asked once."""
    request = call.partition(".")[0]
    return request.isdigit() and int(request) <= state.seq
