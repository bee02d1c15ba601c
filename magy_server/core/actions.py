"""An action is something to ask an agent with one click; files describe it as data.

    audit:
      title: Audit this code
      when: selection
      prompt: Look for ways in which the selected code can be abused.

They stand in `actions.yaml` files, and under `actions:` in agent files and skills. What an editor
is offered of them, and what one comes to, is said by `lsp/plain/actions.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args

from magy_server.core.text.yaml_nodes import Nodes
from magy_server.core.values import Value
from magy_server.regex import regex

if TYPE_CHECKING:
    from yaml import Node

When = Literal["selection", "diagnostics", "symbol", "always", "named"]
Kind = Literal["quickfix", "refactor", "refactor.rewrite", "source"]
HOLES = ("symbol", "place")
"""What `{symbol}` and `{place}` stand for in titles and prompts: the word at the cursor, and
`path:first-last` of the lines meant."""
LONGEST_TITLE = 80
SKILL_FILE = (
    "a skill begins with a line `---`, then `name: ...` and `description: ...`, then another "
    "`---`, then the instructions."
)
_ID = regex(r"[a-z][a-z0-9_-]*")
_HOLE = regex(r"\{(\w+)\}")


class ActionSpec(Value):
    """`id` is unique among the actions of a workspace root: of an agent's it is `AGENT.ID`, of a
    skill's `@SKILL.ID`. `when`: what there must be for it to be offered (`named`: it is only for
    prompts, which name it); `kind`: that of the
    Language Server Protocol, such as `quickfix.magy.fix`. `agent`: who does it, "" for the agent
    of the session. `rewrite`: what comes of it takes the place of the selection at once, under
    review. `where` is the file it stands in."""

    id: str
    title: str
    kind: str
    when: When
    prompt: str
    agent: str = ""
    rewrite: bool = False
    where: str = ""


def filled(text: str, holes: Mapping[str, str]) -> str:
    """Returns the text with a value for each hole in braces that has one."""
    return _HOLE.sub(lambda found: holes.get(found[1], found[0]), text)


def parse_actions(text: str, where: str) -> dict[str, ActionSpec | None]:
    """Returns the actions of an `actions.yaml` file; None for one that the file takes away
    (`explain: false`). Raises InvalidConfig."""
    reader = ActionReader(where)
    node = reader.compose(text)
    return {} if node is None else reader.all(node)


class ActionReader(Nodes):
    """`agent`, `skill`: whose front matter it is, "" for an `actions.yaml`."""

    def __init__(self, where: str, *, agent: str = "", skill: str = "") -> None:
        super().__init__(where)
        self._agent = agent
        self._skill = skill

    def owned(self, node: Node) -> tuple[ActionSpec, ...]:
        return tuple(spec for spec in self.all(node).values() if spec)

    def all(self, node: Node) -> dict[str, ActionSpec | None]:
        import yaml

        found: dict[str, ActionSpec | None] = {}
        for key, value in self.pairs(node):
            if not _ID.fullmatch(key.value):
                self.fail(key, f"{key.value!r} is not a valid action name; use small "
                    "letters, digits, - and "
                    "_.")  # fmt: skip
            if not self._owner and isinstance(value, yaml.ScalarNode):
                if self.boolean(value):
                    self.fail(
                        value, "write the action's settings, or `false` to remove the action."
                    )
                found[key.value] = None
                continue
            spec = self._action(key, value)
            found[spec.id] = spec
        return found

    @property
    def _owner(self) -> str:
        return f"{self._agent}." if self._agent else f"@{self._skill}." if self._skill else ""

    def _action(self, key: Node, node: Node) -> ActionSpec:
        readers: dict[str, Callable[[Node], Any]] = {
            "title": self._title,
            "when": lambda n: self.one_of(n, get_args(When), "occasion"),
            "kind": lambda n: self.one_of(n, get_args(Kind), "kind"),
            "prompt": self.string,
        }
        if not self._owner:
            readers |= {"agent": self.string, "rewrite": self.boolean}
        fields: dict[str, Any] = {}
        nodes: dict[str, Node] = {}
        for setting, value in self.pairs(node):
            if setting.value not in readers:
                self.unknown(setting, "setting of an action", readers)
            fields[setting.value] = readers[setting.value](value)
            nodes[setting.value] = value
        for name in ("title", "when", "prompt"):
            if name not in fields:
                self.fail(key, f"the action {key.value!r} has no {name}; add `{name}: ...`.")
        self._check(fields, nodes)
        return self._made(key.value, fields)

    def _made(self, id: str, fields: dict[str, Any]) -> ActionSpec:
        kind = fields.pop("kind", None) or _usual_kind(fields)
        if self._skill:
            fields["prompt"] = f"@{self._skill} {fields['prompt']}"
        made = {"id": self._owner + id, "kind": f"{kind}.magy.{id}", "where": self.where}
        return ActionSpec(**{"agent": self._agent} | fields | made)

    def _check(self, fields: Mapping[str, Any], nodes: Mapping[str, Node]) -> None:
        if fields.get("rewrite") and fields.get("agent"):
            self.fail(nodes["agent"], "only the agent `rewrite` rewrites; leave one of "
                "the two settings out.")  # fmt: skip
        for name in ("title", "prompt"):
            for hole in _HOLE.findall(fields[name]):
                if hole == "symbol" and fields["when"] != "symbol":
                    self.fail(nodes[name], "`{symbol}` works only with `when: symbol`.")

    def _title(self, node: Node) -> str:
        title = self.string(node)
        if len(title) > LONGEST_TITLE or "\n" in title:
            self.fail(node, f"a title must be one line of at most {LONGEST_TITLE} characters.")
        for hole in _HOLE.findall(title):
            if hole not in HOLES:
                self.fail(node, f"{{{hole}}} is not known; there are {{symbol}} and {{place}}.")
        return title


def _usual_kind(fields: Mapping[str, Any]) -> str:
    if fields["when"] == "diagnostics":
        return "quickfix"
    return "refactor.rewrite" if fields.get("rewrite") else "source"
