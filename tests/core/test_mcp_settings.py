"""What is said of an MCP server, in `magy.toml` and in `.mcp.json`, and how its tools are named."""

from __future__ import annotations

import json

import pytest

from magy_server.core.errors import InvalidConfig
from magy_server.core.mcp.names import (
    covers,
    in_words,
    is_earlier,
    is_key,
    server_of,
    subject,
    told_apart,
    tool_key,
    tool_name,
)
from magy_server.core.mcp.server_settings import McpServer, asked_for, hidden, parsed, usable
from magy_server.core.permit import Rule, Ruleset, decide
from magy_server.core.values import Facts, Resource

ENVIRON = {"TOKEN": "t0p", "EMPTY": ""}


def test_variables_are_filled_in_wherever_a_server_is_reached() -> None:
    server = McpServer(
        command="${HOME:-/home/x}/serve",
        args=["--token=${TOKEN}", "${EMPTY:-none}", "$TOKEN"],
        env={"A": "${TOKEN}${TOKEN}"},
    )
    found = usable("one", server, ENVIRON)
    assert found.command == "/home/x/serve"
    assert found.args == ["--token=t0p", "none", "$TOKEN"]
    assert found.env == {"A": "t0pt0p"}


@pytest.mark.parametrize(
    ("name", "server", "said"),
    [
        ("a", McpServer(command="x", env={"A": "${NONE} ${EMPTY}"}), "no variable NONE, EMPTY"),
        ("a", McpServer(), "neither a command nor a url"),
        ("a", McpServer(command="x", url="https://x.org"), "both a command and a url"),
        ("a", McpServer(url="file:///etc/passwd"), "no http or https address"),
        ("a__b", McpServer(command="x"), "cannot be used"),
        ("ends_", McpServer(command="x"), "cannot be used"),
        ("x" * 33, McpServer(command="x"), "cannot be used"),
    ],
)
def test_what_cannot_be_used_says_why(name: str, server: McpServer, said: str) -> None:
    with pytest.raises(InvalidConfig, match=said):
        usable(name, server, ENVIRON)


def test_a_mcp_json_gives_what_is_right_and_says_what_is_wrong() -> None:
    text = json.dumps({
        "mcpServers": {
            "files": {"type": "stdio", "command": "npx", "args": ["-y"], "env": {"A": "b"}},
            "web": {"type": "http", "url": "https://x.org/mcp", "headers": {"X": "${TOKEN}"}},
            "off": {"command": "x", "disabled": True},
            "old": {"type": "sse", "url": "https://x.org/sse"},
            "odd": {"command": "x", "comand": "y", "rocket": 1},
            "list": ["x"],
            "number": {"command": 7},
        }
    })  # fmt: skip
    tables, problems = parsed(text, "/p/.mcp.json")
    assert set(tables) == {"files", "web", "off", "odd"}
    assert tables["web"] == {"url": "https://x.org/mcp", "headers": {"X": "${TOKEN}"}}
    assert tables["off"]["enabled"] is False
    said = "\n".join(problems)
    assert all(problem.startswith("/p/.mcp.json: MCP server '") for problem in problems)
    for part in ("'sse'", "did you mean 'command'?", "unknown key 'rocket'", "not an object"):
        assert part in said
    assert "'number': command: " in said


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"mcpServers": []}', "[" * 100_000])
def test_what_is_no_mcp_json_has_no_servers(text: str) -> None:
    tables, (problem,) = parsed(text, "/p/.mcp.json")
    assert tables == {} and problem.startswith("/p/.mcp.json")


def test_tools_can_be_chosen() -> None:
    server = McpServer(command="x", tools=["get_*", "search"], without_tools=["*_secret"])
    asked = [name for name in ("get_a", "get_secret", "search", "put") if asked_for(server, name)]
    assert asked == ["get_a", "search"]


def test_names_can_be_taken_apart_and_are_what_providers_take() -> None:
    assert tool_name("git-hub", "issues/get it") == "mcp__git-hub__issues_get_it"
    assert server_of("mcp__git-hub__a__b") == "git-hub" and server_of("bash") == ""
    long = [tool_name("s", "x" * 90 + end) for end in "ab"]
    assert len(set(long)) == 2 and max(map(len, long)) == 64


def test_rules_see_the_end_of_a_name_that_is_cut() -> None:
    tool = "get_" + "x" * 90 + "_and_delete"
    name = tool_name("s", tool)
    key = tool_key("s", tool, name)
    assert len(name) == 64 and covers("mcp__s__*_delete", key) and not covers("mcp__*_delete", name)
    one, other = tool_name("s", "a.b"), told_apart(tool_name("s", "a b"), "a b")
    assert (tool_key("s", "a.b", one), tool_key("s", "a b", other)) == (one, other)


@pytest.mark.parametrize(
    "url", ["${HOST}/mcp", "http://x\n.org", "http:///x", "ftp://x", "http://"]
)
def test_an_address_is_judged_with_its_variables_filled_in(url: str) -> None:
    with pytest.raises(InvalidConfig, match="is no http or https address"):
        usable("a", McpServer(url=url), {"HOST": "x.org"})
    assert usable("a", McpServer(url="${HOST}/mcp"), {"HOST": "https://x.org"}).url


def test_a_variable_inside_another_is_refused_and_not_half_read() -> None:
    with pytest.raises(InvalidConfig, match="has another variable inside"):
        usable("a", McpServer(command="x", args=["${A:-${B}}"]), {"B": "b"})


def test_what_switches_a_server_off_is_true_or_false() -> None:
    text = {"off": "true", "on": "false", "odd": "no"}
    entries = {name: {"command": "x", "disabled": said} for name, said in text.items()}
    tables, (problem,) = parsed(json.dumps({"mcpServers": entries}), "/p/.mcp.json")
    assert {name: one["enabled"] for name, one in tables.items()} == {"off": False, "on": True}
    assert "'odd': disabled is \"no\"; write true or false" in problem


def test_a_person_reads_which_tool_of_which_server_is_meant() -> None:
    assert in_words("mcp__git__log", "log@0123456789ab") == "log of the MCP server git"
    assert in_words("net", "x.org") == "x.org"


def test_a_key_is_for_a_tool_a_server_or_a_pattern() -> None:
    name = "mcp__git__log"
    for key in (name, "mcp__git", "mcp__git__*", "mcp__*", "mcp__*__log"):
        assert is_key(key) and covers(key, name)
    for key in ("mcp__gi", "mcp__git__lo", "mcp__git__log2", "bash", "*"):
        assert not covers(key, name)
    assert not is_key("mcp__a b") and not is_key("bash")


def test_a_permission_is_for_a_tool_as_it_was() -> None:
    before, now = subject("get", "aaa"), subject("get", "bbb")
    assert is_earlier(before, now)
    assert not is_earlier(now, now) and not is_earlier(subject("put", "aaa"), now)
    assert not is_earlier("*", now)


def test_what_forbids_a_tool_holds_in_upper_and_lower_case_and_what_allows_does_not() -> None:
    rules = {
        "mcp__*__delete*": (Rule(pattern="*", action="deny", bare=True),),
        "mcp__production-tracker": (Rule(pattern="*", action="allow", bare=True),),
    }
    source = Ruleset(source="magy.toml", keys=rules)

    def decided(tool: str) -> str:
        facts = Facts(resources=(Resource(kind="net", subject=f"{tool}@1"),))
        return decide(facts, tool, "exec", [source]).action

    assert decided("mcp__production-tracker__get") == "allow"
    assert decided("mcp__production-tracker__delete_all") == "deny", "whatever is longer"
    assert decided("mcp__production-tracker__DELETE_all") == "deny"
    assert decided("mcp__Production-Tracker__get") == "ask"


def test_values_that_come_from_variables_are_shown_nowhere() -> None:
    server = McpServer(command="serve", args=["--token", "${TOKEN}", "--home", "${HOME}"])
    found = usable("a", server, {"TOKEN": "s3cr3t/w+", "HOME": "/home/ann"})
    assert found.args == ["--token", "s3cr3t/w+", "--home", "/home/ann"]
    assert "s3cr3t" not in found.starts and set(hidden(found)) == {"s3cr3t/w+"}


@pytest.mark.parametrize(
    ("value", "is_hidden"),
    [
        ("/usr/share/x", False), ("~/cache", False), ("localhost:8080", False),
        ("https://example.org/mcp", False), ("/base64slash+secret==", True), (".dotsecret", True),
        ("~tilde9secret", True), ("admin:12345678", True), ("https://ann:pw@example.org", True),
        ("https://hooks.example.org/services/T00000000/B0123456789abcdefghij", True),
    ],
)  # fmt: skip
def test_what_is_no_place_is_hidden(value: str, is_hidden: bool) -> None:
    assert bool(set(hidden(McpServer(command="x", env={"A": value})))) is is_hidden
