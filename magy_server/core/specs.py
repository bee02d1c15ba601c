"""This module parses agent files, markdown with YAML front matter, into values.

    ---
    description: Reviews a change
    mode: subagent
    permissions:
      read: allow
      bash:
        "git diff *": allow
        "*": ask
    ---
    You review changes. ...

`extends: build` takes from another agent what the file does not say itself. Everything wrong is an
InvalidConfig that names file and line: a rule that is silently not read would be a permission that
silently does not hold.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, get_args

from magy_server.core.actions import ActionReader, ActionSpec
from magy_server.core.agents.character import CharacterReader, Expertise, Personality, told
from magy_server.core.errors import InvalidConfig, NotFound, NotTrusted
from magy_server.core.mcp.names import is_key
from magy_server.core.permit import EDITOR_KEYS, KEYS, Rule, Ruleset
from magy_server.core.policy.examples import wrong_example
from magy_server.core.text.yaml_nodes import Nodes, front_matter
from magy_server.core.values import Action, Value, WorktreeSettings
from magy_server.dataclass import dataclass

if TYPE_CHECKING:
    from yaml import MappingNode, Node

Mode = Literal["primary", "subagent", "all"]
AGENT_FILE = (
    "an agent file begins with a line `---`, then settings such as `description: ...`, then "
    "another `---`, then the system prompt."
)
_ACTIONS: tuple[Action, ...] = get_args(Action)
_Example = tuple[int, str, str, Action]
"""The line in the file, a permission key, a call, and the action that the rules must come to."""


class AgentSpec(Value):
    """`model` is `provider/model`, None for the configured one. `tools` None: all that the rules
    leave; else only these. `plugin`: the only one of which it has tools, skills and words; "": all.
    `prompt` is the system prompt, `actions` are what editors offer to have done by it, `where` is
    the file it all stands in."""

    name: str
    description: str
    mode: Mode = "all"
    hidden: bool = False
    temperature: float | None = None
    model: str | None = None
    tools: tuple[str, ...] | None = None
    plugin: str = ""
    rules: Ruleset
    prompt: str
    personality: Personality = Personality.usual()
    expertise: Expertise = Expertise.usual()
    worktree: WorktreeSettings = WorktreeSettings.usual()
    actions: tuple[ActionSpec, ...] = ()
    where: str = ""

    @property
    def instructions(self) -> str:
        """Returns the system prompt, and how it goes about its work."""
        character = told(self.personality, self.expertise)
        return f"{self.prompt}\n\n# You\n\n{character}" if character else self.prompt


@dataclass(frozen=True)
class Agents(Mapping[str, AgentSpec]):
    """The agents of one workspace root, and why others that have a file there cannot be used."""

    specs: Mapping[str, AgentSpec]
    broken: Mapping[str, str] = field(default_factory=dict)
    """By name: what is wrong with the file. No other agent stands in for it, as that one would have
    other permissions."""
    untrusted: Mapping[str, str] = field(default_factory=dict)
    """By name: the file in a project that is not trusted."""
    problems: Sequence[str] = ()
    """All that was found wrong, for people; each names its file."""
    common_actions: Mapping[str, ActionSpec] = field(default_factory=dict)
    """Those of no agent in particular, by id."""
    unused: Sequence[str] = ()
    """Other files than agents' in a project that is not trusted."""

    def __getitem__(self, name: str) -> AgentSpec:
        return self.specs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.specs)

    def __len__(self) -> int:
        return len(self.specs)

    @property
    def actions(self) -> Mapping[str, ActionSpec]:
        """What editors offer, by id."""
        own = (action for spec in self.specs.values() for action in spec.actions)
        return {**self.common_actions, **{action.id: action for action in own}}

    def plugin(self, agent: str, given: str) -> str:
        """Returns the only plugin of which a session of this agent has anything; "": it has all.
        `given`: the one that it was spawned with."""
        spec = self.specs.get(agent)
        return given or (spec.plugin if spec else "")

    def named(self, name: str) -> AgentSpec:
        """Returns the agent. Raises InvalidConfig for one whose file is wrong, NotTrusted,
        NotFound."""
        if name in self.specs:
            return self.specs[name]
        if name in self.broken:
            raise InvalidConfig(self.broken[name])
        if name in self.untrusted:
            raise NotTrusted(
                f"Magy does not use the agent {name!r}: {self.untrusted[name]} is in a project "
                "that is not trusted, or that changed since you trusted it. Read the file, "
                "then trust the project."
            )
        known = ", ".join(spec.name for spec in self.specs.values() if not spec.hidden)
        raise NotFound(f"There is no agent {name!r}. Agents are: {known}.")


def parse_agent(
    name: str, text: str, where: str, bases: Mapping[str, AgentSpec] | None = None
) -> AgentSpec:
    """The agent `name` from the text of its file; `where` names the file in errors, `bases` are the
    agents that it may extend. Raises InvalidConfig."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", name):
        raise InvalidConfig(
            f"{where}: {name!r} is not a valid agent name; use small letters, digits, - and _ for "
            "the file's name."
        )
    front, prompt = front_matter(text, where, AGENT_FILE)
    fields = _Reader(where, bases or {}, name).fields(front)
    base = fields.pop("extends", None)
    if base is not None:
        fields = _extended(fields, base)
    if "description" not in fields:
        raise InvalidConfig(f"{where}:1: the description is missing; add `description: ...`.")
    prompt = prompt or fields.pop("prompt", "")
    if not prompt:
        raise InvalidConfig(
            f"{where}: the system prompt is missing; write it below the second ---."
        )
    rules = Ruleset(source=f"agent {name}", keys=fields.pop("permissions", {}))
    _try_examples(rules, fields.pop("examples", ()), where)
    return AgentSpec(**fields | {"name": name, "rules": rules, "prompt": prompt, "where": where})


def parse_rules(source: str, text: str, where: str) -> Ruleset:
    """Returns the rules of a text: YAML as under `permissions` in an agent file. Raises
    InvalidConfig."""
    return Ruleset(source=source, keys=_Reader(where, {}).rules(text))


def _try_examples(rules: Ruleset, examples: Iterable[_Example], where: str) -> None:
    for line, key, call, expected in examples:
        if wrong := wrong_example(rules, key, call, expected):
            raise InvalidConfig(f"{where}:{line}: examples: {wrong}")


def _extended(fields: Mapping[str, Any], base: AgentSpec) -> dict[str, Any]:
    """What a file says, and from `base` what it does not say. Rules are joined key by key: those of
    the file come first and take the place of those with the same pattern."""
    keys = dict(base.rules.keys)
    for key, own in fields.get("permissions", {}).items():
        patterns = {rule.pattern for rule in own}
        rest = [rule for rule in keys.get(key, ()) if rule.pattern not in patterns]
        keys[key] = own if any(rule.bare for rule in own) else _merged([*own, *rest])
    inherited = base.model_dump(exclude={"name", "rules", "where", "actions"})
    return inherited | dict(fields) | {"permissions": keys}


class _Reader(Nodes):
    """`name`: the agent's. `bases`: those that it may extend."""

    def __init__(self, where: str, bases: Mapping[str, AgentSpec], name: str = "") -> None:
        super().__init__(where)
        self.bases = bases
        self.name = name

    def fields(self, front: str) -> dict[str, Any]:
        node = self.compose(front)
        if node is None:
            return {}
        bases = self.bases
        readers = {
            "description": self.string,
            "mode": lambda n: self.one_of(n, get_args(Mode), "mode"),
            "hidden": self.boolean,
            "temperature": self._temperature,
            "model": self._model,
            "tools": self._names,
            "plugin": self._plugin,
            "permissions": self._permissions,
            "examples": self._examples,
            "extends": lambda n: bases[self.one_of(n, bases, "built-in agent")],
            "actions": ActionReader(self.where, agent=self.name).owned,
            "personality": CharacterReader(self.where).personality,
            "expertise": CharacterReader(self.where).expertise,
            "worktree": self._worktree,
        }
        fields = {}
        for key, value in self.pairs(node):
            if key.value not in readers:
                self.unknown(key, "setting", readers)
            fields[key.value] = readers[key.value](value)
        return fields

    def rules(self, text: str) -> dict[str, tuple[Rule, ...]]:
        node = self.compose(text)
        return self._permissions(node) if node else {}

    # --- values ---

    def _worktree(self, node: Node) -> WorktreeSettings:
        from magy_server.core.agents.worktree_settings import WorktreeReader  # few files have it

        return WorktreeReader(self.where).settings(node)

    def _temperature(self, node: Node) -> float:
        value = self.scalar(node)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 2:
            self.fail(node, f"temperature must be a number from 0 to 2, not {node.value!r}.")
        return float(value)

    def _model(self, node: Node) -> str:
        model = self.string(node)
        provider, slash, name = model.partition("/")
        if not (provider and slash and name):
            self.fail(
                node, f"model must be `provider/model`, such as anthropic/NAME, not {model!r}."
            )
        return model

    def _names(self, node: Node) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(item for item, _ in self.items(node)))
        for name in names:
            if not re.fullmatch(r"\w[\w.-]*", name) and not is_key(name):
                self.fail(node, f"{name!r} is not a tool name; write `tools: read_file, bash`.")
        return names

    def _plugin(self, node: Node) -> str:
        name = self.string(node)
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,31}", name):
            self.fail(node, f"{name!r} is not the name of a plugin; `magy plugins` lists them.")
        return name

    # --- permissions ---

    def _permissions(self, node: Node) -> dict[str, tuple[Rule, ...]]:
        """A mapping from key to rules, or a list of such mappings and of words (`bash ask`)."""
        import yaml

        found: dict[str, list[Rule]] = {}
        if isinstance(node, yaml.MappingNode):
            self._mapped(node, found)
        else:
            entries = node.value if isinstance(node, yaml.SequenceNode) else [node]
            for entry in entries:
                if isinstance(entry, yaml.MappingNode):
                    self._mapped(entry, found)
                else:
                    self._worded(entry, found)
        return {key: _merged(rules) for key, rules in found.items()}

    def _mapped(self, node: MappingNode, found: dict[str, list[Rule]]) -> None:
        for key, value in self.pairs(node):
            rules = list(self._rules(value))
            if not rules:
                self.fail(value, "there are no rules here; write an action or `pattern: action`.")
            found.setdefault(self._key(key, key.value), []).extend(rules)

    def _worded(self, node: Node, found: dict[str, list[Rule]]) -> None:
        """`bash ask`, `bash . ask`, or with a pattern between: `read *.env deny`."""
        for item, at in self.items(node):
            key, _, rest = item.partition(" ")
            pattern, _, action = rest.strip().rpartition(" ")
            pattern = pattern.strip()
            bare = pattern in ("", ".")
            rule = Rule(
                pattern="*" if bare else pattern, action=self._action(at, action), bare=bare
            )
            found.setdefault(self._key(at, key), []).append(rule)

    def _rules(self, node: Node) -> Iterator[Rule]:
        """An action, a mapping from pattern to action, or a list of such mappings; in order."""
        import yaml

        if isinstance(node, yaml.ScalarNode):
            yield Rule(pattern="*", action=self._action(node, str(node.value).strip()), bare=True)
            return
        for mapping in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            for pattern, action in self.pairs(mapping):
                value = self._action(action, self.string(action))
                yield Rule(pattern=pattern.value, action=value)

    def _examples(self, node: Node) -> list[_Example]:
        """A mapping from key to a mapping from calls to actions."""
        found = []
        for key, calls in self.pairs(node):
            name = self._key(key, key.value)
            for call, action in self.pairs(calls):
                expected = self._action(action, self.string(action))
                found.append((call.start_mark.line + 1, name, str(call.value), expected))
        return found

    def _key(self, node: Node, key: str) -> str:
        if is_key(key):
            return key
        near = difflib.get_close_matches(key.lower(), KEYS, n=1, cutoff=0.7)
        if key not in (*KEYS, *EDITOR_KEYS) and (near or not re.fullmatch(r"[a-z][a-z0-9_]*", key)):
            hint = f"Did you mean {near[0]!r}?" if near else f"Known are: {', '.join(KEYS)}."
            self.fail(node, f"unknown permission {key!r}. {hint}")
        return key

    def _action(self, node: Node, text: str) -> Action:
        action = next((known for known in _ACTIONS if known == text), None)
        if action is None:
            near = difflib.get_close_matches(text.lower(), _ACTIONS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            self.fail(node, f"an action must be allow, ask or deny, not {text!r}.{hint}")
        return action


def _merged(rules: list[Rule]) -> tuple[Rule, ...]:
    """A rule without a pattern beside others is the rule for what the others do not match."""
    if len(rules) > 1:
        rules = [rule.model_copy(update={"bare": False}) for rule in rules]
    return tuple(rules)
