"""This module tells whether a command runs another one, or changes what later commands mean, so
that its own words do not say what will happen."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from magy_server.core.shell import read_only_programs
from magy_server.core.shell.wrappers import CHANGES_SHELL, INTERPRETERS, names, runs_others
from magy_server.regex import regex

_HARMLESS = frozenset({"-u", "-B", "-I", "-s", "-S", "-O", "-OO"})
"""The switches of Python that take no argument and run nothing."""

_MODULES = names("IPython asyncio bdb cProfile code ipython pdb profile pty runpy timeit trace")
"""These modules of Python run what they are given, as code or as a program."""

_GIT_PLAIN = frozenset({"--no-pager", "-P", "--version", "--help", "-h", "--no-optional-locks"})
_GIT_OPTIONS = regex(
    r"--(ou|exe|ext|upl|rece|op).*|--(?:o|e|ex|u|up|r|re|rec)(?:=.*)?|-O.*", re.DOTALL
)
"""Also as short as some command of git takes them: `rebase --ex=CMD`, `ls-remote --u=PROGRAM`."""
_SETTINGS = regex(
    r"(?:user|pull|push|fetch|color|branch|advice|rerere|log|status|commit|tag|rebase)\.[\w.-]+"
    r"|init\.defaultbranch|merge\.conflictstyle|diff\.(?:algorithm|renames|colormoved)"
    r"|core\.(?:autocrlf|eol|safecrlf|filemode|ignorecase|quotepath|symlinks|longpaths|abbrev)"
)
"""The settings of git that name no program and no file."""
_GIT_RUNS: Mapping[str, str] = {
    **dict.fromkeys(
        names(
            """citool credential cvsimport cvsserver daemon difftool filter-branch for-each-repo gui
        hook http-backend instaweb merge-index mergetool p4 remote-ext remote-fd send-email shell
        submodule--helper svn web--browse"""
        ),
        r".*",
    ),
    "bisect": r"run|view|visualize",
    "clone": r"-[a-zA-Z]*[uc].*|--co.*|--te.*",
    "commit": r"--tr.*",
    "grep": r"-[a-zA-Z]*O.*",
    "help": r"-[a-z]*[wim].*|--[wim].*",
    "init": r"--t.*",
    "interpret-trailers": r".*",
    "rebase": r"-[a-zA-Z]*x.*",
    "submodule": r"foreach",
}

_LISTS = regex(
    r"(?!--(?:format|pretty)=.*%[-+ ]?G)"
    r"(?:-\d+|-[nEiFz]|-n\d+|-s|-M|-C|--(?:oneline|graph|all|reverse|follow|merges|no-[a-z-]+|topo-order"
    r"|date-order|author-date-order|first-parent|ancestry-path|left-right|left-only|right-only"
    r"|boundary|cherry|cherry-mark|cherry-pick|full-history|simplify-[a-z-]+|dense|sparse|source"
    r"|stat|shortstat|numstat|name-only|name-status|summary|dirstat|compact-summary|raw"
    r"|abbrev-commit|relative-date|parents|children|walk-reflogs|perl-regexp|regexp-ignore-case"
    r"|extended-regexp|fixed-strings|invert-grep|all-match|branches|tags|remotes|notes|decorate"
    r"|find-renames|find-copies|relative|color|pretty|abbrev|log-size|clear-decorations)"
    r"|--(?:stat|dirstat|branches|tags|remotes|exclude|glob|author|committer|grep|since|after|until"
    r"|before|max-count|skip|format|pretty|date|abbrev|decorate|decorate-refs|min-parents"
    r"|max-parents|diff-filter|find-renames|relative|color|notes|encoding)(?:=.*)?)",
    re.DOTALL,
)
"""Options of `git log` that list commits and names. The others may show what is in files; -S and -G
tell whether something is, and `%G?` and its like run gpg, as --show-signature does."""


def program(name: str) -> str:
    """Returns the name by which programs are known: no directory, no version, small letters (file
    systems may not tell them apart)."""
    base = name.rpartition("/")[2].lower()
    base = re.sub(r"\.(?:exe|cmd|bat|com)\Z", "", base)  # what WSL runs of Windows
    return re.sub(r"(?<=[a-z])[-.\d]+\Z", "", base) or base


def hides(argv: Sequence[str]) -> str:
    """Returns why the words of this command do not say what it does; "" when they do."""
    name = program(argv[0])
    exact = argv[0].rpartition("/")[2].lower()
    rest = argv[1:]
    if not exact or argv[0].startswith("-"):
        return "has an unusual command name"
    if argv[0] in CHANGES_SHELL:
        return f"changes the shell (`{argv[0]}`)"
    if why := runs_others(name, exact, rest):
        return why
    if name in INTERPRETERS:
        return _interpreted(name, rest)
    if name == "git":
        return _git(rest)
    if name in ("sed", "gsed", "ssed"):
        return read_only_programs.sed(rest)
    return ""


def wrapped(argv: Sequence[str]) -> int | str | None:
    """Where in `argv` the command begins that a wrapper (`timeout 5 …`) runs; None when it runs
    none; a str says why that cannot be told."""
    name = program(argv[0])
    rest = list(argv[1:])
    if name == "command" and rest[:1] in (["-v"], ["-V"]):
        return None
    if name not in _WRAPPERS or not rest:
        return None
    at = _WRAPPERS[name](rest)
    if at is None or at == len(rest):
        return f"has options of `{name}` that are not understood"
    if at > len(rest):
        return None
    if rest[at].startswith("-") or "=" in rest[at]:
        return f"has options of `{name}` that are not understood"
    return at + 1


def _skip(rest: Sequence[str], alone: str, valued: str) -> int:
    """Returns the place behind the options that match `alone`, and those that match `valued` with
    the word after."""
    at = 0
    while at < len(rest) and rest[at].startswith("-"):
        if re.fullmatch(valued, rest[at]):
            at += 2
        elif re.fullmatch(alone, rest[at]):
            at += 1
        else:
            break
    return at


def _after_duration(rest: Sequence[str]) -> int | None:
    at = _skip(rest, "--foreground|--preserve-status|-v|--verbose", "-s|-k")
    timed = at < len(rest) and re.fullmatch(r"[0-9.]+[smhd]?", rest[at])
    return at + 1 if timed else None


def _after_run(rest: Sequence[str]) -> int | None:
    """`uv run pytest`; any other subcommand runs nothing that is named here."""
    if rest[:1] in (["run"], ["exec"]):
        return 1
    known = rest[:1] and not rest[0].startswith("-") and rest[0] not in _HOSTS
    return len(rest) + 1 if known else None


_HOSTS = names("console env open plugin self shell tool x")
"""Subcommands of these that run or hold programs in further ways."""
_NEVER = r"(?!)"
_WRAPPERS: Mapping[str, Callable[[Sequence[str]], int | None]] = {
    "time": lambda rest: _skip(rest, "-p", _NEVER),
    "nohup": lambda rest: 0,
    "command": lambda rest: 0,
    "nice": lambda rest: _skip(rest, r"-\d+|-n-?\d+", "-n"),
    "timeout": _after_duration,
    "gtimeout": _after_duration,
    **dict.fromkeys(("bundle", "hatch", "pdm", "pipenv", "poetry", "rye", "uv"), _after_run),
}


def is_wrapper(name: str) -> bool:
    return name in _WRAPPERS


def _interpreted(name: str, rest: Sequence[str]) -> str:
    if list(rest) in (["--version"], ["--help"]) or (name == "python" and list(rest) == ["-V"]):
        return ""
    python = name in ("python", "pypy")
    for word in rest:
        if python and word == "-m" and rest[-1] != "-m":
            module = rest[list(rest).index("-m") + 1]
            return f"may give `{module}` code to run" if module in _MODULES else ""
        if word.startswith("-"):
            if python and word in _HARMLESS:
                continue
            return f"may give `{name}` code to run (`{word[:40]}`)"
        taken = word in ("", "eval", "repl", "exec", "x", "create", "init")
        if taken or word.startswith(("/dev/", "/proc/")) or any("://" in one for one in rest[:3]):
            return f"may give `{name}` code to run (`{word[:40]}`)"
        return ""
    return f"lets `{name}` read code from its input"


def _git(rest: Sequence[str]) -> str:
    options = 0
    while options < len(rest) and rest[options].startswith("-"):
        if rest[options] not in _GIT_PLAIN:
            return f"gives git the option `{rest[options][:40]}`"
        options += 1
    words = rest[options:]
    runs = _GIT_RUNS.get(words[0]) if words else None
    for word in words[1:]:
        if _GIT_OPTIONS.fullmatch(word) or (runs and re.fullmatch(runs, word, re.DOTALL)):
            return f"may make git run a program or write a file (`{word[:40]}`)"
    if runs == ".*":
        return f"may make git run a program (`git {words[0]}`)"
    return _sets(words[1:]) if list(words[:1]) == ["config"] else ""


def _sets(words: Sequence[str]) -> str:
    """Returns why `git config` may set what later commands of git run."""
    said = [word for word in words if not word.startswith("-")]
    if said[:1] == ["set"]:
        said = said[1:]
    reads = said[:1] in (["get"], ["list"]) or any(word.startswith("--get") for word in words)
    if any(word in ("-e", "edit") or re.fullmatch("--ed.*", word) for word in words):
        return "opens an editor"
    if reads or len(said) < 2 or _SETTINGS.fullmatch(said[0].lower()):
        return ""
    return f"may make git run a program later (`{said[0][:40]}`)"


def besides(argv: Sequence[str]) -> tuple[str, ...]:
    """What this command does besides what its name says, as the words of another; () for nothing.
    `git log -p` and `git status -v` are also `git diff`: they show the text of whatever changed."""
    name = program(argv[0])
    if name != "git":
        return read_only_programs.besides(name, argv[1:])
    return ("git", "diff") if _shows_changes(argv) else ()


def text_at(argv: Sequence[str]) -> int | None:
    """Returns which word is no name of a file, though it may look like one: `/x/p` in `sed -n /x/p
    f`."""
    at = read_only_programs.text_at(program(argv[0]), argv[1:])
    return None if at is None else at + 1


def _shows_changes(argv: Sequence[str]) -> bool:
    at = 1
    while at < len(argv) and argv[at].startswith("-"):
        at += 1
    words = list(argv[at + 1 :])
    options = [w for w in words[: words.index("--") if "--" in words else None] if w[:1] == "-"]
    match argv[at : at + 1]:
        case ("log" | "reflog",):
            return not all(_LISTS.fullmatch(option) for option in options)
        case ("status",):
            return any(re.match(r"-[a-zA-Z]*v|--v", option) for option in options)
        case _:
            return False
