"""This module lists the simple commands that a bash line would run, for the judge of permissions.

It fails closed: what is not fully understood becomes an opaque part, which no allow pattern and no
remembered answer matches. A line counts as understood only when two readers agree on it word by
word: the strict one of `lexer.py`, and tree-sitter's grammar of bash. Where they differ, or the
strict one gives up, tree-sitter still lists the commands it sees (also inside `$(…)`), beside at
least one opaque part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from magy_server.core.shell import globs as shell_globs
from magy_server.core.shell import nested_commands
from magy_server.core.shell.lexer import Redirect as Redirection
from magy_server.core.shell.lexer import Unclear, Word, unusual
from magy_server.core.shell.parser import RESERVED, Simple, read
from magy_server.core.values import Resource
from magy_server.dataclass import dataclass
from magy_server.regex import regex

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

LONGEST = 32_768
"""Characters. Magy does not look into a longer line."""
EASY = 4_096
"""Characters; a longer line that one reader gives up is not given to the other: that one takes time
with the square of what it cannot read."""
WORDS = 2_000
LONGEST_WORD = 1_000
"""The most characters of a word outside of quotes."""
MOST = 256
"""The most simple commands. Magy does not look into a line with more, either."""
_WRAPPERS = 8
"""The most wrappers around wrappers (`time nice make`)."""
_HARMLESS = frozenset({"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"})
_COMMANDS = frozenset({"command", "test_command", "declaration_command", "unset_command"})
_REDIRECTS = frozenset({"file_redirect", "herestring_redirect", "heredoc_redirect"})
_BARE = regex(r"[\w@%+=:,./^{}#!-][\w@%+=:,./^{}#!~-]*")
_QUOTED = regex(r"'[^']*+'|\"(?:\\.|[^\"\\])*+\"", re.DOTALL)
_TURNED = regex(r"^#|^[^{]*\{.*(?:,|\.\.)|[=:]~")
"""Bash would read this as a comment, a brace expansion, or a home directory."""


@dataclass(frozen=True, slots=True)
class Redirect:
    """A file that the shell opens. `target` is None when its name is not known."""

    mode: Literal["read", "write"]
    target: str | None


@dataclass(frozen=True, slots=True)
class Part:
    """One simple command.

    `text` is on one line: words quoted where they need it, one blank between, redirections last;
    for an opaque part it is the source. `argv` are the words as bash passes them, () when they are
    not known. `globbed` are the indexes of words that bash replaces by the file names they match:
    who judges must expand them, and must not trust a match that begins with `-`. Where such a name
    could be more than a name, the part is opaque.
    `cwd_change` is set on `cd X` where all that follows runs in X, or not at all.
    """

    text: str
    argv: tuple[str, ...] = ()
    opaque: bool = False
    why: str = ""
    redirects: tuple[Redirect, ...] = ()
    globbed: tuple[int, ...] = ()
    cwd_change: str | None = None

    def resource(self, place: str = "") -> Resource:
        """Returns it as what rules are matched against; `place` is where it runs."""
        return Resource(
            kind="exec", subject=self.text, argv=self.argv, opaque=self.opaque,
            globbed=self.globbed, place=place,
        )  # fmt: skip


def parse(command: str, home: str | None = None) -> list[Part]:
    """The simple commands of a bash line in the order of their text; [] when there is none.

    A wrapper (`timeout 5 make`) gives a part and the command it runs another; so does a command
    that does more than its name says (`git log -p` is also `git diff`). Redirections to
    `/dev/null` and between descriptors are left out. `home` (absolute) is put for an unquoted
    leading `~`; without it such a word is opaque. Says nothing about aliases, functions or
    variables that the shell starts with: run it without start-up files, `CDPATH` and `BASH_ENV`.
    Never raises.
    """
    if len(command) > LONGEST:
        return [_opaque(command, f"is longer than {LONGEST} characters")]
    try:
        simples, straight = read(command, home)
    except Unclear as why:
        return _recover(command, home, str(why))
    if _laborious(simples):
        return [_opaque(command, "has too many words, or one that is too long")]
    if len(simples) > MOST:
        return [_opaque(command, f"has more than {MOST} commands")]
    parts = [p for simple in simples for p in _parts(simple, straight)]
    if not any(part.opaque for part in parts) and not _agrees(command, simples):
        parts.append(_opaque(command, "can be read in two ways"))
    return parts


def _laborious(simples: Sequence[Simple]) -> bool:
    """Returns whether the second reader would take long over them; it passes by what is quoted."""
    words = [word.raw for simple in simples for word in simple.words]
    return len(words) > WORDS or any(
        len(raw) > LONGEST_WORD and len(_QUOTED.sub("", raw)) > LONGEST_WORD for raw in words
    )


def quote(word: str) -> str:
    """Returns `word` as it stands in a part's text: bare, in single quotes, or as `$'…'` on one
    line."""
    bare = _BARE.fullmatch(word) and word not in RESERVED and not _TURNED.search(word)
    if bare or word in ("[", "]", "{}"):
        return word
    if any(char in word for char in "\n\t"):
        escaped = word.replace("\\", "\\\\").replace("'", "\\'")
        return "$'" + escaped.replace("\n", "\\n").replace("\t", "\\t") + "'"
    return "'" + word.replace("'", "'\"'\"'") + "'"


# --- parts ----------------------------------------------------------------------------------------


def _parts(simple: Simple, straight: bool) -> list[Part]:
    redirects, files, why = _redirects(simple.redirects)
    words = simple.words
    begin = next((i for i, word in enumerate(words) if not word.assigns), len(words))
    if not words:
        why = why or "redirects without a command"
    elif begin:
        why = why or "sets a variable"
    elif words[0].globbed:
        why = why or "finds its command by a pattern"
    why = next((word.why for word in words if word.value is None), "") or why
    if not why:
        return _understood(words, simple, straight, redirects, files)
    source = [word.raw for word in words]
    source += [f"{r.descriptor}{r.operator} {r.word.raw}" for r in simple.redirects]
    opaque = _opaque(" ".join(source), why, files)
    if begin < len(words) and not any(word.value is None for word in words[begin:]):
        # What runs is known all the same, as far as what is set does not change it.
        if not begin:
            argv = tuple(word.value or "" for word in words)
            globbed = tuple(i for i, word in enumerate(words) if word.globbed)
            return [replace(opaque, argv=argv, globbed=globbed)]
        rest = Simple(words[begin:], simple.redirects, "&", "&")
        return [opaque, *_parts(rest, straight=False)]
    return [opaque]


def _understood(
    words: Sequence[Word],
    simple: Simple,
    straight: bool,
    redirects: str,
    files: tuple[Redirect, ...],
) -> list[Part]:
    """Returns the parts of a command whose words are known: itself, what it does besides, and what
    its wrappers wrap."""
    parts: list[Part] = []
    for depth in range(_WRAPPERS + 1):
        argv = tuple(word.value or "" for word in words)
        globbed = tuple(i for i, word in enumerate(words) if word.globbed)
        shown = (w.value or "" if w.globbed else quote(w.value or "") for w in words)
        part = Part(" ".join(shown) + redirects, argv, redirects=files, globbed=globbed)
        inner = nested_commands.wrapped(argv)
        why = inner if isinstance(inner, str) else nested_commands.hides(argv)
        own = globbed if not isinstance(inner, int) else [i for i in globbed if i <= inner]
        why = why or shell_globs.unsettled(argv, own)
        if argv[0] == "cd" and not why:
            part, why = _cd(part, simple, straight and not depth)
        if depth == _WRAPPERS:
            why = f"has more than {_WRAPPERS} wrappers"
        if words[0].globbed or (words[0].unquoted and argv[0] in RESERVED):
            why = "is not a plain command"
        parts.append(replace(part, opaque=True, why=why) if why else part)
        if not why and (more := nested_commands.besides(argv)):
            parts.append(Part(" ".join(more), more))
        if why or not isinstance(inner, int):
            break
        words, redirects, files = words[inner:], "", ()
    return parts


def _cd(part: Part, simple: Simple, straight: bool) -> tuple[Part, str]:
    """Followed only where nothing can run later in another directory than the judge believes."""
    if len(part.argv) != 2 or part.globbed or part.argv[1][:1] in ("", "-"):
        return part, "changes to a directory that is not named plainly"
    if not straight or simple.before not in ("", "&&") or simple.after in ("|", "|&"):
        return part, "changes directory where that cannot be followed; join commands by `&&`"
    return replace(part, cwd_change=part.argv[1]), ""


def _redirects(raw: Sequence[Redirection]) -> tuple[str, tuple[Redirect, ...], str]:
    """Returns the redirections as text (with a leading blank), as files, and why they are not
    understood."""
    text, files, why = "", [], ""
    for redirect in raw:
        operator, target = redirect.operator, redirect.word.value
        if target is None or redirect.word.globbed:
            why = redirect.word.why or "redirects to a pattern"
            files += [Redirect(mode, None) for mode in _modes(operator)]
            continue
        if operator in ("<<", "<<-", "<<<"):
            text += f" <<< {quote(target)}"
            continue
        if operator in (">&", "<&") and re.fullmatch(r"\d*-?", target, re.ASCII) and target:
            text += f" {redirect.descriptor}{operator}{target}"
            continue
        if operator == "<&" or target == "" or target.startswith(("/dev/tcp/", "/dev/udp/")):
            why = "redirects to something that is no file"
        text += f" {redirect.descriptor}{operator} {quote(target)}"
        if target not in _HARMLESS:
            files += [Redirect(mode, target) for mode in _modes(operator)]
    return text, tuple(files), why


def _modes(operator: str) -> tuple[Literal["read", "write"], ...]:
    if operator == "<>":
        return ("read", "write")
    return ("read",) if operator == "<" else ("write",)


def _opaque(source: str, why: str, files: tuple[Redirect, ...] = ()) -> Part:
    text = " ".join(source.split())
    if unusual(text):
        text = "".join(c if c.isprintable() else f"\\u{{{ord(c):x}}}" for c in text)
    return Part(text, opaque=True, why=why, redirects=files)


# --- the second reader ----------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _parser() -> Parser:
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def _tree(text: str) -> Node | None:
    """The tree of `text` with an `x` for every character outside ASCII: the grammar's scanner reads
    past its tables for some of them and may crash. To bash they are letters all the same, and so
    the byte offsets of the tree are the offsets in `text`."""
    source = re.sub(r"[^\x00-\x7f]", "x", text).encode()
    if len(source) <= EASY:
        return _parser().parse(source).root_node
    try:
        # ends at the first error
        tree = _parser().parse(lambda at, _: source[at:], progress_callback=lambda _, error: error)
        return tree.root_node
    except ValueError:
        _parser().reset()
        return None


def _walk(root: Node) -> Iterator[Node]:
    """Gives all nodes, parents first, in the order of the text. It does not recurse, as the sender
    chooses the depth."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children))


def _agrees(command: str, simples: Sequence[Simple]) -> bool:
    root = _tree(command)
    if root is None or root.has_error:
        return False
    seen = [_words(node, command) for node in _walk(root) if node.type in _COMMANDS]
    return seen == [[_joined(word.raw) for word in simple.words] for simple in simples]


def _words(node: Node, source: str) -> list[str]:
    if node.type == "test_command":
        # Its words are operators and operands of a tree; only where it begins and ends is compared.
        try:
            simples, _ = read(_source(node, source))
        except Unclear:
            return []
        return [_joined(word.raw) for simple in simples for word in simple.words]
    children = (c for c in node.children if c.type not in _REDIRECTS)
    return [_joined(_source(child, source)) for child in children]


def _source(node: Node, source: str) -> str:
    return source[node.start_byte : node.end_byte]


def _joined(raw: str) -> str:
    return raw.replace("\\\n", "")


def _recover(command: str, home: str | None, why: str) -> list[Part]:
    """Returns what can be listed of a line that is not plain; at least one part of it is opaque."""
    parts: list[Part] = []
    root = _tree(command) if len(command) <= EASY else None
    for node in _walk(root) if root else ():
        if node.type in _COMMANDS:
            parts.extend(_recovered(node, command, home))
        elif node.type == "redirected_statement" and node.children[0].type not in _COMMANDS:
            # a loop or a group: what it opens is named as for a command
            files = _opened(node, command, home)
            parts.append(_opaque(_source(node, command), "redirects a whole group", files))
        if len(parts) > MOST:
            return [_opaque(command, f"has more than {MOST} commands")]
    if not any(part.opaque for part in parts):
        parts.insert(0, _opaque(command, why))
    return parts


def _recovered(node: Node, source: str, home: str | None) -> list[Part]:
    whole = node.parent if node.parent is not None else node
    if whole.type != "redirected_statement" or whole.children[0] != node:
        whole = node
    text = _source(whole, source)
    try:
        simples, _ = read(text, home)
        if len(simples) == 1:
            return _parts(simples[0], straight=False)
        why = "cannot be told from its surroundings"
    except Unclear as error:
        why = str(error)
    files = _opened(whole, source, home)
    if whole is not node:
        files += _opened(node, source, home)
    return [_opaque(text, why, files)]


def _opened(node: Node, source: str, home: str | None) -> tuple[Redirect, ...]:
    """Returns the files that a statement opens by redirection."""
    targets = (child for child in node.children if child.type == "file_redirect")
    return tuple(file for child in targets for file in _targets(child, source, home))


def _targets(node: Node, source: str, home: str | None) -> list[Redirect]:
    raw = _source(node, source)
    found = re.match(r"<>|<|", raw.lstrip("0123456789"))
    modes = _modes(found[0] if found else "")
    word: Word | None = None
    try:
        simples, _ = read("x " + raw, home)
        word = simples[0].redirects[0].word
    except (Unclear, IndexError):
        return [Redirect(mode, None) for mode in modes]
    return [Redirect(mode, None if word.globbed else word.value) for mode in modes]
