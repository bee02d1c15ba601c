"""The report for an issue has no secret in it, whatever an editor sends along."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from magy_server.doctor.finding import Finding
from magy_server.doctor.issue import Redaction, report

SECRET = "correct-horse-battery"
REDACTION = Redaction.of({"HOME": "/home/jo", "SOME_API_KEY": SECRET, "PASS_AGE": "5"})
WORDS = st.text(max_size=8)
LEAVES = st.none() | st.booleans() | st.integers() | WORDS | st.sampled_from(
    [SECRET, f"x{SECRET}y", "/home/jo/x", "```", "sk-0123456789abcdef"]
)  # fmt: skip
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.just(SECRET), inner, max_size=4)
    ),
)


@given(st.dictionaries(WORDS, VALUES, max_size=4))
def test_no_secret_comes_through(facts: dict[str, Any]) -> None:
    finding = Finding("models", "problem", f"The key {SECRET} is refused by /home/jo/.x\n```")
    text = report([finding], facts, REDACTION)
    assert SECRET not in text and "sk-0123456789abcdef" not in text
    assert "/home/jo/" not in text


def test_names_that_say_secret_and_depth_and_size_are_bounded() -> None:
    deep: dict[str, Any] = {}
    for _ in range(50):
        deep = {"in": deep}
    facts = {"authToken": "abc", "deep": deep, "many": list(range(1000)), "long": "x" * 10_000,
             "keymap": "magy-map", "home": "/home/jo2/x"}  # fmt: skip
    value = REDACTION.value(facts)
    assert value["authToken"] == "[redacted]" and value["keymap"] == "magy-map"
    assert len(value["many"]) == 100 and len(value["long"]) == 2001
    assert str(value["deep"]).count("in") < 10
    assert value["home"] == "/home/jo2/x", "somebody else's"


def test_whatever_stands_under_the_name_of_a_secret_goes_whole() -> None:
    value = REDACTION.value(
        {"api_key": ["abc-1"], "env": {"OPENAI_API_KEY": {"v": "abc-2"}}, "passwd": 123456,
         "alist": [["api-key", "abc-3"], ["name", "jo"]], "plist": [":token", "abc-4"],
         "noKey": None, "password": ""}
    )  # fmt: skip
    assert value == {
        "api_key": "[redacted]", "env": {"OPENAI_API_KEY": "[redacted]"}, "passwd": "[redacted]",
        "alist": [["api-key", "[redacted]"], ["name", "jo"]], "plist": [":token", "[redacted]"],
        "noKey": None, "password": "",
    }  # fmt: skip


def test_what_is_cut_was_redacted_before() -> None:
    for at in range(1_900, 2_010, 7):
        for secret in (SECRET, SECRET.upper(), "sk-ant-api03-" + "Zq9" * 20):
            text = REDACTION.value("x" * at + secret + "y" * 5_000)
            assert text.strip("x…y") in ("", "[redacted]"[: 2_000 - at]), text[1_890:]


def test_findings_are_redacted_themselves() -> None:
    found = REDACTION.finding(Finding("models", "problem", f"Is {SECRET}", f"cd /home/jo/{SECRET}"))
    assert (found.what, found.mend) == ("Is [redacted]", "cd ~/[redacted]")
