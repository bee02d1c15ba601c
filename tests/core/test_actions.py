"""`core/actions.py`: actions as data, and what is said about those that are wrong."""

from __future__ import annotations

import pytest

from magy_server.config.agents import find_agents
from magy_server.core.actions import ActionSpec, filled, parse_actions
from magy_server.core.errors import InvalidConfig
from magy_server.core.skills.skill import parse_skill
from magy_server.core.specs import parse_agent

AUDIT = "audit:\n  title: Audit this\n  when: selection\n  prompt: Look for abuse.\n"


def one(text: str) -> ActionSpec:
    (spec,) = parse_actions(text, "actions.yaml").values()
    assert spec is not None
    return spec


def problem(text: str) -> str:
    with pytest.raises(InvalidConfig) as caught:
        parse_actions(text, "actions.yaml")
    return caught.value.message


def test_what_an_action_is() -> None:
    assert one(AUDIT) == ActionSpec(
        id="audit", title="Audit this", kind="source.magy.audit", when="selection",
        prompt="Look for abuse.", where="actions.yaml",
    )  # fmt: skip
    whole = one(AUDIT + "  kind: refactor\n  agent: explore\n")
    assert (whole.kind, whole.agent) == ("refactor.magy.audit", "explore")
    assert one(AUDIT + "  rewrite: true\n").kind == "refactor.rewrite.magy.audit"
    assert one(AUDIT.replace("selection", "diagnostics")).kind == "quickfix.magy.audit"
    assert parse_actions("explain: false\n", "x") == {"explain": None}
    assert parse_actions("# nothing\n", "x") == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (AUDIT.replace("audit", "Audit"), "actions.yaml:1: 'Audit' is not a valid action name"),
        (AUDIT + "  promt: x\n", "actions.yaml:5: unknown setting of an action 'promt'. "
         "Did you mean 'prompt'?"),
        (AUDIT.replace("  when: selection\n", ""), "1: the action 'audit' has no when"),
        (AUDIT.replace("selection", "selected"), "unknown occasion 'selected'. Did you mean"),
        (AUDIT + "  kind: source.fixAll\n", "unknown kind 'source.fixAll'"),
        (AUDIT.replace("abuse", "{symbol}"), "`{symbol}` works only with `when: symbol`"),
        (AUDIT.replace("Audit this", "'{place}: {what}'"), "{what} is not known"),
        (AUDIT.replace("Audit this", "x" * 81), "at most 80 characters"),
        (AUDIT + "  rewrite: true\n  agent: plan\n", "actions.yaml:6: only the agent "
            "`rewrite` rewrites"),
        ("explain: true\n", "`false` to remove the action"),
        ("- explain\n", "expected lines of the form"),
        (AUDIT + AUDIT, "'audit' occurs twice"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_line(text: str, said: str) -> None:
    assert said in problem(text)


def test_braces_that_are_no_holes_stay() -> None:
    assert filled("a {symbol} {x} {} {place}", {"symbol": "{place}"}) == "a {place} {x} {} {place}"


def test_an_agents_own() -> None:
    own = "actions:\n" + "".join(f"  {line}\n" for line in AUDIT.splitlines())
    base = parse_agent("base", f"---\ndescription: x\n{own}---\nYou.\n", "base.md")
    (action,) = base.actions
    assert (action.id, action.agent, action.where) == ("base.audit", "base", "base.md")
    extending = parse_agent("more", "---\nextends: base\n---\n", "more.md", {"base": base})
    assert extending.actions == (), "they would be offered twice"
    for wrong in ("  agent: plan\n", "  rewrite: true\n"):
        text = f"---\ndescription: x\n{own}  {wrong}---\nYou.\n"
        with pytest.raises(InvalidConfig, match=r"helper.md:8: unknown setting of an action"):
            parse_agent("helper", text, "helper.md")


def test_a_skills_own() -> None:
    """Its instructions go with the prompt, as if a person had named it."""
    own = "actions:\n" + "".join(f"  {line}\n" for line in AUDIT.splitlines())
    front = "name: safe\ndescription: x\nlicense: MIT\nmetadata: {a: [1]}\n"
    text = f"---\n{front}{own}---\nBe safe.\n"
    (action,) = parse_skill("safe", text, "SKILL.md").actions
    assert action.id == "@safe.audit"
    assert action.kind == "source.magy.audit"
    assert action.prompt == "@safe Look for abuse."
    with pytest.raises(InvalidConfig, match=r"SKILL.md:11: unknown setting of an action"):
        parse_skill("safe", text.replace("---\nBe", "    wen: x\n---\nBe"), "SKILL.md")


def test_the_shipped_ones() -> None:
    found = find_agents(None, trusted=False, custom=False).actions
    usual = ("explain", "fix", "refactor", "document", "tests", "ask", "continue")
    assert tuple(found)[:7] == usual
    for action in found.values():
        first, _, rest = action.prompt.partition("\n")
        assert len(first) <= 80 and (not rest or rest.startswith("\n")), "it is the work's title"
