"""`python -m tests.edits.perturbed --seed N [--cases N] [--json FILE] REPO...`"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tests.edits.perturbed.concurrent import CONCURRENT
from tests.edits.perturbed.generate import CLASSES, NoHistory, generate
from tests.edits.perturbed.judge import ENGINES, judge, shares


def main() -> int:
    """Exit code 0: all gates hold; 1: one does not; 2: there is nothing to go by."""
    parser = argparse.ArgumentParser(prog="python -m tests.edits.perturbed", description=__doc__)
    parser.add_argument("repos", nargs="+", type=Path, metavar="REPO", help="a git repository")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--cases", type=int, default=100, help="of each class (default 100)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the cases that are not right")
    parser.add_argument("--class", dest="kinds", action="append", metavar="CLASS",
                        choices=[*CLASSES, *CONCURRENT], help="only this (repeatable)")  # fmt: skip
    parser.add_argument("--engine", choices=ENGINES, default="magy")
    chosen = parser.parse_args()
    try:
        cases = generate(chosen.repos, chosen.seed, chosen.cases, kinds=chosen.kinds)
        report = judge(cases, ENGINES[chosen.engine])
    except NoHistory as error:
        print(error, file=sys.stderr)
        return 2
    print(report.table())
    print(*shares(report), sep="\n")
    if chosen.json:
        text = json.dumps(report.failed, indent=1, ensure_ascii=False)
        chosen.json.write_text(f"{text}\n", encoding="utf-8")
    misses = report.misses()
    for miss in misses:
        print(f"MISSED: {miss}")
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main())
