"""`make_tools` makes the list of all built-in tools, with their settings."""

from __future__ import annotations

from collections.abc import Callable

from magy_server.core.settings import ToolSettings
from magy_server.core.skills.skill import Skills
from magy_server.core.tool import Tool
from magy_server.tools.agents.agent_tools import AGENT_TOOLS
from magy_server.tools.agents.graph_tool import run_graph
from magy_server.tools.agents.magi_tool import deliberate
from magy_server.tools.agents.plan_tool import update_plan
from magy_server.tools.editor.eval_tool import emacs_eval
from magy_server.tools.editor.knowledge_tools import KNOWLEDGE_TOOLS
from magy_server.tools.files.edit_tools import edit_file, write_file
from magy_server.tools.files.list_tool import list_tool
from magy_server.tools.files.patch_tool import apply_patch
from magy_server.tools.files.read_tool import read_file
from magy_server.tools.files.selection_tool import replace_selection
from magy_server.tools.files.switch_tool import switch_workspace
from magy_server.tools.git.look_tools import git_tools
from magy_server.tools.prompts.skill_tool import skill_tool
from magy_server.tools.search.search_tools import search_tools
from magy_server.tools.seldom_tools import call_tool, find_tools
from magy_server.tools.shell.processes import Processes
from magy_server.tools.shell.shell_tools import shell_tools
from magy_server.tools.web.browser_tool import browser_tool
from magy_server.tools.web.github_tool import github_tool
from magy_server.tools.web.http_tool import http_tool
from magy_server.tools.web.web_tools import web_tools


def make_tools(
    processes: Processes,
    options: ToolSettings | None = None,
    *,
    skills: Callable[[str | None], Skills] = lambda _root: Skills({}),
    asks_for_network: bool = False,
) -> list[Tool]:
    """`processes` belongs to the server, which closes it at its end. `skills`: those of a workspace
    root. `asks_for_network`: as in `shell_tools`."""
    options = options or ToolSettings()
    return [
        read_file,
        edit_file,
        apply_patch,
        write_file,
        list_tool(options.grep_program),
        switch_workspace,
        *search_tools(options.grep_program, options.grep_matches, options.glob_results),
        *shell_tools(processes, options.bash_timeout, asks_for_network=asks_for_network),
        *git_tools(processes),
        *web_tools(options.search_url),
        http_tool(options.http_hosts),
        github_tool(options.github_url),
        browser_tool(sandbox=options.browser_sandbox),
        *KNOWLEDGE_TOOLS,
        emacs_eval,
        update_plan,
        skill_tool(skills),
        *AGENT_TOOLS,
        run_graph,
        deliberate,
        replace_selection,
        find_tools,
        call_tool,
    ]
