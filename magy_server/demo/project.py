"""This module makes the small real project that the demo works in."""

from __future__ import annotations

import subprocess
from pathlib import Path

PRICES = '''"""Prices of a small shop, in euros."""


def average(prices: list[float]) -> float:
    """The mean price."""
    return sum(prices) / len(prices)


def total(prices: list[float]) -> float:
    return sum(prices)
'''
TESTS = """import unittest

from shop.prices import average


class Average(unittest.TestCase):
    def test_of_some(self):
        self.assertEqual(average([1.0, 3.0]), 2.0)

    def test_of_none(self):
        self.assertEqual(average([]), 0.0)
"""
TEST_OF_TOTAL = "tests/test_total.py"
"""What the helper is to write."""
UNSAVED = "# Ada: ask about rounding on Monday.\n"
"""What the person in the demo has typed and not saved."""


def make(root: Path) -> Path:
    """A git repository with one commit; the answer is the file to open."""
    files = {".gitignore": "__pycache__/\n", "shop/__init__.py": "", "shop/prices.py": PRICES,
             "tests/__init__.py": "", "tests/test_prices.py": TESTS,
             "build/cache.bin": "precious"}  # fmt: skip
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    for command in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "A small shop"]):
        subprocess.run(["git", *command], cwd=root, check=True, stdout=subprocess.DEVNULL)
    return root / "shop" / "prices.py"


def git_diff(root: Path) -> str:
    done = subprocess.run(
        ["git", "--no-pager", "diff", "--no-color"],
        cwd=root, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout
