"""What an MCP server asks for becomes a form, a text and an answer; what it may not ask for is
refused with a reason."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.core.errors import InvalidRequest
from magy_server.core.mcp.forms import (
    Unaskable,
    filled,
    for_clients,
    form_of,
    link_of,
    of_clients,
    question,
    told,
)
from magy_server.core.values import Form

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "branch": {"type": "string", "title": "Which branch?", "description": "Of the release.",
                   "minLength": 2, "default": "main"},
        "count": {"type": "integer", "minimum": 1, "maximum": 10},
        "share": {"type": "number"},
        "push": {"type": "boolean", "default": False},
        "size": {"type": "string", "enum": ["s", "m"], "enumNames": ["small", "medium"]},
        "tags": {"type": "array", "maxItems": 2, "items": {
            "anyOf": [{"const": "a", "title": "First"}, {"const": "b", "title": "b"}]}},
        "when": {"type": "string", "format": "date"},
        "mail": {"type": "string", "format": "email"},
    },
    "required": ["branch", "count", "size"],
}  # fmt: skip


def one(about: dict[str, Any], name: str = "x", *, required: bool = True) -> Form:
    schema = {"properties": {name: about}, "required": [name] if required else []}
    return form_of("shop", "Please", schema)


def test_a_form_is_told_whole() -> None:
    form = form_of("shop", "Which release?\nTell me.", SCHEMA)
    assert told(form) == (
        "> Which release?\n> Tell me.\n\n"
        "Which branch? [branch] (text, at least 2 characters; else main)\n"
        "    Of the release.\n"
        "count (a whole number, 1 to 10)\n"
        "share (a number, may be left out)\n"
        "push (yes or no, may be left out; else no)\n"
        "size (one of these)\n    - s (small)\n    - m (medium)\n"
        "tags (at most 2 of 2, may be left out)\n    - a (First)\n    - b\n"
        "when (a date (2026-05-31), may be left out)\n"
        "mail (an e-mail address, may be left out)"
    )
    assert of_clients(for_clients(form)) == form
    asked = question("s/1.0.1", "1.0", "mcp__shop__order", form)
    assert asked.title == "The MCP server shop asks: Which release? ⏎ Tell me."
    assert "shop asks for it during mcp__shop__order" in asked.rule


def test_what_is_filled_in_becomes_what_the_fields_take() -> None:
    form = form_of("shop", "", SCHEMA)
    given = {"branch": None, "count": "3", "share": "0.5", "push": "Yes", "size": "medium",
             "tags": "First, b", "when": "2026-05-31", "mail": ""}  # fmt: skip
    assert filled(form, given) == {
        "branch": "main", "count": 3, "share": 0.5, "push": True, "size": "m", "tags": ("a", "b"),
        "when": "2026-05-31",
    }  # fmt: skip
    assert filled(form, {"count": 3.0, "size": "s", "tags": []}) == {
        "branch": "main", "count": 3, "push": False, "size": "s", "tags": (),
    }  # fmt: skip
    assert filled(link_of("shop", "Log in", "https://shop.example/x"), None) is None


@pytest.mark.parametrize(
    ("about", "given", "said"),
    [
        ({"type": "integer"}, "3.5", "x: '3.5' is not a whole number"),
        ({"type": "integer", "maximum": 4}, "5", "'5' is not a whole number, at most 4"),
        ({"type": "integer"}, True, "'True' is not"),
        ({"type": "number"}, "nan", "'nan' is not a number"),
        ({"type": "number"}, "1e999", "is not a number"),
        ({"type": "boolean"}, "perhaps", "'perhaps' is not yes or no"),
        ({"type": "string"}, "  ", "x is missing: text."),
        ({"type": "string"}, "x" * 10_001, "is not text"),
        ({"type": "string", "format": "uri"}, "here", "is not an address"),
        ({"type": "string", "format": "date"}, "tomorrow", "is not a date"),
        ({"enum": ["a", "b"]}, "c", "'c' is not one of these"),
        ({"type": "array", "items": {"enum": ["a"]}}, ["b"], "is not any of 1"),
        ({"type": "string"}, None, "x is missing: text."),
    ],
)
def test_what_does_not_fit_is_said(about: dict[str, Any], given: Any, said: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        filled(one(about), {"x": given})
    assert said in error.value.message


def test_a_field_that_the_form_does_not_have_is_said() -> None:
    with pytest.raises(InvalidRequest, match="has no field 'y'"):
        filled(one({"type": "string"}), {"x": "1", "y": "2"})


@pytest.mark.parametrize(
    ("name", "about"),
    [
        ("password", {"type": "string"}),
        ("userPassword", {"type": "string"}),
        ("GITHUB_TOKEN", {"type": "string"}),
        ("apiKey", {"type": "string"}),
        ("key", {"type": "string"}),
        ("value", {"type": "string", "title": "Private key"}),
        ("value", {"type": "string", "description": "Your API key of the shop"}),
        ("pin", {"type": "string"}),
        ("pin", {"type": "integer"}),
        ("password", {"type": "number"}),
        ("value", {"type": "integer", "description": "Enter the PIN of your card"}),
        ("pin_1", {"enum": list("0123456789")}),
        ("value", {"type": "string", "format": "password"}),
        ("value", {"type": "string", "writeOnly": True}),
        ("value", {"type": "string", "description": "Paste your GitHub token here"}),
        ("value", {"type": "string", "description": "Your PAT (ghp_...)"}),
        ("mypassword", {"type": "string"}),
        ("openaiKey", {"type": "string"}),
        ("pass", {"type": "string"}),
        ("connectionString", {"type": "string"}),
        ("passwort", {"type": "string"}),
        ("p\u0430ssword", {"type": "string"}),
        ("value", {"type": "string", "title": "Pass\u200bword"}),
        ("value", {"type": "string", "title": "P@ssw0rd"}),
        ("value", {"type": "string", "title": "Ｐａｓｓｗｏｒｄ"}),
        ("value", {"type": "string", "description": "Please write p a s s w o r d"}),
        ("value", {"type": "string", "description": "введите пароль"}),
    ],
)
def test_secrets_are_not_asked_for(name: str, about: dict[str, Any]) -> None:
    with pytest.raises(Unaskable, match="looks like a secret"):
        one(about, name)


@pytest.mark.parametrize(
    ("name", "about"),
    [
        ("max_tokens", {"type": "integer"}),
        ("issue_key", {"type": "string"}),
        ("author", {"type": "string", "description": "Pin the issue to whom?"}),
        ("token", {"type": "string", "enum": ["word", "character"]}),
        ("password", {"type": "boolean", "description": "Reset your password?"}),
        ("password_length", {"type": "integer", "description": "Of the password to make"}),
        ("secretary", {"type": "string"}),
        ("pass_through", {"type": "string"}),
        ("name", {"type": "string", "description": "Enter the issue key (PROJ-12)"}),
    ],
)
def test_other_words_of_the_kind_are(name: str, about: dict[str, Any]) -> None:
    assert one(about, name).fields[0].name == name


@pytest.mark.parametrize(
    ("message", "about"),
    [
        ("Please enter your GitHub password and API key", {"type": "string"}),
        ("Please enter the PIN of your card", {"type": "integer"}),
        ("The number: the card number", {"type": "number"}),
        ("We sent you a code: what is it?", {"type": "string"}),
        ("Your tok\u0435n, please", {"type": "string"}),
        ("It begins with ghp_", {"type": "string"}),
    ],
)
def test_a_message_does_not_ask_for_them_either(message: str, about: dict[str, Any]) -> None:
    with pytest.raises(Unaskable, match="the message asks for a secret"):
        form_of("shop", message, {"properties": {"value": about}})
    assert form_of("shop", message, {"properties": {"value": {"type": "boolean"}}})


def test_a_field_does_not_ask_for_them_on_behalf_of_another() -> None:
    fields = {"a": {"type": "boolean", "title": "Paste your token below"}, "b": {"type": "string"}}
    with pytest.raises(Unaskable, match="the form asks for a secret"):
        form_of("shop", "Please", {"properties": fields})


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"properties": {}},
        {"properties": []},
        {"properties": {"x": {"type": "object"}}},
        {"properties": {"x": {"type": "array", "items": {"type": "string"}}}},
        {"properties": {"x": "string"}},
        {"properties": {"\x1b[2Jx": {"type": "string"}}},
        {"properties": {"x\u202e": {"type": "string"}}},
        {"properties": {"x": {"enum": [1, 2]}}},
        {"properties": {"x": {"enum": [str(n) for n in range(201)]}}},
        {"properties": {f"x{n}": {"type": "string"} for n in range(31)}},
        {"properties": {"x": {"type": "string", "description": "long" * 1_000}}},
        {"properties": {"x": {"type": "string", "title": 7}}},
        {"properties": {"x": {"type": "string"}}, "required": 5},
        {"properties": {"x": {"type": "string"}}, "required": "xyz"},
        {"properties": {"x": {"type": "number", "maximum": 10**400}}},
        {"properties": {"x": {"type": "number", "minimum": "1"}}},
        {"properties": {"x": {"enum": "abc"}}},
        {"properties": {"x": {"enum": ["a", " "]}}},
    ],
)
def test_what_no_form_has_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(Unaskable):
        form_of("shop", "Please", schema)


@pytest.mark.parametrize("form", [[], {}, 7, "colour"])
def test_a_format_that_is_none_counts_as_none(form: Any) -> None:
    assert one({"type": "string", "format": form}).fields[0].format == ""


def test_a_number_of_thousands_of_digits_is_refused_with_a_reason() -> None:
    assert one({"type": "integer", "default": 10**5_000}).fields[0].default is None
    for said in (10**5_000, [10**5_000]):
        with pytest.raises(InvalidRequest, match="x: a number of so many digits is not"):
            filled(one({"type": "integer"}), {"x": said})


KEYWORDS = ("type", "title", "description", "enum", "enumNames", "oneOf", "anyOf", "items", "const",
            "format", "default", "minimum", "maximum", "minLength", "maxItems", "x")  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5)
    | st.sampled_from([*KEYWORDS, "string", "integer", "array", 10**400, -(10**400), 1, 2]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=5),
    max_leaves=8,
)  # fmt: skip


@given(about=st.dictionaries(st.sampled_from(KEYWORDS), JSON, max_size=6), needed=JSON, said=JSON)
def test_whatever_a_server_or_a_client_sends_the_error_is_ours(
    about: dict[str, Any], needed: Any, said: Any
) -> None:
    try:
        form = form_of("shop", "Please", {"properties": {"x": about}, "required": needed})
    except Unaskable:
        return
    assert told(form) and of_clients(for_clients(form)) == form
    with suppress(InvalidRequest):
        filled(form, {"x": said})


def test_choices_with_commas_and_blanks_can_be_made() -> None:
    form = one({"type": "array", "items": {"enum": ["a, b", "c", " d", "a"]}})
    for said, meant in (
        ("a, b", ("a, b",)), ("c,a, b", ("c", "a, b")), (" d, c", (" d", "c")),
        ("c, d", ("c", " d")), ([" d", "a, b"], (" d", "a, b")), ("a, c,", ("a", "c")),
        (" a ,c", ("a", "c")),
    ):  # fmt: skip
        assert filled(form, {"x": said}) == {"x": meant}
    for wrong in ("b", "c, b", ["d"], [1], 5):
        with pytest.raises(InvalidRequest):
            filled(form, {"x": wrong})


def test_a_message_cannot_look_like_the_form() -> None:
    said = "Hello\n\nIt wants you to open this address, at github.com:\nbranch (text)"
    lines = told(form_of("shop", said, {"properties": {"x": {}}})).split("\n")
    assert lines[:5] == [
        "> Hello", ">", "> It wants you to open this address, at github.com:", "> branch (text)",
        "",
    ]  # fmt: skip


def test_what_a_server_writes_hides_nothing() -> None:
    form = form_of("shop", "Yes\u202eoN\x1b[2J", {"properties": {"x": {"title": "a\nb\u200b"}}})
    assert form.message == "Yes<U+202E>oN<U+001B>[2J"
    assert form.fields[0].title == "a b<U+200B>"
    with pytest.raises(Unaskable, match=r"the message has more than 4,000 characters"):
        form_of("shop", "x" * 4_001, SCHEMA)


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)", "file:///etc/passwd", "https://", "https://github.com@evil.example/",
        "https://gïthub.com/", "https://a.example/\u202e", "https://a.example/ b", "vscode://x",
        "https://[::1", "https://a.example/" + "x" * 2_000,
    ],
)  # fmt: skip
def test_an_address_that_may_mislead_is_not_shown(url: str) -> None:
    with pytest.raises(Unaskable):
        link_of("shop", "Open this", url)


def test_an_address_is_told_with_its_host() -> None:
    text = told(link_of("shop", "Log in there", "https://login.shop.example:8443/a?b=c"))
    assert text == (
        "> Log in there\n\nIt wants you to open this address, at login.shop.example:\n"
        "https://login.shop.example:8443/a?b=c"
    )
