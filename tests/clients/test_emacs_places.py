"""Where things are kept that a real Emacs and its server write, with a scripted model."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from test_emacs_e2e import ask, idle, said, shop, started

from tests.clients.driven import installed, lisp

__all__ = ["shop"]

SCRIPT = "prompt: hello\ntext: Good day.\n"


@pytest.mark.req("E035")
def test_sessions_are_kept_where_the_person_says(shop: Path) -> None:
    """In Emacs's own directory, for one who wants that; the server of the shell has it, too."""
    home = Path(os.environ["HOME"])
    init = installed(home, SCRIPT)
    wanted = '\n(setq magy-session-directory "~/.emacs.d/magy-sessions/")\n'
    init.write_text(init.read_text("utf-8") + wanted, "utf-8")
    kept = home / ".emacs.d" / "magy-sessions"
    with started("batch", init, shop) as one:
        one.ask(f"(find-file {lisp(str(shop / 'prices.py'))}) t")
        ask(one, "hello")
        said(one, "Good day.")
        idle(one)
        session = one.ask("(magy-project-session (magy-driven-project))")
    (database,) = kept.glob("*.db")
    assert session.encode() in b"".join(p.read_bytes() for p in kept.glob(f"{database.name}*"))
    assert kept.stat().st_mode & 0o777 == 0o700
