"""The answer to `initialize` is written before anything else is imported (`jsonrpc.greeting`).

A test compares this answer with the one that pygls gives; what is not plainly well-formed is left
to pygls altogether.
This module imports next to nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from magy_server import __version__
from magy_server.api.wire.names import COMMANDS, KINDS
from magy_server.jsonrpc import greeting
from magy_server.jsonrpc.greeting import LARGEST, Greeting, is_initialize
from magy_server.lsp.client_capabilities import encoding_of

EXPERIMENTAL: Mapping[str, Any] = {"version": __version__, "protocol": 1}
OPERATIONS = ("didCreate", "didDelete", "didRename")
"""What Magy wants to hear that the person does to files."""
SAVES = ("willSave", "willSaveWaitUntil")
"""What Magy does not want to hear, and says so to those who could tell it."""
FILES = {"filters": [{"pattern": {"glob": "**/*"}, "scheme": "file"}]}
TRACES = ("off", "messages", "verbose")
_HEADER, _BLANK = b"Content-Length: ", b"\r\n\r\n"


def greet(stdin: int, stdout: int) -> Greeting:
    return greeting.greet(stdin, stdout, _Headed(), answer)


def answer(message: Mapping[str, Any]) -> dict[str, Any] | None:
    """The response to an `initialize`; None for what pygls might see otherwise."""
    params: Any = message.get("params")
    if not is_initialize(message) or not _is_usual(params):
        return None
    capabilities = _capabilities(params["capabilities"])
    if capabilities is None:
        return None
    server = {"name": "magy", "version": __version__}
    result = {"capabilities": capabilities, "serverInfo": server}
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def _capabilities(client: Mapping[str, Any]) -> dict[str, Any] | None:
    try:
        encodings = _part(client, "general").get("positionEncodings")
        operations = _switches(_part(client, "workspace", "fileOperations"), OPERATIONS)
        saves = _switches(_part(client, "textDocument", "synchronization"), SAVES)
        inline = _inline(_part(client, "textDocument").get("inlineCompletion"))
    except TypeError:
        return None
    if encodings is not None and not _all_texts(encodings):
        return None
    return {
        "positionEncoding": encoding_of(encodings),
        "textDocumentSync": {"openClose": True, "change": 2, "save": True}
        | dict.fromkeys(saves, False),
        "codeActionProvider": {"codeActionKinds": list(KINDS), "resolveProvider": True},
        "codeLensProvider": {"resolveProvider": False},
        "executeCommandProvider": {"commands": list(COMMANDS)},
        "workspace": {
            "workspaceFolders": {"supported": True, "changeNotifications": True},
            "fileOperations": {name: FILES for name, wanted in operations.items() if wanted},
        },
        "experimental": {"magy": dict(EXPERIMENTAL)},
    } | inline


def _inline(announced: Any) -> dict[str, Any]:
    """A client that takes registrations gets one when inline completion is on; others are told of
    it now, and get no suggestion while it is off. Raises TypeError."""
    if announced is None:
        return {}
    if type(announced) is not dict:
        raise TypeError(announced)
    later = _switches(announced, ("dynamicRegistration",)).get("dynamicRegistration", False)
    return {} if later else {"inlineCompletionProvider": True}


def _part(whole: Any, *names: str) -> dict[str, Any]:
    """What stands there; {} for nothing. Raises TypeError if something else than an object does."""
    for name in names:
        whole = whole.get(name)
        if whole is None:
            return {}
        if type(whole) is not dict:
            raise TypeError(name)
    return dict(whole)


def _switches(part: Mapping[str, Any], names: Sequence[str]) -> dict[str, bool]:
    """Those of the names that are set. Raises TypeError if one is set to no truth value."""
    found = {name: part[name] for name in names if part.get(name) is not None}
    if any(type(value) is not bool for value in found.values()):
        raise TypeError(names)
    return found


def _is_usual(params: Any) -> bool:
    """Whether pygls can only understand these, and as we do."""
    if type(params) is not dict or type(params.get("capabilities")) is not dict:
        return False
    process, root, about = (params.get(key) for key in ("processId", "rootUri", "clientInfo"))
    folders = params.get("workspaceFolders")
    return (
        (process is None or (type(process) is int and 0 <= process < 1 << 31))
        and (_is_file(root) if root is not None else params.get("rootPath") is None)
        and (about is None or _is_about(about))
        and params.get("trace") in (None, *TRACES)
        and params.get("workDoneToken") is None
        and all(type(params.get(key)) in (str, type(None)) for key in ("locale", "rootPath"))
        and (folders is None or (type(folders) is list and all(map(_is_folder, folders))))
    )


def _is_about(client: Any) -> bool:
    named = type(client) is dict and type(client.get("name")) is str
    return named and type(client.get("version")) in (str, type(None))


def _is_folder(folder: Any) -> bool:
    named = type(folder) is dict and type(folder.get("name")) is str
    return named and _is_file(folder.get("uri"))


def _is_file(uri: Any) -> bool:
    return type(uri) is str and uri.startswith("file:///")


def _all_texts(value: Any) -> bool:
    return type(value) is list and all(type(item) is str for item in value)


class _Headed:
    def body(self, read: bytes) -> tuple[bytes, int] | None:
        end = read.find(_BLANK)
        if not read.startswith(_HEADER[: len(read)]) or (end < 0 and len(read) > 40):
            return b"", 0
        if end < 0:
            return None
        digits = read[len(_HEADER) : end]
        if not digits.isdigit() or len(digits) > 9 or int(digits) > LARGEST:
            return b"", 0
        start, size = end + len(_BLANK), int(digits)
        body = read[start : start + size]
        return None if len(body) < size else (body, start + size)

    def framed(self, body: bytes) -> bytes:
        return b"Content-Length: %d%b%b" % (len(body), _BLANK, body)
