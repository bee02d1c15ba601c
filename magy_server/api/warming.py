"""What talks to a model is imported when somebody means to talk, not before."""

from __future__ import annotations

import asyncio
import gc
import logging

from magy_server.api.service import Service
from magy_server.core.errors import MagyError

LOG = logging.getLogger(__name__)


async def warm(service: Service, root: str | None) -> None:
    """Imports, in a thread, the tools, what reads prompts, what the first request to the default
    model will need, and at last what tells of the place where the person is.
    What is there by then stays for as long as the process, so that nobody looks for garbage in it
    any more."""
    await asyncio.to_thread(_tools)
    try:
        models = service.world.models(root)
        provider, _ = models.named(await models.default())
        await asyncio.to_thread(provider.warm)
    except MagyError as error:
        LOG.info("%s", error)  # the first turn says it to the person
    await asyncio.to_thread(_surroundings)
    gc.freeze()


def _tools() -> None:
    import magy_server.tools.kit
    import magy_server.tools.prompts.mentions  # noqa: F401


def _surroundings() -> None:
    import magy_server.api.prompts.context  # noqa: F401
