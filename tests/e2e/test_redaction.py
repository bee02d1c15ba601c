"""What `[redact]` names is in no transcript, no audit, no store and no request to a model, whoever
says it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.harness import person
from tests.loopback import ChatServer
from tests.loopback.parts import call, text

TICKET = "INT-7f3a9c41d2"
PASSWORD = "tr0ub4dor-and-3"
TOKEN = "q8Zk29fLmPx0"
REDACT = {"patterns": ["INT-[0-9a-f]{10}"], "files": ["deploy.secrets", "no-such-file"]}


def nowhere(told: dict[str, str]) -> None:
    for where, said in told.items():
        for secret in (TICKET, PASSWORD, TOKEN):
            assert secret not in said, f"{secret} in {where}"


@pytest.mark.req("E128")
async def test_it_is_nowhere_whoever_says_it(root: Path, state: Path) -> None:
    (root / "deploy.secrets").write_text(f'# of the site\nexport DB="{PASSWORD}"  # old\n{TOKEN}\n')
    (root / "notes.txt").write_text(f"The ticket {TICKET}\nand {PASSWORD}\n")
    (root / "AGENTS.md").write_text(f"Ask {TOKEN} for help.\n")
    (root / f"about-{TICKET}.txt").write_text("Nothing.")
    says = f"cat deploy.secrets >&2; echo {TICKET} >&2; exit 2"
    hook = {"event": "PreToolUse", "match": "glob", "command": says}
    async with ChatServer() as server:
        provider = {"name": "corp", "kind": "openai-chat", "base_url": server.base_url}
        settings = {"provider": [provider], "model": {"default": "corp/m"}, "redact": REDACT,
                    "permission": {}, "hook": [hook]}  # fmt: skip
        async with person(root, state, settings=settings) as one:
            await one.new()
            server.reply(call("read_file", {"path": "notes.txt"}))
            server.reply(call("bash", {"command": f"echo {TICKET}; cat deploy.secrets"}))
            server.reply(call("glob", {"pattern": "*"}))
            edit = {"path": "notes.txt", "old_text": "The ticket", "new_text": f"Old {TICKET}"}
            server.reply(call("edit_file", edit))
            said = f"The ticket is {TICKET}."
            server.reply(text(said, pieces=(said[:16], said[16:20], said[20:])))
            await one.request("session/set_config_option", configId="bypass", value="on")
            await one.turn(f"Look at @notes.txt, @about-{TICKET}.txt, {TICKET} and {PASSWORD}")
            assert "The ticket is [redacted]." in one.said()
            told = {"the client": json.dumps(one.client.received), "stderr": str(one.client.log)}
        sent = [json.dumps(request.body) for request in server.asked]
        assert len(sent) == 5 and sent[0].count("[redacted]") >= 3
    told |= {f"request {number}": body for number, body in enumerate(sent)}
    told |= {str(path): path.read_bytes().decode("latin-1")
             for path in (state / "audit").iterdir()}  # fmt: skip
    nowhere(told)
    changed = (root / "notes.txt").read_text()
    assert changed.startswith("Old [redacted]") and PASSWORD in changed, "the file keeps its own"


async def test_a_project_that_nobody_trusts_hides_nothing(root: Path, state: Path) -> None:
    """It could hide from a person what it does."""
    (root / "magy.toml").write_text('[redact]\npatterns = ["e"]\n')
    async with person(root, state, "text: See here.\n") as one:
        shown = await one.client.wait_for("window/showMessage", lambda p: "trusted" in p["message"])
        assert "redact" in shown["message"]
        await one.new()
        await one.turn("Hello")
        assert one.said() == "See here."
