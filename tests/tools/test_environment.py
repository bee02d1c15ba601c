"""What the processes of tools get told, and do not get."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psutil
import pytest

from magy_server.core.values import Evidence
from magy_server.tools.git.program import Git
from magy_server.tools.shell.environment import environment


def git(cwd: Path, *words: str, **base: str) -> str:
    env = environment({"PATH": os.environ["PATH"], "HOME": str(cwd), **base}, str(cwd), "s:1")
    run = subprocess.run(["git", *words], cwd=cwd, env=env, capture_output=True, check=False)
    return (run.stdout + run.stderr).decode()


@pytest.mark.needs("git")
def test_git_is_told_behind_what_the_person_told_it(tmp_path: Path) -> None:
    own = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "Me"}
    for base in (own, {}, {"GIT_CONFIG_COUNT": "x"}):
        assert git(tmp_path, "config", "safe.bareRepository", **base) == "explicit\n"
        assert git(tmp_path, "config", "core.fsmonitor", **base) == "false\n"
    assert git(tmp_path, "config", "user.name", **own) == "Me\n"


@pytest.mark.needs("git")
def test_a_committed_directory_is_no_repository(tmp_path: Path) -> None:
    """A clone brings it along like any other; its configuration is a stranger's."""
    for name in ("objects", "refs"):
        (tmp_path / name).mkdir()
    (tmp_path / "HEAD").write_text("ref: refs/heads/main\n")
    monitor = f"touch {tmp_path}/ran;false"
    (tmp_path / "config").write_text(
        f'[core]\nrepositoryformatversion=0\nbare=false\nworktree=.\nfsmonitor="{monitor}"\n'
    )
    git(tmp_path, "status")
    assert not (tmp_path / "ran").exists()
    plain = {name: os.environ[name] for name in ("PATH",)}
    subprocess.run(["git", "status"], cwd=tmp_path, env=plain, capture_output=True, check=False)
    assert (tmp_path / "ran").exists()  # a real trap


def test_programs_are_not_taken_from_where_one_happens_to_be() -> None:
    base = {"PATH": ".:/usr/bin::bin:/bin:"}
    assert environment(base, "/", "s:1")["PATH"] == "/usr/bin:/bin"
    assert "PATH" not in environment({}, "/", "s:1")


# --- what passes ----------------------------------------------------------------------------------

SECRETS = [
    "ANTHROPIC_API_KEY", "OPENAI_KEY", "OPENAI_KEY_2", "LLMKEY", "CI_PAT", "GH_PAT_2",
    "DATABASE_URL", "REDIS_URL", "MONGODB_URI", "SQLALCHEMY_DATABASE_URI", "SENTRY_DSN", "NPM_AUTH",
    "NPM_TOKEN", "npm_config__auth", "npm_config_//r/:_authToken", "JWT", "MY_JWT", "PGPASSWORD",
    "MYSQL_PWD", "SSHPASS", "STRIPE_SK", "SLACK_WEBHOOK_URL", "AWS_ACCESS_KEY_ID", "AWS_PROFILE",
    "COOKIE", "POETRY_PYPI_TOKEN_PYPI", "POETRY_HTTP_BASIC_X_PASSWORD", "UV_INDEX_X_PASSWORD",
    "CARGO_REGISTRY_TOKEN", "CARGO_REGISTRIES_X_TOKEN", "HOMEBREW_GITHUB_API_TOKEN",
    "DOCKER_AUTH_CONFIG", "ORG_GRADLE_PROJECT_mavenPassword", "ORG_GRADLE_PROJECT_x",
    "MAGY_API_KEY", "VAULT_ADDR", "DIRENV_DIFF", "GIT_CONFIG_PARAMETERS", "KUBE_TOKEN",
    "XDG_SESSION_COOKIE", "PIP_PASSWORD", "BUNDLE_GEMS__EXAMPLE__ORG_TOKEN", "LD_PRELOAD",
    "BUNDLE_GITHUB__COM", "BUNDLE_GEMS__CONTRIBSYS__COM",
    "ANYTHING",
]  # fmt: skip

TOOLCHAINS = {
    "venv": "VIRTUAL_ENV PYTHONPATH PYTHONUNBUFFERED PIP_CACHE_DIR CONDA_PREFIX UV_CACHE_DIR",
    "poetry": "POETRY_HOME POETRY_CACHE_DIR POETRY_VIRTUALENVS_IN_PROJECT POETRY_ACTIVE",
    "npm": "npm_config_cache NPM_CONFIG_PREFIX NVM_DIR NODE_PATH NODE_OPTIONS NODE_EXTRA_CA_CERTS",
    "cargo": "CARGO_HOME CARGO_TARGET_DIR RUSTUP_HOME RUSTUP_TOOLCHAIN RUSTFLAGS RUST_BACKTRACE",
    "go": "GOPATH GOROOT GOFLAGS GOPROXY GOPRIVATE GOCACHE GOMODCACHE CGO_ENABLED GOTOOLCHAIN",
    "gradle": "JAVA_HOME GRADLE_HOME GRADLE_USER_HOME GRADLE_OPTS JAVA_OPTS ANDROID_HOME",
    "maven": "JAVA_HOME MAVEN_HOME M2_HOME MAVEN_OPTS MAVEN_ARGS JAVA_TOOL_OPTIONS",
    "ssh-agent": "SSH_AUTH_SOCK SSH_AGENT_PID GIT_SSH_COMMAND SSH_ASKPASS GIT_ASKPASS",
    "docker": "DOCKER_HOST DOCKER_CONTEXT DOCKER_CONFIG DOCKER_BUILDKIT COMPOSE_PROJECT_NAME",
    "direnv": "DIRENV_DIR DIRENV_FILE DIRENV_CONFIG XDG_CONFIG_HOME XDG_DATA_HOME HOME",
    "all": "PATH HOME USER LANG LC_ALL TMPDIR https_proxy NO_PROXY SSL_CERT_FILE XDG_RUNTIME_DIR",
}


def passed(names: Iterable[str], **more: Any) -> set[str]:
    base = {name: f"value of {name}" for name in names}
    found = environment(base, "/", "s:1", **more)
    return {name for name in base if found.get(name) == base[name]}


def test_nothing_passes_that_may_hold_a_key() -> None:
    assert passed(SECRETS) == set()


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
def test_what_a_toolchain_reads_passes(toolchain: str) -> None:
    names = {*TOOLCHAINS[toolchain].split()} - {"PATH"}
    assert passed(names) == names


def test_a_person_adds_names_and_patterns_and_a_pattern_takes_no_keys() -> None:
    names = {"ACME_HOME", "ACME_TOKEN", "ACME_PAT", "STRIPE_SK", "OPENAI_API_KEY", "BASH_ENV"}
    assert passed(names, more={"ACME_*"}) == {"ACME_HOME"}
    assert passed(names, more={"*"}) == {"ACME_HOME", "STRIPE_SK"}
    assert passed(names, more={"ACME_TOKEN", "BASH_ENV"}) == {"ACME_TOKEN"}
    # but never what Magy itself pays with
    assert passed(names, more={"OPENAI_API_KEY", "*"}, hidden={"OPENAI_API_KEY"}) == {
        "ACME_HOME", "STRIPE_SK"
    }  # fmt: skip


def test_a_key_or_a_password_does_not_pass_under_a_harmless_name() -> None:
    base = {
        "CORP_LLM": "k-12345678", "PIP_INDEX_URL": "https://me:pw@host/simple", "EDITOR": "vi",
        "GOFLAGS": "-ldflags=-X=k-12345678", "https_proxy": "http://user:pw@proxy:3128",
        "http_proxy": "http://proxy:3128", "GIT_SSH_COMMAND": "ssh -i ~/.ssh/id",
        "GIT_CONFIG_COUNT": "4", "GIT_CONFIG_KEY_0": "http.https://x.org/.extraheader",
        "GIT_CONFIG_VALUE_0": "Authorization: basic eDp5", "GIT_CONFIG_KEY_1": "user.name",
        "GIT_CONFIG_VALUE_1": "Me", "GIT_CONFIG_KEY_2": "url.https://me:pw@x.org/.insteadOf",
        "GIT_CONFIG_VALUE_2": "https://x.org/", "GIT_CONFIG_KEY_3": "http.proxy",
        "GIT_CONFIG_VALUE_3": "http://me:pw@proxy",
        "UV_DEFAULT_INDEX": "https://0123456789abcdefXYZ@gems.example.org/simple",
        "NIX_CONFIG": "access-tokens = github.com=ghp_0123456789abcdefABCD",
        "PIP_EXTRA_INDEX_URL": "https://me@host/simple", "BUNDLE_BUILD__PG": "--with-pg=/usr",
        "DOCKER_HOST": "ssh://a-rather-long-user@host", "PYTHONPATH": "/x/sk-learn-extra-things",
    }  # fmt: skip
    found = environment(base, "/", "s:1", hidden={"CORP_LLM"})
    assert not {"CORP_LLM", "PIP_INDEX_URL", "GOFLAGS", "https_proxy"} & set(found)
    assert not {"UV_DEFAULT_INDEX", "NIX_CONFIG"} & set(found)
    assert {"EDITOR", "http_proxy", "GIT_SSH_COMMAND", "PIP_EXTRA_INDEX_URL"} <= set(found)
    assert {"BUNDLE_BUILD__PG", "DOCKER_HOST", "PYTHONPATH"} <= set(found)
    assert found["GIT_CONFIG_KEY_0"] == "user.name" and found["GIT_CONFIG_COUNT"] == "3"
    assert not [value for value in found.values() if "pw@" in value or "basic" in value]
    assert "https_proxy" in environment(base, "/", "s:1", more={"https_proxy"})


@pytest.mark.needs("git")
async def test_git_behind_its_gate_holds_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it waits to be let through, other commands can look at it."""
    monkeypatch.setenv("OPENAI_KEY", "k-12345678")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    seen: dict[str, str] = {}

    async def started(evidence: Evidence) -> None:
        assert evidence.group
        process = psutil.Process(evidence.group)
        while not (found := process.environ()):  # for a moment the kernel shows none
            await asyncio.sleep(0.001)
        seen.update(found)

    git = Git(str(tmp_path), environment(os.environ, str(tmp_path), "s:1"), "s:1")
    await git.ready()
    ran = await git.act("commit", "-q", "--allow-empty", "-m", "x", started=started)
    assert ran.code == 0 and seen["MAGY_CALL"] == "s:1"
    assert not seen.get("OPENAI_KEY")


# --- toolchains at work, where they are installed -------------------------------------------------


def works(tmp_path: Path, line: str, **variables: str) -> str:
    """What a command line says in the environment of tools."""
    base = {**os.environ, **variables, "OPENAI_KEY": "k-12345678"}
    env = environment(base, str(tmp_path), "s:1")
    run = subprocess.run(
        ["bash", "-c", f"{line}; echo [${{OPENAI_KEY-none}}]"], cwd=tmp_path, env=env,
        capture_output=True, check=False, timeout=100,
    )  # fmt: skip
    said = (run.stdout + run.stderr).decode()
    assert "[none]" in said, said
    return said


def test_a_venv_is_the_one_that_is_active(tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    path = f"{venv}/bin:{os.environ['PATH']}"
    said = works(
        tmp_path, "python -c 'import sys; print(sys.prefix)'; echo $VIRTUAL_ENV",
        PATH=path, VIRTUAL_ENV=str(venv),
    )  # fmt: skip
    assert said.count(f"{venv}\n") == 2


COMMANDS = {
    "poetry": ("poetry config cache-dir", {"POETRY_CACHE_DIR": "{here}/cache"}),
    "npm": ("npm config get cache", {"npm_config_cache": "{here}/cache"}),
    "cargo": (
        "cargo init -q --vcs none --name a .; cargo metadata --offline --no-deps; "
        "echo $CARGO_TARGET_DIR",
        {"CARGO_TARGET_DIR": "{here}/cache"},
    ),
    "go": ("go env GOPATH", {"GOPATH": "{here}/cache"}),
    "gradle": ("gradle --offline --version; echo $GRADLE_USER_HOME",
               {"GRADLE_USER_HOME": "{here}/cache"}),
    "mvn": ("mvn -v; echo $MAVEN_OPTS", {"MAVEN_OPTS": "-Dmaven.repo.local={here}/cache"}),
    "docker": ("docker version", {"DOCKER_HOST": "unix://{here}/cache"}),
    "direnv": ("echo 'export A_B={here}/cache' > .envrc; direnv allow; direnv exec . env",
               {"XDG_DATA_HOME": "{here}/data"}),
}  # fmt: skip


@pytest.mark.parametrize("program", COMMANDS)
def test_a_toolchain_works_with_what_it_is_told(program: str, tmp_path: Path) -> None:
    """One that is not installed here is at least told."""
    line, told = COMMANDS[program]
    variables = {name: value.format(here=tmp_path) for name, value in told.items()}
    if shutil.which(program):
        said = works(tmp_path, line.format(here=tmp_path), **variables)
    else:
        said = works(tmp_path, "env", **variables)
    assert f"{tmp_path}/{'cache' if program != 'direnv' else ''}" in said


@pytest.mark.needs("ssh-agent")
def test_an_ssh_agent_is_reached(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        place = f"{short}/agent"
        agent = subprocess.Popen(["ssh-agent", "-D", "-a", place], stdout=subprocess.DEVNULL)
        try:
            said = works(
                tmp_path, f"until [ -S {place} ]; do :; done; ssh-add -l", SSH_AUTH_SOCK=place
            )
        finally:
            agent.terminate()
            agent.wait()
    assert "no identities" in said
