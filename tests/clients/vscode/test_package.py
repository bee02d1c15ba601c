"""What the extension says of itself in its manifest, and what is in the package that people get."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from magy_server.api.wire.names import COMMANDS
from tests.clients.test_emacs import missing

ROOT = Path(__file__).resolve().parents[3]
CLIENT = ROOT / "clients" / "vscode"
PAGE = ROOT / "docs" / "clients" / "vscode.md"
VSIX = CLIENT / "magy.vsix"
MOST = 1_000_000
"""Bytes of the package."""


@pytest.fixture(scope="module")
def manifest() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((CLIENT / "package.json").read_text("utf-8"))
    return found


@pytest.fixture
def package() -> zipfile.ZipFile:
    if not VSIX.exists():
        missing(f"{VSIX.relative_to(ROOT)} is not there (`make vscode` builds it)")
    return zipfile.ZipFile(VSIX)


def test_log_finds_the_log_in_the_palette(manifest: dict[str, Any]) -> None:
    titles = [one["title"] for one in manifest["contributes"]["commands"]]
    assert [title for title in titles if re.search(r"\blog\b", title, re.I)] == ["Show Log"]


def test_every_command_is_in_the_palette_under_magy_or_hidden_there(
    manifest: dict[str, Any],
) -> None:
    contributed = manifest["contributes"]
    for command in contributed["commands"]:
        assert command["command"].startswith("magy."), command
        assert command["category"] == "Magy", command
        assert command["title"], command
    known = {command["command"] for command in contributed["commands"]}
    used = {
        entry["command"]
        for menu in (*contributed.get("menus", {}).values(), contributed.get("keybindings", []))
        for entry in menu
        if "command" in entry
    }
    assert {name for name in used if name.startswith("magy.")} <= known
    names = [command["command"] for command in contributed["commands"]]
    assert names == sorted(names), "in order, so that one finds them"
    assert not set(names) & set(COMMANDS), "those of the server are the language client's"


def test_the_walkthrough_ticks_each_step_by_what_it_offers(manifest: dict[str, Any]) -> None:
    known = {command["command"] for command in manifest["contributes"]["commands"]}
    (walkthrough,) = manifest["contributes"]["walkthroughs"]
    for step in walkthrough["steps"]:
        offered = set(re.findall(r"\(command:([\w.]+)\)", step["description"]))
        ticked = {event for event in step["completionEvents"] if event.startswith("onCommand:")}
        assert offered <= known, step["id"]
        assert not ticked or offered & {event.partition(":")[2] for event in ticked}, step["id"]
    assert offered == {"magy.answerQuestion", "magy.review.openAll"}, "what the first turn needs"


def test_no_key_is_taken_where_magy_is_not_at_hand(manifest: dict[str, Any]) -> None:
    for binding in manifest["contributes"].get("keybindings", []):
        assert binding.get("when"), f"{binding['command']} takes {binding['key']} everywhere"


def test_every_setting_says_what_it_does(manifest: dict[str, Any]) -> None:
    configuration = manifest["contributes"]["configuration"]
    groups = configuration if isinstance(configuration, list) else [configuration]
    for name, setting in ((n, s) for group in groups for n, s in group["properties"].items()):
        assert name.startswith("magy.")
        text = setting.get("markdownDescription") or setting.get("description") or ""
        assert len(text) > 15, f"{name} has no description"
        assert "type" in setting, f"{name} has no type"


def test_restricted_and_virtual_workspaces_are_answered_for(manifest: dict[str, Any]) -> None:
    capabilities = manifest["capabilities"]
    for kind in ("untrustedWorkspaces", "virtualWorkspaces"):
        assert capabilities[kind]["supported"] in (False, "limited"), "it runs a program"
        assert len(capabilities[kind]["description"]) > 30
    assert manifest["extensionKind"] == ["workspace"], "where the files are"
    assert manifest["browser"] == "./out/web.js", "a browser alone is told why not"
    assert not manifest.get("enabledApiProposals"), "only what is stable"


def test_the_page_has_every_command_and_key(manifest: dict[str, Any]) -> None:
    page = PAGE.read_text("utf-8")
    contributed = manifest["contributes"]
    hidden = {
        entry["command"]
        for entry in contributed.get("menus", {}).get("commandPalette", [])
        if entry.get("when") == "false"
    }
    words = re.sub(r"\s+", " ", page)
    titles = {c["title"] for c in contributed["commands"] if c["command"] not in hidden}
    assert not sorted(title for title in titles if title.rstrip("…") not in words)
    named = {"up": "↑", "down": "↓", "escape": "Esc"}
    for binding in contributed.get("keybindings", []):
        parts = [named.get(part, part.capitalize()) for part in binding["key"].split("+")]
        assert f"`{'+'.join(parts)}`" in page, binding["command"]


def test_the_types_are_of_the_oldest_version_that_is_promised(manifest: dict[str, Any]) -> None:
    oldest = manifest["engines"]["vscode"].removeprefix("^")
    assert manifest["devDependencies"]["@types/vscode"] == oldest
    for kind in ("dependencies", "devDependencies"):
        for name, version in manifest[kind].items():
            assert re.fullmatch(r"\d+\.\d+\.\d+", version), f"{name} is not pinned"


def test_the_lock_names_no_host() -> None:
    for file in (CLIENT / "package-lock.json", ROOT / ".ci" / "code-server" / "package-lock.json"):
        lock = json.loads(file.read_text("utf-8"))
        assert not [name for name, one in lock["packages"].items() if "resolved" in one]


def test_the_package_is_small_and_has_what_is_needed_and_no_more(
    package: zipfile.ZipFile, manifest: dict[str, Any]
) -> None:
    assert VSIX.stat().st_size < MOST
    names = {name.removeprefix("extension/") for name in package.namelist()}
    lower = {name.lower() for name in names}
    assert {"package.json", "readme.md"} <= lower
    assert lower & {"license", "license.txt"}
    assert {manifest[kind].removeprefix("./") for kind in ("main", "browser")} <= names
    inner = json.loads(package.read("extension/package.json"))
    assert inner["version"] == manifest["version"] and inner["name"] == "magy"
    stray = [
        name
        for name in names
        if re.search(r"^(node_modules|test|src|webview)/|\.(ts|map|mjs)$|package-lock", name)
    ]
    assert not stray
    for name in names:
        if name.endswith(".js"):
            assert b"sourceMappingURL" not in package.read(f"extension/{name}")[-300:]
