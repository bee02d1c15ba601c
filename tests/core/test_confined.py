"""What the sandbox that a command will run in has to say in the decision."""

from __future__ import annotations

import pytest

from magy_server.core.permit import Rule, Ruleset, decide
from magy_server.core.sandbox import NO_SANDBOX, Launch, stricter
from magy_server.core.values import Action, Confinement, Decision, Facts, Grant, Resource

ALONE = Confinement(level="standard", network="none", answers=True)
STANDARD = Confinement(level="standard")
STRICT = Confinement(level="strict", network="none")
COMMAND = Resource(kind="exec", subject="make", argv=("make",))
UNCLEAR = Resource(kind="exec", subject="sh -c x", argv=("sh", "-c", "x"), opaque=True)
INSIDE = Resource(kind="write", subject="/w/a", relative="a")
OUTSIDE = Resource(kind="write", subject="/etc/a")
READ = Resource(kind="read", subject="/etc/passwd")


def rules(action: Action, pattern: str = "*") -> Ruleset:
    rule = Rule(pattern=pattern, action=action, bare=pattern == "*")
    return Ruleset(
        source="agent", keys={"bash": (rule,), "write": (Rule(pattern="*", action="ask"),)}
    )


def decided(
    confined: Confinement | None, *resources: Resource, action: Action = "ask", **more: object
) -> Decision:
    facts = Facts(resources=resources, confined=confined)
    return decide(facts, "bash", "exec", [rules(action)], **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("resources", "action"),
    [
        ((COMMAND,), "allow"),
        ((UNCLEAR,), "allow"),
        ((COMMAND, INSIDE), "allow"),
        ((COMMAND, OUTSIDE), "ask"),  # it could not do that anyway
        ((COMMAND, READ), "ask"),  # what it prints, the model reads
        ((INSIDE,), "allow"),
    ],
)
def test_the_sandbox_answers_for_what_it_holds(
    resources: tuple[Resource, ...], action: Action
) -> None:
    assert decided(ALONE, *resources).action == action
    assert decided(STANDARD, *resources).action == "ask"
    assert decided(None, *resources).action == "ask"


def test_it_never_answers_a_deny_nor_a_firm_question() -> None:
    assert decided(ALONE, COMMAND, action="deny").action == "deny"
    source = (
        rules("ask"),
        Ruleset(source="me", keys={"bash": (Rule(pattern="rm *", action="deny"),)}),
    )
    found = decide(Facts(resources=(UNCLEAR,), confined=ALONE), "bash", "exec", source)
    assert (found.action, found.firm) == ("ask", True)


def test_what_answered_is_named() -> None:
    assert decided(ALONE, COMMAND).rule == (
        "in the standard sandbox, without network: allow (else agent: bash -> ask)"
    )


@pytest.mark.req("A104")
def test_the_strict_sandbox_takes_no_answer_but_a_person_s() -> None:
    grant = Grant(id="1", key="bash", pattern="make", scope="session")
    assert decided(STANDARD, COMMAND, grants=[grant]).action == "allow"
    for found in (
        decided(STRICT, COMMAND, grants=[grant]),
        decided(STRICT, COMMAND, bypass=True),
        decided(STRICT, COMMAND, action="allow"),
    ):
        assert (found.action, found.firm) == ("ask", True)
    assert decided(STRICT, COMMAND, action="deny").action == "deny"


def test_a_missing_sandbox_is_said_in_the_question() -> None:
    missing = Confinement(level="standard", missing="bubblewrap is not installed")
    assert decided(missing, COMMAND).rule == (
        "agent: bash -> ask; it runs without a sandbox: bubblewrap is not installed"
    )
    assert decided(missing, COMMAND, action="allow").rule == "agent: bash -> allow"


def test_levels_have_an_order() -> None:
    assert stricter("off", "standard") == stricter("standard", "off") == "standard"
    assert stricter("isolated", "strict") == "isolated"


async def test_without_a_sandbox_a_program_starts_as_it_is() -> None:
    launch = Launch(["a", "b"], "/", {"X": "1"}, "/", "isolated")
    found = await NO_SANDBOX.prepare(launch)
    found.started(1)
    assert (found.argv, found.env, found.fds) == (["a", "b"], {"X": "1"}, ())
    assert not (await found.close()).ended
    assert await NO_SANDBOX.confinement("/", "strict") is None
