"""Magy's exceptions form a tree. Every message says what was wrong, where, and what to do next.

MagyError
├── InvalidConfig        a setting, agent file or trust record is wrong
├── InvalidRequest       a front door was asked for something malformed
│   └── NotText          a name of a file or directory is no UTF-8
├── NotFound             no such session, agent, interaction, call
├── NotTrusted           a workspace root asks for more than an untrusted one may
├── StoreError           the log could not be read or written
│   ├── Conflict         the log or the lease moved on; read again and decide again
│   ├── StoreCorrupt     the database or one entry of it cannot be read
│   ├── StoreNewer       written by a newer Magy
│   └── StoreUnavailable disk full, read-only, locked out
├── ProviderError        a model request failed
├── OverBudget           a model request might take more than is left to its run
├── ToolError            a tool's answer to the model: why it did not do it
│   ├── ProposedElsewhere  another session proposes for the same file
│   ├── Undecodable      the bytes of a file are no text
│   └── Unseen           the editor does not say what it shows of a file
└── EditorError          the editor could not or would not apply an edit
    ├── EditRefused      it said no; nothing changed
    └── EditUnverified   it said yes, but what it then sent is not what was asked
"""

from __future__ import annotations

from typing import Literal


class MagyError(Exception):
    """Base of all errors Magy raises on purpose.

    `message` is a sentence for a person; `reason` is a stable word for programs
    (it travels as `data.reason` on the wire).
    """

    reason = "failed"

    def __init__(self, message: str, *, reason: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if reason is not None:
            self.reason = reason


class InvalidConfig(MagyError):
    reason = "invalid_config"


class InvalidRequest(MagyError):
    reason = "invalid_request"


class NotText(InvalidRequest):
    """File names can be any bytes; the log, the wire and the model take text."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name!a} is not UTF-8 text, so Magy can keep nothing under that name. Rename the "
            "file or directory."
        )


class NotFound(MagyError):
    reason = "not_found"


class NotTrusted(MagyError):
    reason = "not_trusted"


class StoreError(MagyError):
    reason = "store"


class Conflict(StoreError):
    reason = "conflict"


class StoreCorrupt(StoreError):
    reason = "store_corrupt"


class StoreNewer(StoreError):
    reason = "store_newer"


class StoreUnavailable(StoreError):
    reason = "store_unavailable"


ProviderFault = Literal[
    "no_key",  # nothing configured; the message says what to set
    "auth",  # 401, 403
    "not_found",  # unknown model or endpoint
    "rate_limit",  # 429
    "overloaded",  # 529, 503
    "server",  # other 5xx
    "timeout",  # 408, slow first byte, stall
    "connection",  # refused, reset, TLS, cut in the middle
    "malformed",  # the reply is not what the wire promises
    "too_long",  # context window exceeded
    "refused",  # the request itself was rejected (400)
]


class ProviderError(MagyError):
    """A model request failed. `retryable` says whether the same request may succeed later;
    `retry_after` is the provider's own wish in seconds."""

    reason = "provider"

    def __init__(
        self,
        message: str,
        *,
        fault: ProviderFault,
        retryable: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.fault = fault
        self.retryable = retryable
        self.retry_after = retry_after


class OverBudget(MagyError):
    """`message` names the cap, as in "stopped at <message>"."""

    reason = "max_run"


class ToolError(MagyError):
    """The tool could not do it; the message is shown to the model, which should be able to correct
    itself from it."""

    reason = "tool"


class Unseen(ToolError):
    """The editor does not say what it shows of a file: what is on disk may lack what nobody has
    saved. It may be read, and is not to be changed."""


class Undecodable(ToolError):
    """The bytes of a file are no text, or damaged text."""


class ProposedElsewhere(ToolError):
    """One session proposes for a file, until the person has decided: proposals that do not know of
    each other cannot be put together."""


class EditorError(MagyError):
    reason = "editor"


class EditRefused(EditorError):
    reason = "edit_refused"

    @property
    def final(self) -> bool:
        """The editor does not want this edit of the text that it has: it is not asked again."""
        return self.reason == EditRefused.reason


class EditUnverified(EditorError):
    reason = "edit_unverified"
