"""This module tells whether a simple command may reach the network, by its words: it names a
program that does, or an address. What a program does beside its words (a test, a script) is not
known here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from magy_server.core.shell.wrappers import names
from magy_server.core.values import Resource
from magy_server.regex import regex

_ALWAYS = names(
    """curl wget wget2 http https xh httpie aria2c axel lynx links w3m elinks fetch
    ssh scp sftp rsync mosh telnet ftp lftp ncftp tftp rlogin rsh sshpass autossh sshfs
    nc ncat netcat socat openssl nmap ping ping6 traceroute tracepath mtr dig nslookup host whois
    drill ssh-keyscan ssh-copy-id logger grpcurl websocat xdg-open deno rustup
    mail mailx mutt sendmail msmtp swaks
    pip pip3 pipx uv uvx conda mamba poetry pdm twine easy_install
    npx bunx pnpx dlx gem bundle composer cpan cpanm luarocks cabal stack opam hex mix rebar3
    apt apt-get aptitude dnf yum zypper pacman apk brew port snap flatpak nix nix-shell nix-env
    docker podman nerdctl buildah skopeo kubectl oc helm terraform tofu pulumi ansible
    ansible-playbook vagrant aws gcloud gsutil az doctl heroku flyctl fly vercel netlify wrangler
    gh glab hub tea jira rclone s3cmd mc restic borg ngrok cloudflared tailscale
    psql mysql mariadb mongosh mongo redis-cli sqlcmd cqlsh influx
    yt-dlp youtube-dl huggingface-cli hf ollama
    firefox chromium chromium-browser google-chrome chrome brave-browser microsoft-edge epiphany
    konqueror qutebrowser lighthouse firebase railway surge fastlane certbot acme.sh supabase stripe
    minikube kind k3d eksctl argocd flux linkerd istioctl mutagen syncthing transmission-cli
    wormhole magic-wormhole croc rsnapshot duplicity kopia rustic mcli b2 azcopy doppler
    mongodump mongorestore mongoimport mongoexport pg_dump pg_restore mysqldump clickhouse-client
    flyway liquibase kcat kafkacat nats amqp-publish mosquitto_pub mosquitto_sub
    claude codex gemini aider llm sgpt
    smbclient rpcclient ldapsearch snmpget snmpwalk snmpset nfs-ls showmount rpcinfo arping hping3
    masscan zmap nikto sqlmap hydra iperf iperf3 speedtest irssi weechat"""
)
_ONLY: Mapping[str, frozenset[str]] = {
    "git": names(
        """push fetch pull clone ls-remote remote submodule archive fetch-pack send-pack http-fetch
        http-push send-email imap-send request-pull svn p4 lfs annex maintenance bundle
        remote-http remote-https remote-ftp remote-ftps remote-ext"""
    ),
    "getent": names("hosts ahosts ahostsv4 ahostsv6 networks"),
    "gpg": names(
        """--recv-keys --receive-keys --recv --send-keys --search-keys --refresh-keys --fetch-keys
        --locate-keys --locate-external-keys --keyserver"""
    ),
    "cargo": names("install publish fetch update add search login logout owner yank"),
    "go": names("get install mod work"),
    "docker-compose": names("pull push up run build create"),
    "prisma": names("db migrate"),
    "mvn": names("deploy release:perform dependency:get"),
    "gradle": names("publish"),
    "dotnet": names("add nuget restore workload tool publish"),
    "playwright": names("install install-deps codegen open"),
    "sam": names("deploy sync delete logs"),
    "cdk": names("deploy destroy bootstrap diff import"),
    "serverless": names("deploy remove invoke logs"),
    "code": names("--install-extension --update-extensions tunnel serve-web"),
    "codium": names("--install-extension --update-extensions"),
    "svn": names("checkout co update up commit ci export import ls cat log"),
    "hg": names("push pull clone incoming in outgoing out"),
}
"""Programs that reach the network with these subcommands, and stay here with others."""
_EXCEPT: Mapping[str, frozenset[str]] = {
    name: names("run run-script test t start stop build lint exec-script ls list why root bin")
    for name in ("npm", "yarn", "pnpm", "bun")
}
"""Programs that stay here with these subcommands alone."""
_MODULES = names("smtplib ftplib telnetlib imaplib poplib webbrowser ensurepip http.server")
"""Python runs these by `-m`, as it does some of the programs."""
_SURELY = names("curl wget ssh scp sftp rsync nc ncat netcat socat")
"""Words that mean little else."""
_SHOWS = names(
    """curl wget wget2 http https xh httpie aria2c lynx links w3m elinks fetch ssh telnet nc ncat
    netcat socat gh glab hub tea jira kubectl psql mysql mariadb mongosh redis-cli
    aws gcloud gsutil az s3cmd rclone scp sftp claude codex gemini llm"""
)
"""Programs that print what others have written: pages, issues, mail."""
_BRINGS = names("clone submodule")
"""With these git puts files into the workspace that others have written."""
_FETCHES = names("fetch pull remote ls-remote archive")
"""With these it does so from an address; what a remote of the repository has is the workspace's."""
_PROPOSED = regex(
    r"(?:^|[/:+]|\.\.)(?:refs/)?(?:pull|merge-requests|changes)/\d+(?:/|:|\.|$)"
    r"|(?:^|\.\.)FETCH_HEAD\b"
)
"""What anybody may propose to a repository, and what was fetched and is not merged."""
_SHOWS_WITH: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(
        ("npm", "yarn", "pnpm", "bun"),
        names("view v info show search find outdated audit fund docs"),
    ),
    **dict.fromkeys(("pip", "pip3"), names("show search index")),
    **dict.fromkeys(("cargo", "gem", "composer", "brew"), names("search info show")),
    **dict.fromkeys(
        ("docker", "podman", "nerdctl", "docker-compose"), names("run exec logs attach search")
    ),
    "go": names("doc"),
}
"""Programs that print what others have written with these subcommands."""
_NONE: frozenset[str] = frozenset()
_ADDRESS = regex(r"(?i)[a-z][a-z0-9+.-]*://|^[\w.-]+@[\w.-]+:|/dev/(?:tcp|udp)/|^//[\w.-]+/")
_WORD = regex(r"[\w.+-]+")
_LOOKS = names(
    """cat head tail ls grep egrep fgrep rg wc stat file du df find tree diff cmp sort uniq cut tr
    echo printf md5sum sha1sum sha256sum sha512sum readlink realpath basename dirname test [ pwd cd
    nl which less jq sed awk od xxd hexdump strings"""
)
"""Programs that are taken only to look at the files that they name."""
_SEARCHES = names("grep egrep fgrep zgrep rg ag ack")
"""Programs that print lines of files which they find by themselves, as words of a command."""


def reaches(command: Resource) -> bool:
    """Returns whether the words of a command say that it may reach the network."""
    if command.opaque or not command.argv:
        return _in_text(command.subject)
    return any(_in_words(words) for words in (command.argv, command.written) if words)


def shows(command: Resource) -> bool:
    """Returns whether a command prints, or brings, what others may have written."""
    if command.opaque or not command.argv:
        return any(word in _SHOWS for word in _WORD.findall(command.subject))
    name, words = _name(command.argv[0]), command.argv[1:]
    if _SHOWS_WITH.get(name, _NONE).intersection(words):
        return True
    if name == "git" and _is_brought(words):
        return True
    return any(_name(word) in _SHOWS for word in command.argv[:1]) or any(
        _name(word) in _SURELY for word in command.argv[1:] if _name(command.argv[0]) not in _LOOKS
    )


def _is_brought(words: Sequence[str]) -> bool:
    """Returns whether git brings, or shows, what it was not merged with."""
    if _BRINGS.intersection(words):
        return True
    if {"commit", "tag", "notes"}.intersection(words[:1]):
        return False  # their words are messages
    fetches = _FETCHES.intersection(words)
    return any(_PROPOSED.search(word) or (fetches and _ADDRESS.search(word)) for word in words)


def searches(command: Resource) -> bool:
    """Returns whether a command may print lines of files that it does not name."""
    if command.kind != "exec":
        return False
    words = command.argv or _WORD.findall(command.subject)
    return any(_name(word) in _SEARCHES for word in words)


def only_looks(command: Resource) -> bool:
    """Returns whether a command is known to write to no file that it names."""
    return not command.opaque and bool(command.argv) and _name(command.argv[0]) in _LOOKS


def _in_words(words: Sequence[str]) -> bool:
    if any(map(_ADDRESS.search, words)):
        return True
    first, rest = _name(words[0]), words[1:]
    if first in _LOOKS:
        return False
    if first in _ALWAYS or _ONLY.get(first, _NONE).intersection(rest):
        return True
    if (first, *rest[:1]) == ("go", "run") and any("@" in word for word in rest):
        return True
    if first in _EXCEPT:
        return next((word for word in rest if not word.startswith("-")), "") not in _EXCEPT[first]
    if any(module in _ALWAYS or module in _MODULES for module in _modules(rest)):
        return True
    # What runs others may stand before it, and no list of those is whole.
    return first not in _ONLY and any(_name(word) in _SURELY for word in rest)


def _modules(words: Sequence[str]) -> Iterator[str]:
    """What Python would run by `-m NAME` or `-mNAME`."""
    for word, after in zip(words, [*words[1:], ""], strict=False):
        if word.startswith("-m") and not word.startswith("--"):
            yield word[2:] or after


def _in_text(text: str) -> bool:
    """Of what cannot be read word by word."""
    words = _WORD.findall(text)
    if _ADDRESS.search(text) or any(word in _SURELY for word in words):
        return True
    there = frozenset(words)
    return any(name in there and there.intersection(some) for name, some in _ONLY.items())


def _name(word: str) -> str:
    return word.rpartition("/")[2].lower()
