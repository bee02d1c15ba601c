"""This module turns what was fetched into text for a model: charsets, media types, HTML by
`readable`."""

from __future__ import annotations

import asyncio
import codecs
import io
import json
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal

from magy_server.core.errors import ToolError
from magy_server.dataclass import dataclass
from magy_server.regex import regex
from magy_server.tools.files.encodings import FOREIGN, binary, sniff
from magy_server.tools.shell.capture import ask
from magy_server.tools.web import readable
from magy_server.tools.web.fetching import Fetched

_PIECE = 1 << 16
"""Bytes that are decoded at a time; by so many the charset of a text is told."""
SECONDS = 30.0
"""For reading one page of HTML."""
HTML = ("text/html", "application/xhtml+xml")
_TEXTS = regex(
    r"text/.*|.*[+/](?:json|xml|yaml|x-yaml|toml|ndjson|x-ndjson|jsonl|javascript|x-javascript"
    r"|ecmascript|typescript|graphql|sql|x-sh|x-httpd-php|x-www-form-urlencoded|x-subrip)"
)
_HTML = regex(r"\s*<(?:!doctype\s+html|html[\s>])", re.IGNORECASE)
_UNKNOWN = ("", "application/octet-stream", "binary/octet-stream", "application/x-unknown")
_CHARSETS = regex(
    r"ascii|utf-8(?:-sig)?|utf-(?:16|32)(?:-[lb]e)?|iso8859-\d+|cp\d+|koi8-[rtu]|mac-[a-z]+|big5.*"
    r"|euc_.*|gb.*|shift_jis.*|iso2022_.*|hz|johab|tis_620|ptcp154|kz1048"
)
"""Of Python's codecs those that are encodings of text, and none that is slow on purpose."""
_META = regex(rb"<meta[^>]{0,300}?charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
PYTHON = ("PATH", "HOME", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "LANG")
"""What Python needs to find its packages, and no more: no keys beside a stranger's page."""
_INVISIBLE = regex("[\x00-\x08\x0b-\x1f\x7f-\x9f\U000e0000-\U000e007f]")
"""Controls, and the tag characters that can hide a whole text from people's eyes."""


@dataclass(frozen=True, slots=True)
class Reading:
    """`notes` are for the model: what is missing."""

    title: str
    text: str
    notes: tuple[str, ...] = ()


def wanted(kind: str) -> bool:
    """Whether a media type may be text, so that its body is worth reading."""
    return kind in _UNKNOWN or kind in HTML or _TEXTS.fullmatch(kind) is not None


async def read(fetched: Fetched) -> Reading:
    """Raises ToolError for what is no text."""
    if not wanted(fetched.kind):
        size = f"{fetched.size:,} bytes" if fetched.size is not None else "its size is unknown"
        raise ToolError(
            f"{fetched.url} is not text: it is {fetched.kind[:100]} ({size}). This tool reads "
            "only text and HTML. If you need the file itself, download it with a command."
        )
    text = await asyncio.to_thread(decode, fetched)
    notes = [f"only the first {len(fetched.body):,} bytes were read"] if fetched.cut else []
    if fetched.kind in HTML or (fetched.kind in _UNKNOWN and _HTML.match(text[:1000])):
        if len(text) > readable.HTML:
            notes.append(f"only the first {readable.HTML:,} characters of HTML were read")
        found = await from_html("page", text, fetched.url)
        if not found["text"] and text.strip():
            notes.append("the page has no text; it may be built by scripts, which do not run here")
        return Reading(_shown(found["title"]), _shown(found["text"]), tuple(notes))
    return Reading("", text, tuple(notes))


def decode(fetched: Fetched) -> str:
    """Decodes by byte order mark, then as the server says, then as the page says, then by its
    looks; what does not fit becomes U+FFFD. Line ends are `\\n`, and what nobody could see is left
    out. Of HTML little more than is parsed. Raises ToolError for binary data. Takes a second or two
    for what is large: not for the event loop."""
    codec, start = _encoding(fetched)
    make = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(codec)("replace"), True)
    data, pieces, chars = fetched.body, list[str](), 0
    most = readable.HTML if fetched.kind in HTML else len(data)
    # In pieces: no other thread runs inside one call, and bytes that do not fit take long.
    for at in range(start, max(len(data), start + 1), _PIECE):
        last = at + _PIECE >= len(data)
        pieces.append(_shown(make.decode(data[at : at + _PIECE], final=last)))
        chars += len(pieces[-1])
        if chars > most:
            break
    return "".join(pieces)


def _encoding(fetched: Fetched) -> tuple[str, int]:
    """The codec, and the length of the mark before the text."""
    data, kind = fetched.body, fetched.kind
    found = sniff(data[:_PIECE], whole=len(data) <= _PIECE)
    if found is not None and found.mark:
        return found.codec, len(found.mark)
    declared = _codec(fetched.charset)
    if declared is None and (kind in HTML or kind in _UNKNOWN):
        meta = _META.search(data[:4096])
        declared = _codec(meta[1].decode("ascii", "replace")) if meta else None
    if declared is not None and not (b"\0" in data and not declared.startswith("utf-")):
        return declared, 0
    if found is None and (b"\0" in data or kind in _UNKNOWN):
        about = binary(data, len(data), fetched.url).removesuffix(f" {FOREIGN}")
        raise ToolError(f"{about} This tool reads only text and HTML.")
    return found.codec if found else "cp1252", 0


def _codec(charset: str) -> str | None:
    """Python's name of it. Latin-1 is taken for Windows-1252, as browsers do (WHATWG)."""
    try:
        name = codecs.lookup(charset).name
    except (LookupError, ValueError):
        return None
    if name in ("iso8859-1", "ascii"):
        return "cp1252"
    return name if _CHARSETS.fullmatch(name) else None


def _shown(text: str) -> str:
    return _INVISIBLE.sub("", text)


async def from_html(
    what: Literal["page", "results"], html: str, base: str, seconds: float = SECONDS
) -> Mapping[str, Any]:
    """`readable.page` or `readable.results`, in a process of its own. Raises ToolError when that
    takes longer than `seconds` or fails."""
    told = {"what": what, "html": html[: readable.HTML], "base": base}
    asked = (await asyncio.to_thread(json.dumps, told)).encode()
    answer = bytearray()

    def take(data: bytes) -> bool:
        answer.extend(data)
        return False

    # -P: the directory of the program must not come before the standard library.
    argv, code = [sys.executable, "-P", readable.__file__], None
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            code, _ = await ask(argv, take, asked, PYTHON)
    if code != 0 or not answer:
        raise ToolError(
            f"{base}: this HTML is too large or too unusual to be shown as a page. If you need "
            "it, fetch it with a command and search in the file."
        )
    found: Mapping[str, Any] = json.loads(answer)
    return found
