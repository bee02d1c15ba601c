"""`core/shell/`: with real bash as the judge of what a command line means."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from magy_server.core.shell import simple_commands as shell
from magy_server.core.shell.globs import may_be
from magy_server.core.shell.simple_commands import LONGEST, MOST, Part, Redirect, parse, quote
from tests.patience import PATIENCE
from tests.thorough import examples

HOME = "/home/someone"


def argvs(command: str) -> list[tuple[str, ...]]:
    parts = parse(command, HOME)
    assert not [part for part in parts if part.opaque], parts
    return [part.argv for part in parts]


def texts(command: str) -> list[str]:
    return [part.text for part in parse(command, HOME)]


# --- plain lines ----------------------------------------------------------------------------------

PLAIN = [
    ("", []),
    ("  # only a comment", []),
    ("git status", ["git status"]),
    ("git  \t status  # really", ["git status"]),
    ("ls;pwd", ["ls", "pwd"]),
    ("a && b || c; d | e & f", ["a", "b", "c", "d", "e", "f"]),
    ("a |& b", ["a", "b"]),
    ("a\nb\n\n  c\n", ["a", "b", "c"]),
    ("(a; b)", ["a", "b"]),
    ("{ a; b; }", ["a", "b"]),
    ("! a", ["a"]),
    ("if a; then b; elif c; then d; else e; fi", ["a", "b", "c", "d", "e"]),
    ("while a; do b; done", ["a", "b"]),
    ("until a\ndo b\ndone", ["a", "b"]),
    ("for i in 1 2 *.py; do make test; done", ["make test"]),
    ("docker run \\\n  --rm image", ["docker run --rm image"]),
    ("git commit -m 'it''s \"so\"'", ["git commit -m 'its \"so\"'"]),
    ("git commit -m \"it's\"", ["git commit -m 'it'\"'\"'s'"]),
    ("git commit -m 'one\ntwo'", ["git commit -m $'one\\ntwo'"]),
    ("git commit -m 'wrote café – ok'", ["git commit -m 'wrote café – ok'"]),
    ("git show HEAD~1 stash@{0} HEAD^", ["git show HEAD~1 stash@{0} HEAD^"]),
    ("grep 'a$' x", ["grep 'a$' x"]),
    ("echo a\\ b \\* \"\\$x\"", ["echo 'a b' '*' '$x'"]),
    ("ls ~ ~/src", [f"ls {HOME} {HOME}/src"]),
    ("ls *.py", ["ls *.py"]),
    ("ls '*.py'", ["ls '*.py'"]),
    ("[ -f x ] && test -d y", ["[ -f x ]", "test -d y"]),
    ("find . -name '*.py' -type f", ["find . -name '*.py' -type f"]),
    ("sed -n '1,20p' a.py", ["sed -n 1,20p a.py"]),
    ("sed 's/a b/c/g' a.py", ["sed 's/a b/c/g' a.py"]),
    ("python3 -m pytest -q", ["python3 -m pytest -q"]),
    ("python tool.py -c x", ["python tool.py -c x"]),
    ("git --no-pager log --oneline", ["git --no-pager log --oneline"]),
    ("make 2>&1 | tail -5", ["make 2>&1", "tail -5"]),
    ("cat < a > b 2>> c", ["cat < a > b 2>> c"]),
    ("cat <<'E' > f\n$x `y`\nE\nls", ["cat <<< $'$x `y`\\n' > f", "ls"]),
    ("cat <<-E\n\tplain\n\tE", ["cat <<< $'plain\\n'"]),
    ("cat <<< 'a b'", ["cat <<< 'a b'"]),
    ("command -v git", ["command -v git"]),
    ("git config user.name 'A B'", ["git config user.name 'A B'"]),
    ("git config --get alias.x", ["git config --get alias.x"]),
    ("sort -o a b", ["sort -o a b", "sort -o"]),
    ("timeout 5 grep -rn x .", ["timeout 5 grep -rn x .", "grep -rn x .", "grep -r"]),
    ("git log -p", ["git log -p", "git diff"]),
    ("git log --pretty=%h", ["git log --pretty=%h"]),
    ("git log --pretty=%GG", ["git log --pretty=%GG", "git diff"]),
    ("git log --format=%h%-GK", ["git log --format=%h%-GK", "git diff"]),
    ("echo 'if' if", ["echo 'if' 'if'"]),
]  # fmt: skip


@pytest.mark.parametrize(("command", "expected"), PLAIN)
def test_a_plain_line_is_its_simple_commands(command: str, expected: list[str]) -> None:
    parts = parse(command, HOME)
    assert [part.text for part in parts] == expected
    assert not [part for part in parts if part.opaque]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("time make", ["time make", "make"]),
        ("time -p make x", ["time -p make x", "make x"]),
        ("nohup make &", ["nohup make", "make"]),
        ("nice -n 5 make", ["nice -n 5 make", "make"]),
        ("timeout 5 make", ["timeout 5 make", "make"]),
        ("timeout -k 1 -s INT 2.5m make", ["timeout -k 1 -s INT 2.5m make", "make"]),
        ("command ls", ["command ls", "ls"]),
        ("uv run pytest -q", ["uv run pytest -q", "pytest -q"]),
        ("uv sync", ["uv sync"]),
        ("timeout 9 nice make > log", ["timeout 9 nice make > log", "nice make", "make"]),
    ],
)
def test_a_wrapper_gives_also_what_it_wraps(command: str, expected: list[str]) -> None:
    assert texts(command) == expected
    assert len(argvs(command)) == len(expected)


def test_the_files_a_shell_opens() -> None:
    command = "make < in > out 2>> log &>all >| forced < /dev/null 2>&1 >&-"
    (part,) = parse(command)
    assert not part.opaque
    assert part.redirects == (
        Redirect("read", "in"),
        Redirect("write", "out"),
        Redirect("write", "log"),
        Redirect("write", "all"),
        Redirect("write", "forced"),
    )
    both = (Redirect("read", "both"), Redirect("write", "both"))
    assert parse("make <> both")[0].redirects == both
    assert parse("echo $(make <> both)")[1].redirects == both


def test_a_target_that_is_not_known_is_still_a_redirection() -> None:
    for command in ("echo a > $file", "echo $(date) > $file", "echo a > *.txt"):
        part = parse(command)[0]
        assert part.opaque
        assert part.redirects == (Redirect("write", None),), command
    assert parse("echo $(date) > .env")[0].redirects == (Redirect("write", ".env"),)


def test_words_that_bash_would_replace_by_file_names_are_told() -> None:
    (part,) = parse("wc -l '*.txt' src/*.py a?b [ab]c")
    assert part.globbed == (3, 4, 5)
    assert part.argv == ("wc", "-l", "*.txt", "src/*.py", "a?b", "[ab]c")


@pytest.mark.parametrize(
    "command",
    ["cd sub && make", "cd sub && make | tail", "make && cd sub && ls", "cd sub", "cd sub && ls &"],
)
def test_a_change_of_directory_is_followed(command: str) -> None:
    changes = [part.cwd_change for part in parse(command) if part.argv[0] == "cd"]
    assert changes == ["sub"]


@pytest.mark.parametrize(
    "command",
    [
        "cd sub; ls", "cd sub\nls", "cd sub || ls", "cd sub && a || ls", "(cd sub && a) && ls",
        "{ cd sub; } && ls", "cd sub | ls", "ls | cd sub", "cd sub & ls", "cd - && ls", "cd && ls",
        "cd -P sub && ls", "cd a b", "cd s*b && ls", "cd '' && ls", "if cd sub; then ls; fi",
        "! cd sub && ls", "command cd sub && ls", "cd $x && ls", "a; cd sub && ls", "pushd sub",
    ],
)  # fmt: skip
def test_a_change_of_directory_that_may_not_happen_is_opaque(command: str) -> None:
    parts = parse(command)
    assert any(part.opaque for part in parts), parts
    assert not [part for part in parts if part.cwd_change]


# --- hostile lines --------------------------------------------------------------------------------

OPAQUE = [
    "echo $(id)", "echo `id`", 'echo "$(id)"', 'echo "`id`"', "echo $((1+a[$(id)]))", "echo $x",
    'echo "$HOME"', "echo ${x:-$(id)}", "${x}", "$x -rf /", "cat <(id)", "tee >(sh)", "echo $[1]",
    "cat <<E\n$(id)\nE", "cat <<E\n`id`\nE", "cat <<E\nno end", "cat <<$x\na\n$x", "f() { id; }; f",
    "function f { id; }", "git() { id; }\ngit status", "eval id", "eval 'id'", "source x", ". ./x",
    "exec id", "trap id EXIT", "builtin eval id", "command eval id", "command -p eval id",
    "alias ls=id", "alias ls=id\nls", "coproc id", "case x in x) id;; esac",
    "select x in a; do id; done", "[[ -v a[$(id)] ]]", "((x=1))", "let x=1", "test -v 'a[$(id)]'",
    "[ -v 'a[$(id)]' ]", "printf -v 'a[$(id)]' x", "read x", "for PATH in /tmp; do ls; done",
    "for x do id; done", "PATH=/tmp git status", "LD_PRELOAD=/tmp/x.so ls", "A=1", "a[0]=1 ls",
    "A+=1 ls", "FO\\\nO=1 ls", "export PATH=/tmp", "declare -x A=1", "unset PATH", "set -- x",
    "shopt -s extglob", "hash -p /x ls", "bash -c id", "sh script", "bash", "/bin/sh -c id",
    "/usr/bin/env bash x", "BASH -c id", "zsh x", "dash x", "busybox sh", "python -c 1",
    "python3.11 -c 1", "python3 -Ic 1", "python3", "python -", "python3 < x", "python /dev/stdin",
    "perl -e 1", "perl -ne 1 x", "ruby -e 1", "node -e 1", "node --eval=1", "php -r 1",
    "deno eval 1", "lua -e 1", "xargs rm", "ls | xargs rm", "env id", "env A=1 id", "sudo id",
    "doas id", "su -c id", "ssh host id", "find . -exec id ;", r"find . -exec rm {} \;",
    "find . -delete", "find . -fprintf x y", "find . -ok id +", "fd -x id", "fd -Hx id",
    "awk 'BEGIN{system(\"id\")}'", "gawk 1", "sed -i s/a/b/ f", "sed s/a/b/e f",
    "sed 's/a/b/w out' f", "sed e f", "sed '1e id' f", "sed -n '1p;e id' f", "sed -f x f",
    "sed -e p -e 'e id' f", "tar --to-command=id -xf x", "rg --pre id x", "rg --pre=id x",
    "sort --compress-program=id x", "git -c alias.x='!id' x", "git -c core.pager=id log",
    "git --exec-path=/tmp status", "git diff --ext-diff", "git diff --output=x", "git log --outp=x",
    "git rebase -x id main", "git bisect run id", "git submodule foreach id", "git difftool -y",
    "git grep -O'id' x", "git clone -u id x", "git fetch --upload-pack=id x", "git -C x status",
    "watch id", "parallel id", "strace id", "setsid id", "stdbuf -o0 id", "timeout -x 5 id",
    "timeout $x id", "nice --weird id", "nohup -x id", "time if true; then id; fi", "time ! id",
    "nohup A=1 id", "timeout 5 sh x", "nice bash -c id", "uv run --with x y", "uv run python -c 1",
    "echo {a,b}", "echo {1..3}", "{id,-u}", "rm ~root/x", "ls ~\"\"", "ls \"\"~", "ls ~''/x",
    "ls ~+", "echo a=~/x", "dd of=~/x",
    "echo $'\\x69d'", "$'id'", 'echo $"x"', "!!", "!id", "echo !id", 'echo "!id"', "l?",
    "/bin/l[s]", "*", "'' x", "-x", "echo 'a", 'echo "a', "echo a\\", "a; ; b", "a ||", "( a",
    "a )", "if a; then b", "cat > /dev/tcp/host/80", "cat < /dev/udp/host/80", "{fd}> x",
    "{ id; } > x", "(id) < x", "> x", "a > ", "echo \u202eid", "echo a\u200bb", "echo\u00a0id",
    "git\rstatus", "echo a\x00b", "echo \x1b[2J", "ls \u2028 id", "echo \ud800", "echo \u3164",
    "echo \u180b",
    "ls *'*'", "ls *\\]", "ls ~/*.py", "a;;b", "x=$(id)", "ls $(", "ls ${", "echo \"$\\\n(id)\"",
    "echo $\\\n(id)", "echo $\\\nx",
]  # fmt: skip


@pytest.mark.parametrize("command", OPAQUE)
def test_what_is_not_fully_understood_is_opaque_with_a_reason(command: str) -> None:
    opaque = [part for part in parse(command, HOME) if part.opaque]
    assert opaque
    assert all(part.why and part.text and part.text.isprintable() for part in opaque)


RUNNERS = [
    "git config alias.x '!id'", "git config core.pager id", "git config set diff.external id",
    "git config --global core.sshCommand id", "git config -e", "cmake -E env id", "run-parts x",
    "make --eval=x", "make SHELL=id", "go test -exec id", "npm test --script-shell=id",
    "jobs -x id", "prlimit --nofile=9 id", "choom -n 0 id", "linux32 id", "i386 id", "x86_64 id",
    "setarch -R id", "numactl -N 0 id", "fakeroot id", "npx id", "npx -y id", "npm exec id",
    "npm x id", "npm exe id", "npm --prefix x exec id", "npm init id", "npm create id", "uvx id",
    "pipx run id", "bunx id", "bun x id", "pnpm dlx id", "pnpm exec id", "yarn dlx id",
    "chronic id",
    "yarn exec id", "uclampset -m 0 id", "ionice id", "chrt -b 0 id", "taskset 1 id", "flock f id",
    "script -c id", "unshare id", "nsenter id", "runuser -u x id", "setpriv id", "stdbuf -o0 id",
    "chroot / id", "ifne id", "pee id", "mispipe a b", "zrun cat x", "sem id", "systemd-run id",
    "dbus-run-session id", "proot id", "bwrap id", "faketime 1 id", "gdb --args id", "perf stat id",
    "hyperfine id", "gprofng collect app id", "/lib64/ld-linux-x86-64.so.2 /bin/id",
    "dotnet exec x",
    "ld.so /bin/id", "qemu-x86_64 /bin/id", "git-rebase -x id", "git merge-index id -a", "uv x id",
    "git for-each-repo --config=x id", "git hook run x", "git init --template=x", "uv tool run id",
    "nm --plugin x.so a", "ar --plugin x.so r a", "gcc -wrapper id x.c", "gcc -fplugin=x.so a.c",
    "install -s --strip-program=id a b", "sdiff --diff-program=id a b", "python -m timeit 1",
    "python -m pdb x.py", "deno run https://x.org/a.ts", "conda run id", "nix run x",
    "ip netns exec x",
    "hg --config alias.x=!id x", "svn diff --diff-cmd id", "scriptlive x", "watch -n1 id", "m4 x",
    "sqlite3 x", "psql -c 1", "dc -e 1", "bc x", "updatedb", "coproc id", "enable -f x.so x",
    "pip config edit --editor id", "pip --editor=id config edit", "pip --python ./id list",
    "npm run x --script-s=id", "npm config set script-shell id", "npm set shell id",
    "npm install --node-gyp=id", "go build -ldflags=-extld=id", "go env -w CC=id",
    "cargo rustc -- -Clinker=id", "cargo rustc -- -C linker=id", "just -c id", "just --shell id x",
    "just --chooser id", "tox exec -- id", "tox -x a=b", "tox --override a=b",
    "pytest --pdbcls=os:system", "mvn exec:exec -Dexec.executable=id",
    "gradle -Dorg.gradle.java.home=x test", "git config --ed", "git commit -m x --trai a=b",
    "git interpret-trailers --trailer a=b f", "git bisect view id", "sh.exe -c id", "CMD.EXE /c id",
    "wsl.exe id",
    "exec -a x id", "command -p id", "rustup run stable id", "arch -x86_64 id", "git-shell -c id",
]  # fmt: skip


@pytest.mark.parametrize("command", RUNNERS)
def test_what_runs_others_is_opaque(command: str) -> None:
    assert any(part.opaque for part in parse(command, HOME))


GLOBS_THAT_MAY_BE_MORE = [
    "sed -n s,x,*,p in.txt", "sed -n * f", "sed -n p *", "sed *", "nice -n * ls", "nice * ls",
    "timeout -s * 5 ls", "timeout * ls", "timeout 5 l*", "time *", "command *", "uv * x",
    "git pus?",
    "git * x", "git log *.py", "git log --author src/*", "git stash p*", "git submodule f*",
    "find *",
    "find . *", "find . -ex*", "find . -d?lete", "grep * x", "grep -A src/* x", "sort *",
    "sort *.txt",
    "sort -k src/* f", "rg * x", "rg x *", "jq * x", "jq . *", "tree *", "file *", "printf *",
    "printf p* x", "test * x", "[ -? x ]", "jobs *", "make *", "make SH*", "npm * x", "npm ex?c x",
    "cargo *", "python *", "python t* x", "node *", "zip *", "split *", "cd *", "docker r* x",
    "wait *", "uniq *", "install *", "kubectl d* x", "pnpm d?x id", "nice ls && nohup *", "l? x",
]  # fmt: skip
GLOBS_OF_FILES = [
    "ls *", "cat *.md", "head -n 5 *", "wc -l *.py", "du -s *", "stat *", "grep x *.py",
    "grep x src/*",
    "grep -n x -- *", "sort src/*.txt", "sort -- *", "sed -n p src/*.py", "sed -n 1p -- *.py",
    "jq . ./*",
    "git add src/*.py", "git add -- *.py", "git log --oneline -- *.py", "git stash push src/*",
    "find . -name *.py", "find src* -name x", "printf '%s\\n' *", "test -e *.py", "file ./*",
    "python x.py *.txt", "mytool *", "rm *.tmp", "timeout 5 cat *", "nice ls *", "tail -f *.log",
    "rg x src/*.c", "echo *", "type *", "[ -f a* ]", "basename *", "cp src/*.py dst",
    "python -m p t/*",
]  # fmt: skip


@pytest.mark.parametrize("command", GLOBS_THAT_MAY_BE_MORE)
def test_a_pattern_that_may_become_more_than_a_file_is_opaque(command: str) -> None:
    assert any(part.opaque for part in parse(command, HOME))


@pytest.mark.parametrize("command", GLOBS_OF_FILES)
def test_a_pattern_where_any_file_does_no_harm_is_plain(command: str) -> None:
    assert not [part for part in parse(command, HOME) if part.opaque]


def test_what_a_variable_is_set_for_is_listed() -> None:
    parts = parse("LC_ALL=C cat cl??.pem < .env")
    assert [(part.opaque, part.argv, part.globbed) for part in parts] == [
        (True, (), ()), (False, ("cat", "cl??.pem"), (1,)),
    ]  # fmt: skip
    assert parts[1].redirects == (Redirect("read", ".env"),)


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("cl??.pem", "clé.pem", True), ("cl?.pem", "clé.pem", True), ("cl???.pem", "clé.pem",
        False),
        ("pus?", "push", True), ("pus?", "pushed", False), ("*", "", True), ("?*", "", False),
        ("a*b*c", "axxbyyc", True), ("a*b*c", "axxbyy", False), ("[!a]b", "xb", True),
        ("[]x]b", "]b", True), ("a[bc]", "a", False), ("a[b", "a[b", True), ("a", "ab", False),
        ("*a" * 60 + "b", "a" * 250, False), ("日?", "日本", True),
    ],
)  # fmt: skip
def test_a_pattern_matches_in_every_language(pattern: str, name: str, expected: bool) -> None:
    assert may_be(pattern, name) is expected


@settings(max_examples=examples(60), deadline=None, database=None)
@given(
    st.text(st.sampled_from([*"ab*?[]-é"]), min_size=1, max_size=6),
    st.lists(st.text(st.sampled_from([*"ab-é"]), min_size=1, max_size=5), min_size=1, max_size=6),
)
def test_bash_expands_to_nothing_that_does_not_match(pattern: str, names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            Path(folder, name).touch()
        for language in ("C", "C.UTF-8"):
            run = subprocess.run(
                ["bash", "--norc", "-c", f"printf '%s\\0' ./{pattern}"], cwd=folder, check=True,
                capture_output=True, env={"LC_ALL": language},
            )  # fmt: skip
            for found in run.stdout.decode().split("\0")[:-1]:
                assert found == f"./{pattern}" or may_be(f"./{pattern}", found), (pattern, found)


@pytest.mark.parametrize(
    ("command", "hidden"),
    [
        ("echo $(cat .env)", "cat .env"),
        ("echo `cat .env`", "cat .env"),
        ('echo "a $(cat .env) b"', "cat .env"),
        ("diff <(cat .env) x", "cat .env"),
        ("x=$(cat .env)", "cat .env"),
        ("f() { cat .env; }; f", "cat .env"),
        ("case x in x) cat .env;; esac", "cat .env"),
        ("[[ -f x ]] && cat .env", "cat .env"),
        ("cat <<E\n$(cat .env)\nE", "cat .env"),
        ("echo $(echo $(cat .env))", "cat .env"),
        ("for f in a; do cat .env; echo $f; done", "cat .env"),
        ("timeout 5 sh x && cat .env", "cat .env"),
    ],
)
def test_commands_inside_opaque_ones_are_listed(command: str, hidden: str) -> None:
    parts = parse(command)
    assert any(part.opaque for part in parts)
    assert Part(hidden, tuple(hidden.split())) in parts


def test_there_are_no_home_directories_without_being_told() -> None:
    assert parse("ls ~/x")[0].opaque
    assert parse("ls '~/x'")[0].argv == ("ls", "~/x")


@pytest.mark.parametrize(
    "piece", ["(", "$(", "time ", "{ ", "a;", "a|", "[[ ", "if ", "<<a ", '"$(']
)
def test_depth_and_number_are_bounded(piece: str) -> None:
    parts = parse(piece * 6000)
    assert 1 <= len(parts) <= MOST + 1
    assert any(part.opaque for part in parts)


@pytest.mark.parametrize(
    "line",
    [
        "git log " + "a* " * 10_000, "ls " + "* " * 16_000, "find " + "* " * 16_000,
        "timeout 5 " * 8 + "ls " + "a* " * 10_000, "sed -n '" + "/a/p;" * 6_000 + "'",
        "sed -n '" + "/[a/p;" * 5_000 + "'", "sed -n '" + "{p;" * 9_000 + "'",
        "sed '" + " " * 30_000 + "'", "sed -n '" + "1 " * 15_000 + "'", "make " + "a=b" * 10_000,
        "sed 's/" + "\\a" * 15_000 + "'", "jq '" + "env " * 8_000 + "'",
        "git config " + "a." * 15_000,
        "A=1 " * 8_000 + "ls", "grep " + "-e x " * 6_000, "sort " + "-k 1 " * 6_000,
    ],
)  # fmt: skip
def test_long_lines_are_read_in_time(line: str) -> None:
    since = time.process_time()
    parse(line, HOME)
    assert time.process_time() - since < 4


def test_length_is_bounded() -> None:
    (part,) = parse("echo " + "a" * LONGEST)
    assert part.opaque


# --- against bash ---------------------------------------------------------------------------------

# With a PATH that leads nowhere every command that is no builtin reaches the handler, which writes
# down what bash passes. `$STATUS` decides which way `&&`, `||` and `if` go.
ORACLE = r"""
command_not_found_handle() { printf '%s\0' "$#" "$@" >>"$LOG"; return "$STATUS"; }
set -f
while IFS= read -r -d '' line; do
  ( eval "$line"; wait ) </dev/null >/dev/null 2>&1
  printf '%s\0' end >>"$LOG"
done <"$LINES_FILE" 2>/dev/null
"""


def bash(lines: list[str], status: int) -> list[list[tuple[str, ...]]]:
    """What each line runs, in order, when all its commands end with `status`."""
    program = shutil.which("bash")
    assert program, "bash is needed to check what bash does"
    with tempfile.TemporaryDirectory() as folder:
        log, source, work = (Path(folder, name) for name in ("log", "lines", "work"))
        source.write_bytes(b"".join(line.encode() + b"\0" for line in lines))
        work.mkdir()
        env = {"LOG": str(log), "LINES_FILE": str(source), "STATUS": str(status),
               "PATH": "/nowhere", "HOME": HOME,
               "LC_ALL": os.environ.get("LC_ALL", "C.UTF-8")}  # fmt: skip
        subprocess.run(
            [program, "--norc", "--noprofile", "-c", ORACLE], env=env, cwd=work, timeout=PATIENCE,
            stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        log.touch()
        fields = log.read_bytes().decode().split("\0")[:-1]
    runs: list[list[tuple[str, ...]]] = [[]]
    at = 0
    while at < len(fields):
        if fields[at] == "end":
            runs.append([])
            at += 1
        else:
            count = int(fields[at])
            runs[-1].append(tuple(fields[at + 1 : at + 1 + count]))
            at += 1 + count
    assert len(runs) == len(lines) + 1
    return runs[:-1]


def single(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def double(word: str) -> str:
    escaped = "".join("\\" + c if c in '$`"\\' else c for c in word)
    return f'"{escaped}"'


def slashed(word: str) -> str:
    return "".join(c if c.isalnum() else "'\n'" if c == "\n" else "\\" + c for c in word) or "''"


CHARS = st.sampled_from([*"abz09 _-./:=,~#*?[]{}()<>|&;'\"\\$`%+@^\n\té–日"])
WORDS = st.text(CHARS, max_size=8)
QUOTED = st.tuples(WORDS, st.sampled_from([single, double, slashed, quote]))
COMMANDS = st.lists(QUOTED, max_size=4)
CHAINS = st.lists(
    st.tuples(st.sampled_from([" && ", ";", "\n", " ; ", "&&"]), COMMANDS), min_size=1, max_size=4
)


@settings(max_examples=examples(40), deadline=None, database=None)
@given(st.lists(CHAINS, min_size=1, max_size=8))
def test_quoted_words_are_what_bash_passes(chains: list[list[tuple[str, Any]]]) -> None:
    lines, expected = [], []
    for chain in chains:
        commands = [("cmd", *(word for word, _ in words)) for _, words in chain]
        sources = [" ".join(["cmd", *(q(word) for word, q in words)]) for _, words in chain]
        joined = "".join(op + source for (op, _), source in zip(chain, sources, strict=True))
        lines.append(joined.removeprefix(chain[0][0]))
        expected.append(commands)
    assert bash(lines, status=0) == expected
    for line, commands in zip(lines, expected, strict=True):
        parts = parse(line, HOME)
        if not any(part.opaque for part in parts):
            assert [part.argv for part in parts] == commands


PIECES = [
    *"ab   \"'\\;&|()<>#~={},*?[]!$\n1-:^@+%.é", "&&", "||", "\\\n", ">a", "2>&1", "<<a\n", "\na\n",
    "if", "fi", "then", "do", "done", "for a in", "{ ", " }", "time", " ; ", "<<-'b'\n", "$'", "&>",
]  # fmt: skip


@settings(max_examples=examples(60), deadline=None, database=None)
@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=14).map("".join), max_size=120))
def test_bash_runs_nothing_that_was_not_listed(lines: list[str]) -> None:
    lines = [line for line in lines if not any(part.opaque for part in parse(line, HOME))]
    for status in (0, 1):
        for line, ran in zip(lines, bash(lines, status), strict=True):
            listed = {part.argv for part in parse(line, HOME)}
            assert set(ran) <= listed, line


@pytest.mark.parametrize("status", [0, 1])
def test_bash_agrees_on_the_plain_lines(status: int) -> None:
    lines = [command for command, _ in PLAIN if not command.startswith(("while", "until"))]
    for line, ran in zip(lines, bash(lines, status), strict=True):
        listed = {part.argv for part in parse(line, HOME)}
        assert set(ran) <= listed, line


@settings(max_examples=examples(500), deadline=None, database=None)
@example("&\U0005b022 $\U00108c30 {\U00107e94 \U000e682b=")
@given(st.text(max_size=60) | st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_no_text_makes_it_raise(text: str) -> None:
    parts = parse(text)
    assert all(part.text.isprintable() for part in parts)
    assert all(part.argv or part.opaque for part in parts)


def test_where_the_two_readers_differ_nothing_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not [part for part in parse("ls") if part.opaque]
    monkeypatch.setattr(shell, "_tree", lambda source, real=shell._tree: real(source + " x"))
    assert [part.why for part in parse("ls")] == ["", "can be read in two ways"]


def test_a_word_that_would_begin_a_comment_is_quoted() -> None:
    assert [part.text for part in parse("echo '#' a#b", HOME)] == ["echo '#' a#b"]
