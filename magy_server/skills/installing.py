"""Skills of others are copied into the person's folder, and pinned there by a hash.

They come from a folder, or from a git repository: `git` clones it, and nothing of it is run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from magy_server.core.errors import InvalidConfig, InvalidRequest, NotFound
from magy_server.core.skills.skill import Skill
from magy_server.dataclass import dataclass
from magy_server.regex import regex
from magy_server.skills import finding, pins

CLONING = 120.0
"""Seconds that git may take."""
_REMOTE = regex(r"(https|ssh|git|file)://\S+|[\w.-]+@[\w.-]+:\S+")
_PASSWORD = regex(r"^(https?://)[^/@\s]+@")
_SHOWN = 400
"""Characters of what git says of an error."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """What may be installed: it lies in `folder`, `hash` is that of all its files, `count` how many
    they are. `origin` and `part` are those of `pins.Pin`."""

    skill: Skill
    folder: str
    hash: str
    count: int
    origin: str
    part: str


@contextmanager
def candidate(origin: str, part: str = "") -> Iterator[Candidate]:
    """The skill that a folder or a git repository has, `part` of it if that is said: it is one
    itself, or holds one. It is there as long as the context lasts. Raises InvalidConfig, and
    InvalidRequest when there are several."""
    with tempfile.TemporaryDirectory(prefix="magy-skills-") as temporary:
        if _REMOTE.fullmatch(origin):
            shown = _PASSWORD.sub(r"\1", origin)
            top = os.path.join(temporary, _name_of(shown))
            _clone(origin, shown, top)
            origin = shown
        else:
            top = origin = os.path.abspath(os.path.expanduser(origin))
        place = os.path.realpath(os.path.join(top, part))
        if not (place + os.sep).startswith(os.path.realpath(top) + os.sep):
            raise InvalidConfig(f"{part} leads out of {origin}.")
        if not os.path.isdir(place):
            raise InvalidConfig(f"{os.path.join(origin, part)} is no folder.")
        top = os.path.realpath(top)
        found = _skills_in(place, top)
        if not found:
            raise InvalidConfig(
                f"{os.path.join(origin, part)} has no skill: a skill is a folder with a "
                f"{finding.FILE}. Name the folder that holds it with --part."
            )
        if len(found) > 1:
            parts = ", ".join(os.path.relpath(one, top) for one in found)
            raise InvalidRequest(
                f"There are {len(found)} skills: {parts}. Name the one you mean with --part."
            )
        yield _candidate(found[0], origin, top)


def install(candidate: Candidate, config: str, *, replace: bool = False) -> str:
    """Copies the skill into the person's folder, in place of one that was installed under this
    name, and pins it. `replace`: also in place of one that the person put there. Returns where it
    lies now. Raises OSError, InvalidConfig, InvalidRequest."""
    own = finding.own_folder(config)
    os.makedirs(own, exist_ok=True)
    target = os.path.join(own, candidate.skill.name)
    now = datetime.now(UTC).isoformat("T", "seconds")
    pin = pins.Pin(candidate.hash, candidate.origin, candidate.part, now)
    if os.path.realpath(candidate.folder) == os.path.realpath(target):  # as it is now
        with suppress(InvalidConfig):
            if old := pins.read(target):
                pin = pins.Pin(pin.hash, old.origin, old.part, now)
        pins.write(pin, target)
        return target
    if not replace and (there := written_by_hand(candidate.skill.name, config)):
        raise InvalidRequest(
            f"{there} is a skill that was not installed. Move it away, or add `--replace` to have "
            "it deleted."
        )
    _put(candidate, pin, target)
    return target


def written_by_hand(name: str, config: str) -> str:
    """Returns where in the person's folder a skill of this name lies that was not installed; "":
    there is none."""
    target = os.path.join(finding.own_folder(config), name)
    for path in (target, f"{target}.yaml", f"{target}.yml"):
        if os.path.lexists(path) and not os.path.lexists(os.path.join(path, pins.FILE)):
            return path
    return ""


def remove(name: str, config: str) -> str:
    """Removes an installed skill. Returns where it was. Raises NotFound, OSError."""
    own = finding.own_folder(config)
    known = installed(config)
    if name not in known:
        names = ", ".join(known) or "none"
        raise NotFound(f"No skill {name!r} was installed. Installed are: {names}.")
    target = os.path.join(own, name)
    with tempfile.TemporaryDirectory(dir=own, prefix=".gone-") as beside:
        os.rename(target, os.path.join(beside, name))
    return target


def installed(config: str) -> Sequence[str]:
    """The names of the skills that were installed, in order."""
    own = finding.own_folder(config)
    if not os.path.isdir(own):
        return []
    return [
        name
        for name in sorted(os.listdir(own))
        if not name.startswith(".") and os.path.lexists(os.path.join(own, name, pins.FILE))
    ]


def _put(candidate: Candidate, pin: pins.Pin, target: str) -> None:
    """Whoever reads meanwhile sees the old skill, the new one or none, never half of one, and none
    without its pin."""
    own = os.path.dirname(target)
    with tempfile.TemporaryDirectory(dir=own, prefix=".new-") as beside:
        fresh = os.path.join(beside, "skill")
        pins.copy(candidate.folder, fresh)
        if pins.tree_hash(fresh) != candidate.hash:
            raise InvalidConfig(f"{candidate.folder} changed while it was copied; try again.")
        pins.write(pin, fresh)
        for number, old in enumerate((target, f"{target}.yaml", f"{target}.yml")):
            if os.path.lexists(old):
                os.rename(old, os.path.join(beside, f"old{number}"))
        os.rename(fresh, target)


def _skills_in(place: str, top: str) -> Sequence[str]:
    """The folders of the skills, each once; a link that leads out of `top` counts for nothing."""
    if os.path.lexists(os.path.join(place, finding.FILE)):
        return [place]
    found: dict[str, None] = {}
    for below in ("", "skills", *finding.PROJECT):
        folder = os.path.join(place, below)
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            real = os.path.realpath(os.path.join(folder, name))
            if real.startswith(f"{top}/") and os.path.lexists(os.path.join(real, finding.FILE)):
                found[real] = None
    return list(found)


def _candidate(folder: str, origin: str, top: str) -> Candidate:
    skill = finding.read_one(folder, "installed")
    part = os.path.relpath(folder, top)
    count = sum(1 for _ in pins.files_of(folder))
    return Candidate(
        skill, folder, pins.tree_hash(folder), count, origin, "" if part == "." else part
    )


def _name_of(origin: str) -> str:
    """What git calls the folder of a clone: a skill at the top has its name."""
    name = origin.rstrip("/").replace(":", "/").rpartition("/")[2].removesuffix(".git")
    return name if name.strip(".") else "repository"


def _clone(origin: str, shown: str, target: str) -> None:
    """`shown`: the origin without a password, for people."""
    command = ["git", "clone", "--quiet", "--depth=1", "--no-tags", "--", origin, target]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment = {**plain, "GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1"}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, errors="replace",
            stdin=subprocess.DEVNULL, timeout=CLONING, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        raise InvalidConfig("The program git is not installed; it is needed for this.") from None
    except subprocess.TimeoutExpired:
        raise InvalidConfig(f"git did not get {shown} within {CLONING:g} s.") from None
    if done.returncode != 0:
        said = done.stderr.replace(origin, shown).strip()[:_SHOWN]
        raise InvalidConfig(f"git could not get {shown}: {said}")
    shutil.rmtree(Path(target, ".git"), ignore_errors=True)
