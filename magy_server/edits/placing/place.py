"""This module places one hunk in one text for `resolve.py`: it has its sites found, and works out
the changes at the one that was chosen."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from magy_server.dataclass import dataclass
from magy_server.edits import explain
from magy_server.edits.finding.align import alignments
from magy_server.edits.finding.choose import Site, anchor_lines, decided
from magy_server.edits.finding.fragment import fragments
from magy_server.edits.finding.locate import LOOSE, in_form, locate
from magy_server.edits.finding.normal_forms import only_closers, squeeze, weight
from magy_server.edits.finding.source import Source, most_places, places
from magy_server.edits.model import Code, Failure, Hunk, TextChange
from magy_server.edits.placing.already_made import made_before, wrapped_before
from magy_server.edits.placing.decorations import Wanted, as_lines, cleaned, numbered_anew
from magy_server.edits.placing.line_end_joins import unjoined
from magy_server.edits.placing.omission import omission
from magy_server.edits.placing.partial_lines import completes, fitted, lost_margin
from magy_server.edits.placing.splice import Match, Unsafe, reindented, splice
from magy_server.edits.placing.typography import rewriting
from magy_server.edits.placing.within_line import likeness, merge
from magy_server.edits.rebasing.diff import blocks, changes, trim
from magy_server.edits.text import plain
from magy_server.regex import regex

ADDED = 10
"""Letters of new text that are there already for a hunk to count as applied."""
ALIKE = 0.6
"""A short line less alike than this is not what another one became."""
_WORD = regex(r"\w\w")
_CODE = regex(r"[=(){}\[\].,:;<>]|\b(?:return|def|if|import|class)\b")


@dataclass(frozen=True, slots=True)
class Found:
    """The sites that the hunk itself leaves open: one, or several that are equal."""

    tier: str
    sites: list[Site]


def find(source: Source, hunk: Hunk) -> Found | Failure:
    """Returns where a hunk can be. A failure is told as that of hunk 0."""
    wanted = as_lines(hunk)
    if plain(hunk.old) == plain(hunk.new):
        what = "old and new are the same" if hunk.old else "old and new are both empty"
        return Failure(0, "no_change", f"Nothing to do: {what}. Say what should change.")
    left_out = omission(wanted.old, wanted.new, source.lines if hunk.old else ())
    if left_out is not None:
        return Failure(0, "placeholder", explain.placeholder(left_out))
    if not hunk.old:
        return _insertion(source, hunk)
    if (line := numbered_anew(wanted.old, wanted.new)) is not None:
        return Failure(0, "parse", explain.numbered_anew(line))
    found = _exact(source, hunk)
    if hunk.every:
        return _everywhere(source, hunk, found, wanted)
    if only_closers(wanted.old):
        return _closers(source, hunk, wanted, found)
    lost = not hunk.lines and all(lost_margin(source.lines, one.first, wanted) for one in found)
    if found and not lost:
        return _narrowed(source, hunk, Found("exact", found), wanted.line)
    return _loosely(source, hunk, wanted)


def _closers(source: Source, hunk: Hunk, wanted: Wanted, found: list[Site]) -> Found | Failure:
    """Where lines are that do nothing but close blocks. How far they are indented does not tell
    which ones are meant, as models often get that wrong. What is there as written has no fence
    around it: fences close blocks, too."""
    plain = wanted if found else cleaned(wanted, source.alike)
    alike = [Site(*match.span, match=match) for match in in_form(source, plain, "indentation")]
    if len(alike) <= 1 and found:
        return _narrowed(source, hunk, Found("exact", found), wanted.line)
    left = decided(source, alike, hunk, plain.line)
    if len(alike) > 1:
        spans = {(site.first, site.last) for site in left}
        if len(left) == 1 and (as_written := [s for s in found if (s.first, s.last) in spans]):
            return _narrowed(source, hunk, Found("exact", as_written), plain.line)
        return _narrowed(source, hunk, Found("indentation", alike), plain.line)
    if left and (hunk.anchors or hunk.at_end or plain.line == left[0].first + 1):
        return _narrowed(source, hunk, Found("indentation", alike), plain.line)
    return _missing(source, wanted, f"\n{explain.SAYS_NOTHING}")


def _loosely(source: Source, hunk: Hunk, wanted: Wanted) -> Found | Failure:
    """Returns where a hunk is that is not there as written."""
    matches = locate(source, wanted)
    at = _new_is_there(source, hunk, wanted)
    tier = matches[0].tier if matches else "resembling"
    if matches and (tier in LOOSE or (at is None and tier == "resembling")):
        quoted = cleaned(wanted, source.alike)
        at = _new_is_nearly_there(source, quoted, to_the_letter=tier in LOOSE)
    if at is not None and tier in (*LOOSE, "resembling"):
        return Failure(0, "already_applied", explain.applied(at), (at + 1,))
    if not matches:
        if not hunk.lines and (spans := fragments(source, hunk)):
            return _narrowed(source, hunk, Found("spacing", spans), hunk.line)
        return _missing(source, wanted)
    sites = [Site(*match.span, match=match) for match in matches]
    best = matches[0]
    line = hunk.line or next((m.wanted.line for m in matches if m.wanted.line), None)
    if all(match.tier != "resembling" for match in matches):
        return _narrowed(source, hunk, Found(best.tier, sites), line)
    # what is meant may be in none of them: no number decides between siblings
    found = _narrowed(source, hunk, Found(best.tier, sites), None)
    if isinstance(found, Found) and len(found.sites) > 1:
        sites = sorted(found.sites, key=lambda site: site.first)
        left = [site.match for site in sites if site.match is not None]
        text = explain.several_alike(source, left)
        return Failure(0, "ambiguous", text, tuple(m.span[0] + 1 for m in left[:20]))
    return found


def _narrowed(source: Source, hunk: Hunk, found: Found, line: int | None) -> Found | Failure:
    left = decided(source, found.sites, hunk, line)
    missing = bool(hunk.anchors) and not anchor_lines(source, hunk.anchors)
    if left and not (missing and len(left) > 1):
        if len(left) == 1 and line is not None and _made_at(source, hunk, line, left[0]):
            return Failure(0, "already_applied", explain.applied(line - 1), (line,))
        return Found(found.tier, left)
    spans = [(site.first, site.last) for site in found.sites]
    lines = tuple(first + 1 for first, _ in spans[:20])
    if not missing:
        text = explain.above_anchor(source, spans, hunk.anchors[-1])
        return Failure(0, "not_found", text, lines)
    no_anchor = explain.no_anchor(source, hunk.anchors)
    if len(spans) > 1:
        text = f"{no_anchor}\n{explain.ambiguous(source, spans)}"
        return Failure(0, "ambiguous", text, lines)
    return Failure(0, "not_found", f"{no_anchor} {explain.without_anchor(spans[0])}", lines)


def _made_at(source: Source, hunk: Hunk, line: int, site: Site) -> bool:
    """Whether all of the new text is at the line that the hunk names, and what `site` is, though
    it is like the old text, is another place."""
    wanted = cleaned(as_lines(hunk), source.alike)
    count = max(len(wanted.new), len(wanted.old))
    if line - 1 < site.last and site.first < line - 1 + count:
        return False
    if _within(wanted.new, wanted.old) or _letters("".join(wanted.new)) < ADDED:
        return False
    return tuple(source.lines[line - 1 : line - 1 + len(wanted.new)]) == wanted.new


def _within(part: Sequence[str], lines: Sequence[str]) -> bool:
    """What a deletion at an edge leaves is there before it too."""
    return "\n".join(["", *part, ""]) in "\n".join(["", *lines, ""])


def _exact(source: Source, hunk: Hunk) -> list[Site]:
    old = plain(hunk.old)
    if not hunk.lines:
        spans = [(at, at + len(old)) for at in _offsets(source, old)]
        return [
            _site(source, span)
            for span in spans
            if not cut_word(source.text, old, span)
            or completes(source.text, span, old, plain(hunk.new))
        ]
    closed = old if old.endswith("\n") else f"{old}\n"
    found: Iterable[int] = (
        places(source.closed, f"\n{closed}")
        if not source.many
        else (source.starts[row] for row in source.form("exact").runs(closed[:-1].split("\n")))
    )
    return [_site(source, (at, min(at + len(closed), len(source.text)))) for at in found]


def _offsets(source: Source, old: str) -> Iterable[int]:
    """Returns where `old` is; of many places, it chooses by the whole lines in it."""
    rows = old.split("\n")
    if source.many and len(rows) > 2:
        begun = source.form("exact").runs(rows[1:-1])
        if len(begun) <= most_places(old):
            offsets = (source.starts[row] - len(rows[0]) - 1 for row in begun)
            return [at for at in offsets if at >= 0 and source.text.startswith(old, at)]
    return places(source.text, old)


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


def _everywhere(source: Source, hunk: Hunk, found: list[Site], wanted: Wanted) -> Found | Failure:
    if not found:
        return _missing(source, wanted)
    old = plain(hunk.old)
    made: list[TextChange] = []
    at = 0
    for span in _spans(source, hunk, old):
        if span[0] >= at:
            made += _at_span(source, hunk, span)
            at = span[1]
    last = bisect_right(source.starts, max(0, at - 1))
    return Found("exact", [Site(found[0].first, last, done=tuple(made))])


def _spans(source: Source, hunk: Hunk, old: str) -> Iterator[tuple[int, int]]:
    """Returns all places, not overlapping: there is no limit, as nothing is compared."""
    closed = old if old.endswith("\n") or not hunk.lines else f"{old}\n"
    text, wanted = (source.closed, f"\n{closed}") if hunk.lines else (source.text, old)
    at = text.find(wanted)
    while at >= 0:
        yield at, min(at + len(closed), len(source.text))
        at = text.find(wanted, at + len(closed))


def _at_span(source: Source, hunk: Hunk, span: tuple[int, int]) -> list[TextChange]:
    """Returns the changes where the hunk is as written."""
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


def _insertion(source: Source, hunk: Hunk) -> Found | Failure:
    """`old` is empty: something else says where."""
    count = len(source.lines)
    said = hunk.line is not None or hunk.anchors or hunk.at_end
    if count == 0 or not (said or source.text.strip()):
        made = changes(source.raw, plain(hunk.new), 0, len(source.raw))
        return Found("exact", [Site(0, count, done=tuple(made))])
    if hunk.line is not None:
        if not 1 <= hunk.line <= count + 1:
            return Failure(0, "not_found", explain.no_such_line(hunk.line, count))
        at = hunk.line - 1
    elif hunk.anchors and not hunk.at_end:
        heads = anchor_lines(source, hunk.anchors)
        if len(heads) != 1:
            text = explain.anchor(source, heads, hunk.anchors[-1])
            code: Code = "ambiguous" if heads else "not_found"
            return Failure(0, code, text, tuple(head + 1 for head in heads[:20]))
        at = heads[0] + 1
    elif hunk.at_end:
        at = count
    else:
        return Failure(0, "parse", explain.NOWHERE)
    return _inserted(source, hunk, at)


def _inserted(source: Source, hunk: Hunk, at: int) -> Found | Failure:
    new = plain(hunk.new)
    text = new if new.endswith("\n") else f"{new}\n"
    lines = text[:-1].split("\n")
    for start in (at, at - len(lines)):
        there = source.lines[max(0, start) : start + len(lines)]
        if there == lines and _letters(new) >= ADDED:
            return Failure(0, "already_applied", explain.applied(start), (start + 1,))
    where = source.offset(at)
    if at == len(source.lines) and not source.ended:
        text = f"\n{text[:-1]}"
    made = changes(source.raw, text, where, where)
    return Found("exact", [Site(at, at, done=tuple(made))])


def _missing(source: Source, wanted: Wanted, hint: str = "") -> Failure:
    text, lines = explain.not_found(source, wanted)
    return Failure(0, "not_found", text + hint, tuple(lines))


def _new_is_there(source: Source, hunk: Hunk, wanted: Wanted) -> int | None:
    """Returns the line where all of the new text is, if that is one place and the text says
    enough."""
    if sum(weight(squeeze(line)) for line in wanted.new) < 1 or len(hunk.new.strip()) < ADDED:
        return _line_is_there(source, wanted)
    if _within(wanted.new, wanted.old):
        return None
    for form in ("exact", "trailing", "indentation"):
        if there := in_form(source, Wanted(wanted.new, wanted.new), form):
            return there[0].span[0] if len(there) == 1 else None
    return None


def _new_is_nearly_there(source: Source, wanted: Wanted, to_the_letter: bool) -> int | None:
    """Where all that is added is, with all but one of the lines around it. `to_the_letter`: these
    are as they are written, and the edit only adds."""
    added = _added(wanted)
    index = source.form("spacing").index
    if not added or any(squeeze(wanted.new[n]) not in index for n in added):
        return None
    if sum(weight(squeeze(wanted.new[n])) for n in added) < 1:
        return None
    if to_the_letter and any(a < b for a, b, _, _ in blocks(wanted.old, wanted.new)):
        return None
    near = alignments(source, wanted.new)
    for found in near if to_the_letter else near[:1]:
        as_written = all(source.lines[found.at[n]] == wanted.new[n] for n in found.equal)
        if found.faults <= 2 and added <= found.equal and (as_written or not to_the_letter):
            return found.first
    return None


def _added(wanted: Wanted) -> set[int]:
    """The lines of new that are not in its place in old, nor only moved or spaced otherwise."""
    changed = blocks(wanted.old, wanted.new)
    gone = Counter(squeeze(line) for a, b, _, _ in changed for line in wanted.old[a:b])
    found: set[int] = set()
    for n in (n for _, _, c, d in changed for n in range(c, d)):
        key = squeeze(wanted.new[n])
        if gone[key]:
            gone[key] -= 1
        elif key:
            found.add(n)
    return found


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
    """Returns the changes at `site`, and what is remarkable; a message if they are made already.
    Raises Unsafe."""
    made: Sequence[TextChange]
    if site.done is not None:
        made, note = site.done, ""
    elif site.match is not None:
        if any(wrapped := wrapped_before(source.lines, site.match)):
            if all(wrapped):
                return explain.applied(site.first)
            raise Unsafe(_PARTLY)
        made, note = splice(source, site.match), _note(source, site.match)
    elif _applied_here(source, hunk, site):
        made, note = (), ""
    elif found.tier == "exact":
        made, note = _as_written(source, hunk, site.span)
    else:
        made, note = _fragment(source, hunk, site), "white space or punctuation differed"
    if not hunk.every and (there := made_before(source.raw, made, _quoted(source, hunk, site))):
        if len(there) == len(made):
            return explain.applied(site.first)
        raise Unsafe(_PARTLY)
    return (unjoined(source.raw, made), note) if made else explain.applied(site.first)


def _quoted(source: Source, hunk: Hunk, site: Site) -> Callable[[int], bool]:
    """Whether the line that begins at a raw offset is one that the hunk shows as it is."""
    if not hunk.old:
        return lambda _: False
    if site.match is None:
        first, last = source.offset(site.first), source.offset(site.last)
        return lambda at: first <= at < last
    sure = {
        source.offset(at)
        for n, at in enumerate(site.match.at)
        if at is not None and n not in site.match.weak and site.match.old[n].strip()
    }
    return lambda at: at in sure


def _as_written(
    source: Source, hunk: Hunk, span: tuple[int, int]
) -> tuple[Sequence[TextChange], str]:
    note = ""
    if hunk.anchors and not anchor_lines(source, hunk.anchors):
        note = f"no line is like the anchor {hunk.anchors[-1].strip()!r}"
    if hunk.lines:
        return _at_span(source, hunk, span), note
    at, new = fitted(source.text, span, plain(hunk.old), plain(hunk.new))
    if source.text[slice(*at)] == new:
        return (), ""
    if at != span:
        hunk = replace(hunk, new=new)
        line = source.row(at[0] if at[0] < span[0] else span[1]) + 1
        note = f"old had only a part of line {line}; new was taken for all of it"
    return _at_span(source, hunk, at), note


def _fragment(source: Source, hunk: Hunk, site: Site) -> list[TextChange]:
    there = source.text[site.span[0] : site.span[1]]
    old, new = plain(hunk.old), plain(hunk.new)
    if rewrite := rewriting([(old, there)], source.text):
        old, new = rewrite(old), rewrite(new)
    if fitted(source.text, site.span, there, new)[0] != site.span:
        raise Unsafe("old ends or begins in the middle of that line; quote the whole line")
    new = merge(old, new, there)
    to_raw = source.view.to_raw
    return changes(source.raw, new, to_raw(site.span[0]), to_raw(site.span[1]))


def _applied_here(source: Source, hunk: Hunk, site: Site) -> bool:
    """`old` is part of `new`, and all of `new` is there around it."""
    old, new = plain(hunk.old), plain(hunk.new)
    at = new.find(old)
    if at < 0 or _letters(new) - _letters(old) < ADDED:
        return False
    start = site.span[0] - at
    return start >= 0 and source.text.startswith(new, start)


def _note(source: Source, match: Match) -> str:
    told = [match.wanted.note]
    if match.tier == "resembling":
        differing = [
            f"{at + 1}" for n, at in enumerate(match.at) if at is not None and n in match.weak
        ]
        missing = sum(
            at is None and bool(line.strip()) for at, line in zip(match.at, match.old, strict=True)
        )
        if differing:
            *others, last = differing
            lines, verb = f"line {last}", "differs"
            if others:
                lines, verb = f"lines {', '.join(others)} and {last}", "differ"
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


_PARTLY = "some of the lines that the edit adds are there already"
_NOTES = {
    "trailing": "lines differed only in white space at their ends",
    "unicode": "lines differed only in typographic quotes, dashes or spaces",
    "spacing": "lines differed only in white space or typographic punctuation",
    "elision": "what `...` stands for was kept",
    "empty lines": "empty lines differed",
}
