"""Transcripts in Org in a real Emacs at the real server, with a scripted model."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from test_emacs_e2e import ask, idle, said, shop, started

from tests.clients.driven import Driven, installed, lisp
from tests.thorough import one_of

__all__ = ["shop"]

SCRIPT = """\
prompt: look into the prices
think: Who can tell me?
speed: 200
text: An **agent** looks, see [the prices](prices.py):

 * one

 ```python
 * 2
 ```
call: spawn_agent {"agent": "explore", "task_name": "Functions",
  "prompt": "Count the functions of prices.py."}
---
text: It is on its way.
call: wait_agent {}
---
text: Old results must go.
call: bash {"command": "rm -rf build"}
---
text: *All* is done.

prompt: Count the functions
text: There are **four** of them.
"""

SHOWN = r"""\* \[USER\]
look into the prices

#\+begin_think
Who can tell me\?
#\+end_think

\* \[ASSISTANT\]
An \*agent\* looks, see \[\[prices.py\]\[the prices\]\]:

- one

#\+begin_src python
,\* 2
#\+end_src

(?:: .*\n\n)*#\+begin_agent explore: Functions :status completed :session \S+.*
Count the functions of prices.py.
#\+end_agent

(?:: .*\n\n)*It is on its way.

(#\+begin_(?:tool|agent) .*
(?:.*\n)*?#\+end_(?:tool|agent)

)+\* \[ASSISTANT\]
Old results must go.

#\+begin_tool Run rm -rf build :status completed.*
(?:.*\n)*?#\+end_tool

(?:: .*\n\n)*/All/ is done.
"""


@pytest.fixture
def init() -> Path:
    init = installed(Path(os.environ["HOME"]), SCRIPT)
    init.write_text(init.read_text("utf-8") + "\n(setq magy-transcript-style 'org)\n", "utf-8")
    return init


TRANSCRIPT = "(with-current-buffer (magy-project-buffer (magy-driven-project)) %s)"
TEXT = "(buffer-substring-no-properties (point-min) (magy-transcript-end))"


@pytest.mark.req("E010", "E092", "E129")
@pytest.mark.parametrize("kind", one_of(["terminal", "window"], 1))
def test_a_transcript_in_org(kind: str, init: Path, shop: Path) -> None:
    with started(kind, init, shop) as one:
        one.ask(f"(find-file {lisp(str(shop / 'prices.py'))}) t")
        ask(one, "look into the prices")
        said(one, "\n#+begin_question\n? Spawn explore: Functions")
        one.keys("C-c m y", "y")
        said(one, "\n#+begin_question\n? Run rm -rf build")
        one.keys("C-c m y", "y")
        said(one, "/All/ is done.")
        idle(one)
        text = one.ask(TRANSCRIPT % TEXT)
        assert re.fullmatch(SHOWN, text.rstrip() + "\n"), text
        drawn_from_the_log(one, text)
        org_itself_reads_it(one)


def drawn_from_the_log(one: Driven, text: str) -> None:
    """A transcript that was killed comes again as it was, though nothing of it streams now."""
    one.ask(TRANSCRIPT % "(kill-buffer)")
    one.keys("C-c m o")
    said(one, "/All/ is done.")
    one.until(TRANSCRIPT % f"(equal {lisp(text)} {TEXT})")


def org_itself_reads_it(one: Driven) -> None:
    """In Org's own mode it is a file of sections and blocks."""
    told = one.ask(
        "(org-mode) (let ((tree (org-element-parse-buffer)))"
        " (cl-flet ((all (kind property) (vconcat (org-element-map tree kind"
        " (lambda (one) (substring-no-properties (org-element-property property one)))))))"
        " (json-serialize (list :sections (all 'headline :raw-value)"
        " :blocks (all 'special-block :type) :code (all 'src-block :value)))))"
    )
    found = json.loads(told)
    assert found["sections"][:2] == ["[USER]", "[ASSISTANT]"]
    assert {"think", "agent", "tool"} == set(found["blocks"])
    assert found["code"] == ["* 2\n"]
