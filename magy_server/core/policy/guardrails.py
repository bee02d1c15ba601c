"""A guardrail watches the calls of tools by a regular expression: it blocks a call, has it asked
about, or takes a tool away. As it only narrows, it may come from anybody's `magy.toml`. Pure.

    [[guardrail]]
    tool = "bash"
    action = "block"
    pattern = 'rm -rf /'
    message = "Delete files one by one."
    examples = { match = ["rm -rf / --no-preserve-root"], not_match = ["rm -rf build"] }

The pattern is looked for in every text of the call's arguments, and in what the judge found that
the call would touch: each simple command of a command line in its plain form, paths, addresses. So
quotes and blanks hide nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from magy_server.core.errors import InvalidConfig
from magy_server.core.policy.linear_patterns import checked, found_in
from magy_server.core.values import Decision, Facts, Value
from magy_server.dataclass import dataclass

GuardAction = Literal["block", "flag", "limit", "disable"]
_SHELL = ("bash", "shell")
"""Two names of one tool."""
_DEEPEST = 16


class GuardExamples(Value):
    """Calls that tell what a pattern is meant to match."""

    match: list[str] = Field(default=[], description="Texts that the pattern must match.")
    not_match: list[str] = Field(default=[], description="Texts that it must not match.")


class Guardrail(Value):
    """One guardrail, as configuration has it."""

    tool: str = Field(
        default="*",
        description="The tool that is watched: its name, its permission key, or `*` for all; "
        "`shell` is `bash`.",
    )
    action: GuardAction = Field(
        description="`block` forbids the calls that match, `flag` asks a person about each of "
        "them, `disable` takes the tool away, `limit` caps the tokens of a run."
    )
    pattern: str = Field(
        default="",
        description="A regular expression (RE2) that is looked for in the arguments of a call, in "
        "its simple commands, paths and addresses. Empty: every call of the tool.",
    )
    message: str = Field(
        default="", description="What the model and the person are told besides the rule."
    )
    tokens: Annotated[int, Field(ge=0)] = Field(
        default=0,
        description="For `limit`: the most tokens of one run, that is, a turn together with all "
        "that its children do for it.",
    )
    examples: GuardExamples = Field(
        default=GuardExamples(),
        description="Texts that the pattern must match, and texts that it must not, tried when "
        "the file is read: `{ match = [...], not_match = [...] }`.",
    )

    @property
    def text(self) -> str:
        """Returns the guardrail in a few words, for people."""
        pattern = f" `{self.pattern}`" if self.pattern else ""
        tokens = f" {self.tokens} tokens" if self.action == "limit" else ""
        return f"guardrail {self.tool}{pattern} -> {self.action}{tokens}"

    def watches(self, tool: str, key: str) -> bool:
        """Returns whether it is about the calls of this tool, which has this permission key."""
        if self.action == "limit":
            return False
        return self.tool in ("*", tool, key) or (self.tool in _SHELL and key in _SHELL)


@dataclass(frozen=True, slots=True)
class Said:
    """A call as guardrails see it: the tool's name, and the texts in its arguments. Nobody's call
    has no tool: a prompt that mentions a file, say."""

    tool: str = ""
    texts: tuple[str, ...] = ()


NOBODY = Said()


def said(tool: str, arguments: Mapping[str, Any]) -> Said:
    return Said(tool, tuple(_texts(arguments)))


def _texts(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping) and depth < _DEEPEST:
        for key, inner in value.items():
            yield str(key)
            yield from _texts(inner, depth + 1)
    elif isinstance(value, list | tuple) and depth < _DEEPEST:
        for inner in value:
            yield from _texts(inner, depth + 1)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def verdicts(
    source: str, rails: Iterable[Guardrail], call: Said, key: str, facts: Facts
) -> Iterator[Decision]:
    """Returns what the guardrails of one source say to a call. What they ask is firm: each time a
    person decides."""
    texts: tuple[str, ...] | None = None
    for rail in rails:
        if not rail.watches(call.tool, key):
            continue
        if rail.pattern and texts is None:
            texts = (*call.texts, *_touched(facts))
        rule = f"{source}: {rail.text}"
        if not rail.pattern or any(found_in(rail.pattern, text) for text in texts or ()):
            rule += f": {rail.message}" if rail.message else ""
            if rail.action == "flag":
                yield Decision(action="ask", rule=rule, firm=True)
            else:
                yield Decision(action="deny", rule=rule)
        elif any(resource.opaque for resource in facts.resources):
            # It may be one of those: bypass must not answer that.
            unclear = f"Magy cannot tell whether {rule} applies: ask"
            yield Decision(action="ask", rule=unclear, firm=True)


def disables(rails: Iterable[Guardrail], tool: str, key: str) -> bool:
    """Returns whether they take this tool away."""
    return any(
        rail.watches(tool, key)
        and (rail.action == "disable" or (rail.action == "block" and not rail.pattern))
        for rail in rails
    )


def _touched(facts: Facts) -> Iterator[str]:
    for resource in facts.resources:
        yield resource.subject
        if resource.relative:
            yield resource.relative
        if resource.written:
            yield " ".join(resource.written)
        if resource.argv:
            yield from _of_git(resource.argv)


def _of_git(words: Sequence[str]) -> Iterator[str]:
    """A command of git without the options of git itself."""
    from magy_server.core.shell.git_arguments import subcommand
    from magy_server.core.shell.nested_commands import program

    if program(words[0]) == "git":
        at = subcommand(words)
        if at is not None and at > 1:
            yield " ".join(("git", *words[at:]))


def check(rails: Iterable[Guardrail], where: str) -> None:
    """Raises InvalidConfig, which names the file (`where`) and the guardrail: for a pattern that
    cannot be read, settings that do not fit together, and an example that is not so."""
    for number, rail in enumerate(rails, start=1):
        place = f"{where}: guardrail {number} ({rail.tool}, {rail.action})"
        _check_settings(rail, place)
        if rail.pattern:
            checked(rail.pattern, place)
            _check_examples(rail, place)


def _check_settings(rail: Guardrail, place: str) -> None:
    if not rail.tool.strip():
        raise InvalidConfig(f"{place}: `tool` is empty; name a tool, or `*` for all.")
    if rail.action == "limit":
        if not rail.tokens:
            raise InvalidConfig(f"{place}: say how many: `tokens = 200000`.")
        if rail.pattern or rail.tool != "*":
            raise InvalidConfig(
                f"{place}: a limit is for all that a run does; leave `tool` and `pattern` out."
            )
    elif rail.tokens:
        raise InvalidConfig(f'{place}: `tokens` is for `action = "limit"` alone.')
    if rail.action == "disable":
        if rail.pattern:
            raise InvalidConfig(
                f"{place}: a tool that is taken away has no calls for a `pattern`; leave it out, "
                'or write `action = "block"`.'
            )
        if rail.tool == "*":
            raise InvalidConfig(f"{place}: name the tool that is taken away; `*` would be all.")
    if not rail.pattern and (rail.examples.match or rail.examples.not_match):
        raise InvalidConfig(f"{place}: `examples` tell of a `pattern`, and there is none.")


def _check_examples(rail: Guardrail, place: str) -> None:
    for text in rail.examples.match:
        if not _matches(rail, text):
            raise InvalidConfig(f"{place}: `{rail.pattern}` must match {text!r}, and does not.")
    for text in rail.examples.not_match:
        if _matches(rail, text):
            raise InvalidConfig(f"{place}: `{rail.pattern}` must not match {text!r}, and does.")


def _matches(rail: Guardrail, text: str) -> bool:
    """As a call is held against it: of a command line also each simple command."""
    texts = [text]
    if rail.tool in _SHELL:
        from magy_server.core.shell.simple_commands import parse

        texts += [part.text for part in parse(text)]
    return any(found_in(rail.pattern, one) for one in texts)
