"""A conversation turns what Magy tells of one session into the updates of ACP version 1, and knows
when a prompt has been answered.

Magy's updates are upserts: what an event says replaces what has streamed before it. Version 1 can
only append, so that here is kept how much of each text the client has.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Iterable, Mapping
from typing import Any, ClassVar

from magy_server.acp import options
from magy_server.acp.content import locations, of_call, output, text
from magy_server.acp.options import Json, Listed
from magy_server.core.errors import MagyError

STOPS = frozenset(("end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"))
SHOWN = 8_000
"""Characters of what a running command has written that are shown while it runs."""
STATUS = {"cancelled": "failed"}
"""Version 1 knows no calls that were cancelled."""
COMPACTION = "compaction/"
"""Begins the name of a prompt that only asks to compact the conversation."""


class TurnFailed(MagyError):
    """A turn ended with an error; the message is for the person."""

    reason = "failed"


class Conversation:
    """One session, as a client has it. `notices`: the client shows notices."""

    introduces: ClassVar[str] = "tool_call"
    """The update that tells of a call for the first time."""

    def __init__(self, id: str, root: str, listed: Listed, *, notices: bool) -> None:
        self.id = id
        self._root = root
        self.options = listed
        self.own: set[str] = set()
        """The prompts that came from this client, which shows them itself."""
        self.waiting: dict[str, asyncio.Future[Json]] = {}
        """By message: who waits for the end of the turn that it is in."""
        self.arriving = asyncio.Lock()
        """One request after the other begins or cancels a turn."""
        self.busy = False
        """A turn runs."""
        self.ends = 0
        """How often the client was told that a turn is over."""
        self._notices = notices
        self._admitted: set[str] = set()
        self._texts: dict[str, str] = {}
        self._again: Counter[str] = Counter()
        self._calls: set[str] = set()
        self._outputs: dict[str, str] = {}
        self._used: Counter[str] = Counter()
        self._window = 0
        self._cost = 0.0

    def forget(self) -> None:
        """The client is told everything from the beginning."""
        for known in (self.own, self._admitted, self._texts, self._again, self._calls,
                      self._outputs, self._used):  # fmt: skip
            known.clear()

    def wait(self, message: str) -> asyncio.Future[Json]:
        """A future of the result of `session/prompt`. Raises TurnFailed."""
        self.own.add(message)
        self.waiting[message] = asyncio.get_running_loop().create_future()
        return self.waiting[message]

    async def unless_refused(self, message: str, work: Awaitable[Any]) -> None:
        """Does the work that begins the turn of a prompt. Where it is refused, nobody waits."""
        try:
            await work
        except BaseException:
            self.waiting.pop(message).cancel()
            raise

    def begin(self, summary: Mapping[str, Any]) -> None:
        """`summary` of a session that is shown from here on."""
        self._window = summary["context"].get("window", 0)
        self._cost = summary["cost"].get("amount", 0.0)

    def told(self, update: Mapping[str, Any]) -> list[Json]:
        """The updates for the client. May settle prompts: what is returned here comes first."""
        match update["sessionUpdate"]:
            case "user_message" if update["messageId"] not in self.own:
                return [_chunk("user_message_chunk", one, update["messageId"])
                        for one in update["content"]]  # fmt: skip
            case "agent_message_chunk" | "agent_thought_chunk" as kind:
                return self._more(kind, update["messageId"], update["content"]["text"])
            case "agent_message" | "agent_thought" as kind:
                return self._whole(f"{kind}_chunk", update["messageId"], update["content"])
            case "tool_call_update":
                return [self._call(update)]
            case "tool_call_content_chunk":
                return [self._output(update["toolCallId"], update["content"]["content"]["text"])]
            case "plan_update":
                return [_plan(update["plan"]["entries"])]
            case "notice":
                return self.noticed(update["severity"], update["title"], update["description"])
            case "session_info_update" if update["title"]:
                shown = {key: update[key] for key in ("title", "updatedAt")}
                return [{"sessionUpdate": "session_info_update", **shown}]
            case "config_option_update":
                return self._option(update)
            case "usage_update":
                return self._usage(update)
            case "_magy_queue":
                self._queue(update)
            case "_magy_mail" if "content" in update:
                about = f"{update['mail']['agent']} reports"
                words = "".join(part.get("text", "") for part in update["content"])
                return self.noticed("info", about, words)
            case "state_update":
                return self._state(update)
        return []

    def configured(self, listed: Listed) -> None:
        """The client has these options already."""
        self.options = listed

    # --- text -----------------------------------------------------------------------------------

    def _more(self, kind: str, id: str, words: str) -> list[Json]:
        self._texts[id] = self._texts.get(id, "") + words
        return [_chunk(kind, text(words), self._name(id))]

    def _whole(self, kind: str, id: str, content: Iterable[Mapping[str, Any]]) -> list[Json]:
        """What the client has not got yet. A reply that begins anew is another message."""
        words = "".join(part["text"] for part in content)
        seen = self._texts.pop(id, "")
        if words.startswith(seen) and words:
            rest = words[len(seen) :]
            return [_chunk(kind, text(rest), self._name(id))] if rest else []
        if not seen:
            return []
        self._again[id] += 1
        return [_chunk(kind, text(f"\n\n{words}"), self._name(id))]

    def _name(self, id: str) -> str:
        return f"{id}.{self._again[id]}" if id in self._again else id

    def noticed(self, severity: str, title: str, description: str) -> list[Json]:
        """Clients that show none are told what they should know as a thought."""
        if self._notices:
            more = {"description": description} if description else {}
            return [{"sessionUpdate": "notice", "severity": severity, "title": title, **more}]
        if severity == "info":
            return []
        return [_chunk("agent_thought_chunk", text(f"{title}: {description}\n"), "notice")]

    # --- calls ----------------------------------------------------------------------------------

    def _call(self, update: Mapping[str, Any]) -> Json:
        id = update["toolCallId"]
        fields = {key: update[key] for key in ("kind", "status", "title", "name") if key in update}
        if "status" in fields:
            fields["status"] = STATUS.get(fields["status"], fields["status"])
        if "rawInput" in update:
            fields["rawInput"] = update["rawInput"]
        if "content" in update:
            fields["content"] = content = of_call(update["content"], self._root)
            fields |= locations(content)
        if update.get("locations") and "locations" not in fields:
            fields["locations"] = update["locations"]
        if fields.get("status") in ("completed", "failed"):
            self._outputs.pop(id, None)
        if id in self._calls:
            return {"sessionUpdate": "tool_call_update", "toolCallId": id, **fields}
        self._calls.add(id)
        title = fields.pop("title", None) or fields.get("name") or "Tool"
        return {"sessionUpdate": "tool_call", "toolCallId": id, "title": title, **fields}

    def _output(self, id: str, words: str) -> Json:
        """Version 1 replaces the content of a call: what is shown is the end of what has come."""
        shown = (self._outputs.get(id, "") + words)[-SHOWN:]
        self._outputs[id] = shown
        return self._call({"toolCallId": id, "content": [output(shown)]})

    # --- the rest -------------------------------------------------------------------------------

    def _option(self, update: Mapping[str, Any]) -> list[Json]:
        self._window = update.get("_meta", {}).get("magy", {}).get("window") or self._window
        found: list[Json] = []
        for one in update["configOptions"]:
            now = options.changed(self.options, one["configId"], one["currentValue"])
            if now is not None:
                self.options = now
                found = [{"sessionUpdate": "config_option_update",
                          "configOptions": options.v1(now)}, *found]  # fmt: skip
                if one["configId"] == options.MODE:
                    found.append({"sessionUpdate": "current_mode_update",
                                  "currentModeId": one["currentValue"]})  # fmt: skip
        return found

    def _usage(self, update: Mapping[str, Any]) -> list[Json]:
        about = update["_meta"]["magy"]
        self._cost += about["cost"] or 0.0
        if not about["request"].isdigit():  # a title or a summary, beside the conversation
            return []
        self._used.update(about["usage"])
        if not self._window:
            return []
        cost = {"cost": {"amount": round(self._cost, 6), "currency": "USD"}} if self._cost else {}
        return [{"sessionUpdate": "usage_update", "used": update["used"], "size": self._window,
                 **cost}]  # fmt: skip

    def _queue(self, update: Mapping[str, Any]) -> None:
        self._admitted.update(update.get("admitted", ()))
        for message in update.get("dropped", ()):
            self._settle(message, {"stopReason": "cancelled"})

    def _state(self, update: Mapping[str, Any]) -> list[Json]:
        self.busy = update["state"] != "idle"
        if self.busy:
            return []
        self.ends += 1
        about = update.get("_meta", {}).get("magy", {})
        stop, said = update.get("stopReason", "end_turn"), about.get("message", "")
        ended, self._admitted = [*self._admitted], set()
        ended += [name for name in self.waiting if name.startswith(COMPACTION)]
        usage = {key: n for key, n in self._used.items() if key != "unreportedRequests"}
        self._used.clear()
        found: list[Json] = []
        if said and stop != "error":
            found = self.noticed("warning", "The turn ended", said)
        result = {"stopReason": stop if stop in STOPS else "max_turn_requests"}
        for message in ended:
            if stop == "error":
                self._fail(message, said)
            else:
                self._settle(message, result | ({"usage": usage} if usage else {}))
        return found

    def stop(self, said: str) -> None:
        """Nothing that is waited for will come."""
        for message in [*self.waiting]:
            self._fail(message, said)

    def _settle(self, message: str, result: Json) -> None:
        if (future := self.waiting.pop(message, None)) and not future.done():
            future.set_result(result)

    def _fail(self, message: str, said: str) -> None:
        if (future := self.waiting.pop(message, None)) and not future.done():
            future.set_exception(TurnFailed(said or "The turn failed."))


async def no_turn() -> Json:
    """The result of a prompt that asks for no turn."""
    return {"stopReason": "end_turn"}


def _chunk(kind: str, content: Mapping[str, Any], id: str) -> Json:
    return {"sessionUpdate": kind, "content": content, "messageId": id}


def _plan(entries: Iterable[Mapping[str, Any]]) -> Json:
    """Version 1 has no tasks that were cancelled."""
    kept = [dict(entry) for entry in entries if entry["status"] != "cancelled"]
    return {"sessionUpdate": "plan", "entries": kept}
