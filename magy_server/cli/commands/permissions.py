"""`magy permissions` lists the answers that Magy remembers for a project or a session, and
withdraws them."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

from magy_server.cli import exit_codes, project_directory
from magy_server.cli.composition import Composition, Options, Verb
from magy_server.cli.screen.terminal import Screen, standard_output
from magy_server.cli.screen.text import Span, filled, record
from magy_server.core.errors import NotFound
from magy_server.core.events import Withdrawn
from magy_server.core.text.columns import width_of
from magy_server.core.text.sanitizing import one_line
from magy_server.core.values import Grant
from magy_server.engine.world import read_project
from magy_server.engine.world import record as recorded

SHORT = 8
"""Characters of an id that are shown; any beginning that no other id has names it."""
LASTING = {"project": "in this project", "session": "in this session",
           "run": "until your next prompt"}  # fmt: skip


async def listed(options: argparse.Namespace, app: Composition) -> int:
    asked = vars(options)
    output = standard_output()
    if session := asked.get("session"):
        async with app.acting(session) as (service, info):
            found, where = await service.grants(info.id), f"{info.root or 'no project'}, {info.id}"
    else:
        where, _ = project_directory.project(options.root, None)
        async with app.store() as store:
            found = list((await read_project(store, where)).grants)
    if asked.get("json"):
        await output.write(record({"permissions": [_as_json(grant) for grant in found]}))
    else:
        screen = Screen(output)
        await screen.write(_lines(found, where, screen.width))
    return exit_codes.DONE


def _as_json(grant: Grant) -> Mapping[str, str]:
    """Returns a permission as clients get it."""
    return {"grantId": grant.id, "key": grant.key, "pattern": grant.pattern, "scope": grant.scope}


def _lines(found: Sequence[Grant], where: str, width: int | None) -> list[Span]:
    spans: list[Span] = [(f"{one_line(where)}\n", "bold")]
    if not found:
        return [*spans, (filled("Magy remembers no permission here.", width, "  "), "dim")]
    keys = max(width_of(grant.key) for grant in found)
    for grant in found:
        head = f"  {grant.id[:SHORT]}  {grant.key:<{keys}}  "
        rows = filled(one_line(grant.pattern), width, " " * len(head)).removeprefix(" " * len(head))
        spans += [(head, "cyan"), (rows, "")]
        if grant.scope != "project":
            spans.append((f"{' ' * len(head)}{LASTING[grant.scope]}\n", "dim"))
    last = "`magy permissions withdraw ID` withdraws one: then Magy asks again."
    return [*spans, (filled(last, width), "dim")]


async def withdraw(options: Options, app: Composition) -> int:
    if session := vars(options).get("session"):
        async with app.acting(session) as (service, info):
            meant = _meant(await service.grants(info.id), options)
            for grant in meant:
                await service.withdraw(info.id, grant.id)
    else:
        root, _ = project_directory.project(options.root, None)
        async with app.store() as store:
            meant = _meant((await read_project(store, root)).grants, options)
            for grant in meant:
                await recorded(store, root, Withdrawn(grant=grant.id))
    screen = Screen(standard_output())
    said = [f"withdrawn: {grant.key} {one_line(grant.pattern)}" for grant in meant]
    lines = said or ["There was nothing to withdraw."]
    await screen.write([(filled(line, screen.width), "") for line in lines])
    return exit_codes.DONE


def _meant(found: Sequence[Grant], options: Options) -> Sequence[Grant]:
    """Returns the permissions that the command line names. Raises NotFound before any is
    withdrawn."""
    if options.all:
        return found
    return [_named(found, given) for given in options.ids]


def _named(found: Sequence[Grant], given: str) -> Grant:
    """Returns the permission whose id begins so. Raises NotFound."""
    matching = {grant.id: grant for grant in found if given and grant.id.startswith(given)}
    if len(matching) == 1:
        return next(iter(matching.values()))
    if not matching:
        raise NotFound(
            f"Magy remembers no permission {given!r} here. `magy permissions` lists them."
        )
    raise NotFound(f"{given!r} may be {', '.join(sorted(matching))}: type more of it.")


VERBS: Mapping[str | None, Verb] = {None: listed, "list": listed, "withdraw": withdraw}
