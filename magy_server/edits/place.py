"""One hunk in one text: its sites, and the changes at the one that was chosen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from magy_server.edits import explain
from magy_server.edits.choose import Site, anchor_lines, decided
from magy_server.edits.clean import Wanted, as_lines
from magy_server.edits.diff import changes, trim
from magy_server.edits.fragment import fragments
from magy_server.edits.joints import unjoined
from magy_server.edits.keys import squeeze, weight
from magy_server.edits.locate import in_form, locate
from magy_server.edits.model import Code, Failure, Hunk, TextChange
from magy_server.edits.omission import omission
from magy_server.edits.source import Source, places
from magy_server.edits.splice import Match, reindented, splice
from magy_server.edits.text import plain
from magy_server.edits.words import likeness, merge

ADDED = 10
"""Letters of new text that are there already for a hunk to count as applied."""


ALIKE = 0.6
"""A short line less alike than this is not what another one became."""
_WORD = re.compile(r"\w\w")
_CODE = re.compile(r"[=(){}\[\].,:;<>]|\b(?:return|def|if|import|class)\b")


@dataclass(frozen=True, slots=True)
class Found:
    """The sites that the hunk itself leaves open: one, or several that are equal."""

    tier: str
    sites: list[Site]
    note: str = ""


def find(source: Source, hunk: Hunk, n: int) -> Found | Failure:
    """Where hunk number `n` can be."""
    wanted = as_lines(hunk)
    if plain(hunk.old) == plain(hunk.new):
        what = "old and new are the same" if hunk.old else "old and new are both empty"
        return Failure(n, "no_change", f"Nothing to do: {what}. Say what should change.")
    left_out = omission(wanted.old, wanted.new, source.lines if hunk.old else ())
    if left_out is not None:
        return Failure(n, "placeholder", explain.placeholder(left_out))
    if not hunk.old:
        return _insertion(source, hunk, n)
    found = _exact(source, hunk)
    if hunk.every:
        return _everywhere(source, hunk, found, wanted, n)
    if found:
        return _narrowed(source, hunk, Found("exact", found), wanted.line, n)
    return _loosely(source, hunk, wanted, n)


def _loosely(source: Source, hunk: Hunk, wanted: Wanted, n: int) -> Found | Failure:
    """Where a hunk is that is not there as written."""
    matches = locate(source, wanted)
    at = _new_is_there(source, hunk, wanted)
    if at is not None and (not matches or matches[0].tier == "resembling"):
        return Failure(n, "already_applied", explain.applied(at), (at + 1,))
    if not matches:
        if not hunk.lines and (spans := fragments(source, hunk)):
            return _narrowed(source, hunk, Found("spacing", spans), hunk.line, n)
        return _missing(source, wanted, n)
    sites = [Site(*match.span, match=match) for match in matches]
    best = matches[0]
    line = hunk.line or next((m.line for m in matches if m.line), None)
    if best.tier != "resembling":
        return _narrowed(source, hunk, Found(best.tier, sites, best.note), line, n)
    # what is meant may be in none of them: no number decides between siblings
    found = _narrowed(source, hunk, Found(best.tier, sites, best.note), None, n)
    if isinstance(found, Found) and len(found.sites) > 1:
        sites = sorted(found.sites, key=lambda site: site.first)
        left = [site.match for site in sites if site.match is not None]
        text = explain.several_alike(source, left)
        return Failure(n, "ambiguous", text, tuple(m.span[0] + 1 for m in left[:20]))
    return found


def _narrowed(
    source: Source, hunk: Hunk, found: Found, line: int | None, n: int
) -> Found | Failure:
    left = decided(source, found.sites, hunk, line)
    if len(left) > 1 and hunk.anchors and not anchor_lines(source, hunk.anchors):
        text = explain.ambiguous(source, [(site.first, site.last) for site in left])
        text = f"{explain.no_anchor(source, hunk.anchors)}\n{text}"
        return Failure(n, "ambiguous", text, tuple(site.first + 1 for site in left[:20]))
    if left:
        return Found(found.tier, left, found.note)
    sites = [(site.first, site.last) for site in found.sites]
    text = explain.above_anchor(source, sites, hunk.anchors[-1])
    return Failure(n, "not_found", text, tuple(site[0] + 1 for site in sites[:20]))


def _exact(source: Source, hunk: Hunk) -> list[Site]:
    old = plain(hunk.old)
    if not hunk.lines:
        spans = [(at, at + len(old)) for at in places(source.text, old)]
        return [_site(source, span) for span in spans if not cut_word(source.text, old, span)]
    closed = old if old.endswith("\n") else f"{old}\n"
    found = places(source.closed, f"\n{closed}")
    return [_site(source, (at, min(at + len(closed), len(source.text)))) for at in found]


def _site(source: Source, span: tuple[int, int]) -> Site:
    first = source.row(span[0])
    inside = source.text.count("\n", span[0], span[1])
    whole = source.text[span[1] - 1 : span[1]] == "\n"
    return Site(first, first + inside + (0 if whole else 1), span=span)


def cut_word(text: str, old: str, span: tuple[int, int]) -> bool:
    """A text of several words that ends or begins within a word of the file is another text: a
    model that quotes `x = 1` does not mean `x = 10`."""
    if len(old.split()) < 2 or not _CODE.search(old):
        return False
    return any(0 < at < len(text) and _WORD.fullmatch(text, at - 1, at + 1) for at in span)


def _everywhere(
    source: Source, hunk: Hunk, found: list[Site], wanted: Wanted, n: int
) -> Found | Failure:
    if not found:
        return _missing(source, wanted, n)
    old = plain(hunk.old)
    made: list[TextChange] = []
    first = last = at = 0
    for span in _spans(source, hunk, old):
        if span[0] >= at:
            made += _at_span(source, hunk, span)
            at = span[1]
    first = found[0].first
    last = source.line_at(max(0, at - 1)) + 1
    return Found("exact", [Site(first, last, done=tuple(made))])


def _spans(source: Source, hunk: Hunk, old: str) -> Iterator[tuple[int, int]]:
    """All of them, not overlapping: there is no limit, as nothing is compared."""
    if not hunk.lines:
        at = source.text.find(old)
        while at >= 0:
            yield at, at + len(old)
            at = source.text.find(old, at + len(old))
        return
    closed = old if old.endswith("\n") else f"{old}\n"
    at = source.closed.find(f"\n{closed}")
    while at >= 0:
        yield at, min(at + len(closed), len(source.text))
        at = source.closed.find(f"\n{closed}", at + len(closed))


def _at_span(source: Source, hunk: Hunk, span: tuple[int, int]) -> list[TextChange]:
    """The changes where the hunk is as written."""
    new = plain(hunk.new)
    if hunk.lines:
        new = _ending(source, plain(hunk.old), new, span[1])
    start, end = source.view.to_raw(span[0]), source.view.to_raw(span[1])
    if "\n" not in new and "\n" not in hunk.old:
        return [trim(source.raw, TextChange(start, end, new))]
    return changes(source.raw, new, start, end)


def _ending(source: Source, old: str, new: str, end: int) -> str:
    """`new` as whole lines. The last line of a file keeps its line end, or the lack of one, unless
    the hunk says otherwise of both."""
    last = end == len(source.text)
    if not new:
        return new
    if last and not source.ended:
        return new if not old.endswith("\n") else new.removesuffix("\n")
    if last and old.endswith("\n"):
        return new
    return new if new.endswith("\n") else f"{new}\n"


def _insertion(source: Source, hunk: Hunk, n: int) -> Found | Failure:
    """`old` is empty: something else says where."""
    count = len(source.lines)
    said = hunk.line is not None or hunk.anchors or hunk.at_end
    if count == 0 or not (said or source.text.strip()):
        made = changes(source.raw, plain(hunk.new), 0, len(source.raw))
        return Found("exact", [Site(0, count, done=tuple(made))])
    if hunk.line is not None:
        if not 1 <= hunk.line <= count + 1:
            return Failure(n, "not_found", explain.no_such_line(hunk.line, count))
        at = hunk.line - 1
    elif hunk.anchors and not hunk.at_end:
        heads = anchor_lines(source, hunk.anchors)
        if len(heads) != 1:
            text = explain.anchor(source, heads, hunk.anchors[-1])
            code: Code = "ambiguous" if heads else "not_found"
            return Failure(n, code, text, tuple(head + 1 for head in heads[:20]))
        at = heads[0] + 1
    elif hunk.at_end:
        at = count
    else:
        return Failure(n, "parse", explain.nowhere())
    return _inserted(source, hunk, at, n)


def _inserted(source: Source, hunk: Hunk, at: int, n: int) -> Found | Failure:
    new = plain(hunk.new)
    text = new if new.endswith("\n") else f"{new}\n"
    lines = text[:-1].split("\n")
    for start in (at, at - len(lines)):
        there = source.lines[max(0, start) : start + len(lines)]
        if there == lines and _letters(new) >= ADDED:
            return Failure(n, "already_applied", explain.applied(start), (start + 1,))
    where = source.offset(at)
    if at == len(source.lines) and not source.ended:
        made = changes(source.raw, f"\n{text[:-1]}", where, where)
    else:
        made = changes(source.raw, text, where, where)
    return Found("exact", [Site(at, at, done=tuple(made))])


def _missing(source: Source, wanted: Wanted, n: int) -> Failure:
    text, lines = explain.not_found(source, wanted)
    return Failure(n, "not_found", text, tuple(lines))


def _new_is_there(source: Source, hunk: Hunk, wanted: Wanted) -> int | None:
    """The line where all of the new text is, if that is one place and the text says enough."""
    if sum(weight(squeeze(line)) for line in wanted.new) < 1 or len(hunk.new.strip()) < ADDED:
        return _line_is_there(source, wanted)
    if "\n".join(["", *wanted.new, ""]) in "\n".join(["", *wanted.old, ""]):
        return None  # what a deletion leaves is there before it too
    for form in ("exact", "trailing", "indentation"):
        if there := in_form(source, Wanted(wanted.new, wanted.new), form):
            return there[0].span[0] if len(there) == 1 else None
    return None


def _line_is_there(source: Source, wanted: Wanted) -> int | None:
    """Where the one short line is that `old` becomes, if it is there once."""
    if len(wanted.old) != 1 or len(wanted.new) != 1 or not any(map(str.isalnum, wanted.new[0])):
        return None
    there = source.form("exact").runs(wanted.new)
    if len(there) != 1 or likeness(wanted.old[0], wanted.new[0]) < ALIKE:
        return None
    return there[0]


def _letters(text: str) -> int:
    return sum(char.isalnum() for char in text[:1000])


def settle(
    source: Source, hunk: Hunk, found: Found, site: Site
) -> tuple[tuple[TextChange, ...], str] | str:
    """The changes at `site`, and what is remarkable; a message if they are made already. Raises
    Unsafe."""
    made: Sequence[TextChange]
    if site.done is not None:
        made, note = site.done, found.note
    elif site.match is not None:
        made, note = splice(source, site.match), _note(source, site.match)
    elif _applied_here(source, hunk, site):
        made, note = (), ""
    elif found.tier == "exact":
        made, note = _at_span(source, hunk, site.span), _anchor_note(source, hunk)
    else:
        made, note = _fragment(source, hunk, site), "white space or punctuation differed"
    return (unjoined(source.raw, made), note) if made else explain.applied(site.first)


def _fragment(source: Source, hunk: Hunk, site: Site) -> list[TextChange]:
    there = source.text[site.span[0] : site.span[1]]
    new = merge(plain(hunk.old), plain(hunk.new), there)
    to_raw = source.view.to_raw
    return changes(source.raw, new, to_raw(site.span[0]), to_raw(site.span[1]))


def _anchor_note(source: Source, hunk: Hunk) -> str:
    if hunk.anchors and not anchor_lines(source, hunk.anchors):
        return f"no line is like the anchor {hunk.anchors[-1].strip()!r}"
    return ""


def _applied_here(source: Source, hunk: Hunk, site: Site) -> bool:
    """`old` is part of `new`, and all of `new` is there around it."""
    old, new = plain(hunk.old), plain(hunk.new)
    at = new.find(old)
    if at < 0 or _letters(new) - _letters(old) < ADDED:
        return False
    start = site.span[0] - at
    return start >= 0 and source.text.startswith(new, start)


def _note(source: Source, match: Match) -> str:
    told = [match.note]
    if match.tier == "resembling":
        differing = [
            f"{at + 1}" for n, at in enumerate(match.at) if at is not None and n in match.weak
        ]
        missing = sum(
            at is None and bool(line.strip()) for at, line in zip(match.at, match.old, strict=True)
        )
        if differing:
            lines = f"line {differing[0]}" if len(differing) == 1 else f"lines {_and(differing)}"
            verb = "differs" if len(differing) == 1 else "differ"
            told.append(f"{lines} around the change {verb} from old")
        if missing:
            told.append(
                f"{missing} line{' of old is' if missing == 1 else 's of old are'} not there"
            )
    elif match.tier in _NOTES:
        told.append(_NOTES[match.tier])
    if match.tier != "resembling" and reindented(source, match):
        unit = source.usual_unit
        style = "tabs" if unit == "\t" else f"{len(unit)} spaces" if unit else "the file's"
        told.append(f"re-indented to the file ({style})")
    return "; ".join(filter(None, told))


def _and(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


_NOTES = {
    "trailing": "lines differed only in white space at their ends",
    "unicode": "lines differed only in typographic quotes, dashes or spaces",
    "spacing": "lines differed only in white space or typographic punctuation",
    "elision": "what `...` stands for was kept",
    "empty lines": "empty lines differed",
}
