"""These lists name programs that run other programs, so that their own words do not say what
happens.

The lists cannot be complete. Where a person forbids a command, `permit` looks for it behind every
program that is not known to run nothing, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from magy_server.regex import regex


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


CHANGES_SHELL = names(
    """. alias bind builtin complete compopt coproc declare dirs disown enable eval exec export fc
    getopts hash history let local mapfile popd pushd read readarray readonly set shift shopt source
    suspend trap typeset ulimit umask unalias unset"""
)
SHELLS = names(
    """ash bash busybox csh dash elvish es fish ksh mksh nu oksh osh powershell pwsh rbash rc sash
    scsh sh tcsh toybox cmd wsl xonsh yash zsh git-shell"""
)
RUNNERS = names(
    # coreutils, util-linux, findutils, procps, moreutils, binutils
    """chroot env runcon stdbuf watch xargs gxargs updatedb
    agetty choom chrt flock getty ionice login mkfs more newgrp nsenter pg prlimit runuser script
    scriptlive setarch setpriv setsid sg su sulogin switch_root taskset uclampset unshare coresched
    athlon i386 i486 i586 i686 linux32 linux64 x86_64 uname26 ppc ppc32 ppc64 ppc64le sparc sparc32
    sparc64 mips mips64 s390 s390x alpha armv7l armv8l aarch64 riscv64 m68k
    run-parts prove cpan red chronic ifne mispipe parallel pee vidir vipe zrun gprofng
    gp-collect-app gp-archive parset sem env_parallel pexec xjobs

    sudo sudoedit doas pkexec run0 gosu su-exec sux setuidgid chpst envdir envuidgid softlimit
    pgrphack setlock tini dumb-init catatonit daemon daemonize start-stop-daemon supervisord
    supervise runsv runsvdir s6-svscan s6-setuidgid execlineb systemd-run systemd-inhibit
    systemd-cat systemd-nspawn machinectl busctl dbus-run-session dbus-launch caffeinate
    sandbox-exec launchctl open xdg-open gtk-launch cgexec cgrun numactl numad

    bwrap capsh fakechroot fakeroot fakeroot-ng fakeroot-sysv fakeroot-tcp firejail flatpak
    minijail0 nsjail proot schroot dchroot snap toolbox distrobox distrobox-enter enroot apptainer
    singularity wine wine64 box64 box86 catchsegv eatmydata datefudge faketime libfaketime prelink
    proxychains proxychains4 torify torsocks tsocks graftcp

    apitrace bpftrace catatonit dtrace dtruss dlv gdb gdbserver cgdb heaptrack hyperfine ktrace lldb
    ltrace multitime perf rr strace sysdig truss uftrace valgrind valkyrie memusage sotruss sprof
    ccache distcc icecc sccache bear compiledb intercept-build scan-build libtool

    at batch crontab dtach expect autoexpect unbuffer rlwrap rlfe screen tmux zellij abduco
    xvfb-run xinit startx xterm rxvt urxvt gnome-terminal konsole kitty alacritty foot wezterm
    entr watchexec watchman fswatch nodemon chokidar inotify-hookable reflex air when-changed

    nc ncat netcat socat rsh rlogin rsync scp sftp ssh ssh-agent ssh-keygen ssh-add sshpass autossh
    mosh telnet ftp lftp ncftp tftp pssh pdsh clush ansible ansible-console mpirun mpiexec orterun
    srun sbatch salloc qsub bsub aria2c yt-dlp youtube-dl tcpdump mail mailx mutt nail

    awk gawk mawk nawk original-awk bc dc ed ex emacs emacsclient less lesspipe man info most nano
    pico joe jed micro kak hx helix nvim view vi vim vimdiff vimtutor gvim rview rvim vipw visudo
    zless zmore xzless xzmore bzless bzmore zstdless fzf sk m4 gnuplot octave maxima sqlite3 psql
    mysql mariadb mongo mongosh redis-cli sqlplus tar gtar bsdtar star cpio gcpio

    npx pnpx bunx uvx pipx corepack xcrun nix-shell nix-build guix devbox devenv
    cross-env cross-env-shell env-cmd dotenv dotenvx concurrently npm-run-all run-p run-s run-pty
    foreman honcho hivemind overmind goreman forego heroku doppler aws-vault chamber envchain
    teller direnv fnm nvm volta asdf mise rtx pyenv rbenv nodenv plenv goenv jenv tfenv"""
)
INTERPRETERS = names(
    """bun clojure deno elixir erl gjs groovy guile iex ipython irb java jruby jshell julia lua
    luajit node nodejs ocaml osascript perl php pypy python racket raku rscript ruby runghc sbcl
    scala swift tclsh texlua ts-node tsx wish"""
)
_LOADERS = regex(r"ld-(?:linux|musl|elf).*|ld\.so.*|ld64\.so.*|qemu-.*|git-(?!lfs\Z).*")
"""The dynamic loader runs the program it is given; `git-rebase` is `git rebase`."""

_SUBCOMMANDS: Mapping[str, str] = {
    program: pattern
    for programs, pattern in {
        "npm": r"x|exe?c?|expl?o?r?e?|ini|init|inn.*|cre.*|edit?|set|con.*",
        "pnpm": r"x|exec|dlx|create|init|env|node",
        "yarn yarnpkg": r"x|exec|dlx|create|init|node|plugin",
        "dotnet": r"exec|fsi|script|tool|tool-.*|.*\.csx",
        "conda mamba micromamba": r"run|activate|shell",
        "pixi": r"run|exec|shell|shell-hook|x",
        "nix": r"run|shell|develop|eval|repl|build|bundle|fmt",
        "rustup": r"run|which|doc",
        "opam stack cabal ghcup": r"exec|run|eval|runghc|runhaskell|repl|ghci|script|v2-.*|new-.*",
        "mix": r"run|eval|do|cmd|rpc",
        "rails": r"r|runner|c|console|dbconsole|db",
        "composer gem": r"exec",
        "ip": r"netns|vrf|-b.*|-force",
        "op vault": r"run|exec|plugin",
        "vagrant lxc incus multipass": r"ssh|exec|shell|provision",
        "gh": r"alias|extension|ext|extensions|codespace|cs",
    }.items()
    for program in programs.split()
}

_OPTIONS: Mapping[str, str] = {
    program: pattern
    for programs, pattern in {
        "find gfind": r"-(exec|execdir|ok|okdir|delete|fls|fprint|fprint0|fprintf)",
        "fd fdfind": r"-[A-Za-z]*[xX].*|--exec.*",
        "rg": r"--(pre|hostname-bin)(=.*)?",
        "ag ack bat batcat": r"--pager.*",
        "sort gsort": r"--co.*",
        "test [": r"-[vR]",
        "printf": r"-v.*",
        "jobs": r"-.*x.*",
        "arch": r"-.*",
        "wait": r"-.*",
        "compgen": r"-.*",
        "command": r"-p.*",
        "zip": r"-.*T.*|--[tu].*",
        "split gsplit csplit": r"--fi.*",
        "install ginstall": r"--strip-p.*",
        "sdiff diff3 gdiff3": r"--di.*|-o.*|--o.*",
        "cargo": r"--conf.*|-C(?:linker|ar)=.*|(?:linker|ar)=.*|--with.*",
        "hg": r"--config.*|--debugger|-R.*|--repository.*",
        "svn": r"--(diff|diff3|editor|merge)-cmd.*|--config-.*",
        "nm ar ranlib ld gold gcc-nm gcc-ar gcc-ranlib": r"--?plugin.*|@.*",
        "gcc g++ cc c++ clang clang++ cpp gfortran":
            r"-wrapper.*|-fplugin.*|--?specs.*|-B.*|-load.*|-fuse-ld.*|-Wl,.*plugin.*|@.*",
        "wget": r"--use-askpass.*|-e.*|--exe.*|--conf.*",
        "curl": r"-.*K.*|--conf.*",
        "rpm rpmbuild rpmspec": r"-.*E.*|--eval.*|--pipe.*|--define.*|-D.*",
        "latex pdflatex xelatex lualatex tex pdftex latexmk": r"--?shell.*|--?enable-w.*|-e.*|-r.*",
        "make gmake": r"--ev.*|-E.*|(?:SHELL|MAKE|MAKEFLAGS)[:+?]*=.*|\.SHELL.*"
            r"|.*!=.*|[^=]*=.*[$`!|;&].*|(?:-[a-zA-Z]*f|--f.*=|--mak.*=)?(?:-|/dev/.*|/proc/.*)",
        "npm pnpm yarn": r"--(?:script-)?sh.*|--scr.*|--node-[og].*|--(?:vie|edi|gi).*",
        "pip": r"edit|--edi.*|--py.*",
        "go": r"--?(?:exec|toolexec|vettool|overlay|modfile|compiler)(?:=.*)?"
            r"|--?(?:ld|gc|asm|gccgo)flags=.*ext(?:ld|ar)\b.*|-?-?ext(?:ld|ar)\b.*|-w",
        "just": r"-c|--(?:comm|sh|cho).*|-[a-zA-Z]*c",
        "tox nox": r"e|exec|devenv|d|-x.*|--overr.*",
        "pytest py.test": r"--pdbcls.*",
        "mvn mvnw": r"exec:.*|.*:exec-maven-plugin:.*|-Dexec\..*|-D(?:jvm|java\.home).*",
        "gradle gradlew": r"-D(?:org\.gradle\.java\.home|org\.gradle\.jvmargs).*",
        "rustc": r"(?:-C|--codegen=)?(?:linker|ar)=.*|-Z.*|@.*",
        "cmake": r"-E|-P",
        "ctest": r"-S.*|--build-and-test|--test-command.*",
        "apt apt-get aptitude apt-cache": r"-o.*|--option.*|-c.*|--config-file.*",
        "dpkg": r"--(?:pre|post)-invoke.*",
        "pylint": r"--init-hook.*|--load-plugins.*",
        "pandoc": r"-[FL].*|--(?:lua-)?filter.*|--pdf-engine.*",
        "restic rclone": r"--password-c.*",
    }.items()
    for program in programs.split()
    for pattern in [rf"(?:{pattern})\Z"]
}  # fmt: skip
"""Options by which a program runs another one, deletes, or writes where its words do not show it.
Long options may be abbreviated."""


def runs_others(name: str, exact: str, rest: Sequence[str]) -> str:
    """Returns why a program may run others than itself; "" when it may not. `name` is what it is
    known by, `exact` with its version, `rest` are its arguments."""
    if name in SHELLS or exact in SHELLS:
        return f"runs a shell (`{name}`)"
    if name in RUNNERS or exact in RUNNERS or _LOADERS.fullmatch(exact):
        return f"can run other commands (`{name}`)"
    subcommands = _SUBCOMMANDS.get(name)
    if subcommands is not None:
        # Behind options it cannot be told which word is the subcommand and which a value.
        first = rest[:1] if not rest[:1] or not rest[0].startswith("-") else rest
        for word in first:
            if re.fullmatch(subcommands, word):
                return f"can run other commands (`{name} {word[:40]}`)"
    options = _OPTIONS.get(exact) or _OPTIONS.get(name)
    for word in rest if options else ():
        if options is not None and re.match(options, word):
            return f"can run other commands or write unseen (`{name} {word[:40]}`)"
    return ""


def is_watched(name: str, exact: str) -> bool:
    """Returns whether some words make this program run others, so that each of its words counts."""
    return any(
        known in (_SUBCOMMANDS.keys() | _OPTIONS.keys() | INTERPRETERS) for known in (name, exact)
    )
