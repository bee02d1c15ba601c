"""The way from one transcript to the others of its tree."""

from __future__ import annotations

from collections.abc import Callable

from magy_server.core.agents import tree
from magy_server.core.ports import Store
from magy_server.core.summary import Row, row
from magy_server.core.text.markdown import escaped
from magy_server.engine import trees


async def relations(store: Store, session_id: str, link: Callable[[str], str]) -> str:
    """Markdown: a link to its parent, and one to each child with how that is; "" if it has none.
    `link`: session id -> what a reader follows."""
    found = []
    if (parent := tree.parent(session_id)) is not None:
        found.append(f"## Parent\n\n- [{escaped(parent)}]({link(parent)})\n")
    rows = [row(info) for info in await trees.below(store, session_id)]
    own = [one for one in rows if one and tree.parent(one.session) == session_id]
    if own:
        lines = (_line(one, link) for one in sorted(own, key=lambda one: one.created))
        found.append("## Children\n\n" + "".join(lines))
    return "\n".join(found)


def _line(one: Row, link: Callable[[str], str]) -> str:
    name, agent = one.about["name"], one.about["agent"]
    label = escaped(f"{agent}: {name}" if name else agent)
    asks = ", asks" if one.questions else ""
    return f"- [{label}]({link(one.session)}) · {one.status(queued=False)}{asks} · {one.session}\n"
