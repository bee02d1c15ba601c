"""Start-up costs nothing that is not needed yet: what a fresh interpreter has, and has not, loaded.

A person waits for the answer to `initialize`; the provider SDKs alone would make that ten times
longer.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from magy_server.garbage import RUNNING, STARTING
from tests.lsp.client import Client, RpcError, SimulatedEditor

SDKS = {"anthropic", "openai", "git"}
ENGINE_ROOM = {"aiosqlite", "psutil", "rapidfuzz", "sqlite3", "tree_sitter", "yaml"}
FRAMEWORKS = {"asyncio", "lsprotocol", "pydantic", "pygls"}
NOT_YET = {"pygls", "lsprotocol", "email", "zipfile", "shutil", "tempfile", "tomllib"}
"""What an engine without work does not need, either."""
MOST_OF_AN_ENGINE = 550
"""Modules, the standard library's included, that are imported until the first answer of Magy's
own."""
MOST_BEFORE_THE_ANSWER = 80
"""Top-level modules, Python's own among them, until `initialize` is answered."""
MOST_LOOKED_THROUGH = 2_000
"""Objects that the search for garbage goes through at once while Magy starts."""
MOST_TEXTS = 80
"""Annotations of models that are texts."""
IMPORT_TIME = re.compile(r"^import time:[^|]*\|[^|]*\|\s*([\w.]+)\s*$", re.MULTILINE)


def loaded_after(statement: str) -> set[str]:
    """The top-level names in sys.modules of a new interpreter that ran `statement`."""
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    modules = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    return {module.partition(".")[0] for module in modules}


def imported(log: str) -> set[str]:
    """The top-level names in what `python -X importtime` wrote."""
    return {module.partition(".")[0] for module in IMPORT_TIME.findall(log)}


def test_importing_the_package_does_no_work() -> None:
    assert loaded_after("import magy_server") - loaded_after("pass") == {"magy_server"}


def test_the_command_loads_only_what_it_runs() -> None:
    loaded = loaded_after("import magy_server.__main__")
    assert "magy_server" in loaded
    assert not loaded & (SDKS | ENGINE_ROOM | FRAMEWORKS)


def test_the_version_is_told_without_loading_anything() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "magy_server", "--version"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.startswith("magy ")
    assert "argparse" in imported(run.stderr)
    assert not imported(run.stderr) & (SDKS | ENGINE_ROOM | FRAMEWORKS)


def test_pydantic_compiles_few_annotations_when_the_engine_is_loaded() -> None:
    """Each takes as long as the bytecode of a whole class: those of modules with many models are
    types, not texts."""
    code = (
        "import magy_server.app, magy_server.api.wire.methods, magy_server.api.wire.updates\n"
        "from pydantic import BaseModel\n"
        "def below(kind):\n"
        "    return {kind}.union(*map(below, kind.__subclasses__()))\n"
        "kinds = [kind for kind in below(BaseModel) if kind.__module__.startswith('magy_server')]\n"
        "own = [a for kind in kinds for a in vars(kind).get('__annotations__', {}).values()]\n"
        "print(len(own), sum(isinstance(annotation, str) for annotation in own))\n"
    )
    told = subprocess.check_output([sys.executable, "-c", code], text=True)
    annotations, texts = map(int, told.split())
    print(told)
    assert annotations > 1000
    assert texts <= MOST_TEXTS


@pytest.mark.parametrize("words", [("sessions", "list"), ("agents", "list"), ("sessions", "show")])
def test_what_only_reads_loads_no_engine(tmp_path: Path, words: tuple[str, ...]) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "magy_server", *words]
    named = [] if "list" in words else ["nobody"]
    env = {**os.environ, "MAGY_STATE_DIR": str(tmp_path), "MAGY_CONFIG_DIR": str(tmp_path)}
    run = subprocess.run([*command, *named], capture_output=True, text=True, env=env, check=False)
    loaded = set(IMPORT_TIME.findall(run.stderr))
    assert "magy_server.store.sqlite" in loaded, run.stderr
    assert not loaded & {"magy_server.app", "magy_server.api.service", "magy_server.engine.turn"}
    assert words[0] == "agents" or "magy_server.core.state.state" not in loaded
    assert words[1] != "list" or "magy_server.api.wire.shapes" not in loaded
    assert not imported(run.stderr) & (SDKS | {"rich"})


@pytest.mark.req("F001")
async def test_initialize_is_answered_before_anything_heavy_is_loaded(tmp_path: Path) -> None:
    """The log of imports up to the answer. The engine comes with `initialized`, pygls with what
    only it can read, the provider's SDK with the first thing that wants a model."""
    command = (sys.executable, "-X", "importtime", "-m", "magy_server", "lsp")
    async with Client.spawn(command, cwd=tmp_path) as client:
        params = {"processId": None, "rootUri": tmp_path.as_uri(), "capabilities": {}}
        answer = await client.request("initialize", params)
        before = imported(client.stderr.decode())
        assert answer["serverInfo"]["name"] == "magy"
        assert len(before) < MOST_BEFORE_THE_ANSWER
        assert not before & (SDKS | ENGINE_ROOM | FRAMEWORKS)

        await client.request("shutdown")
        loaded = imported(client.stderr.decode())
        assert "asyncio" in loaded and not loaded & (SDKS | ENGINE_ROOM | {"pygls", "lsprotocol"})


async def test_the_engine_is_loaded_when_the_client_is_ready(tmp_path: Path) -> None:
    command = (sys.executable, "-X", "importtime", "-m", "magy_server", "lsp")
    async with Client.spawn(command, cwd=tmp_path) as client:
        await client.initialize(tmp_path)
        assert (await client.request("magy/agent/list"))["agents"]
        loaded = imported(client.stderr.decode())
        assert "sqlite3" in loaded and not loaded & NOT_YET
        modules = set(IMPORT_TIME.findall(client.stderr.decode()))
        assert "magy_server.engine.runner" in modules
        print(len(modules))
        assert len(modules) <= MOST_OF_AN_ENGINE
        seldom = {"tools.kit", "tools.web.github_tool", "edits.plan", "api.rewrites.rewrite_verbs",
                  "api.completions.suggesting", "api.doctor", "api.editor_answers",
                  "api.prompts.context", "engine.snapshot_format", "api.sessions.session_verbs",
                  "api.present", "core.text.markdown", "tools.prompts.mentions",
                  "listeners.mirror", "core.shell.simple_commands", "core.policy.command_rules",
                  "tools.git.repository"}  # fmt: skip
        found = modules & {f"magy_server.{one}" for one in seldom}
        assert not found
        topics = {"magi", "graphs", "permissions", "methods", "reviews", "commands", "children",
                  "completions", "editor", "models", "servers", "sessions"}  # fmt: skip
        assert not modules & {f"magy_server.api.wire.{topic}" for topic in topics}
        sessions = await client.request("magy/session/list", {"cwd": str(tmp_path)})
        assert sessions["sessions"] == []
        with pytest.raises(RpcError):
            await client.request("magy/magi/list", {"sessionId": "nobody"})
        assert "magy_server.api.wire.magi" in IMPORT_TIME.findall(client.stderr.decode())


async def test_garbage_is_looked_for_once_the_engine_runs_and_not_before(tmp_path: Path) -> None:
    """What is there when it runs is never looked through again."""
    code = (
        "import atexit, gc, sys\n"
        "def told(phase, about):\n"
        "    if phase == 'start':\n"
        "        print('looked', len(gc.get_objects(0)), file=sys.stderr, flush=True)\n"
        "def left():\n"
        "    print('left', gc.get_freeze_count(), *gc.get_threshold(), file=sys.stderr)\n"
        "gc.callbacks.append(told)\n"
        "atexit.register(left)\n"
        "from magy_server.__main__ import command\n"
        "command()\n"
    )
    async with Client.spawn((sys.executable, "-c", code, "lsp"), cwd=tmp_path) as client:
        await client.initialize(tmp_path)
        await client.request("magy/agent/list")
        looked = re.findall(r"^looked (\d+)$", client.stderr.decode(), re.MULTILINE)
        log = await client.ended()
    print(looked)
    assert looked and max(map(int, looked)) < MOST_LOOKED_THROUGH
    left = re.search(r"^left (\d+) (\d+)", log, re.MULTILINE)
    assert left, log
    frozen, often = map(int, left.groups())
    assert frozen > 20 * MOST_LOOKED_THROUGH
    assert often == RUNNING[0] < STARTING[0]


def test_values_are_shown_to_no_plug_in_of_pydantic(tmp_path: Path) -> None:
    """Nor is anything installed looked through for one, which loads as much as a door does."""
    about = tmp_path / "curious-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: curious\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[pydantic]\ncurious = curious:plugin\n")
    (tmp_path / "curious.py").write_text(
        "print('curious', file=__import__('sys').stderr)\n"
        "class Plugin:\n"
        "    def new_schema_validator(self, *about):\n"
        "        return None, None, None\n"
        "plugin = Plugin()\n"
    )
    there = {**os.environ, "PYTHONPATH": str(tmp_path)}
    code = "from pydantic import TypeAdapter\nTypeAdapter(int)"
    usual = subprocess.run(
        [sys.executable, "-c", code], env=there, capture_output=True, text=True, check=True
    )
    assert "curious" in usual.stderr

    command = [sys.executable, "-X", "importtime", "-m", "magy_server", "config", "check"]
    places = {"MAGY_STATE_DIR": str(tmp_path), "MAGY_CONFIG_DIR": str(tmp_path)}
    run = subprocess.run(
        command, env={**there, **places}, capture_output=True, text=True, check=True
    )
    assert "pydantic" in imported(run.stderr)
    assert "curious" not in run.stderr and "importlib.metadata" not in run.stderr


def test_what_else_pydantic_may_look_for_beside_its_plug_ins_is_there() -> None:
    """A newer one may, and Magy has to start with it."""
    code = (
        "from magy_server import privacy; privacy.begin()\n"
        "from pydantic.plugin._loader import PYDANTIC_ENTRY_POINT_GROUP, get_plugins\n"
        "assert PYDANTIC_ENTRY_POINT_GROUP == 'pydantic' and get_plugins() == ()\n"
        "try:\n    from pydantic.plugin._loader import no_such\n"
        "except (ImportError, AttributeError):\n    print('none such')\n"
        "from pydantic.plugin._loader import get_plugins\n"
        "assert get_plugins() == ()\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "none such\n"


async def test_pygls_is_not_loaded_for_documents_but_for_notebooks(tmp_path: Path) -> None:
    """What comes after a notebook is held back until then, and nothing before it."""
    (tmp_path / "a").write_text("one\n")
    command = (sys.executable, "-X", "importtime", "-m", "magy_server", "lsp")
    async with Client.spawn(command, cwd=tmp_path) as client:
        await client.initialize(tmp_path)
        editor = SimulatedEditor(client)
        editor.open(tmp_path / "a", "shown\n")
        editor.type(tmp_path / "a", 0, 1, "S")
        editor.close(tmp_path / "a")
        await client.request("magy/agent/list")
        assert not imported(client.stderr.decode()) & {"pygls", "lsprotocol"}
        book = {"uri": "file:///b", "notebookType": "x", "version": 1, "cells": []}
        opened = {"notebookDocument": book, "cellTextDocuments": []}
        client.notify("notebookDocument/didOpen", opened)
        await client.request("magy/agent/list")
        assert "pygls" in imported(client.stderr.decode())


def test_an_acp_client_is_answered_before_anything_heavy_is_loaded(tmp_path: Path) -> None:
    """All that is imported until the answer, which is in the same stream as the log of imports, and
    until a client that only says hello has gone."""
    hello = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n'
    command = [sys.executable, "-X", "importtime", "-m", "magy_server", "acp"]
    env = {**os.environ, "MAGY_STATE_DIR": str(tmp_path), "MAGY_CONFIG_DIR": str(tmp_path)}
    run = subprocess.run(
        command, input=hello, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env, check=True
    )
    log, answer, rest = run.stdout.decode().partition('"agentInfo":{"name":"magy"')
    before = imported(log)
    assert answer and len(before) < MOST_BEFORE_THE_ANSWER
    assert not before & (SDKS | ENGINE_ROOM | FRAMEWORKS)
    loaded = set(IMPORT_TIME.findall(rest))
    assert "magy_server.acp.door" in loaded
    assert not loaded & {"magy_server.app", "magy_server.api.service", "magy_server.core.permit"}
    assert not imported(rest) & (SDKS | ENGINE_ROOM | {"pygls", "lsprotocol"})


def test_other_doors_load_nothing_of_acp() -> None:
    doors = "magy_server.lsp.connect, magy_server.lsp.front_door, magy_server.cli.dispatch"
    code = f"import sys, magy_server.app, {doors}\nprint(*sys.modules)"
    modules = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert "magy_server.lsp.connect" in modules
    assert not [one for one in modules if one.startswith("magy_server.acp")]
