"""Small pictures, whole and valid, made byte by byte."""

from __future__ import annotations

import struct
import zlib


def png(width: int = 2, height: int = 1, *, padding: int = 0) -> bytes:
    """Grey. `padding`: bytes of a chunk that readers pass over."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\x80" * width) * height)
    filler = chunk(b"maGy", b"\0" * padding) if padding else b""
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header) + filler + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    )  # fmt: skip


def gif(width: int = 3, height: int = 2) -> bytes:
    size = struct.pack("<HH", width, height)
    image = b"," + struct.pack("<HHHHB", 0, 0, width, height, 0) + b"\x02\x02\x44\x01\0"
    return b"GIF89a" + size + b"\x80\0\0\0\0\0\xff\xff\xff" + image + b";"


def jpeg(width: int = 4, height: int = 5, *, frame: int = 0xC0) -> bytes:
    """Its parts in the usual order, with fill bytes; the scan is not meant to be decoded."""
    app = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0"
    huffman = b"\xff\xff\xff\xc4" + struct.pack(">H", 4) + b"\0\0"
    header = b"\x08" + struct.pack(">HH", height, width) + b"\x01\x01\x11\0"
    sof = bytes([0xFF, frame]) + struct.pack(">H", 2 + len(header)) + header
    scan = b"\xff\xda" + struct.pack(">H", 8) + b"\x01\x01\0\0\x3f\0" + b"\x12\xff\0\x34"
    return b"\xff\xd8" + app + huffman + sof + scan + b"\xff\xd9"


def webp(kind: bytes, width: int = 6, height: int = 7) -> bytes:
    """`kind`: VP8X, VP8L or `VP8 `."""
    if kind == b"VP8X":
        data = bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    elif kind == b"VP8L":
        data = b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14) + bytes(5)
    else:
        data = b"\x10\0\0\x9d\x01\x2a" + struct.pack("<HH", width | 1 << 14, height) + bytes(4)
    chunk = kind + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", 4 + len(chunk)) + b"WEBP" + chunk
