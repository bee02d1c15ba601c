"""A person with children: a real server, a scripted model, and `magy/child/*` in short."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from tests.e2e.harness import Person, RpcError, person
from tests.guard import SESSION

SCRIPT = """
prompt: quick
text: Quick is done.

prompt: slow
text: I begin.
call: bash {"command": "while [ ! -e go ]; do sleep 0.02; done; echo went", "timeout": 600}
---
text: Slow is done: {{last}}

prompt: asks
call: edit_file {"path": "app.py", "old_text": "'hello'", "new_text": "'bye'"}
---
text: Asked and done.

prompt: hello
text: Good day.

prompt: be brief
text: Brief.
"""


class Parent(Person):
    async def child(self, verb: str, **params: Any) -> Any:
        return await self.client.request(f"magy/child/{verb}", params)

    async def spawn(self, key: str, task: str, parent: str = SESSION, **params: Any) -> str:
        """The id of the new child."""
        prompt = [{"type": "text", "text": task}]
        spawned = await self.child(
            "spawn", parentSessionId=parent, requestKey=key, prompt=prompt, **params
        )
        id: str = spawned["child"]["sessionId"]
        return id

    async def refused(self, verb: str, **params: Any) -> str:
        """The sentence that says why."""
        try:
            await self.child(verb, **params)
        except RpcError as error:
            return error.message
        raise AssertionError(f"magy/child/{verb} {params} was not refused")

    async def state(self, id: str, *states: str) -> dict[str, Any]:
        """The child, once it was said to be in one of these states."""
        change = await self.client.wait_for(
            "magy/child/changed",
            lambda p: p["child"]["sessionId"] == id and p["child"]["state"] in states,
        )
        found: dict[str, Any] = change["child"]
        return found

    async def wait(self, *ids: str, **params: Any) -> Any:
        which = {"sessionIds": list(ids)} if ids else {"parentSessionId": SESSION}
        return await self.child("wait", **which, **params)

    async def states(self, parent: str = SESSION, **params: Any) -> dict[str, str]:
        """By the end of the id."""
        found = await self.child("list", parentSessionId=parent, includeClosed=True, **params)
        return {one["sessionId"].removeprefix(f"{SESSION}/"): one["state"]
                for one in found["children"]}  # fmt: skip

    async def go(self) -> None:
        """Lets the slow ones end."""
        (self.root / "go").touch()

    async def bypass(self, session: str = SESSION) -> None:
        await self.client.request("magy/session/set_config_option", {
            "sessionId": session, "configId": "bypass", "value": "on"})  # fmt: skip


@contextlib.asynccontextmanager
async def parent(
    root: Path, state: Path, *, script: str = SCRIPT, env: Mapping[str, str] | None = None,
    new: bool = True, **start: Any,
) -> AsyncIterator[Parent]:  # fmt: skip
    """A server, and a session with `magy/child/changed` for its tree."""
    async with person(root, state, script, env=env, **start) as one:
        parent = Parent(one.client, root)
        parent.editor = one.editor
        if new:
            await parent.new()
        else:
            await parent.request("session/resume")
        yield parent


__all__ = ["SCRIPT", "SESSION", "Parent", "RpcError", "parent"]
