"""Pictures: how those begin that the providers take, and one to show them."""

from __future__ import annotations

import struct
import zlib

MAGIC = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}


def _chunk(kind: bytes, data: bytes) -> bytes:
    check = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)


PNG = (
    MAGIC["image/png"]
    + _chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 2, 8, 2, 0, 0, 0))
    + _chunk(b"IDAT", zlib.compress(b"\0\xff\0\0\0\xff\0" * 2))
    + _chunk(b"IEND", b"")
)
"""Two by two pixels, red and green."""
