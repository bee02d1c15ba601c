"""What a prompt mentions becomes content for the model: `@path`, `@skill`, `@sym:NAME` and
`/action` in the words of a person.

The words stay as they are; what they mention is added behind them. Only what exists below the
workspace root is a mention: `@pytest.fixture`, `@alice` and `me@example.org` are none.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from magy_server.core import permit
from magy_server.core.actions import ActionSpec, filled
from magy_server.core.agents.claude_files import ARGUMENTS
from magy_server.core.errors import InvalidRequest, ToolError, Unseen
from magy_server.core.no_editor import NO_EDITOR
from magy_server.core.permit import Ruleset
from magy_server.core.ports import Editor
from magy_server.core.skills.skill import Skills
from magy_server.core.values import Content, Embedded, Facts, Hash, Image, Link, Text
from magy_server.edits.text import plain
from magy_server.regex import regex
from magy_server.tools.files import disk, pictures
from magy_server.tools.files.pages import Page
from magy_server.tools.files.paths import Place, resolve, resource
from magy_server.tools.prompts.openings import actions_of_prompts
from magy_server.tools.prompts.symbol_mentions import CLOSING, SYMBOL, definitions

MOST = 50
"""Mentions of one prompt that are followed; a pasted log may have any number of `@`."""
TRIED = 400
"""Names that are looked up for one prompt."""
LINES = 2_000
"""The most characters of one mention."""
LONGEST = 1_000
"""Characters of a path."""
TEXTS = 200_000
"""Characters of the lines that one prompt gives by mentions; what comes later is linked."""
PICTURES, PICTURE_BYTES = 20, 15_000_000
"""The same of pictures: requests are bounded, and a picture is in each that follows."""

_MENTION = regex(
    r'(?<![\w.@/\\+-])@(?:"(?P<quoted>[^"\n]+)"(?P<rest>[:#][\dL-]+)?|(?P<bare>[^\s"]\S*))'
)
_LINES = r"(?::|#L)([1-9]\d{0,8})(?:-L?([1-9]\d{0,8}))?"
_RANGE, _ENDING = regex(_LINES), regex(_LINES + r"\Z")
NAMED_SKILL = regex(r"\s*@([a-z][a-z0-9-]*)(?![\w/:@\\-]|\.\w)")
_ACTION = regex(r"\s*/([a-z][a-z0-9_-]*)(?!\S)")
NONE = Skills({})
_MEANT = {"symbol": "the symbol that I name", "place": "the place that I name or show"}
"""For the holes of an action: in a prompt nothing says what stands at the cursor."""


class Mention(NamedTuple):
    """`lines`: first and last, from 1; None for the whole file."""

    place: Place
    lines: tuple[int, int] | None


async def expand(
    root: str,
    content: Sequence[Content],
    *,
    skills: Skills | None = None,
    actions: Mapping[str, ActionSpec] | None = None,
    editor: Editor = NO_EDITOR,
    rules: Sequence[Ruleset] = (),
) -> tuple[tuple[Content, ...], Mapping[Hash, bytes]]:
    """`content` with what its texts mention, and the bytes of the pictures among that.

    A file or directory is linked, a picture shown, and of `@path:10-20` the lines are given: from
    the open buffer if `editor` has one. `@sym:name` gives the definition that `editor` knows; at
    the very beginning `@name` gives the text of the skill and `/name` that of the action of that
    name. A picture that models would not take is only linked, and so is a file that `rules` do not
    allow to be read unasked: what a person pastes may mention anything. Without any source of rules
    all may be read. `root` is canonical. Raises MagyError for a skill that is named and cannot be
    used.
    """
    if not any(isinstance(part, Text) and re.search("[@/]", part.text) for part in content):
        return tuple(content), {}
    named = _named(content, skills or NONE, actions or {})
    parts = await asyncio.to_thread(_found, root, content, named)
    for part, found in zip(content, parts, strict=True):
        if isinstance(part, Text) and SYMBOL in part.text:
            may_read = partial(_may_read, rules)
            found += await definitions(root, part.text, editor, may_read)
    paths = {m.place.path for part in parts for m in part if isinstance(m, Mention) and m.lines}
    unseen = set()
    for path in paths:
        try:
            await editor.look(path)
        except Unseen:
            unseen.add(path)
    buffers = {path: editor.buffer(path) for path in paths}
    live = {path: plain(buffer.text) for path, buffer in buffers.items() if buffer}
    return await asyncio.to_thread(_joined, content, parts, _Maker(live, unseen, rules))


Parts = Sequence[list[Mention | Content]]
"""For each part of a prompt what it mentions."""


def _named(
    content: Sequence[Content], skills: Skills, actions: Mapping[str, ActionSpec]
) -> tuple[Embedded, int] | None:
    """The skill or action that the first text begins with, and where its name ends."""
    first = next((part.text for part in content if isinstance(part, Text)), "")
    if (found := NAMED_SKILL.match(first)) and (skill := skills.wanted(found[1])):
        alone = not first[found.end() :].strip()
        return skill.content(alone=alone), found.end()
    offered = actions_of_prompts(actions)
    if (found := _ACTION.match(first)) and found[1] in offered:
        text = filled(offered[found[1]].prompt, _MEANT)
        text = text.replace(ARGUMENTS, first[found.end() :].strip())
        return Embedded(uri=f"magy:action/{found[1]}", text=text), found.end()
    return None


def _found(root: str, content: Sequence[Content], named: tuple[Embedded, int] | None) -> Parts:
    finder = _Finder(root)
    first = next((part for part in content if isinstance(part, Text)), None)
    parts: list[list[Mention | Content]] = []
    for part in content:
        found: list[Mention | Content] = []
        if isinstance(part, Text):
            given, end = named if named and part is first else (None, 0)
            found += [given] if given else []
            found.extend(finder.mentions(part.text, end))
        parts.append(found)
    return parts


def _joined(
    content: Sequence[Content], parts: Parts, maker: _Maker
) -> tuple[tuple[Content, ...], Mapping[Hash, bytes]]:
    """What is there already is not given twice."""
    seen = {_key(part) for part in content}
    result: list[Content] = []
    for part, found in zip(content, parts, strict=True):
        result.append(part)
        for one in found:
            added = maker.content(one) if isinstance(one, Mention) else one
            if _key(added) not in seen:
                seen.add(_key(added))
                result.append(added)
    return tuple(result), maker.blobs


def _key(part: Content) -> str:
    """The same for two parts that give the same; editors may write a URI in other ways."""
    match part:
        case Link():
            return _path(part.uri)
        case Embedded():
            return f"{_path(part.uri)} {part.text}"
        case Image():
            return part.hash
        case Text():
            return f"text {id(part)}"


def _path(uri: str) -> str:
    try:
        parts = urlsplit(uri)
    except ValueError:
        return uri
    if parts.scheme != "file":
        return uri
    return unquote(parts.path).rstrip("/") + (f"#{parts.fragment}" if parts.fragment else "")


# --- finding --------------------------------------------------------------------------------------


class _Finder:
    def __init__(self, root: str) -> None:
        self._root = root
        self._tries = TRIED
        self._left = MOST

    def mentions(self, text: str, at: int = 0) -> Iterator[Mention]:
        """From character `at` on."""
        while self._left > 0 and self._tries > 0 and (found := _MENTION.search(text, at)):
            at = found.start() + 1
            if found["quoted"]:
                mention, length = self._lookup(found["quoted"], found["rest"] or ""), 0
            else:
                mention, length = self._guess(found["bare"][:LONGEST])
            if mention is not None:
                self._left -= 1
                at = at + length if length else found.end()
                yield mention

    def _guess(self, word: str) -> tuple[Mention | None, int]:
        """The longest beginning of `word` that is a path, and how long it is: `@a.py,` and
        `@a.py's` mention a.py."""
        for candidate in _beginnings(word):
            if mention := self._lookup(candidate, ""):
                return mention, len(candidate)
        return None, 0

    def _lookup(self, name: str, rest: str) -> Mention | None:
        lines = _RANGE.fullmatch(rest)
        if mention := self._exists(name, _numbers(lines) if lines else None):
            return mention
        lines = None if rest else _ENDING.search(name)
        return self._exists(name[: lines.start()], _numbers(lines)) if lines else None

    def _exists(self, name: str, lines: tuple[int, int] | None) -> Mention | None:
        self._tries -= 1
        if self._tries < 0 or not name.strip("/") or name in (".", ".."):
            return None
        try:
            place = resolve(self._root, name)
        except ToolError:
            return None  # it leads out of the workspace, or cannot be a path
        return Mention(place, lines) if os.path.exists(place.path) else None


def _numbers(found: re.Match[str]) -> tuple[int, int]:
    first, last = int(found[1]), int(found[2] or found[1])
    return min(first, last), max(first, last)


def _beginnings(word: str) -> Iterator[str]:
    """Of a run of characters without blanks, longest first, the places where a name may end: before
    what closes a sentence or a bracket, and before a script that needs no blanks."""
    yield word
    end = len(word)
    while end > 1 and word[end - 1] in CLOSING:
        end -= 1
        yield word[:end]
    cuts = [
        at
        for at in range(1, end)
        if word[at] in CLOSING[1:] or (word[at - 1].isascii() and not word[at].isascii())
    ]
    for at in reversed(cuts[-20:] + cuts[:5]):
        yield word[:at].rstrip(".")


# --- making ---------------------------------------------------------------------------------------


class _Maker:
    """`live`: the texts of open buffers, by canonical path; `unseen`: files of which nobody knows
    what the editor shows."""

    def __init__(
        self, live: Mapping[str, str], unseen: Collection[str], rules: Sequence[Ruleset]
    ) -> None:
        self._live = live
        self._unseen = unseen
        self._rules = rules
        self.blobs: dict[Hash, bytes] = {}
        self._given = 0

    def content(self, mention: Mention) -> Content:
        place, lines = mention
        uri, folder = Path(place.path).as_uri(), "/" if os.path.isdir(place.path) else ""
        link = Link(uri=uri, name=f"{place.name}{folder}")
        if not _may_read(self._rules, place):
            return link  # nobody can be asked here; read_file asks
        try:
            if lines and place.path in self._unseen:
                return link  # read_file says what is not known
            if lines:
                return self._lines(place, lines) or link
            return self._picture(place) or link
        except (ToolError, InvalidRequest):
            return link  # the model may read it, and is then told what is wrong with it

    def _lines(self, place: Place, lines: tuple[int, int]) -> Embedded | None:
        first, last = lines
        pieces = [self._live[place.path]] if place.path in self._live else disk.stream(place)
        page = Page(pieces, first, min(last - first + 1, LINES))
        text = "\n".join(page.lines)
        if not page.lines or self._given + len(text) > TEXTS:
            return None
        self._given += len(text)
        uri = f"{Path(place.path).as_uri()}#L{first}-L{first + len(page.lines) - 1}"
        return Embedded(uri=uri, text=text)

    def _picture(self, place: Place) -> Image | None:
        data = pictures.load(place) if len(self.blobs) < PICTURES else None
        if data is None or sum(map(len, self.blobs.values())) + len(data) > PICTURE_BYTES:
            return None
        image = pictures.picture(data, place.name)
        self.blobs[image.hash] = data
        return image


def _may_read(rules: Sequence[Ruleset], place: Place) -> bool:
    found = Facts(resources=(resource(place.root, place.path, "read"),))
    return not rules or permit.decide(found, "read", "read", rules).action == "allow"
