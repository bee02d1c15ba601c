"""`magy path` prints where the client for an editor is, for the editor's configuration."""

from __future__ import annotations

from magy_server.config.resources import resource
from magy_server.core.errors import NotFound


def client_path(editor: str) -> str:
    """Returns the directory and a line end. Raises NotFound where this Magy carries no client."""
    path = resource("clients", editor)
    if not path.is_dir():
        raise NotFound(f"This Magy has no client for {editor}: {path} is not there. Reinstall it.")
    return f"{path}\n"
