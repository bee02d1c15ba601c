"""Which requests ask for a vote of three nodes, and which only talk of three of something."""

from __future__ import annotations

from pathlib import Path

import pytest

from magy_server.core.skills.deliberation_words import asks_for_vote
from magy_server.core.skills.fitting import attached
from magy_server.core.skills.skill import Skill

LINES = (Path(__file__).parent / "ordinary_sentences.txt").read_text("utf-8").splitlines()
ORDINARY = [line for line in LINES if line and not line.startswith("#")]
MAGI = Skill(name="magi", description="Votes.", body="Vote.")


@pytest.mark.req("D088", "D089", "D090")
@pytest.mark.parametrize(
    "request_",
    [
        "用MAGI決定要不要換資料庫", "MAGI投票:要不要上線?", "請 MAGI 審議這個方案",
        "MAGI分析這個設計", "三台電腦:我們該不該重寫?", "用三個節點投票決定要不要上線",
        "請做多角度分析投票", "三腦審議:要不要延期", "三電腦審議這個決定",
        "用MAGI决定要不要重写", "MAGI投票:上线吗", "三台电脑投票:要不要换框架",
        "多角度分析:这个方案要不要做",
        "I want a MAGI decision on the rewrite.", "magi vote: ship it?", "Magi analyze this plan",
        "Let us have magi deliberate whether to split the repository.",
        "Three nodes: should we drop Python 3.11?", "Give me a triple perspective verdict on this.",
        "Ask MAGI whether to merge.",
    ],
)  # fmt: skip
def test_each_trigger_in_chinese_and_english_is_found(request_: str) -> None:
    assert asks_for_vote(request_)


@pytest.mark.req("D091", "D092", "D093")
@pytest.mark.parametrize(
    "request_",
    [
        "この移行をマギ決定にかけて", "マギ審議をお願いします", "マギ投票:公開する?",
        "이 변경을 마기 결정으로", "마기 심의: 배포할까요?",
        "I want a three-way analysis of this, and a vote.",
        "Do a structured multi-perspective deliberation on the migration.",
        "Judge this with a devil's advocate, logic and care analysis.",
        "다각도 분석 후 투표로 결정해 줘", "多角的に審議して、裁決を出して",
    ],
)  # fmt: skip
def test_each_trigger_in_other_languages_is_found(request_: str) -> None:
    assert asks_for_vote(request_)


def test_two_hundred_ordinary_sentences_start_nothing() -> None:
    assert len(set(ORDINARY)) == len(ORDINARY) == 200
    assert [line for line in ORDINARY if asks_for_vote(line)] == []
    assert not asks_for_vote("```\nmagi vote\n```\nWhat does this print?")
    assert not asks_for_vote("> MAGI decision\n\nWhat does this quotation mean?")


def test_what_asks_for_a_vote_brings_the_skill_along_and_says_why() -> None:
    (fit,) = attached([MAGI], "Magi vote: do we ship?", [])
    assert fit.skill is MAGI and fit.why == 'the prompt has "Magi vote"'
    assert not attached([MAGI], "Fix the three nodes.", [])
    assert not attached([MAGI.model_copy(update={"name": "other"})], "Magi vote: ship?", [])
