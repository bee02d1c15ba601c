"""This module knows single programs that only look, as long as their options are known ones. What
else a command of theirs does, it gives as a second command (`grep -rn x` is also `grep -r`), so
that rules can cover it.

Only options that are listed count as known: a new one of the program is not trusted before it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from magy_server.dataclass import dataclass
from magy_server.regex import regex


def _sed_bracket(delimiter: str) -> str:
    """A bracket expression in a regex that ends at `delimiter`, if every sed sees the same end of
    it: in `[^]/]` and `[[:]/:]]` the first `]` closes nothing, and not to every sed does a
    delimiter between brackets end the regex."""
    known = "" if delimiter == ":" else r"\[:[a-z]+:\]|"
    return rf"\[\^?+(?>{known}[^\[\]\n\\{re.escape(delimiter)}])++\]"


_SED_PLACE = rf"(?>\d+(?:~\d+)?|\$|/(?>\\[^\n]|{_sed_bracket('/')}|[^\\\n/\[])*+/I?)"
"""No backtracking, here and below: a model chooses the script, and it may be long."""
_SED_ADDRESS = regex(rf"[ \t]*+(?:{_SED_PLACE}(?:,[+~]?{_SED_PLACE})?)?+[ \t]*+!?[ \t]*+", re.ASCII)
_SED_VERB = regex(r"(?:[pdP=]|[qQ]\d*+|(?P<s>s))", re.ASCII)
_SED_END = regex(r"[ \t]*+(?:[;\n}]|\Z)")
_SED_FLAGS = regex(r"[gpIi0-9]*+")
_SED_SWITCHES = regex(r"-[nErsuz]+|--(?:quiet|silent|regexp-extended|separate|null-data)")


@dataclass(frozen=True, slots=True)
class _Known:
    """`alone`: options that stand for themselves; `valued`: those whose value is the next word.
    With `most` operands at most, each an `operand`. `beside`: what the command amounts to else."""

    alone: str
    valued: str
    beside: str
    most: int | None = None
    operand: str = ""


_SEDS = ("sed", "gsed", "ssed")
_JQS = ("jq", "gojq")
_GREP = "[nivclLowxEFGPHhsqazZbTUIy]"
_SORT = "[bdfghiMnRrVcCmsuz]"
_TREE = "[adfipsughDFQNqrtcUvxCnSJXA]"
_KNOWN: Mapping[str, _Known] = {
    name: known
    for programs, known in {
        "grep egrep fgrep ggrep": _Known(
            rf"-{_GREP}+|-\d+|-{_GREP}*[ABCm]\d+|-{_GREP}*e.+|--(?:count|line-number|ignore-case"
            r"|no-ignore-case|invert-match|word-regexp|line-regexp|files-with-matches|null|text"
            r"|files-without-match|only-matching|quiet|silent|no-messages|with-filename|no-filename"
            r"|extended-regexp|fixed-strings|basic-regexp|perl-regexp|byte-offset|initial-tab"
            r"|line-buffered|colou?r)|--(?:after-context|before-context|context|max-count|regexp"
            r"|binary-files|label|colou?r|include|exclude|group-separator)=.*",
            rf"-{_GREP}*[ABCme]|--(?:after-context|before-context|context|max-count|regexp)",
            "grep -r",
        ),
        "sort gsort": _Known(
            rf"-{_SORT}+|-{_SORT}*[kt].+|--(?:reverse|numeric-sort|unique|human-numeric-sort|stable"
            r"|general-numeric-sort|version-sort|ignore-case|month-sort|check|zero-terminated|debug"
            r"|ignore-leading-blanks|dictionary-order|merge|ignore-nonprinting)"
            r"|--(?:key|field-separator|sort|check|parallel)=.*",
            rf"-{_SORT}*[kt]|--key|--field-separator",
            "sort -o",
        ),
        "uniq guniq": _Known(
            r"-[cdDiuz]+|-[fsw]\d+|--(?:count|repeated|unique|ignore-case|zero-terminated)"
            r"|--(?:skip-fields|skip-chars|check-chars)=\d+",
            r"-[fsw]",
            "uniq IN OUT",
            most=1,
        ),
        "tree": _Known(
            rf"-{_TREE}+|-L\d+|--(?:dirsfirst|filesfirst|noreport|prune|du|si|gitignore|inodes"
            r"|device|nolinks|matchdirs|ignore-case|metafirst|version|help)"
            r"|--(?:charset|filelimit|sort|timefmt)=.*",
            rf"-{_TREE}*[LPI]|--(?:charset|filelimit|timefmt)",
            "tree -o",
        ),
        "file": _Known(
            r"-[bihkLNnrv0EI]+|--(?:brief|mime|mime-type|mime-encoding|dereference|no-dereference"
            r"|keep-going|raw|no-pad|print0|extension|version|apple)|--separator=.*",
            r"-F|--separator",
            "file -f",
        ),
        "date gdate": _Known(
            r"-[uR]+|-I(?:date|hours|minutes|seconds|ns)?|--(?:utc|universal|rfc-email|iso-8601)"
            r"|--(?:iso-8601|rfc-3339|date|reference)=.*",
            r"-[dr]|--date|--reference",
            "date SET",
            operand=r"\+",
        ),
    }.items()
    for name in programs.split()
}
_GREP_REGEX = regex(rf"-{_GREP}*[ef]|--(?:regexp|file)")
_JQ_ALONE = regex(
    r"-[rcnsSeCMajR]+|--(?:raw-output0?|compact-output|null-input|slurp|sort-keys|exit-status|tab"
    r"|color-output|monochrome-output|ascii-output|join-output|raw-input|stream|seq|unbuffered"
    r"|version|help)"
)
_JQ_VALUES: Mapping[str, int] = {"--arg": 2, "--argjson": 2, "--indent": 1}
_JQ_ELSEWHERE = regex(r"\b(?:env|ENV|import|include|modulemeta|get_search_list)\b|\$__prog")
"""What in a filter reads the environment or a file that the command does not name."""


def besides(name: str, rest: Sequence[str]) -> tuple[str, ...]:
    """What a command of the program `name` with the arguments `rest` does beyond looking at what it
    names, as the words of a command; () for nothing, and for programs that are not known here."""
    if name in _JQS:
        operands = _jq_operands(rest)
        plain = operands is not None and not any(
            _JQ_ELSEWHERE.search(rest[at]) for at in operands[:1]
        )
        return () if plain else ("jq", "-f")
    known = _KNOWN.get(name)
    if known is None:
        return ()
    operands = _operands(known, rest)
    if operands is None or (known.most is not None and len(operands) > known.most):
        return tuple(known.beside.split())
    plain = all(re.match(known.operand, rest[at]) for at in operands)
    return () if plain else tuple(known.beside.split())


def text_at(name: str, rest: Sequence[str]) -> int | None:
    """Which of the arguments is an expression of the program's own (a regex, a script, a filter)
    and surely names no file; None when none is, or that is not sure."""
    if name in _SEDS:
        return _script_at(rest) if not sed(rest) else None
    if name in _JQS:
        return next(iter(_jq_operands(rest) or ()), None)
    known = _KNOWN.get(name)
    if known is None or known.beside != "grep -r" or any(map(_GREP_REGEX.match, rest)):
        return None
    return next(iter(_operands(known, rest) or ()), None)


def _operands(known: _Known, rest: Sequence[str]) -> list[int] | None:
    """Returns which words are neither options nor values of one; None for an option not known."""
    found: list[int] = []
    at = 0
    while at < len(rest):
        word = rest[at]
        if word == "--":
            return found + list(range(at + 1, len(rest)))
        if not word.startswith("-") or word == "-":
            found.append(at)
        elif re.fullmatch(known.valued, word):
            at += 1
        elif not re.fullmatch(known.alone, word, re.DOTALL):
            return None
        at += 1
    return found


def _jq_operands(rest: Sequence[str]) -> list[int] | None:
    """Returns the filter and the files; None for options that are not listed."""
    found: list[int] = []
    at = 0
    while at < len(rest):
        word = rest[at]
        if word in _JQ_VALUES:
            at += _JQ_VALUES[word]
        elif not word.startswith("-") or word == "-":
            found.append(at)
        elif not _JQ_ALONE.fullmatch(word):
            return None
        at += 1
    return found


def _script_at(rest: Sequence[str]) -> int:
    at = 0
    while at < len(rest) and _SED_SWITCHES.fullmatch(rest[at]):
        at += 1
    return at + (at < len(rest) and rest[at] == "-e")


def sed(rest: Sequence[str]) -> str:
    """Returns why a sed command may write or run something; "" for a plain one: quiet and regex
    switches and one script that prints, deletes, stops or replaces."""
    at = _script_at(rest)
    options = rest[at : rest.index("--", at)] if "--" in rest[at + 1 :] else rest[at:]
    if at >= len(rest) or any(word.startswith("-") and word != "-" for word in options):
        return "gives sed options that may write or run something"
    if not _plain_script(rest[at]):
        return "gives sed a script that may write or run something"
    return ""


def _plain_script(script: str) -> bool:
    """Commands that print, delete, stop and replace, without the flags of a replacement that write
    (`w`) or run (`e`)."""
    at, commands = 0, 0
    while at < len(script):
        if script[at] in " \t\n;}":
            at += 1
            continue
        address = _SED_ADDRESS.match(script, at)
        at = address.end() if address else at
        if script[at : at + 1] == "{":
            at += 1
            continue
        verb = _SED_VERB.match(script, at)
        if verb is None:
            return False
        end = _replaced(script, verb.end()) if verb["s"] else verb.end()
        if end is None or not _SED_END.match(script, end):
            return False
        at, commands = end, commands + 1
    return commands > 0


def _replaced(script: str, at: int) -> int | None:
    """Behind `<d>regex<d>replacement<d>flags` that begins at `at`."""
    delimiter = script[at : at + 1]
    if delimiter not in ("/", "|", "#", ",", ":"):
        return None
    d = re.escape(delimiter)
    regex = rf"(?>\\[^\n]|{_sed_bracket(delimiter)}|[^\\\n\[{d}])*+"
    whole = rf"{d}{regex}{d}(?>\\[^\n]|[^\\\n{d}])*+{d}"
    parts = re.compile(whole).match(script, at)
    if parts is None:
        return None
    found = _SED_FLAGS.match(script, parts.end())
    return found.end() if found else None
