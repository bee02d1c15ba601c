"""A skill is a text that tells an agent how to do one kind of work; files beside it may help.

    ---
    name: release-notes
    description: Writes the notes of a release. Use when a version is tagged.
    allowed-tools: read_file git_log git_diff edit_file
    ---
    Read the commits since the last tag ...

The format is that of agentskills.io: `NAME/SKILL.md`, where NAME is the skill's name. Magy reads
`type`, `default-prompt`, `capability` and `actions` besides. What else stands there is of other
programs and is not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, get_args

from magy_server.core.actions import SKILL_FILE, ActionReader, ActionSpec
from magy_server.core.errors import InvalidConfig, InvalidRequest, NotFound, NotTrusted
from magy_server.core.skills.foreign_names import OURS
from magy_server.core.skills.steps import rendered
from magy_server.core.text.yaml_nodes import Nodes, front_matter
from magy_server.core.values import Embedded, SkillUse, Value, digest
from magy_server.dataclass import dataclass

if TYPE_CHECKING:
    from yaml import Node

LONGEST_NAME, LONGEST_DESCRIPTION = 64, 1024
"""Characters, as agentskills.io says."""
AGAIN = "The text of this skill is above, in this conversation; it holds here, too."
MOST_PHRASES = 50
_FREE = ("license", "compatibility", "metadata", "version", "author")
"""What skills have for others than Magy."""
NEAR = 0.85
"""Likeness of a key that is one of Magy's, misspelt."""
Kind = Literal["instruction", "tool"]
Source = Literal["bundled", "user", "installed", "project"]
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
RESERVED = ("clear", "compact", "problems", "spawn", "terminal")
"""What these mean behind an `@` is no skill."""
_GLOB = re.compile(r"[^\s\\\[\]{}]+")


class Capability(Value):
    """What of a request speaks for a skill: words or phrases in it, in small letters, and globs of
    the files that it mentions."""

    phrases: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


class Skill(Value):
    """`kind`: an instruction enters the prompt of the request that names it; a tool is only called
    by the model, and `{input}` in its text stands for what it is called with. `tools`: what it says
    it uses; None: it says nothing. `default_prompt` is asked where a person names the skill and
    says no more. `where` is its file, `hash` that of the file's text; `plugin` is the one that
    brings it, if one does."""

    name: str
    description: str
    body: str
    kind: Kind = "instruction"
    tools: tuple[str, ...] | None = None
    default_prompt: str = ""
    capability: Capability | None = None
    actions: tuple[ActionSpec, ...] = ()
    source: Source = "bundled"
    where: str = ""
    hash: str = ""
    plugin: str = ""

    def used(self, why: str = "") -> SkillUse:
        """Returns what the log keeps of a use. `why` it was attached unasked."""
        stated = self.tools
        if stated is None and self.source == "installed":
            stated = ()
        limit = None if self.source == "bundled" else stated
        return SkillUse(name=self.name, hash=self.hash, source=self.source, tools=limit, why=why)

    def again(self, why: str) -> Embedded:
        """Returns the part of a prompt that this calls for, where the conversation has its text."""
        return Embedded(uri=f"magy:skill/{self.name}", text=AGAIN, skill=self.used(why))

    def content(self, why: str = "", *, alone: bool = False) -> Embedded:
        """Returns its text as a part of a prompt; `alone`: the person says nothing else."""
        asked = f"\n\n{self.default_prompt}" if alone and self.default_prompt else ""
        uri = f"magy:skill/{self.name}"
        return Embedded(uri=uri, text=self.body + asked, skill=self.used(why))


@dataclass(frozen=True)
class Skills(Mapping[str, Skill]):
    """The skills of one workspace root, and why others that have a file there cannot be used."""

    skills: Mapping[str, Skill]
    broken: Mapping[str, str] = field(default_factory=dict)
    """By name: what is wrong. No other skill of the name stands in for it."""
    untrusted: Mapping[str, str] = field(default_factory=dict)
    """By name: the file in a project that is not trusted."""
    problems: Sequence[str] = ()
    """All that was found wrong, for people; each names its file."""

    def __getitem__(self, name: str) -> Skill:
        return self.skills[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.skills)

    def __len__(self) -> int:
        return len(self.skills)

    def of(self, plugin: str) -> Skills:
        """Returns those that an agent has which has only this plugin; "": it has all."""
        if not plugin:
            return self
        own = {name: one for name, one in self.skills.items() if one.plugin in ("", plugin)}
        return replace(self, skills=own)

    @property
    def mentionable(self) -> Mapping[str, str]:
        """What each is for, of those that a person may name."""
        return {one.name: one.description for one in self.values() if one.kind == "instruction"}

    def wanted(self, name: str) -> Skill | None:
        """Returns the skill that a prompt begins with; None: that is no skill. Raises what `named`
        does for one that cannot be used, and InvalidRequest for one that is a tool: who wants it is
        not to get an answer without it."""
        if name not in {*self.skills, *self.broken, *self.untrusted}:
            return None
        skill = self.named(name)
        if skill.kind == "tool":
            raise InvalidRequest(
                f"The skill {name!r} is a tool for agents, not a text: say what you want done, and "
                "name it without `@`."
            )
        return skill

    def named(self, name: str) -> Skill:
        """Returns the skill. Raises InvalidConfig for one whose file is wrong, NotTrusted,
        NotFound."""
        if name in self.skills:
            return self.skills[name]
        if name in self.broken:
            raise InvalidConfig(self.broken[name])
        if name in self.untrusted:
            raise NotTrusted(
                f"Magy does not use the skill {name!r}: {self.untrusted[name]} is in a project "
                "that is not trusted, or that changed since you trusted it. Read the file, "
                "then trust the project."
            )
        raise NotFound(f"There is no skill {name!r}. Skills are: {', '.join(self.skills)}.")


def parse_skill(name: str, text: str, where: str, source: Source = "bundled") -> Skill:
    """Returns the skill from the text of `NAME/SKILL.md`, or of a file of YAML with `steps`, whose
    path ends in `.yaml` or `.yml`. Raises InvalidConfig."""
    if not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        raise InvalidConfig(
            f"{where}: {name!r} is not a valid skill name; use small letters, digits and single "
            f"hyphens, at most {LONGEST_NAME}, for its folder."
        )
    if name in RESERVED:
        raise InvalidConfig(
            f"{where}: `@{name}` means something else in a prompt; give the skill another name."
        )
    stepped = where.endswith((".yaml", ".yml"))
    front, body = (text, "") if stepped else front_matter(text, where, SKILL_FILE)
    fields = _Reader(where, name).fields(front, stepped=stepped)
    own = fields.pop("name", name)
    if own != name:
        raise InvalidConfig(
            f"{where}: the skill says that it is named {own!r}, but its folder {name!r}; both must "
            "be the same."
        )
    if "description" not in fields:
        raise InvalidConfig(f"{where}:1: the description is missing; add `description: ...`.")
    body = fields.pop("steps", "") or body
    if not body:
        missing = "add `steps:`." if stepped else "write them below the second ---."
        raise InvalidConfig(f"{where}: the instructions are missing; {missing}")
    found = {"source": source, "where": where, "hash": digest(text.encode())}
    return Skill(**fields | found | {"name": name, "body": body})


class _Reader(Nodes):
    def __init__(self, where: str, name: str) -> None:
        super().__init__(where)
        self._name = name

    def fields(self, front: str, *, stepped: bool) -> dict[str, Any]:
        node = self.compose(front)
        if node is None:
            return {}
        readers: dict[str, tuple[str, Callable[[Node], Any]]] = {
            "name": ("name", self.string),
            "description": ("description", self._description),
            "type": ("kind", lambda n: self.one_of(n, get_args(Kind), "type")),
            "allowed-tools": ("tools", self._tools),
            "default-prompt": ("default_prompt", self.string),
            "capability": ("capability", self._capability),
            "actions": ("actions", ActionReader(self.where, skill=self._name).owned),
        }
        if stepped:
            readers |= {
                "steps": ("steps", lambda n: rendered(self, n)),
                "tools": ("tools", self._tools),
            }
        fields: dict[str, Any] = {}
        for key, value in self.pairs(node):
            if key.value in readers:
                name, read = readers[key.value]
                fields[name] = read(value)
            elif get_close_matches(str(key.value), _FREE, 1, NEAR):
                continue
            elif get_close_matches(str(key.value), readers, 1, NEAR):  # it would lift a limit
                self.unknown(key, "part of a skill", (*readers, *_FREE))
        return fields

    def _description(self, node: Node) -> str:
        text = " ".join(self.string(node).split())
        if len(text) > LONGEST_DESCRIPTION:
            self.fail(node, f"a description must have at most {LONGEST_DESCRIPTION} characters.")
        return text

    def _tools(self, node: Node) -> tuple[str, ...]:
        """Tools by our names: a list, or one text with blanks or commas between them. What Claude
        Code calls otherwise is understood, and what it puts in brackets behind is left out."""
        import yaml

        if isinstance(node, yaml.SequenceNode):
            words = [item for item, _ in self.items(node)]
        else:
            words = re.sub(r"\([^)]*\)", "", str(self.scalar(node) or "")).replace(",", " ").split()
        found: dict[str, None] = {}
        for word in words:
            plain = re.sub(r"\(.*\Z", "", word)
            if not re.fullmatch(r"\w[\w.-]*\*?", plain):
                self.fail(node, f"{word!r} is not a tool name; write `allowed-tools: read_file "
                          "bash`.")  # fmt: skip
            found |= dict.fromkeys(OURS.get(plain, (plain,)))
        return tuple(found)

    def _capability(self, node: Node) -> Capability:
        known = ("phrases", "files")
        fields: dict[str, tuple[str, ...]] = {}
        for key, value in self.pairs(node):
            if key.value not in known:
                self.unknown(key, "part of a capability", known)
            fields[key.value] = tuple(item for item, _ in self.items(value))
            if len(fields[key.value]) > MOST_PHRASES:
                self.fail(value, f"at most {MOST_PHRASES} of them are read.")
        for glob in fields.get("files", ()):
            if not _GLOB.fullmatch(glob):
                self.fail(node, f"{glob!r} is not a glob of files; write `*.sql` or `docs/*`.")
        phrases = tuple(" ".join(one.lower().split()) for one in fields.get("phrases", ()))
        return Capability(phrases=phrases, files=fields.get("files", ()))
