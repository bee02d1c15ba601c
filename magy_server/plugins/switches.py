"""A person switches plugins on, each as it was installed then; `plugins.json`, beside their
`magy.toml`, keeps which. Nothing that a project says can switch one on.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime

from magy_server.core.errors import InvalidConfig, NotFound
from magy_server.dataclass import dataclass
from magy_server.plugins.installed import Installed, files_hash, installed
from magy_server.regular_files import beginning

FILE = "plugins.json"
_MOST = 1 << 20
"""Bytes of the file."""


@dataclass(frozen=True, slots=True)
class Switch:
    """What was switched on: the package with its version, and the hash of its files, "" where it is
    installed for development. `at`: when, in UTC (ISO 8601)."""

    package: str
    version: str
    hash: str
    at: str


@dataclass(frozen=True, slots=True)
class Chosen:
    """The plugins that are switched on and as they were then, by name; what is wrong with others,
    by name; and what is wrong with none in particular."""

    plugins: Mapping[str, Installed]
    unusable: Mapping[str, str]
    problems: tuple[str, ...] = ()

    @property
    def skills(self) -> dict[str, str]:
        """Returns by plugin the folder of skills that it brings."""
        return {name: one.skills for name, one in self.plugins.items() if one.skills}


def path_in(config: str) -> str:
    """`config` is the directory with the person's `magy.toml`."""
    return os.path.join(config, FILE)


def read(config: str) -> dict[str, Switch]:
    """Raises InvalidConfig."""
    path = path_in(config)
    try:
        data = beginning(path, _MOST)
        return {name: Switch(**one) for name, one in json.loads(data or b"").items()}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InvalidConfig(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, TypeError, AttributeError):
        raise InvalidConfig(
            f"{path} is not as Magy wrote it, so no plugin is used. Remove it, and switch the "
            "plugins on again with `magy plugins enable NAME`."
        ) from None


def chosen(config: str) -> Chosen:
    """What a person has switched on, compared with what is installed now. Imports none of it."""
    if not os.path.lexists(path_in(config)):
        return Chosen({}, {})
    try:
        switches = read(config)
    except InvalidConfig as error:
        return Chosen({}, {}, (error.message,))
    if not switches:
        return Chosen({}, {})
    there, problems = installed()
    plugins, unusable = dict[str, Installed](), dict[str, str]()
    for name, switch in switches.items():
        try:
            plugins[name] = _as_it_was(name, switch, there)
        except InvalidConfig as error:
            unusable[name] = error.message
    return Chosen(plugins, unusable, problems)


def _as_it_was(name: str, switch: Switch, there: Mapping[str, Installed]) -> Installed:
    one = there.get(name)
    advice = f"`magy plugins disable {name}` switches it off"
    if one is None or one.package != switch.package:
        raise InvalidConfig(
            f"The plugin {name} ({switch.package} {switch.version}) is switched on and not "
            f"installed any more. Install it again; {advice}."
        )
    if (switch.hash == "") != one.editable or (switch.hash and files_hash(one) != switch.hash):
        was = f" (it was {switch.version} then)" if switch.version != one.version else ""
        raise InvalidConfig(
            f"{one.title} has changed since you switched it on{was}, and is not used. Look at what "
            f"is new; `magy plugins enable {name}` takes it as it is now, {advice}."
        )
    return one


def enable(name: str, config: str) -> Installed:
    """Switches a plugin on as it is now. Raises NotFound, InvalidConfig, OSError."""
    one = named(name)
    pin = "" if one.editable else files_hash(one)
    now = datetime.now(UTC).isoformat("T", "seconds")
    _write(config, {**read(config), name: Switch(one.package, one.version, pin, now)})
    return one


def named(name: str) -> Installed:
    """Raises NotFound."""
    there, _ = installed()
    if name not in there:
        names = ", ".join(there) or "none"
        raise NotFound(
            f"No installed package has a plugin {name!r}. Plugins that are installed: {names}. "
            "Install the package into the environment that Magy runs in: docs/howto/plugins.md "
            "says how."
        )
    return there[name]


def disable(name: str, config: str) -> Switch:
    """Switches a plugin off. Returns what was switched on. Raises NotFound, InvalidConfig,
    OSError."""
    switches = read(config)
    if name not in switches:
        names = ", ".join(switches) or "none"
        raise NotFound(f"The plugin {name!r} is not switched on; these are: {names}.")
    _write(config, {one: switch for one, switch in switches.items() if one != name})
    return switches[name]


def _write(config: str, switches: Mapping[str, Switch]) -> None:
    """Replaces the file, whole or not at all."""
    os.makedirs(config, exist_ok=True)
    whole = {name: asdict(switch) for name, switch in sorted(switches.items())}
    with tempfile.NamedTemporaryFile("w", dir=config, delete=False) as file:
        json.dump(whole, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    os.replace(file.name, path_in(config))
