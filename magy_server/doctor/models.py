"""These checks look at keys, at endpoints, and at which model Magy would use. They never show a
key."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from magy_server.doctor import project
from magy_server.doctor.finding import Around, Finding, Say, ok, problem, warning

if TYPE_CHECKING:
    from magy_server.core.errors import MagyError
    from magy_server.core.settings import ProviderSettings
    from magy_server.providers import Providers

_PATIENCE = 10.0
"""The seconds that an endpoint has for the list of its models."""


async def check(around: Around) -> list[Finding]:
    from magy_server.providers import Providers

    loaded = await asyncio.to_thread(project.loaded, around)
    settings = loaded.settings
    providers = Providers(settings.provider, around.environ, settings.model)
    try:
        model, first = await _first(providers, loaded.origins.get("model.default", ""))
        own = {one.name for one in settings.provider}
        looks = [_look(one, providers, model, one.name in own) for one in providers.all]
        found = await asyncio.gather(*looks)
    finally:
        await providers.close()
    return [first, *_keys(providers), *(finding for finding in found if finding)]


async def _first(providers: Providers, origin: str) -> tuple[str, Finding]:
    """Returns which model a new session gets ("": none), and who says so."""
    from magy_server.core.errors import MagyError

    try:
        model = await providers.default()
        providers.named(model)
    except MagyError as error:
        what, mend = _parted(error)
        return "", problem(what, mend)
    why = f"as {origin} says" if origin else "none is configured; chosen from what is available"
    return model, ok(f"New sessions use {model} ({why}).")


def _keys(providers: Providers) -> list[Finding]:
    have = dict.fromkeys(one.api_key_env for one in providers.all if providers.key(one))
    return [ok(f"Keys are set in {', '.join(have)}.")] if have else []


async def _look(
    one: ProviderSettings, providers: Providers, model: str, own: bool
) -> Finding | None:
    """Returns what is at an endpoint; None where nothing is, and nothing has to be. It asks only
    with a key, where the person configured the endpoint, or on this machine."""
    from magy_server.core.errors import MagyError
    from magy_server.providers import is_local, listens

    used = model.partition("/")[0] == one.name
    local = is_local(one)
    if not (own or local or providers.key(one)) or one.kind == "scripted":
        return None
    try:
        provider = providers.provider(one.name)
        if local and not await listens(one.base_url or ""):
            return _stopped(one, used=used) if own or used else None
        await asyncio.to_thread(provider.warm)
        async with asyncio.timeout(_PATIENCE):
            names = await provider.models()
    except TimeoutError:
        what = f"{one.name} does not answer within {_PATIENCE:g} s."
        mend = "Check the network, a proxy in between, and the base URL."
        return _grave(used)(what, mend)
    except MagyError as error:
        keyed = bool(providers.key(one))
        return _refused(one, error, used=used, idle=local and not own, keyed=keyed)
    return _listed(one, names, model if used else "")


def _stopped(one: ProviderSettings, *, used: bool) -> Finding:
    from magy_server.providers import place

    what = f"{one.name} is not running: nothing listens at {place(one)}."
    mend = "Start it, or remove it from magy.toml."
    return _grave(used)(what, mend)


def _grave(used: bool) -> Say:
    """How bad it is that an endpoint does not serve."""
    return problem if used else warning


def _refused(
    one: ProviderSettings, error: MagyError, *, used: bool, idle: bool, keyed: bool
) -> Finding | None:
    fault = getattr(error, "fault", "")
    what, mend = _parted(error)
    if fault == "auth" and one.api_key_env and keyed:
        what = f"{one.name} does not accept the key in {one.api_key_env}: {what}"
        mend = f"Set {one.api_key_env} to a valid {one.name} key."
        return problem(what, mend)
    if idle and not used:
        return None  # something else lives at the port where a model server might
    if fault == "auth" and one.api_key_env:
        what = f"{one.name} needs a key, and {one.api_key_env} is not set: {what}"
        mend = f"Set {one.api_key_env} where you start Magy, or remove {one.name} from magy.toml."
        return _grave(used)(what, mend)
    return _grave(used)(f"{one.name} cannot be used: {what}", mend)


def _listed(one: ProviderSettings, names: list[str], model: str) -> Finding:
    own_name = model.partition("/")[2]
    count = f"{len(names)} model{'s' * (len(names) != 1)}"
    if own_name and names and own_name not in names:
        what = f"{one.name} answers and lists {count}, but does not list {own_name}."
        some = ", ".join(sorted(names)[:5])
        mend = f"Set `model.default` to one that it has, such as {some}, if requests fail."
        return warning(what, mend)
    if not names:
        mend = "Load a model there, for example with `ollama pull`."
        return warning(f"{one.name} answers, but offers no model.", mend)
    return ok(f"{one.name} answers, with {count}.")


def _parted(error: MagyError) -> tuple[str, str]:
    """Returns (what is wrong, what to do about it): a provider's error says both in one message."""
    for sign in (" What to do: ", ": set ", ": name "):
        what, found, mend = error.message.partition(sign)
        if found:
            mend = f"{sign.removeprefix(': ').removeprefix(' What to do: ')}{mend}"
            return f"{what.rstrip('.')}.", f"{mend[:1].upper()}{mend[1:]}"
    return error.message, "Correct it in magy.toml."
