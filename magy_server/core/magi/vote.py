"""A vote is what one of the three nodes says of a question: its verdict, how sure it is, and why.
Pure."""

from typing import Literal, get_args

from magy_server.core.values import Value

Node = Literal["melchior", "balthasar", "casper"]
NODES: tuple[Node, ...] = get_args(Node)
TITLES: dict[Node, str] = {
    "melchior": "MELCHIOR-1 (Scientist)",
    "balthasar": "BALTHASAR-2 (Mother)",
    "casper": "CASPER-3 (Woman)",
}
Verdict = Literal["APPROVE", "CAVEATED", "REJECT", "ABSTAIN"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
Side = Literal["yes", "no", "none"]
SIDES: dict[Verdict, Side] = {
    "APPROVE": "yes", "CAVEATED": "yes", "REJECT": "no", "ABSTAIN": "none",
}  # fmt: skip
"""What a verdict is for: a caveated yes is a yes with conditions."""
Tier = Literal["High", "Medium", "Low"]
LEAST: dict[Tier, int] = {"High": 76, "Medium": 41, "Low": 0}
"""The lowest confidence, in percent, of each tier."""
Feeling = Literal["steady", "foggy", "spinning", "bright", "dim", "flickering"]
FEELINGS: dict[str, Tier] = {
    "steady": "High", "foggy": "Medium", "spinning": "Low",
    "bright": "High", "dim": "Medium", "flickering": "Low",
}  # fmt: skip
"""CASPER's Compass and Lamp, and the tiers that they stand for."""


class Mitigation(Value):
    """What makes a risk smaller, who does it, and by when."""

    action: str
    owner: str
    deadline: str


class Caveats(Value):
    """What a caveated yes depends on. Where a precondition is not met, it is a no."""

    preconditions: tuple[str, ...]
    risks: tuple[str, ...] = ()
    mitigations: tuple[Mitigation, ...] = ()
    monitoring: str = ""
    review_date: str = ""


class Memory(Value):
    """What CASPER wants to remember of a question: how it felt, from -1 (bad) to 1 (good), in one
    word, and what was learned, on one line."""

    valence: float
    primary_emotion: str
    lesson: str


class Vote(Value):
    """`confidence`: percent. `summary`: two or three sentences, for people. `low` and `high`:
    MELCHIOR's range; `protection` and `risks`: BALTHASAR's; `feeling`, `stakes`, `last_words` and
    `memory`: CASPER's. `delta`, `new_evidence` and `counter_arguments`: of a vote after the digest.
    """

    verdict: Verdict
    confidence: int
    summary: str
    reasoning: str = ""
    evidence: tuple[str, ...] = ()
    failure_modes: tuple[str, ...] = ()
    next_step: str = ""
    tradeoffs: tuple[str, ...] = ()
    rollback_signals: tuple[str, ...] = ()
    caveats: Caveats | None = None
    low: int | None = None
    high: int | None = None
    protection: str = ""
    risks: tuple[str, ...] = ()
    feeling: Feeling | None = None
    stakes: str = ""
    last_words: str = ""
    memory: Memory | None = None
    delta: str = ""
    new_evidence: tuple[str, ...] = ()
    counter_arguments: tuple[str, ...] = ()

    @property
    def side(self) -> Side:
        return SIDES[self.verdict]

    @property
    def tier(self) -> Tier:
        return tier(self.confidence)


def tier(confidence: int) -> Tier:
    """Returns the name of a confidence in percent."""
    return next(name for name, least in LEAST.items() if confidence >= least)
