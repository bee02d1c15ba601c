"""This provider removes keys from another provider's answers, which may repeat what they were
sent."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import replace

from magy_server.core.errors import ProviderError
from magy_server.core.events import Replied
from magy_server.core.ports import Delta, ModelRequest, Provider, Reading
from magy_server.core.text.secrets import Secrets, Sieve
from magy_server.core.values import Part, Thinking

_Place = tuple[str, int]


class Redacting:
    """A `Provider` around another one. Each text of a reply goes through a sieve of its own, since
    a key may come in pieces; then the whole reply and errors go through another."""

    def __init__(self, provider: Provider, secrets: Secrets) -> None:
        self._provider = provider
        self._secrets = secrets

    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[Delta | Reading | Replied, None]:
        sieves: dict[_Place, tuple[Sieve, Delta]] = {}
        with self._discreetly():
            async with aclosing(self._provider.stream(request)) as stream:
                async for item in stream:
                    if isinstance(item, Reading):
                        yield item
                    elif isinstance(item, Replied):
                        for rest in _rest(sieves):
                            yield rest
                        yield self._reply(item)
                    else:
                        sieve, _ = sieves.setdefault(
                            (item.kind, item.index), (Sieve(self._secrets), item)
                        )
                        yield replace(item, text=sieve(item.text, final=item.done))

    async def models(self) -> list[str]:
        with self._discreetly():
            return [self._secrets.clean(name) for name in await self._provider.models()]

    async def window(self, model: str) -> int:
        return await self._provider.window(model)

    def warm(self) -> None:
        self._provider.warm()

    async def close(self) -> None:
        await self._provider.close()

    @contextmanager
    def _discreetly(self) -> Iterator[None]:
        try:
            yield
        except ProviderError as error:
            error.message = self._secrets.clean(error.message)
            error.args = (error.message,)
            raise

    def _reply(self, reply: Replied) -> Replied:
        content = tuple(map(self._part, reply.content))
        return reply if content == reply.content else reply.model_copy(update={"content": content})

    def _part(self, part: Part) -> Part:
        told = part.model_dump()
        clean = self._secrets.within(told)
        if clean == told:
            return part
        if isinstance(part, Thinking):  # what was signed is not this text any more
            clean |= {"signature": "", "data": ""}
        return type(part).model_validate(clean)


def _rest(sieves: Mapping[_Place, tuple[Sieve, Delta]]) -> Iterator[Delta]:
    for sieve, first in sieves.values():
        if text := sieve("", final=True):
            yield replace(first, text=text, done=False)
