"""This module says which commands a pattern of a rule is about, and which prefix of a command a
grant remembers. It knows the shell, which is loaded with the first command that is judged."""

from __future__ import annotations

from collections.abc import Iterator

from magy_server.core.patterns import literal, matches_command
from magy_server.core.shell.deny_patterns import is_about
from magy_server.core.shell.nested_commands import program
from magy_server.core.shell.remembered_commands import remembered_words
from magy_server.core.shell.simple_commands import quote
from magy_server.core.values import Resource


def is_forbidden(pattern: str, resource: Resource) -> bool:
    """Returns whether a rule that does not allow is about a command, however that is written."""
    if any(matches_command(pattern, text) for text in _spellings(resource)):
        return True
    return is_about(pattern, resource.argv, resource.globbed) or is_about(pattern, resource.written)


def _spellings(resource: Resource) -> Iterator[str]:
    """Returns the spellings of a command: also without its program's directory and version."""
    yield resource.subject
    if resource.argv:
        first = resource.argv[0]
        tail = resource.subject.removeprefix(quote(first))
        for name in (first.rpartition("/")[2], first.rpartition("/")[2].lower(), program(first)):
            yield name + tail


def prefix(resource: Resource) -> str | None:
    """Returns the pattern for the beginning of a command that is one kind of work; None: there is
    none."""
    count = remembered_words(resource.argv, resource.globbed)
    if count == 0:
        return None
    return literal(" ".join(map(quote, resource.argv[:count]))) + " *"


def there(place: str) -> str:
    """Returns the pattern for what stands before a command that runs in this directory."""
    return literal(f"cd {quote(place)} && ")
