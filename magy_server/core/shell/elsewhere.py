"""This module tells which commands write outside the workspace though they name no file there, by
their words: settings of the person's programs, keys, what is installed."""

from __future__ import annotations

from collections.abc import Mapping

from magy_server.core.shell.nested_commands import program
from magy_server.core.shell.wrappers import names
from magy_server.core.values import Resource

_ALWAYS = names(
    """chsh chfn passwd useradd usermod groupadd update-alternatives update-rc.d chkconfig loginctl
    hostnamectl timedatectl localectl"""
)
_ALL_OF: Mapping[str, tuple[frozenset[str], ...]] = {
    "git": (names("config maintenance"), names("--global --system register start")),
    "npm": (names("link ln"),),
    "yarn": (names("config link"), names("set link -H --home")),
    "pnpm": (names("config link setup"),),
    "pip": (names("config"), names("set edit")),
    "systemctl": (names("enable disable link mask edit set-property set-environment"),),
    "gsettings": (names("set reset"),),
    "dconf": (names("write load reset"),),
    "defaults": (names("write delete import"),),
    "gpg": (names("--import --gen-key --generate-key --quick-gen-key --delete-keys --edit-key"),),
    "make": (names("install uninstall"),),
    "gmake": (names("install uninstall"),),
    "ninja": (names("install uninstall"),),
    "meson": (names("install"),),
    "cmake": (names("--install install"),),
    "python": (names("setup.py"), names("install develop")),
    "rustup": (names("default override"),),
    "pyenv": (names("global"),),
    "nvm": (names("alias"),),
    "asdf": (names("global"),),
    "mise": (names("-g --global"),),
    "xdg-mime": (names("default install"),),
    "xdg-settings": (names("set"),),
    "code": (names("--install-extension --uninstall-extension"),),
}
"""Programs that do so where they have a word of each of these."""


def writes_elsewhere(command: Resource) -> bool:
    """Returns whether the words of a command say that it changes what is outside the workspace."""
    if command.opaque or not command.argv:
        return False
    name, words = program(command.argv[0]), command.argv[1:]
    needed = _ALL_OF.get(name, ())
    return name in _ALWAYS or bool(needed and all(some.intersection(words) for some in needed))
