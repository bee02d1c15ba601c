"""Models get only pictures that their bytes show to be whole, and small enough for every provider.

A picture stays in the conversation: one that a provider refuses would spoil every later request of
the session. So what is damaged or too large is refused at the door.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Mapping

from magy_server.core.errors import InvalidRequest
from magy_server.core.values import Image, digest
from magy_server.tools.files.disk import opened
from magy_server.tools.files.paths import Place, directory

LARGEST = 3_750_000
"""Bytes: providers take 5 MB of base64."""
SIDE = 8_000
"""Pixels, the most that providers take."""
_SHRINK = "Make it smaller first, for instance with ImageMagick: magick IN -resize '1568x1568>' OUT"


def picture(data: bytes, name: str) -> Image:
    """Raises InvalidRequest for what is no whole picture that all providers take."""
    shown = name or "The picture"
    kind = mime(data)
    if not kind:
        raise InvalidRequest(f"{shown} is not a PNG, JPEG, GIF or WebP picture; convert it first.")
    if len(data) > LARGEST:
        raise too_large(shown, len(data))
    try:
        width, height = size(data)
    except ValueError as error:
        said = {"image/png": "PNG", "image/jpeg": "JPEG", "image/gif": "GIF", "image/webp": "WebP"}
        raise InvalidRequest(
            f"{shown} looks like a {said[kind]} image ({len(data):,} bytes), but is damaged: "
            f"{error}."
        ) from None
    if max(width, height) > SIDE:
        raise InvalidRequest(
            f"{shown} has {width}x{height} pixels; models take at most {SIDE:,} each way. {_SHRINK}"
        )
    return Image(hash=digest(data), mime=kind, name=name)


def too_large(name: str, size: int) -> InvalidRequest:
    return InvalidRequest(f"{name} has {size:,} bytes; models take at most {LARGEST:,}. {_SHRINK}")


def mime(head: bytes) -> str:
    """Returns the media type by the first bytes (16 will do); "" for anything but the four
    kinds."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if head[:4] == b"RIFF" and head[8:12] == b"WEBP" else ""


def size(data: bytes) -> tuple[int, int]:
    """Width and height in pixels. Raises ValueError for a damaged picture, or one of another kind.

    It is not decoded: that it has an end, and a size at its beginning, is all that is known.
    """
    read = _SIZES.get(mime(data))
    if read is None:
        raise ValueError("it is of another kind")
    try:
        width, height = read(data)
    except (struct.error, IndexError):
        raise ValueError("it ends too early") from None
    if not width or not height:
        raise ValueError("it has no width or height")
    return width, height


def load(place: Place) -> bytes | None:
    """The bytes of a picture file; None for a file of another kind or the root. Blocks.

    Raises ToolError when it cannot be read, InvalidRequest when it is too large.
    """
    if place.name == ".":
        return None
    with directory(place) as (fd, name), opened(fd, name, place) as file:
        if not mime(os.pread(file.fileno(), 16, 0)):
            return None
        if (size := os.fstat(file.fileno()).st_size) > LARGEST:
            raise too_large(place.name, size)
        return file.read(LARGEST + 1)


# --- the four kinds -------------------------------------------------------------------------------


def _png(data: bytes) -> tuple[int, int]:
    """The first chunk has the size, and a last one marks the end (PNG 1.2, 4.1)."""
    at = 8
    while data[at + 4 : at + 8] != b"IEND":
        (length,) = struct.unpack_from(">I", data, at)
        at += 12 + length
    if at + 12 > len(data):
        raise ValueError("it ends too early")
    if data[12:16] != b"IHDR":
        raise ValueError("it does not begin with its size")
    return _pair(">II", data, 16)


def _jpeg(data: bytes) -> tuple[int, int]:
    """The size is in a frame header (SOF0 to SOF15, without DHT, JPG and DAC: T.81, B.1.1.3)."""
    at = 2
    while True:
        while data[at] == 0xFF and data[at + 1] == 0xFF:
            at += 1  # fill bytes
        if data[at] != 0xFF:
            raise ValueError("there is something else between its parts")
        marker = data[at + 1]
        (length,) = struct.unpack_from(">H", data, at + 2)
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = _pair(">HH", data, at + 5)
            break
        at += 2 + length
    if data.find(b"\xff\xd9", at) < 0:
        raise ValueError("it has no end")
    return width, height


def _gif(data: bytes) -> tuple[int, int]:
    if not data.rstrip(b"\0").endswith(b";"):
        raise ValueError("it has no end")
    return _pair("<HH", data, 6)


def _webp(data: bytes) -> tuple[int, int]:
    """RFC 9649: extended, lossless, or lossy."""
    (length,) = struct.unpack_from("<I", data, 4)
    if length + 8 > len(data):
        raise ValueError("it ends too early")
    kind = data[12:16]
    if kind == b"VP8X":
        parts = [int.from_bytes(data[at : at + 3], "little") + 1 for at in (24, 27)]
        return parts[0], parts[1]
    if kind == b"VP8L" and data[20] == 0x2F:
        (bits,) = struct.unpack_from("<I", data, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        width, height = _pair("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    raise ValueError("its first part is unknown")


def _pair(format: str, data: bytes, at: int) -> tuple[int, int]:
    first, second = struct.unpack_from(format, data, at)
    return first, second


_SIZES: Mapping[str, Callable[[bytes], tuple[int, int]]] = {
    "image/png": _png, "image/jpeg": _jpeg, "image/gif": _gif, "image/webp": _webp,
}  # fmt: skip
