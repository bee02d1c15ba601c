"""Writes the reference pages from the code, so that they cannot drift: `make docs`.

python -m scripts.generate_docs            write what is stale
python -m scripts.generate_docs --check    write nothing; say what is stale, and fail if any is
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from magy_server.core.tool import Tool

TOP = Path(__file__).resolve().parents[1]
SAID = "Generated from {source} by `make docs`; edit that instead."
NOTICES = {".md": f"<!-- {SAID} -->\n", ".py": f"# {SAID}\n", ".ts": f"// {SAID}\n", ".json": ""}


def protocol() -> Iterator[str]:
    from scripts.wire_page import page, shapes

    yield from page()
    yield "## Types\n"
    for name, schema in sorted(shapes().items()):
        yield f"### {name}\n\n{_prose(schema.get('description', ''))}{_fields(schema)}\n"


def configuration() -> Iterator[str]:
    from magy_server.config import layers
    from magy_server.core.settings import Settings

    schema = Settings.model_json_schema()
    yield f"# Configuration\n\n{inspect.getdoc(layers)}\n"
    yield (
        "The user's file is `magy.toml` in `$XDG_CONFIG_HOME/magy` (usually `~/.config/magy`), a\n"
        "project's is `magy.toml` in its root. Sessions are kept in `$XDG_STATE_HOME/magy`\n"
        "(usually `~/.local/state/magy`). `MAGY_CONFIG_DIR` and `MAGY_STATE_DIR` name other\n"
        "directories.\n\n"
        "Providers that need no configuration: [models](models.md).\n\n"
        "The environment may set: " + (inspect.getdoc(layers.from_environment) or "") + "\n"
    )
    yield from _settings("", schema, schema.get("$defs", {}))


def _settings(
    prefix: str, schema: Mapping[str, Any], defs: Mapping[str, Any], many: bool = False
) -> Iterator[str]:
    """One section a TOML table; tables inside follow it."""
    tables: list[tuple[str, Mapping[str, Any], bool]] = []
    keys: dict[str, Any] = {}
    for key, body in schema.get("properties", {}).items():
        inner = body.get("items", body)
        named = body.get("additionalProperties")
        if "$ref" in inner:
            tables.append((f"{prefix}{key}", defs[inner["$ref"].rsplit("/", 1)[-1]], inner != body))
        elif prefix == "" and isinstance(named, Mapping) and "$ref" in named:
            shape = defs[named["$ref"].rsplit("/", 1)[-1]]
            tables.append((f"{key}.NAME", {"description": body["description"], **shape}, False))
        else:
            keys[key] = body
    table = prefix.rstrip(".")
    title = f"`[[{table}]]`" if many else f"`[{table}]`" if table else "At the top"
    yield f"## {title}\n\n{_fields({**schema, 'properties': keys})}\n"
    for name, inner, repeated in tables:
        yield from _settings(f"{name}.", inner, defs, repeated)


def events() -> Iterator[str]:
    from magy_server.core import events as module
    from magy_server.core import values
    from magy_server.core.agents import mail
    from magy_server.core.reviews import review_events

    yield f"# Events\n\n{inspect.getdoc(module)}\n"
    yield (
        "Any process may append the events marked *inbox*; the others only the process that holds\n"
        "the lease of the session's tree.\n"
    )
    (union, *_) = module.Event.__args__
    names = {kind.__name__ for kind in union.__args__}
    inbox = {kind.__name__ for kind in module.INBOX}
    every = [node for place in (module, mail, review_events, values) for node in _classes(place)]
    shared = {node.name: node.body for node in every if node.name.startswith("_")}
    nodes = [node for node in every if node.name not in (*shared, "Value", "Entry")]
    for node in nodes:
        for base in node.bases:
            node.body += shared.get(ast.unparse(base), [])
        if node.name in names:
            yield _event(node, f"`{_tag(node)}`{' (inbox)' if node.name in inbox else ''}")
    yield f"## Values inside events\n\n{inspect.getdoc(values)}\n"
    for node in nodes:
        if node.name not in names:
            yield _event(node, node.name)


def _classes(module: ModuleType) -> list[ast.ClassDef]:
    body = ast.parse(inspect.getsource(module)).body
    return [node for node in body if isinstance(node, ast.ClassDef)]


def _tag(node: ast.ClassDef) -> str:
    """The wire name of an event class: the default of its field `type`."""
    for line in node.body:
        if isinstance(line, ast.AnnAssign) and ast.unparse(line.target) == "type" and line.value:
            return str(ast.literal_eval(line.value))
    return ""


def _event(node: ast.ClassDef, title: str) -> str:
    rows = []
    for line, after in zip(node.body, [*node.body[1:], None], strict=True):
        if not isinstance(line, ast.AnnAssign) or ast.unparse(line.target) == "type":
            continue
        about = ""
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            about = str(after.value.value)
        value = ast.unparse(line.value).replace(".usual()", "()") if line.value else ""
        default = _code(value) if value else ""
        rows.append((ast.unparse(line.target), _code(ast.unparse(line.annotation)), default, about))
    about = _prose(inspect.cleandoc(ast.get_docstring(node) or ""))
    return f"### {title}\n\n{about}{_table(('Field', 'Type', 'Default', ''), rows)}\n"


def tools() -> Iterator[str]:
    from magy_server.tools.kit import make_tools
    from magy_server.tools.shell.processes import Processes

    yield "# Tools\n\nWhat the built-in agents can call, as the model is told.\n"
    for tool in sorted(make_tools(Processes()), key=lambda tool: tool.name):
        yield (
            f"## `{tool.name}`\n\nEffect: {tool.effect}. Permission key: `{tool.key}`.\n\n"
            f"{_prose(tool.description)}{_fields(_parameters(tool))}\n"
        )


def _parameters(tool: Tool) -> Mapping[str, Any]:
    """The schema of the parameters, worked out anew."""
    from magy_server.core.tool import FunctionShape

    assert isinstance(tool.shape, FunctionShape), f"{tool.name} is none of Magy's own"
    return tool.shape.worked_out()


def tool_schemas() -> Iterator[str]:
    from magy_server.tools.kit import make_tools
    from magy_server.tools.shell.processes import Processes

    yield (
        '"""The JSON Schemas of the parameters of Magy\'s tools are worked out beforehand, since\n'
        'that takes as long as a tenth of a short command."""\n\n# fmt: off\n# ruff: noqa: E501\n'
    )
    yield "from __future__ import annotations\n"
    yield "from collections.abc import Mapping\nfrom typing import Any\n"
    yield "SCHEMAS: Mapping[str, Mapping[str, Any]] = {"
    for tool in sorted(make_tools(Processes()), key=lambda tool: tool.name):
        yield f"    {tool.name!r}: {_parameters(tool)!r},"
    yield "}"


def shipped_agents() -> Iterator[str]:
    from magy_server.config import shipped

    texts = shipped.texts()
    known = shipped.packed(shipped.parsed(texts), shipped.digest(texts))
    said = {"about": SAID.format(source="agents and skills"), **known}
    yield json.dumps(said, indent=1, ensure_ascii=False)


def models() -> Iterator[str]:
    from magy_server import providers
    from magy_server.llm import catalogue

    yield (
        "# Models and providers\n\nA model is named `provider/model`. Who names none gets "
        "`model.default` of the\n[configuration](configuration.md); else the start model of the "
        "first provider below whose key is\nset; else the first model of a model server that runs "
        "on this machine. Those are asked at the\nendpoints below, and only when nothing else "
        "decides. [`magy doctor`](../howto/doctor.md) says which\nmodel it is, and why.\n"
    )
    yield (
        "## Providers\n\nThey need no configuration. A `[[provider]]` entry of the same name "
        "changes what it says and\nkeeps the rest; one with another name adds a provider. Where "
        "none says `base_url`,\n`ANTHROPIC_BASE_URL` and `OPENAI_BASE_URL` in the environment name "
        "the endpoint for the keys\n`ANTHROPIC_API_KEY` and `OPENAI_API_KEY`.\n"
    )
    about = ("Name", "Wire (`kind`)", "Key", "Endpoint", "Start model")
    yield _columns(about, (_provider(one) for one in providers.known())) + "\n"
    yield (
        f"## What is known of models\n\nAs of {catalogue.AS_OF}, from the providers' "
        "documentation: sizes in tokens, prices in US dollars for\na million tokens at the "
        "provider's own endpoint. A prompt of more tokens than *long from* is\ncharged as a "
        "whole, reply included, at the prices of the next line. An empty field is not known,\n"
        "and neither is a model that is not here: its cost is shown as unknown.\n"
        '`[provider.about."MODEL"]` below a `[[provider]]` entry of `magy.toml` says what is '
        "missing, or\nbetter known.\n"
    )
    head = ("Model", "Window", "Reply", "Input", "Output", "Cache read", "Cache write", "Long from")
    for provider, table in catalogue.TABLE.items():
        rows = (row for name, facts in table.items() for row in _facts(name, facts))
        yield f"### {provider}\n\n{_columns(head, rows)}\n"


def _provider(one: Any) -> tuple[str, ...]:
    from magy_server.llm import catalogue

    values = (one.api_key_env, one.base_url, catalogue.DEFAULTS.get(one.name))
    return (f"`{one.name}`", one.kind, *(_code(value) if value else "" for value in values))


def _facts(name: str, facts: Any) -> Iterator[tuple[str, ...]]:
    """The row of a model, and one more where long prompts have another price."""
    sizes = tuple(f"{tokens:,}" if tokens else "" for tokens in (facts.window, facts.max_tokens))
    price = facts.price
    above = f"{price.long_above:,}" if price and price.long else ""
    yield (f"`{name}`", *sizes, *_prices(price), above)
    if price and price.long:
        yield ("", "", "", *_prices(price.long), "")


def _prices(price: Any) -> tuple[str, ...]:
    names = ("input", "output", "cache_read", "cache_write")
    return tuple(f"{getattr(price, name):g}" if price else "" for name in names)


def _columns(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def command_line() -> Iterator[str]:
    from magy_server.cli.parser import build
    from scripts.command_line_page import reference

    yield from reference(build())


def rooms() -> Iterator[str]:
    from scripts.rooms import page

    yield from page()


def types() -> Iterator[str]:
    from scripts.wire_types import module

    yield from module()


def acp_types(version: int) -> Iterator[str]:
    from scripts.acp_types import module

    yield from module(version)


PAGES: Mapping[str, tuple[str, Callable[[], Iterable[str]]]] = {
    "clients/vscode/src/wire/generated.ts": ("magy_server/api/wire", types),
    "docs/protocol.md": ("magy_server/api/wire", protocol),
    "docs/reference/command-line.md": ("magy_server/cli/parser.py", command_line),
    "docs/reference/configuration.md": ("magy_server/config/layers.py", configuration),
    "docs/reference/events.md": ("magy_server/core/events.py and values.py", events),
    "docs/reference/models.md": (
        "magy_server/llm/catalogue.py and magy_server/providers.py",
        models,
    ),
    "docs/reference/tools.md": ("magy_server/tools", tools),
    "magy_server/acp/v1.py": ("scripts/schemas/acp-v1.json", partial(acp_types, 1)),
    "magy_server/acp/v2.py": ("scripts/schemas/acp-v2.json", partial(acp_types, 2)),
    "magy_server/config/shipped_agents.json": ("agents and skills", shipped_agents),
    "magy_server/tools/tool_schemas.py": ("magy_server/tools", tool_schemas),
    # Last: it shows the first lines of the modules above.
    "docs/reference/rooms.md": ("the modules of magy_server", rooms),
}


def _fields(schema: Mapping[str, Any]) -> str:
    """The properties of a JSON Schema object as a table."""
    from scripts.wire_page import about, default, type_name

    required = schema.get("required", [])
    rows = [
        (
            name,
            type_name(body),
            "required" if name in required else default(body),
            about(body),
        )
        for name, body in schema.get("properties", {}).items()
    ]
    return _table(("Name", "Type", "Default", ""), rows)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [
        f"| `{name}` | {kind} | {default} | {' '.join(about.split()).replace('|', '&#124;')} |"
        for name, kind, default, about in rows
    ]
    if not lines:
        return ""
    return "\n".join([f"| {' | '.join(head)} |", "|---|---|---|---|", *lines])


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


def _prose(text: str) -> str:
    return f"{text}\n\n" if text else ""


def render(page: str) -> str:
    """The whole text of one of PAGES."""
    source, content = PAGES[page]
    notice = NOTICES[Path(page).suffix].format(source=source)
    text = "\n".join((*filter(None, [notice]), *content()))
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the reference pages from the code.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if any is stale")
    check = parser.parse_args().check
    stale = []
    for page in PAGES:
        path, text = TOP / page, render(page)
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(page)
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    for page in stale:
        print(f"{page}: {'is stale; run `make docs`' if check else 'written'}")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
