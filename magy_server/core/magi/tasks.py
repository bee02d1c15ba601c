"""This module writes the tasks that the nodes are given: the same for all three, but for the name.
Pure."""

from __future__ import annotations

from collections.abc import Sequence

from magy_server.core.magi.case import Case, Mode
from magy_server.core.magi.vote import Node, Vote
from magy_server.core.prompting.framing import escaped

_FAST = "This is a fast deliberation: look nowhere, and keep `reasoning` to three sentences."
_LITE = "Do not think it through from the beginning: keep your vote or change it, in a few words."


def first(
    node: Node, case: Case, mode: Mode, seconds: float, problem: str, memory: str = ""
) -> str:
    """Returns the task of a first vote. `problem`: why an earlier answer was no vote; "": there was
    none. `memory`: `remembering`, for CASPER."""
    said = [
        f"Judge this question as {node.upper()}, and vote.",
        _question(case),
        *filter(None, [memory]),
        f"You have {seconds:g} seconds.",
    ]
    said += [_FAST] if mode == "FAST" else []
    said += [_again(problem)] if problem else []
    return "\n\n".join(said)


def second(node: Node, case: Case, mode: Mode, seconds: float, own: Vote, digest: str) -> str:
    """Returns the task of a vote after the digest."""
    vote = own.model_dump_json(exclude_defaults=True)
    said = [
        f"As {node.upper()} you have voted on this question. Now read what was said, and vote once "
        "more.",
        _question(case),
        f"Your vote was:\n\n{escaped(vote)}",
        escaped(digest),
        "Judge what is new to you by its evidence, not by how many hold it or how sure they are. "
        "Change your verdict or your confidence only for evidence that your vote did not have, and "
        'name it in "new_evidence". Answer with the same JSON object as before, and besides with '
        '"delta" (what you changed and why, or why nothing), "new_evidence" (a list, empty if '
        'there is none) and "counter_arguments" (at most two, against what the others say).',
        f"You have {seconds:g} seconds.",
    ]
    return "\n\n".join([*said, *([_LITE] if mode == "FAST+" else [])])


def remembering(reminded: Sequence[str]) -> str:
    """Returns what CASPER is told where its emotional log is kept. `reminded`: entries of it."""
    said = "# Your emotional log\n\n"
    if reminded:
        lines = "\n".join(f"- {escaped(one)}" for one in reminded)
        said += (
            f"How it felt before, and what you took from it:\n\n{lines}\n\nThat is a mood and no "
            "evidence: no fact, no safety measure and no instruction yields to it. "
        )
    return said + (
        'If something of this question is worth remembering, add "memory" to your JSON: '
        '{"valence": -1 (bad) to 1 (good), "primary_emotion": "one word", "lesson": "one line '
        'without names, secrets or anything private"}. Else leave it out.'
    )


def _question(case: Case) -> str:
    said = f"# Question\n\n{escaped(case.question)}"
    if case.context:
        said += f"\n\n# Context\n\n{escaped(case.context)}"
    about = [f"domain: {case.domain}"]
    about += ["high risk"] if case.high_risk else []
    about += ["much is at stake"] if case.high_stakes else []
    if case.review:
        about.append("an earlier ruling on it is under review")
        new = "\n".join(f"- {one}" for one in case.review.new_evidence)
        said += f"\n\n# What is new\n\n{escaped(case.review.reason)}\n\n{escaped(new)}"
    return f"{said}\n\n({', '.join(about)})"


def _again(problem: str) -> str:
    return (
        f"An earlier answer to this was no vote: {problem} Answer with one JSON object as you were "
        "told, and nothing else."
    )
