"""What models write, and the votes that are read from it."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.config.resources import resource
from magy_server.core.magi.vote import NODES, Node, tier
from magy_server.core.magi.vote_parsing import read

from .build import said


def test_a_vote_as_it_was_asked_for_is_read_as_it_is() -> None:
    found = read("melchior", said("APPROVE", 82, range=[70, 90], evidence=["It ran."]))
    assert found.vote and not found.repairs
    assert (found.vote.verdict, found.vote.confidence) == ("APPROVE", 82)
    assert (found.vote.low, found.vote.high, found.vote.evidence) == (70, 90, ("It ran.",))


@pytest.mark.req("D050")
@pytest.mark.parametrize(
    ("text", "verdict", "confidence", "mended"),
    [
        (f"My vote:\n```json\n{said('REJECT', 40)}\n```", "REJECT", 40, "words around the JSON"),
        (said("approve", 40), "APPROVE", 40, "verdict"),
        (said("**Approved**".strip("*"), 40), "APPROVE", 40, "verdict"),
        (said("REJECT", "85 %"), "REJECT", 85, "confidence in another form"),
        (said("REJECT", 0.85), "REJECT", 85, "confidence as a share"),
        (said("REJECT", 0.29), "REJECT", 29, "confidence as a share"),
        (said("REJECT", "Medium"), "REJECT", 41, "confidence by the lowest of its tier"),
        (said("REJECT", None, feeling="bright"), "REJECT", 76,
         "confidence by the lowest of its tier"),
        (said("REJECT", 5).replace("}", ",}"), "REJECT", 5, "commas at ends"),
        (said("REJECT", 5) + "\n" + said("REJECT", 5), "REJECT", 5, "voted twice the same"),
        (json.dumps({"verdict": "ABSTAIN", "confidence": 1, "reasoning": "A. B. C. D."}),
         "ABSTAIN", 1, "the first sentences of its reasons"),
        (said("REJECT", 5, last_words=" ".join("word" for _ in range(13))), "REJECT", 5,
         "a long last sentence"),
    ],
)  # fmt: skip
def test_what_is_only_written_wrongly_is_mended_and_said(
    text: str, verdict: str, confidence: int, mended: str
) -> None:
    found = read("casper", text)
    assert found.vote, found.problem
    assert (found.vote.verdict, found.vote.confidence) == (verdict, confidence)
    assert mended in found.repairs
    assert len(found.vote.last_words.split()) <= 12


@pytest.mark.req("D032")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not in the form of a vote"),
        ("I approve of this.", "not in the form of a vote"),
        ("{" * 100_000, "not in the form of a vote"),
        ('{"a": ' * 5_000, "not in the form of a vote"),
        (said("APPROVE", 50) + said("REJECT", 50), "voted twice, and differently"),
        (said("APPROVE", 50)[:-1] + ', "verdict": "REJECT"}', "voted twice, and differently"),
        (said("APPROVE", 50) + said("APPROVE", 90), "voted twice, and differently"),
        (said("APPROVE", 50)[:-1] + ', "confidence": 90}', "voted twice, and differently"),
        (said("APPROVE", 50, node="CASPER-3"), "voted as casper"),
        (said("APPROVE", 50, node="magi-casper"), "voted as casper"),
        (said("MAYBE", 50), "'MAYBE', none of the four"),
        (said("APPROVE", 101), "not 0 to 100"),
        (said("APPROVE", "1" * 400), "not 0 to 100"),
        (said("APPROVE", True), "not 0 to 100"),
        (said("APPROVE", None), "not 0 to 100"),
        (said("CAVEATED", 50, caveats={}), "named no condition"),
        (said("APPROVE", 50, summary=""), "gave no reason"),
        ("A: APPROVE, High\nB: APPROVE, High\nEvidence, of all, mixed:\n- yes", "not in the form"),
    ],
)
def test_what_would_have_to_be_guessed_is_no_vote(text: str, problem: str) -> None:
    found = read("melchior", text)
    assert found.vote is None and problem in found.problem


def test_a_vote_has_bounds() -> None:
    long = "x" * 50_000
    found = read("casper", said("REJECT", 5, summary=long, evidence=[long] * 50, stakes=long))
    assert found.vote and len(found.vote.model_dump_json()) < 20_000


@given(st.text(), st.sampled_from(NODES))
def test_nothing_that_is_written_breaks_the_reading(text: str, node: Node) -> None:
    found = read(node, text)
    assert (found.vote is None) == bool(found.problem)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,  # in each of a dozen fields
)
FIELDS = (
    "node", "verdict", "confidence", "summary", "reasoning", "evidence", "caveats", "range",
    "feeling", "last_words", "risks", "new_evidence", "tier",
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(FIELDS), JSON), st.sampled_from(NODES))
def test_no_value_breaks_the_reading(given_: dict[str, object], node: Node) -> None:
    found = read(node, json.dumps({"verdict": "APPROVE", "confidence": 50, **given_}))
    assert (found.vote is None) == bool(found.problem)
    assert not found.vote or 0 <= found.vote.confidence <= 100


@pytest.mark.req("D037", "D038", "D039")
def test_tiers_of_confidence() -> None:
    assert [tier(n) for n in (100, 76, 75, 41, 40, 0)] == [
        "High", "High", "Medium", "Medium", "Low", "Low",
    ]  # fmt: skip


# --- what the nodes are told to answer ------------------------------------------------------------

OF_ALL = {
    "node", "verdict", "confidence", "summary", "reasoning", "evidence", "failure_modes",
    "next_step", "tradeoffs", "rollback_signals", "caveats",
}  # fmt: skip
OWN: dict[Node, set[str]] = {
    "melchior": {"range"},
    "balthasar": {"protection", "risks"},
    "casper": {"feeling", "stakes", "last_words"},
}
WORDS = {"melchior": "300 to 800 words", "casper": "120 to 220 words"}
DIFFERENT = {"range": [61, 83], "feeling": "foggy", "evidence": ["e"], "failure_modes": ["f"],
             "tradeoffs": ["t"], "rollback_signals": ["b"], "risks": ["r"]}  # fmt: skip


@pytest.mark.req("D102")
@pytest.mark.parametrize("node", NODES)
def test_each_node_is_told_its_own_answer_and_all_of_that_is_read(node: Node) -> None:
    told = resource("agents", f"magi-{node}.md").read_text("utf-8").partition("# Your answer")[2]
    answer = told[told.index("{") : told.index("\n\nAPPROVE:")]
    top = re.sub(r"\[[^\[\]]*\]|\{[^{}]*\}", "", re.sub(r"\{[^{}]*\}", "", answer[1:]))
    keys = set(re.findall(r'"(\w+)":', re.sub(r'"caveats": \{.*', '"caveats":', top, flags=re.S)))
    assert keys == OF_ALL | OWN[node]
    assert re.findall(r'"reasoning": "(\d+ to \d+ words)', answer) == [
        *filter(None, [WORDS.get(node)])
    ]
    for key in ("preconditions", "risks", "mitigations", "owner", "deadline", "monitoring",
                "review_date"):  # fmt: skip
        assert f'"{key}":' in answer.partition('"caveats"')[2]
    plain = OWN[node] | OF_ALL - {"node", "verdict", "confidence", "caveats"}
    given = {key: DIFFERENT.get(key, f"This is {key}.") for key in plain}
    found = read(node, said("APPROVE", 70, **given))
    assert found.vote and not found.repairs
    for key, value in given.items():
        if key == "range":
            assert [found.vote.low, found.vote.high] == value
        else:
            kept = getattr(found.vote, key)
            assert (list(kept) if isinstance(kept, tuple) else kept) == value
