"""The proxy reaches what is listed, by the address that it has checked."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import psutil
import pytest

from magy_server.proxy import Listed, Proxy, Refused, _asked, _may_be
from tests.sandbox.conftest import Machine


@pytest.mark.parametrize(
    ("entry", "host", "port", "covered"),
    [
        ("pypi.org", "pypi.org", 443, True),
        ("pypi.org", "pypi.org", 80, True),
        ("pypi.org", "pypi.org", 22, False),
        ("PyPI.org.", "pypi.org", 443, True),
        ("pypi.org", "evil-pypi.org", 443, False),
        ("pypi.org", "pypi.org.evil.com", 443, False),
        ("pypi.org", "a.pypi.org", 443, False),
        ("*.npmjs.org", "registry.npmjs.org", 443, True),
        ("*.npmjs.org", "a.b.npmjs.org", 443, True),
        ("*.npmjs.org", "npmjs.org", 443, False),
        ("*.npmjs.org", "evilnpmjs.org", 443, False),
        ("localhost:8080", "localhost", 8080, True),
        ("localhost:8080", "localhost", 80, False),
        ("[::1]:8080", "::1", 8080, True),
        ("::1", "::1", 80, True),
        ("*", "anything.example", 443, True),
        ("", "anything.example", 443, False),
    ],
)
def test_what_an_entry_covers(entry: str, host: str, port: int, covered: bool) -> None:
    assert Listed.of(entry).covers(host, port) is covered


@pytest.mark.parametrize(
    ("address", "host", "exact", "may"),
    [
        ("93.184.216.34", "example.org", False, True),
        ("127.0.0.1", "example.org", True, False),
        ("127.0.0.1", "a.example.org", False, False),
        ("127.0.0.1", "localhost", True, True),
        ("127.0.0.1", "127.0.0.1", True, True),
        ("::1", "localhost", True, True),
        ("0.0.0.0", "example.org", True, False),
        ("169.254.169.254", "example.org", True, False),
        ("10.0.0.7", "intranet.example", True, True),
        ("10.0.0.7", "a.example", False, False),
        ("::ffff:127.0.0.1", "example.org", True, False),
        ("fe80::1%eth0", "example.org", True, False),
        ("224.0.0.1", "a.example", False, False),
        ("64:ff9b::7f00:1", "example.org", True, False),
        ("64:ff9b::a00:7", "a.example", False, False),
        ("64:ff9b::5db8:d822", "a.example", False, True),
        ("2002:7f00:1::", "example.org", True, False),
        ("2002:a00:7::1", "a.example", False, False),
        ("fec0::1", "a.example", False, False),
    ],
)
def test_where_a_listed_name_may_lead(address: str, host: str, exact: bool, may: bool) -> None:
    assert _may_be(address, host, exact=exact) is may


def test_no_listed_name_may_lead_to_an_address_of_this_machine() -> None:
    """Whoever answers for a name could have it lead to what listens here on all addresses."""
    families = (socket.AF_INET, socket.AF_INET6)
    there = [one for some in psutil.net_if_addrs().values() for one in some]
    own = [one.address.partition("%")[0] for one in there if one.family in families]
    assert own
    for address in own:
        assert not _may_be(address, "intranet.example", exact=True)
        assert not _may_be(address, "a.example.org", exact=False)
        assert _may_be(address, address, exact=True)


@pytest.mark.parametrize(
    "head",
    ["GET / HTTP/1.1", "GET https://a/ HTTP/1.1", "CONNECT :443 HTTP/1.1", "x", "GET http://[/ H",
     "GET file:///etc/passwd HTTP/1.1", "CONNECT a:b HTTP/1.1"],
)  # fmt: skip
def test_what_is_no_request_to_a_proxy_is_refused(head: str) -> None:
    with pytest.raises(Refused):
        _asked(f"{head}\r\n\r\n".encode())


def test_a_plain_request_goes_on_without_what_is_for_the_proxy() -> None:
    head = (
        "POST http://me@a.example:8080/x?y=1 HTTP/1.1\r\nHost: evil.example\r\nHost : evil\r\n"
        "Proxy-Authorization: z\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\n"
    )
    host, port, first = _asked(head.encode())
    assert (host, port) == ("a.example", 8080)
    assert first.decode() == (
        "POST /x?y=1 HTTP/1.1\r\nHost: a.example:8080\r\nContent-Length: 3\r\n"
        "Connection: close\r\n\r\n"
    )


@pytest.fixture
async def echo() -> AsyncIterator[int]:
    """A server that says what it hears, up to the end."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1000):
            writer.write(data.upper())
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()


async def said(proxy_port: int, *words: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy_port)
    for word in words:
        writer.write(word)
        await writer.drain()
    writer.write_eof()
    found = await reader.read()
    writer.close()
    return found


async def test_a_tunnel_and_its_end(echo: int) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    proxy = Proxy([f"localhost:{echo}"])
    await proxy.serve(listening)
    port = listening.getsockname()[1]
    connect = f"CONNECT localhost:{echo} HTTP/1.1\r\n\r\n".encode()
    assert (
        await said(port, connect, b"hello") == b"HTTP/1.1 200 Connection established\r\n\r\nHELLO"
    )
    refused = await said(port, f"CONNECT 127.0.0.1:{echo} HTTP/1.1\r\n\r\n".encode())
    assert refused.startswith(b"HTTP/1.1 403")
    assert list(proxy.refused) == [f"127.0.0.1:{echo}"]
    assert (await said(port, b"x" * 100_000)).count(b"200") == 0
    await proxy.close()


async def test_no_more_than_so_many_bytes_pass(echo: int) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    proxy = Proxy([f"localhost:{echo}"], 8)
    await proxy.serve(listening)
    port = listening.getsockname()[1]
    connect = f"CONNECT localhost:{echo} HTTP/1.1\r\n\r\n".encode()
    assert (await said(port, connect, b"hello")).endswith(b"HELLO") and not proxy.full
    assert (await said(port, connect, b"again")).endswith(b"\r\n\r\n") and proxy.full
    assert (await said(port, connect, b"a")).endswith(b"\r\n\r\n")
    await proxy.close()


@pytest.mark.needs("bwrap", "curl")
@pytest.mark.req("A104")
async def test_what_is_listed_is_reached_from_inside(machine: Machine, echo: int) -> None:
    machine.set("strict", hosts=[f"localhost:{echo}"])
    inside = (
        "import socket; s = socket.create_connection(('127.0.0.1', 3128));"
        f" s.sendall(b'CONNECT localhost:{echo} HTTP/1.1\\r\\n\\r\\n');"
        " print(s.recv(99)); s.sendall(b'abc'); print(s.recv(99))"
    )
    other = "curl -s -o /dev/null -w '%{http_code}' http://other.example/"
    ran = await machine.project().run(f'python3 -c "{inside}"; {other}')
    assert ran.said.endswith("403")
    assert "ABC" in ran.said
    assert ran.outcome.refused == ("other.example:80",)
