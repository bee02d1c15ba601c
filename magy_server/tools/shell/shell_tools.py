"""The shell tools run a command, read the output of one, and end one in the background."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field

from magy_server.core import tool as tools
from magy_server.core.errors import ToolError
from magy_server.core.sandbox import Outcome as Confined
from magy_server.core.sandbox import Sandbox
from magy_server.core.shell.simple_commands import quote
from magy_server.core.text.sanitizing import LINE, shortened
from magy_server.core.tool import FactContext, Gathered, Result, Tool, ToolContext
from magy_server.core.values import Confinement, Evidence, Facts, Resource
from magy_server.dataclass import dataclass
from magy_server.tasks import to_end
from magy_server.tools.shell import facts as shell_facts
from magy_server.tools.shell.output import SHOWN
from magy_server.tools.shell.processes import Command, Processes, ending
from magy_server.tools.shell.read_only_commands import only_reads
from magy_server.tools.shipped import tool
from magy_server.tools.tracking.worktree import Around, Outcome, Worktrees

CallId = Annotated[str, "The id that bash gave for the command"]
PAGE = 8_000
SCRIPT = 60_000
"""Characters of a script: with more, no program could be started with it."""
_NO_NETWORK = (
    "Network is unreachable", "ould not resolve host", "Temporary failure in name resolution",
    "Name or service not known",
)  # fmt: skip
"""What programs say without a network."""
HASTE = 5.0
"""Seconds to find out what a command changed that a person stopped."""


def shell_tools(
    processes: Processes, usual_timeout: float = 30.0, *, asks_for_network: bool = False
) -> list[Tool]:
    """`usual_timeout`: seconds for a command that names no limit of its own. `asks_for_network`: a
    command has none unless the model says that it needs it, where the person has settled that."""
    shell = _Shell(processes, usual_timeout)
    bash = _bash_with_network(shell) if asks_for_network else _bash(shell)
    return [bash, _code_action(shell), _bash_output(processes), _bash_stop(processes)]


class _Shell:
    """What the tool `bash` does. `usual`: seconds for a command that names no limit."""

    def __init__(self, processes: Processes, usual: float) -> None:
        self.usual = usual
        self._processes = processes
        self._trees = Worktrees(processes)

    async def facts(
        self, ctx: FactContext, command: str, network: bool | None = None, **_: Any
    ) -> Gathered:
        env = self._processes.environment(ctx.root, ctx.session, "look")
        facts, blobs = await shell_facts.facts(ctx, command, env)
        confined = await _confined(self._processes.sandbox, ctx.root, network)
        return facts.model_copy(update={"confined": confined}), blobs

    async def run(
        self, ctx: ToolContext, command: str, timeout: float, background: bool, *, asked: str = ""
    ) -> Result:
        """`asked`: the tool that was called, if it is not bash."""
        processes = self._processes
        if background:
            processes.check_room(ctx.session)
            return _in_background(processes, ctx, await _opened(processes, ctx, command))
        limit = Limit(timeout, timeout == self.usual, asked)
        if only_reads(ctx.facts):
            return await _in_foreground(ctx, await _opened(processes, ctx, command), limit)
        async with self._trees.around(ctx.root, ctx.editor, ctx.changing) as around:
            running = await _opened(processes, ctx, command)
            try:
                result = await _in_foreground(ctx, running, limit)
            except asyncio.CancelledError:
                await to_end(_stopped(ctx, running, around))
                raise
            return _with_changes(result, await around.changes())


def _bash(shell: _Shell) -> Tool:
    @tool(effect="exec", key="bash", kind="execute", facts=shell.facts)
    async def bash(
        ctx: ToolContext,
        command: Annotated[str, "A bash command line"],
        timeout: Annotated[
            float, "Seconds after which Magy stops it", Field(gt=0, le=600)
        ] = shell.usual,
        background: Annotated[bool, "Do not wait until it ends (servers, watchers)"] = False,
    ) -> Result:
        """Run a command with bash in the working directory. Each call starts a new shell: cd and
        variables do not carry over. There is no terminal and no input. Of a long output you get
        the beginning and the end. Magy stops what a command leaves running, unless it runs in
        the background: then bash_output reads its output so far, and bash_stop stops it."""
        return await shell.run(ctx, command, timeout, background)

    return bash


def _bash_with_network(shell: _Shell) -> Tool:
    @tools.tool(effect="exec", key="bash", kind="execute", facts=shell.facts)
    async def bash(
        ctx: ToolContext,
        command: Annotated[str, "A bash command line"],
        timeout: Annotated[
            float, "Seconds after which Magy stops it", Field(gt=0, le=600)
        ] = shell.usual,
        background: Annotated[bool, "Do not wait until it ends (servers, watchers)"] = False,
        network: Annotated[
            bool, "It needs the network, or writes outside the workspace: the user is asked"
        ] = False,
    ) -> Result:
        """Run a command with bash in the working directory. Each call starts a new shell: cd and
        variables do not carry over. There is no terminal and no input. Of a long output you get
        the beginning and the end. Magy stops what a command leaves running, unless it runs in
        the background: then bash_output reads its output so far, and bash_stop stops it. A command
        has no network, and writes only in the workspace and /tmp, unless you set network."""
        return await shell.run(ctx, command, timeout, background)

    return bash


def _code_action(shell: _Shell) -> Tool:
    async def facts(ctx: FactContext, language: str, code: str, **_: Any) -> Gathered:
        return await shell.facts(ctx, _running(language, code))

    @tool(effect="exec", key="bash", kind="execute", facts=facts, seldom=True)
    async def code_action(
        ctx: ToolContext,
        language: Literal["python", "bash"],
        code: Annotated[str, "The program", Field(max_length=SCRIPT)],
        timeout: Annotated[float, "Seconds", Field(gt=0, le=600)] = shell.usual,
    ) -> Result:
        """Run a script in Python or bash and get what it prints: for work that would take many
        calls, such as looking through files and counting. It runs as bash runs commands: in the
        same directory, in the same sandbox, by the same rules."""
        command = _running(language, code)
        return await shell.run(ctx, command, timeout, False, asked="code_action")

    return code_action


def _running(language: str, code: str) -> str:
    """Returns the command line that runs a script. One in bash is such a line itself, so that each
    of its commands is judged."""
    return f"python3 -c {quote(code)}" if language == "python" else code


async def _confined(sandbox: Sandbox, root: str, network: bool | None) -> Confinement | None:
    """In what a command will run; `network` None: nobody asks whether it needs that. Raises
    ToolError if it cannot run at all."""
    if network is False:
        alone = await sandbox.confinement(root, network=False)
        if alone is not None and alone.answers and not alone.missing:
            return alone
    confined = await sandbox.confinement(root)
    if confined is None or confined.level == "standard":
        return confined
    if confined.level == "isolated":
        raise ToolError("There is no shell here: the sandbox is isolated (sandbox.level).")
    if confined.missing:
        raise ToolError(
            f"No command can run: the strict sandbox is asked for, and {confined.missing}. Tell "
            "the user; `magy doctor` says more."
        )
    return confined


async def _opened(processes: Processes, ctx: ToolContext, command: str) -> Command:
    """Behind its gate, and recorded."""
    facts = ctx.facts
    where = facts.cwd or ctx.root
    if where != ctx.root and os.path.realpath(where) != where:  # since the call was judged
        raise ToolError(
            f"The command was not started: {where} leads elsewhere by now. Call switch_workspace."
        )
    running = await processes.open(command, where, ctx.session, ctx.call, ctx.root, facts.confined)
    try:
        await ctx.started(Evidence(group=running.group))
    except BaseException:
        await to_end(running.abandon())
        raise
    return running


def _with_changes(result: Result, outcome: Outcome) -> Result:
    if not outcome.note:
        return result
    said = f"{result.for_model}\n{outcome.note}"
    return replace(result, for_user=said, changes=outcome.changes, blobs=outcome.blobs)


async def _stopped(ctx: ToolContext, running: Command, around: Around) -> None:
    """Puts on record what a command had changed when it was stopped: there is no result to say
    it."""
    outcome = await around.changes(HASTE)
    if outcome.changes:
        done = Evidence(group=running.group, changes=outcome.changes)
        await ctx.started(done, outcome.blobs)


def _in_background(processes: Processes, ctx: ToolContext, running: Command) -> Result:
    # kept before the gate opens: from the first moment somebody sees to its end
    processes.keep(ctx, running)
    running.release()
    return Result(
        for_model=(
            f'Started in the background. Read its output with bash_output(call_id="{ctx.call}"), '
            f'stop it with bash_stop(call_id="{ctx.call}").'
        ),
        for_user="Started in the background; files that it changes are not under review",
        background=running.group,
    )


@dataclass(frozen=True, slots=True)
class Limit:
    """`usual`: nobody asked for another. `tool`: whose it is, if not that of bash."""

    seconds: float
    usual: bool
    tool: str = ""

    @property
    def background(self) -> str:
        """What has a command run on."""
        return "bash with background=true" if self.tool else "background=true"


async def _in_foreground(ctx: ToolContext, running: Command, limit: Limit) -> Result:
    try:
        running.release()
        late = await running.wait(limit.seconds, ctx.emit)
        return await _ended(ctx, running, limit, late)
    finally:
        running.output.close()


async def _ended(ctx: ToolContext, running: Command, limit: Limit, late: bool) -> Result:
    output = running.output
    status, advice = ending(running.code), ""
    if late:
        usual = " (the default, tools.bash_timeout)" if limit.usual else ""
        status = (
            f"timed out after {limit.seconds:g} s{usual}; Magy stopped it and all that it had "
            "started"
        )
        advice = (
            f"\n[This is its output until then. For more time call {limit.tool or 'bash'} with a "
            f"longer timeout (up to 600), or use {limit.background}.]"
        )
    elif running.sandboxed.ended:
        status = f"ended by the sandbox: {running.sandboxed.ended}"
    elif running.duration >= 1:  # in whole seconds: the same run gives the same text
        status += f", {running.duration:.0f} s"
    if running.left:
        what = "1 process" if running.left == 1 else f"{running.left} processes"
        advice += (
            f"\n[The command left {what} running; Magy stopped that, too. Use {limit.background} "
            "for what must keep running.]"
        )
    if refused := running.sandboxed.refused:
        advice += (
            f"\n[The sandbox refused to reach {', '.join(refused)}. Only the user can list a host "
            "(sandbox.hosts).]"
        )
    text = output.summary(ctx.call).rstrip("\n") or "(no output)"
    if running.code:
        advice += _walls(running.sandboxed, text)
    return Result(
        for_model=f"[{status}]\n{text}{advice}",
        ok=running.code == 0 and not late,
        output=await asyncio.to_thread(output.stored) if output.chars > SHOWN else None,
    )


def _walls(sandboxed: Confined, text: str) -> str:
    """Returns what to tell about a sandbox whose walls a command seems to have met."""
    if sandboxed.level == "off":
        return ""
    said = ""
    if "Read-only file system" in text:
        said = "writes only in the workspace and in its temporary directory (sandbox.writable)"
    elif sandboxed.network == "none" and any(sign in text for sign in _NO_NETWORK):
        said = "has no network"
    return f"\n[The command ran in the {sandboxed.level} sandbox, which {said}.]" if said else ""


def _bash_output(processes: Processes) -> Tool:
    @tool(effect="read", key="read", kind="read", seldom=True)
    async def bash_output(
        ctx: ToolContext,
        call_id: CallId,
        offset: Annotated[
            int, "The first character to return, from 0; negative: counted from the end"
        ] = 0,
        limit: Annotated[int, "The most characters to return", Field(ge=1, le=SHOWN)] = PAGE,
    ) -> Result:
        """Read the output of a command in the background so far, or more of an earlier command's
        output than its answer showed. The answer says whether the command still runs."""
        running = processes.get(ctx.session, call_id)
        command = running or processes.ended(ctx.session, call_id)
        if command is not None:
            total = command.output.readable
            start = _start(offset, total)
            text = await asyncio.to_thread(command.output.page, start, limit)
            status = "still running" if running else ending(command.code)
            if command.output.chars > total:
                status += "; there was more output than Magy keeps"
        else:
            data = await ctx.output_of(call_id)
            if data is None:
                raise ToolError(_unknown(processes, ctx.session, call_id))
            whole = data.decode("utf-8", "replace")
            total, start = len(whole), _start(offset, len(whole))
            text, status = whole[start : start + limit], "ended"
        end = start + len(text)
        on = f"; continue with offset={end}" if end < total else ""
        said = f"[{status}; characters {start}-{end} of {total}{on}]"
        return Result(for_model=f"{text}\n{said}" if text else said)

    return bash_output


def _start(offset: int, total: int) -> int:
    return min(offset, total) if offset >= 0 else max(0, total + offset)


def _unknown(processes: Processes, session: str, call: str) -> str:
    calls = processes.calls(session)
    have = f"running in the background: {', '.join(calls)}" if calls else (
        "no command runs in the background"
    )  # fmt: skip
    return (
        f"There is no stored output of a call {call!r}; {have}. Magy does not store an output "
        "that its answer showed in full."
    )


def _bash_stop(processes: Processes) -> Tool:
    async def facts(ctx: FactContext, call_id: str, **_: Any) -> Gathered:
        running = processes.get(ctx.session, call_id)
        title = f"Stop {shortened(running.command if running else call_id, LINE)}"
        found = Resource(kind="exec", subject=call_id)
        return Facts(resources=(found,), title=title), {}

    @tool(effect="exec", key="bash_stop", kind="execute", facts=facts, seldom=True)
    async def bash_stop(ctx: ToolContext, call_id: CallId) -> Result:
        """Stop a command that you started in the background, and all that it started."""
        if processes.get(ctx.session, call_id) is None:
            ended = processes.ended(ctx.session, call_id)
            if ended:
                return Result(for_model=f"It had already ended: {ending(ended.code)}.")
            calls = ", ".join(processes.calls(ctx.session)) or "none"
            raise ToolError(
                f"No command of call {call_id!r} runs in the background; there: {calls}."
            )
        await ctx.started()
        stopped = await to_end(processes.stop(ctx.session, call_id))
        if stopped is None:
            return Result(for_model="It ended by itself at the same moment.")
        text = stopped.output.summary(call_id).rstrip("\n")
        return Result(for_model=f"[stopped: {ending(stopped.code)}]\n{text}".rstrip("\n"))

    return bash_stop
