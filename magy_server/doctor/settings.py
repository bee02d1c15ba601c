"""These checks look at the configuration files, the trust of the project, and the agents."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from magy_server.doctor import project
from magy_server.doctor.finding import Around, Finding, note, ok, problem, warning

if TYPE_CHECKING:
    from magy_server.core.hooks import Hook

_BUILTINS = frozenset({
    "alias", "case", "cd", "command", "declare", "do", "echo", "eval", "exec", "exit", "export",
    "false", "for", "function", "if", "let", "local", "printf", "pushd", "pwd", "read", "return",
    "set", "source", "test", "time", "trap", "true", "type", "ulimit", "umask", "unset", "until",
    "wait", "while",
})  # fmt: skip
"""Words of the shell that a command may begin with."""
_MEND_FILE = "Correct it there; docs/reference/configuration.md has every key."


def check(around: Around) -> list[Finding]:
    from magy_server.config import administrator, layers

    user, own = layers.config_dir() / "magy.toml", Path(around.root) / "magy.toml"
    files = [("the administrator's", administrator.FILE)] if administrator.FILE.exists() else []
    files.append(("your settings", user))
    if own != user:
        files.append(("the project's settings", own))
    findings = [_file(what, path) for what, path in files]
    if all(finding.status != "problem" for finding in findings):
        findings += _together(around)
    return [*findings, *_trust(around)]


def _file(what: str, path: Path) -> Finding:
    from magy_server.config import layers
    from magy_server.core.errors import InvalidConfig
    from magy_server.core.spawn_settings import clamped
    from magy_server.tools.watched_names import of_guardrails

    if not os.path.lexists(path):
        return ok(f"There is no {path} ({what}).")
    try:
        found = layers.validate(layers.read(path))
    except InvalidConfig as error:
        return problem(error.message, _MEND_FILE)
    _, said = clamped(found.spawn)
    if said:
        what = f"{path} ({what}) sets values out of range: {' '.join(said)}"
        return note(what, "Magy uses the nearest allowed values; put them into the file.")
    if unwatched := [*of_guardrails(found.guardrail)]:
        return warning(f"{path} ({what}): {' '.join(unwatched)}", "Correct the name.")
    return ok(f"{path} ({what}) is readable.")


def _together(around: Around) -> list[Finding]:
    """Lays the layers one over the other, the environment with them."""
    from magy_server.config import layers
    from magy_server.core.errors import InvalidConfig

    try:
        layers.load(around.root, trusted=project.trusted(around), options={})
    except InvalidConfig as error:
        mend = "Correct what it names, in the file or in the environment."
        return [problem(error.message, mend)]
    return []


def _trust(around: Around) -> list[Finding]:
    from magy_server.config import layers
    from magy_server.config.trust import FILES, files_hash
    from magy_server.core.errors import InvalidConfig, NotTrusted

    present = [name for name in FILES if os.path.lexists(os.path.join(around.root, name))]
    if not present:
        return []
    names = ", ".join(present)
    try:
        files_hash(around.root)
    except NotTrusted as error:
        mend = "Until this is fixed, its files can only make Magy stricter."
        return [warning(error.message, mend)]
    if project.trusted(around):
        return [ok(f"This project ({names}) is trusted.")]
    try:
        ignored = layers.load(around.root, trusted=False, options={}).ignored
    except InvalidConfig:
        ignored = ()
    changed = "was trusted, but has changed" if project.trusts(around.root) else "is not trusted"
    said = f"; Magy ignores these settings of it: {', '.join(ignored)}" if ignored else ""
    what = f"This project ({names}) {changed}{said}."
    mend = (
        "Read those files; if you agree with them, trust the project in your editor or with "
        "`magy config trust`."
    )
    return [note(what, mend)]


def agents(around: Around) -> list[Finding]:
    from magy_server.config.agents import common_rules, find_agents
    from magy_server.core.errors import InvalidConfig

    settings = project.settings(around)
    found = find_agents(around.root, trusted=project.trusted(around), custom=settings.custom_agents)
    problems = list(found.problems)
    try:
        common_rules()
    except InvalidConfig as error:
        problems.append(error.message)
    mend = "Correct that file; until then the agent is not available."
    findings = [problem(message, mend) for message in problems]
    if settings.default_agent not in found:
        what = f"The default agent, {settings.default_agent!r}, does not exist."
        mend = f"Set `default_agent` in magy.toml to one of {', '.join(sorted(found))}."
        findings.append(problem(what, mend))
    names = ", ".join(sorted(name for name, spec in found.items() if not spec.hidden))
    return [*findings, ok(f"Agents: {names}.")]


def hooks(around: Around) -> list[Finding]:
    from magy_server.config import hooks
    from magy_server.tools.watched_names import of_hooks

    trusted = around.root if project.trusted(around) else None
    found, problems = hooks.configured(project.settings(around), trusted)
    mend = "Correct that file, or set `claude_hooks = false` in magy.toml."
    findings = [note(message, mend) for message in problems]
    findings += [warning(f"{one}", "Correct the name.") for one in of_hooks(found)]
    for hook in found:
        which = f" for {hook.match}" if hook.match not in ("", "*") else ""
        what = f"{hook.event}{which}: `{hook.name}` ({hook.where})"
        if missing := _missing(hook.command, around):
            why = "before each call the person is asked instead" if _guards(hook) else "it fails"
            mend = "Install that program, or correct the hook's command."
            findings.append(warning(f"{what}: there is no program {missing!r}; {why}.", mend))
        else:
            findings.append(ok(f"{what}."))
    return findings or [ok("There are no hooks here.")]


def _guards(hook: Hook) -> bool:
    return hook.event == "PreToolUse" and not hook.foreign


def _missing(command: str, around: Around) -> str:
    """Returns the program that a hook's command begins with, if there is none; "" where it is, or
    where only a shell can tell."""
    word = command.split()[0] if command.split() else ""
    if not word or set(word) & set("\"'`$(){}[]<>|&;=~*?!\\#:") or word in _BUILTINS:
        return ""
    found = shutil.which(os.path.join(around.root, word) if "/" in word else word)
    return "" if found else word
