"""This check imports the plugins that are switched on, as a session would."""

from __future__ import annotations

import asyncio

from magy_server.doctor.finding import Around, Finding, note, ok, warning


async def check(around: Around) -> list[Finding]:
    from magy_server.config import layers
    from magy_server.plugins.installed import installed
    from magy_server.plugins.loading import load
    from magy_server.plugins.switches import chosen
    from magy_server.tools.tool_schemas import SCHEMAS

    there, wrong = await asyncio.to_thread(installed)
    plugins = await load(await asyncio.to_thread(chosen, str(layers.config_dir())), SCHEMAS)
    mend = "Until then it is not used. `magy plugins` lists all of them."
    findings = [warning(said, mend) for said in dict.fromkeys((*plugins.problems, *wrong))]
    if off := [name for name in there if name not in {*plugins.used, *plugins.unusable}]:
        what = f"Installed packages have plugins that are not switched on: {', '.join(off)}."
        findings.append(note(what, "`magy plugins enable NAME` switches one on, if you want it."))
    if plugins.used:
        shown = (f"{name} ({one.installed.package} {one.installed.version})"
                 for name, one in plugins.used.items())  # fmt: skip
        findings.append(ok(f"Plugins: {', '.join(shown)}."))
    return findings or [ok("No plugin is switched on.")]
