"""This module decides, from facts and rules that it is given, whether a call may run: allow, ask or
deny, and by which rule. Pure.

A source (an agent, the configuration) has a list of rules per permission key. Over sources and over
all that a call touches, deny beats ask, and ask beats allow; a source whose rules say nothing about
a resource has no say in it, and what nobody speaks about is asked. Remembered grants, a hook's
allow and bypass are not sources: they answer an ask, and nothing overrides a deny.
`docs/permissions.md` tells this to people; its examples are tests."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from magy_server.core.mcp.names import PREFIX, covers, is_earlier, keys_for
from magy_server.core.patterns import literal, matches_command, matches_file
from magy_server.core.policy import guardrails
from magy_server.core.policy.guardrails import NOBODY, Guardrail, Said
from magy_server.core.values import (
    Action,
    Confinement,
    Decision,
    Effect,
    Facts,
    Grant,
    HookSaid,
    Resource,
    Value,
)
from magy_server.dataclass import dataclass

KEYS = ("read", "edit", "write", "bash", "git", "net", "agent", "*")
"""The permission keys with a meaning of their own; a tool may bring another."""
EDITOR_KEYS = ("editor", "emacs_eval")
"""The keys of the tools that ask the editor: for what it knows, and to run code in it."""
_RANK: Mapping[Action, int] = {"allow": 0, "ask": 1, "deny": 2}
_FILES = ("read", "write")
_WIDER: Mapping[str, str] = {
    "write": "edit", "git": "bash", "http": "net", "github": "net", "browser": "net",
}  # fmt: skip
"""Where the rules are for what a key's own do not say: who says nothing about whole files means
them when files are changed, git's commands when tools run them, and the network."""
_ANY_CASE = ("github",)
"""The keys whose servers take capitals and small letters of a name for the same."""
_UNMATCHED = Decision(action="ask", rule="nothing matches: ask")


class Rule(Value):
    """`bare`: written without a pattern (`bash: ask`); the pattern is then `*`."""

    pattern: str
    action: Action
    bare: bool = False


class Ruleset(Value):
    """The rules of one source. `source` names it for people: "agent build". One that `narrows` can
    only forbid and ask: what it allows is as if it said nothing."""

    source: str
    keys: Mapping[str, tuple[Rule, ...]] = {}
    narrows: bool = False
    guardrails: tuple[Guardrail, ...] = ()

    def at_home(self, home: str) -> "Ruleset":
        """Returns the rules with `~/` at the start of a pattern made absolute. Before that, such a
        pattern matches nothing."""

        def absolute(rule: Rule) -> Rule:
            if not rule.pattern.startswith("~/"):
                return rule
            return rule.model_copy(update={"pattern": home.rstrip("/") + rule.pattern[1:]})

        keys = {key: tuple(map(absolute, rules)) for key, rules in self.keys.items()}
        return self.model_copy(update={"keys": keys})


def decide(
    facts: Facts,
    key: str,
    effect: Effect,
    sources: Sequence[Ruleset],
    grants: Sequence[Grant] = (),
    bypass: bool = False,
    call: Said = NOBODY,
) -> Decision:
    """`call`: as guardrails see it. What they say nobody answers but a person."""
    if facts.problem is not None:
        return Decision(action="deny", rule=facts.problem)
    verdicts = [
        _answered(v, grants, bypass, facts.confined) for v in _verdicts(facts, key, effect, sources)
    ]
    decision = strictest([*guarded(facts, key, sources, call), *verdicts])
    decision = _heard(decision, facts.hooks)
    return _confined(decision, facts.confined) if facts.confined else decision


def _heard(decision: Decision, hooks: Sequence[HookSaid]) -> Decision:
    """Returns the decision after what hooks said of the call: a hook's deny holds like a rule's,
    its ask has the person asked each time, and its allow answers an ask that is not firm."""
    said = {one.action: f"hook `{one.hook}`: {one.reason}" for one in reversed(hooks)}
    if decision.action == "deny":
        return decision
    if "deny" in said:
        return Decision(action="deny", rule=said["deny"])
    if "ask" in said:
        return Decision(action="ask", rule=said["ask"], firm=True)
    if decision.action == "ask" and not decision.firm and "allow" in said:
        return Decision(action="allow", rule=f"{said['allow']} (else {decision.rule})")
    return decision


def guarded(facts: Facts, key: str, sources: Sequence[Ruleset], call: Said) -> list[Decision]:
    """Returns what the guardrails of all sources say to a call."""
    rails = ((one.source, one.guardrails) for one in sources if one.guardrails)
    return [d for name, some in rails for d in guardrails.verdicts(name, some, call, key, facts)]


def strictest(decisions: Sequence[Decision]) -> Decision:
    """Returns the first of the strictest decisions: deny, then a firm ask, ask, allow. Without any,
    it is ask."""
    if not decisions:
        return _UNMATCHED
    return max(decisions, key=lambda d: (_RANK[d.action], d.firm and d.action == "ask"))


def withholds(sources: Sequence[Ruleset], key: str, tool: str = "") -> bool:
    """Returns whether no call under `key` can pass, or none of this tool, so that Magy need not
    offer the tool to the model."""
    return any(
        _denies_all(source, key) or guardrails.disables(source.guardrails, tool, key)
        for source in sources
    )


def proposals(facts: Facts, key: str) -> tuple[Grant, ...]:
    """Returns the narrow grants that a lasting yes to this call would give: exact paths, and for
    each command a prefix where a program's subcommand is one kind of work (`git commit *`), else
    its exact text; for agents what is done with them, whichever they are (`spawn *`). () when
    remembering cannot help: a part is not understood. `scope` is the person's choice; it is
    "session" here."""
    if facts.problem is not None or any(r.opaque for r in facts.resources):
        return ()
    if not facts.resources:
        return () if key in KEYS else (_grant(key, "*"),)
    found: dict[str, Grant] = {}
    for resource in facts.resources:
        if resource.kind == "agent":
            grant = _grant(key, _class(resource))
        elif key == "http":
            grant = _grant(key, _host(resource.subject))
        elif resource.kind not in _FILES:
            grant = _grant(key, _prefix(resource) if resource.kind == "exec" else None, resource)
        elif key in ("read", "edit", "write"):
            grant = _grant(key, None, resource)
        elif resource.kind == "write" or resource.relative is None:
            grant = _grant(resource.kind, None, resource)
        else:
            continue
        if resource.kind in _FILES and re.search(r"[*?]", resource.subject):
            return ()
        found.setdefault(grant.id, grant)
    return tuple(found.values())


# --- verdicts -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What the rules say about one resource, looked up under `key`."""

    decision: Decision
    key: str
    resource: Resource | None = None


def _verdicts(
    facts: Facts, key: str, effect: Effect, sources: Sequence[Ruleset]
) -> Iterator[_Verdict]:
    if not facts.resources:
        yield _Verdict(_without_resources(key, effect, sources), key)
    # What a command names are its arguments, also when the command has no effect.
    runs = any(resource.kind == "exec" for resource in facts.resources)
    for resource in facts.resources:
        if effect in _FILES and resource.kind in _FILES and not runs:
            if resource.relative is None:
                rule = f"outside the workspace: {resource.subject}"
                yield _Verdict(Decision(action="deny", rule=rule), key, resource)
            else:
                found = [d for s in sources for d in _says(s, key, resource)]
                yield _Verdict(_strictest_source(found), key, resource)
        elif resource.kind in _FILES:
            yield from _argument(resource, key, sources)
        else:
            yield _Verdict(_command(resource, key, sources), key, resource)


def _without_resources(key: str, effect: Effect, sources: Sequence[Ruleset]) -> Decision:
    """A call that names nothing to match: only rules for everything apply. One that has no effect
    either (a plan, the output of a command that was allowed) is not asked about, unless a bare rule
    for this very tool says so."""
    found = []
    for source in sources:
        for name, rules in _chain(source, key):
            everything = [rule for rule in rules if rule.pattern == "*"]
            if not everything:
                continue
            rule = max(everything, key=lambda r: _RANK[r.action])
            if source.narrows and rule.action == "allow":
                break
            harmless = effect == "read" and not (rule.bare and name == key)
            if rule.action == "deny" or not harmless:
                found.append(_decision(source, name, rule))
            break
    if not found and effect == "read":
        return Decision(action="allow", rule="touches no file, command or network: allow")
    return _strictest_source(found)


def _command(resource: Resource, key: str, sources: Sequence[Ruleset]) -> Decision:
    found = [d for source in sources for d in _says(source, key, resource)]
    rules = [(s, k, rule) for s in sources for k, some in _chain(s, key) for rule in some]
    if not resource.opaque:
        return _strictest_source([*found, *_meant(rules, resource)])
    if any(rule.pattern != "*" for _, _, rule in rules):
        # Patterns say that this person tells commands apart; this one cannot be told.
        found = [d for d in found if d.action != "allow"]
    denies = [(s, k, r) for s, k, r in rules if r.action == "deny" and r.pattern != "*"]
    for source, name, rule in sorted(denies, key=lambda d: _text(*d))[:1]:
        why = f"Magy cannot tell whether {_text(source, name, rule)} applies: ask"
        found.append(Decision(action="ask", rule=why, firm=True))
    if not found:
        return Decision(action="ask", rule="a part that cannot be checked matches nothing: ask")
    return _strictest_source(found)


def _meant(rules: Iterable[tuple[Ruleset, str, Rule]], resource: Resource) -> Iterator[Decision]:
    """Returns what comes of rules about commands that this one may run without naming them."""
    if resource.kind != "exec":
        return
    from magy_server.core.shell.unknown_programs import may_run

    for source, name, rule in rules:
        if rule.action != "allow" and may_run(rule.pattern, resource.argv):
            why = f"may run what is meant by {_text(source, name, rule)}: ask"
            yield Decision(action="ask", rule=why, firm=rule.action == "deny")


def _argument(resource: Resource, key: str, sources: Sequence[Ruleset]) -> Iterator[_Verdict]:
    """A file that a command names or writes. File rules can forbid it or have it asked; that they
    are silent does not matter to reading, but writing needs somebody's leave."""
    name = "read" if resource.kind == "read" else "write"
    found = [d for source in sources for d in _says(source, name, resource)]
    if resource.kind == "write" and not found:
        chains = (rules for s in sources if not s.narrows for _, rules in _chain(s, key)[:1])
        if not any(rule.bare and rule.action == "allow" for rules in chains for rule in rules):
            found.append(_UNMATCHED)
    if resource.relative is None:
        found.append(Decision(action="ask", rule=f"outside the workspace: {resource.subject}"))
    if found:
        yield _Verdict(_strictest_source(found), name, resource)


def _strictest_source(found: Iterable[Decision]) -> Decision:
    """By text among equals, so that the order of sources changes nothing, not even the reason."""
    return strictest(sorted(found, key=lambda d: d.rule))


def _answered(
    verdict: _Verdict, grants: Sequence[Grant], bypass: bool, confined: Confinement | None
) -> Decision:
    decision = verdict.decision
    if decision.action != "ask" or decision.firm:
        return decision
    for grant in grants:
        if _covers(grant, verdict):
            answer = f"granted for this {grant.scope}: {grant.key} `{grant.pattern}`"
            return Decision(action="allow", rule=f"{answer} (else {decision.rule})")
    if bypass:
        return Decision(action="allow", rule=f"bypass (else {decision.rule})")
    if confined and confined.answers and _is_contained(verdict.resource):
        return Decision(action="allow", rule=f"{_place(confined)}: allow (else {decision.rule})")
    if any(_was_for(grant, verdict) for grant in grants):
        changed = "its server has changed this tool since you allowed it"
        return Decision(action="ask", rule=f"{changed} ({decision.rule})")
    return decision


def _was_for(grant: Grant, verdict: _Verdict) -> bool:
    """Whether the grant was for the same tool of an MCP server, which was another then."""
    if grant.key != verdict.key or not grant.key.startswith(PREFIX) or verdict.resource is None:
        return False
    return is_earlier(grant.pattern, literal(verdict.resource.subject))


def _is_contained(resource: Resource | None) -> bool:
    """Whether the walls around a command keep what is asked about from mattering: that it runs, and
    that it writes in the workspace; not what it reads, which the model will read, too."""
    if resource is None:
        return False
    return resource.kind == "exec" or (resource.kind == "write" and resource.relative is not None)


def _confined(decision: Decision, confined: Confinement) -> Decision:
    """In the strict sandbox a person answers for each command. Questions say where it will run."""
    if decision.action == "deny":
        return decision
    if confined.level == "strict":
        rule = f"the strict sandbox asks about each command ({decision.rule})"
        return Decision(action="ask", rule=f"{rule}; it runs {_place(confined)}", firm=True)
    if decision.action == "allow":
        return decision
    return decision.model_copy(update={"rule": f"{decision.rule}; it runs {_place(confined)}"})


_NETWORK = {
    "all": "",
    "listed": ", with the network of the listed hosts",
    "none": ", without network",
}


def _place(confined: Confinement) -> str:
    if confined.missing:
        return f"without a sandbox: {confined.missing}"
    return f"in the {confined.level} sandbox{_NETWORK[confined.network]}"


def _covers(grant: Grant, verdict: _Verdict) -> bool:
    resource = verdict.resource
    # Leave to replace a whole file is leave to change a part of it; to run a command, leave to see
    # what a tool makes of it.
    wider = {("edit", "write"), ("git", "bash")}
    if grant.key != verdict.key and (verdict.key, grant.key) not in wider:
        return False
    if resource is None:
        return grant.pattern == "*"
    if resource.opaque or not _is_granted(grant.pattern, resource):
        return False
    beginning = resource.kind == "exec" and grant.pattern.endswith(" *")
    return not beginning or grant.pattern == _prefix(resource)


# --- rules ----------------------------------------------------------------------------------------


def _chain(source: Ruleset, key: str) -> list[tuple[str, tuple[Rule, ...]]]:
    """Returns where the rules for `key` are: what one list does not match falls to the next."""
    patterns = keys_for(key, source.keys) if key.startswith(PREFIX) else ()
    names = dict.fromkeys((key, *patterns, _WIDER.get(key, "*"), "*"))
    return [(name, _exact(source, name, key)) for name in names if name in source.keys]


def _exact(source: Ruleset, name: str, key: str) -> tuple[Rule, ...]:
    """Returns the rules of a name. What forbids and asks holds however a tool of a server writes
    its name; what allows holds for exactly that."""
    rules = source.keys[name]
    if not name.startswith(PREFIX) or name == key or covers(name, key):
        return rules
    return tuple(rule for rule in rules if rule.action != "allow")


def _says(source: Ruleset, key: str, resource: Resource) -> list[Decision]:
    """Returns what one source says about one resource: one decision, or none."""
    for name, rules in _chain(source, key):
        matching = [rule for rule in rules if _applies(rule, resource, key)]
        if matching:
            decision = _decision(source, name, _chosen(matching, resource))
            return [] if source.narrows and decision.action == "allow" else [decision]
    return []


def _applies(rule: Rule, resource: Resource, key: str) -> bool:
    if resource.opaque and rule.action == "allow":
        return rule.bare
    if resource.kind == "net" and (rule.action != "allow" or key in _ANY_CASE):
        # Servers may tell letters apart or not; what is forbidden is so in any case.
        return matches_command(rule.pattern.casefold(), resource.subject.casefold())
    return _matches(rule.pattern, rule.action, resource)


def _chosen(matching: Sequence[Rule], resource: Resource) -> Rule:
    """Returns the rule that holds. Of file rules the first does; of others the strictest, `*` being
    for what nothing else matches."""
    if resource.kind in _FILES:
        return matching[0]
    particular = [rule for rule in matching if rule.pattern != "*"]
    return max(particular or matching, key=lambda rule: _RANK[rule.action])


def _denies_all(source: Ruleset, key: str) -> bool:
    for _, rules in _chain(source, key):
        for rule in rules if key in ("read", "edit", "write") else _last_everything(rules):
            if rule.action != "deny":
                return False
            if rule.pattern == "*":
                return True
    return False


def _last_everything(rules: Iterable[Rule]) -> list[Rule]:
    """Returns the rules in an order for keys where order does not matter: those for everything come
    last, the mildest first."""
    return sorted(rules, key=lambda rule: (rule.pattern == "*", _RANK[rule.action]))


def _decision(source: Ruleset, key: str, rule: Rule) -> Decision:
    return Decision(action=rule.action, rule=_text(source, key, rule))


def _text(source: Ruleset, key: str, rule: Rule) -> str:
    pattern = "" if rule.bare else f" `{rule.pattern}`"
    return f"{source.source}: {key}{pattern} -> {rule.action}"


# --- matching -------------------------------------------------------------------------------------


def _matches(pattern: str, action: Action, resource: Resource) -> bool:
    if resource.kind in _FILES:
        exact = action == "allow"
        return matches_file(pattern, resource.subject, resource.relative, exact=exact)
    if resource.kind != "exec" or action == "allow":
        return matches_command(pattern, resource.subject)
    from magy_server.core.policy.command_rules import is_forbidden

    return is_forbidden(pattern, resource)


# --- grants ---------------------------------------------------------------------------------------


def _grant(key: str, pattern: str | None, resource: Resource | None = None) -> Grant:
    """Returns a grant; without a pattern, one for exactly this resource."""
    if pattern is None:
        assert resource is not None
        subject = resource.subject
        pattern = subject if resource.kind in _FILES else _there(resource) + literal(subject)
    id = hashlib.sha256(f"{key}\0{pattern}".encode("utf-8", "replace")).hexdigest()[:16]
    return Grant(id=id, key=key, pattern=pattern, scope="session")


def _class(resource: Resource) -> str:
    """Returns the pattern for what is done with an agent, whichever agent it is."""
    what, space, _ = resource.subject.partition(" ")
    return literal(what) + (" *" if space else "")


def _host(subject: str) -> str:
    """Returns the pattern for all requests of this method to this host."""
    before, scheme, rest = subject.rpartition("://")
    if not scheme:
        return literal(subject)
    return literal(f"{before}{scheme}{rest.partition('/')[0]}/") + "*"


def _prefix(resource: Resource) -> str | None:
    from magy_server.core.policy.command_rules import prefix

    found = prefix(resource)
    return None if found is None else _there(resource) + found


def _there(resource: Resource) -> str:
    """What stands before a command that runs elsewhere than in the root: in another directory the
    same words run another script, or follow another file of rules."""
    if not resource.place:
        return ""
    from magy_server.core.policy.command_rules import there

    return there(resource.place)


def _is_granted(pattern: str, resource: Resource) -> bool:
    start = _there(resource)
    return pattern.startswith(start) and _matches(pattern.removeprefix(start), "allow", resource)
