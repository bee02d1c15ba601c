"""The guard itself: a test run has no keys, a home of its own, and no network beyond loopback."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from tests import guard

SECRETS = {
    "ANTHROPIC_API_KEY": "sk-1",
    "GITHUB_TOKEN": "t",
    "AWS_SECRET_ACCESS_KEY": "s",
    "DB_PASSWORD": "p",
    "MAGY_MODEL": "anthropic/other",
    "OPENAI_BASE_URL": "https://example.invalid",
    "NODE_EXTRA_CA_CERTS": "/elsewhere/all.pem",
    "https_proxy": "http://example.invalid:8080",
    "GIT_DIR": "/elsewhere/.git",
    "XDG_STATE_HOME": "/elsewhere/state",
}


def test_environment_keeps_no_keys_and_no_settings() -> None:
    environ = SECRETS | {"PATH": "/bin", "KEYBOARD": "us", "TERM": "dumb"}
    guard.clean_environment(environ)
    assert environ == {"PATH": "/bin", "KEYBOARD": "us", "TERM": "dumb"}


def test_clients_trust_one_authority_that_vouches_for_nobody() -> None:
    assert ssl.create_default_context().cert_store_stats()["x509"] == 1


def test_started_processes_live_in_the_test_home() -> None:
    code = "import os, pathlib; print(pathlib.Path.home(), os.environ['XDG_STATE_HOME'])"
    home, state = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert home == os.environ["HOME"] and Path(state).parent == Path(home)
    assert not list(Path(state).iterdir())


@pytest.mark.parametrize("address", [("192.0.2.1", 80), ("2001:db8::1", 80)])
def test_connections_beyond_loopback_are_refused(address: tuple[str, int]) -> None:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    with socket.socket(family) as sock, pytest.raises(guard.NetworkBlocked, match="loopback"):
        sock.connect(address)
    assert guard.blocked.pop().endswith(address[0])


async def test_name_look_ups_are_refused_and_remembered() -> None:
    with pytest.raises(guard.NetworkBlocked):
        await asyncio.get_running_loop().getaddrinfo("example.invalid", 443)
    assert guard.blocked.pop() == "socket.getaddrinfo example.invalid"


async def test_loopback_is_open() -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(greet, "localhost", 0) as server:
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("localhost", port)
        assert await reader.read() == b"hello"
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize(
    ("ci", "outcome", "workers"),
    [("", "1 passed, 1 skipped", "1"), ("true", "1 passed, 1 error", "1"),
     ("true", "1 passed, 1 error", "0")],
)  # fmt: skip
def test_left_out_tests_are_named_and_fail_in_ci(
    tmp_path: Path, ci: str, outcome: str, workers: str
) -> None:
    (tmp_path / "test_left_out.py").write_text(
        "import pytest\n"
        "@pytest.mark.needs('no-such-editor')\n"
        "def test_editor(): pass\n"
        "@pytest.mark.needs('python3')\n"
        "def test_python(): pass\n"
    )
    top = Path(__file__).parents[1]
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    command += ["-n", workers]
    run = subprocess.run(
        [*command, "-c", str(top / "pyproject.toml"), str(tmp_path)],
        cwd=top, env=os.environ | {"CI": ci}, capture_output=True, text=True,
    )  # fmt: skip
    assert outcome in run.stdout and "no-such-editor not installed" in run.stdout
    assert "test_editor" in run.stdout and run.returncode == bool(ci)
