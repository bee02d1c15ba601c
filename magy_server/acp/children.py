"""Child agents appear to a client of ACP version 1 as tool calls of their root session, which grow
while the child works. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from magy_server.acp.content import output
from magy_server.acp.options import Json

STATUS = {
    "queued": "pending",
    "running": "in_progress",
    "waiting": "in_progress",
    "completed": "completed",
    "closed": "completed",
}
SHOWN = 8_000
"""Characters of what a child did and said: the end of it."""


class Child:
    """One child, as a call. `of`: what `magy/child/changed` says of it; `introduces`: the update
    that tells of a call for the first time."""

    def __init__(self, of: Mapping[str, Any], introduces: str) -> None:
        self._kind = introduces
        self._id = f"child:{of['sessionId']}"
        self._done = ""
        self._of = of

    def changed(self, of: Mapping[str, Any]) -> Json:
        self._of = of
        return self._call()

    def did(self, update: Mapping[str, Any]) -> Json | None:
        """What an update of the child's own session adds; None: nothing that a person reads."""
        match update["sessionUpdate"]:
            case "agent_message":
                line = "".join(part["text"] for part in update["content"])
            case "tool_call_update" if "kind" in update and update.get("title"):
                line = f"→ {update['title']}"
            case _:
                return None
        self._done = f"{self._done}{line}\n\n"[-SHOWN:]
        return self._call()

    def _call(self) -> Json:
        of = self._of
        kind, self._kind = self._kind, "tool_call_update"
        title = f"{of['agent']}: {of['name']}" if of["name"] else of["agent"]
        said = self._done or of["said"]
        return {
            "sessionUpdate": kind,
            "toolCallId": self._id,
            "title": title,
            "kind": "other",
            "status": STATUS.get(of["state"], "failed"),
            "content": [output(said)] if said else [],
        }
