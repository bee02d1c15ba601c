"""This module tells how many words of a command a lasting permission covers, and what may follow.

One rule: a remembered beginning (`git commit`, `make test`) covers further words only where they
cannot change what is run. So it covers the options listed here, and for some subcommands the names
of what they are about. Whatever else follows (a file of rules, a program, a variable, another
target, arguments for a script, an option that nobody listed) makes it another command, which is
asked about and can be remembered by itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from magy_server.core.shell.nested_commands import program
from magy_server.dataclass import dataclass
from magy_server.regex import regex

_ALWAYS = r"-v|-vv|-q|-h|--(verbose|quiet|silent|help|version|dry-run|no-color)|--colou?r(=\w+)?"
_VALUE = r"[^\s-].*"
_NAME = regex(r"(?![-+@])(?![A-Za-z_][\w.]*[:+?!]*=)(?!.*(?:://|::)).+", re.DOTALL)
"""No option, assignment, file of arguments, or address."""
_GIT_NAME = regex(r"(?!-)(?!.*::)(?!(?:.*/)?\.git(?:/|\Z)).+|--", re.DOTALL | re.IGNORECASE)
"""`+a:b` and `@{u}` are revisions there, and a name may have any character. But what is in `.git`
is nobody's work: `git mv a .git/hooks/post-commit` makes a hook of a file."""
_REMOTE = regex(r"(?![-+./~])[^:@]+", re.DOTALL)
"""What is fetched, and from where: a remote by its name, no address and no directory."""
_OPEN = regex(rf"(?!(?:.*,)?secrets?(?:[./,]|\Z))(?:{_NAME.pattern})", re.DOTALL | re.IGNORECASE)
"""Of what a cluster holds, all but what is kept secret there."""
_LOSES: Mapping[str, re.Pattern[str]] = {
    "branch": regex(r"-[a-zA-Z]*[dDfmMcC].*|--(?:delete|force|move|copy)"),
    "tag": regex(r"-[a-zA-Z]*[df].*|--(?:delete|force)"),
    "switch": regex(r"-[a-zA-Z]*[fC].*|--(?:force|merge)"),
    "checkout": regex(r"-[a-zA-Z]*[fB].*|--(?:force|ours|theirs|merge)?"),
    "fetch": regex(r"-[a-zA-Z]*f.*|--force|\+.*"),
    "mv": regex(r"-[a-zA-Z]*f.*|--force"),
    "commit": regex(r"-[abs-z]*n.*|--no-verify"),
    "merge": regex(r"--no-verify"),
}
"""Words that make a command of git delete or overwrite, or pass over the checks that a repository
has: with one it is a command by itself."""
_ONLY: Mapping[str, re.Pattern[str]] = {
    "rm": regex(r"--cached"),
    "restore": regex(r"-[a-zA-Z]*S.*|--staged"),
    "checkout": regex(r"-[a-zA-Z]*b"),
}
"""Without such a word these throw away what is in files, so that each is a command by itself."""


@dataclass(frozen=True, slots=True)
class _Work:
    """`options` are matched by a word, or by one and its value with a blank between; `re` compiles
    and keeps those of a program that is used. `names`: whether other words name what the work is
    about, as paths and packages do."""

    programs: frozenset[str]
    words: frozenset[str]
    options: str
    names: re.Pattern[str] | None = None


def _work(programs: str, words: str, *options: str, names: re.Pattern[str] | None = None) -> _Work:
    found = "|".join((_ALWAYS, *options))
    return _Work(frozenset(programs.split()), frozenset(words.split()), found, names)


_GIT = (
    r"-[abBdDfklmMnNoqrRvwxzA]+|-\d+|--(all|force|no-edit|amend|abort|continue|skip|quit|cached"
    r"|staged|worktree|no-ff|ff|ff-only|squash|no-commit|signoff|allow-empty|no-verify|tags|no-tags"
    r"|prune|unshallow|progress|update|intent-to-add|delete|move|copy|list|remotes|show-current"
    r"|detach|track|no-track|create|ours|theirs|merge|include-untracked|keep-index|index|annotate"
    r"|others|modified|deleted|exclude-standard|error-unmatch|ignore-unmatch|always|long|dirty"
    r"|first-parent|exact-match|stat|no-stat|oneline|name-only|name-status|short|branch|porcelain"
    r"|porcelain=v[12]|ignored|show-stash|summary|numbered|unset-upstream|merged|no-merged"
    r"|allow-unrelated-histories|reset-author|depth=\d+|abbrev=\d+|untracked-files(=\w+)?)"
    rf"|-[a-zA-Z]*m {_VALUE}|--(message|author|date|sort|contains|points-at)(=.*| {_VALUE})"
)
_KINDS = (
    _work("git", "add", _GIT, "-u", names=_GIT_NAME),
    _work("git", "commit", _GIT, "-[asuvqn]+", names=_GIT_NAME),
    _work("git", "status", _GIT, "-[sbuz]+", names=_GIT_NAME),
    _work("git", "stash", _GIT, "-[uakqS]+", names=_GIT_NAME),
    _work("git", "checkout switch", _GIT, "-[cCt]", names=_GIT_NAME),
    _work("git", "restore", _GIT, rf"-[SW]+|-s {_VALUE}|--source(=.*| {_VALUE})", names=_GIT_NAME),
    _work("git", "shortlog", _GIT, "-[sne]+", names=_GIT_NAME),
    _work("git", "blame", _GIT, rf"-[stfnwMC]+|-L ?{_VALUE}", names=_GIT_NAME),
    _work("git", "ls-files", _GIT, "-[cdmostuvz]+", names=_GIT_NAME),
    _work("git", "fetch", _GIT, names=_REMOTE),
    _work("git", "branch cherry-pick describe merge mv rm tag", _GIT, names=_GIT_NAME),
    _work("npm pnpm yarn bun", "build ci install lint run start test", "-s|--if-present"),
    _work("npm pnpm yarn bun", "audit outdated", r"--json|--omit=dev|--prod"),
    _work("npm pnpm yarn bun", "ls why", r"--json|--all|-g|--depth=\d+", names=_NAME),
    _work(
        "cargo", "bench build check clippy doc fmt test tree update",
        r"--|-r|--(release|all|workspace|lib|bins|tests|benches|examples|all-targets|all-features"
        r"|no-default-features|locked|offline|frozen|no-run|no-fail-fast|doc|no-deps|check|nocapture"
        r"|ignored|include-ignored|exact|show-output|message-format=\w+)|-j ?\d+"
        rf"|--(jobs|test-threads)[= ]\d+|(-p|--package|--test|--bench) {_VALUE}|--package=.*",
        names=_NAME,
    ),
    _work("cargo", "run", r"-r|--(release|locked|offline|frozen)"),
    _work("pip", "check freeze list show", r"-o|-l|--(outdated|user|local|format=\w+)",
          names=_NAME),
    _work("uv", "lock sync tree", r"--(locked|frozen|check|offline|all-extras|all-groups|no-dev)"),
    _work(
        "go", "build doc fmt list test vet",
        r"-(race|short|cover|failfast|json|benchmem|x|a|n|m|deps)"
        rf"|-(count|cpu|parallel|p|timeout|run|skip|bench|benchtime|list)(=.*| {_VALUE})",
        names=_NAME,
    ),
    _work("go", "mod", "-[ex]"),
    _work(
        "docker podman", "images inspect logs ps pull stop",
        r"-[aftnlsq]+|--(all|follow|timestamps|no-trunc|last)"
        rf"|(-n|--tail|--since|--until|--format|--filter)[= ]{_VALUE}",
        names=_NAME,
    ),
    _work(
        "kubectl", "describe get logs",
        r"-[Awp]+|--(all-namespaces|watch|show-labels|no-headers|follow|previous|timestamps)"
        rf"|(-n|--namespace|-l|--selector|-c|--container|--tail|--since)[= ]{_VALUE}"
        r"|(-o|--output)[= ](json|yaml|wide|name)",
        names=_OPEN,
    ),
    _work("terraform", "fmt plan validate",
          r"-(no-color|json|check|diff|recursive|compact-warnings|input=false|refresh=\w+)"),
    _work(
        "gh", "issue pr release repo",
        r"-d|--(comments|draft|fill|squash|merge|rebase|delete-branch)"
        rf"|(-L|-s|-l|-t|-b|-a|-A|-B|-H|--limit|--state|--label|--title|--body|--assignee|--json"
        rf"|--author|--base|--head)[= ]{_VALUE}",
        names=_NAME,
    ),
    _work("dotnet", "build restore test",
          r"--(no-restore|no-build|nologo)|(-c|--configuration) \w+"),
    _work("mix", "compile format test", r"--(check-formatted|force|trace|stale|failed|cover)",
          names=_NAME),
    _work("gradle gradlew mvn", "build clean compile package test verify",
          r"-[BoUe]|-ntp|-T ?\w+|--(offline|info|stacktrace|no-daemon|parallel|batch-mode"
          r"|no-transfer-progress)"),
)  # fmt: skip
_MAKE = _work("make", "", r"-[ksnBi]+|-j ?\d*|--jobs=\d+|--(keep-going|no-print-directory)")
_THREE_WORDS = frozenset({"run", "mod", "issue", "pr", "release", "repo", "stash"})
"""These subcommands have subcommands, or name a script."""


def remembered_words(argv: Sequence[str], globbed: Collection[int] = ()) -> int:
    """How many leading words name one kind of work, so that a person may allow all of it at once; 0
    where only the exact command should be allowed, as the other words say what is run. `globbed`
    are the indexes of words that the shell replaces by names of files."""
    work = _of(argv)
    if work is None:
        return 0
    count = 2
    if work is not _MAKE and argv[1] in _THREE_WORDS and argv[0] != "cargo":
        count = 3
    if len(argv) < count or argv[count - 1].startswith("-") or min(globbed, default=9) < count:
        return 0
    return count if _is_plain(work, argv, count, globbed) else 0


def _of(argv: Sequence[str]) -> _Work | None:
    if len(argv) < 2 or "/" in argv[0] or argv[1].startswith("-"):
        return None
    name = program(argv[0])
    if name == "make":
        return _MAKE if re.fullmatch(r"[\w.-]+", argv[1]) else None
    if name == "git" and _is_its_own(argv):
        return None
    if name == "gh" and any(word.startswith("-q") for word in argv):
        return None  # not quiet, but a filter, which reads the environment
    return next((k for k in _KINDS if name in k.programs and argv[1] in k.words), None)


def _is_its_own(argv: Sequence[str]) -> bool:
    """Returns whether a command of git would lose something that others of its subcommand leave."""
    loses, only = _LOSES.get(argv[1]), _ONLY.get(argv[1])
    if loses is not None and any(loses.fullmatch(word) for word in argv[2:]):
        return True
    return only is not None and not any(only.fullmatch(word) for word in argv[2:])


def _is_plain(work: _Work, argv: Sequence[str], at: int, globbed: Collection[int]) -> bool:
    while at < len(argv):
        taken = next(
            (n for n, text in _readings(argv, at) if re.fullmatch(work.options, text, re.DOTALL)), 0
        )
        if taken == 0:
            named = work.names is not None and work.names.fullmatch(argv[at])
            # what begins with a pattern may become an option
            if not named or (at in globbed and argv[at][0] in "*?["):
                return False
            taken = 1
        elif any(n in globbed for n in range(at, at + taken)):
            return False
        at += taken
    return True


def _readings(argv: Sequence[str], at: int) -> Iterator[tuple[int, str]]:
    if argv[at].startswith("-"):
        if at + 1 < len(argv):
            yield 2, f"{argv[at]} {argv[at + 1]}"
        yield 1, argv[at]
