"""A server may ask the person for something in the middle of a call: that is elicitation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import mcp_types as types
from mcp.client import ClientRequestContext
from pydantic import ValidationError

from magy_server.core.mcp.forms import Unaskable, form_of, link_of
from magy_server.core.values import Form
from magy_server.mcp.offers import Ask

ROUNDS = 10
"""So often a server may ask something during one call."""
_OUTSIDE = "it may ask only while one of its tools is called"
_SEVERAL = "several of its tools are being called, and the protocol does not say which of them asks"


class Asking:
    """The calls that are under way on a connection. `log` gets what a server asked in vain."""

    def __init__(self, server: str, log: Callable[[str], None]) -> None:
        self._server = server
        self._log = log
        self._calls: list[AskingCall] = []

    @contextmanager
    def during(self, ask: Ask) -> Iterator[AskingCall]:
        call = AskingCall(self._server, ask, self._log)
        self._calls.append(call)
        try:
            yield call
        finally:
            call.over = True
            self._calls.remove(call)

    async def heard(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """Answers a server that does not say for which call it asks, as those before 2026 do."""
        if len(self._calls) != 1:
            why = _SEVERAL if self._calls else _OUTSIDE
            self._log(f"it asked the person for something, in vain: {why}")
            return types.ErrorData(code=types.INVALID_REQUEST, message=why)
        return await self._calls[0].answer(params)


class AskingCall:
    """One call; its server asks one thing after the other."""

    def __init__(self, server: str, ask: Ask, log: Callable[[str], None]) -> None:
        self.over = False
        self._server = server
        self._ask = ask
        self._log = log
        self._count = 0
        self._one = asyncio.Lock()

    async def answer(
        self, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        try:
            form = self._form(params)
        except Unaskable as error:
            self._log(f"it asked the person for something, in vain: {error}")
            return types.ErrorData(code=types.INVALID_PARAMS, message=str(error))
        async with self._one:
            said = None if self.over else await self._ask(form)
        if said is None:
            return types.ElicitResult(action="cancel")
        if not said.allow:
            return types.ElicitResult(action="decline")
        if said.content is None:
            return types.ElicitResult(action="accept")
        content = {
            name: [*value] if isinstance(value, tuple) else value
            for name, value in said.content.items()
        }
        return types.ElicitResult(action="accept", content=content)

    async def opens(self, error: types.ErrorData) -> bool:
        """Returns whether the server wants the person to open addresses before it is called again,
        and the person has."""
        if error.code != types.URL_ELICITATION_REQUIRED:
            return False
        try:
            wanted = types.ElicitationRequiredErrorData.model_validate(error.data)
        except ValidationError:
            return False
        for one in wanted.elicitations:
            given = await self.answer(one)
            if not isinstance(given, types.ElicitResult) or given.action != "accept":
                return False
        return bool(wanted.elicitations)

    def _form(self, params: types.ElicitRequestParams) -> Form:
        """Raises Unaskable."""
        self._count += 1
        if self._count > ROUNDS:
            raise Unaskable(f"it asked more than {ROUNDS} times during one call")
        if isinstance(params, types.ElicitRequestURLParams):
            return link_of(self._server, params.message, params.url)
        return form_of(self._server, params.message, params.requested_schema)
