"""Agents come from files: those that Magy ships, the user's, and those of a trusted project.

Of two files for the same name the one nearer to the project counts. A file that is wrong is said,
does not stop the others, and leaves its agent unusable: none from further away stands in for it.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from magy_server import regular_files
from magy_server.config import layers
from magy_server.config.shipped import ACTIONS, BASES, COMMON, COMMON_RULES, shipped
from magy_server.core.actions import parse_actions
from magy_server.core.agents import claude_files
from magy_server.core.errors import InvalidConfig
from magy_server.core.permit import Ruleset
from magy_server.core.specs import Agents, AgentSpec, parse_agent, parse_rules
from magy_server.regex import regex

PROJECT = ((".magent", "agent"), (".magy", "agent"))
"""Where a project has its agents; the last counts most."""
_COMMAND = regex(r"[^a-z0-9_-]+")
"""What does not stand in the name of an action."""
_NAMED = regex(r"[a-z][a-z0-9_-]*")
"""What a prompt can name."""
MOST_FILES = 200
MOST_BYTES = 256 * 1024


def user_directory() -> Path:
    return layers.config_dir() / "agent"


def project_directories(root: str) -> list[Path]:
    return [Path(root, *parts) for parts in PROJECT]


def built_in_agents() -> Mapping[str, AgentSpec]:
    """Returns the agents by name; `~` is the present home directory."""
    return {name: _at_home(spec) for name, spec in shipped().agents.items()}


def common_rules() -> Ruleset:
    """Raises InvalidConfig: without these rules nothing should run."""
    own = str(user_directory() / COMMON)
    rules = _parsed_rules(_text(own), own) if os.path.lexists(own) else shipped().rules
    return rules.at_home(os.path.expanduser("~"))


@lru_cache(maxsize=4)
def _parsed_rules(text: str, where: str) -> Ruleset:
    """Every workspace root asks for the same rules."""
    return parse_rules(COMMON_RULES, text, where)


def find_agents(root: str | None, *, trusted: bool, custom: bool = True) -> Agents:
    """The agents of a workspace root; without `custom` only those that Magy ships."""
    found = _Found(built_in_agents())
    untrusted: dict[str, str] = {}
    unused: list[str] = []
    if custom:
        found.read_claude(claude_directory(None))
        found.read(user_directory())
        if root and trusted:
            found.read_claude(claude_directory(root))
        for directory in project_directories(root) if root else ():
            if trusted:
                found.read(directory)
            else:
                untrusted |= {Path(path).stem: path for path in _listed(directory)[0]}
                unused += filter(os.path.lexists, [str(directory / ACTIONS)])
        if root and not trusted:
            theirs, _ = _listed(claude_directory(root) / "agents")
            untrusted = {Path(path).stem: path for path in theirs} | untrusted
            unused += [path for _, path in _commands(claude_directory(root))]
    actions = {id: action for id, action in found.actions.items() if action}
    return Agents(
        found.specs, found.broken, untrusted, tuple(found.problems), actions, tuple(unused)
    )


class _Found:
    """What was read so far. Every agent may extend the shipped ones."""

    def __init__(self, bases: Mapping[str, AgentSpec]) -> None:
        self._bases = bases
        self.specs = dict(bases)
        self.actions = dict(shipped().actions)
        self.broken: dict[str, str] = {}
        self.problems: list[str] = []

    def read(self, directory: Path) -> None:
        paths, problem = _listed(directory)
        if problem:
            self.problems.append(problem)
        for path in paths:
            name = Path(path).stem
            try:
                spec = parse_agent(name, _text(path, within=directory), path, self._bases)
                self.specs[name] = _at_home(spec)
                self.broken.pop(name, None)
            except InvalidConfig as error:
                self.specs.pop(name, None)
                self.broken[name] = error.message
                self.problems.append(error.message)
        self._read_actions(directory)

    def read_claude(self, directory: Path) -> None:
        """What was written for Claude Code. It takes the place of templates, since many have
        a reviewer of their own, and of no other agent that Magy ships."""
        paths, problem = _listed(directory / "agents")
        self.problems += [problem] if problem else []
        for path in paths:
            name = Path(path).stem
            try:
                spec = claude_files.parse_agent(name, _text(path), path, self._bases["general"])
            except InvalidConfig as error:
                self.problems.append(error.message)
                if not self._fixed(name):
                    self.specs.pop(name, None)
                    self.broken[name] = error.message
                continue
            if not self._fixed(spec.name):
                self.specs[spec.name] = _at_home(spec)
                self.broken.pop(spec.name, None)
        self._read_commands(directory)

    def _fixed(self, name: str) -> bool:
        return name in BASES or (name in self._bases and self._bases[name].hidden)

    def _read_commands(self, directory: Path) -> None:
        known: dict[str, str] = {}
        for id, path in _commands(directory):
            if id in shipped().actions:
                continue
            with self._said():
                if not _NAMED.fullmatch(id):
                    raise InvalidConfig(f"{path}: a command's name begins with a letter from a to "
                                        "z; rename the file.")  # fmt: skip
                if id in known:
                    raise InvalidConfig(f"{path}: {known[id]} has the same name, {id}, and counts; "
                                        "rename one of them.")  # fmt: skip
                known[id] = path
                self.actions[id] = claude_files.parse_command(id, _text(path), path)

    @contextmanager
    def _said(self) -> Iterator[None]:
        """What is wrong is a problem, and no more."""
        try:
            yield
        except InvalidConfig as error:
            self.problems.append(error.message)

    def _read_actions(self, directory: Path) -> None:
        file = str(directory / ACTIONS)
        if os.path.lexists(file):
            try:
                self.actions |= parse_actions(_text(file, within=directory), file)
            except InvalidConfig as error:
                self.problems.append(error.message)


def _at_home(spec: AgentSpec) -> AgentSpec:
    return spec.model_copy(update={"rules": spec.rules.at_home(os.path.expanduser("~"))})


def claude_directory(root: str | None) -> Path:
    """That of a project, or the person's own."""
    return Path(root or os.path.expanduser("~"), ".claude")


def claude_user_files() -> list[str]:
    """What is read of the person's own, for finding out whether it changed."""
    directory = claude_directory(None)
    return [*_listed(directory / "agents")[0], *(path for _, path in _commands(directory))]


def claude_user_folders() -> list[str]:
    """The folders that `claude_user_files` looks through, whether they are there or not."""
    directory = claude_directory(None)
    return [str(directory / "agents"), *map(str, _command_folders(directory / "commands"))]


def _commands(directory: Path) -> list[tuple[str, str]]:
    """(name, path) of the files of commands: below `commands`, or in a folder there; the first by
    path."""
    folders = _command_folders(directory / "commands")
    found = [path for folder in folders for path in _listed(folder)[0]]
    named = [(_COMMAND.sub("-", Path(path).stem.lower()), path) for path in found]
    return named[:MOST_FILES]


def _command_folders(top: Path) -> list[Path]:
    try:
        return [top, *sorted(one for one in top.iterdir() if one.is_dir())][:MOST_FILES]
    except OSError:
        return [top]


def agent_files(directory: Path) -> list[str]:
    """What is read of a directory of agents, for finding out whether it changed."""
    return [*_listed(directory)[0], *(os.path.join(directory, name) for name in (COMMON, ACTIONS))]


def _listed(directory: Path) -> tuple[list[str], str | None]:
    """The agents' files by name, and what is wrong with the directory as a whole."""
    try:
        paths = heapq.nsmallest(MOST_FILES + 1, _markdown(directory))
    except FileNotFoundError:
        return [], None
    except OSError as error:
        return [], f"{directory} cannot be read: {error.strerror}."
    if len(paths) > MOST_FILES:
        last = os.path.basename(paths[MOST_FILES - 1])
        said = f"{directory} has more than {MOST_FILES} agents; Magy ignores those after {last}."
        return paths[:MOST_FILES], said
    return paths, None


def _markdown(directory: Path) -> Iterator[str]:
    """Not what editors leave beside a file (`.#a.md`), nor a README."""
    with os.scandir(directory) as entries:
        for entry in entries:
            plain = not entry.name.startswith(".") and entry.name.lower() != "readme.md"
            if plain and entry.name.endswith(".md"):
                yield entry.path


def _text(path: str, within: Path | None = None) -> str:
    """Raises InvalidConfig."""
    return regular_files.text(path, MOST_BYTES, "shorten it", str(within) if within else None)
