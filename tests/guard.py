"""What keeps a test run to itself: no keys, no home directory of a person, no network.

`clean_environment` and `block_network` hold for this process; processes that tests start inherit
the environment, and with it have neither keys nor settings to reach anything with.
"""

from __future__ import annotations

import ipaddress
import os
import re
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_SECRET = re.compile(r"(^|_)(KEY|KEYS|TOKEN|SECRET|PASSWORD|CREDENTIALS)$", re.IGNORECASE)
_SETTINGS = re.compile(
    r"^(MAGY|ANTHROPIC|OPENAI|AWS|AZURE|GOOGLE|GEMINI|GIT|XDG)_|_PROXY$|^PYTEST_ADDOPTS$"
    r"|^PYTHON(DONTWRITEBYTECODE|UNBUFFERED)$|^NODE_EXTRA_CA_CERTS$",
    re.IGNORECASE,
)

SESSION = f"s{os.getpid()}"
"""The session of a test that runs commands. What a command leaves running is looked for on the
whole machine by the id of its session: two workers with the same one would find, and end, each
other's processes."""

SHUT = "\n".join(
    f'[[provider]]\nname = "{name}"\nkind = "openai-chat"\nbase_url = "http://127.0.0.1:1/v1"\n'
    for name in ("ollama", "llamacpp", "vllm", "lmstudio")
)
"""Settings with which a model server that runs on the machine of who runs the tests has no part in
them, though it listens where such servers do."""

blocked: list[str] = []
"""Connections that were tried and refused, since the last test that looked."""


class NetworkBlocked(RuntimeError):
    """Not an OSError, so that no adapter takes it for a connection fault and tries again."""


def clean_environment(environ: MutableMapping[str, str]) -> None:
    """Removes keys and tokens, and settings that would make a test depend on who runs it."""
    for name in list(environ):
        if _SECRET.search(name) or _SETTINGS.search(name):
            del environ[name]


def find_cached_programs(environ: MutableMapping[str, str]) -> None:
    """Puts at the end of the path what `.ci/programs` has built for the tests, since no package
    manager has it. Call it before the environment is cleaned."""
    cache = environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME", "/")) / ".cache"
    environ["PATH"] = f"{environ.get('PATH', '')}{os.pathsep}{cache}/magy-ci/bin"


def trust_nobody(environ: MutableMapping[str, str]) -> None:
    """Has clients trust one authority, whose key nobody has. To read the hundred of a machine takes
    each process longer than what it then asks on loopback."""
    environ["SSL_CERT_FILE"] = str(Path(__file__).with_name("nobodys_ca.pem"))


@contextmanager
def fresh_home() -> Iterator[dict[str, str]]:
    """A new, empty home directory: the variables that make a process live there.

    The path is short, since the address of a local socket below it has about 100 bytes.
    """
    short = "/tmp" if os.access("/tmp", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="magy-", dir=short, ignore_cleanup_errors=True) as path:
        home = os.path.realpath(path)
        places = {
            "XDG_CONFIG_HOME": f"{home}/config",
            "XDG_STATE_HOME": f"{home}/state",
            "XDG_DATA_HOME": f"{home}/data",
            "XDG_CACHE_HOME": f"{home}/cache",
            "XDG_RUNTIME_DIR": f"{home}/run",
        }
        for place in places.values():
            os.mkdir(place, 0o700)
        who = {"NAME": "Test", "EMAIL": "test@example.invalid"}
        git = {f"GIT_{role}_{k}": v for role in ("AUTHOR", "COMMITTER") for k, v in who.items()}
        try:
            yield {"HOME": home, **places, **git}
        finally:
            with suppress(OSError):  # most tests leave nothing there, and to look takes longer
                for place in (*places.values(), home):
                    os.rmdir(place)


def block_network() -> None:
    """From now on a connection or name look-up beyond this machine raises NetworkBlocked.

    For the life of the process: an audit hook cannot be taken back.
    """
    sys.addaudithook(_audit)


def hear_interrupts() -> None:
    """Let Ctrl-C reach what the tests start, where the shell of this run had it ignored.

    A job that a script starts in the background ignores SIGINT, and its children inherit that.
    """
    on_main_thread = threading.current_thread() is threading.main_thread()
    if on_main_thread and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _audit(event: str, args: tuple[Any, ...]) -> None:
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        sock, address = args[0], args[1]
        if sock.family in (socket.AF_INET, socket.AF_INET6) and address is not None:
            _check(event, address[0])
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        _check(event, args[0])


def _check(event: str, host: object) -> None:
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else host
    if name in (None, "", "localhost"):
        return
    try:
        if ipaddress.ip_address(str(name).partition("%")[0]).is_loopback:
            return
    except ValueError:
        pass
    blocked.append(f"{event} {name}")
    raise NetworkBlocked(f"A test tried to reach {name!r}; only loopback is allowed ({event}).")
