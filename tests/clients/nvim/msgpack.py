"""As much of MessagePack as Neovim's RPC needs."""

from __future__ import annotations

import struct
from typing import Any, BinaryIO


def pack(value: Any) -> bytes:
    match value:
        case None:
            return b"\xc0"
        case bool():
            return b"\xc3" if value else b"\xc2"
        case int():
            return b"\xd3" + struct.pack(">q", value)
        case float():
            return b"\xcb" + struct.pack(">d", value)
        case str():
            body = value.encode()
            return b"\xdb" + struct.pack(">I", len(body)) + body
        case list() | tuple():
            return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(pack, value))
        case dict():
            body = b"".join(pack(key) + pack(item) for key, item in value.items())
            return b"\xdf" + struct.pack(">I", len(value)) + body
    raise TypeError(f"cannot pack {type(value).__name__}")


_NUMBERS = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
    0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
}  # fmt: skip
_SIZES = {1: ">B", 2: ">H", 4: ">I"}
_TEXTS = {0xD9: 1, 0xDA: 2, 0xDB: 4, 0xC4: 1, 0xC5: 2, 0xC6: 4}
_LISTS = {0xDC: 2, 0xDD: 4}
_MAPS = {0xDE: 2, 0xDF: 4}
_EXTENSIONS = {0xC7: 1, 0xC8: 2, 0xC9: 4}


class Unpacker:
    """Reads values from a stream. A handle of Neovim's (buffer, window, tab page) is its number."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def read(self) -> Any:
        """The next value. EOFError: the stream has ended."""
        kind = self._take(1)[0]
        if kind <= 0x7F:
            return kind
        if kind >= 0xE0:
            return kind - 0x100
        if kind <= 0x8F:
            return self._map(kind & 0x0F)
        if kind <= 0x9F:
            return self._list(kind & 0x0F)
        if kind <= 0xBF:
            return self._text(kind & 0x1F)
        return self._long(kind)

    def _long(self, kind: int) -> Any:
        if kind <= 0xC3:
            return {0xC0: None, 0xC2: False, 0xC3: True}[kind]
        if (form := _NUMBERS.get(kind)) is not None:
            return self._number(form)
        if (size := _TEXTS.get(kind)) is not None:
            return self._text(self._number(_SIZES[size]))
        if (size := _LISTS.get(kind)) is not None:
            return self._list(self._number(_SIZES[size]))
        if (size := _MAPS.get(kind)) is not None:
            return self._map(self._number(_SIZES[size]))
        size = _EXTENSIONS.get(kind)
        length = 1 << (kind - 0xD4) if size is None else self._number(_SIZES[size])
        self._take(1)
        body = self._take(length)
        return int.from_bytes(body, "big") if body[0] <= 0x7F and length == 1 else body[1:]

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _text(self, length: int) -> str:
        return self._take(length).decode("utf-8", "replace")

    def _list(self, length: int) -> list[Any]:
        return [self.read() for _ in range(length)]

    def _map(self, length: int) -> dict[Any, Any]:
        return {self.read(): self.read() for _ in range(length)}

    def _take(self, length: int) -> bytes:
        body = self._stream.read(length)
        if len(body) < length:
            raise EOFError
        return body
