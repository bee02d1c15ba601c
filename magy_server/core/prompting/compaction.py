"""Compaction decides what part of a conversation that is too long goes, and what must stay known.

The model writes the summary, but what it may not forget does not depend on it: the person's own
words, what the person refused, the plan, the files changed and what runs in the background are
taken from the log. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from magy_server.core.agents.mail import Mailed
from magy_server.core.events import Compacted, Prompted, Replied
from magy_server.core.prompting.framing import framed
from magy_server.core.prompting.sizes import decisions, refusals, size, words
from magy_server.core.state.state import State
from magy_server.core.values import Call

TAIL = 20_000
"""Tokens of the newest conversation that are kept as they are, at most; a fifth of the model's
window if that is less."""
WORDS = 16_000
"""The most characters of the person's words that are carried over; of a single prompt, a quarter of
that."""
LISTED = 50

_MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]", "cancelled": "[-]"}


def due(state: State) -> bool:
    """Returns whether to compact: the conversation fills what the briefing allows of the model's
    window, and it helps to drop the older part. When agent and tools alone fill the window, each
    round would be compacted again."""
    limit = state.conversation.briefing.compact_at if state.conversation.briefing else 0
    if not limit or state.conversation.context < limit:
        return False
    freed = sum(map(size, state.conversation.items[: cut(state)])) // 4
    return freed >= limit // 4


def possible(state: State) -> bool:
    """Returns whether there is something that may go."""
    return any(isinstance(item, Replied) for item in state.conversation.items[: _end(state)])


def compacted(state: State) -> bool:
    """Returns whether the conversation begins with a summary."""
    return any(isinstance(item, Compacted) for item in state.conversation.items[:1])


def cut(state: State, *, all: bool = False) -> int:
    """Returns how many items of the conversation go: all that lie before the newest `TAIL`, or with
    `all` whatever may go. What the model has not answered yet never goes. It returns 0 when no
    reply would go."""
    window = state.conversation.briefing.window if state.conversation.briefing else 0
    room = min(TAIL, window // 5 or TAIL) * 4
    items = state.conversation.items
    end = found = _end(state)
    for at in range(len(items) - 1, -1 if not all else len(items), -1):
        room -= size(items[at])
        if room < 0:
            break
        if at <= end and isinstance(
            items[at], Prompted | Mailed | Replied
        ):  # no boundary inside a round
            found = at
    return found if any(isinstance(item, Replied) for item in items[:found]) else 0


def _end(state: State) -> int:
    """Returns where what must stay begins: at the latest reply, if the model has not seen the
    results of its calls, or at the prompts that came after it."""
    items = state.conversation.items
    at = len(items)
    for index in range(at - 1, -1, -1):
        item = items[index]
        if isinstance(item, Replied):
            calls = any(isinstance(part, Call) for part in item.content)
            return index if calls else at
        if isinstance(item, Prompted | Mailed):
            at = index
    return at


def digest(state: State, dropped: int) -> str:
    """Returns what the log itself knows of the part that goes, as Markdown for the model."""
    talk = state.conversation
    gone = talk.items[:dropped]
    told = [*talk.told, *(words(item) for item in gone if isinstance(item, Prompted))]
    files = [f"{path}: {what}" for path, what in state.history.files.items()]
    sections = [
        ("What the user said, in their words", _said(told)),
        ("What the user refused", _bounded([*talk.refused, *refusals(gone)])),
        ("What the user did with your changes", _bounded([*talk.decided, *decisions(gone)])),
        ("The plan", [f"{_MARKS[task.status]} {task.content}" for task in talk.plan]),
        ("Files changed in this session", _bounded(files)),
        ("Still running in the background", [f"call {call}" for call in state.background]),
    ]
    return "\n\n".join(
        f"## {title}\n" + "\n".join("- " + line.strip().replace("\n", "\n  ") for line in lines)
        for title, lines in sections
        if lines
    )


def replacement(summary: str, known: str) -> str:
    parts = ["The earlier part of this conversation was compacted. What follows replaces it."]
    if summary.strip():
        parts.append(f"# Summary\n\n{summary.strip()}")
    else:
        parts.append("No summary could be written; look at the files before you continue.")
    if known:
        parts.append(f"# From the log\n\n{known}")
    return framed("compacted", "\n\n".join(parts))


def _said(told: Sequence[str]) -> list[str]:
    """Returns the person's words. The first prompt says what it is all about, the newest what holds
    now; what lies between is left out first."""
    texts = [text if len(text) <= WORDS // 4 else f"{text[: WORDS // 4]} [...]" for text in told]
    kept: list[str] = []
    room = WORDS - len(texts[0]) if texts else 0
    rest = list(enumerate(texts))[1:]
    for _, text in reversed(rest):
        room -= len(text)
        if room < 0:
            kept.append(f"({len(rest) - len(kept)} prompts left out here)")
            break
        kept.append(text)
    return [*texts[:1], *reversed(kept)]


def _bounded(lines: list[str]) -> list[str]:
    left = len(lines) - LISTED
    return [f"({left} earlier ones left out)", *lines[-LISTED:]] if left > 0 else lines
