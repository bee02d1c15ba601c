"""A client may announce what pygls cannot read. This module takes that out; the rest counts."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from cattrs.errors import BaseValidationError
from lsprotocol import types

log = logging.getLogger(__name__)


def _inside(wrap: Callable[[Any], Any], key: str, part: Any) -> Any:
    return wrap({key: part})


def prune(value: dict[str, Any], wrap: Callable[[Any], Any], converter: Any) -> None:
    """Takes out of the client's capabilities what pygls would refuse all of `initialize` for:
    values of a newer LSP, or of a sloppy client. `wrap` builds whole capabilities around a part."""

    def fits(part: Any) -> bool:
        try:
            converter.structure(wrap(part), types.ClientCapabilities)
        except (BaseValidationError, TypeError, ValueError, LookupError, AttributeError):
            return False
        return True

    for key in tuple(value):
        if fits({key: value[key]}):
            continue
        if type(value[key]) is dict:
            prune(value[key], partial(_inside, wrap, key), converter)
        if not fits({key: value[key]}):
            log.warning("Ignoring the client's capability %r, which is invalid.", key)
            del value[key]
