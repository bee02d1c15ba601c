"""What holds of every decision, whatever the rules."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from magy_server.core.permit import Rule, Ruleset, decide, proposals, strictest, withholds
from magy_server.core.values import Action, Decision, Facts, Grant
from tests.thorough import examples

from .rules import EFFECTS, command, facts

FILE_PATTERNS = ["*", "*.env", "src/**", "src/a.py", "**/b", "/etc/**", "/proj/src/*"]
COMMAND_PATTERNS = ["*", "git *", "git push *", "cat *", "rm *", "*a*", "echo *"]
ACTIONS: list[Action] = ["allow", "ask", "deny"]
LINES = ["git status", "git push", "cat .env", "cat src/a.py && rm b", "echo a > src/a.py",
         "echo $(rm b)", "sudo rm b", "cat /etc/hosts", "git log; cat $x",
         "timeout 5 rm b"]  # fmt: skip
CALLS = st.sampled_from(
    [("bash", command(line)) for line in LINES]
    + [(key, facts(key, p)) for key in ("read", "edit", "write")
       for p in (".env", "src/a.py", "x/b", "/etc/hosts", "c")]
    + [("plan", Facts()), ("bash", Facts()), ("net", facts("net", "https://a.org"))]
)  # fmt: skip


@st.composite
def rulesets(draw: st.DrawFn) -> Ruleset:
    keys = {}
    for key in draw(st.sets(st.sampled_from(["read", "edit", "write", "bash", "*"]))):
        patterns = COMMAND_PATTERNS if key == "bash" else FILE_PATTERNS
        if draw(st.booleans()):
            keys[key] = (Rule(pattern="*", action=draw(st.sampled_from(ACTIONS)), bare=True),)
        else:
            rule = st.builds(
                Rule, pattern=st.sampled_from(patterns), action=st.sampled_from(ACTIONS)
            )
            keys[key] = tuple(draw(st.lists(rule, max_size=4)))
    return Ruleset(source=draw(st.sampled_from("pqr")), keys=keys)


SOURCES = st.lists(rulesets(), max_size=3)
GRANTS = st.lists(
    st.builds(Grant, id=st.just("g"), key=st.sampled_from(["read", "edit", "write", "bash"]),
              pattern=st.sampled_from(FILE_PATTERNS + COMMAND_PATTERNS), scope=st.just("session")),
    max_size=3,
)  # fmt: skip
Call = tuple[str, Facts]
RANK = {"allow": 0, "ask": 1, "deny": 3}


def rank(decision: Decision) -> int:
    return RANK[decision.action] + decision.firm


def effect(key: str) -> str:
    return EFFECTS.get(key, "read")


def run(call: Call, sources: list[Ruleset], *rest: object) -> Decision:
    return decide(call[1], call[0], effect(call[0]), sources, *rest)  # type: ignore[arg-type]


@settings(max_examples=examples(100))
@given(CALLS, SOURCES, st.data())
def test_adding_a_deny_never_makes_it_looser(
    call: Call, sources: list[Ruleset], data: st.DataObject
) -> None:
    if not sources:
        return
    at = data.draw(st.integers(0, len(sources) - 1))
    key = data.draw(st.sampled_from(["read", "edit", "write", "bash", "*"]))
    patterns = COMMAND_PATTERNS if key == "bash" else FILE_PATTERNS
    deny = Rule(pattern=data.draw(st.sampled_from(patterns)), action="deny")
    rules = list(sources[at].keys.get(key, ()))
    rules.insert(data.draw(st.integers(0, len(rules))), deny)
    stricter = Ruleset(source=sources[at].source, keys={**sources[at].keys, key: tuple(rules)})
    after = run(call, [*sources[:at], stricter, *sources[at + 1 :]])
    assert rank(after) >= rank(run(call, sources))


@settings(max_examples=examples(80))
@given(CALLS, SOURCES, rulesets())
def test_another_source_lifts_nothing_that_a_rule_said(
    call: Call, sources: list[Ruleset], other: Ruleset
) -> None:
    alone = run(call, sources)
    together = run(call, [*sources, other])
    silent = "nothing" in alone.rule or "cannot be checked matches" in alone.rule
    assert rank(together) >= rank(alone) or silent


@settings(max_examples=examples(80))
@given(CALLS, SOURCES, st.randoms())
def test_the_order_of_sources_changes_nothing(
    call: Call, sources: list[Ruleset], random: Random
) -> None:
    shuffled = list(sources)
    random.shuffle(shuffled)
    assert run(call, shuffled) == run(call, sources)


@settings(max_examples=examples(100))
@given(CALLS, SOURCES, GRANTS, st.booleans())
def test_answers_answer_asks_and_nothing_else(
    call: Call, sources: list[Ruleset], given_grants: list[Grant], bypass: bool
) -> None:
    plain = run(call, sources)
    answered = run(call, sources, given_grants, bypass)
    if plain.action != "ask" or plain.firm:
        assert answered == plain
    elif bypass:
        assert answered.action == "allow"


@settings(max_examples=examples(100))
@given(SOURCES, GRANTS, st.sampled_from(LINES))
def test_grants_never_answer_for_what_cannot_be_checked(
    sources: list[Ruleset], given_grants: list[Grant], line: str
) -> None:
    opaque = Facts(resources=tuple(r for r in command(line).resources if r.opaque))
    if opaque.resources:
        assert run(("bash", opaque), sources, given_grants) == run(("bash", opaque), sources)


@given(CALLS)
def test_without_rules_everything_with_an_effect_is_asked(call: Call) -> None:
    harmless = not call[1].resources and effect(call[0]) == "read"
    outside = call[0] != "bash" and any(r.relative is None and r.kind in ("read", "write")
                                        for r in call[1].resources)  # fmt: skip
    expected = "allow" if harmless else "deny" if outside else "ask"
    assert run(call, []).action == expected


@settings(max_examples=examples(80))
@given(CALLS, SOURCES)
def test_what_is_withheld_would_be_denied(call: Call, sources: list[Ruleset]) -> None:
    if withholds(sources, call[0]):
        assert run(call, sources).action == "deny"


BARE_ASK = (Rule(pattern="*", action="ask", bare=True),)
ASKING = Ruleset(source="s", keys={"bash": BARE_ASK, "edit": BARE_ASK})


@given(st.sampled_from(LINES))
def test_the_proposals_answer_the_call_they_were_made_of(line: str) -> None:
    call = ("bash", command(line))
    assert run(call, [ASKING]).action == "ask"
    if remembered := proposals(call[1], "bash"):
        assert run(call, [ASKING], remembered).action == "allow"


@given(
    st.lists(
        st.builds(Decision, action=st.sampled_from(ACTIONS), rule=st.text(), firm=st.booleans())
    )
)
def test_strictest_is_at_least_as_strict_as_each(decisions: list[Decision]) -> None:
    result = strictest(decisions)
    assert all(RANK[result.action] >= RANK[d.action] for d in decisions)
    assert result in decisions or result.action == "ask"
    if any(d.action == "ask" and d.firm for d in decisions) and result.action == "ask":
        assert result.firm


@given(rulesets())
def test_rulesets_survive_json(rules: Ruleset) -> None:
    assert Ruleset.model_validate_json(rules.model_dump_json()) == rules
