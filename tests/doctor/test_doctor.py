"""`magy doctor` on installations that were made ill: what it says, how it says to mend it, and that
it harms nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from magy_server.doctor import programs
from magy_server.doctor.finding import Around
from magy_server.store.schema import MIGRATIONS
from magy_server.tools.search import ripgrep_program
from tests.doctor.conftest import SHUT, Machine, change
from tests.loopback import AnthropicServer, ChatServer, Fault
from tests.lsp.client import Client
from tests.patience import PATIENCE

TOPICS = [
    "installation", "sqlite", "state", "database", "processes", "configuration", "agents", "hooks",
    "plugins", "programs", "models", "keys", "completion", "editors", "terminal",
]  # fmt: skip


def files(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


@pytest.mark.req("G046")
@pytest.mark.needs("git", "bash")
async def test_a_healthy_installation(machine: Machine) -> None:
    machine.script()
    await machine.store()
    before = files(machine.state)
    seen = await machine.doctor()
    assert seen.code == 0, seen.bad
    assert list(dict.fromkeys(one["topic"] for one in seen.findings)) == TOPICS
    assert files(machine.state) == before
    assert "is intact" in seen.of("database")[0]
    assert "scripted/script (as the environment says)" in seen.of("models")[0]


async def test_a_fresh_machine_lacks_only_a_model_and_nothing_is_made(machine: Machine) -> None:
    seen = await machine.doctor()
    assert seen.code == 1
    (said,) = seen.of("models", "problem")
    assert said.startswith("No model is configured. -> Set one of ANTHROPIC_API_KEY, ")
    assert not machine.state.exists()


async def test_it_says_who_could_read_the_keys(machine: Machine) -> None:
    """Its own process is closed to commands; root's is not, nor is what started it."""
    machine.script()
    machine.settings(
        '[[provider]]\nname = "corp"\nkind = "openai-chat"\napi_key_env = "CORP"\n'
        'base_url = "http://127.0.0.1:1/v1"\n'
    )
    ordinary = Path(__file__).parents[1] / "e2e" / "ordinary.py"
    machine.wrap = (sys.executable, str(ordinary))
    seen = await machine.doctor(CORP="k-12345678")
    first, *above = seen.of("keys")
    if os.geteuid() == 0:
        assert first.startswith("Magy runs as root: ") and "other than root" in first
    elif sys.platform == "linux":
        assert first.startswith("Agents' commands can read neither ")
    assert above == []
    machine.wrap = ("sh", "-c", '"$@"; exit $?', "sh")  # it holds the key, and starts Magy
    again = await machine.doctor(CORP="k-12345678")
    *_, said = again.of("keys", "note")
    assert "(sh) shows CORP" in said and "Give them to Magy alone" in said
    assert "k-1234" not in seen.output + again.output


def test_ctrl_c_does_not_wait_for_a_disk_that_never_answers(machine: Machine) -> None:
    machine.state.mkdir()
    os.mkfifo(machine.state / "magy.db")  # who opens it waits for ever
    doctor = subprocess.Popen(
        [sys.executable, "-m", "magy_server", "doctor"], env=machine.environ, cwd=machine.root,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    with doctor:
        until = time.monotonic() + PATIENCE
        while psutil.Process(doctor.pid).num_threads() == 1 and time.monotonic() < until:
            time.sleep(0.02)
        doctor.send_signal(signal.SIGINT)
        try:
            output, said = doctor.communicate(timeout=PATIENCE)
        finally:
            doctor.kill()
    assert (doctor.returncode, output, said) == (130, b"", b"")


# --- text ----------------------------------------------------------------------------------------


async def test_the_text_is_for_80_columns_and_plain_when_it_is_piped(machine: Machine) -> None:
    seen = await machine.text()
    assert seen.code == 1
    long = [line for line in seen.output.splitlines() if len(line) > 80]
    assert all(len(line.split()) <= 2 for line in long), "only a name may be longer"
    assert "\x1b" not in seen.output
    assert "✗ No model is configured.\n    → Set one of" in seen.output
    assert seen.output.splitlines()[-1].startswith("1 problem, 4 warnings")


async def test_without_utf_8_it_is_ascii_and_says_so(machine: Machine) -> None:
    ascii_only = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    assert (
        "x No model is configured.\n    -> Set one of" in (await machine.text(**ascii_only)).output
    )
    seen = await machine.doctor(**ascii_only)
    assert "not UTF-8" in seen.bad["terminal"]


# --- configuration -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[modle]\n", "unknown key 'modle'; did you mean 'model'?"),
        ("[model\n", "is not valid TOML"),
        ("[limits]\nrequests = 'many'\n", "limits.requests must be a whole number"),
    ],
)
async def test_a_wrong_settings_file_is_named_with_the_key(
    machine: Machine, text: str, said: str
) -> None:
    machine.script()
    machine.settings(text)
    seen = await machine.doctor()
    (problem,) = seen.of("configuration", "problem")
    assert problem.startswith(str(machine.config / "magy.toml")) and said in problem
    assert seen.code == 1


async def test_a_hook_or_a_guardrail_that_watches_nothing_is_named(machine: Machine) -> None:
    machine.script()
    machine.settings(
        '[[guardrail]]\ntool = "bsh"\naction = "flag"\npattern = "x"\n'
        '[[hook]]\nevent = "PreToolUse"\nmatch = "edit_fil"\ncommand = "no-such-guard --all"\n'
        '[[hook]]\nevent = "Stop"\ncommand = "echo done"\n'
    )
    seen = await machine.doctor()
    (rail,) = seen.of("configuration", "warning")
    assert "guardrail 1 watches nothing: there is no tool 'bsh'; did you mean 'bash'?" in rail
    name, program = seen.of("hooks", "warning")
    assert "there is no tool 'edit_fil'; did you mean 'edit_file'?" in name
    assert "PreToolUse for edit_fil: `no-such-guard --all` (magy.toml): there is no program" in (
        program
    )
    assert seen.of("hooks", "ok")[0].startswith("Stop: `echo done` (magy.toml).")


async def test_a_settings_file_that_is_not_text(machine: Machine) -> None:
    (machine.config / "magy.toml").write_bytes(b"\xff\xfe\x00[model]")
    assert "is not UTF-8 text (line 1)" in (await machine.doctor()).bad["configuration"]


async def test_an_untrusted_project_is_told_with_what_does_not_count(machine: Machine) -> None:
    machine.script()
    (machine.root / "magy.toml").write_text("default_agent = 'plan'\n", encoding="utf-8")
    seen = await machine.doctor()
    (said,) = seen.of("configuration", "note")
    assert "is not trusted" in said and f"{machine.root / 'magy.toml'}: default_agent" in said
    assert seen.code == 0


async def test_a_trusted_project_and_one_that_changed_since(machine: Machine) -> None:
    machine.script()
    project = machine.root / "magy.toml"
    project.write_text("default_agent = 'plan'\n", encoding="utf-8")
    command = (sys.executable, "-m", "magy_server", "lsp")
    async with Client.spawn(command, cwd=machine.root, env=machine.environ) as client:
        await client.initialize(root=machine.root)
        where = {"root": str(machine.root), "trusted": True}
        await client.request("magy/workspace/trust", where)
    seen = await machine.doctor()
    assert "This project (magy.toml) is trusted. -> " in seen.of("configuration")
    project.write_text("default_agent = 'build'\n", encoding="utf-8")
    assert "was trusted, but has changed" in (await machine.doctor()).of("configuration", "note")[0]


async def test_a_wrong_agent_file_is_named(machine: Machine) -> None:
    machine.script()
    agents = machine.config / "agent"
    agents.mkdir()
    (agents / "mine.md").write_text("---\nmodle: x\n---\nHello\n", encoding="utf-8")
    seen = await machine.doctor()
    assert str(agents / "mine.md") in seen.of("agents", "problem")[0]
    machine.settings("default_agent = 'nobody'")
    assert "agent, 'nobody', does not exist" in "".join(
        (await machine.doctor()).of("agents", "problem")
    )


# --- state and database --------------------------------------------------------------------------


async def test_a_damaged_database(machine: Machine) -> None:
    machine.script()
    path = await machine.store()
    data = bytearray(path.read_bytes())
    data[5000:9000] = b"\xa5" * 4000
    path.write_bytes(data)
    seen = await machine.doctor()
    assert "is damaged" in seen.bad["database"] and ".recover" in seen.bad["database"]
    assert seen.code == 1
    assert path.read_bytes() == data


@pytest.mark.parametrize("content", [b"not a database, but long enough to be one " * 200, b"short"])
async def test_a_file_that_is_no_database(machine: Machine, content: bytes) -> None:
    path = await machine.store()
    path.write_bytes(content)
    assert "is damaged, or is not Magy's" in (await machine.doctor()).bad["database"]


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (f"PRAGMA user_version = {len(MIGRATIONS) + 1}", "newer Magy"),
        ("PRAGMA application_id = 7", "database of another program"),
        ("UPDATE streams SET updated = 9e9", "Set the clock of this computer"),
    ],
)
async def test_a_database_that_is_not_as_it_should_be(
    machine: Machine, statement: str, said: str
) -> None:
    machine.script()
    path = await machine.store()
    change(path, "INSERT INTO streams VALUES ('session/x', NULL, 1, 1, 1, '{}')")
    change(path, statement)
    assert said in (await machine.doctor()).bad["database"]


async def test_what_takes_how_much_of_the_state_directory(machine: Machine) -> None:
    machine.script()
    path = await machine.store()
    change(path, "INSERT INTO blobs VALUES ('h', zeroblob(3145728))")
    (machine.state / "transcripts").mkdir()
    (machine.state / "transcripts" / "s.md").write_bytes(bytes(1 << 20))
    (said,) = [one for one in (await machine.doctor()).of("database") if " holds: " in one]
    assert "texts and outputs that events name 3.0 MiB" in said
    assert "transcripts 1.0 MiB" in said


async def test_pages_that_nothing_uses_can_be_had_back(machine: Machine) -> None:
    machine.script()
    path = await machine.store()
    change(path, "INSERT INTO blobs VALUES ('h', zeroblob(70000000))")
    change(path, "DELETE FROM blobs")
    assert any("VACUUM" in one for one in (await machine.doctor()).of("database", "note"))
    change(path, "VACUUM")
    assert not (await machine.doctor()).of("database", "note")


async def test_beside_a_server_that_runs_nothing_changes(machine: Machine) -> None:
    machine.script()
    command = (sys.executable, "-m", "magy_server", "lsp")
    async with Client.spawn(command, cwd=machine.root, env=machine.environ) as client:
        await client.initialize(root=machine.root)
        await client.request("magy/session/new", {"sessionId": "s", "cwd": str(machine.root)})
        log = (machine.state / "magy.db-wal").read_bytes()
        seen = await machine.doctor()
        assert seen.code == 0, seen.bad
        assert "1 other Magy process" in seen.of("processes")[0]
        assert (machine.state / "magy.db-wal").read_bytes() == log
        listed = await client.request("magy/session/list", {"cwd": str(machine.root)})
        assert [one["sessionId"] for one in listed["sessions"]] == ["s"]


async def test_after_a_server_was_killed(machine: Machine) -> None:
    """Its log of writes is still to be folded into the database: that is not for the doctor."""
    machine.script()
    command = (sys.executable, "-m", "magy_server", "lsp")
    async with Client.spawn(command, cwd=machine.root, env=machine.environ) as client:
        await client.initialize(root=machine.root)
        await client.request("magy/session/new", {"sessionId": "s", "cwd": str(machine.root)})
        client.process.kill()
        await client.process.wait()
    before = (machine.state / "magy.db").read_bytes(), (machine.state / "magy.db-wal").read_bytes()
    seen = await machine.doctor()
    assert seen.code == 0, seen.bad
    assert "ended without cleaning up" in seen.of("processes", "note")[0]
    after = (machine.state / "magy.db").read_bytes(), (machine.state / "magy.db-wal").read_bytes()
    assert after == before


@pytest.mark.needs("bwrap")
async def test_a_state_directory_that_cannot_be_written(machine: Machine) -> None:
    await machine.store()
    state = str(machine.state)
    machine.wrap = ("bwrap", "--bind", "/", "/", "--dev", "/dev", "--ro-bind", state, state)
    said = (await machine.doctor()).bad["state"]
    assert said.startswith("problem: Magy cannot keep its sessions in") and "Read-only" in said


async def test_a_state_directory_that_is_a_file_or_open_to_others(machine: Machine) -> None:
    await machine.store()
    machine.state.chmod(0o755)
    assert "chmod 700" in (await machine.doctor()).bad["state"]
    machine.state.rename(machine.state.with_name("old"))
    machine.state.write_text("in the way")
    assert "is not a directory" in (await machine.doctor()).bad["state"]


async def test_what_killed_edits_left_is_found(machine: Machine) -> None:
    await machine.store()
    (machine.root / "src").mkdir()
    spare = machine.root / "src" / ".magy-0123456789abcdef.tmp"
    spare.write_text("half")
    assert not (await machine.doctor()).of("state", "note")  # it may be under way
    os.utime(spare, (1, 1))
    assert str(spare) in (await machine.doctor()).of("state", "note")[0]


# --- programs, packages --------------------------------------------------------------------------


@pytest.mark.needs("git")
async def test_missing_programs(machine: Machine, tmp_path: Path) -> None:
    machine.script()
    bin = machine.programs(tmp_path / "bin", ["git"])
    seen = await machine.doctor()
    assert seen.code == 1
    assert "bash is not on PATH" in "".join(seen.of("programs", "problem"))
    notes = "".join(seen.of("programs", "note"))
    assert "ripgrep" in "".join(seen.of("programs", "ok")), "it comes with Magy"
    assert (sys.platform != "linux") or "bubblewrap is not installed" in notes
    assert "PATH has no editor" in seen.of("editors", "note")[0]
    (bin / "git").unlink()
    assert "git is not installed" in "".join((await machine.doctor()).of("programs", "warning"))


@pytest.mark.needs("bwrap")
async def test_whether_commands_run_in_a_sandbox(machine: Machine, tmp_path: Path) -> None:
    machine.script()
    off = "Commands run without a sandbox: sandbox.level is off."
    assert off in "".join((await machine.doctor()).of("programs", "note"))
    machine.settings('[sandbox]\nlevel = "standard"\nwritable = ["~/.not-there"]\n')
    seen = await machine.doctor()
    assert "Commands run in the standard sandbox." in "".join(seen.of("programs", "ok"))
    assert "sandbox.writable names what is not there" in "".join(seen.of("programs", "note"))
    machine.programs(tmp_path / "bin", ["git", "bash"])
    said = "".join((await machine.doctor()).of("programs", "warning"))
    assert "commands run without the sandbox that sandbox.level asks for" in said
    machine.settings('[sandbox]\nlevel = "strict"\n')
    said = "".join((await machine.doctor()).of("programs", "warning"))
    assert "no command runs, since sandbox.level is strict" in said


async def test_programs_that_do_not_work(machine: Machine, tmp_path: Path) -> None:
    bin = machine.programs(tmp_path / "bin", ["bash"])
    for name, does in {
        "git": "echo git version 1.7.1",
        "rg": "exit 3",
        "bwrap": "echo No permissions to create new namespace >&2; exit 1",
        "emacs": "echo GNU Emacs 27.2",
        "nvim": "echo '\x1b[31mbroken' >&2; exit 1",
    }.items():
        (bin / name).write_text(f"#!{bin}/bash\n{does}\n")
        (bin / name).chmod(0o755)
    seen = await machine.doctor()
    said = "".join(seen.of("programs", "warning"))
    assert "git 1.7.1" in said and "Install git 2.25 or newer" in said
    assert "rg is not a working ripgrep 14 or newer" in "".join(seen.of("programs", "note"))
    if sys.platform == "linux":
        assert "cannot create a sandbox here: No permissions to create" in said
    assert "Install Emacs 28.1 or newer" in "".join(seen.of("editors", "warning"))
    text = (await machine.text()).output
    assert "broken" in text and "\x1b" not in text


async def test_no_ripgrep_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ripgrep_program, "PACKAGE", "no-such-package")
    found = await programs.check(Around(str(tmp_path), {"PATH": str(tmp_path)}))
    (said,) = [one for one in found if "ripgrep" in one.what]
    assert said.status == "warning" and "nothing can be searched" in said.what
    assert said.mend == "Install ripgrep 14 or newer, or install Magy again, which brings it along."


async def test_a_program_that_hangs_does_not_stop_the_rest(
    machine: Machine, tmp_path: Path
) -> None:
    bin = machine.programs(tmp_path / "bin", ["bash", "sleep"])
    (bin / "git").write_text(f"#!{bin}/bash\nsleep 600\n")
    (bin / "git").chmod(0o755)
    seen = await machine.doctor()
    assert "did not end within" in "".join(seen.of("programs", "warning"))
    assert seen.of("programs", "ok")


async def test_git_does_not_know_who_commits(machine: Machine) -> None:
    for name in [name for name in machine.environ if name.startswith("GIT_")]:
        del machine.environ[name]
    machine.environ["GIT_CONFIG_NOSYSTEM"] = "1"
    assert "git config --global user.name" in (await machine.doctor()).bad["programs"]


async def test_a_package_that_cannot_be_loaded_is_a_finding(
    machine: Machine, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "pydantic.py").write_text("raise ImportError('pydantic is broken')\n")
    seen = await machine.doctor(PYTHONPATH=str(broken))
    assert seen.code == 1
    assert "Magy cannot be loaded: pydantic is broken" in seen.of("installation", "problem")[0]
    assert "cannot be loaded" in seen.of("configuration", "problem")[0]
    assert seen.of("installation", "ok") and seen.of("sqlite", "ok")


# --- models --------------------------------------------------------------------------------------


def anthropic(url: str) -> str:
    return f'[[provider]]\nname = "anthropic"\nkind = "anthropic"\nbase_url = "{url}"\n'


@pytest.mark.req("G046")
async def test_a_wrong_key_is_named_and_never_shown(machine: Machine) -> None:
    async with AnthropicServer(models=Fault("401", "invalid x-api-key")) as server:
        machine.settings(anthropic(server.base_url))
        seen = await machine.doctor(ANTHROPIC_API_KEY="sk-very-secret")
    (said,) = seen.of("models", "problem")
    assert "does not accept the key in ANTHROPIC_API_KEY" in said
    assert "Set ANTHROPIC_API_KEY to a valid anthropic key" in said
    assert "Keys are set in ANTHROPIC_API_KEY. -> " in seen.of("models", "ok")
    assert "very-secret" not in seen.output
    assert seen.code == 1


async def test_a_key_that_is_not_set_is_not_said_to_be_wrong(machine: Machine) -> None:
    async with AnthropicServer(models=Fault("401", "x-api-key header is required")) as server:
        machine.settings(anthropic(server.base_url))
        seen = await machine.doctor()
    said = seen.of("models", "problem") + seen.of("models", "warning")
    (said_of_it,) = [line for line in said if line.startswith("anthropic")]
    assert "anthropic needs a key, and ANTHROPIC_API_KEY is not set" in said_of_it
    assert "Set ANTHROPIC_API_KEY where you start Magy" in said_of_it


async def test_a_good_key_and_a_model_that_is_not_there(machine: Machine) -> None:
    async with AnthropicServer(models=["claude-one", "claude-two"]) as server:
        machine.settings(anthropic(server.base_url) + "[model]\ndefault = 'anthropic/claude-one'")
        seen = await machine.doctor(ANTHROPIC_API_KEY="k")
        assert "anthropic answers, with 2 models. -> " in seen.of("models", "ok")
        assert not seen.of("models", "warning", "problem") and seen.code == 0
        machine.settings(anthropic(server.base_url) + "[model]\ndefault = 'anthropic/claude-six'")
        seen = await machine.doctor(ANTHROPIC_API_KEY="k")
        assert "does not list claude-six" in seen.bad["models"]


@pytest.mark.req("G031")
async def test_a_model_server_on_this_machine_serves_without_a_key(machine: Machine) -> None:
    async with ChatServer(models=["nomic-embed-text", "qwen3"]) as server:
        (machine.config / "magy.toml").write_text(
            SHUT.replace("http://127.0.0.1:1/v1", server.base_url, 1), encoding="utf-8"
        )
        seen = await machine.doctor()
        assert seen.code == 0, seen.bad
        assert seen.of("models", "ok")[0].startswith("New sessions use ollama/qwen3 (none is ")
        assert "ollama answers, with 2 models. -> " in seen.of("models", "ok")
        server.models = []
        (said,) = (await machine.doctor()).of("models", "warning")
        assert said.startswith("ollama answers, but offers no model. -> Load a model there")


@pytest.mark.parametrize("fault", ["html", "500", "drop"])
async def test_an_endpoint_that_is_none(machine: Machine, fault: str) -> None:
    async with AnthropicServer(models=Fault(fault)) as server:
        machine.settings(anthropic(server.base_url))
        seen = await machine.doctor(ANTHROPIC_API_KEY="k")
    assert seen.of("models", "problem")[0].startswith("anthropic cannot be used: ")


async def test_an_endpoint_that_never_answers(machine: Machine) -> None:
    async with AnthropicServer(models=Fault("silence")) as server:
        machine.settings(anthropic(server.base_url))
        seen = await machine.doctor(ANTHROPIC_API_KEY="k")
    assert "anthropic does not answer within" in seen.of("models", "problem")[0]


@pytest.mark.needs("bwrap")
async def test_without_a_network(machine: Machine) -> None:
    machine.wrap = ("bwrap", "--bind", "/", "/", "--dev", "/dev", "--unshare-net")
    seen = await machine.doctor(ANTHROPIC_API_KEY="k")
    (said,) = seen.of("models", "problem")
    assert "anthropic cannot be used" in said and "Check the network" in said


async def test_a_script_that_cannot_be_read(machine: Machine) -> None:
    seen = await machine.doctor(MAGY_SCRIPT="/nowhere/at/all.script")
    assert "/nowhere/at/all.script" in seen.of("models", "problem")[0]
