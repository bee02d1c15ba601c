"""This check tells whether inline completion is on here, what it took today, and why it failed."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from magy_server.doctor import project
from magy_server.doctor.finding import Around, Finding, ok, warning

if TYPE_CHECKING:
    from magy_server.api.completions.spending import Day


def check(around: Around) -> list[Finding]:
    settings = project.settings(around)
    day = _today()
    if not settings.completion.enabled:
        said = "Inline completion is off in the settings files; an editor may turn it on."
    else:
        model = settings.completion.model or settings.model.small or "the model of new sessions"
        said = f"Inline completion is on, with {model}."
    if not day.requests:
        return [ok(said)]
    limit = f" of ${settings.completion.day_cost:g}" if settings.completion.day_cost else ""
    requests = f"{day.requests:,} request{'s' * (day.requests > 1)}"
    said += f" Today: {requests}, {day.tokens:,} tokens, ${day.cost:.4f}{limit}."
    if not day.fault:
        return [ok(said)]
    mend = "Do what it says, or set completion.model in magy.toml to a model that answers."
    return [ok(said), warning(f"The latest request for a suggestion failed: {day.fault}", mend)]


def _today() -> Day:
    """As the database has it; nothing where that cannot be read, which its own check says."""
    import sqlite3

    from magy_server.api.completions.spending import Day, stream_of_day
    from magy_server.config import layers
    from magy_server.store import sql

    path = layers.state_dir() / "magy.db"
    if not os.path.exists(path):
        return Day()
    try:
        with project.reading(str(path)) as db:
            info = sql.info(db, stream_of_day(time.time()))
    except sqlite3.Error:
        return Day()
    return Day.of(info.summary) if info else Day()
