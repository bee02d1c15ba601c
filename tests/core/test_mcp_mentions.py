"""What a prompt names of MCP servers, and the arguments of their prompts."""

from __future__ import annotations

import pytest

from magy_server.core.errors import InvalidRequest
from magy_server.core.mcp import mentions
from magy_server.core.mcp.mentions import OfferedPrompt

SERVERS = {"notes", "git-hub"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("See @notes:memo://today.", [("notes", "memo://today")]),
        ("(@git-hub:issue://4)", [("git-hub", "issue://4")]),
        ('@"notes:memo://a b" and @notes:x:y', [("notes", "memo://a b"), ("notes", "x:y")]),
        ("@other:memo://today", []),
        ("me@notes:memo://today", []),
        ("@notes:10-20", []),
        ("@notes: memo://today", []),
    ],
)
def test_resources(text: str, found: list[tuple[str, str]]) -> None:
    assert list(mentions.resources(text, SERVERS)) == found
    for server, uri in found:
        assert list(mentions.resources(mentions.mention(server, uri), SERVERS)) == [(server, uri)]


def test_prompts() -> None:
    assert mentions.prompt(" /notes:plan a b\nmore", SERVERS) == ("notes", "plan", "a b")
    assert mentions.prompt("/notes:plan", SERVERS) == ("notes", "plan", "")
    assert mentions.prompt("/explain notes:plan", SERVERS) is None
    assert mentions.prompt("Do /notes:plan", SERVERS) is None


REVIEW = OfferedPrompt("review", takes=["topic", "tone"], needs=["topic"])


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("code", {"topic": "code"}),
        ("code very plain", {"topic": "code", "tone": "very plain"}),
        ("tone=plain 'all code'", {"topic": "all code", "tone": "plain"}),
        ("a=b", {"topic": "a=b"}),
    ],
)
def test_arguments(given: str, found: dict[str, str]) -> None:
    assert mentions.arguments("notes", REVIEW, given) == found


@pytest.mark.parametrize(
    ("offered", "given", "said"),
    [
        (REVIEW, "tone=x", r"/notes:review takes topic \[tone\]; there is no topic\."),
        (REVIEW, "'x", "a quote is not closed"),
        (OfferedPrompt("all"), "x", "/notes:all takes no arguments; 'x' is too much."),
    ],
)
def test_arguments_that_do_not_fit(offered: OfferedPrompt, given: str, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        mentions.arguments("notes", offered, given)
