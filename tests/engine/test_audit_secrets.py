"""What looks like a secret is taken out of what the audit keeps of commands and titles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magy_server.listeners import audit
from magy_server.listeners.audit import without_secrets


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("OPENAI_API_KEY=abc make", "OPENAI_API_KEY=… make"),
        ("run --Password hunter2 now", "run --Password … now"),
        ("curl -u me:hunter2 host", "curl -u me:… host"),
        ("git clone https://me:hunter2@host/x", "git clone https://me:…@host/x"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer …"),
        ("say sk-abcdefgh12 AKIAABCDEFGH1234", "say … …"),
        ("pa\u017f\u017fword=hunter2", "pa\u017f\u017fword=…"),  # the pattern ignores case
        ("cargo test --quiet", "cargo test --quiet"),
    ],
)
def test_the_usual_spellings_are_found(text: str, kept: str) -> None:
    assert without_secrets(text, "…") == kept


_PARTS = st.sampled_from([
    "api_key", "ToKen", "secret", "password", "PASSWD", "pwd", "credential", "auth", "bearer ",
    "Basic ", " -u ", "://", "sk", "PK", "ghp", "gho", "ghs", "github_pat", "glpat", "xoxb", "AKIA",
    "eyJ", "=", ":", " ", "--", "-", '"', "@", "/", "\u017f", "\u212a", "abcdefgh", "1",
])  # fmt: skip


@given(st.lists(_PARTS, max_size=8).map("".join))
def test_a_text_without_its_words_has_nothing_that_the_pattern_finds(text: str) -> None:
    whole = audit._SECRET.sub(lambda found: f"{found.group(1) or ''}…", text)
    assert without_secrets(text, "…") == whole
