"""This module reads the words of a git command as git itself does. Pure."""

from __future__ import annotations

from collections.abc import Sequence

_VALUED = frozenset(
    {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--attr-source"}
    | {"--super-prefix", "--shallow-file"}
)
"""The options before the subcommand whose value is the next word."""
_SWITCHES = frozenset(
    {"-p", "--paginate", "-P", "--no-pager", "--bare", "--no-replace-objects", "--no-lazy-fetch"}
    | {"--literal-pathspecs", "--no-literal-pathspecs", "--glob-pathspecs", "--noglob-pathspecs"}
    | {"--icase-pathspecs", "--no-optional-locks", "--no-advice"}
)


def subcommand(argv: Sequence[str]) -> int | None:
    """Returns the index of the subcommand in `argv`, whose first word is git; None when that is not
    sure, or there is none."""
    at = 1
    while at < len(argv) and argv[at].startswith("-"):
        word = argv[at]
        if word in _VALUED:
            at += 2
        elif word in _SWITCHES or (word.startswith("--") and word.partition("=")[0] in _EQUALS):
            at += 1
        else:
            return None
    return at if at < len(argv) else None


_EQUALS = frozenset({word for word in _VALUED if word.startswith("--")} | {"--exec-path"})

USUAL = frozenset(
    {"add", "am", "annotate", "apply", "archive", "bisect", "blame", "branch", "bundle",
     "cat-file", "check-attr", "check-ignore", "checkout", "cherry", "cherry-pick", "clean",
     "clone", "commit", "config", "count-objects", "describe", "diff", "difftool", "fetch",
     "for-each-ref", "format-patch", "fsck", "gc", "grep", "help", "init", "log", "ls-files",
     "ls-remote", "ls-tree", "merge", "merge-base", "mergetool", "mv", "name-rev", "notes",
     "prune", "pull", "push", "rebase", "reflog", "remote", "repack", "replace", "reset",
     "rev-list", "rev-parse", "revert", "rm", "shortlog", "show", "show-branch", "show-ref",
     "stash", "status", "submodule", "symbolic-ref", "tag", "update-index", "update-ref", "var",
     "verify-commit", "worktree"}
)  # fmt: skip
"""Commands that git itself has had for many years; no alias can replace them."""


_BLANK = " \t\n\r"


def split(text: str) -> list[str] | None:
    """Returns the words of an alias as git splits it, with the shell's quotes and backslashes and
    nothing else; None when git refuses it."""
    words: list[str] = []
    word: list[str] = []
    quoted = ""
    at = 0
    while at < len(text):
        char = text[at]
        if not quoted and char in _BLANK:
            while text[at + 1 : at + 2] and text[at + 1] in _BLANK:
                at += 1
            words.append("".join(word))
            word = []
        elif not quoted and char in "'\"":
            quoted = char
        elif char == quoted:
            quoted = ""
        elif char == "\\" and quoted != "'":
            at += 1
            if at == len(text):
                return None
            word.append(text[at])
        else:
            word.append(char)
        at += 1
    return None if quoted else [*words, "".join(word)]
