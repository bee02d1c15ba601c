"""Which skills a request calls for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from magy_server.config.shipped import shipped
from magy_server.core.skills.fitting import ENOUGH, MOST, attached, fits
from magy_server.core.skills.skill import Capability, Skill


def skill(name: str, *phrases: str, files: tuple[str, ...] = ()) -> Skill:
    capability = Capability(phrases=phrases, files=files)
    return Skill(name=name, description="x", body="x", capability=capability)


def test_phrases_and_files_count_and_are_told() -> None:
    release = skill("release", "release notes", "tag", files=("CHANGELOG*", "docs/*"))
    (fit,) = fits([release], "Write the Release\n notes, please", ["CHANGELOG.md", "a.py"])
    assert (fit.score, fit.enough) == (1.0, True)
    assert fit.because == ('"release notes"', "CHANGELOG.md (CHANGELOG*)")
    assert fit.why == 'the prompt has "release notes", CHANGELOG.md (CHANGELOG*)'
    assert not fits([release], "stage the vintage notes of a release", ["b.py"])


def test_only_whole_words_count_and_one_phrase_is_not_enough() -> None:
    one = skill("one", "tag", "deploy")
    (fit,) = fits([one], "what is a tag? stage", ())
    assert not fit.enough and not attached([one], "what is a tag?", ())


def test_a_tool_and_a_skill_without_capability_are_never_attached() -> None:
    tool = skill("tool", "a", "b").model_copy(update={"kind": "tool"})
    plain = Skill(name="plain", description="a b", body="a b")
    assert not attached([tool, plain], "a b", ())


def test_short_phrases_long_texts_and_skills_of_others_bring_nothing_unasked() -> None:
    assert not attached([skill("one", "a", "is")], "is this a test", ())
    fits_well = skill("two", "deploy", "release")
    assert attached([fits_well], "deploy the release", ())
    for change in ({"body": "x" * 20_001}, {"source": "installed"}):
        assert not attached([fits_well.model_copy(update=change)], "deploy the release", ())


words = st.sampled_from(["tag", "deploy", "notes", "tags", "re-tag", "the"])
skills = st.lists(
    st.builds(
        lambda number, phrases: skill(f"s{number}", *phrases),
        st.integers(0, 99),
        st.lists(words, max_size=4, unique=True),
    ),
    max_size=6,
    unique_by=lambda one: one.name,
)


@given(skills, st.lists(words, max_size=8))
def test_the_best_are_attached_whatever_their_order(found: list[Skill], request: list[str]) -> None:
    said = " ".join(request)
    alone = {*said.split(), *said.replace("-", " ").split()}
    chosen = attached(found, said, ())
    assert chosen == attached(found[::-1], said, ())
    assert len(chosen) <= MOST and all(fit.score >= ENOUGH for fit in chosen)
    naive = {
        one.name: sum(0.5 for p in one.capability.phrases if p in alone)
        for one in found
        if one.capability
    }
    assert {fit.skill.name: fit.score for fit in fits(found, said, ())} == {
        name: score for name, score in naive.items() if score
    }
    left = [naive[name] for name in naive if name not in {fit.skill.name for fit in chosen}]
    if len(chosen) == MOST:
        assert all(score <= chosen[-1].score for score in left)
    else:
        assert all(score < ENOUGH for score in left)


ORDINARY = """
fix this bug
add a button to the settings page
rename foo to bar everywhere
why is this slow?
explain this function
write a test for parse_date
what does this regex do?
commit this
update the README
make the build pass
review my change
use a dict instead of two lists
delete the unused imports
add type hints
translate the error messages into German
warum ist der Test rot?
pourquoi cette fonction est-elle lente ?
""".strip().splitlines()


def test_ordinary_requests_bring_no_bundled_skill_along() -> None:
    there = shipped().skills.values()
    brought = {one: [f.skill.name for f in attached(there, one, ())] for one in ORDINARY}
    assert not {one: names for one, names in brought.items() if names}
