"""Before a node votes again, it reads what all three have said, and cannot tell who said what.

The votes are named A, B and C, in an order that was drawn by lot. Reasons and evidence stand apart
from them, mixed. Words by which a node is known, ranges of numbers, Compass and Lamp are taken out.
Pure.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence

from magy_server.core.magi.deliberation import Deliberation, by_node
from magy_server.core.magi.vote import Vote
from magy_server.regex import regex

LETTERS = "ABC"
TOP = 3
"""Pieces of evidence that are shown of each."""
LONGEST = 240
"""Characters of a piece."""
_ENGLISH = (
    r"melchior|balthasar|casper|magi|(?:as )?(?:a|the|your) (?:scientist|mother|woman)|"
    r"scientist|scientific(?:ally)?|mother(?:ly|s)?|maternal|woman(?:ly)?|women|node|"
    r"lamp|compass|steady|foggy|spinning|bright|dim|flickering|intuiti\w+|"
    r"gut|heart(?:felt|s)?|feel(?:s|ing|ings)?|felt|emotion\w*|soul|protect\w*|safeguard\w*|"
    r"nurtur\w*|vulnerab\w*|care|caring|hypothes[ie]s|falsif\w+|empiric\w*|probabilit\w+|"
    r"likelihood|bayes\w*|statistic\w*|quantif\w*|logic\w*|rational\w*|children|famil(?:y|ies)"
)
_GERMAN = (
    r"wissenschaftl\w+|mutter|mütter\w*|frau|weiblich\w*|knoten|lampe|kompass|neblig|flackern\w*|"
    r"gefühl\w*|fühl\w*|bauchgefühl|herz\w*|schütz\w*|schutz\w*|beschütz\w*|fürsorg\w*|"
    r"verletzlich\w*|hypothese\w*|empirisch\w*|wahrscheinlich\w*|statisti\w+|logik|logisch\w*|"
    r"kinder\w*|familie\w*"
)
_FRENCH = (
    r"scientifi\w+|mère|maternel\w*|femme|nœud|lampe|boussole|brumeux|vacill\w+|ressen\w+|"
    r"sentiment\w*|cœur|émotion\w*|protég\w+|prote[cg]\w+|vulnérab\w*|hypothèse\w*|empiri\w+|"
    r"probabilité\w*|statisti\w+|logique\w*|enfants?|familles?"
)
_SPANISH = (
    r"científic\w+|madre|materna\w*|mujer|nodo|lámpara|brújula|nebulos\w+|parpade\w+|siento|"
    r"sentimiento\w*|corazón|emoci\w+|proteg\w+|hipótesis|empíric\w+|probabilidad\w*|"
    r"estadístic\w+|lógic\w+|intuici\w+|niñ[oa]s?|familias?"
)
_CHINESE = (
    r"科[学學]家?|[母親亲]{2}|[妈媽]+|女[人性]|[節节][点點]|[灯燈]|指南[针針]|[羅罗][盤盘]|迷[雾霧]|[闪閃][烁爍]|感[觉覺受]|"
    r"情[感绪緒]|直[觉覺]|[內内]心|保[护護]|呵[护護]|脆弱|假[设設说說]|概率|[機几]率|[經经][验驗]|[實实][证證]|"
    r"[統统][計计]|[邏逻][輯辑]|孩子|家庭"
)
_PERSONA_WORDS = (
    rf"(?:\b(?:{'|'.join((_ENGLISH, _GERMAN, _FRENCH, _SPANISH))})\b(?:-?[123]\b)?|{_CHINESE})"
)
"""Whoever thinks in one of the three ways says these words, in whatever language."""
_PERSONA = regex(_PERSONA_WORDS, re.IGNORECASE)
_TO = r"(?:-|–|—|~|～|to|bis|à|hasta|到|至|\.\.)"
_RANGE = regex(
    rf"\b\d+(?:[.,]\d+)?\s*%?\s*{_TO}\s*\d+(?:[.,]\d+)?\s*%?|\b\d+(?:[.,]\d+)?\s*[%％]|"
    r"百分之[\d一二三四五六七八九十]+|\b[pP]\s*[=<>≈]\s*0?\.\d+|\b(?:CI|sigma|σ)\b|±\s*\d+(?:[.,]\d+)?"
)
_LABEL = regex(r"(?i)[\[(]?\b(?:vote|voice|node|peer)\s+[abc123]\b[\])]?:?")
_EMOJI = regex(r"[\u2600-\u27bf\U0001f000-\U0001faff\ufe0f]")
_BLANK = regex(r"\s+")
_CLAUSE = regex(r"[,:;!?…。，：；！？\n]+|\.(?=\s|\Z)|\s[-–—]+\s")
_OPENING = regex(
    rf"^\W*(?:\w+\W+){{0,4}}?{_PERSONA_WORDS}(?:\s+(?:as if|as though|that|like)\b)?", re.IGNORECASE
)
_MARKS = " \t.!*_#>-–—()[]{}\"'`“”"
OPENING = "The votes so far, in an order drawn by lot. Yours is one of them."


def anonymous(text: str) -> str:
    """Returns the text without what tells who wrote it, in small letters and without marks of its
    own: also how somebody writes tells who they are."""
    for pattern in (_LABEL, _RANGE, _EMOJI):
        text = pattern.sub(" ", text)
    clauses = [one for one in _CLAUSE.split(text) if one.strip()]
    plain = [one for one in clauses if not _PERSONA.search(one)]
    if not plain:  # then what follows the word, where it introduces the rest
        plain = [_PERSONA.sub(" ", _OPENING.sub("", one)) for one in clauses]
    text = ", ".join(filter(None, (_BLANK.sub(" ", one).strip(_MARKS) for one in plain)))
    return text.casefold()[:LONGEST].strip()


def digest(deliberation: Deliberation) -> str:
    """Returns what every node reads. It depends on the first votes only."""
    ballots = by_node(deliberation.ballots)
    votes = [vote for node in deliberation.order if (vote := ballots[node].vote)]
    lines = [OPENING, ""]
    lines += [f"{letter}: {vote.verdict}, {vote.tier}"
              for letter, vote in zip(LETTERS, votes, strict=False)]  # fmt: skip
    pieces = dict.fromkeys(piece for vote in votes for piece in _evidence(vote))
    mixed = sorted(pieces, key=lambda piece: _lot(f"{deliberation.id} {piece}"))
    lines += ["", "Evidence, of all of them, mixed:", *(f"- {piece}" for piece in mixed)]
    lines += ["", "Where they disagree:", *(f"- {one}" for one in _disagreements(votes))]
    return "\n".join(lines)


def _evidence(vote: Vote) -> Iterator[str]:
    """Of each node, the first pieces of which something is left."""
    found = (anonymous(one) for one in (*vote.evidence, *vote.failure_modes))
    yield from [one for one in found if len(one) > 3][:TOP]


def _disagreements(votes: Sequence[Vote]) -> Iterator[str]:
    if len({vote.side for vote in votes}) > 1:
        letters = {side: [LETTERS[n] for n, vote in enumerate(votes) if vote.side == side]
                   for side in ("yes", "no", "none")}  # fmt: skip
        said = {"yes": "for it", "no": "against it", "none": "for neither"}
        yield "; ".join(f"{' and '.join(some)}: {said[side]}" for side, some in letters.items()
                        if some)  # fmt: skip
    conditional = [LETTERS[n] for n, vote in enumerate(votes) if vote.verdict == "CAVEATED"]
    if conditional and len(conditional) < len(votes):
        yield f"{' and '.join(conditional)}: only under conditions"
    if len({vote.tier for vote in votes}) > 1:
        yield "how sure one can be"
    if len({(vote.side, vote.verdict, vote.tier) for vote in votes}) == 1:
        yield "nowhere"


def _lot(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
