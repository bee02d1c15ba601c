"""What a person is asked about is shown as it is: nothing hidden, nothing moved, nothing cut out
without a word."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magy_server.core.events import Asked, Configured, Entry, Event, Judged, Opened
from magy_server.core.text.markdown import Markdown
from magy_server.core.text.sanitizing import INVISIBLE, shortened, unpadded, visible
from magy_server.core.updates import updates
from magy_server.core.values import Decision, Facts, Grant

CUT = re.compile(r"\A(.*) … \(\+([\d,]+) characters(?:, ([\d,]+) lines)?\) … (.*)\Z", re.DOTALL)


@pytest.mark.parametrize("char", [
    "\x00", "\x07", "\b", "\r", "\x1b", "\x7f", "\x85", "\x9b", "\xa0", "\xad", "\u034f", "\u061c",
    "\u115f", "\u180b", "\u180e", "\u200b", "\u200d", "\u200e", "\u2028", "\u2029", "\u202e",
    "\u2060", "\u2066", "\u2800", "\u3000", "\u3164", "\ufe0f", "\ufeff", "\U000e0041",
    "\U000e0100", "\ufffc", "\U0001d159", "\ud800",
])  # fmt: skip
def test_a_character_that_does_not_show_is_written_out(char: str) -> None:
    assert visible(f"a{char}b") == f"a<U+{ord(char):04X}>b"


def test_nothing_of_a_terminal_sequence_is_taken_out() -> None:
    assert visible("ls \x1b]0; rm -rf ~;\x07") == "ls <U+001B>]0; rm -rf ~;<U+0007>"
    assert shortened("a\x1b[2Kb\r\nc", 99) == "a<U+001B>[2Kb<U+000D> ⏎ c"


@settings(deadline=None)
@given(st.text())
def test_all_that_is_left_shows(text: str) -> None:
    shown = visible(text)
    rest = shown.replace("\n", "").replace("\t", "")
    assert rest.isprintable() and not INVISIBLE & set(rest)
    assert visible(shown) == shown
    assert shown.count("\n") == text.count("\n")


@settings(deadline=None)
@given(st.text(alphabet="ab \n\t\u202e", max_size=200), st.integers(10, 60))
def test_a_glance_is_all_of_it_or_says_what_is_left_out(text: str, most: int) -> None:
    whole, line = unpadded(text.strip()).strip().replace("\t", " "), shortened(text, most)
    assert "\n" not in line
    if len(whole) <= most:
        assert line.replace(" ⏎ ", "\n") == whole
        return
    cut = CUT.match(line)
    assert cut
    head, tail = (cut[n].replace(" ⏎ ", "\n") for n in (1, 4))
    hidden = int(cut[2].replace(",", ""))
    assert whole.startswith(head) and whole.endswith(tail)
    assert len(head) + hidden + len(tail) == len(whole) and len(head) + len(tail) == most
    between = whole[len(head) : len(whole) - len(tail)]
    # Of one line it need not be said how many there are.
    lines = int(cut[3].replace(",", "")) if cut[3] else 1
    assert lines == between.count("\n") + 1
    assert cut[3] != "1"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a" + " " * 300 + "; b", "a ⟨300 spaces⟩ ; b"),
        ("a" + "\t" * 40 + "b", "a ⟨40 spaces⟩ b"),
        ("a" + "\n" * 40 + "b", "a\n⟨39 empty lines⟩\nb"),
        ("a" + f"\n{' ' * 60}" * 40 + "\nb", "a\n⟨40 empty lines⟩\nb"),
        ("a" + " " * 39 + "b\n\n\n\nc", "a" + " " * 39 + "b\n\n\n\nc"),
    ],
)
def test_much_white_space_is_counted(text: str, shown: str) -> None:
    assert unpadded(text) == shown and unpadded(shown) == shown
    assert shortened(text, 300) == shown.replace("\n", " ⏎ ")


HIDES = "ls \x1b[2K\u202e\nrm"
SHOWS = "ls <U+001B>[2K<U+202E>"


def entry(event: Event) -> Entry:
    return Entry(stream="session/s", seq=1, at=0.0, event=event)


@pytest.mark.parametrize("event", [
    Opened(root=None, cwd="", agent="a", model="m", title=HIDES),
    Configured(option="title", value=HIDES),
])  # fmt: skip
def test_a_title_of_a_session_hides_nothing(event: Event) -> None:
    (about,) = updates(entry(event), {})
    assert about["title"] == f"{SHOWS} ⏎ rm"


def test_a_question_hides_nothing_in_updates_and_in_a_transcript() -> None:
    grant = Grant(id="g", key="bash", pattern=HIDES, scope="session")
    facts = Facts(title="Run", kind="execute", preview="p", code=True)
    judged = Judged(call="1.0", facts=facts, decision=Decision(action="ask", rule=HIDES))
    asked = Asked(
        id="q", call="1.0", title="Run", rule=HIDES, remember=(grant,), preview="p", code=True
    )
    texts = {"p": HIDES}
    (call,) = updates(entry(judged), texts)
    question = updates(entry(asked), texts)[0]["open"]
    for content in (call["content"], question["content"]):
        assert content[0]["content"]["text"] == f"{SHOWS}\nrm"
    assert question["rule"] == f"{SHOWS} ⏎ rm"
    assert question["covers"] == [f"bash `{SHOWS} ⏎ rm`"]
    told = "\n".join(Markdown("").paragraphs([entry(judged), entry(asked)], texts))
    assert f"```\n{SHOWS}\nrm\n```" in told and "\x1b" not in told
