"""What people and projects write is read in time that does not grow out of hand, whatever it is:
each reader is given long texts of one thing again and again."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magy_server.config import layers
from magy_server.core.actions import parse_actions
from magy_server.core.errors import InvalidConfig
from magy_server.core.patterns import matches_file
from magy_server.core.shell.simple_commands import LONGEST, parse
from magy_server.core.specs import parse_agent, parse_rules
from tests.thorough import examples, rotating

SECONDS = 5.0
UNITS = [
    "[", "]", "{", "}", "<", "(", "[[", "{a=", "a={", "a=[", "a.", "[a.", "a=1\n", "[a]\n",
    "[[a]]\n", "a.b=1\n", "'", '"', "'''", '"""', "\\", "*", "**/", "*a", "?", "[a]", "[!",
    "{a,", "{1..9}", "![", "- ", "- a\n", "? ", "! ", "&a ", "*a ", "a: ", "a:\n", "a: {}\n",
    "[1,", "#", "# \n", "\n", "\t", " ", " a\n", "|", ">", "---\n", "...\n", "%", "a b ", "\0",
    "\x1b[", "\u202e", "é",
]  # fmt: skip


def quick(read: Callable[[str], object], text: str) -> None:
    begin = time.process_time()
    with suppress(InvalidConfig):
        read(text)
    assert time.process_time() - begin < SECONDS


@pytest.mark.parametrize("begin", ["", "a = ", "permission.bash = ", "[", "a = '''", "[[a]]\n"])
def test_settings(tmp_path: Path, begin: str) -> None:
    file = tmp_path / "magy.toml"

    def read(text: str) -> None:
        file.write_text(text)
        layers.narrow(layers.read(file))

    for unit in rotating(UNITS):
        for size in (32_000, layers.LARGEST):
            quick(read, (begin + unit * size)[: size - 1])


def test_settings_that_are_nested_too_deeply_are_refused_with_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "magy.toml"
    deep = 100_000
    for text, said in (
        ("a = " + "[" * deep, "nest"),
        ("a = " + "[" * deep + "]" * deep, "nest"),
        ("a = " + "{a=" * 50_000, "nest"),
        ("a." * deep + "a = 1", "more than 64 parts"),
        ("[" + "a . " * 50_000 + "a]", "more than 64 parts"),
        ("x = 1\n" + "'a'." * 50_000 + "a = 1", "more than 64 parts"),
        ("#" * (layers.LARGEST + 1), "larger than 256 KB"),
    ):
        file.write_text(text)
        with pytest.raises(InvalidConfig, match=said):
            layers.read(file)
    file.write_text('[permission]\nread = [{ "' + "a." * 60 + '" = "deny" }]\n[a.b.c]\nx.y.z = 1')
    with pytest.raises(InvalidConfig, match="unknown key"):
        layers.narrow(layers.read(file))


@pytest.mark.parametrize("begin", ["", "permissions: ", "permissions:\n  bash: ", "x: &a "])
def test_agents_rules_and_actions(begin: str) -> None:
    def agent(text: str) -> None:
        parse_agent("x", f"---\ndescription: x\n{text}\n---\nhello", "x.md")

    for unit in rotating(UNITS):
        text = (begin + unit * 20_000)[:20_000]
        quick(agent, text)
        if not begin:  # they have one reader
            quick(lambda text: parse_rules("x", text, "x.yaml"), text)
            quick(lambda text: parse_actions(text, "x.yaml"), text)


def test_a_text_that_stands_for_one_without_end_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 8)}]" for n in range(1, 30)]
    with pytest.raises(InvalidConfig, match="alias"):
        parse_rules("x", "\n".join(lines), "x.yaml")
    with pytest.raises(InvalidConfig, match="nest"):
        parse_rules("x", "a: " + "[" * 100_000, "x.yaml")


@pytest.mark.parametrize("stars", [3, 8, 40, 400])
def test_patterns_of_many_stars(stars: int) -> None:
    name, path = "a" * 250, "/a" * 1_000
    for pattern in ("*a", "?*a", "*a*/", "**a"):
        quick(lambda text: matches_file(text, "/" + name, name, exact=True), pattern * stars + "b")
    for pattern in ("**/a/", "**/*a", "*/", "**", "**/*/", "a/**/"):
        whole = "/" + pattern * stars + "b"
        quick(lambda text: matches_file(text, path, None, exact=False), whole)


PATTERN = st.lists(st.sampled_from(["a", "b", "/", "*", "**", "?", "**/", "/**"]), max_size=9)


@settings(max_examples=examples(1_000))
@given(PATTERN, st.text(st.sampled_from("ab/"), max_size=12))
def test_they_match_what_they_say(parts: list[str], path: str) -> None:
    """As a slow reader has it, which tries every way."""
    pattern = meant = "/" + "".join(parts)
    if len(pattern) > 1 and pattern.endswith("/"):
        meant += "**"
    slow = ""
    for piece in re.findall(r"(?<![^/])\*\*+/|\*\*+|\*|\?|[^*?]+", meant.removesuffix("/**")):
        if piece.startswith("**"):
            slow += "(?:.*/)?" if piece.endswith("/") else ".*"
        else:
            slow += {"*": "[^/]*", "?": "[^/]"}.get(piece) or re.escape(piece)
    slow += "(?:/.*)?" if meant.endswith("/**") else ""
    expected = re.fullmatch(slow, "/" + path, re.DOTALL) is not None
    assert matches_file(pattern, "/" + path, None, exact=True) == expected


@pytest.mark.parametrize("begin", ["", "echo "])
def test_command_lines(begin: str) -> None:
    more = [">", "</", "@a", "a@", "&#", "? ", "*a ", "- ", "<<E\n", "''@a", "$(", "`"]
    for unit in rotating([*UNITS, *more]):
        text = (begin + unit * LONGEST)[: LONGEST - 1]
        quick(lambda text: parse(text, "/home/x"), text)


def test_a_long_text_that_is_quoted_is_understood() -> None:
    body = "hello $(world) `a` {a,b} <<<>>> @a@a\n" * 800
    (part,) = parse(f"cat > x <<'E'\n{body}E\n")
    assert not part.opaque and part.argv == ("cat",)
    (part,) = parse("git commit -m '" + "a@b" * 2_000 + "'")
    assert not part.opaque
    assert parse("echo " + "a@b" * 2_000)[0].opaque
