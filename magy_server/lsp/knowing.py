"""The verbs around what an editor shows and knows, put together for a connection."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from magy_server.api.engine import Engine
from magy_server.lsp.completion import PromptVerbs
from magy_server.lsp.context import ContextVerbs
from magy_server.lsp.doctor import DoctorVerbs, Examine
from magy_server.lsp.reach import Reach
from magy_server.lsp.workspace import LiveEditor
from magy_server.tools.file_index import FileIndex, Spawn
from magy_server.tools.kit import USUAL


def knowing(
    engine: Engine,
    editor: LiveEditor,
    reach: Reach,
    contexts: ContextVerbs,
    spawn: Spawn,
    examine: Callable[[], Examine],
) -> Mapping[str, object]:
    """By the first part of the methods' names."""
    return {
        "context": contexts,
        "prompt": PromptVerbs(engine, editor, reach, FileIndex(USUAL.grep_program, spawn)),
        "doctor": DoctorVerbs(examine, reach.roots),
    }
