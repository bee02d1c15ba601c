"""What a child may do: the strictest of its own rules and of those of each session above it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magy_server.core.agents.narrowing import narrowing
from magy_server.core.errors import InvalidRequest
from magy_server.core.events import Opened
from magy_server.core.permit import Rule, Ruleset, decide
from magy_server.core.specs import Agents, AgentSpec
from magy_server.core.state.state import State
from magy_server.core.values import Action, Effect, Facts, Grant, Resource
from magy_server.engine.rules import Law, levels
from magy_server.engine.world import Project, put
from tests.thorough import examples

RANK: dict[Action, int] = {"allow": 0, "ask": 1, "deny": 2}
ROOT = "/proj"
KEYS: dict[str, tuple[Effect, list[str], list[str]]] = {
    "read": ("read", ["a.py", "x.env", "src/b.py"], ["*", "*.env", "src/*", "a.py"]),
    "bash": (
        "exec",
        ["git status", "git push x", "make all"],
        ["*", "git *", "git push *", "make *", "rm *"],
    ),
    "agent": (
        "agent",
        ["spawn general", "spawn explore", "send general", "wait"],
        ["*", "spawn *", "send *", "spawn explore", "wait"],
    ),
}
ACTIONS: list[Action] = ["allow", "ask", "deny"]


@dataclass(frozen=True)
class Session:
    """One of a chain, as drawn: its agent's rules, and those that it was spawned with."""

    agent: Ruleset
    spawned: Ruleset | None
    granted: tuple[Grant, ...]
    bypass: bool


def ruleset(random: Random, source: str = "agent") -> Ruleset:
    keys = {}
    for key in random.sample([*KEYS, "*"], random.randint(0, 4)):
        patterns = KEYS[key][2] if key in KEYS else ["*"]
        if random.random() < 0.5:
            keys[key] = (Rule(pattern="*", action=random.choice(ACTIONS), bare=True),)
        else:
            keys[key] = tuple(
                Rule(pattern=random.choice(patterns), action=random.choice(ACTIONS))
                for _ in range(random.randint(1, 4))
            )
    return Ruleset(source=source, keys=keys, narrows=source == "spawned with")


def session(random: Random) -> Session:
    spawned = ruleset(random, "spawned with") if random.random() < 0.5 else None
    granted = tuple(
        Grant(id=f"{key} {pattern}", key=key, pattern=pattern, scope="session")
        for key in random.choices([*KEYS], k=random.randint(0, 2))
        # Of a command a grant is the whole: beginnings cover only what `remembering` lists.
        for pattern in random.choices(KEYS[key][1 if key == "bash" else 2])
    )
    return Session(ruleset(random), spawned, granted, bypass=random.random() < 0.2)


def chain_of(random: Random, least: int = 1) -> list[Session]:
    return [session(random) for _ in range(random.randint(least, 4))]


SEEDS = st.integers(0, 2**32).map(Random)
"""Hypothesis draws rules too slowly for as many as it takes."""
CALLS = [(key, subject) for key in KEYS for subject in KEYS[key][1]]


def facts(key: str, subject: str) -> Facts:
    effect = KEYS[key][0]
    if key == "read":
        found = Resource(kind="read", subject=f"{ROOT}/{subject}", relative=subject)
    else:
        words = tuple(subject.split()) if key == "bash" else ()
        found = Resource(kind=effect, subject=subject, argv=words)
    return Facts(resources=(found,))


# --- the model ------------------------------------------------------------------------------------


def matches(pattern: str, subject: str) -> bool:
    """For these patterns and subjects: a file's name counts wherever it is."""
    return fnmatchcase(subject, pattern) or fnmatchcase(subject.rpartition("/")[2], pattern)


def said(source: Ruleset, key: str, subject: str) -> Action | None:
    for name in (key, "*"):
        hits = [r for r in source.keys.get(name, ()) if matches(r.pattern, subject)]
        if hits:
            if key == "read":
                action = hits[0].action
            else:
                particular = [r for r in hits if r.pattern != "*"] or hits
                action = max((r.action for r in particular), key=lambda a: RANK[a])
            return None if source.narrows and action == "allow" else action
    return None


def may(chain: Sequence[Session], key: str, subject: str) -> Action:
    """What the whole chain comes to, the child first."""
    answers = any(one.bypass for one in chain) or any(
        grant.key == key and matches(grant.pattern, subject)
        for one in chain
        for grant in one.granted
    )
    worst: Action = "allow"
    for one in chain:
        sources = [one.agent, *([one.spawned] if one.spawned else [])]
        all_said = [action for s in sources if (action := said(s, key, subject))]
        level = max(all_said, key=lambda a: RANK[a]) if all_said else "ask"
        if level == "ask" and answers:
            level = "allow"
        worst = max(worst, level, key=lambda a: RANK[a])
    return worst


# --- the real thing -------------------------------------------------------------------------------


def law(chain: Sequence[Session]) -> Law:
    """As it is found for the first of the chain. Nobody was briefed yet."""
    finding = _law(chain)
    with pytest.raises(StopIteration) as found:  # it waits for nothing
        finding.send(None)
    answer: Law = found.value.value
    return answer


async def _law(chain: Sequence[Session]) -> Law:
    names = ["s", "s/1", "s/1/2", "s/1/2/3", "s/1/2/3/4"][: len(chain)]
    specs, blobs, states = {}, dict[str, bytes](), list[State]()
    for id, one in zip(reversed(names), chain, strict=True):
        agent = f"a{len(states)}"
        specs[agent] = AgentSpec(name=agent, description="", rules=one.agent, prompt="")
        rules = put(one.spawned.model_dump_json(), blobs) if one.spawned else None
        opened = Opened(root=ROOT, cwd=ROOT, agent=agent, model="", rules=rules)
        states.append(State(f"session/{id}", opened=opened, options={"agent": agent}))
    world: Any = Stored(Agents(specs), blobs)
    found = await levels(world, states[0], states[1:])
    grants = [grant for one in chain for grant in one.granted]
    return Law(found, Project("project/x", 0), grants, any(one.bypass for one in chain))


class Stored:
    """Of a World what rules are found in."""

    def __init__(self, agents: Agents, blobs: dict[str, bytes]) -> None:
        self._agents = agents
        self._blobs = blobs

    def agent(self, name: str, root: str | None) -> AgentSpec:
        return self._agents.named(name)

    def rules(self, root: str | None) -> list[Ruleset]:
        return []

    async def texts(self, hashes: set[str]) -> dict[str, str]:
        return {hash: self._blobs[hash].decode() for hash in hashes}


class Called:
    def __init__(self, key: str) -> None:
        self.key, self.name, self.effect = key, key, KEYS[key][0]


@settings(max_examples=examples(200), deadline=None)
@given(SEEDS)
def test_a_child_may_what_it_and_all_above_it_may(random: Random) -> None:
    chain = chain_of(random)
    found = law(chain)
    for key, subject in CALLS:
        tool: Any = Called(key)
        decision = found.decide(tool, facts(key, subject), {})
        assert decision.action == may(chain, key, subject), (chain, key, subject, decision.rule)


@settings(max_examples=examples(200), deadline=None)
@given(SEEDS)
def test_nothing_below_loosens_what_is_above(random: Random) -> None:
    """Whatever a child's agent allows; only what was granted and bypass, which are a person's, do
    anything for it."""
    above, below = chain_of(random), replace(session(random), granted=(), bypass=False)
    alone, together = law(above), law([below, *above])
    for key, subject in CALLS:
        tool: Any = Called(key)
        before, after = (one.decide(tool, facts(key, subject), {}) for one in (alone, together))
        assert RANK[after.action] >= RANK[before.action], (above, below, after.rule)


@given(SEEDS)
def test_reading_round_the_edges_is_under_the_same_law(random: Random) -> None:
    chain = chain_of(random, least=2)
    found = law(chain)
    for name in KEYS["read"][1]:
        assert found.may_read(ROOT, f"{ROOT}/{name}") == may(chain, "read", name), chain


def test_who_reads_which_rule_decided_knows_whose_it_is() -> None:
    allow = Ruleset(source="agent a", keys={"bash": (Rule(pattern="*", action="allow"),)})
    deny = Ruleset(source="agent b", keys={"bash": (Rule(pattern="git *", action="deny"),)})
    chain = [Session(one, None, (), False) for one in (allow, allow, deny)]
    tool: Any = Called("bash")
    decision = law(chain).decide(tool, facts("bash", "git status"), {})
    assert decision.rule == "agent b (of s): bash `git *` -> deny"


# --- rules that come with a spawn -----------------------------------------------------------------


def test_an_allow_is_an_exception_in_its_own_list_and_allows_nothing_else() -> None:
    rules = narrowing(
        {"bash": {"git status": "allow", "*": "deny"}, "edit": "ask", "lint": "deny"}, ["lint"]
    )
    assert rules.narrows

    def answer(key: str, subject: str, *sources: Ruleset) -> Action:
        return decide(facts(key, subject), key, KEYS[key][0], [rules, *sources]).action

    assert answer("bash", "make all") == "deny"
    assert answer("bash", "git status") == "ask", "as if it said nothing"
    allow = Ruleset(source="agent", keys={"bash": (Rule(pattern="*", action="allow"),)})
    assert answer("bash", "git status", allow) == "allow"
    assert answer("bash", "make all", allow) == "deny"


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"edti": "deny"}, "no tool has the key 'edti'. Did you mean 'edit'? Known are: read, "),
        ({"Bash!": "deny"}, "no tool has the key 'Bash!'. Did you mean 'bash'?"),
        ({"zz": "deny"}, "no tool has the key 'zz'. Known are: read, edit"),
        ({"lint": "deny"}, "net, agent, *, editor, emacs_eval, plan."),
        ({"bash": "never"}, "bash: an action must be allow, ask or deny, not 'never'."),
        ({"bash": {"git *": "no"}}, "bash: an action must be allow, ask or deny, not 'no'."),
        ({"bash": {}}, "there are no rules for bash"),
        ({"bash": {"": "deny"}}, "bash has an empty pattern"),
        ({"bash": "allow"}, "bash only allows, but this setting can only restrict"),
        ({"bash": {f"x{n} *": "deny" for n in range(201)}}, "no more than 200 rules"),
    ],
)
def test_what_is_wrong_with_rules_is_said(table: Any, sentence: str) -> None:
    with pytest.raises(InvalidRequest, match="permissions") as error:
        narrowing(table, ["plan", "read"])
    assert sentence in error.value.message
