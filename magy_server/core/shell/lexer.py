"""The lexer cuts bash source into tokens where its meaning is plain: words of literal text, quotes
and `$name`; redirections and here-documents; operators. Anything else raises `Unclear`: where bash
and this reader could differ, this reader gives up."""

from __future__ import annotations

import re

from magy_server.core.text.sanitizing import INVISIBLE
from magy_server.dataclass import dataclass
from magy_server.regex import regex

BLANK = " \t"
META = " \t\n|&;()<>"
_REDIRECT = regex(r"&>>|&>|>>|>\||>&|<&|<>|<<<|<<-|<<|<|>")
_OPERATOR = regex(r"&&|\|\||\|&|;;&|;;|;&|[;&|()\n]")
_PARAMETER = regex(r"\$(?:[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]|\{[A-Za-z_][A-Za-z0-9_]*\})")
_ASSIGNMENT = regex(r"[A-Za-z_][A-Za-z0-9_]*(?:\+?=|\[)")
_PATTERN = regex(r"[*?]|\[.*\]", re.DOTALL)


class Unclear(Exception):
    """The text is not plain; the message says why, as the end of "it cannot be checked: it …"."""


@dataclass(frozen=True, slots=True)
class Word:
    """`value` is what bash passes on, None when it is not known (`why` says the reason)."""

    raw: str
    value: str | None
    why: str = ""
    globbed: bool = False
    """`value` has `*`, `?` or `[…]`, none of them quoted: bash replaces it by file names."""
    unquoted: bool = False
    """No quoting at all, so it may be a reserved word or a file descriptor."""
    assigns: bool = False
    """It has the form of an assignment."""


@dataclass(frozen=True, slots=True)
class Redirect:
    """`word` is the target; for a here-document or here-string, the text."""

    descriptor: str
    operator: str
    word: Word


Token = Word | Redirect | str
"""A str is an operator or a newline."""


def unusual(text: str) -> str | None:
    """Returns why the characters of `text` alone make it unfit for checking, or None."""
    for char in text:
        if char in "\t\n":
            continue
        if not char.isprintable() or char in INVISIBLE:
            return f"holds the invisible or control character U+{ord(char):04X}"
    return None


def lex(text: str, home: str | None = None) -> list[Token]:
    """`home` is what an unquoted `~` stands for. Raises Unclear."""
    return _Lexer(text, home).tokens()


class _Lexer:
    def __init__(self, text: str, home: str | None) -> None:
        if why := unusual(text):
            raise Unclear(why)
        self.text = text
        self.home = home
        self.at = 0
        self.documents: list[tuple[int, Redirect]] = []
        """Here-documents whose bodies come after the end of the line, with their token index."""
        self.out: list[Token] = []

    def tokens(self) -> list[Token]:
        while self._skip():
            if (match := _REDIRECT.match(self.text, self.at)) is not None:
                self._redirect("", match)
            elif (match := _OPERATOR.match(self.text, self.at)) is not None:
                self.at = match.end()
                self.out.append(match[0])
                if match[0] == "\n":
                    self._bodies()
            else:
                self._word_or_descriptor()
        if self.documents:
            raise Unclear("has a here-document without an end")
        return self.out

    def _skip(self) -> bool:
        """Skips blanks, joined lines and comments; returns False at the end."""
        text = self.text
        while self.at < len(text):
            if text[self.at] in BLANK:
                self.at += 1
            elif text.startswith("\\\n", self.at):
                self.at += 2
            elif text[self.at] == "#":
                end = text.find("\n", self.at)
                self.at = len(text) if end < 0 else end
            else:
                return True
        return False

    def _word_or_descriptor(self) -> None:
        word = self._word()
        follows = self.text[self.at : self.at + 1]
        if follows and follows in "<>" and word.unquoted and word.value:
            match = _REDIRECT.match(self.text, self.at)
            assert match is not None
            if word.value.isascii() and word.value.isdigit():
                self._redirect(word.value, match)
                return
            if word.value.startswith("{"):
                raise Unclear("keeps a file descriptor in a variable")
        self.out.append(word)

    def _redirect(self, descriptor: str, match: re.Match[str]) -> None:
        self.at = match.end()
        if match[0] in "<>" and self.text.startswith("(", self.at):
            raise Unclear("has a process substitution")
        if not self._skip() or self.text[self.at] in META:
            raise Unclear("has a redirection without a target")
        redirect = Redirect(descriptor, match[0], self._word())
        if match[0] in ("<<", "<<-"):
            self.documents.append((len(self.out), redirect))
        self.out.append(redirect)

    def _bodies(self) -> None:
        """Reads the here-documents that were announced on the line that ends here."""
        for index, redirect in self.documents:
            delimiter = redirect.word.value
            if not delimiter or "\n" in delimiter or redirect.word.why:
                raise Unclear("has a here-document with an unusual delimiter")
            strip = redirect.operator == "<<-"
            lines = []
            while True:
                if self.at >= len(self.text):
                    raise Unclear("has a here-document without an end")
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                line = self.text[self.at : end]
                self.at = min(end + 1, len(self.text))
                line = line.lstrip("\t") if strip else line
                if line == delimiter:
                    break
                lines.append(line + "\n")
            body = "".join(lines)
            if redirect.word.unquoted and re.search(r"[$`\\]", body):
                raise Unclear("has a here-document that may expand something")
            word = Word(redirect.word.raw, body)
            self.out[index] = Redirect(redirect.descriptor, redirect.operator, word)
        self.documents.clear()

    # --- words ---

    def _word(self) -> Word:
        start = self.at
        build = _Builder()
        while self.at < len(self.text) and (char := self.text[self.at]) not in META:
            if char == "\\":
                self._escape(build)
            elif char == "'":
                end = self._find("'")
                build.quoted(self.text[self.at + 1 : end])
                self.at = end + 1
            elif char == '"':
                self._double(build)
            else:
                self._open(build, char)
        return build.word(self.text[start : self.at], self.home)

    def _find(self, quote: str) -> int:
        end = self.text.find(quote, self.at + 1)
        if end < 0:
            raise Unclear("has a quote without an end")
        return end

    def _escape(self, build: _Builder) -> None:
        if self.at + 1 >= len(self.text):
            raise Unclear("ends in a backslash")
        if self.text[self.at + 1] != "\n":
            build.quoted(self.text[self.at + 1])
        self.at += 2

    def _double(self, build: _Builder) -> None:
        self.at += 1
        build.quoted("")
        while True:
            if self.at >= len(self.text):
                raise Unclear("has a quote without an end")
            char = self.text[self.at]
            if char == '"':
                self.at += 1
                return
            if char == "\\" and self.text[self.at + 1 : self.at + 2] in ("$", "`", '"', "\\", "\n"):
                self._escape(build)
            elif char in "$`!":
                self._special(build, char, quoted=True)
            else:
                build.quoted(char)
                self.at += 1

    def _open(self, build: _Builder, char: str) -> None:
        if char in "$`!":
            self._special(build, char, quoted=False)
        else:
            build.add(char)
            self.at += 1

    def _special(self, build: _Builder, char: str, *, quoted: bool) -> None:
        """`$`, a backtick or `!`: literal where bash surely leaves it alone."""
        follows = self.text[self.at + 1 : self.at + 2]
        if char == "`":
            raise Unclear("has a command substitution")
        if char == "$":
            if (match := _PARAMETER.match(self.text, self.at)) is not None:
                build.unknown("expands a variable")
                self.at = match.end()
                return
            if follows and follows in ("\\({[" if quoted else "\\({['\""):
                raise Unclear("has an expansion that is not a plain variable")
        elif follows and follows not in " \t\n=(;&|)<>\"'":
            build.unknown("may refer to the history")
        build.quoted(char) if quoted else build.add(char)
        self.at += 1


class _Builder:
    """Collects a word, remembering which characters were quoted."""

    def __init__(self) -> None:
        self.chars: list[str] = []
        self.marks: list[bool] = []
        self.any_quote = False
        self.why = ""

    def add(self, char: str) -> None:
        self.chars.append(char)
        self.marks.append(False)

    def quoted(self, text: str) -> None:
        self.any_quote = True
        self.chars.extend(text)
        self.marks.extend(True for _ in text)

    def unknown(self, why: str) -> None:
        self.why = self.why or why

    def word(self, raw: str, home: str | None) -> Word:
        value = "".join(self.chars)
        free = "".join("\0" if mark else c for c, mark in zip(self.chars, self.marks, strict=True))
        globbed = _PATTERN.search(free) is not None
        marked = "".join(c for c, mark in zip(self.chars, self.marks, strict=True) if mark)
        if globbed and re.search(r"[*?\[\]\\]", marked):
            self.unknown("quotes a part of a pattern")
        if "{" in free and ("," in value or ".." in value):
            self.unknown("has a brace expansion")
        if free.startswith("~"):
            value = self._at_home(value, raw.replace("\\\n", ""), free, home)
        if "=~" in free or ":~" in free:
            self.unknown("has a `~` inside a word")
        return Word(
            raw=raw,
            value=None if self.why else value,
            why=self.why,
            globbed=globbed and not self.why,
            unquoted=not self.any_quote,
            assigns=_ASSIGNMENT.match(free) is not None,
        )

    def _at_home(self, value: str, raw: str, free: str, home: str | None) -> str:
        # The source is looked at too: quotes around nothing (`~""`) keep bash from expanding.
        if not all(text == "~" or text.startswith("~/") for text in (free, raw)):
            self.unknown("begins with a `~` that is not surely the home directory")
        elif home is None:
            self.unknown("names the home directory")
        elif _PATTERN.search(free):
            # The home directory is not a pattern, but it would become a part of one.
            self.unknown("has a pattern below the home directory")
        return (home or "~") + value[1:]
