"""The Emacs client's source: it compiles, and neither checkdoc nor package-lint has anything to
say. `make check` runs this."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.clients.test_emacs import CLIENT, ROOT, SOURCES, emacs, missing, packages

pytestmark = pytest.mark.needs("emacs")


@pytest.mark.req("E131")
def test_compiles_without_a_warning(tmp_path: Path) -> None:
    """`make compile`, and `make clean` takes away what it made."""
    client = tmp_path / "clients" / "emacs"
    client.mkdir(parents=True)
    for source in SOURCES:
        shutil.copy(source, client)
    shutil.copy(ROOT / "Makefile", tmp_path)
    for target, count in (("compile", len(SOURCES)), ("clean", 0)):
        done = subprocess.run(["make", target], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        assert len(list(client.glob("*.elc"))) == count


_FIRST_WORDS = """(progn
  (require 'checkdoc)
  (require 'seq)
  (princ (mapconcat #'car checkdoc-common-verbs-wrong-voice " "))
  (dolist (file command-line-args-left)
    (with-temp-buffer
      (insert-file-contents file)
      (ignore-errors  ; at the end of the file
        (while t
          (let ((form (read (current-buffer))))
            (dolist (text (seq-take (cddr form) 3))
              (when (and (stringp text) (string-match-p " " text))
                (princ (format "\\n%s: %s %s" file (cadr form) (car (split-string text)))))))))))
  (setq command-line-args-left nil))"""
"""Prints the first word of each definition's docstring; also that of a value with several words."""


def test_docstrings_begin_with_an_imperative() -> None:
    """No docstring begins with a verb that checkdoc knows to be in the wrong voice ("Returns")."""
    done = emacs("--eval", _FIRST_WORDS, *map(str, SOURCES))
    verbs, *firsts = done.stdout.splitlines()
    wrong = set(verbs.split())
    assert "returns" in wrong and len(firsts) > 15 * len(SOURCES)
    assert [first for first in firsts if first.split()[-1].lower() in wrong] == []


def test_checkdoc_has_nothing_to_say() -> None:
    # With this flag checkdoc takes nouns in the plural for verbs, anywhere in the first line.
    off = "(progn (require 'checkdoc) (setq checkdoc-verb-check-experimental-flag nil))"
    files = [f'(checkdoc-file "{source}")' for source in SOURCES]
    done = emacs("--eval", off, *(word for form in files for word in ("--eval", form)))
    assert done.returncode == 0
    assert (done.stdout + done.stderr).strip() == ""


@pytest.mark.req("E131")
def test_files_are_short_and_carry_the_licence() -> None:
    for source in SOURCES:
        text = source.read_text("utf-8")
        assert text.count("\n") <= 400, f"{source.name} is too long: split it by idea"
        assert "SPDX-License-Identifier: GPL-3.0-or-later" in text
        assert max(map(len, text.splitlines())) <= 100


def test_package_lint_has_nothing_to_say() -> None:
    if emacs(*packages(), "--eval", '(princ (locate-library "package-lint"))').stdout == "nil":
        missing("package-lint is not installed (Debian: apt install elpa-package-lint)")
    main = f'(setq package-lint-main-file "{CLIENT / "magy.el"}")'
    done = emacs(
        *packages(), "--eval", f"(progn (require 'package-lint) {main})",
        "-f", "package-lint-batch-and-exit", *map(str, SOURCES),
    )  # fmt: skip
    said = [line for line in (done.stdout + done.stderr).splitlines() if ": " in line]
    # One from before Emacs 28 takes it for a slip of the pen.
    assert [line for line in said if "uninstallable in all released Emacs" not in line] == []
    assert not done.returncode or said
