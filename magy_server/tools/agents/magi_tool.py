"""With this tool an agent has a question judged by three nodes, whose votes come to a ruling."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, ValidationError

from magy_server.core.errors import ToolError
from magy_server.core.text.sanitizing import shortened
from magy_server.core.tool import FactContext, Gathered, ToolContext, previewed, run_again
from magy_server.core.tool import Result as Outcome
from magy_server.core.values import Evidence, Facts, Resource
from magy_server.tools.shipped import tool

if TYPE_CHECKING:
    from magy_server.core.magi.case import Case
    from magy_server.core.magi.deliberation import Deliberation

# The words of `core/magi`, which is only imported when somebody deliberates.
Kind = Literal[
    "decision", "fact", "live_data", "taste", "urgent", "one_person", "obvious", "trivial",
    "medical", "guilt", "identity", "harm", "privacy", "malware",
]  # fmt: skip
Domain = Literal[
    "general", "technical", "legal", "medical", "financial", "security", "mental_health"
]
Mode = Literal["FAST", "FAST+", "DEEP"]
TITLE = 80


def _case(arguments: dict[str, Any]) -> Case:
    """Raises ToolError: what is wrong with the arguments, or why the nodes are not asked."""
    from magy_server.core.magi.recorded import case_of
    from magy_server.core.magi.refusals import refusal

    try:
        case = case_of(arguments)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ToolError(f"deliberate: {where}: {first['msg']}") from None
    if not case.question.strip():
        raise ToolError("deliberate: question is empty; say what is to be decided.")
    if found := refusal(case.question, arguments["kind"], case.time_budget):
        then = "Tell the person so." if found.declined else "Answer it yourself, in a few words."
        raise ToolError(f"{found.sentence} {then}")
    return case


async def _facts(ctx: FactContext, **arguments: Any) -> Gathered:
    """One question covers all three nodes, and names what they are expected to take."""
    from magy_server.core.magi.case import mode
    from magy_server.core.magi.panel import said
    from magy_server.core.magi.recorded import agent_of

    case = _case(arguments)
    if case.review:
        await ctx.team.may_review(case.review)
    panel = await ctx.team.panel(case)
    subjects = ["review a ruling"] if case.review else []
    for node, model in panel.models.items():
        await ctx.team.check(agent_of(node), model, "")
        subjects.append(f"spawn {agent_of(node)}")
    name, why = mode(case)
    facts = Facts(
        resources=tuple(Resource(kind="agent", subject=subject) for subject in subjects),
        title=f"MAGI, {name}: {shortened(case.question, TITLE)} ({said(case, panel)})",
    )
    lines = [f"mode: {name}, since {why}", f"domain: {case.domain}"]
    lines += [f"{node}: {model}" for node, model in panel.models.items()]
    if case.review:
        lines += [f"review of: {case.review.of}", f"reason: {case.review.reason}"]
        lines += [f"new: {one}" for one in case.review.new_evidence]
    memories = await ctx.team.memories(case)
    lines += [f"CASPER is reminded of: {one}" for one in memories.lines]
    lines += memories.notes
    shown = "\n".join([*lines, "", case.question, *(["", case.context] if case.context else [])])
    return previewed(facts, shown, code=True)


# run again, it goes on: it finds the votes that there are
@tool(
    effect="agent", key="agent", facts=_facts, recover=run_again, waits=True, parental=True,
    seldom=True,
)  # fmt: skip
async def deliberate(
    ctx: ToolContext,
    question: Annotated[str, "What is to be decided, as one question of yes or no, not leading"],
    kind: Annotated[
        Kind,
        "What is asked, honestly: decision; a fact, live_data, taste, what concerns one_person "
        "only, what is obvious or trivial (no vote is needed); life and death of a person "
        "(medical), guilt or sentence, identity or consent, harm, privacy, malware (declined)",
    ],
    context: Annotated[str, "All that the nodes need to know; they see nothing else"] = "",
    domain: Annotated[Domain, "What the question is about"] = "technical",
    domain_confidence: Annotated[float, "How sure you are of the domain", Field(ge=0, le=1)] = 1.0,
    high_stakes: Annotated[bool, "It is hard to undo, or may harm people"] = False,
    complexity: Literal["simple", "medium", "complex"] = "complex",
    time_budget: Annotated[float, "Seconds that the person has; 0: they did not say"] = 0,
    mode: Annotated[Mode | None, "Only if the person chose one"] = None,
    review_of: Annotated[str, "The id of a ruling here that the person wants reviewed"] = "",
    review_reason: str = "",
    new_evidence: Annotated[tuple[str, ...], "What the votes did not have"] = (),
    felt: Annotated[bool, "What is new is how people take it"] = False,
) -> Outcome:
    """Put a question to MAGI: three agents that know nothing of each other judge it, in three ways
    of thinking, and their votes come to a ruling by fixed rules. Use it only when the person asks
    for MAGI, or for several perspectives that vote. It takes up to four minutes. The person decides
    what becomes of the ruling: give them the report as it is, whole, and do not act on it."""
    from magy_server.core.magi.card import as_text, card

    case = _case({
        "question": question, "kind": kind, "context": context, "domain": domain,
        "domain_confidence": domain_confidence, "high_stakes": high_stakes,
        "complexity": complexity, "time_budget": time_budget, "mode": mode,
        "review_of": review_of, "review_reason": review_reason, "new_evidence": new_evidence,
        "felt": felt,
    })  # fmt: skip
    told: set[str] = set()

    def moved(now: Deliberation) -> None:
        ctx.show("deliberation", as_text(card(now)))
        for line in _progress(now):
            if line not in told:
                told.add(line)
                ctx.emit(f"{line}\n")

    memories = await ctx.team.memories(case, ctx.call)
    await ctx.started(Evidence(reminded=memories.lines))
    done = await ctx.team.deliberate(ctx.call, case, memories, moved)
    return _outcome(done, await ctx.team.remember(done, memories))


def _outcome(done: Deliberation, remembered: Sequence[str]) -> Outcome:
    from magy_server.core.magi.card import as_text, card
    from magy_server.core.magi.reports import markdown, text
    from magy_server.core.magi.ruling import canonical, encoded, rule

    ruling = canonical(rule(done))
    notes = "".join(f"\n{one}\n" for one in remembered)
    return Outcome(
        markdown(ruling) + notes, text(ruling) + notes, output=encoded(ruling),
        deliberation=as_text(card(done)),
    )  # fmt: skip


def _progress(now: Deliberation) -> Iterator[str]:
    """What has happened so far, a line each."""
    for ballot in now.ballots:
        for stage, tries in (("first", ballot.first), ("second", ballot.second)):
            for number, one in enumerate(tries, 1):
                if one.outcome != "live":
                    came = one.vote.verdict if one.vote else f"{one.outcome}: {one.problem}"
                    again = f" (try {number})" if number > 1 else ""
                    yield f"{ballot.node.upper()}, {stage} vote{again}: {came}"
    yield now.state
