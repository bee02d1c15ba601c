"""`emacs_eval` runs code in the person's own Emacs, with all that it can reach."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from magy_server.core.errors import EditorError, ToolError
from magy_server.core.knowledge import Evaluation
from magy_server.core.ports import Editor
from magy_server.core.text.sanitizing import printable
from magy_server.core.tool import FactContext, Gathered, Result, ToolContext, previewed
from magy_server.core.values import Facts, Resource
from magy_server.tools.shell.output import clean
from magy_server.tools.shipped import tool

SECONDS = 10.0
SHOWN = 8_000
"""Characters of the value, and of what was written, that the model gets."""
END = " ⏎ "
"""In a title: here a line ends, and with it a comment."""
LINES, WIDTH = 8, 100
"""Lines of the code that a title shows, and characters of each."""


async def _facts(ctx: FactContext, code: str, **_: Any) -> Gathered:
    """What code will do cannot be told from its text, so no pattern allows it, and no answer for
    one is remembered for another. The person is shown all of it."""
    _refuse_without_emacs(ctx.editor)
    lines = [printable(" ".join(line.split())) for line in code.strip("\n").split("\n")]
    found = Resource(kind="exec", subject=END.join(lines), opaque=True)
    count = f" ({len(lines)} lines)" if len(lines) > 1 else ""
    title = f"Evaluate in Emacs{count}: {_shortened(lines)}"
    return previewed(Facts(resources=(found,), title=title), code, code=True)


@tool(effect="exec", key="emacs_eval", kind="execute", facts=_facts, needs="eval", seldom=True)
async def emacs_eval(
    ctx: ToolContext,
    code: Annotated[
        str,
        "Emacs Lisp; several forms are evaluated in order",
        Field(min_length=1, max_length=100_000),
    ],
    timeout: Annotated[float, "Seconds before Magy gives up", Field(gt=0, le=120)] = SECONDS,
) -> Result:
    """Evaluate Emacs Lisp in the user's running Emacs and get the printed value of the last form,
    and the output of `message` and `princ`. Use it to inspect Emacs itself: variables, functions,
    key bindings, hooks, buffers, packages. While it runs the user cannot type, and it must not ask
    anything. Do not edit files with it: such changes are not under review."""
    _refuse_without_emacs(ctx.editor)
    await ctx.started()
    try:
        found = await ctx.editor.ask(Evaluation(code, timeout))
    except EditorError as error:
        raise ToolError(f"{error.message} It is unknown whether the code ran.") from None
    output = _cut(clean(found.output).strip("\n"))
    said = f"\nIt wrote:\n{output}" if output else ""
    if found.error is not None:
        raise ToolError(f"Emacs signals an error: {_cut(clean(found.error))}{said}")
    value = _cut(clean(found.value))
    cut = max(len(found.value), len(found.output)) > SHOWN
    whole = f"{found.value}\n{found.output}".encode("utf-8", "replace") if cut else None
    return Result(for_model=f"{value or 'nil'}{said}", output=whole)


def _refuse_without_emacs(editor: Editor) -> None:
    """A session that an Emacs began may go on without it. Raises ToolError."""
    if "eval" not in editor.knows:
        raise ToolError("No Emacs is connected, so the code did not run.")


def _shortened(lines: Sequence[str]) -> str:
    """All lines, or the first and the last, with a mark where one ends: each has its share, so that
    no long comment hides what comes after it."""
    short = [_middle_out(line) for line in lines]
    if len(short) > LINES:
        half = LINES // 2
        short[half:-half] = [f"[{len(short) - 2 * half} more lines]"]
    return END.join(short)


def _middle_out(line: str) -> str:
    return line if len(line) <= WIDTH else f"{line[: WIDTH // 2]} … {line[-WIDTH // 2 :]}"


def _cut(text: str) -> str:
    if len(text) <= SHOWN:
        return text
    half = SHOWN // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half:,} characters left out ...]\n{text[-half:]}"
