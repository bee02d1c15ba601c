"""This module reads YAML node by node, for files that people write: only the nodes know their
lines.

Everything wrong is an InvalidConfig that names file and line, with what was probably meant.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn

from magy_server.core.errors import InvalidConfig

if TYPE_CHECKING:
    from yaml import Node

DEEPEST = 16
"""The most levels of lists and mappings."""
MOST = 10_000
"""The most keys and values."""


def front_matter(text: str, where: str, form: str) -> tuple[str, str]:
    """Returns front matter and body. The front matter keeps its first line, so that line numbers
    hold. `form` says how such a file begins. Raises InvalidConfig."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != "---":
        raise InvalidConfig(f"{where}:1: {form}")
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() == "---":
            return "\n".join(["", *lines[1:number]]), "\n".join(lines[number + 1 :]).strip()
    raise InvalidConfig(f"{where}:1: the front matter does not end; add a line `---` after it.")


@cache
def _bounded() -> Callable[[str], Any]:
    """Returns what composes the nodes of a text. It refuses more levels than anybody writes, and
    aliases, with which a short text stands for a text without end. libyaml reads the text, where
    PyYAML came with it: that takes a seventh of the time."""
    from yaml import AliasEvent
    from yaml.composer import Composer, ComposerError
    from yaml.resolver import Resolver

    parser: Callable[[str], Any]
    try:
        from yaml._yaml import CParser as parser
    except ImportError:
        from yaml import SafeLoader as parser

    class Bounded(Composer, Resolver):
        def __init__(self, text: str) -> None:
            Composer.__init__(self)
            Resolver.__init__(self)
            self.events = parser(text)
            self.depth = self.count = 0

        def check_event(self, *choices: Any) -> Any:
            return self.events.check_event(*choices)

        def peek_event(self) -> Any:
            return self.events.peek_event()

        def get_event(self) -> Any:
            return self.events.get_event()

        def compose_node(self, parent: Any, index: Any) -> Any:
            mark = self.peek_event().start_mark
            if self.check_event(AliasEvent):
                raise ComposerError(problem="`*` begins an alias", problem_mark=mark)
            if self.depth == DEEPEST:
                raise ComposerError(problem="nested too deeply", problem_mark=mark)
            if self.count == MOST:
                raise ComposerError(problem="too long", problem_mark=mark)
            self.depth, self.count = self.depth + 1, self.count + 1
            try:
                return super().compose_node(parent, index)
            finally:
                self.depth -= 1

    return Bounded


class Nodes:
    """`where` names the file in errors."""

    def __init__(self, where: str) -> None:
        self.where = where

    def fail(self, node: Node, message: str) -> NoReturn:
        raise InvalidConfig(f"{self.where}:{node.start_mark.line + 1}: {message}")

    def compose(self, front: str) -> Node | None:
        import yaml

        try:
            node: Node | None = _bounded()(front).get_single_node()
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            last = front.rstrip("\n").count("\n")  # libyaml means a line more where the text ends
            line = min(mark.line, last) + 1 if mark else 1
            problem = getattr(error, "problem", None) or "it cannot be read"
            raise InvalidConfig(
                f"{self.where}:{line}: not valid YAML ({problem}). Put quotes around patterns and "
                'texts with special characters: "*.env": deny.'
            ) from None
        return node

    def pairs(self, node: Node) -> Iterator[tuple[Node, Node]]:
        """Returns the pairs of a mapping. Raises InvalidConfig where a key is no plain scalar, or
        comes twice."""
        import yaml

        if not isinstance(node, yaml.MappingNode):
            self.fail(node, "expected lines of the form `key: value`.")
        seen: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode) or not key.value:
                self.fail(key, "a key must be one word or one quoted text.")
            if key.value in seen:
                self.fail(key, f"{key.value!r} occurs twice; keep one of them.")
            seen.add(key.value)
            yield key, value

    def unknown(self, node: Node, what: str, known: Iterable[str]) -> NoReturn:
        known = list(known)
        near = difflib.get_close_matches(str(node.value).lower(), known, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Known are: {', '.join(known)}."
        self.fail(node, f"unknown {what} {node.value!r}. {hint}")

    def scalar(self, node: Node) -> Any:
        import yaml

        if not isinstance(node, yaml.ScalarNode):
            self.fail(node, "expected one value here, not a list or a mapping.")
        loader = yaml.SafeLoader("")
        try:
            return loader.construct_object(node)
        except (yaml.YAMLError, ValueError):
            self.fail(node, f"{node.value!r} cannot be read as a value; put it in quotes.")
        finally:
            loader.dispose()

    def string(self, node: Node) -> str:
        self.scalar(node)
        text = str(node.value).strip()
        if not text:
            self.fail(node, "expected a text here.")
        return text

    def boolean(self, node: Node) -> bool:
        value = self.scalar(node)
        if not isinstance(value, bool):
            self.fail(node, f"expected true or false, not {node.value!r}.")
        return value

    def items(self, node: Node) -> Iterator[tuple[str, Node]]:
        """Returns the items of a list, or of one text with commas."""
        import yaml

        if isinstance(node, yaml.SequenceNode):
            for item in node.value:
                yield self.string(item), item
            return
        if self.scalar(node) is None:
            return
        for piece in str(node.value).split(","):
            if not piece.strip():
                self.fail(node, "there is nothing between two commas.")
            yield piece.strip(), node

    def one_of(self, node: Node, known: Iterable[str], what: str) -> str:
        value = self.string(node)
        if value not in (known := list(known)):
            self.unknown(node, what, known)
        return value
