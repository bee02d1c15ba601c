"""This module turns bytes into text and back without loss, with any encoding and byte order mark.

A file's text has three views: its bytes; its *raw* text (decoded, no byte order mark, line ends as
they are); and its *plain* text, every line end a `\\n`, which is what models read and write.
"""

from __future__ import annotations

import codecs
import re

from magy_server.core.errors import ToolError, Undecodable
from magy_server.dataclass import dataclass
from magy_server.regex import regex

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark is its beginning
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROLS = regex(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f]")
_HIGH = regex(rb"[\x80-\xff]")
_SIGNATURES = (
    (b"\x7fELF", "an ELF program or library"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive (or a format made of one: docx, jar, wheel)"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"\xfd7zXZ", "xz data"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\xca\xfe\xba\xbe", "a Java class or Mach-O binary"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O binary"),
    (b"MZ", "a Windows program"),
    (b"\x00asm", "a WebAssembly module"),
)


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a file's text is kept: Python codec name and the byte order mark that begins it."""

    codec: str = "utf-8"
    mark: bytes = b""

    @property
    def name(self) -> str:
        return f"{self.codec} with a byte order mark" if self.mark else self.codec


def sniff(data: bytes, *, whole: bool) -> Encoding | None:
    """The encoding of a text that begins with (`whole`: that is) `data`; None for binary data.

    UTF-8 unless a mark says otherwise. Bytes that are not UTF-8 are taken for Windows-1252 when
    they are clearly text: no control characters, at most three in ten bytes above ASCII, and
    not mostly well-formed UTF-8 (then it is UTF-8 with damage, which only `read` tolerates).
    """
    for mark, codec in _MARKS:
        if data.startswith(mark):
            return Encoding(codec, mark)
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data, final=whole)
        return None if b"\0" in data else Encoding()
    except UnicodeDecodeError:
        pass
    if _CONTROLS.search(data):
        return None
    loose = data.decode("utf-8", "replace")
    if sum(map(loose.count, "\ufffd")) * 2 < len(re.findall(r"[^\x00-\x7f]", loose)):
        return Encoding()
    if len(_HIGH.findall(data)) * 10 > len(data) * 3:
        return None
    try:
        data.decode("cp1252")
    except UnicodeDecodeError:
        return None
    return Encoding("cp1252")


def decode(data: bytes, name: str) -> tuple[str, Encoding]:
    """The raw text, such that `encode` gives the same bytes back. Raises Undecodable for binary or
    damaged data; `name` is the file's name in the message."""
    encoding = sniff(data, whole=True)
    if encoding is None:
        raise Undecodable(binary(data, len(data), name))
    try:
        return data[len(encoding.mark) :].decode(encoding.codec), encoding
    except UnicodeDecodeError as error:
        start = error.start + len(encoding.mark)
        line = data.count(b"\n", 0, start) + 1
        raise Undecodable(
            f"{name} is not valid {encoding.codec}: byte 0x{data[start]:02x} at offset "
            f"{start} (line {line}). Editing it as text would damage it; convert it first."
        ) from None


def text_of(data: bytes) -> str | None:
    """The raw text; None of binary or damaged data."""
    try:
        return decode(data, "")[0]
    except ToolError:
        return None


def encode(text: str, encoding: Encoding, name: str) -> bytes:
    """Raises ToolError when the encoding has no such character."""
    try:
        return encoding.mark + text.encode(encoding.codec)
    except UnicodeEncodeError as error:
        char = text[error.start]
        raise ToolError(
            f"{name} is encoded as {encoding.codec}, which does not have {char!r} "
            f"(U+{ord(char):04X}). "
            "Use other characters, or convert the file to UTF-8 first."
        ) from None


FOREIGN = "Use a program for such files."


def binary(head: bytes, size: int, name: str) -> str:
    kind = next((k for magic, k in _SIGNATURES if head.startswith(magic)), "binary data")
    return f"{name} is not text: it looks like {kind} ({size:,} bytes). {FOREIGN}"
