"""`python -m bench`: one table of ratios; `python -m bench peers`: Magy beside other agents."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence

from bench import (
    acp,
    activation,
    children,
    completions,
    documents,
    early,
    edits,
    emacs,
    growth,
    magi,
    modules,
    neovim,
    peers,
    policy,
    prompts,
    sandbox,
    search,
    servers,
    start,
    storage,
    transport,
    turns,
    vscode,
)
from bench.measure import Failed, Row, Run, table, workplace

TOPICS: Mapping[str, Sequence[Callable[[Run], Row]]] = {
    "start": start.ROWS,
    "transport": transport.ROWS,
    "documents": documents.ROWS,
    "edits": edits.ROWS,
    "turns": turns.ROWS,
    "storage": storage.ROWS,
    "prompts": prompts.ROWS,
    "servers": servers.ROWS,
    "search": search.ROWS,
    "sandbox": sandbox.ROWS,
    "policy": policy.ROWS,
    "early": early.ROWS,
    "children": children.ROWS,
    "magi": magi.ROWS,
    "completions": completions.ROWS,
    "acp": acp.ROWS,
    "emacs": emacs.ROWS,
    "neovim": neovim.ROWS,
    "vscode": (*vscode.ROWS, *activation.ROWS),
    "modules": modules.ROWS,
}
TABLES: Mapping[str, Callable[[Run], str]] = {"growth": growth.report, "peers": peers.report}
"""Each takes minutes, and is made only when its name is given."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", dest="size", action="store_const", const="quick",
                      help="few repetitions: less than a minute, rougher")  # fmt: skip
    size.add_argument("--full", dest="size", action="store_const", const="full",
                      help="a log of 1,000,000 rows instead of 100,000")  # fmt: skip
    parser.add_argument("--directory", help="where to write; by default below the temporary one")
    parser.add_argument(
        "rows", nargs="*", metavar="ROW", help=f"of: {', '.join([*_names(), *TABLES])}"
    )
    parser.set_defaults(size="usual")
    chosen = parser.parse_args()
    if unknown := set(chosen.rows) - {*TOPICS, *TABLES, *_names()}:
        parser.error(f"no row is called {', '.join(sorted(unknown))}; see --help")
    rows: list[Row] = []
    tables: list[str] = []
    failed = False
    with workplace(chosen.size, chosen.directory) as run:
        for name, measure in _chosen(chosen.rows):
            print(f"{name} ...", file=sys.stderr, flush=True)
            try:
                rows.append(measure(run))
            except (Failed, OSError) as error:
                print(f"{name}: {error}", file=sys.stderr)
                failed = True
        for name in TABLES.keys() & set(chosen.rows):
            print(f"{name} ...", file=sys.stderr, flush=True)
            try:
                tables.append(TABLES[name](run))
            except (Failed, OSError) as error:
                print(f"{name}: {error}", file=sys.stderr)
                failed = True
    about = f"Python {platform.python_version()} on {platform.system()}"
    print(f"{about}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print("\n\n".join([*([table(rows)] if rows else []), *tables]))
    return 1 if failed else 0


def _all() -> Iterator[tuple[str, str, Callable[[Run], Row]]]:
    for topic, functions in TOPICS.items():
        for function in functions:
            yield topic, f"{topic}.{function.__name__}", function


def _names() -> list[str]:
    return [name for _, name, _ in _all()]


def _chosen(wanted: Sequence[str]) -> list[tuple[str, Callable[[Run], Row]]]:
    return [
        (name, function)
        for topic, name, function in _all()
        if not wanted or topic in wanted or name in wanted
    ]


if __name__ == "__main__":
    sys.exit(main())
