"""Where a trial takes place: a project, agents that ask little, and a command that leaves marks."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.nursery import ALSO

from .cast import Play, unedited

WARM = (
    "openai openai.resources.chat.completions magy_server.llm.openai h11 anyio.streams.tls "
    "anyio.streams.stapled tree_sitter_bash rapidfuzz.process rapidfuzz.distance"
)
"""What a server imports before its first call: most of the time that it takes to get there."""
_WORK = """\
#!/bin/bash
# work ROLE STEP REPLY: says TWICE when the same agent is at it already.
exec 9>>"{marks}/$1.lock"
flock -n 9 || echo "TWICE $*" >>"{marks}/log"
echo "start $*" >>"{marks}/log"
sleep 0.05
while [ -e "{marks}/hold.$1" ]; do sleep 0.02; done
echo "end $*" >>"{marks}/log"
echo "DONE $1 $2"
"""
_AGENT = """\
---
description: {name}
mode: all
permissions:
  read: allow
  edit: allow
  agent: allow
  bash:
    - "./work * ask *": ask
    - "*": allow
---
You are {name}.
"""


@dataclass(frozen=True)
class Stage:
    """`tag` marks all that belongs to one trial: the session, and every process."""

    directory: Path
    tag: str
    play: Play

    @property
    def root(self) -> Path:
        return self.directory / "project"

    @property
    def state(self) -> Path:
        return self.directory / "state"

    @property
    def marks(self) -> Path:
        return self.directory / "marks"

    @property
    def session(self) -> str:
        return f"s-{self.tag}"

    def build(self) -> None:
        agents = self.state / "agent"
        for directory in (self.root, self.marks, agents):
            directory.mkdir(parents=True)
        for role in self.play.roles:
            (self.root / f"{role}.txt").write_text(unedited(role))
        work = self.root / "work"
        work.write_text(_WORK.format(marks=self.marks))
        work.chmod(0o755)
        for name in ("boss", "worker"):
            (agents / f"{name}.md").write_text(_AGENT.format(name=name))
        if self.play.repository:
            self.git("init", "-q", "-b", "main")
            self.git("add", "-A")
            self.git("commit", "-q", "-m", "Begin")

    def git(self, *words: str) -> str:
        """Returns what git prints in the project."""
        who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        return subprocess.run(
            ["git", *who, *words], cwd=self.root, check=True, capture_output=True, text=True
        ).stdout

    def hold(self, role: str) -> Path:
        """While this file is there, commands of this role do not end."""
        return self.marks / f"hold.{role}"

    def log(self) -> list[list[str]]:
        """The marks that commands left: a word and the arguments."""
        file = self.marks / "log"
        return [line.split() for line in file.read_text().splitlines()] if file.exists() else []

    def environment(self) -> dict[str, str]:
        top = Path(__file__).parents[2]
        places = {"MAGY_STATE_DIR": self.state, "MAGY_CONFIG_DIR": self.state, "PYTHONPATH": top}
        return {name: str(place) for name, place in places.items()} | {
            "MAGY_MODEL": "chat/test", "MAGY_CHAOS_TRIAL": self.tag, ALSO: WARM,
        }  # fmt: skip

    def settings(self, url: str) -> dict[str, Any]:
        return {
            "titles": False,
            "provider": [{"name": "chat", "kind": "openai-chat", "base_url": url}],
            "model": {"retry_delay": 0.05},
            "limits": {"requests": 0, "repeats": 0},
        }

    def processes(self) -> list[int]:
        """Those that commands of this trial started and that are alive. The servers are not among
        them: they are forks, whose environment the kernel does not show."""
        import psutil

        found = []
        for process in psutil.process_iter():
            try:
                mine = process.environ().get("MAGY_CHAOS_TRIAL") == self.tag
                dead = process.status() == psutil.STATUS_ZOMBIE
            except (psutil.Error, OSError):
                continue
            if mine and not dead and process.pid != os.getpid():
                found.append(process.pid)
        return found
