"""`magy models` lists the models that there are to choose from, as the providers themselves say."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

from magy_server.cli import exit_codes, project_directory
from magy_server.cli.composition import ONCE, Composition, Verb
from magy_server.cli.screen.terminal import Screen, standard_output
from magy_server.cli.screen.text import Span, filled, record
from magy_server.core.errors import ProviderError
from magy_server.core.ports import ModelList
from magy_server.core.text.sanitizing import one_line


async def listed(options: argparse.Namespace, app: Composition) -> int:
    root, _ = project_directory.project(options.root, None)
    output = standard_output()
    screen = Screen(output)
    none = default = ""
    async with app.compose([root], ONCE) as (service, _):
        models = service.world.models(root)
        found = await models.listed()
        try:
            default = await models.default()
        except ProviderError as error:
            none = error.message
    if options.json:
        rows = [{"provider": one.provider, "models": list(one.models), "problem": one.problem}
                for one in found]  # fmt: skip
        await output.write(record({"default": default or None, "providers": rows}))
        return exit_codes.DONE
    spans = [span for one in found for span in _lines(one, default, screen)]
    if none:
        spans.append((filled(one_line(none), screen.width), "yellow"))
    elif not any(default in one.models for one in found):
        spans.append((filled(one_line(f"The default is {default}."), screen.width), ""))
    await screen.write(spans)
    return exit_codes.DONE


def _lines(one: ModelList, default: str, screen: Screen) -> Sequence[Span]:
    """Returns a provider with its models, each as `--model` takes it."""
    spans: list[Span] = [(f"{one_line(one.provider)}\n", "bold")]
    for model in one.models:
        if model == default:
            spans += [(f"{screen.marks.current} {one_line(model)}", "green"), ("  (default)\n", "")]
        else:
            spans.append((f"  {one_line(model)}\n", ""))
    if one.problem:
        spans.append((filled(one_line(one.problem), screen.width, "  "), "yellow"))
    return spans


VERBS: Mapping[str | None, Verb] = {None: listed}
