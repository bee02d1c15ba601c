"""This module chooses which environment variables tools' processes get. Pure, quick to import.

It lists what they get, not what they do not get: nobody can list all names that hold a key. The
list has what the shell, the locale, the terminal and the usual toolchains read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

from magy_server.regex import regex

GITHUB_TOKENS = ("GH_TOKEN", "GITHUB_TOKEN")
"""Where a token for GitHub is looked for, before the program `gh` is asked."""
_WORDS = (
    "apikey|key|keys|token|tokens|secret|secrets|password|passwd|passphrase|passwort|pass|pwd|pw|"
    "credential|credentials|creds|cred|auth|authorization|bearer|jwt|pat|otp|dsn|cookie|cookies|"
    "pin|webhook"
)
_SECRET = regex(
    rf"(?:^|.*[\W_])(?:{_WORDS})\d*(?:[\W_].*)?$"
    r"|.*(?:api_?key|access_?key|private_?key|secret|token|passw|passphrase|credential)"
    r"|.*key\d*$"
    r"|(?:.*[\W_])?(?:database|db|redis|mongo(?:db)?|postgres(?:ql)?|mysql|amqp|rabbitmq|broker|"
    r"celery|smtp|mail|sentry|elastic(?:search)?)_?(?:.*_)?ur[il]$"
    r"|bundle_(?!(?:build|local|mirror)__).*__",
    re.IGNORECASE,
)
_HARMLESS = frozenset({
    "GIT_ASKPASS", "OLDPWD", "PWD", "SSH_ASKPASS", "SSH_ASKPASS_REQUIRE", "SSH_AUTH_SOCK",
    "XAUTHORITY",
})  # fmt: skip
_PASSWORD = regex(
    r"\w://[^/\s@:]*:[^/\s@]+@|https?://[^/\s@]{16,}@"
    r"|(?<![A-Za-z0-9])(?:gh[opsur]_|github_pat_|glpat-|pypi-AgEI|xox[abprs]-|sk-(?:ant|proj|or)-)"
    r"[\w-]{16}"
    r"|(?<![A-Za-z0-9])(?:npm_[A-Za-z0-9]{30}|A(?:KIA|SIA)[A-Z0-9]{16}(?![A-Za-z0-9]))",
    re.ASCII,
)
"""In an address: of a proxy, say, or of a package index; or a token in the place of a name there,
and wherever it is known by how it begins (`NIX_CONFIG`)."""

_PASSED = frozenset({
    "HOME", "USER", "LOGNAME", "SHELL", "PATH", "HOSTNAME", "LANG", "LANGUAGE", "TZ", "TZDIR",
    "TMPDIR", "TMP", "TEMP", "UMASK", "CI", "EDITOR", "VISUAL", "PAGER", "LESS", "BROWSER",
    "MANPATH", "INFOPATH", "LOCALE_ARCHIVE", "LS_COLORS", "NO_COLOR", "FORCE_COLOR", "CLICOLOR",
    "CLICOLOR_FORCE", "COLORTERM", "TERM_PROGRAM", "INSIDE_EMACS", "SOURCE_DATE_EPOCH", "DISPLAY",
    "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "DESKTOP_SESSION",
    "WSL_DISTRO_NAME", "WSL_INTEROP", "WSLENV", "http_proxy", "https_proxy", "ftp_proxy",
    "all_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY",
    "RES_OPTIONS", "HOSTALIASES", "KRB5CCNAME", "KRB5_CONFIG", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "OPENSSL_CONF", "SSH_AUTH_SOCK", "SSH_AGENT_PID",
    "SSH_ASKPASS", "SSH_ASKPASS_REQUIRE", "GPG_TTY", "GPG_AGENT_INFO", "GNUPGHOME", "GIT_ASKPASS",
    "GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR",
    "GIT_EXEC_PATH", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM",
    "GIT_TEMPLATE_DIR", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_DIR",
    "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_DEFAULT_HASH", "CC", "CXX", "CPP", "LD", "AR", "AS",
    "NM", "RANLIB", "STRIP", "OBJCOPY", "FC", "F77", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS",
    "FFLAGS", "LDLIBS", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH",
    "LD_LIBRARY_PATH", "LD_RUN_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "SDKROOT",
    "MACOSX_DEPLOYMENT_TARGET", "DEVELOPER_DIR", "MAKE", "MAKEFLAGS", "MFLAGS", "MAKELEVEL",
    "NINJA_STATUS", "VCPKG_ROOT", "CONAN_HOME", "VIRTUAL_ENV", "VIRTUAL_ENV_PROMPT", "WORKON_HOME",
    "PROJECT_HOME", "TOX_WORK_DIR", "MYPYPATH", "RUFF_CACHE_DIR", "NODE_PATH", "NODE_ENV",
    "NODE_OPTIONS", "NODE_EXTRA_CA_CERTS", "NODE_HOME", "NVM_DIR", "NVM_BIN", "NVM_INC",
    "PNPM_HOME", "COREPACK_HOME", "BUN_INSTALL", "DENO_DIR", "DENO_INSTALL", "DENO_INSTALL_ROOT",
    "RUSTFLAGS", "RUSTDOCFLAGS", "RUST_BACKTRACE", "RUST_LOG", "RUST_SRC_PATH", "RUSTC", "RUSTDOC",
    "RUSTC_WRAPPER", "GOPATH", "GOROOT", "GOBIN", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY",
    "GOPRIVATE", "GONOPROXY", "GONOSUMDB", "GOSUMDB", "GOINSECURE", "GOVCS", "GOTOOLCHAIN",
    "GOWORK", "GOENV", "GOTMPDIR", "GOOS", "GOARCH", "GOARM", "GOAMD64", "GOEXPERIMENT", "GODEBUG",
    "GOMAXPROCS", "GO111MODULE", "GOLANGCI_LINT_CACHE", "JAVA_HOME", "JDK_HOME", "JRE_HOME",
    "JAVA_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH",
    "GRADLE_HOME", "GRADLE_USER_HOME", "GRADLE_OPTS", "MAVEN_HOME", "MAVEN_OPTS", "MAVEN_ARGS",
    "MAVEN_CONFIG", "M2_HOME", "M2", "MAVEN_USER_HOME", "MAVEN_PROJECTBASEDIR", "ANT_HOME",
    "ANT_OPTS", "SBT_OPTS", "KOTLIN_HOME", "SCALA_HOME", "ANDROID_HOME", "ANDROID_SDK_ROOT",
    "ANDROID_NDK_HOME", "ANDROID_NDK_ROOT", "ANDROID_USER_HOME", "FLUTTER_ROOT", "PUB_CACHE",
    "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS",
    "DOCKER_TLS_VERIFY", "DOCKER_BUILDKIT", "DOCKER_DEFAULT_PLATFORM", "DOCKER_API_VERSION",
    "DOCKER_CLI_HINTS", "CONTAINER_HOST", "CONTAINERS_CONF", "BUILDX_BUILDER", "BUILDX_CONFIG",
    "KUBECONFIG", "DIRENV_DIR", "DIRENV_FILE", "DIRENV_CONFIG", "DIRENV_BASH", "DIRENV_LOG_FORMAT",
    "DIRENV_WARN_TIMEOUT", "GEM_HOME", "GEM_PATH", "RUBYLIB", "RUBYOPT", "RBENV_ROOT",
    "RBENV_VERSION", "RUBY_VERSION", "COMPOSER_HOME", "COMPOSER_CACHE_DIR", "PERL5LIB",
    "PERL_LOCAL_LIB_ROOT", "PERL_MB_OPT", "PERL_MM_OPT", "MIX_ENV", "MIX_HOME", "HEX_HOME",
    "R_HOME", "R_LIBS", "R_LIBS_USER", "JULIA_DEPOT_PATH", "JULIA_PROJECT",
    "GHCUP_INSTALL_BASE_PREFIX", "STACK_ROOT", "CABAL_DIR", "OPAMROOT", "OPAMSWITCH",
    "OPAM_SWITCH_PREFIX", "OCAMLPATH", "CAML_LD_LIBRARY_PATH", "DOTNET_ROOT", "DOTNET_CLI_HOME",
    "DOTNET_CLI_TELEMETRY_OPTOUT", "NUGET_PACKAGES", "EMACS", "EMACSLOADPATH", "EMACSDATA",
    "IN_NIX_SHELL",
})  # fmt: skip
_FAMILIES = (
    "LC_", "XDG_", "MAGY_", "PYTHON", "PIP_", "PIPX_", "PIPENV_", "PYENV_", "CONDA_", "MAMBA_",
    "UV_", "POETRY_", "PDM_", "HATCH_", "NPM_CONFIG_", "YARN_", "VOLTA_", "FNM_", "CARGO_",
    "RUSTUP_", "SCCACHE_", "CCACHE_", "CGO_", "CMAKE_", "PKG_CONFIG", "MESON_", "SDKMAN_",
    "COMPOSE_", "BUILDKIT_", "ASDF_", "MISE_", "NIX_", "HOMEBREW_", "BUNDLE_", "COVERAGE_",
    "GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_SSL_", "GIT_LFS_",
)  # fmt: skip
"""How names begin, in capitals: npm reads `npm_config_cache`. Of these only what no name gives
away."""
_NEVER = frozenset({
    "BASH_ENV", "ENV", "CDPATH", "SHELLOPTS", "BASHOPTS", "GLOBIGNORE", "OLDPWD", "POSIXLY_CORRECT",
})  # fmt: skip
"""What would make a command line mean something else than was judged."""


def names_key(name: str) -> bool:
    """Returns whether a variable of this name holds a key, a password or the like, as far as a name
    says that: `OPENAI_KEY`, `CI_PAT`, `DATABASE_URL`, `NPM_AUTH`."""
    return name not in _HARMLESS and _SECRET.match(name) is not None


def passes(name: str, more: Iterable[str] = ()) -> bool:
    """Returns whether the processes of tools get the variable. `more`: what a person added, by name
    or as a pattern with `*`. A name is that person's word; a pattern takes no keys along."""
    if name in _NEVER or name.startswith("BASH_FUNC_"):
        return False
    if name in _PASSED or name in more:
        return True
    patterns = [one for one in more if "*" in one]
    known = name.upper().startswith(_FAMILIES)
    return (known or any(fnmatchcase(name, one) for one in patterns)) and not names_key(name)


def holds_password(value: str) -> bool:
    """Returns whether a value gives away a password, whatever it is called."""
    return _PASSWORD.search(value) is not None
