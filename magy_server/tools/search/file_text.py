"""This module reads the text of a file as a search sees it: in pieces of UTF-8, without byte order
mark.

UTF-16 is known by its mark; all else is taken as it is, and a NUL byte makes it binary.
"""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Iterator
from typing import BinaryIO

CHUNK = 1 << 20
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


def opened(path: bytes | str, folder: int | None = None) -> BinaryIO:
    """Opens a regular file, not through a link, and without waiting for the other end of a fifo.
    Raises OSError."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    fd = os.open(path, flags, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError("not a regular file")
    return open(fd, "rb", buffering=0)


def pieces(file: BinaryIO) -> Iterator[bytes]:
    """Gives pieces of about a megabyte. Raises OSError."""
    head = file.read(CHUNK) or b""
    codec = _UTF16.get(head[:2])
    if codec is None:
        yield head.removeprefix(codecs.BOM_UTF8)
        while chunk := file.read(CHUNK):
            yield chunk
        return
    decoder = codecs.getincrementaldecoder(codec)("replace")
    yield decoder.decode(head[2:]).encode()
    while chunk := file.read(CHUNK):
        yield decoder.decode(chunk).encode()
    yield decoder.decode(b"", final=True).encode()
