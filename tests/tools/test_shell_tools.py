from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from magy_server.core.errors import ToolError
from magy_server.core.tool import Result, Tool
from magy_server.tools.kit import make_tools
from magy_server.tools.shell import process_groups as groups
from magy_server.tools.shell.output import SHOWN, Output
from magy_server.tools.shell.processes import Processes
from tests.guard import SESSION
from tests.patience import PATIENCE, pass_time

from .conftest import Context, Workspace

ROOT = str(Path(__file__).parents[2])


class Shell:
    """The shell tools in a workspace; every test ends with no process and no descriptor left."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.processes = Processes()
        self.tools: dict[str, Tool] = {tool.name: tool for tool in make_tools(self.processes)}

    @property
    def last(self) -> Context:
        return self.workspace.last

    async def bash(self, command: str, call: str = "1.0", **more: object) -> Result:
        return await self.workspace.run(self.tools["bash"], call, command=command, **more)

    async def output(self, call: str, of: Context | None = None, **more: int) -> str:
        tool = self.tools["bash_output"]
        context = of or await self.workspace.prepare(tool, "9.0", call_id=call)
        return (await tool.run(context, **tool.arguments({"call_id": call, **more}))).for_model


def descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else set()


@pytest.fixture
async def shell(workspace: Workspace) -> AsyncIterator[Shell]:
    await asyncio.create_subprocess_exec("true")  # the loop keeps what its first child needs
    await asyncio.sleep(0.05)
    before = descriptors()
    shell = Shell(workspace)
    yield shell
    await shell.processes.close()
    await asyncio.sleep(0.05)
    assert not psutil.Process().children(recursive=True)
    assert len(descriptors()) <= len(before)


async def until(condition: object, seconds: float = PATIENCE) -> None:
    """Waits until the callable `condition` is true."""
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        await asyncio.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def pid_in(path: Path) -> int:
    text = path.read_text().strip() if path.exists() else ""
    return int(text or 0)


# --- running ------------------------------------------------------------------------------------


async def test_a_command_runs_in_the_root_with_both_outputs(shell: Shell) -> None:
    result = await shell.bash("pwd; echo bad >&2; cat; exit 3")
    assert result.for_model == f"[exit code 3]\n{shell.workspace.root}\nbad"
    assert result.output is None
    (evidence,) = shell.last.evidence
    assert evidence.group is not None
    assert shell.last.facts.title == "Run pwd; echo bad >&2; cat; exit 3"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("true", "[exit code 0]\n(no output)"),
        ("kill -9 $$", "[ended by SIGKILL]\n(no output)"),
        ("-x", "[exit code 127]"),
        ("printf 'a\\xffb\\n'", "[exit code 0]\na\ufffdb"),
        ("printf '\\033[1mbold\\033[0m\\r\\n10%%\\r50%%\\r99%%\\nx\\by\\n'", "bold\n99%\ny"),
        ("[[ a == a* ]] && echo bash $((1+1))", "bash 2"),
        ("tty; readlink /dev/fd/0", "not a tty\n/dev/null"),
    ],
)
async def test_what_the_model_reads(shell: Shell, command: str, said: str) -> None:
    assert said in (await shell.bash(command)).for_model


@pytest.mark.req("A247")
async def test_output_is_shown_line_by_line_while_the_command_runs(shell: Shell) -> None:
    go = shell.workspace.root / "go"
    os.mkfifo(go)
    arguments = {"command": "echo one; echo -n two; read x < go; echo; echo three", "timeout": 600}
    context = await shell.workspace.prepare(shell.tools["bash"], **arguments)
    task = asyncio.ensure_future(
        shell.tools["bash"].run(context, **shell.tools["bash"].arguments(arguments))
    )
    await until(lambda: "".join(context.emitted) == "one\ntwo")
    assert not task.done()
    await asyncio.to_thread(go.write_text, "x\n")
    assert (await task).for_model == "[exit code 0]\none\ntwo\nthree"
    assert "".join(context.emitted) == "one\ntwo\nthree\n"


async def test_the_environment_has_no_keys(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GITHUB_TOKEN", "TOKEN", "MY_SECRET_THING"]
    names += ["DB_PASSWORD", "AWS_ACCESS_KEY_ID", "aws_secret_access_key", "NPM_TOKEN_X"]
    names += ["GOOGLE_APPLICATION_CREDENTIALS", "BASH_ENV", "CDPATH", "OPENAI_KEY", "CI_PAT", "JWT"]
    names += ["DATABASE_URL", "NPM_AUTH", "STRIPE_SK", "VAULT", "npm_config__auth", "DIRENV_DIFF"]
    for name in [*names, "CORP_GATEWAY", "NODE_ENV"]:
        monkeypatch.setenv(name, "hunter2")
    monkeypatch.setenv("BASH_FUNC_ls%%", "() { echo fooled; }")
    shell.processes = Processes(hidden=["CORP_GATEWAY"])
    shell.tools = {tool.name: tool for tool in make_tools(shell.processes)}
    said = (await shell.bash("env; ls")).for_model
    assert re.findall(r"(\w+)=hunter2", said) == ["NODE_ENV"]
    assert "fooled" not in said
    for line in (f"MAGY_CALL={SESSION}:1.0", "PAGER=cat", "GIT_PAGER=cat", "TERM=dumb"):
        assert f"{line}\n" in said
    assert "GIT_TERMINAL_PROMPT=0" in said
    assert f"PWD={shell.workspace.root}" in said


async def test_a_long_output_is_cut_in_the_middle_and_stored(shell: Shell) -> None:
    result = await shell.bash("seq 1 50000")
    said = result.for_model
    assert len(said) < SHOWN + 200
    assert said.startswith("[exit code 0]\n1\n2\n3\n")
    assert said.endswith("\n49999\n50000")
    found = re.search(r"\n\[\.\.\. ([\d,]+) lines omitted; .*offset=(\d+)\)\]\n(\d+)\n", said)
    assert found
    offset, after = int(found[2]), int(found[3])
    whole = "".join(f"{n}\n" for n in range(1, 50001))
    assert result.output == whole.encode()
    before = whole[:offset].count("\n")
    assert int(found[1].replace(",", "")) == after - before - 1
    context = Context(root=shell.last.root, outputs={"1.0": result.output})
    page = await shell.output("1.0", of=context, offset=offset, limit=100)
    assert page.startswith(f"{before + 1}\n")
    assert f"[ended; characters {offset}-{offset + 100} of {len(whole)}; continue" in page


async def test_a_flood_is_read_in_bounded_memory(shell: Shell) -> None:
    process = psutil.Process()
    base, peak = process.memory_info().rss, 0

    async def watch() -> None:
        nonlocal peak
        while True:
            peak = max(peak, process.memory_info().rss)
            await asyncio.sleep(0.02)

    watcher = asyncio.create_task(watch())
    try:
        result = await shell.bash("yes | head -c 200M; echo; echo the end", timeout=60)
    finally:
        watcher.cancel()
        await asyncio.wait([watcher])
    assert peak - base < 60_000_000
    assert result.for_model.endswith("\nthe end")
    assert len(result.for_model) < SHOWN + 200
    assert result.output is not None
    assert len(result.output) < (8 << 20) + 200
    assert result.output.endswith(b"the end\n")
    assert sum(map(len, shell.last.emitted)) < 20_000_000


@pytest.mark.req("E115")
async def test_wrong_timeouts_and_impossible_commands_are_told(shell: Shell) -> None:
    for timeout in (0, 601):
        with pytest.raises(ToolError, match="timeout"):
            shell.tools["bash"].arguments({"command": "true", "timeout": timeout})
    assert shell.tools["bash"].arguments({"command": "true"})["timeout"] == 30
    with pytest.raises(ToolError, match="too long to be started"):
        await shell.bash("echo " + "x" * 3_000_000)
    with pytest.raises(ToolError, match="command is empty"):
        await shell.bash("  # nothing")
    for char in ("\0", "\ud800"):
        with pytest.raises(ToolError, match="NUL or half a character"):
            await shell.bash(f"echo a{char}b")
    assert not shell.last.evidence


# --- ending -------------------------------------------------------------------------------------

STUBBORN = """
trap '' TERM
(trap '' TERM; echo $BASHPID > grandchild; sleep 60) &
setsid sh -c 'echo $$ > escaped; exec sleep 60' &
env -u MAGY_CALL sh -c 'echo $$ > unmarked; exec sleep 60' &
echo started
sleep 60 & wait
sleep 60
"""


async def family(shell: Shell) -> list[int]:
    root = shell.workspace.root
    names = ("grandchild", "escaped", "unmarked")
    await until(lambda: all(pid_in(root / name) for name in names))
    return [pid_in(root / name) for name in names]


@pytest.mark.req("E115")
async def test_a_time_out_ends_all_that_was_started(shell: Shell) -> None:
    task = asyncio.create_task(shell.bash(STUBBORN, timeout=600))
    pids = await family(shell)
    await until(lambda: "started" in "".join(shell.last.emitted))
    pass_time(600)
    start = time.monotonic()
    said = (await task).for_model
    assert time.monotonic() - start < 30
    assert "timed out after 600 s" in said
    assert "\nstarted\n" in said
    assert "background=true" in said
    assert not any(map(alive, pids))


@pytest.mark.parametrize("again", [False, True])
async def test_a_cancelled_command_is_ended_before_the_cancel_is_seen(
    shell: Shell, again: bool
) -> None:
    task = asyncio.create_task(shell.bash(STUBBORN, timeout=600))
    pids = await family(shell)
    task.cancel()
    if again:
        await asyncio.sleep(0.1)
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not any(map(alive, pids))


async def test_what_a_command_leaves_running_is_ended_and_told(shell: Shell) -> None:
    start = time.monotonic()
    result = await shell.bash("sleep 60 & echo $! > grandchild; echo done")
    assert time.monotonic() - start < 30
    assert result.for_model.startswith("[exit code 0")
    assert (
        "\ndone\n[The command left 1 process running; Magy stopped that, too."
    ) in result.for_model
    assert not alive(pid_in(shell.workspace.root / "grandchild"))


async def test_a_filter_may_finish_after_the_command(shell: Shell) -> None:
    result = await shell.bash("echo text > >(sleep 0.2; cat)")
    assert result.for_model == "[exit code 0]\ntext"


async def test_a_daemon_that_left_does_not_hold_the_call(shell: Shell) -> None:
    start = time.monotonic()
    result = await shell.bash("setsid sleep 30 & echo $! > daemon; echo up")
    try:
        assert time.monotonic() - start < 20
        assert "\nup" in result.for_model
    finally:
        assert await groups.end_group(None, groups.mark(SESSION, "1.0")) == 1
    assert await groups.end_group(None, groups.mark(SESSION, "1.0")) == 0


async def test_takeover_touches_only_what_carries_the_mark(shell: Shell) -> None:
    mark = groups.mark(SESSION, "7.0")
    env = {**os.environ, groups.VARIABLE: mark}
    script = "sleep 60 & setsid sleep 60 & env -u MAGY_CALL sleep 60 & echo; wait"
    with subprocess.Popen(
        ["bash", "-c", script], env=env, start_new_session=True, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        await until(lambda: len(psutil.Process(child.pid).children()) == 3)
        await until(
            lambda: [p.name() for p in psutil.Process(child.pid).children()] == ["sleep"] * 3
        )
        bare = [p for p in psutil.Process(child.pid).children() if "MAGY_CALL" not in p.environ()]
        try:
            assert await groups.end_group(child.pid, mark, 1.0) == 3
            assert await groups.end_group(child.pid, mark) == 0
            assert child.wait(20) == -signal.SIGTERM
            assert [alive(p.pid) for p in bare] == [True]
            assert await groups.end_group(child.pid, groups.mark(SESSION, "7.1")) == 0
        finally:
            for process in bare:
                process.kill()


async def test_the_group_is_committed_before_the_command_runs(shell: Shell) -> None:
    marker = shell.workspace.root / "ran"
    arguments = {"command": "touch ran"}
    context = await shell.workspace.prepare(shell.tools["bash"], **arguments)
    seen: list[tuple[bool, bool]] = []

    def look() -> None:
        group = context.evidence[0].group
        assert group is not None
        time.sleep(0.2)
        seen.append((marker.exists(), os.getpgid(group) == group))

    context.on_started = look
    await shell.tools["bash"].run(context, **shell.tools["bash"].arguments(arguments))
    assert seen == [(False, True)]
    assert marker.exists()


async def test_a_failed_commit_never_runs_the_command(shell: Shell) -> None:
    arguments = {"command": "touch ran"}
    context = await shell.workspace.prepare(shell.tools["bash"], **arguments)

    def fail() -> None:
        raise ToolError("the store is gone")

    context.on_started = fail
    with pytest.raises(ToolError, match="the store is gone"):
        await shell.tools["bash"].run(context, **shell.tools["bash"].arguments(arguments))
    await asyncio.sleep(0.2)
    assert not (shell.workspace.root / "ran").exists()


def test_a_server_that_dies_before_the_gate_opens_runs_nothing(workspace: Workspace) -> None:
    script = f"""
        import asyncio, os, signal, sys
        sys.path.insert(0, {ROOT!r})
        from pathlib import Path
        from tests.tools.conftest import Workspace
        from magy_server.tools.kit import make_tools
        from magy_server.tools.shell.processes import Processes

        async def main():
            workspace = Workspace(Path({str(workspace.root)!r}))
            bash = next(tool for tool in make_tools(Processes()) if tool.name == "bash")
            context = await workspace.prepare(bash, command="touch ran")

            def die():
                print(context.evidence[0].group, flush=True)
                os.kill(os.getpid(), signal.SIGKILL)

            context.on_started = die
            await bash.run(context, command="touch ran", timeout=30, background=False)

        asyncio.run(main())
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    group = int(ran.stdout)
    end = time.monotonic() + PATIENCE
    while alive(group):
        assert time.monotonic() < end
        time.sleep(0.02)
    assert not (workspace.root / "ran").exists()


# --- in the background --------------------------------------------------------------------------


async def test_a_background_command_is_read_and_stopped(shell: Shell) -> None:
    result = await shell.bash("echo up; sleep 60 & wait", call="2.1", background=True)
    context = shell.last
    assert result.background == context.evidence[0].group
    assert 'bash_output(call_id="2.1")' in result.for_model
    running = shell.processes.get(SESSION, "2.1")
    assert running is not None
    await until(lambda: running.output.readable == 3)
    assert await shell.output("2.1") == "up\n\n[still running; characters 0-3 of 3]"
    assert not context.ended
    stopped = await shell.workspace.run(shell.tools["bash_stop"], "3.0", call_id="2.1")
    assert stopped.for_model == "[stopped: ended by SIGTERM]\nup"
    assert shell.last.facts.title == "Stop echo up; sleep 60 & wait"
    assert context.ended == {"2.1": (-signal.SIGTERM, b"up\n")}
    assert await groups.end_group(result.background, groups.mark(SESSION, "2.1")) == 0
    assert (await shell.output("2.1")).startswith("up\n\n[ended by SIGTERM; ")
    again = await shell.workspace.run(shell.tools["bash_stop"], "3.1", call_id="2.1")
    assert again.for_model == "It had already ended: ended by SIGTERM."


async def test_a_background_command_reports_its_own_end(shell: Shell) -> None:
    await shell.bash("echo bye; exit 4", call="2.0", background=True)
    context = shell.last
    await until(lambda: "2.0" in context.ended)
    assert context.ended["2.0"] == (4, b"bye\n")
    assert shell.processes.calls(SESSION) == []
    assert "[exit code 4; characters 0-4 of 4]" in await shell.output("2.0")


async def test_other_sessions_and_unknown_calls_are_refused(shell: Shell) -> None:
    await shell.bash("sleep 60", call="2.0", background=True)
    stranger = Context(root=shell.last.root, session="another")
    with pytest.raises(ToolError, match="no command runs in the background"):
        await shell.tools["bash_output"].run(stranger, call_id="2.0")
    with pytest.raises(ToolError, match="there: none"):
        await shell.tools["bash_stop"].run(stranger, call_id="2.0")
    with pytest.raises(ToolError, match=r"running in the background: 2\.0"):
        await shell.output("5.0")
    assert shell.processes.get(SESSION, "2.0") is not None


async def test_the_end_of_the_server_ends_what_runs(shell: Shell) -> None:
    await shell.bash(STUBBORN, call="2.0", background=True)
    context = shell.last
    pids = await family(shell)
    await shell.processes.close()
    assert not any(map(alive, pids))
    assert context.ended["2.0"] == (-signal.SIGKILL, b"started\n")
    with pytest.raises(ToolError, match="shutting down"):
        await shell.bash("true")


async def test_background_commands_are_bounded(shell: Shell) -> None:
    for n in range(16):
        await shell.bash("sleep 60", call=f"2.{n}", background=True)
    with pytest.raises(ToolError, match="16 background commands"):
        await shell.bash("sleep 60", call="3.0", background=True)


# --- pages --------------------------------------------------------------------------------------


def test_pages_of_an_output_fit_together() -> None:
    output = Output()
    text = "".join(f"{n} grüße →\n" for n in range(40_000))
    data = text.encode()
    for at in range(0, len(data), 7001):
        output.feed(data[at : at + 7001])
    output.feed(b"", final=True)
    assert output.chars == output.readable == len(text)
    pages = [output.page(at, 9_973) for at in range(0, len(text), 9_973)]
    assert "".join(pages) == text
    assert output.page(len(text), 10) == ""
    assert output.stored() == data
    output.close()


def test_more_than_is_kept_is_counted_and_its_end_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("magy_server.tools.shell.output.KEPT", 100_000)
    output = Output()
    for n in range(50_000):
        output.feed(b"%d\n" % n)
    assert output.readable < 100_000 < output.chars
    assert "\n49999\n" in output.summary("1.0")[-20:]
    stored = output.stored()
    assert stored.startswith(b"0\n1\n")
    assert b"characters were not kept" in stored
    assert stored.endswith(b"49999\n")
    output.close()


async def test_pages_from_the_end(shell: Shell) -> None:
    context = Context(root=str(shell.workspace.root), outputs={"1.0": b"0123456789"})
    assert await shell.output("1.0", of=context, offset=-3) == (
        "789\n[ended; characters 7-10 of 10]"
    )
    assert await shell.output("1.0", of=context, offset=99) == "[ended; characters 10-10 of 10]"
