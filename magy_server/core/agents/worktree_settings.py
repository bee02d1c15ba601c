"""An agent may work in a git worktree and on a branch of its own: the settings in its file say so.

worktree:
  enabled: true
  on_success: auto_merge
  on_failure: keep
  base_branch: main
  worktree_dir: .worktrees
"""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from magy_server.core.text.yaml_nodes import Nodes
from magy_server.core.values import OnFailure, OnSuccess, WorktreeSettings

if TYPE_CHECKING:
    from yaml import Node


class WorktreeReader(Nodes):
    """Reads `worktree` of an agent file: settings, or just true or false."""

    def settings(self, node: Node) -> WorktreeSettings:
        import yaml

        if isinstance(node, yaml.ScalarNode):
            return WorktreeSettings(enabled=self.boolean(node))
        readers = {
            "enabled": self.boolean,
            "on_success": lambda n: self.one_of(n, get_args(OnSuccess), "on_success"),
            "on_failure": lambda n: self.one_of(n, get_args(OnFailure), "on_failure"),
            "base_branch": self.string,
            "worktree_dir": self._directory,
        }
        fields = {}
        for key, value in self.pairs(node):
            if key.value not in readers:
                self.unknown(key, "setting of worktree", readers)
            fields[key.value] = readers[key.value](value)
        return WorktreeSettings(**fields)

    def _directory(self, node: Node) -> str:
        path = self.string(node)
        parts = [part for part in path.split("/") if part not in ("", ".")]
        if path.startswith(("/", "~")) or ".." in parts or ".git" in parts or not parts:
            self.fail(
                node,
                f"worktree_dir must be a directory below the workspace root, not {path!r}: there "
                "the project's rules and sandbox hold.",
            )
        return "/".join(parts)
