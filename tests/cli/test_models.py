"""`magy models` lists what each provider has, and names one that does not answer."""

from __future__ import annotations

import asyncio
import json

from tests.cli.harness import Magy
from tests.guard import SHUT
from tests.loopback import ChatServer, Fault

PROVIDER = '\n[[provider]]\nname = "{name}"\nkind = "openai-chat"\nbase_url = "{url}"\n'


def configure(magy: Magy, *more: str) -> None:
    (magy.state.parent / "magy.toml").write_text("".join([*more, SHUT]), "utf-8")


async def test_the_models_of_all_providers_are_listed_and_the_default_is_marked(magy: Magy) -> None:
    async with (
        ChatServer(models=["small", "l\x1b[31marge"]) as near,
        ChatServer(models=Fault("500")) as broken,
    ):
        configure(
            magy,
            'model.default = "near/small"\n',
            PROVIDER.format(name="near", url=near.base_url) + 'models = ["known"]\n',
            PROVIDER.format(name="broken", url=broken.base_url),
        )
        done = await asyncio.to_thread(magy, "models")
        printed = await asyncio.to_thread(magy, "models", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    at = lines.index("near")
    assert lines[at : at + 3] == ["near", "  near/known", "▸ near/small  (default)"]
    assert "\x1b" not in done.stdout
    assert "500" in lines[lines.index("broken") + 1]
    assert "ollama is not running: nothing listens at 127.0.0.1:1." in done.stdout
    found = json.loads(printed.stdout)
    assert found["default"] == "near/small"
    by_name = {one["provider"]: one for one in found["providers"]}
    assert by_name["near"] == {
        "provider": "near", "models": ["near/known", "near/small"], "problem": "",
    }  # fmt: skip
    assert by_name["broken"]["models"] == [] and "500" in by_name["broken"]["problem"]


def test_who_has_no_model_is_told_what_to_set(magy: Magy) -> None:
    configure(magy)
    done = magy("models")
    assert done.returncode == 0
    assert "No model is configured: set one of" in " ".join(done.stdout.split())
    assert json.loads(magy("models", "--json").stdout)["default"] is None


def test_a_default_that_no_provider_lists_is_named(magy: Magy) -> None:
    configure(magy, 'model.default = "openai/gpt-x"\n')
    assert magy("models").stdout.endswith("The default is openai/gpt-x.\n")
