"""A client made with the protocol's Python SDK. Run by `python -m scripts.acp_clients`, with an
interpreter of its own: Magy does not depend on the SDK."""

import asyncio
import os
import signal
from typing import Any

import acp  # type: ignore[import-not-found]
from acp import schema

FILE = os.environ["FILE"]
ROOT = os.path.dirname(FILE)
BUFFER = 'def greet():\n    print("hi")\n# not saved\n'
EDITED = BUFFER.replace("hi", "good morning")
LONGEST = 30.0
"""Seconds."""


class Editor:
    def __init__(self) -> None:
        self.said, self.asked, self.text, self.answers = "", 0, BUFFER, True
        self.news = asyncio.Condition()

    async def told(self) -> None:
        async with self.news:
            self.news.notify_all()

    async def until(self, what: str, true: Any) -> None:
        async with asyncio.timeout(LONGEST), self.news:
            await self.news.wait_for(true)
        print(f"seen: {what}")

    async def request_permission(self, options: Any, **about: Any) -> Any:
        self.asked += 1
        await self.told()
        if not self.answers:
            await asyncio.Event().wait()
        chosen = schema.AllowedOutcome(outcome="selected", option_id=options[0].option_id)
        return schema.RequestPermissionResponse(outcome=chosen)

    async def session_update(self, session_id: str, update: Any, **about: Any) -> None:
        if isinstance(update, schema.AgentMessageChunk):
            self.said += update.content.text
        await self.told()

    async def read_text_file(self, path: str, session_id: str, **about: Any) -> Any:
        return schema.ReadTextFileResponse(content=self.text)

    async def write_text_file(self, content: str, path: str, session_id: str, **about: Any) -> None:
        self.text = content


async def begun(agent: Any) -> None:
    files = schema.FileSystemCapabilities(read_text_file=True, write_text_file=True)
    can = schema.ClientCapabilities(fs=files)
    await agent.initialize(protocol_version=acp.PROTOCOL_VERSION, client_capabilities=can)


async def main() -> None:
    editor = Editor()
    async with acp.spawn_agent_process(editor, "magy", "acp", env=dict(os.environ)) as (
        agent,
        process,
    ):
        await begun(agent)
        session = (await agent.new_session(cwd=ROOT, mcp_servers=[])).session_id

        def say(words: str, agent: Any = agent) -> Any:
            return agent.prompt(prompt=[acp.text_block(words)], session_id=session)

        assert (await say("be polite")).stop_reason == "end_turn"
        assert editor.asked == 1 and editor.text == EDITED
        print("seen: a question, and an edit beside unsaved text")
        slow = asyncio.ensure_future(say("slow"))
        await editor.until("a reply that streams", lambda: "This is" in editor.said)
        await agent.cancel(session_id=session)
        assert (await slow).stop_reason == "cancelled"
        print("seen: a turn that was stopped")
        editor.text, editor.answers = BUFFER, False
        lost = asyncio.ensure_future(say("be polite"))
        await editor.until("a question that nobody answers", lambda: editor.asked == 2)
        os.kill(process.pid, signal.SIGKILL)
        await asyncio.gather(lost, return_exceptions=True)

    editor.answers, editor.said = True, ""
    async with acp.spawn_agent_process(editor, "magy", "acp", env=dict(os.environ)) as (agent, _):
        await begun(agent)
        found = await agent.list_sessions(cwd=ROOT)
        assert [one.session_id for one in found.sessions] == [session]
        await agent.load_session(cwd=ROOT, session_id=session, mcp_servers=[])
        await editor.until("what was said before", lambda: "This is" in editor.said)
        await editor.until("the question, asked again", lambda: editor.asked == 3)
        assert (await say("again", agent)).stop_reason == "end_turn"
        assert editor.text == EDITED
        print("seen: a turn in the session of before")


asyncio.run(main())
