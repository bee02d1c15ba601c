"""A server of the Model Context Protocol for measuring: it has TOOLS tools, with descriptions and
parameters of the usual length. It has no SDK: starting twenty that do would take a minute."""

from __future__ import annotations

import json
import sys
from typing import Any

TOOLS = 20
ABOUT = (
    "Searches the records of the tracker and returns those that match, the newest first, with "
    "their titles, states and authors. Use it before you open one of them. "
)


def tool(number: int) -> dict[str, Any]:
    names = ("query", "owner", "state", "since", "limit")
    properties = {
        name: {"type": "string", "description": f"The {name} of the records that are wanted."}
        for name in names
    }
    schema = {"type": "object", "properties": properties, "required": ["query"]}
    return {"name": f"search_records_{number}", "description": ABOUT * 2, "inputSchema": schema}


def answered(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "tools/list":
        return {"tools": [tool(number) for number in range(TOOLS)]}
    if method != "initialize":
        return None
    return {
        "protocolVersion": params["protocolVersion"],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "tracker", "version": "1"},
    }


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked or "method" not in asked:
            continue
        result = answered(asked["method"], asked.get("params") or {})
        said = {"error": {"code": -32601, "message": "?"}} if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}), flush=True)


if __name__ == "__main__":
    main()
