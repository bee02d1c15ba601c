"""An administrator's file stands above those of the people who use a machine: nobody below can
widen what it says.

Its rules and guardrails are sources like others, so what they deny is denied. Its `limits` and
`spawn` are caps, `bypass = false` holds for everybody, and what `locked` names keeps the value that
the file gives it, or else its default. All other values are only defaults.
"""

from __future__ import annotations

import difflib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from magy_server.core.errors import InvalidConfig
from magy_server.core.settings import Settings

FILE = Path("/etc/magy/magy.toml")
"""No variable and no option names another: who starts Magy could widen the file by that."""
_OPEN = ("permission", "guardrail", "examples", "locked")
"""What cannot be locked: others' rules and guardrails can only narrow."""


def vouched(path: Path) -> None:
    """Raises InvalidConfig if somebody but root and the person who runs Magy could have written
    the file."""
    real = Path(os.path.realpath(path))
    for one in (real, real.parent):
        try:
            about = os.stat(one)
        except FileNotFoundError:
            return
        except OSError as error:
            raise InvalidConfig(f"{one} cannot be read: {error.strerror}.") from None
        if about.st_uid not in (0, os.getuid()) or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise InvalidConfig(
                f"{one} is the administrator's, but others can write it; nothing runs until that "
                f"is mended: `chown root {one}; chmod go-w {one}`."
            )


def check_locked(locked: Sequence[str], where: str) -> None:
    """Raises InvalidConfig for a key that is no setting, or none that can be locked."""
    known = [key for key in _keys(Settings) if key.partition(".")[0] not in _OPEN]
    for key in locked:
        if key.partition(".")[0] in _OPEN:
            raise InvalidConfig(
                f"{where}: locked: {key!r} cannot be locked: what others add to it can only narrow."
            )
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise InvalidConfig(f"{where}: locked: there is no setting {key!r}.{hint}")


def check_locks_nothing(values: Mapping[str, Any], where: str, above: Path | str) -> None:
    """Raises InvalidConfig for a file below that of the administrator (`above`) which locks."""
    if "locked" in values:
        raise InvalidConfig(f"{where}: only the administrator's file, {above}, can lock settings.")


def _keys(model: type[BaseModel]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield name
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from (f"{name}.{key}" for key in _keys(inner))


def without_locked(
    values: Mapping[str, Any], locked: Sequence[str], prefix: str = ""
) -> tuple[dict[str, Any], list[str]]:
    """Returns the values of a layer below without what is locked, and the dotted keys of that."""
    kept: dict[str, Any] = {}
    overruled: list[str] = []
    for name, value in values.items():
        key = f"{prefix}{name}"
        if key in locked:
            overruled.append(key)
        elif isinstance(value, Mapping) and any(one.startswith(f"{key}.") for one in locked):
            kept[name], inner = without_locked(value, locked, f"{key}.")
            overruled += inner
        else:
            kept[name] = value
    return kept, overruled
