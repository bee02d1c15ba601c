"""`magy/doctor/run` runs the doctor over the wire, for clients that show what is wrong. It also
answers when nothing else of Magy could be started: then it is needed most."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

from magy_server.api.places import workspace_of
from magy_server.api.wire import editor as wire

Status = Literal["ok", "warn", "fail", "info"]
_STATUS: Mapping[str, Status] = {"ok": "ok", "note": "info", "warning": "warn", "problem": "fail"}


class Seen(Protocol):
    """One thing that the doctor found."""

    @property
    def topic(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def what(self) -> str: ...
    @property
    def mend(self) -> str: ...


Examine = Callable[[str, Mapping[str, Any] | None], Awaitable[tuple[Sequence[Seen], str]]]
"""async (a project's root, what the editor says of itself) -> what was found, and the report."""


class DoctorVerbs:
    def __init__(self, examine: Callable[[], Examine], roots: Sequence[str]) -> None:
        self._examine = examine
        self._roots = roots

    async def run(self, params: wire.DoctorParams) -> wire.DoctorResult:
        """Takes as long as the slowest check may: a minute and a half at most."""
        if params.cwd is not None:
            root = workspace_of(params.cwd, self._roots)[0]
        else:
            root = next(iter(self._roots), os.path.expanduser("~"))
        found, report = await self._examine()(root, params.editor)
        checks = [
            wire.DoctorCheck(
                name=one.topic, status=_STATUS[one.status], summary=one.what, fix=one.mend
            )
            for one in found
        ]
        return wire.DoctorResult(checks=checks, report=report)
