"""An MCP server may ask the person for something in the middle of a call: here its request becomes
a `Form`, the form a text, and what the person filled in an answer. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from math import isfinite
from typing import Any, TypeGuard

from magy_server.core.errors import InvalidRequest
from magy_server.core.events import Asked
from magy_server.core.mcp.secrets_asked import invites_secret, mentions_secret, names_secret
from magy_server.core.text.sanitizing import LINE, TITLE, shortened, visible
from magy_server.core.values import Form, FormChoice, FormField, FormValue
from magy_server.regex import regex

LONGEST = 4_000
"""Characters of a message: nobody reads more, and nothing of it is left out."""
MOST_FIELDS, MOST_CHOICES = 30, 200
NAME = 100
"""Characters of a field's name, of its title, of a choice."""
ABOUT = 1_000
ADDRESS = 2_000
"""Characters of an address."""
ANSWER = 10_000
"""Characters of one value."""
SPELT = 3
"""Choices that are all shorter may be the letters or digits of something."""
_ADDRESS = regex(
    r"(?i:https?)://(?P<host>[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?(?:[/?#][!-~]*)?"
)
"""An address without a user's name, of which all characters are what they look like."""
_TYPES = ("string", "number", "integer", "boolean")
_FORMATS = {
    "email": "an e-mail address", "uri": "an address (https://...)",
    "date": "a date (2026-05-31)", "date-time": "a date and time (2026-05-31T14:00:00Z)",
}  # fmt: skip
_YES, _NO = ("yes", "y", "true", "1", "on"), ("no", "n", "false", "0", "off")


class Unaskable(Exception):
    """Why the person is not asked, as a sentence for the server."""


# --- what the server sends ------------------------------------------------------------------------


def form_of(server: str, message: str, schema: Mapping[str, Any]) -> Form:
    """Raises Unaskable: for what no form has, for a secret, for what is too long to be read."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        raise Unaskable("the form has no fields")
    if len(properties) > MOST_FIELDS:
        raise Unaskable(f"the form has more than {MOST_FIELDS} fields")
    needed = schema.get("required") or ()
    if not _is_list(needed):
        raise Unaskable("what the form requires is no list of names")
    fields = tuple(_field(name, about, name in needed) for name, about in properties.items())
    form = Form(server=server, message=_prose(message, LONGEST, "the message"), fields=fields)
    _refuse_secrets(form)
    return form


def link_of(server: str, message: str, url: str) -> Form:
    """The person is to open this address. Raises Unaskable."""
    if len(url) > ADDRESS:
        raise Unaskable(f"the address has more than {ADDRESS:,} characters")
    if not _ADDRESS.fullmatch(url):
        raise Unaskable(
            "the address is not a plain one that begins with https:// or http://: it may lead "
            "elsewhere than it looks"
        )
    return Form(server=server, message=_prose(message, LONGEST, "the message"), url=url)


def _field(name: Any, about: Any, required: bool) -> FormField:
    if not isinstance(name, str) or not name.strip() or visible(name) != name or len(name) > NAME:
        raise Unaskable("a field of the form has a name that cannot be shown")
    if not isinstance(about, Mapping):
        raise Unaskable(f"the field {name!r} is not described")
    many = about.get("type") == "array"
    choices = _choices(name, _held(about.get("items")) if many else about)
    if many and not choices:
        raise Unaskable(f"the field {name!r} is a list of what is not named")
    kind = "string" if many else about.get("type", "string")
    if kind not in _TYPES or (choices and kind != "string"):
        raise Unaskable(f"the field {name!r} is of the type {str(kind)[:40]!r}, which no form has")
    title = _prose(about.get("title") or "", NAME, f"the title of {name!r}")
    words = _prose(about.get("description") or "", ABOUT, f"the description of {name!r}")
    low, high = ("minItems", "maxItems") if many else ("minLength", "maxLength")
    if kind in ("number", "integer"):
        low, high = "minimum", "maximum"
    form = about.get("format") if kind == "string" and not choices else None
    if form == "password" or about.get("writeOnly") is True:
        raise _secret(f"the field {name!r} looks like a secret")
    field = FormField(
        name=name,
        type=kind,
        title=title,
        about=words,
        required=required,
        choices=choices,
        many=many,
        low=_bound(name, about.get(low)),
        high=_bound(name, about.get(high)),
        format=form if isinstance(form, str) and form in _FORMATS else "",
    )
    return field.model_copy(update={"default": _default(field, about.get("default"))})


def _default(field: FormField, given: Any) -> FormValue | None:
    """One that does not fit is none."""
    try:
        return None if given is None else fitting(field, given)
    except InvalidRequest:
        return None


def _held(items: Any) -> Mapping[str, Any]:
    return items if isinstance(items, Mapping) else {}


def _is_list(given: Any) -> TypeGuard[Sequence[Any]]:
    return isinstance(given, Sequence) and not isinstance(given, str)


def _choices(name: str, about: Mapping[str, Any]) -> tuple[FormChoice, ...]:
    """Those of a field, in any of the ways in which servers write them."""
    titled = about.get("oneOf") or about.get("anyOf")
    if _is_list(titled):
        pairs = [(_held(one).get("const"), _held(one).get("title")) for one in titled]
    else:
        values, names = about.get("enum") or (), about.get("enumNames") or ()
        if not (_is_list(values) and _is_list(names)):
            raise Unaskable(f"the choices of the field {name!r} are no list")
        pairs = [(one, names[at] if at < len(names) else "") for at, one in enumerate(values)]
    if len(pairs) > MOST_CHOICES:
        raise Unaskable(f"the field {name!r} has more than {MOST_CHOICES} choices")
    found = []
    for one, called in pairs:
        if not isinstance(one, str) or not one.strip() or visible(one) != one or "\n" in one:
            raise Unaskable(f"the field {name!r} has a choice that cannot be shown")
        if len(one) > NAME:
            raise Unaskable(f"a choice of {name!r} has more than {NAME} characters")
        shown = _prose(called or "", NAME, f"a choice of {name!r}")
        found.append(FormChoice(value=one, name="" if shown == one else shown))
    return tuple(found)


def _prose(text: Any, most: int, what: str) -> str:
    """What a person reads, with nothing in it that hides."""
    if not isinstance(text, str):
        raise Unaskable(f"{what} is no text")
    if len(text) > most:
        raise Unaskable(f"{what} has more than {most:,} characters")
    shown = visible(text).strip()
    return shown if most > ABOUT else " ".join(shown.split())


def _bound(name: str, given: Any) -> float | None:
    if given is None:
        return None
    try:
        fits = isinstance(given, int | float) and not isinstance(given, bool) and isfinite(given)
    except OverflowError:
        fits = False
    if not fits:
        raise Unaskable(f"a bound of the field {name!r} is no number that fits")
    return float(given)


# --- no secrets -----------------------------------------------------------------------------------


def _refuse_secrets(form: Form) -> None:
    """Raises Unaskable. A yes or no and a choice hold no secret, but for choices that spell one."""
    spelt = [one for one in form.fields if one.choices and all(map(_is_short, one.choices))]
    texts = [one for one in form.fields if one.type == "string" and not one.choices]
    numbers = [one for one in form.fields if one.type in ("number", "integer")]
    for field in texts + spelt:
        called = names_secret(field.name) or names_secret(field.title)
        if called or mentions_secret(field.about):
            raise _secret(f"the field {field.name!r} looks like a secret")
    for field in numbers:
        called = any(names_secret(one, number=True) for one in (field.name, field.title))
        if called or invites_secret(field.about):
            raise _secret(f"the field {field.name!r} looks like a secret")
    if (texts and mentions_secret(form.message)) or (numbers and invites_secret(form.message)):
        raise _secret("the message asks for a secret")
    said = (text for one in form.fields for text in (one.title, one.about))
    if (texts or numbers) and any(map(invites_secret, said)):
        raise _secret("the form asks for a secret")


def _is_short(choice: FormChoice) -> bool:
    return len(choice.value) < SPELT


def _secret(what: str) -> Unaskable:
    return Unaskable(
        f"{what} (a password, token or key), and the protocol forbids to ask for one in a form: "
        "send the person to an address instead"
    )


# --- what the person reads ------------------------------------------------------------------------


def question(id: str, call: str, tool: str, form: Form) -> Asked:
    """`tool` is what is called, by Magy's name for it."""
    message = shortened(form.message or "something", TITLE - 100)
    rule = f"the MCP server {form.server} asks for it during {tool}"
    if form.url:
        rule += "; Magy does not open the address"
    else:
        rule += "; the answer goes to the server and stays in the log: no passwords or keys"
    title = f"The MCP server {form.server} asks: {message}"
    return Asked(id=id, call=call, title=title, rule=rule[:LINE], form=form)


def told(form: Form) -> str:
    """Returns the whole form as a text to be read. What the server says stands behind `> `, so that
    no line of it looks like one of Magy's."""
    said = "\n".join(f"> {line}".rstrip() for line in form.message.split("\n"))
    if form.url:
        found = _ADDRESS.fullmatch(form.url)
        at = f", at {found['host']}" if found else ""
        return f"{said}\n\nIt wants you to open this address{at}:\n{form.url}"
    return "\n".join([said, "", *(line for one in form.fields for line in _lines(one))])


def for_clients(form: Form) -> dict[str, Any]:
    """Returns the form as clients get it: each field has besides how it is called (`label`) and
    what it takes (`hint`), in words."""
    fields = [
        {**one.model_dump(mode="json"), "label": label(one), "hint": wanted(one)}
        for one in form.fields
    ]
    return {**form.model_dump(mode="json"), "fields": fields}


def of_clients(form: Mapping[str, Any]) -> Form:
    """Returns the form that clients get so."""
    fields = [
        {key: value for key, value in one.items() if key not in ("label", "hint")}
        for one in form["fields"]
    ]
    return Form.model_validate({**form, "fields": fields})


def _lines(field: FormField) -> list[str]:
    needed = "" if field.required else ", may be left out"
    default = "" if field.default is None else f"; else {in_words(field, field.default)}"
    lines = [f"{label(field)} ({wanted(field)}{needed}{default})"]
    lines += [f"    {field.about}"] if field.about else []
    named = [f"{one.value} ({one.name})" if one.name else one.value for one in field.choices]
    return lines + [f"    - {one}" for one in named]


def label(field: FormField) -> str:
    return f"{field.title} [{field.name}]" if field.title not in ("", field.name) else field.name


def wanted(field: FormField) -> str:
    """Says in words what a field takes."""
    bounds = _bounds(field.low, field.high)
    if field.choices:
        return f"{bounds or 'any'} of {len(field.choices)}" if field.many else "one of these"
    if field.type == "boolean":
        return "yes or no"
    if field.type == "string":
        what = _FORMATS.get(field.format, "text")
        return f"{what}, {bounds} characters" if bounds else what
    what = "a whole number" if field.type == "integer" else "a number"
    return f"{what}, {bounds}" if bounds else what


def _bounds(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f"{low:g} to {high:g}"
    if low is not None:
        return f"at least {low:g}"
    return f"at most {high:g}" if high is not None else ""


def in_words(field: FormField, value: FormValue) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, tuple) else str(value)


# --- what the person says -------------------------------------------------------------------------


def filled(form: Form, content: Mapping[str, Any] | None) -> dict[str, FormValue] | None:
    """Returns the answer that the server gets; None for an address. Raises InvalidRequest: what is
    missing, or does not fit."""
    if form.url:
        return None
    given = dict(content or {})
    result: dict[str, FormValue] = {}
    for field in form.fields:
        one = given.pop(field.name, None)
        if one is None:
            one = field.default
        if field.required or not _is_blank(one):
            result[field.name] = fitting(field, one)
    if given:
        raise InvalidRequest(f"The form has no field {next(iter(given))!r}.")
    return result


def fitting(field: FormField, given: Any) -> FormValue:
    """Returns what was filled in as what the field takes; a text is read as a person means it.
    Raises InvalidRequest."""
    if _is_blank(given):
        raise InvalidRequest(f"{label(field)} is missing: {wanted(field)}.")
    if field.choices:
        return _chosen(field, given)
    read = _READ[field.type](given)
    if read is None or (isinstance(read, str) and len(read) > ANSWER):
        raise _unfit(field, given)
    size = len(read) if isinstance(read, str) else read
    if field.type != "boolean" and not _within(size, field.low, field.high):
        raise _unfit(field, given)
    if field.format and isinstance(read, str) and not _is(field.format, read):
        raise _unfit(field, given)
    return read


def _is_blank(given: Any) -> bool:
    return given is None or (isinstance(given, str) and not given.strip())


def _within(size: float, low: float | None, high: float | None) -> bool:
    return (low is None or size >= low) and (high is None or size <= high)


def _unfit(field: FormField, given: Any) -> InvalidRequest:
    try:
        said = repr(shortened(str(given), 80))
    except ValueError:  # Python writes no whole number of thousands of digits
        said = "a number of so many digits"
    return InvalidRequest(f"{label(field)}: {said} is not {wanted(field)}.")


def _chosen(field: FormField, given: Any) -> FormValue:
    names = {one.value: one.value for one in reversed(field.choices)}
    names = {one.name: one.value for one in reversed(field.choices) if one.name} | names
    if not field.many:
        if not isinstance(given, str) or given not in names:
            raise _unfit(field, given)
        return names[given]
    if isinstance(given, str):
        picked = _listed(given, names)
    else:
        picked = [_pick(one, names) for one in given] if _is_list(given) else [None]
    if None in picked:
        raise _unfit(field, given)
    found = tuple(dict.fromkeys(one for one in picked if one))
    if not _within(len(found), field.low, field.high):
        raise _unfit(field, given)
    return found


def _pick(given: Any, names: Mapping[str, str]) -> str | None:
    """The choice that is meant; "" for nothing. A name counts as it is written, before blanks are
    taken off."""
    if not isinstance(given, str):
        return None
    return names.get(given) or names.get(given.strip()) or ("" if not given.strip() else None)


def _listed(text: str, names: Mapping[str, str]) -> list[str | None]:
    """The choices in a text with commas between them. A choice with commas in it comes before those
    that its parts name."""
    parts = text.split(",")
    most = 1 + max(name.count(",") for name in names)
    picked: list[str | None] = []
    at = 0
    while at < len(parts):
        ends = range(min(at + most, len(parts)), at, -1)
        tried = ((end, _pick(",".join(parts[at:end]), names)) for end in ends)
        at, one = next(((end, one) for end, one in tried if one), (at + 1, _pick(parts[at], names)))
        picked.append(one)
    return picked


def _yes_no(given: Any) -> bool | None:
    if isinstance(given, bool):
        return given
    said = given.strip().lower() if isinstance(given, str) else ""
    return True if said in _YES else False if said in _NO else None


def _a_number(given: Any) -> int | float | None:
    if isinstance(given, str):
        try:
            given = float(given) if re.search(r"[.eE]", given) else int(given)
        except ValueError:
            return None
    fits = isinstance(given, int | float) and not isinstance(given, bool)
    return given if fits and abs(given) < 1e308 else None


def _whole(given: Any) -> int | None:
    read = _a_number(given)
    return int(read) if read is not None and read == int(read) else None


_READ = {
    "string": lambda given: given if isinstance(given, str) else None,
    "boolean": _yes_no,
    "number": _a_number,
    "integer": _whole,
}


def _is(form: str, text: str) -> bool:
    if form == "email":
        return re.fullmatch(r"[^@\s]+@[^@\s]+", text) is not None
    if form == "uri":
        return re.match(r"[A-Za-z][A-Za-z0-9+.-]*:\S", text) is not None
    try:
        date.fromisoformat(text) if form == "date" else datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
