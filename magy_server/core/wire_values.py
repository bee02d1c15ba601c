"""This module writes children, reports and costs in the shape that clients and programs get.
Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from magy_server.core.values import Usage

if TYPE_CHECKING:  # rules and states would be loaded by whoever only shows a transcript
    from magy_server.core.agents.child import ChildInfo
    from magy_server.core.agents.mail import Report

STOP = {"max_requests": "max_turn_requests"}
"""ACP has another word for these stop reasons of ours."""


def stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


def cost(dollars: float, unpriced: int) -> dict[str, Any]:
    """Returns what a session cost. `unpriced`: requests whose price is not known, so that it cost
    more."""
    return {"amount": round(dollars, 6), "currency": "USD", "unpriced": unpriced}


def usage(value: Usage) -> dict[str, int]:
    """Returns the usage. `unreportedRequests` is the number of requests that are not counted; it is
    left out when there are none."""
    unknown = {"unreportedRequests": value.unreported} if value.unreported else {}
    return unknown | {
        "totalTokens": value.total,
        "inputTokens": value.input,
        "outputTokens": value.output,
        "cachedReadTokens": value.cache_read,
        "cachedWriteTokens": value.cache_write,
    }


def child(info: ChildInfo) -> dict[str, Any]:
    return {
        "sessionId": info.session,
        "parentSessionId": info.parent,
        "name": info.name,
        "agent": info.agent,
        "model": info.model,
        "state": info.status,
        "depth": info.depth,
        "turns": info.turns,
        "waiting": info.waiting,
        "questions": info.questions,
        "usage": usage(info.spent.usage),
        "cost": cost(info.spent.cost, info.spent.unpriced),
        "treeUsage": usage(info.tree.usage),
        "treeCost": cost(info.tree.cost, info.tree.unpriced),
        "said": info.said,
        "stopReason": STOP.get(info.stop, info.stop) or None,
        "createdAt": stamp(info.created),
        "updatedAt": stamp(info.updated),
    }


def report(value: Report) -> dict[str, Any]:
    return {
        "turnId": value.turn,
        "status": value.status,
        "stopReason": STOP.get(value.stop, value.stop),
        "requests": value.requests,
        "usage": usage(value.usage),
        "cost": cost(value.cost, value.unpriced),
        "seconds": round(value.seconds, 3),
    }
