"""What is known about programs: which of them run another command, or change what later commands
mean, so that their own words do not say what will happen."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CHANGES_SHELL = _names(
    """. alias bind builtin complete compopt coproc declare dirs disown enable eval exec export fc
    getopts hash history let local mapfile popd pushd read readarray readonly set shift shopt source
    suspend trap typeset ulimit umask unalias unset"""
)
_SHELLS = _names(
    """ash bash busybox csh dash elvish fish ksh mksh nu oksh osh powershell pwsh rbash sh tcsh
    toybox xonsh yash zsh"""
)
_RUNNERS = _names(
    """at awk batch bsdtar busctl capsh chroot chrt crontab daemonize doas dtach ed emacs
    emacsclient entr env ex expect faketime firejail flatpak flock gawk gdb gtar ionice less
    lldb ltrace man mawk more mosh nano nawk nc ncat netcat nsenter nvim open parallel perf
    pkexec proot rlwrap rsh rsync run0 runcon runuser scp screen script setarch setpriv setsid
    sftp sg socat ssh ssh-agent sshpass start-stop-daemon stdbuf strace su sudo sudoedit
    systemd-nspawn systemd-run tar taskset telnet tmux torsocks unbuffer unshare valgrind vi
    view vim watch xargs xdg-open xvfb-run"""
)
_INTERPRETERS = _names(
    """bun clojure deno elixir erl gjs groovy guile iex ipython irb java jshell julia lua luajit
    node nodejs ocaml osascript perl php pypy python racket raku rscript ruby runghc sbcl scala
    swift tclsh ts-node tsx wish"""
)
_HARMLESS = frozenset({"-u", "-B", "-I", "-s", "-S", "-O", "-OO"})
"""Python's switches that take no argument and run nothing."""

_OPTIONS: Mapping[str, re.Pattern[str]] = {
    program: re.compile(pattern)
    for names, pattern in {
        "find": r"-(exec|execdir|ok|okdir|delete|fls|fprint|fprint0|fprintf)",
        "fd fdfind": r"-[A-Za-z]*[xX].*|--exec.*",
        "rg": r"--(pre|hostname-bin)(=.*)?",
        "sort gsort": r"--co.*",
        "test [": r"-[vR]",
        "printf": r"-v.*",
        "wait": r"-.*",
        "compgen": r"-.*",
        "command": r"-p.*",
        "zip": r"-.*T.*|--[tu].*",
        "split gsplit csplit": r"--fi.*",
        "cargo": r"--config.*",
    }.items()
    for program in names.split()
    for pattern in [rf"(?:{pattern})\Z"]
}
"""Options by which a program runs another one, deletes, or writes where its words do not show it.
Long options may be abbreviated."""

_GIT_PLAIN = frozenset({"--no-pager", "-P", "--version", "--help", "-h", "--no-optional-locks"})
_GIT_OPTIONS = re.compile(r"--(ou|exe|ext|upl|rece|op).*|-O.*", re.DOTALL)
_GIT_RUNS: Mapping[str, str] = {
    "bisect": r"run",
    "clone": r"-u.*|-c.*|--conf.*|--template.*",
    "difftool": r".*",
    "filter-branch": r".*",
    "instaweb": r".*",
    "mergetool": r".*",
    "rebase": r"-[a-zA-Z]*x.*",
    "send-email": r".*",
    "submodule": r"foreach",
}

_LISTS = re.compile(
    r"-\d+|-[nEiFz]|-n\d+|-s|-M|-C|--(?:oneline|graph|all|reverse|follow|merges|no-[a-z-]+|topo-order"
    r"|date-order|author-date-order|first-parent|ancestry-path|left-right|left-only|right-only"
    r"|boundary|cherry|cherry-mark|cherry-pick|full-history|simplify-[a-z-]+|dense|sparse|source"
    r"|stat|shortstat|numstat|name-only|name-status|summary|dirstat|compact-summary|raw"
    r"|abbrev-commit|relative-date|parents|children|walk-reflogs|perl-regexp|regexp-ignore-case"
    r"|extended-regexp|fixed-strings|invert-grep|all-match|branches|tags|remotes|notes|decorate"
    r"|find-renames|find-copies|relative|color|pretty|abbrev|log-size|clear-decorations)"
    r"|--(?:stat|dirstat|branches|tags|remotes|exclude|glob|author|committer|grep|since|after|until"
    r"|before|max-count|skip|format|pretty|date|abbrev|decorate|decorate-refs|min-parents"
    r"|max-parents|diff-filter|find-renames|relative|color|notes|encoding)(?:=.*)?",
    re.DOTALL,
)
"""Options of `git log` that list commits and names. The others may show what is in files; -S and -G
tell whether something is."""

_SED_ADDRESS = r"(?:\d+|\$)?(?:,(?:\d+|\$))?"
_SED_PLAIN = re.compile(rf"{_SED_ADDRESS}[pdq=]|{_SED_ADDRESS}s([/|#,:])(?P<body>.*)", re.ASCII)
_SED_SWITCHES = frozenset({"-n", "-E", "-r", "-nE", "-nr", "-En", "-u", "--quiet", "--silent"})


def program(name: str) -> str:
    """The name programs are known by: no directory, no version, small letters (file systems may
    not tell them apart)."""
    base = name.rpartition("/")[2].lower()
    return re.sub(r"(?<=[a-z])[-.\d]+\Z", "", base) or base


def hides(argv: Sequence[str]) -> str:
    """Why the words of this command do not say what it does; "" when they do."""
    name = program(argv[0])
    exact = argv[0].rpartition("/")[2].lower()
    rest = argv[1:]
    if not exact or argv[0].startswith("-"):
        return "has an unusual command name"
    if argv[0] in _CHANGES_SHELL:
        return f"changes the shell (`{argv[0]}`)"
    if name in _SHELLS or exact in _SHELLS:
        return f"runs a shell (`{name}`)"
    if name in _RUNNERS or exact in _RUNNERS:
        return f"can run other commands (`{name}`)"
    if name in _INTERPRETERS:
        return _interpreted(name, rest)
    if name == "git":
        return _git(rest)
    if name in ("sed", "gsed", "ssed"):
        return _sed(rest)
    options = _OPTIONS.get(exact) or _OPTIONS.get(name)
    for word in rest if options else ():
        if options is not None and options.match(word):
            return f"can run other commands or write unseen (`{name} {word[:40]}`)"
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
    """Past the options that match `alone`, and those that match `valued` with the word after."""
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
    return len(rest) + 1 if rest[:1] and not rest[0].startswith("-") else None


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


def is_wrapper(argv: Sequence[str]) -> bool:
    return program(argv[0]) in _WRAPPERS


def is_interpreter(argv: Sequence[str]) -> bool:
    return program(argv[0]) in _INTERPRETERS


def _interpreted(name: str, rest: Sequence[str]) -> str:
    if list(rest) in (["--version"], ["--help"]) or (name == "python" and list(rest) == ["-V"]):
        return ""
    python = name in ("python", "pypy")
    for word in rest:
        if python and word == "-m" and rest[-1] != "-m":
            return ""
        if word.startswith("-"):
            if python and word in _HARMLESS:
                continue
            return f"may give `{name}` code to run (`{word[:40]}`)"
        if word in ("", "eval", "repl", "exec", "x") or word.startswith(("/dev/", "/proc/")):
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
    return ""


def shows_changes(argv: Sequence[str]) -> bool:
    """Whether this command of git shows the text of whatever files changed, besides what its name
    says: `git log -p`, `git status -v`."""
    if not argv or program(argv[0]) != "git":
        return False
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


def _sed(rest: Sequence[str]) -> str:
    """Plain is: quiet and regex switches, one script that prints, deletes, stops or replaces."""
    at = 0
    while at < len(rest) and rest[at] in _SED_SWITCHES:
        at += 1
    if at < len(rest) and rest[at] == "-e":
        at += 1
    if at >= len(rest) or any(word.startswith("-") for word in rest[at:]):
        return "gives sed options that may write or run something"
    match = _SED_PLAIN.fullmatch(rest[at])
    if match is None or (match["body"] is not None and not _replaces(match[1], match["body"])):
        return "gives sed a script that may write or run something"
    return ""


def _replaces(delimiter: str, body: str) -> bool:
    """`body` is `regex<d>replacement<d>flags`, without the flags that write (`w`) or run (`e`)."""
    piece = rf"(?:\\[^\n]|[^\\\n{re.escape(delimiter)}])*"
    d = re.escape(delimiter)
    return re.fullmatch(rf"{piece}{d}{piece}{d}[gpIi0-9]*", body) is not None


_REMEMBERED: Mapping[str, frozenset[str]] = {
    program: _names(words)
    for programs, words in {
        "git": """add blame branch checkout cherry-pick commit describe fetch ls-files merge mv
            restore rm shortlog stash status switch tag""",
        "npm pnpm yarn bun": "audit build ci install lint ls outdated run start test why",
        "cargo": "build bench check clippy doc fmt run test tree update",
        "pip": "check download freeze install list show",
        "uv": "lock pip sync tree",
        "go": "build doc fmt list mod test vet",
        "docker podman": "build images inspect logs ps pull stop",
        "kubectl": "describe get logs",
        "terraform": "fmt plan validate",
        "gh": "issue pr release repo",
        "dotnet": "build restore test",
        "mix": "compile deps format test",
        "gradle gradlew mvn": "build clean compile package test verify",
    }.items()
    for program in programs.split()
}
_THREE_WORDS = frozenset({"run", "mod", "pip", "issue", "pr", "release", "repo", "stash", "deps"})
"""Subcommands that have subcommands, or name a script."""


def remembered_words(argv: Sequence[str]) -> int:
    """How many leading words name one kind of work, so that a person may allow all of it at once
    (`git commit`, `npm run build`, `make test`); 0 when only the exact command should be allowed.
    Left out are subcommands that run whatever they are told to (`docker run`, `git rebase -x`)."""
    name = program(argv[0]) if argv else ""
    if not name or "/" in argv[0] or len(argv) < 2 or argv[1].startswith("-"):
        return 0
    if name == "make":
        return 2 if re.fullmatch(r"[\w.-]+", argv[1]) else 0
    if argv[1] not in _REMEMBERED.get(name, ()):
        return 0
    if argv[1] not in _THREE_WORDS or name == "cargo":
        return 2
    return 3 if len(argv) > 2 and not argv[2].startswith("-") else 0
