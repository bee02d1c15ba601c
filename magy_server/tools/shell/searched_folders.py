"""This module finds folders of dependencies that a command line looks through without naming them,
and of whose files it prints lines that do not say whose they are: `grep -rh`, `find . | xargs
cat`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from magy_server.core.policy.strangers import DEPENDENCIES
from magy_server.core.shell.printing import keeps_names, walks, within
from magy_server.core.shell.simple_commands import Part
from magy_server.core.values import Resource
from magy_server.tools.files.paths import resource


def searched(root: str, text: str, line: Sequence[tuple[Part, str]]) -> Iterator[Resource]:
    """Gives the folders, as files that are read. `text` is the line and `line` its commands, each
    with the directory in which it runs. Only folders directly below those that are searched are
    looked for, and what a loop names."""
    folder = within(text, DEPENDENCIES) if any(part.opaque for part, _ in line) else ""
    if folder:
        yield resource(root, os.path.realpath(os.path.join(line[0][1], folder)), "read")
    lost = [not keeps_names(part.argv) or part.opaque for part, _ in line]
    for at, (part, cwd) in enumerate(line):
        elsewhere = any(other for index, other in enumerate(lost) if index != at)
        if walks(part.argv) and (lost[at] or elsewhere):
            yield from _below(root, part, cwd)


def _below(root: str, part: Part, cwd: str) -> Iterator[Resource]:
    paths = [os.path.join(cwd, word) for word in part.argv[1:] if not word.startswith("-")]
    folders = [path for path in paths if os.path.isdir(path)] or [cwd]
    for folder in folders:
        for name in sorted(DEPENDENCIES):
            path = os.path.join(folder, name)
            if os.path.isdir(path) and not any(name in word for word in part.argv):
                yield resource(root, os.path.realpath(path), "read")
